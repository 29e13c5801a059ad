//! The private table through which the simulated runtime, and the stand-ins for CUDA's libraries,
//! call the simulated driver past the driver API, as NVIDIA's libraries do with theirs.
//!
//! Not part of CUDA's ABI.

use crate::{CUdeviceptr, CUlibrary, CUresult, CUstream};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// The id under which the simulated driver hands out [`SimTable`] through `cuGetExportTable`.
pub const SIM_TABLE: [u8; 16] = *b"streamsan-sim-03";

/// The memory of a device as a native kernel reaches it.
#[repr(C)]
pub struct NativeMemory {
    /// What `view` wants back.
    pub owner: *const c_void,
    /// Where the bytes at a device address lie for the CPU: owner, address, number of bytes,
    /// whether they are written. Null when they cannot be accessed; then the kernel ends, for the
    /// launch has failed.
    pub view: unsafe extern "C" fn(*const c_void, u64, u64, c_int) -> *mut u8,
}

/// What runs in place of a kernel's PTX: parameter block and memory. It may be called on any
/// thread, on several at a time, and must call nothing of CUDA.
pub type NativeKernel = unsafe extern "C" fn(*const u8, *const NativeMemory);

/// A simulated device, as it is before `CUDA_VISIBLE_DEVICES` hides or reorders any.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SimDevice {
    /// Compute capability times ten.
    pub arch: u32,
    /// The bus of its PCI address `0000:BUS:00.0`.
    pub bus: u32,
    /// What `cuDeviceGetUuid` says.
    pub uuid: [u8; 16],
    /// What `cuDeviceGetName` says, with a zero behind it.
    pub name: [u8; 64],
    /// Bytes of memory.
    pub memory: u64,
    /// How many of them this process has allocated.
    pub allocated: u64,
}

/// A device's UUID as NVML, `nvidia-smi` and `CUDA_VISIBLE_DEVICES` write it: `GPU-` and five
/// groups of digits.
pub fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = String::from("GPU");
    for (at, byte) in uuid.into_iter().enumerate() {
        if matches!(at, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// Functions of the simulated driver for the simulator's other libraries alone.
#[repr(C)]
pub struct SimTable {
    /// `cuLibraryGetGlobal`, past every tool.
    pub library_get_global: unsafe extern "C" fn(*mut CUdeviceptr, *mut usize, CUlibrary, *const c_char) -> CUresult,
    /// Takes note of what the runtime refused: one line of text.
    pub refused: unsafe extern "C" fn(*const c_char),
    /// Gives a kernel of a library a function that runs in its place. The PTX stays what says which
    /// bytes it touches. It may store only what it has loaded from there, or to what the function
    /// overwrites, for it may be run before the function.
    pub native: unsafe extern "C" fn(CUlibrary, *const c_char, NativeKernel) -> CUresult,
    /// Makes a stream wait, past every tool, until a counter in memory of the CPU has reached a
    /// value. Counters go round.
    pub wait: unsafe extern "C" fn(CUstream, *const u32, u32) -> CUresult,
    /// Describes a device, by its number, without starting CUDA in the process:
    /// `CUDA_ERROR_INVALID_DEVICE` past the last one.
    pub device: unsafe extern "C" fn(c_uint, *mut SimDevice) -> CUresult,
}
