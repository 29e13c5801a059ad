//! Kernels that a stand-in for one of CUDA's libraries runs natively.
//!
//! Such a kernel is launched, captured and ordered as any other, and its PTX says which bytes it
//! touches. A function of the stand-in computes in place of the PTX, because interpreting a matrix
//! product takes a hundred times longer. Owns the list of these functions and how they reach device
//! memory. Does not know what they compute.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use cuda_sys::{CUresult, NativeKernel, NativeMemory, c_int, c_void};

use crate::interp::Device;
use crate::memory::unwritten;

/// The native functions of one code image, by kernel.
#[derive(Default)]
pub(crate) struct NativeKernels(Mutex<HashMap<String, NativeKernel>>);

impl NativeKernels {
    /// Gives a kernel its function.
    pub(crate) fn add(&self, kernel: &str, run: NativeKernel) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(kernel.to_owned(), run);
    }

    /// The function of a kernel.
    pub(crate) fn get(&self, kernel: &str) -> Option<NativeKernel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(kernel).copied()
    }
}

/// The device of one launch, and the first address that could not be accessed.
struct Launch<'d> {
    device: &'d dyn Device,
    fault: Cell<Option<(u64, bool)>>,
}

/// # Safety
/// `owner` is the running launch.
unsafe extern "C" fn view(owner: *const c_void, address: u64, bytes: u64, write: c_int) -> *mut u8 {
    // SAFETY: the caller's promise.
    let launch = unsafe { &*owner.cast::<Launch<'_>>() };
    let write = write != 0;
    let mut at = address;
    while at < address.saturating_add(bytes.max(1)) {
        match launch.device.allocation(at) {
            Some(extent) if extent.writable || !write => at = extent.end,
            _ => {
                launch.fault.set(launch.fault.get().or(Some((at, write))));
                return std::ptr::null_mut();
            }
        }
    }
    if write {
        unwritten::written(address, bytes);
    }
    launch.device.host_address(address) as *mut u8
}

/// Runs a kernel natively. It fails as an interpreted one does at an address that is not mapped.
pub(in crate::objects) fn run(
    native: NativeKernel,
    kernel: &str,
    params: &[u8],
    device: &dyn Device,
) -> Result<(), CUresult> {
    let launch = Launch { device, fault: Cell::new(None) };
    let memory = NativeMemory { owner: (&raw const launch).cast(), view };
    // SAFETY: the stand-in gave this function for this kernel, whose parameters these are.
    unsafe { native(params.as_ptr(), &memory) };
    device.progress();
    match launch.fault.get() {
        None => Ok(()),
        Some((at, write)) => {
            let what = if write { "write" } else { "read" };
            signal_free::say!("streamsan-sim: kernel `{kernel}`: {what} out of bounds at 0x{at:x}");
            Err(CUresult::ERROR_ILLEGAL_ADDRESS)
        }
    }
}
