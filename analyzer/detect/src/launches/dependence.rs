//! Programmatic dependent launch, as the order asks for it.
//!
//! Owns what is assumed of kernels without readable code.

use kernels::{Dependency, Triggers};
use order::Opens;

/// What a kernel does about the work it depends on, and about what depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dependence {
    /// Whether it waits, somewhere in its code, or needs no wait.
    pub waits: bool,
    /// Whether it accesses memory before that.
    pub accesses_early: bool,
    /// When it lets the next launch begin that may overlap it.
    pub opens: Opens,
}

impl Dependence {
    /// Of a kernel without readable code.
    pub const UNKNOWN: Self = Self { waits: true, accesses_early: false, opens: Opens::AtOnce };
    /// Of work that begins behind all that it depends on.
    pub const ORDERED: Self = Self { waits: true, accesses_early: false, opens: Opens::Never };
}

impl Default for Dependence {
    fn default() -> Self {
        Self::ORDERED
    }
}

impl From<Dependency> for Dependence {
    fn from(Dependency { waits, accesses_early, triggers }: Dependency) -> Self {
        let opens = match triggers {
            Triggers::Never => Opens::Never,
            Triggers::AfterWait => Opens::AfterWait,
            Triggers::AtOnce => Opens::AtOnce,
        };
        Self { waits, accesses_early, opens }
    }
}
