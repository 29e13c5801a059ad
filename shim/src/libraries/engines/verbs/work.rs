//! Work that is posted to queues of ibverbs, and its completions.
//!
//! Owns our operations of opened devices. A post that is refused counts as work that began and
//! ended: until the call answers, nothing tells it from one that is taken.

use std::ffi::{c_int, c_uint};

use cuda_sys::FnId;
use trace::Region;

use super::layout::{self, Completion, ListEntry, OfContext, QueuePair, ReceiveRequest, SendRequest};
use super::state::{self, Named, State};
use super::{absent, ends};
use crate::libraries::engines::calls::{count_owed, is_observed, not_modelled};
use crate::libraries::engines::work_queue::Posted;
use crate::libraries::requests::{self, Access};
use crate::log::call_names::library_call;
use crate::runtime::lifecycle;

const SEND: FnId = library_call("ibv_post_send");
const RECEIVE: FnId = library_call("ibv_post_recv");
const RECEIVE_SHARED: FnId = library_call("ibv_post_srq_recv");
const POLL: FnId = library_call("ibv_poll_cq");
const UNSEEN_COMPLETIONS: &str = "ibverbs: work that completes in a queue of ibv_create_cq_ex";
const UNKNOWN_MEMORY: &str = "ibverbs: memory by a key whose place in the process is not known";

/// What a send's opcode (`enum ibv_wr_opcode`) is called, and whether it reads or writes the
/// memory that the request lists.
fn sending(opcode: c_uint) -> Option<(&'static str, bool, bool)> {
    Some(match opcode {
        0 | 1 => ("RDMA write", true, false),
        2 | 3 | 9 => ("send", true, false),
        4 => ("RDMA read", false, true),
        5 => ("compare and swap", false, true),
        6 => ("fetch and add", false, true),
        7 => ("local invalidation", false, false),
        8 => ("memory window", false, false),
        10 => ("segmented send", true, false),
        14 => ("flush", false, false),
        15 => ("atomic write", true, false),
        _ => return None,
    })
}

/// The entries of a request's list.
///
/// # Safety
/// There are so many.
unsafe fn pieces<'a>(first: *const ListEntry, count: c_int) -> &'a [ListEntry] {
    match usize::try_from(count) {
        // SAFETY: forwarded from the caller.
        Ok(count @ 1..) if !first.is_null() => unsafe { std::slice::from_raw_parts(first, count) },
        _ => &[],
    }
}

/// The bytes that a request lists, and whether some of them are not known.
fn bytes(state: &State, context: usize, pieces: &[ListEntry]) -> (Vec<Region>, bool) {
    let (mut regions, mut is_unknown) = (Vec::new(), false);
    for piece in pieces {
        match state.named(context, *piece) {
            Named::Bytes(region) => regions.push(region),
            Named::Nothing => {}
            Named::Unknown => is_unknown = true,
        }
    }
    (regions, is_unknown)
}

/// One request of a chain, as it is noted before it is posted.
struct Noted<T> {
    request: *mut T,
    posted: Posted,
    /// Bytes that are read while it is posted.
    copied: Vec<Access>,
}

/// A request begins that accesses these bytes.
fn begin(call: FnId, what: &str, number: u64, accesses: &[Access]) -> u32 {
    if accesses.is_empty() {
        return 0;
    }
    requests::begin_named(call, accesses, &format!("the {what} (work request {number})"))
}

/// Notes a chain of sends.
///
/// # Safety
/// A chain of the program's.
unsafe fn note_sends(context: usize, mut at: *mut SendRequest) -> Vec<Noted<SendRequest>> {
    let mut noted = Vec::new();
    while !at.is_null() {
        // SAFETY: forwarded from the caller.
        let (request, pieces) = unsafe { (&*at, pieces((*at).pieces, (*at).piece_count)) };
        let is_copied = request.flags & layout::INLINE != 0;
        let kind = sending(request.opcode);
        if kind.is_none() {
            not_modelled(SEND, "ibv_post_send: an opcode of the provider");
        }
        let (what, reads, writes) = kind.unwrap_or(("", false, false));
        let access = |region| Access { region, reads, writes, exact: true };
        let (mut begun, mut copied) = (0, Vec::new());
        if is_copied {
            let at = |piece: &ListEntry| Region::linear(piece.address, piece.length.into());
            copied = pieces.iter().filter(|piece| piece.length != 0).map(|piece| access(at(piece))).collect();
        } else if reads || writes {
            let (regions, is_unknown) = bytes(&state::lock(), context, pieces);
            if is_unknown {
                not_modelled(SEND, UNKNOWN_MEMORY);
            }
            let accesses: Vec<Access> = regions.into_iter().map(access).collect();
            begun = begin(SEND, what, request.number, &accesses);
        }
        let is_signalled = request.flags & layout::SIGNALLED != 0;
        let posted = Posted { number: request.number, is_signalled, request: begun };
        noted.push(Noted { request: at, posted, copied });
        at = request.next;
    }
    noted
}

/// Notes a chain of receives. How many of the bytes a message fills is not known.
///
/// # Safety
/// A chain of the program's.
unsafe fn note_receives(call: FnId, context: usize, mut at: *mut ReceiveRequest) -> Vec<Noted<ReceiveRequest>> {
    let mut noted = Vec::new();
    while !at.is_null() {
        // SAFETY: forwarded from the caller.
        let (request, pieces) = unsafe { (&*at, pieces((*at).pieces, (*at).piece_count)) };
        let (regions, is_unknown) = bytes(&state::lock(), context, pieces);
        if is_unknown {
            not_modelled(call, UNKNOWN_MEMORY);
        }
        let access = |region| Access { region, reads: false, writes: true, exact: false };
        let accesses: Vec<Access> = regions.into_iter().map(access).collect();
        let begun = begin(call, "receive", request.number, &accesses);
        let posted = Posted { number: request.number, is_signalled: true, request: begun };
        noted.push(Noted { request: at, posted, copied: Vec::new() });
        at = request.next;
    }
    noted
}

/// The entries that a failed call has refused: from the one that it answers on.
fn refused<T>(noted: &[Noted<T>], result: c_int, bad: *mut *mut T) -> Vec<Posted> {
    if result == 0 {
        return Vec::new();
    }
    // SAFETY: the call has filled it in.
    let bad = if bad.is_null() { std::ptr::null_mut() } else { unsafe { *bad } };
    let first = noted.iter().position(|one| std::ptr::eq(one.request, bad)).unwrap_or(0);
    noted[first..].iter().map(|one| one.posted).collect()
}

/// Our `post_send`.
pub(super) unsafe extern "C" fn post_send(
    pair: *mut QueuePair,
    first: *mut SendRequest,
    bad: *mut *mut SendRequest,
) -> c_int {
    type Real = unsafe extern "C" fn(*mut QueuePair, *mut SendRequest, *mut *mut SendRequest) -> c_int;
    // SAFETY: the program's queue pair.
    let (context, number, completions) =
        unsafe { ((*pair).context as usize, (*pair).number, (*pair).send_cq as usize) };
    let Some(operations) = state::operations(context) else { return absent() };
    // SAFETY: the provider's operation of this place has this signature.
    let real = unsafe { std::mem::transmute::<usize, Real>(operations.post_send) };
    // SAFETY: arguments are passed on as they came.
    let call = || unsafe { real(pair, first, bad) };
    if !is_observed() {
        return call();
    }
    if !state::lock().is_plain(completions) {
        not_modelled(SEND, UNSEEN_COMPLETIONS);
        return call();
    }
    // SAFETY: the program's chain.
    let noted = unsafe { note_sends(context, first) };
    // Another thread may poll the completion before the call returns.
    noted.iter().for_each(|one| state::lock().pair(context, number).sends.post(one.posted));
    for one in noted.iter().filter(|one| !one.copied.is_empty()) {
        requests::made(SEND, &one.copied);
    }
    let result = call();
    let refused = refused(&noted, result, bad);
    if !refused.is_empty() {
        state::lock().pair(context, number).sends.take_back(&refused);
        ends(SEND, &refused);
    }
    result
}

/// Our `post_recv`.
pub(super) unsafe extern "C" fn post_recv(
    pair: *mut QueuePair,
    first: *mut ReceiveRequest,
    bad: *mut *mut ReceiveRequest,
) -> c_int {
    type Real = unsafe extern "C" fn(*mut QueuePair, *mut ReceiveRequest, *mut *mut ReceiveRequest) -> c_int;
    // SAFETY: the program's queue pair.
    let (context, number, completions) =
        unsafe { ((*pair).context as usize, (*pair).number, (*pair).recv_cq as usize) };
    let Some(operations) = state::operations(context) else { return absent() };
    // SAFETY: the provider's operation of this place has this signature.
    let real = unsafe { std::mem::transmute::<usize, Real>(operations.post_recv) };
    // SAFETY: arguments are passed on as they came.
    let call = || unsafe { real(pair, first, bad) };
    if !is_observed() {
        return call();
    }
    if !state::lock().is_plain(completions) {
        not_modelled(RECEIVE, UNSEEN_COMPLETIONS);
        return call();
    }
    // SAFETY: the program's chain.
    let noted = unsafe { note_receives(RECEIVE, context, first) };
    noted.iter().for_each(|one| state::lock().pair(context, number).receives.post(one.posted));
    let result = call();
    let refused = refused(&noted, result, bad);
    if !refused.is_empty() {
        state::lock().pair(context, number).receives.take_back(&refused);
        ends(RECEIVE, &refused);
    }
    result
}

/// Our `post_srq_recv`.
pub(super) unsafe extern "C" fn post_srq_recv(
    queue: *mut OfContext,
    first: *mut ReceiveRequest,
    bad: *mut *mut ReceiveRequest,
) -> c_int {
    type Real = unsafe extern "C" fn(*mut OfContext, *mut ReceiveRequest, *mut *mut ReceiveRequest) -> c_int;
    // SAFETY: the program's queue.
    let context = unsafe { (*queue).context as usize };
    let Some(operations) = state::operations(context) else { return absent() };
    // SAFETY: the provider's operation of this place has this signature.
    let real = unsafe { std::mem::transmute::<usize, Real>(operations.post_srq_recv) };
    // SAFETY: arguments are passed on as they came.
    let call = || unsafe { real(queue, first, bad) };
    if !is_observed() {
        return call();
    }
    if state::lock().shared(context, queue as usize).is_none() {
        // Before a queue pair uses it, or its completions are read elsewhere.
        not_modelled(RECEIVE_SHARED, "ibv_post_srq_recv: no queue pair of ibv_create_qp is known to use the queue");
        return call();
    }
    // SAFETY: the program's chain.
    let noted = unsafe { note_receives(RECEIVE_SHARED, context, first) };
    if let Some(receives) = state::lock().shared(context, queue as usize) {
        noted.iter().for_each(|one| receives.post(one.posted));
    }
    let result = call();
    let refused = refused(&noted, result, bad);
    if let Some(receives) = state::lock().shared(context, queue as usize) {
        receives.take_back(&refused);
    }
    ends(RECEIVE_SHARED, &refused);
    result
}

/// Our `poll_cq`.
pub(super) unsafe extern "C" fn poll_cq(queue: *mut OfContext, most: c_int, completions: *mut Completion) -> c_int {
    type Real = unsafe extern "C" fn(*mut OfContext, c_int, *mut Completion) -> c_int;
    // SAFETY: the program's queue.
    let context = unsafe { (*queue).context as usize };
    let Some(operations) = state::operations(context) else { return -1 };
    // SAFETY: the provider's operation of this place has this signature.
    let real = unsafe { std::mem::transmute::<usize, Real>(operations.poll_cq) };
    count_owed();
    // SAFETY: arguments are passed on as they came.
    let found = unsafe { real(queue, most, completions) };
    if let Ok(count @ 1..) = usize::try_from(found)
        && lifecycle::is_running()
    {
        // SAFETY: the call has filled in so many.
        let completions = unsafe { std::slice::from_raw_parts(completions, count) };
        completions.iter().for_each(|one| completed(context, one));
    }
    found
}

/// The program has seen a completion.
fn completed(context: usize, one: &Completion) {
    let (pair, number) = (one.queue_pair, one.number);
    let is_received = one.opcode & layout::RECEIVED != 0;
    let mut over = Vec::new();
    // An error does not say which of the two queues it is of.
    let is_error = one.status != layout::SUCCESS;
    if is_error || !is_received {
        over.extend(state::lock().sent(context, pair, number));
    }
    if is_error || is_received {
        over.extend(state::lock().received(context, pair, number));
    }
    if !is_error && one.opcode == layout::RECEIVED_WITH_IMMEDIATE {
        not_modelled(POLL, "ibv_poll_cq: which bytes a peer wrote (IBV_WC_RECV_RDMA_WITH_IMM)");
    }
    ends(POLL, &over);
}
