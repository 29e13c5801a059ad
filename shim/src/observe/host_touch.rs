//! Touches of instrumented host code, as they become ops.
//!
//! Owns the way from a touch that goes on nowhere to a run with its stack. What a run is, and when
//! it ends, is decided in [`crate::host::touches::runs`].

use trace::HostFuncId;

use super::context::Cx;
use crate::host::touches::runs::Touched;
use crate::runtime::thread_state;

impl Cx<'_> {
    /// This thread touches memory that devices can reach, where none of its runs goes on.
    pub fn host_touch(&mut self, touched: &Touched) {
        let Some(core) = self.core() else { return };
        let thread = self.thread();
        self.capture(core);
        // Its next release of a lock passes this on.
        thread_state::note_op();
        let func = HostFuncId(thread_state::with(|l| l.host_function.get()));
        if let Some(mut shared) = core.lock() {
            shared.begin_run(touched, thread, self.captured_frames(), func);
        }
    }
}
