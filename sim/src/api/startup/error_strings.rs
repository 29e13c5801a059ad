//! Names and descriptions of statuses.

use std::ffi::CStr;

use cuda_sys::*;

use crate::api::*;

/// The C name, as a C string that lives for ever.
fn name(error: CUresult) -> Option<&'static CStr> {
    use std::collections::HashMap;
    use std::sync::{Mutex, OnceLock};
    static NAMES: OnceLock<Mutex<HashMap<u32, &'static CStr>>> = OnceLock::new();
    let text = error.name()?;
    let mut names = NAMES.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    Some(names.entry(error.0).or_insert_with(|| {
        let text = std::ffi::CString::new(text).unwrap_or_default();
        Box::leak(text.into_boxed_c_str())
    }))
}

/// A short description of a status in our own words.
fn describe(error: CUresult) -> Option<&'static CStr> {
    Some(match error {
        CUresult::SUCCESS => c"no error",
        CUresult::ERROR_INVALID_VALUE => c"invalid argument",
        CUresult::ERROR_OUT_OF_MEMORY => c"out of memory",
        CUresult::ERROR_NOT_INITIALIZED => c"initialization error",
        CUresult::ERROR_DEINITIALIZED => c"driver shutting down",
        CUresult::ERROR_NO_DEVICE => c"no CUDA-capable device is detected",
        CUresult::ERROR_INVALID_DEVICE => c"invalid device ordinal",
        CUresult::ERROR_INVALID_IMAGE => c"device kernel image is invalid",
        CUresult::ERROR_INVALID_CONTEXT => c"invalid device context",
        CUresult::ERROR_NO_BINARY_FOR_GPU => c"no kernel image is available for execution on the device",
        CUresult::ERROR_INVALID_PTX => c"a PTX JIT compilation failed",
        CUresult::ERROR_FILE_NOT_FOUND => c"file not found",
        CUresult::ERROR_INVALID_HANDLE => c"invalid resource handle",
        CUresult::ERROR_ILLEGAL_STATE => c"the operation cannot be performed in the present state",
        CUresult::ERROR_NOT_FOUND => c"named symbol not found",
        CUresult::ERROR_NOT_READY => c"device not ready",
        CUresult::ERROR_ILLEGAL_ADDRESS => c"an illegal memory access was encountered",
        CUresult::ERROR_LAUNCH_OUT_OF_RESOURCES => c"too many resources requested for launch",
        CUresult::ERROR_MISALIGNED_ADDRESS => c"misaligned address",
        CUresult::ERROR_ASSERT => c"device-side assert triggered",
        CUresult::ERROR_LAUNCH_FAILED => c"unspecified launch failure",
        CUresult::ERROR_NOT_PERMITTED => c"operation not permitted",
        CUresult::ERROR_NOT_SUPPORTED => c"operation not supported",
        CUresult::ERROR_STREAM_CAPTURE_UNSUPPORTED => c"operation not permitted when stream is capturing",
        CUresult::ERROR_STREAM_CAPTURE_INVALIDATED => c"operation failed due to a previous error during capture",
        CUresult::ERROR_UNKNOWN => c"unknown error",
        other => name(other)?,
    })
}

abi! {
    free fn [cuGetErrorName plain](_z, error: CUresult, text: *mut *const c_char) {
        let found = name(error);
        put(text, found.map_or(std::ptr::null(), CStr::as_ptr))?;
        found.map(|_| ()).ok_or(INVALID)
    }
    free fn [cuGetErrorString plain](_z, error: CUresult, text: *mut *const c_char) {
        let found = describe(error);
        put(text, found.map_or(std::ptr::null(), CStr::as_ptr))?;
        found.map(|_| ()).ok_or(INVALID)
    }
}
