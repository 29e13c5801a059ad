//! Host functions and callbacks in stream order.

use cuda_sys::*;

use crate::api::streams_events::streams::stream_of;
use crate::api::*;
use crate::objects::task::{HostFn, Task, enqueue};

/// What a stream callback gets.
struct Callback {
    call: unsafe extern "C" fn(CUstream, CUresult, *mut c_void),
    stream: CUstream,
    data: *mut c_void,
}

unsafe extern "C" fn call_back(data: *mut c_void) {
    // SAFETY: made from a box by `cuStreamAddCallback` and used once.
    let callback = unsafe { Box::from_raw(data.cast::<Callback>()) };
    // SAFETY: the program asked for exactly this call.
    unsafe { (callback.call)(callback.stream, CUresult::SUCCESS, callback.data) };
}

abi! {
    call fn [cuLaunchHostFunc legacy, cuLaunchHostFunc_ptsz per_thread](
        zero, stream: CUstream, callback: CUhostFn, user_data: *mut c_void
    ) {
        let host = HostFn { call: callback.ok_or(INVALID)?, data: user_data };
        enqueue(&stream_of(stream, zero)?, Task::Host(host)).map(|_| ())
    }
    call fn [cuLaunchHostFunc_v2 legacy, cuLaunchHostFunc_v2_ptsz per_thread](
        zero, stream: CUstream, callback: CUhostFn, user_data: *mut c_void, sync_mode: c_uint
    ) {
        let host = HostFn { call: callback.ok_or(INVALID)?, data: user_data };
        enqueue(&stream_of(stream, zero)?, Task::Host(host)).map(|_| ())
    }
    call fn [cuStreamAddCallback legacy, cuStreamAddCallback_ptsz per_thread](
        zero, stream: CUstream, callback: CUstreamCallback, user_data: *mut c_void, flags: c_uint
    ) {
        let target = stream_of(stream, zero)?;
        capture::refuse_wait(&target)?;
        if flags != 0 {
            return Err(INVALID);
        }
        let data = Box::into_raw(Box::new(Callback { call: callback.ok_or(INVALID)?, stream, data: user_data }));
        enqueue(&target, Task::Host(HostFn { call: call_back, data: data.cast() })).map(|_| ())
    }
}
