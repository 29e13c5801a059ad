//! Programmatic dependent launch, as the order asks for it.
//!
//! Owns what is assumed of kernels without readable code.

use kernels::{Dependency, Triggering, Triggers};
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
    /// Whether it does so in all blocks, or in none: otherwise the launch decides, and it is not
    /// known of this one.
    pub opens_surely: bool,
}

impl Dependence {
    /// Of a kernel without readable code.
    pub const UNKNOWN: Self = Self { waits: true, accesses_early: false, opens: Opens::AtOnce, opens_surely: false };
    /// Of work that begins behind all that it depends on.
    pub const ORDERED: Self = Self { waits: true, accesses_early: false, opens: Opens::Never, opens_surely: true };
}

impl Default for Dependence {
    fn default() -> Self {
        Self::ORDERED
    }
}

impl From<Dependency> for Dependence {
    fn from(Dependency { waits, accesses_early, triggers, triggers_by_launch }: Dependency) -> Self {
        let opens = match triggers {
            Triggers::Never => Opens::Never,
            Triggers::AfterWait => Opens::AfterWait,
            Triggers::AtOnce => Opens::AtOnce,
        };
        Self { waits, accesses_early, opens, opens_surely: !triggers_by_launch }
    }
}

impl Dependence {
    /// The same of a kernel from which the wait was taken.
    #[must_use]
    pub fn without_wait(self) -> Self {
        let opens = if self.opens == Opens::AfterWait { Opens::AtOnce } else { self.opens };
        Self { waits: false, accesses_early: false, opens, ..self }
    }

    /// The same of one launch, of whose blocks so many trigger.
    #[must_use]
    pub fn of_launch(self, triggering: Triggering) -> Self {
        match triggering {
            Triggering::None => Self { opens: Opens::Never, opens_surely: true, ..self },
            Triggering::Some => Self { opens_surely: false, ..self },
            Triggering::All => Self { opens_surely: true, ..self },
        }
    }
}
