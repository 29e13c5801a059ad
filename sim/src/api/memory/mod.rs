//! Memory: allocations, pools, virtual memory, IPC, copies, memsets, arrays and textures.
//!
//! `copies` uses `copy_descriptors`, which turns C's descriptions of copies into
//! [`crate::memory::memcpy::Memcpy`]. `own_view` answers a tool. The other files stand alone. Who
//! owns which bytes is in [`crate::memory`].

pub(crate) mod allocations;
pub(crate) mod arrays_textures;
pub(crate) mod copies;
pub(crate) mod copy_descriptors;
pub(crate) mod ipc;
pub(crate) mod memsets;
pub(crate) mod own_view;
pub(crate) mod pointers;
pub(crate) mod pools;
pub(crate) mod tensor_maps;
pub(crate) mod virtual_memory;

/// Memory of the device's heap is none of the host's (CUDA C++ Programming Guide, dynamic global
/// memory allocation). An H100 (driver 580) answers copies with `CUDA_ERROR_INVALID_VALUE`, as for
/// unknown memory.
fn is_heap(block: &crate::memory::Allocation) -> bool {
    block.kind == crate::memory::AllocationKind::Heap
}
