//! Which bytes a CUDA kernel touches, from its machine code or PTX.
//!
//! The tree reads as the data flows: containers ([`image`]) hold code, front ends ([`sass`],
//! [`ptx`]) read it, lowering ([`lower_sass`], [`lower_ptx`]) turns it into one intermediate
//! representation ([`ir`]), and `ranges` makes a [`Summary`] of it, which answers for every launch:
//! which parameter words are read, written or updated atomically, and which bytes behind them.
//!
//! It knows nothing of allocations, streams or races: that is the analyzer's work.

mod access;
pub mod arch;
mod cache;
mod code_image;
mod explain;
mod fixed;
pub mod image;
pub mod ir;
mod lines;
pub mod lower_ptx;
pub mod lower_sass;
pub mod ptx;
mod ranges;
pub mod sass;
mod summary;
pub mod tensor_map;

pub use access::{
    AccessKind, Base, Dependency, Dim, Extent, Gap, IndirectEffect, KernelAccess, LaunchArgs, Param, Reason, SymbolRef,
    WordEffect, WordExtent,
};
pub use cache::Cache;
pub use code_image::{CodeImage, LoadError, SummaryError};
pub use explain::{Explained, ExplainedAccess, explain, explain_json, kernel_names};
pub use lines::{LineTable, SourceLine, telling};
pub use summary::Summary;
