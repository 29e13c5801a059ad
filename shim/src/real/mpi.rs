//! Whether this process uses MPI unobserved.
//!
//! Owns the look for an MPI library at the end of the process. Its functions are wrapped by
//! `libstreamsan_mpi.so`; without that library the shim sees none of its calls, and takes the CUDA
//! calls that it makes inside for the program's.

use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use super::driver;

static OBSERVED: AtomicBool = AtomicBool::new(false);

/// MPI's calls are observed: the library that wraps them has been linked.
pub fn note_observed() {
    OBSERVED.store(true, Ordering::Release);
}

/// Whether the program has initialised MPI, and its calls were not observed. A library that is only
/// loaded does not count.
pub fn is_unobserved() -> bool {
    if OBSERVED.load(Ordering::Acquire) {
        return false;
    }
    // SAFETY: a handle and a string that dlsym takes.
    let global = unsafe { driver::dlsym(libc::RTLD_DEFAULT, INITIALIZED) };
    is_initialized(global) || loaded().iter().any(|path| is_initialized(in_library(path)))
}

const INITIALIZED: &CStr = c"MPI_Initialized";

/// The MPI libraries of this process. Python's extensions load them with a local scope.
fn loaded() -> Vec<CString> {
    let mut paths = Vec::new();
    // SAFETY: the callback gets the address of `paths`, as it expects.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut paths).cast()) };
    paths
}

unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _size: usize, paths: *mut c_void) -> c_int {
    // SAFETY: the loader's own; `loaded` passes the address of a list.
    let (name, paths) = unsafe { ((*info).dlpi_name, &mut *paths.cast::<Vec<CString>>()) };
    if !name.is_null() {
        // SAFETY: a C string of the loader, for as long as the library is loaded.
        let path = unsafe { CStr::from_ptr(name) };
        let file = path.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if file.starts_with(b"libmpi") {
            paths.push(path.to_owned());
        }
    }
    0
}

/// `MPI_Initialized` of this library; null: it has none.
fn in_library(path: &CStr) -> *mut c_void {
    // SAFETY: a C string; a library that is loaded already is not loaded again. The handle is
    // closed once, and the library stays, as the program has it.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return std::ptr::null_mut();
        }
        let found = driver::dlsym(handle, INITIALIZED);
        libc::dlclose(handle);
        found
    }
}

/// Asks `MPI_Initialized`, which may be called at any time, also after `MPI_Finalize` (MPI 4.1,
/// 11.4.1).
fn is_initialized(function: *mut c_void) -> bool {
    if function.is_null() {
        return false;
    }
    let mut flag: c_int = 0;
    // SAFETY: the function of this name has this signature in every MPI library.
    let ask: unsafe extern "C" fn(*mut c_int) -> c_int = unsafe { std::mem::transmute(function) };
    // SAFETY: the flag lives as long as the call.
    unsafe { ask(&raw mut flag) == 0 && flag != 0 }
}
