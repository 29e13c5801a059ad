//! Our exports of UCX's functions.
//!
//! Owns what each call does to the table of operations (`super::pending`), and the names.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_sys::FnId;

use super::parameters::{self, CallbackKind, Handler, Parameters};
use super::pending::{self, Operation, Scope};
use crate::libraries::engines::calls::{
    count_owed, inside, is_observed, is_of_others, is_own, not_modelled, real, real_functions,
};
use crate::libraries::requests::{self, Access};
use crate::log::call_names::library_call;

real_functions! {
    c"libucp.so.0":
    ucp_init_version,
    ucp_worker_create,
    ucp_worker_destroy,
    ucp_worker_progress,
    ucp_worker_set_am_recv_handler,
    ucp_ep_create,
    ucp_ep_close_nbx,
    ucp_ep_flush_nbx,
    ucp_worker_flush_nbx,
    ucp_ep_flush,
    ucp_worker_flush,
    ucp_mem_map,
    ucp_mem_unmap,
    ucp_tag_send_nbx,
    ucp_tag_send_sync_nbx,
    ucp_tag_recv_nbx,
    ucp_tag_msg_recv_nbx,
    ucp_stream_send_nbx,
    ucp_stream_recv_nbx,
    ucp_am_send_nbx,
    ucp_am_recv_data_nbx,
    ucp_put_nbx,
    ucp_get_nbx,
    ucp_atomic_op_nbx,
    ucp_request_check_status,
    ucp_request_cancel,
    ucp_request_free,
    ucp_tag_recv_request_test,
    ucp_stream_recv_request_test,
    ucp_tag_send_nb,
    ucp_tag_send_sync_nb,
    ucp_tag_recv_nb,
    ucp_tag_msg_recv_nb,
    ucp_tag_send_nbr,
    ucp_tag_recv_nbr,
    ucp_stream_send_nb,
    ucp_stream_recv_nb,
    ucp_am_send_nb,
    ucp_put_nb,
    ucp_get_nb,
    ucp_put_nbi,
    ucp_get_nbi,
    ucp_atomic_post,
    ucp_atomic_fetch_nb,
    ucp_ep_flush_nb,
    ucp_worker_flush_nb,
    ucp_ep_close_nb,
    ucp_worker_set_am_handler,
}

/// `ucp_ep_h`, `ucp_worker_h`: handles are numbers here.
type Handle = usize;

/// `UCS_OK`, `UCS_INPROGRESS`.
const OK: c_int = 0;
const IN_PROGRESS: c_int = 1;
/// `UCS_ERR_UNSUPPORTED`: the answer of a function that cannot be reached, which cannot be.
const ABSENT: c_int = -22;

const PROGRESS: FnId = library_call("ucp_worker_progress");
const CHECK: FnId = library_call("ucp_request_check_status");
const FLUSH: FnId = library_call("ucp_ep_flush_nbx");
const OTHER: FnId = library_call("UCX");

/// All of UCX is left alone.
static IS_LEFT_ALONE: AtomicBool = AtomicBool::new(false);

/// Whether a call is the program's own. Before CUDA is in use, too: callbacks and devices of then
/// may be used later.
fn is_seen() -> bool {
    !IS_LEFT_ALONE.load(Ordering::Relaxed) && is_own()
}

/// Runs UCX's own work, unless it is left alone.
fn within<T>(run: impl FnOnce() -> T) -> T {
    if is_seen() { inside(run) } else { run() }
}

fn ends(call: FnId, over: Vec<u32>) {
    over.into_iter().for_each(|request| requests::end(call, request));
}

/// What an operation does with its buffer.
#[derive(Clone, Copy)]
struct Kind {
    call: FnId,
    name: &'static str,
    writes: bool,
    /// Whether all of the bytes are accessed.
    exact: bool,
    is_one_sided: bool,
    callback: CallbackKind,
}

const fn kind(call: &'static str, name: &'static str) -> Kind {
    let (writes, exact, is_one_sided) = (false, true, false);
    Kind { call: library_call(call), name, writes, exact, is_one_sided, callback: CallbackKind::Sent }
}

/// What a call answers: null, an error, or a pointer to a request.
fn is_pointer(answer: usize) -> bool {
    /// `UCS_ERR_LAST`.
    const LAST_ERROR: usize = -100isize as usize;
    answer != 0 && answer < LAST_ERROR
}

/// An operation on a buffer.
///
/// # Safety
/// As for the function of UCX.
unsafe fn operate(
    kind: Kind,
    (endpoint, worker): (Handle, Handle),
    (buffer, count): (u64, usize),
    theirs: *const Parameters,
    call: impl FnOnce(*const Parameters) -> usize,
) -> usize {
    if !is_seen() {
        if is_observed() {
            not_modelled(kind.call, "UCX: operations of a program that calls ucp_tag_send_nb or its like");
        }
        return call(theirs);
    }
    // SAFETY: forwarded from the caller.
    let parameters = unsafe { parameters::read(theirs) };
    if parameters::is_beyond(&parameters) {
        leave_alone("UCX: ucp_request_param_t of a later version");
        return call(theirs);
    }
    // SAFETY: forwarded from the caller.
    let regions = unsafe { parameters.bytes(buffer, count) }.unwrap_or_else(|| {
        not_modelled(kind.call, "UCX: a datatype that is not contiguous and not a list (ucp_dt_create_generic)");
        Vec::new()
    });
    let Kind { writes, exact, .. } = kind;
    let mut accesses: Vec<Access> =
        regions.into_iter().map(|region| Access { region, reads: !writes, writes, exact }).collect();
    if let Some(reply) = parameters.reply_buffer().filter(|_| kind.is_one_sided) {
        let width = accesses.first().map_or(0, |access| access.region.width);
        let region = trace::Region::linear(reply, width);
        accesses.push(Access { region, reads: false, writes: true, exact: true });
        accesses.retain(|access| !access.region.is_empty());
    }
    let request =
        if accesses.is_empty() || !is_observed() { 0 } else { requests::begin_named(kind.call, &accesses, kind.name) };
    let operation = Operation { request, endpoint, worker, is_one_sided: kind.is_one_sided };
    let key = pending::lock().begin(operation);
    follow(kind.call, key, &parameters, kind.callback, theirs, call)
}

/// Makes a call whose operation is in the table.
fn follow(
    id: FnId,
    key: u64,
    parameters: &Parameters,
    callback: CallbackKind,
    theirs: *const Parameters,
    call: impl FnOnce(*const Parameters) -> usize,
) -> usize {
    let finished = move || {
        let over = pending::lock().end(key);
        ends(PROGRESS, over);
    };
    let replaced = parameters::replace(parameters, callback, Box::new(finished));
    let answer = inside(|| call(replaced.as_ref().map_or(theirs, |replaced| replaced.parameters())));
    if is_pointer(answer) {
        pending::lock().known_as(key, answer);
    } else {
        let over = pending::lock().end(key);
        ends(id, over);
        if let Some(replaced) = replaced {
            replaced.discard();
        }
    }
    answer
}

/// A flush, or the close of an endpoint.
///
/// # Safety
/// As for the function of UCX.
unsafe fn flush(scope: Scope, theirs: *const Parameters, call: impl FnOnce(*const Parameters) -> usize) -> usize {
    if !is_seen() {
        return call(theirs);
    }
    // SAFETY: forwarded from the caller.
    let parameters = unsafe { parameters::read(theirs) };
    if parameters::is_beyond(&parameters) {
        leave_alone("UCX: ucp_request_param_t of a later version");
        return call(theirs);
    }
    let key = pending::lock().begin_end(scope);
    follow(FLUSH, key, &parameters, CallbackKind::Sent, theirs, call)
}

/// Something that is not modelled may call the program back: UCX is left alone from here on.
fn leave_alone(what: &'static str) {
    not_modelled(OTHER, what);
    if !IS_LEFT_ALONE.swap(true, Ordering::Relaxed) {
        let over = pending::lock().end_all(Scope::All);
        ends(OTHER, over);
    }
}

/// The program has been told that a request is over.
fn seen_over(request: usize) {
    let over = pending::lock().end_known(request);
    ends(CHECK, over);
}

macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty, absent $absent:expr, |$real:ident| $body:expr;)+) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for UCX's function.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "UCX's signature")]
        unsafe extern "C" fn $name($($arg: $type),*) -> $result {
            type Real = unsafe extern "C" fn($($type),*) -> $result;
            let Some($real) = real!($name: Real) else { return $absent };
            if is_of_others() {
                // SAFETY: arguments are passed on as they came.
                return unsafe { $real($($arg),*) };
            }
            // SAFETY: arguments are passed on as they came.
            unsafe { $body }
        }
    )+

        /// Our function of a name and the real ones behind it.
        fn known(name: &[u8]) -> Option<(*mut c_void, &'static crate::real::scoped::ScopedFunction)> {
            [$((stringify!($name), $name as *mut c_void, &real::$name)),+]
                .into_iter()
                .find(|known| known.0.as_bytes() == name)
                .map(|known| (known.1, known.2))
        }
    };
}

/// Our function of a name, for a program that looked UCX's up by `dlsym` and is to get `found`.
pub(in crate::libraries::engines) fn wrapper(name: &[u8], found: *mut c_void) -> Option<*mut c_void> {
    let (ours, real) = known(name)?;
    (ours != found && real.note_looked_up(ours as usize, found as usize)).then_some(ours)
}

/// An error as a pointer to a request.
const ABSENT_POINTER: usize = ABSENT as isize as usize;

exports! {
    /// `ucp_init_version`: devices that UCX opens are its own.
    fn ucp_init_version(major: c_uint, minor: c_uint, params: usize, config: usize, context: usize) -> c_int,
        absent ABSENT, |real| within(|| real(major, minor, params, config, context));
    /// `ucp_worker_create`.
    fn ucp_worker_create(context: usize, params: usize, worker: usize) -> c_int,
        absent ABSENT, |real| within(|| real(context, params, worker));
    /// `ucp_worker_destroy`: all of its operations are over.
    fn ucp_worker_destroy(worker: Handle) -> (), absent Default::default(), |real| {
        within(|| real(worker));
        let over = pending::lock().end_all(Scope::Destroyed(worker));
        ends(OTHER, over);
    };
    /// `ucp_worker_progress`.
    fn ucp_worker_progress(worker: Handle) -> c_uint, absent 0, |real| {
        count_owed();
        within(|| real(worker))
    };
    /// `ucp_worker_set_am_recv_handler`.
    fn ucp_worker_set_am_recv_handler(worker: Handle, handler: *const Handler) -> c_int, absent ABSENT, |real| {
        let replaced = if is_seen() { parameters::replace_handler(handler) } else { None };
        real(worker, replaced.as_ref().map_or(handler, std::ptr::from_ref))
    };
    /// `ucp_ep_create`.
    fn ucp_ep_create(worker: Handle, params: usize, endpoint: *mut Handle) -> c_int, absent ABSENT, |real| {
        let result = within(|| real(worker, params, endpoint));
        if result == OK {
            pending::lock().made_endpoint(*endpoint, worker);
        }
        result
    };
    /// `ucp_ep_close_nbx`.
    fn ucp_ep_close_nbx(endpoint: Handle, params: *const Parameters) -> usize, absent ABSENT_POINTER,
        |real| flush(Scope::Closed(endpoint), params, |params| real(endpoint, params));
    /// `ucp_ep_flush_nbx`.
    fn ucp_ep_flush_nbx(endpoint: Handle, params: *const Parameters) -> usize, absent ABSENT_POINTER,
        |real| flush(Scope::Endpoint(endpoint), params, |params| real(endpoint, params));
    /// `ucp_worker_flush_nbx`.
    fn ucp_worker_flush_nbx(worker: Handle, params: *const Parameters) -> usize, absent ABSENT_POINTER,
        |real| flush(Scope::Worker(worker), params, |params| real(worker, params));
    /// `ucp_ep_flush`: waits.
    fn ucp_ep_flush(endpoint: Handle) -> c_int, absent ABSENT, |real| {
        let result = within(|| real(endpoint));
        let over = pending::lock().end_all(Scope::Endpoint(endpoint));
        ends(FLUSH, over);
        result
    };
    /// `ucp_worker_flush`: waits.
    fn ucp_worker_flush(worker: Handle) -> c_int, absent ABSENT, |real| {
        let result = within(|| real(worker));
        let over = pending::lock().end_all(Scope::Worker(worker));
        ends(FLUSH, over);
        result
    };
    /// `ucp_mem_map`.
    fn ucp_mem_map(context: usize, params: usize, memory: usize) -> c_int,
        absent ABSENT, |real| within(|| real(context, params, memory));
    /// `ucp_mem_unmap`.
    fn ucp_mem_unmap(context: usize, memory: usize) -> c_int,
        absent ABSENT, |real| within(|| real(context, memory));
    /// `ucp_tag_send_nbx`.
    fn ucp_tag_send_nbx(endpoint: Handle, buffer: u64, count: usize, tag: u64, params: *const Parameters) -> usize,
        absent ABSENT_POINTER, |real| {
            const KIND: Kind = kind("ucp_tag_send_nbx", "the UCX tag send");
            operate(KIND, (endpoint, 0), (buffer, count), params, |params| real(endpoint, buffer, count, tag, params))
        };
    /// `ucp_tag_send_sync_nbx`.
    fn ucp_tag_send_sync_nbx(endpoint: Handle, buffer: u64, count: usize, tag: u64, params: *const Parameters) -> usize,
        absent ABSENT_POINTER, |real| {
            const KIND: Kind = kind("ucp_tag_send_sync_nbx", "the UCX tag send");
            operate(KIND, (endpoint, 0), (buffer, count), params, |params| real(endpoint, buffer, count, tag, params))
        };
    /// `ucp_tag_recv_nbx`.
    fn ucp_tag_recv_nbx(
        worker: Handle, buffer: u64, count: usize, tag: u64, mask: u64, params: *const Parameters
    ) -> usize, absent ABSENT_POINTER, |real| {
        const KIND: Kind = Kind { writes: true, exact: false, callback: CallbackKind::TagReceived,
            ..kind("ucp_tag_recv_nbx", "the UCX tag receive") };
        operate(KIND, (0, worker), (buffer, count), params, |params| real(worker, buffer, count, tag, mask, params))
    };
    /// `ucp_tag_msg_recv_nbx`.
    fn ucp_tag_msg_recv_nbx(worker: Handle, buffer: u64, count: usize, message: usize, params: *const Parameters)
        -> usize, absent ABSENT_POINTER, |real| {
            const KIND: Kind = Kind { writes: true, exact: false, callback: CallbackKind::TagReceived,
                ..kind("ucp_tag_msg_recv_nbx", "the UCX tag receive") };
            operate(KIND, (0, worker), (buffer, count), params, |params| real(worker, buffer, count, message, params))
        };
    /// `ucp_stream_send_nbx`.
    fn ucp_stream_send_nbx(endpoint: Handle, buffer: u64, count: usize, params: *const Parameters) -> usize,
        absent ABSENT_POINTER, |real| {
            const KIND: Kind = kind("ucp_stream_send_nbx", "the UCX stream send");
            operate(KIND, (endpoint, 0), (buffer, count), params, |params| real(endpoint, buffer, count, params))
        };
    /// `ucp_stream_recv_nbx`.
    fn ucp_stream_recv_nbx(endpoint: Handle, buffer: u64, count: usize, length: usize, params: *const Parameters)
        -> usize, absent ABSENT_POINTER, |real| {
            const KIND: Kind = Kind { writes: true, exact: false, callback: CallbackKind::Received,
                ..kind("ucp_stream_recv_nbx", "the UCX stream receive") };
            let call = |params| real(endpoint, buffer, count, length, params);
            operate(KIND, (endpoint, 0), (buffer, count), params, call)
        };
    /// `ucp_am_send_nbx`.
    fn ucp_am_send_nbx(
        endpoint: Handle, id: c_uint, header: usize, header_length: usize, buffer: u64, count: usize,
        params: *const Parameters
    ) -> usize, absent ABSENT_POINTER, |real| {
        const KIND: Kind = kind("ucp_am_send_nbx", "the UCX active message");
        let call = |params| real(endpoint, id, header, header_length, buffer, count, params);
        operate(KIND, (endpoint, 0), (buffer, count), params, call)
    };
    /// `ucp_am_recv_data_nbx`.
    fn ucp_am_recv_data_nbx(worker: Handle, data: usize, buffer: u64, count: usize, params: *const Parameters)
        -> usize, absent ABSENT_POINTER, |real| {
            const KIND: Kind = Kind { writes: true, exact: false, callback: CallbackKind::Received,
                ..kind("ucp_am_recv_data_nbx", "the UCX active message's data") };
            operate(KIND, (0, worker), (buffer, count), params, |params| real(worker, data, buffer, count, params))
        };
    /// `ucp_put_nbx`.
    fn ucp_put_nbx(endpoint: Handle, buffer: u64, count: usize, remote: u64, key: usize, params: *const Parameters)
        -> usize, absent ABSENT_POINTER, |real| {
            const KIND: Kind = Kind { is_one_sided: true, ..kind("ucp_put_nbx", "the UCX put") };
            let call = |params| real(endpoint, buffer, count, remote, key, params);
            operate(KIND, (endpoint, 0), (buffer, count), params, call)
        };
    /// `ucp_get_nbx`.
    fn ucp_get_nbx(endpoint: Handle, buffer: u64, count: usize, remote: u64, key: usize, params: *const Parameters)
        -> usize, absent ABSENT_POINTER, |real| {
            const KIND: Kind = Kind { writes: true, is_one_sided: true, ..kind("ucp_get_nbx", "the UCX get") };
            let call = |params| real(endpoint, buffer, count, remote, key, params);
            operate(KIND, (endpoint, 0), (buffer, count), params, call)
        };
    /// `ucp_atomic_op_nbx`.
    fn ucp_atomic_op_nbx(
        endpoint: Handle, opcode: c_uint, buffer: u64, count: usize, remote: u64, key: usize,
        params: *const Parameters
    ) -> usize, absent ABSENT_POINTER, |real| {
        const KIND: Kind = Kind { is_one_sided: true, ..kind("ucp_atomic_op_nbx", "the UCX atomic operation") };
        let call = |params| real(endpoint, opcode, buffer, count, remote, key, params);
        operate(KIND, (endpoint, 0), (buffer, count), params, call)
    };
    /// `ucp_request_check_status`.
    fn ucp_request_check_status(request: usize) -> c_int, absent ABSENT, |real| {
        let status = real(request);
        if status != IN_PROGRESS {
            seen_over(request);
        }
        status
    };
    /// `ucp_tag_recv_request_test`.
    fn ucp_tag_recv_request_test(request: usize, info: usize) -> c_int, absent ABSENT, |real| {
        let status = real(request, info);
        if status != IN_PROGRESS {
            seen_over(request);
        }
        status
    };
    /// `ucp_stream_recv_request_test`.
    fn ucp_stream_recv_request_test(request: usize, length: usize) -> c_int, absent ABSENT, |real| {
        let status = real(request, length);
        if status != IN_PROGRESS {
            seen_over(request);
        }
        status
    };
    /// `ucp_request_cancel`: it is over afterwards, in one way or the other, once that is asked.
    fn ucp_request_cancel(worker: Handle, request: usize) -> (), absent Default::default(), |real| within(|| real(worker, request));
    /// `ucp_request_free`.
    fn ucp_request_free(request: usize) -> (), absent Default::default(), |real| {
        // Before: the pointer may be another operation's as soon as it is free.
        let over = pending::lock().give_back(request);
        ends(OTHER, over);
        within(|| real(request));
    };
}

/// Functions that are left alone. All arguments are integers or pointers, at most eight, so what
/// the program passed is passed on whatever the signature is.
macro_rules! older {
    ($($name:ident: $do:expr),+ $(,)?) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for UCX's function.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "any signature of UCX's")]
        unsafe extern "C" fn $name(
            a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize, h: usize,
        ) -> usize {
            type Real = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize, usize) -> usize;
            let Some(real) = real!($name: Real) else { return ABSENT_POINTER };
            if is_of_others() {
                // SAFETY: arguments are passed on as they came.
                return unsafe { real(a, b, c, d, e, f, g, h) };
            }
            if is_own() {
                ($do)(concat!("UCX: ", stringify!($name)));
            }
            // SAFETY: arguments are passed on as they came.
            within(|| unsafe { real(a, b, c, d, e, f, g, h) })
        }
    )+};
}

fn count(what: &'static str) {
    not_modelled(OTHER, what);
}

older! {
    ucp_tag_send_nb: leave_alone,
    ucp_tag_send_sync_nb: leave_alone,
    ucp_tag_recv_nb: leave_alone,
    ucp_tag_msg_recv_nb: leave_alone,
    ucp_tag_send_nbr: count,
    ucp_tag_recv_nbr: count,
    ucp_stream_send_nb: leave_alone,
    ucp_stream_recv_nb: leave_alone,
    ucp_am_send_nb: leave_alone,
    ucp_put_nb: leave_alone,
    ucp_get_nb: leave_alone,
    ucp_put_nbi: count,
    ucp_get_nbi: count,
    ucp_atomic_post: count,
    ucp_atomic_fetch_nb: leave_alone,
    ucp_ep_flush_nb: leave_alone,
    ucp_worker_flush_nb: leave_alone,
    ucp_ep_close_nb: leave_alone,
    ucp_worker_set_am_handler: leave_alone,
}
