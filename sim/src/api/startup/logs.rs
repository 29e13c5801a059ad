//! The driver's log of errors. The simulated driver writes none: what it refuses is said on
//! standard error. So registered functions are never called, and dumps are empty.

use std::sync::Arc;

use cuda_sys::*;

use crate::api::*;
use crate::handles::Handles;

/// A registered function, which nothing calls.
struct Callback;

static CALLBACKS: Handles<Callback> = Handles::new();

abi! {
    free fn [cuLogsRegisterCallback plain](
        _z, callback: CUlogsCallback, user_data: *mut c_void, handle: *mut CUlogsCallbackHandle
    ) {
        if callback.is_none() {
            return Err(INVALID);
        }
        put_if(handle, CUlogsCallbackHandle::from_bits(CALLBACKS.insert(Arc::new(Callback))));
        Ok(())
    }
    free fn [cuLogsUnregisterCallback plain](_z, handle: CUlogsCallbackHandle) {
        CALLBACKS.remove(handle.bits()).map(|_| ())
    }
    free fn [cuLogsCurrent plain](_z, iterator: *mut CUlogIterator, flags: c_uint) {
        if flags != 0 {
            return Err(INVALID);
        }
        put(iterator, 0)
    }
    free fn [cuLogsDumpToFile plain](_z, iterator: *mut CUlogIterator, path: *const c_char, flags: c_uint) {
        let path = text(path)?;
        if flags != 0 {
            return Err(INVALID);
        }
        std::fs::File::create(path).map(|_| ()).map_err(|_| INVALID)
    }
    free fn [cuLogsDumpToMemory plain](
        _z, iterator: *mut CUlogIterator, buffer: *mut c_char, size: *mut usize, flags: c_uint
    ) {
        if flags != 0 {
            return Err(INVALID);
        }
        put_text(buffer, get(size)?, "")?;
        put(size, 0)
    }
}
