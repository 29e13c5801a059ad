//! The items of lists in ops, and the bits of their flags.

use crate::id::PyCodeId;
use crate::item;

/// One parameter of a kernel in its parameter buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ParamSlot {
    /// Byte offset in the parameter buffer.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}
item!(ParamSlot { offset: u32, size: u32 });

/// A Python frame: a code object and how far it got.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PyFrame {
    /// Which code object.
    pub code: PyCodeId,
    /// Byte offset of the last instruction in the code object.
    pub offset: u32,
}
item!(PyFrame { code: PyCodeId, offset: u32 });

/// A dependency of a graph node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Dependency {
    /// Index of the node that comes first.
    pub from: u32,
    /// 0: after its completion; 1: after its programmatic trigger; 2: after its blocks have
    /// started.
    pub port: u32,
}
item!(Dependency { from: u32, port: u32 });

/// Bytes that a launch really touched: `count` pieces of `width` bytes, `stride` bytes apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ExactRun {
    /// First byte.
    pub start: u64,
    /// Bytes from one piece to the next; 0 for a single piece.
    pub stride: u64,
    /// Bytes of a piece.
    pub width: u64,
    /// Number of pieces, at least 1.
    pub count: u32,
    /// See [`exact_kind`].
    pub kind: u32,
}
item!(ExactRun { start: u64, stride: u64, width: u64, count: u32, kind: u32 });

/// The `kind` of an [`ExactRun`].
pub mod exact_kind {
    /// Loaded.
    pub const READ: u32 = 0;
    /// Stored.
    pub const WRITE: u32 = 1;
    /// Updated by atomic instructions.
    pub const ATOMIC: u32 = 2;
    /// Loaded by atomic instructions. (NVIDIA's API tells only the first three.)
    pub const ATOMIC_READ: u32 = 3;
    /// Stored by atomic instructions.
    pub const ATOMIC_WRITE: u32 = 4;
    /// The bits that hold one of them.
    pub const MASK: u32 = 0xff;
    /// Added when only some bytes of the run were touched (there was no room to keep them apart).
    pub const BOUND: u32 = 0x100;
}

/// The `kind` of an [`ExactRun`] of an [`Op::ExactOrder`](crate::op::Op::ExactOrder); it may have
/// [`exact_kind::BOUND`], too.
pub mod exact_order {
    /// Some plain access comes behind no acquire of the device's scope, or a wider one.
    pub const NOT_ACQUIRED: u32 = 5;
    /// Some plain access has no release of such a scope behind it.
    pub const NOT_RELEASED: u32 = 6;
    /// Some plain access comes behind no acquire of the system's scope and has no release of that
    /// scope behind it. Or there is an atomic store that the host can learn nothing from.
    pub const NOT_TOLD: u32 = 7;
}

/// Bits of [`Op::Exact`](crate::op::Op::Exact)'s `flags`.
pub mod exact_flags {
    /// The ranges could not be had: nothing is known of the launch but its summary.
    pub const LOST: u32 = 1;
    /// A simulated GPU told them: no access was missed, so that none at all is evidence too.
    pub const SIMULATED: u32 = 2;
    /// The kernel did not run: a node in a part of a graph that was left out.
    pub const NOT_RUN: u32 = 4;
    /// A simulated GPU has looked at what orders its accesses
    /// ([`Op::ExactOrder`](crate::op::Op::ExactOrder)).
    pub const ORDERED: u32 = 8;
}

/// Bits of [`Op::Launch`](crate::op::Op::Launch)'s `flags`.
pub mod launch_flags {
    /// Cooperative launch.
    pub const COOPERATIVE: u32 = 1;
    /// Programmatic stream serialisation: may overlap its predecessor until it waits for it.
    pub const PROGRAMMATIC_SERIALIZATION: u32 = 2;
    /// Parameters came in one buffer (`extra`).
    pub const EXTRA_BUFFER: u32 = 4;
    /// The parameter layout was unknown, so `params` is empty.
    pub const PARAMS_UNKNOWN: u32 = 8;
    /// Made inside a call of a library that is an op of its own (NCCL), which says what it
    /// touches.
    pub const INSIDE_LIBRARY: u32 = 16;
    /// An [`Op::Exact`](crate::op::Op::Exact) for this launch follows.
    pub const EXACT: u32 = 32;
}
