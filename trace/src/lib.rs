//! The contract between the shim (which writes ops inside the program under test) and the analyzer
//! (which reads them).
//!
//! Owns: ids, ops, their encoding, the layout of the shared-memory ring, and the framing of trace
//! files. Knows nothing of CUDA's rules of order (crate `order`) nor of how calls are intercepted
//! (crate `shim`).
//!
//! From the bottom up: `id` and `codec` (numbers and bytes), [`op`] (the ops and their fields),
//! [`record`] (an op with its origin), then the two ways of a record out of the program: [`ring`]
//! (shared memory) and `file`.
//!
//! # Format version
//!
//! [`FORMAT_VERSION`] is written into the ring header. The rule: **any** change to the meaning, the
//! order or the width of a field of an existing op, to a tag, or to the ring's framing bumps it.
//! Trace files have versions of their own (`file::FILE_VERSION`, `segment::SEGMENT_VERSION`), which
//! are bumped with it and with the framing of files. Adding an op with a new tag does not: readers
//! skip unknown tags and count them ([`DecodeError::UnknownTag`] carries the record's length).
//! Retired tags are never given out again.

#![warn(unreachable_pub)]

mod arch;
mod atomics;
pub mod codec;
#[cfg(feature = "file")]
pub mod file;
pub mod id;
pub mod op;
pub mod record;
pub mod ring;
#[cfg(feature = "file")]
pub mod segment;

pub use codec::{DecodeError, Decoder, Encoder};
pub use id::*;
pub use op::file_identity::*;
pub use op::items::*;
pub use op::kinds::*;
pub use op::launch_shape::*;
pub use op::region::*;
pub use op::{Op, tag};
pub use record::*;

/// How the text of a [`NoteKind::Unobserved`] begins that says why the host's accesses to memory
/// of a kind are not looked for, though that was asked for.
pub const STEPPED_ASIDE: &str = "host touches of ";

/// The text of a [`NoteKind::Info`] that says that a device reaches memory which the operating
/// system allocated (CUDA's attribute `pageableMemoryAccess`).
pub const SYSTEM_MEMORY: &str = "devices reach system-allocated memory";

/// Keys of physical memory begin so ([`Op::SharedMemory`]). That memory has no owner whose free
/// ends it: it lives as long as any process has it.
pub const PHYSICAL_KEY: &[u8] = b"physical";

/// Keys of events begin so that stand for processes which come together ([`Op::SharedEvent`]): one
/// event for each of them. The n-th wait of a process for another's event is for the n-th record of
/// that, also if it comes before the record.
pub const MEETING_KEY: &[u8] = b"meeting";

/// Parts of the names of kernels that use the signal pads of PyTorch's symmetric memory: their
/// namespace and their file, `c10d::symmetric_memory` and `CUDASymmetricMemoryOps.cu`.
pub const OF_SIGNAL_PADS: [&str; 2] = ["c10d16symmetric_memory", "CUDASymmetricMemory"];

/// From here on addresses are substitutes: of memory whose own address another piece of memory is
/// known by, or of which only a part is mapped. Its mappings are aliases of it. The lowest 52 bits
/// are the address that it was first mapped at.
pub const SUBSTITUTE: u64 = 1 << 62;

/// The address that a substitute stands for; others stand for themselves.
pub fn mapped_address(address: u64) -> u64 {
    if address >> 62 == 1 { address & ((1 << 52) - 1) } else { address }
}
/// The text of a [`NoteKind::Info`] that says that the simulated GPU measures launches by itself,
/// though nobody asked for exact mode: what is not measured then was left out for its cost.
pub const SIM_MEASURES: &str = "the simulated GPU measures launches";

/// Version of the record encoding and of the ring layout. See the bump rule in the crate docs.
pub const FORMAT_VERSION: u32 = 1;
