//! Host functions and stream callbacks: wrapped, so that the trace shows when they ran.
//!
//! Owns the wrappers that the driver calls in their place. XLA frees and hands out host buffers
//! from such functions, other programs fulfil promises; a thread that learns from one is ordered
//! after what the stream did before it. While a stream is being captured the program's own pair is
//! passed on, because getters must answer the original: when the graph is instantiated, the node of
//! the *executable* graph, which no getter shows, gets a wrapper if touches of the host are looked
//! for.

use cuda_sys::*;
use trace::{HostFuncId, Op, StreamId};

use crate::host::touches;
use crate::ids::streams::working_stream;
use crate::log::call_names::HOST_FUNCTION;
use crate::observe::{Cx, Phase, observe};
use crate::real::driver::real;
use crate::runtime::thread_state;

/// A host function on its way through a stream: what the program asked for.
pub(crate) struct Wrapped {
    call: Call,
    func: HostFuncId,
}

enum Call {
    Function(unsafe extern "C" fn(*mut c_void), *mut c_void),
    Callback(unsafe extern "C" fn(CUstream, CUresult, *mut c_void), *mut c_void),
}

/// The op is logged before the real call: the function may run before that returns.
fn wrap_call(cx: &mut Cx<'_>, stream: CUstream, address: usize, call: Call) -> Option<Box<Wrapped>> {
    let core = cx.core()?;
    let stream = working_stream(cx, stream)?;
    let func = HostFuncId(core.handles.fresh());
    cx.log(&Op::HostFunc { stream, func, address: address as u64 });
    Some(Box::new(Wrapped { call, func }))
}

/// Wraps a host function; `None`: pass the program's own on.
pub(crate) fn wrap_function(
    cx: &mut Cx<'_>,
    stream: CUstream,
    function: CUhostFn,
    data: *mut c_void,
) -> Option<Box<Wrapped>> {
    let function = function?;
    wrap_call(cx, stream, function as usize, Call::Function(function, data))
}

/// Wraps a stream callback; `None`: pass the program's own on.
pub(crate) fn wrap_callback(
    cx: &mut Cx<'_>,
    stream: CUstream,
    callback: CUstreamCallback,
    data: *mut c_void,
) -> Option<Box<Wrapped>> {
    let callback = callback?;
    wrap_call(cx, stream, callback as usize, Call::Callback(callback, data))
}

/// A host function of an executable graph. It lives as long as the program: a graph may go on
/// running when it has been destroyed.
struct WrappedNode {
    func: HostFuncId,
    function: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
}

/// Whether it matters what host functions touch.
pub(crate) fn are_watched(cx: &Cx<'_>) -> bool {
    touches::is_linked() || cx.core().is_some_and(|core| core.options.host_accesses)
}

/// Has a node of an executable graph run by way of this shim. The op of the node: its address is 0
/// when that cannot be.
pub(crate) fn wrap_node(
    cx: &Cx<'_>,
    exec: CUgraphExec,
    node: CUgraphNode,
    function: CUhostFn,
    data: *mut c_void,
) -> Op<'static> {
    let func = HostFuncId(cx.core().map_or(0, |core| core.handles.fresh()));
    let unseen = Op::HostFunc { stream: StreamId::NONE, func, address: 0 };
    let Some(function) = function else { return unseen };
    let wrapped = Box::into_raw(Box::new(WrappedNode { func, function, data }));
    let params = CUDA_HOST_NODE_PARAMS { fn_: Some(run_node), userData: wrapped.cast() };
    let set = real!(cuGraphExecHostNodeSetParams(
        exec => CUgraphExec, node => CUgraphNode, &raw const params => *const CUDA_HOST_NODE_PARAMS
    ));
    if set != CUresult::SUCCESS {
        // SAFETY: it came from a box, and the driver has not taken it.
        drop(unsafe { Box::from_raw(wrapped) });
        return unseen;
    }
    Op::HostFunc { stream: StreamId::NONE, func, address: function as usize as u64 }
}

/// What the driver calls for a wrapped node.
unsafe extern "C" fn run_node(data: *mut c_void) {
    // SAFETY: data is a wrapper that was given to the driver, and is never freed.
    let wrapped = unsafe { &*data.cast::<WrappedNode>() };
    note(wrapped.func, false);
    // SAFETY: the program's own function and data.
    unsafe { (wrapped.function)(wrapped.data) };
    note(wrapped.func, true);
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
