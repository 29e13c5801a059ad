//! Host functions and stream callbacks: wrapped, so that the trace shows when they ran.
//!
//! Owns the wrappers that the driver calls in their place. XLA frees and hands out host buffers
//! from such functions, other programs fulfil promises; a thread that learns from one is ordered
//! after what the stream did before it. While a stream is being captured the program's own pair is
//! passed on, because a node runs many times and getters must answer the original.

use cuda_sys::*;
use trace::{HostFuncId, Op};

use crate::log::call_names::HOST_FUNCTION;
use crate::observe::{Cx, Phase, observe};
use crate::runtime::thread_state;

/// A host function on its way through a stream: what the program asked for.
pub struct Wrapped {
    call: Call,
    func: HostFuncId,
}

enum Call {
    Function(unsafe extern "C" fn(*mut c_void), *mut c_void),
    Callback(unsafe extern "C" fn(CUstream, CUresult, *mut c_void), *mut c_void),
}

impl Cx<'_> {
    /// The op is logged before the real call: the function may run before that returns.
    fn wrap(&mut self, stream: CUstream, address: usize, call: Call) -> Option<Box<Wrapped>> {
        let core = self.core()?;
        let stream = self.working_stream(stream)?;
        let func = HostFuncId(core.handles.fresh());
        self.log(&Op::HostFunc { stream, func, address: address as u64 });
        Some(Box::new(Wrapped { call, func }))
    }

    /// Wraps a host function; `None`: pass the program's own on.
    pub(crate) fn wrap_function(
        &mut self,
        stream: CUstream,
        function: CUhostFn,
        data: *mut c_void,
    ) -> Option<Box<Wrapped>> {
        let function = function?;
        self.wrap(stream, function as usize, Call::Function(function, data))
    }

    /// Wraps a stream callback; `None`: pass the program's own on.
    pub(crate) fn wrap_callback(
        &mut self,
        stream: CUstream,
        callback: CUstreamCallback,
        data: *mut c_void,
    ) -> Option<Box<Wrapped>> {
        let callback = callback?;
        self.wrap(stream, callback as usize, Call::Callback(callback, data))
    }
}

fn note(func: HostFuncId, done: bool) {
    thread_state::with(|thread| thread.host_function.set(0));
    observe(HOST_FUNCTION, 0, Phase::Before, |cx| {
        cx.without_stack().log(&Op::HostFuncRun { func, done });
    });
    // What the thread touches from here on, it touches in stream order.
    if !done {
        thread_state::with(|thread| thread.host_function.set(func.0));
    }
}

/// What the driver calls for a wrapped host function.
pub(crate) unsafe extern "C" fn run_function(data: *mut c_void) {
    // SAFETY: data is the box that was given to the driver, which calls once.
    let wrapped = unsafe { Box::from_raw(data.cast::<Wrapped>()) };
    note(wrapped.func, false);
    if let Call::Function(function, data) = wrapped.call {
        // SAFETY: the program's own function and data.
        unsafe { function(data) };
    }
    note(wrapped.func, true);
}

/// What the driver calls for a wrapped stream callback.
pub(crate) unsafe extern "C" fn run_callback(stream: CUstream, status: CUresult, data: *mut c_void) {
    // SAFETY: data is the box that was given to the driver, which calls once.
    let wrapped = unsafe { Box::from_raw(data.cast::<Wrapped>()) };
    note(wrapped.func, false);
    if let Call::Callback(callback, data) = wrapped.call {
        // SAFETY: the program's own function and data.
        unsafe { callback(stream, status, data) };
    }
    note(wrapped.func, true);
}
