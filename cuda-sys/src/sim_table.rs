//! The private table through which the simulated runtime calls the simulated driver past the driver
//! API, as NVIDIA's libraries do with theirs.
//!
//! Not part of CUDA's ABI.

use crate::{CUdeviceptr, CUlibrary, CUresult};
use std::ffi::c_char;

/// The id under which the simulated driver hands out [`SimTable`] through `cuGetExportTable`.
pub const SIM_TABLE: [u8; 16] = *b"streamsan-sim-01";

/// Functions of the simulated driver for the simulated runtime alone.
#[repr(C)]
pub struct SimTable {
    /// `cuLibraryGetGlobal`, past every tool.
    pub library_get_global: unsafe extern "C" fn(*mut CUdeviceptr, *mut usize, CUlibrary, *const c_char) -> CUresult,
    /// Takes note of what the runtime refused: one line of text.
    pub refused: unsafe extern "C" fn(*const c_char),
}
