//! cuDNN's handles. XLA makes one for every device before it compiles anything, whether or not the
//! program has work for cuDNN.

use std::ffi::c_int;

use super::NULL_POINTER;

/// What the library keeps for a handle.
pub(super) struct DnnHandle {
    pub stream: usize,
}

// SAFETY: the library's name and signature.
#[unsafe(no_mangle)]
extern "C" fn cudnnCreate(to: *mut *mut DnnHandle) -> c_int {
    if to.is_null() {
        return NULL_POINTER;
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { to.write(Box::into_raw(Box::new(DnnHandle { stream: 0 }))) };
    0
}

/// # Safety
/// `handle` is null or came from [`cudnnCreate`], and is not used again.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnDestroy(handle: *mut DnnHandle) -> c_int {
    if handle.is_null() {
        return NULL_POINTER;
    }
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(handle) });
    0
}

/// # Safety
/// `handle` is null or came from [`cudnnCreate`].
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnSetStream(handle: *mut DnnHandle, stream: usize) -> c_int {
    // SAFETY: the caller's promise.
    let Some(handle) = (unsafe { handle.as_mut() }) else { return NULL_POINTER };
    handle.stream = stream;
    0
}

/// # Safety
/// `handle` is null or came from [`cudnnCreate`]; `to` is null or writable.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnGetStream(handle: *const DnnHandle, to: *mut usize) -> c_int {
    // SAFETY: the caller's promise.
    let (handle, to) = unsafe { (handle.as_ref(), to.as_mut()) };
    let (Some(handle), Some(to)) = (handle, to) else { return NULL_POINTER };
    *to = handle.stream;
    0
}

/// Libraries of cuDNN ask each other whether they are of one version.
macro_rules! of_one_version {
    ($($name:ident)*) => { $(
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> c_int {
            0
        }
    )* };
}

of_one_version! { cudnnAdvVersionCheck cudnnCnnVersionCheck cudnnGraphVersionCheck cudnnOpsVersionCheck }
