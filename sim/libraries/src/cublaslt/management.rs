//! Handles, versions and the log of cuBLASLt.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::cublas::handle::{self, Handle, Status, version};

// SAFETY: the names and signatures of cuBLASLt.
#[unsafe(no_mangle)]
extern "C" fn cublasLtCreate(to: *mut *mut Handle) -> c_int {
    handle::create(to)
}

/// # Safety
/// A handle of [`cublasLtCreate`] that is not used again.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtDestroy(of: *mut Handle) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { handle::destroy(of) }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cublasLtGetVersion() -> usize {
    version() as usize
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cublasLtGetCudartVersion() -> usize {
    version() as usize / 10
}

/// # Safety
/// `to` is writable, or null.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtGetProperty(property: c_int, to: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { handle::cublasGetProperty(property, to) }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cublasLtGetStatusName(status: c_int) -> *const c_char {
    handle::status_name(status).as_ptr()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cublasLtGetStatusString(status: c_int) -> *const c_char {
    handle::status_name(status).as_ptr()
}

// There is no cache of choices, for there is one algorithm.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cublasLtHeuristicsCacheSetCapacity(_capacity: usize) -> c_int {
    0
}

/// # Safety
/// `capacity` is writable, or null.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtHeuristicsCacheGetCapacity(capacity: *mut usize) -> c_int {
    if capacity.is_null() {
        return Status::INVALID_VALUE.0;
    }
    // SAFETY: the caller's promise.
    unsafe { capacity.write(0) };
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cublasLtDisableCpuInstructionsSetMask(_mask: c_uint) -> c_uint {
    0
}

macro_rules! logger {
    ($($name:ident)*) => { $(
        // There is no log: these take what they get.
        // SAFETY: as above; any argument is fine, for it is not looked at.
        #[unsafe(no_mangle)]
        extern "C" fn $name(_argument: *const c_void) -> c_int {
            0
        }
    )* };
}

logger! {
    cublasLtLoggerSetCallback cublasLtLoggerSetFile cublasLtLoggerOpenFile cublasLtLoggerSetLevel
    cublasLtLoggerSetMask cublasLtLoggerForceDisable
}
