//! Memory: allocations, pools, virtual memory, IPC, copies, memsets, arrays and textures.
//!
//! `copies` uses `copy_descriptors`, which turns C's descriptions of copies into
//! [`crate::memory::memcpy::Memcpy`]. The other files stand alone. Who owns which bytes is in
//! [`crate::memory`].

pub(crate) mod allocations;
pub(crate) mod arrays_textures;
pub(crate) mod copies;
pub(crate) mod copy_descriptors;
pub(crate) mod ipc;
pub(crate) mod memsets;
pub(crate) mod pointers;
pub(crate) mod pools;
pub(crate) mod virtual_memory;
