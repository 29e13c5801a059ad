//! Touches of instrumented host code, as they become ops.
//!
//! Owns the way from a touch that goes on nowhere to a run with its stack. What a run is, and when
//! it ends, is decided in [`crate::host::touches::runs`].

use trace::HostFuncId;

use super::context::Cx;
use crate::host::touches::runs::Touched;
use crate::runtime::thread_state;

/// This thread touches memory that devices can reach, where none of its runs goes on.
pub fn host_touch(cx: &mut Cx<'_>, touched: &Touched) {
    let Some(core) = cx.core() else { return };
    let thread = cx.thread();
    cx.capture(core);
    // Its next release of a lock passes this on.
    thread_state::note_op();
    let func = HostFuncId(thread_state::with(|l| l.host_function.get()));
    if let Some(mut shared) = core.lock() {
        shared.begin_run(touched, thread, cx.captured_frames(), func);
    }
}
