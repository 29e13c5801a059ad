//! What a summary answers about programmatic dependent launch: of the kernel, of an access, of a
//! launch.
//!
//! Owns the vocabulary. Data only; `ir/grid_wait` and `ranges` make it.

use serde::{Deserialize, Serialize};

/// What a kernel does about programmatic dependent launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// It waits for the grids it depends on (`griddepcontrol.wait`).
    pub waits: bool,
    /// It waits, and some threads access global memory before they have, or never wait: see
    /// [`crate::KernelAccess::early`].
    pub accesses_early: bool,
    /// When it lets dependent grids begin (`griddepcontrol.launch_dependents`).
    pub triggers: Triggers,
    /// It depends on the launch which blocks do, if any: see [`crate::Summary::triggering`].
    pub triggers_by_launch: bool,
}

/// Whether threads make an access before they have waited for the grids that their kernel depends
/// on. That they make it at all is a matter of its extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Early {
    /// They have waited.
    #[default]
    No,
    /// They have not, and no synchronisation may have handed on to them that others have.
    Surely,
    /// The same, where a warp was asked whether some of its threads wait: as sure as its answer.
    Asked,
    /// Something may have handed it on to them.
    Perhaps,
}

impl Early {
    /// It may be before the wait.
    #[must_use]
    pub fn is(self) -> bool {
        self != Early::No
    }
}

/// When a kernel lets dependent grids begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Triggers {
    /// Not before it ends.
    #[default]
    Never,
    /// In threads that have waited for the grids it depends on.
    AfterWait,
    /// In threads that have not.
    AtOnce,
}

/// Which blocks of a launch let dependent grids begin before they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triggering {
    /// None does.
    None,
    /// Some may, or it is not known that all do.
    Some,
    /// All do.
    All,
}
