//! Which bytes a CUDA kernel touches, from its machine code or PTX.
//!
//! Knows nothing of allocations, streams or races: these are the analyzer's.
//!
//! # The way through the crate
//!
//! 1. The crate [`device_code`] reads containers, machine code and PTX. `code_image` chooses the
//!    code that a device would run.
//! 2. Lowering ([`lower_sass`], [`lower_ptx`]) turns it into one intermediate representation
//!    ([`ir`]).
//! 3. `ranges` makes a [`Summary`] of that (`summary`), which answers for every launch which
//!    parameter words are read, written or updated atomically, and which bytes behind them. The
//!    types of the answers are in `effects` and `grid_dependence`. The head of `ranges` follows one
//!    instruction through all stages.
//!
//! Beside this way: `summary_cache` keeps summaries on disk, `promised` is what several threads may
//! need and one makes, `launch_invariant` decides whether ranges that were measured once may stand
//! for later launches, `tensor_extent` bounds what is reached through a tensor map, and `explain`
//! prints all of it.

#![warn(unreachable_pub)]

mod code_bytes;
mod code_image;
mod effects;
mod explain;
mod grid_dependence;
pub mod ir;
mod launch_invariant;
pub mod lower_ptx;
pub(crate) mod lower_sass;
mod promised;
mod ranges;
mod safepoint;
mod summary;
mod summary_cache;
mod tensor_extent;

pub use crate::effects::{
    AccessKind, Base, Dependency, Dim, Early, Extent, Gap, KernelAccess, LaunchArgs, Lock, LockRole, Loss, LossRole,
    Param, Reason, Selection, Tiles, Triggering, Triggers, WordExtent,
};
pub use crate::ir::{FlagLoad, LoadScope, SystemFences, UnfencedCopy};
pub use crate::summary_cache::Cache;
pub use code_bytes::CodeBytes;
pub use code_image::{CodeImage, LoadError, SummaryError};
pub use explain::{Explained, ExplainedAccess, ExplainedCopy, explain, explain_json, kernel_names};
pub use promised::{Promised, Watched, starved_within};
pub use safepoint::{go_on, hold_back, is_held_back, safepoint};
pub use summary::Summary;
