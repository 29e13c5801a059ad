//! The types of the driver API: handles, statuses, enums, structs.
//!
//! Names are CUDA's own, so that code reads beside CUDA's documentation; they are not explained
//! again here. Rules:
//!
//! - a handle is a newtype of a pointer, `CUdeviceptr` and other 64-bit addresses are `u64`;
//! - an enum that functions take or return is an integer newtype with free constants under their C
//!   names; enumerators that are passed as plain integers (flags) are plain integer constants;
//! - a struct has C's field names (a trailing underscore where the name is a Rust keyword);
//!   anonymous members are called `anon1`; versions are types of their own (`_v1`, `_v2`) and the
//!   bare name is the newest, as in C;
//! - a `#define` (a special handle, a flag, a limit) is a constant at the top of its noun's file.
//!
//! The list is that of CUDA 13.5, which contains everything since 11.8. `tests/layout.rs` compares
//! sizes, offsets and values with the toolkit's `cuda.h`.
#![allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals)]

#[macro_use]
mod macros;

mod array;
mod checkpoint;
mod code;
mod context;
mod copy;
mod device;
mod external;
mod graph;
mod launch;
mod memory;
mod result;
mod stream;
mod texture;

pub use array::*;
pub use checkpoint::*;
pub use code::*;
pub use context::*;
pub use copy::*;
pub use device::*;
pub use external::*;
pub use graph::*;
pub use launch::*;
pub use memory::*;
pub use result::*;
pub use stream::*;
pub use texture::*;

pub use core::ffi::{c_char, c_int, c_uint, c_void};
use core::mem::size_of;

/// How one C struct is laid out: what `tests/layout.rs` compares with `cuda.h`.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The struct's name, as in C.
    pub name: &'static str,
    /// `sizeof`, in bytes.
    pub size: usize,
    /// `_Alignof`, in bytes.
    pub align: usize,
    /// Each field with its `offsetof`, in bytes.
    pub fields: &'static [(&'static str, usize)],
}

/// The layouts of all structs.
pub const LAYOUTS: &[&[Layout]] = &[
    array::ARRAY_LAYOUTS,
    checkpoint::CHECKPOINT_LAYOUTS,
    code::CODE_LAYOUTS,
    context::CONTEXT_LAYOUTS,
    context::GREEN_LAYOUTS,
    copy::COPY_LAYOUTS,
    device::DEVICE_LAYOUTS,
    external::EXTERNAL_LAYOUTS,
    graph::GRAPH_LAYOUTS,
    launch::LAUNCH_LAYOUTS,
    memory::MEMORY_LAYOUTS,
    stream::STREAM_LAYOUTS,
    texture::TEXTURE_LAYOUTS,
];

c_handles! {
    CUcontext,
    CUmodule,
    CUfunction,
    CUlibrary,
    /// A kernel of a library. Launches take it where they ask for a [`CUfunction`].
    CUkernel,
    CUarray,
    CUmipmappedArray,
    CUtexref,
    CUsurfref,
    CUevent,
    /// A stream; 0, 1 and 2 are not objects but rules, see [`CU_STREAM_LEGACY`].
    CUstream,
    CUgraphicsResource,
    CUexternalMemory,
    CUexternalSemaphore,
    CUgraph,
    CUgraphNode,
    CUgraphExec,
    CUmemoryPool,
    CUuserObject,
    CUgraphDeviceNode,
    CUasyncCallbackHandle,
    CUgreenCtx,
    CUlinkState,
    CUcheckpointOperationHandle,
    CUcoredumpCallbackHandle,
    CUdevResourceDesc,
    CUlogsCallbackHandle,
}

impl core::fmt::Debug for CUresult {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "CUresult({})", self.0),
        }
    }
}

impl CUresult {
    /// Whether the call succeeded.
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }
}
