//! The interface between `libstreamsan.so` and `libstreamsan_mpi.so` (crate `shim-mpi`): one
//! function to link the two, one table of functions, plain data.
//!
//! Owns the types and their version. Both libraries are built from this crate, but they are two
//! files, and an installation may mix those of two releases. Hence every type is `repr(C)`, and the
//! library states its [`VERSION`] before it gets the table. Each change of a type or of a
//! function's meaning increments the version.

#![warn(unreachable_pub)]

use std::ffi::c_void;

/// The version of everything in this file.
pub const VERSION: u32 = 1;

/// The type of `streamsan_mpi_link`, which `libstreamsan.so` exports: version, the names of MPI's
/// functions, how many, and an address in the calling library, whose frames are then left out of
/// stacks. Null: the shim has another version. The names and the table live as long as the process.
pub type Link = unsafe extern "C" fn(u32, *const Name, usize, *const c_void) -> *const Table;

/// The name of a function of MPI, in UTF-8. Its place among the names is its number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Name {
    text: *const u8,
    len: usize,
}

// SAFETY: points to a string that is never written and never freed.
unsafe impl Sync for Name {}
// SAFETY: as above.
unsafe impl Send for Name {}

impl Name {
    /// This name.
    pub const fn new(name: &'static str) -> Self {
        Self { text: name.as_ptr(), len: name.len() }
    }

    /// The name.
    pub fn text(self) -> &'static str {
        // SAFETY: made by `new`, in this library or in the other one, which is never unloaded.
        let bytes = unsafe { std::slice::from_raw_parts(self.text, self.len) };
        std::str::from_utf8(bytes).unwrap_or("?")
    }
}

/// A box of bytes: `depth` slices of `height` rows of `width` bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// Address of the first byte.
    pub start: u64,
    /// Bytes a row.
    pub width: u64,
    /// Bytes from row to row.
    pub pitch: u64,
    /// Bytes from slice to slice.
    pub slice_pitch: u64,
    /// Rows a slice.
    pub height: u32,
    /// Slices.
    pub depth: u32,
}

impl Region {
    /// `len` bytes from `start`.
    pub fn linear(start: u64, len: u64) -> Self {
        Self { start, width: len, pitch: len, slice_pitch: len, height: 1, depth: 1 }
    }
}

/// Bytes that a call reads or writes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Which.
    pub region: Region,
    /// Whether it reads them.
    pub reads: bool,
    /// Whether it writes them.
    pub writes: bool,
    /// Whether it touches all of them.
    pub exact: bool,
}

/// The shim's functions. Calls are named by their numbers.
#[repr(C)]
#[derive(Debug)]
pub struct Table {
    /// Whether an address lies in memory that CUDA knows.
    pub is_cuda_memory: extern "C" fn(u64) -> bool,
    /// Whether the calling thread is inside of MPI.
    pub is_inside: extern "C" fn() -> bool,
    /// The calling thread enters MPI or leaves it: the CUDA calls between are MPI's own.
    pub set_inside: extern "C" fn(bool),
    /// A call accesses this memory before it returns. Answers under which number the memory is
    /// lent.
    pub access: unsafe extern "C" fn(u16, *const Transfer, usize) -> u32,
    /// The memory that was lent under this number is no longer in use.
    pub give_back: extern "C" fn(u32),
    /// Something begins that accesses this memory until it is complete. Answers its number; 0: the
    /// process is not observed.
    pub begin: unsafe extern "C" fn(u16, *const Transfer, usize) -> u32,
    /// The host has seen it complete, in this call.
    pub end: extern "C" fn(u16, u32),
}
