//! Which bytes a CUDA kernel touches, from its machine code or PTX.
//!
//! Knows nothing of allocations, streams or races: these are the analyzer's.
//!
//! # The way through the crate
//!
//! 1. Containers ([`image`], with [`arch`] for the names of architectures) hold code. `code_image`
//!    chooses the code that a device would run.
//! 2. Front ends ([`sass`], [`ptx`]) read it.
//! 3. Lowering ([`lower_sass`], [`lower_ptx`]) turns it into one intermediate representation
//!    ([`ir`]).
//! 4. `ranges` makes a [`Summary`] of that (`summary`), which answers for every launch which
//!    parameter words are read, written or updated atomically, and which bytes behind them. The
//!    types of the answers are in `effects`. The head of `ranges` follows one instruction through
//!    all stages.
//!
//! Beside this way: `summary_cache` keeps summaries on disk, `line_table` finds source lines,
//! `launch_invariant` decides whether ranges that were measured once may stand for later launches,
//! [`tensor_map`] decodes tensor maps, and `explain` prints all of it.

pub mod arch;
mod code_image;
mod effects;
mod explain;
pub mod image;
pub mod ir;
mod launch_invariant;
mod line_table;
pub mod lower_ptx;
pub mod lower_sass;
pub mod ptx;
mod ranges;
pub mod sass;
mod summary;
mod summary_cache;
pub mod tensor_map;

pub use crate::effects::{
    AccessKind, Base, Dependency, Dim, Extent, Gap, IndirectEffect, KernelAccess, LaunchArgs, Lock, Loss, LossRole,
    Param, Reason, SymbolRef, WordEffect, WordExtent,
};
pub use crate::line_table::{LineTable, SourceLine, user_line};
pub use crate::summary_cache::Cache;
pub use code_image::{CodeImage, LoadError, SummaryError};
pub use explain::{Explained, ExplainedAccess, explain, explain_json, kernel_names};
pub use summary::Summary;
