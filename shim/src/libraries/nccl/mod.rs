//! NCCL's collectives and point-to-point calls, each an op of the stream that it is given: what it
//! reads and writes on this device.
//!
//! Owns the exports of these functions; [`communicators`] has those that make and end
//! communicators. NCCL's kernels get their pointers through memory that no parameter shows, so
//! their launches say nothing; the calls themselves say everything. They reach us through the PLT
//! of any library that links to libnccl.so.2 (PyTorch does). Through `dlsym` and in statically
//! linked copies they do not, and then NCCL's launches count as indirect. Calls inside a group take
//! effect at its end, for each communicator as one operation on all of its streams. Operations of
//! one communicator follow each other, on whichever streams they are. Those of several do not, and
//! each member has to enqueue them in the same order: the log says in which it does, for
//! collectives. While such a call runs, launches of its thread are marked as its own. Captured
//! calls become nodes of a graph and are not modelled.

pub mod communicators;

use std::ffi::{c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use cuda_sys::{CUstream, FnId};
use trace::{EventId, EventMode, Op, Region, Space, StreamId};

use self::communicators::with;
use crate::ids::events::unnamed_event;
use crate::ids::streams::working_stream;
use crate::log::call_names::library_call;
use crate::observe::{Cx, Phase, observe};
use crate::real::library::LibraryFunction;
use crate::runtime::lock::tid;
use crate::runtime::thread_state::{inside_library, set_inside_library};

/// `ncclComm_t`.
type Comm = *mut c_void;

const SUCCESS: c_int = 0;
/// `ncclInternalError`: what a call answers when there is no NCCL behind us, which cannot be.
const INTERNAL: c_int = 3;

/// One call as it will be logged.
struct Call {
    thread: i32,
    id: FnId,
    /// Its communicator, as a number.
    comm: usize,
    stream: StreamId,
    reads: (usize, u64),
    writes: (usize, u64),
}

/// Calls inside groups that have not ended, of all threads.
static GROUPED: Mutex<Vec<Call>> = Mutex::new(Vec::new());

thread_local! {
    static DEPTH: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

fn depth() -> u32 {
    DEPTH.try_with(std::cell::Cell::get).unwrap_or(0)
}

/// Bytes of an element (`ncclDataType_t`); 0 for types of later versions.
fn width(datatype: c_int) -> u64 {
    const WIDTHS: [u64; 12] = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1];
    usize::try_from(datatype).ok().and_then(|at| WIDTHS.get(at).copied()).unwrap_or(0)
}

static RANK: LibraryFunction = LibraryFunction::new(c"libnccl.so.2", c"ncclCommUserRank");
static COUNT: LibraryFunction = LibraryFunction::new(c"libnccl.so.2", c"ncclCommCount");

fn ask(function: &LibraryFunction, comm: Comm) -> Option<c_int> {
    type Ask = unsafe extern "C" fn(Comm, *mut c_int) -> c_int;
    let mut answer = 0;
    let real = function.find(0)?;
    // SAFETY: the signature is NCCL's; the communicator is the program's and was just used with
    // success.
    let result = unsafe { std::mem::transmute::<usize, Ask>(real)(comm, &raw mut answer) };
    (result == SUCCESS).then_some(answer)
}

/// Ranks of a communicator; 0 when it does not say.
fn ranks(comm: Comm) -> u64 {
    ask(&COUNT, comm).and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}

/// Whether this process (or device) is the root of a call.
fn is_root(comm: Comm, root: c_int) -> bool {
    ask(&RANK, comm) == Some(root)
}

/// The calls of one communicator in a group that has ended. NCCL launches them as one operation: on
/// whichever streams they are, that begins after everything before it on any of them, and whatever
/// follows on any of them begins after it (NCCL's user guide, "CUDA Stream Semantics", "Mixing
/// Multiple Streams within the same ncclGroupStart/End() group"). Within it nothing orders them.
fn log_group(calls: &[Call], group: u64) {
    let mut streams: Vec<StreamId> = calls.iter().map(|call| call.stream).collect();
    streams.sort_unstable();
    streams.dedup();
    let (Some(first), Some(stream)) = (calls.first(), streams.first()) else { return };
    one_after_the_other(first.comm, *stream, || {
        join(&streams);
        calls.iter().for_each(|call| log_call(call, group));
        join(&streams);
    });
}

/// Logs an operation of a communicator on a stream behind the one before it: NCCL orders them by
/// events of its own, since they use the same buffers (NVIDIA/nccl, issue 574). Those events are
/// seen, but not what they are behind: a call is logged when it has succeeded.
fn one_after_the_other(comm: usize, stream: StreamId, log: impl FnOnce()) {
    let before = with(comm, |known| known.last);
    let (id, mode) = (GROUP_END, EventMode::Plain);
    if let Some((event, _)) = before.filter(|(_, other)| *other != stream) {
        observe(id, 0, Phase::Before, |cx| {
            cx.log(&Op::StreamWait { stream, event, mode });
        });
    }
    log();
    let mut behind = before.map_or(EventId::NONE, |(event, _)| event);
    observe(id, 0, Phase::Before, |cx| {
        if behind.is_none() {
            behind = unnamed_event(cx);
        }
        cx.log(&Op::EventRecord { event: behind, stream, mode });
    });
    with(comm, |known| known.last = Some((behind, stream)));
}

/// Each of these streams waits for what is in all of them now.
fn join(streams: &[StreamId]) {
    let [first, others @ ..] = streams else { return };
    if others.is_empty() {
        return;
    }
    observe(GROUP_END, 0, Phase::Before, |cx| {
        let event = unnamed_event(cx);
        let mode = EventMode::Plain;
        for &stream in others {
            cx.log(&Op::EventRecord { event, stream, mode });
            cx.log(&Op::StreamWait { stream: *first, event, mode });
        }
        cx.log(&Op::EventRecord { event, stream: *first, mode });
        for &stream in others {
            cx.log(&Op::StreamWait { stream, event, mode });
        }
        cx.log(&Op::EventDestroy { event });
    });
}

/// Says that this member has enqueued a collective operation. `stream`: none if that is all that is
/// known of it, for the operations of the other members are not told apart any longer then.
fn log_place(cx: &mut Cx<'_>, comm: usize, stream: StreamId, group: u64) {
    let Some((communicator, number)) = with(comm, |known| {
        let place = (known.number, known.enqueued);
        known.enqueued += 1;
        if stream.is_none() {
            known.number = 0;
        }
        (place.0 != 0).then_some(place)
    }) else {
        return;
    };
    let members = ask(&COUNT, comm as Comm).and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    cx.log(&Op::Collective { stream, communicator, members, number, group });
}

/// An operation was enqueued that is not followed, or may have been.
fn lose_place(id: FnId, comm: Comm) {
    if is_collective(id) {
        observe(id, 0, Phase::Before, |cx| log_place(cx, comm as usize, StreamId::NONE, 0));
    }
}

/// Whether all members of a communicator make such a call.
fn is_collective(id: FnId) -> bool {
    id != library_call("ncclSend") && id != library_call("ncclRecv")
}

fn log_call(call: &Call, group: u64) {
    observe(call.id, 0, Phase::Before, |cx| {
        if is_collective(call.id) {
            log_place(cx, call.comm, call.stream, group);
        }
        let region = |(start, len): (usize, u64)| Region::linear(start as u64, len);
        cx.log(&Op::Copy {
            stream: call.stream,
            dst: region(call.writes),
            src: region(call.reads),
            dst_space: Space::Device,
            src_space: Space::Device,
            asynchronous: true,
            batch: 0,
        });
    });
}

/// The stream that a call names, now: which default stream is meant depends on the current device,
/// which may be another one when the group of the call ends. `None`: the call is captured.
fn stream_of(id: FnId, stream: CUstream) -> Option<StreamId> {
    // The null stream is the legacy one: NCCL is built for that.
    let handle = if stream.0.is_null() { CUstream(std::ptr::without_provenance_mut(1)) } else { stream };
    let mut found = None;
    observe(id, 0, Phase::Before, |cx| found = working_stream(cx, handle));
    found
}

/// Runs the real call and logs it when it has succeeded.
fn around(
    id: FnId,
    comm: Comm,
    stream: CUstream,
    real: impl FnOnce() -> c_int,
    bytes: impl FnOnce() -> [(usize, u64); 2],
) -> c_int {
    if inside_library() {
        return real();
    }
    set_inside_library(true);
    let result = real();
    set_inside_library(false);
    let stream = if result == SUCCESS { stream_of(id, stream) } else { None };
    let Some(stream) = stream else {
        lose_place(id, comm);
        return result;
    };
    let [reads, writes] = bytes();
    let call = Call { thread: tid(), id, comm: comm as usize, stream, reads, writes };
    if depth() > 0 {
        GROUPED.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(call);
    } else {
        one_after_the_other(call.comm, call.stream, || log_call(&call, 0));
    }
    result
}

macro_rules! collectives {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*; $comm:ident, $stream:ident) => $bytes:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for NCCL's function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(clippy::too_many_arguments, reason = "NCCL's signature")]
        pub unsafe extern "C" fn $name($($arg: $ty,)* $comm: Comm, $stream: CUstream) -> c_int {
            static REAL: LibraryFunction = LibraryFunction::new(c"libnccl.so.2", match std::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => c"",
            });
            let Some(real) = REAL.find($name as *const () as usize) else { return INTERNAL };
            type Real = unsafe extern "C" fn($($ty,)* Comm, CUstream) -> c_int;
            // SAFETY: NCCL's function of this name has had this signature since it exists.
            let real: Real = unsafe { std::mem::transmute::<usize, Real>(real) };
            const ID: FnId = library_call(stringify!($name));
            // SAFETY: arguments are passed on as they came.
            around(ID, $comm, $stream, || unsafe { real($($arg,)* $comm, $stream) }, || $bytes)
        }
    )*};
}

const NONE: (usize, u64) = (0, 0);

/// `count` elements from a pointer.
fn some(at: *const c_void, count: usize, datatype: c_int) -> (usize, u64) {
    (at as usize, (count as u64).saturating_mul(width(datatype)))
}

/// So many from each rank.
fn all(at: *const c_void, count: usize, datatype: c_int, comm: Comm) -> (usize, u64) {
    let (at, len) = some(at, count, datatype);
    (at, len.saturating_mul(ranks(comm)))
}

fn only(yes: bool, bytes: (usize, u64)) -> (usize, u64) {
    if yes { bytes } else { NONE }
}

collectives! {
    /// `ncclAllReduce`.
    ncclAllReduce(send: *const c_void, recv: *mut c_void, count: usize, datatype: c_int, op: c_int; comm, stream)
        => [some(send, count, datatype), some(recv, count, datatype)];
    /// `ncclReduce`.
    ncclReduce(send: *const c_void, recv: *mut c_void, count: usize, datatype: c_int, op: c_int, root: c_int; comm, stream)
        => [some(send, count, datatype), only(is_root(comm, root), some(recv, count, datatype))];
    /// `ncclBcast`.
    ncclBcast(buffer: *mut c_void, count: usize, datatype: c_int, root: c_int; comm, stream) => {
        let root = is_root(comm, root);
        [only(root, some(buffer, count, datatype)), only(!root, some(buffer, count, datatype))]
    };
    /// `ncclBroadcast`. Out of place, the root writes its own copy too.
    ncclBroadcast(send: *const c_void, recv: *mut c_void, count: usize, datatype: c_int, root: c_int; comm, stream) => {
        let root = is_root(comm, root);
        let in_place = root && std::ptr::eq(send, recv);
        [only(root, some(send, count, datatype)), only(!in_place, some(recv, count, datatype))]
    };
    /// `ncclReduceScatter`.
    ncclReduceScatter(send: *const c_void, recv: *mut c_void, count: usize, datatype: c_int, op: c_int; comm, stream)
        => [all(send, count, datatype, comm), some(recv, count, datatype)];
    /// `ncclAllGather`.
    ncclAllGather(send: *const c_void, recv: *mut c_void, count: usize, datatype: c_int; comm, stream)
        => [some(send, count, datatype), all(recv, count, datatype, comm)];
    /// `ncclAlltoAll`, since NCCL 2.28.
    ncclAlltoAll(send: *const c_void, recv: *mut c_void, count: usize, datatype: c_int; comm, stream)
        => [all(send, count, datatype, comm), all(recv, count, datatype, comm)];
    /// `ncclGather`, since NCCL 2.28.
    ncclGather(send: *const c_void, recv: *mut c_void, count: usize, datatype: c_int, root: c_int; comm, stream)
        => [some(send, count, datatype), only(is_root(comm, root), all(recv, count, datatype, comm))];
    /// `ncclScatter`, since NCCL 2.28.
    ncclScatter(send: *const c_void, recv: *mut c_void, count: usize, datatype: c_int, root: c_int; comm, stream)
        => [only(is_root(comm, root), all(send, count, datatype, comm)), some(recv, count, datatype)];
    /// `ncclSend`.
    ncclSend(send: *const c_void, count: usize, datatype: c_int, peer: c_int; comm, stream)
        => [some(send, count, datatype), NONE];
    /// `ncclRecv`.
    ncclRecv(recv: *mut c_void, count: usize, datatype: c_int, peer: c_int; comm, stream)
        => [NONE, some(recv, count, datatype)];
}

type Group = unsafe extern "C" fn() -> c_int;
static START: LibraryFunction = LibraryFunction::new(c"libnccl.so.2", c"ncclGroupStart");
const GROUP_END: FnId = library_call("ncclGroupEnd");
static END: LibraryFunction = LibraryFunction::new(c"libnccl.so.2", c"ncclGroupEnd");

/// `ncclGroupStart`.
///
/// # Safety
/// As for NCCL's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclGroupStart() -> c_int {
    let Some(real) = START.find(ncclGroupStart as *const () as usize) else { return INTERNAL };
    // SAFETY: NCCL's function of this name has this signature.
    let result = unsafe { std::mem::transmute::<usize, Group>(real)() };
    if result == SUCCESS && !inside_library() {
        let _ = DEPTH.try_with(|depth| depth.set(depth.get() + 1));
    }
    result
}

/// `ncclGroupEnd`: what was called since the outermost start takes effect.
///
/// # Safety
/// As for NCCL's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclGroupEnd() -> c_int {
    let Some(real) = END.find(ncclGroupEnd as *const () as usize) else { return INTERNAL };
    let outer = set_inside_library(true);
    // SAFETY: NCCL's function of this name has this signature.
    let result = unsafe { std::mem::transmute::<usize, Group>(real)() };
    set_inside_library(outer);
    if outer || depth() == 0 {
        return result;
    }
    let _ = DEPTH.try_with(|depth| depth.set(depth.get() - 1));
    if depth() == 0 {
        let me = tid();
        let mut grouped = GROUPED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut mine: Vec<Call> = grouped.extract_if(.., |call| call.thread == me).collect();
        drop(grouped);
        // A group that failed has done nothing that could be relied on.
        if result == SUCCESS {
            mine.sort_by_key(|call| call.comm);
            static GROUPS: AtomicU64 = AtomicU64::new(1);
            let group = GROUPS.fetch_add(1, Ordering::Relaxed);
            mine.chunk_by(|one, next| one.comm == next.comm).for_each(|calls| log_group(calls, group));
        } else {
            mine.iter().for_each(|call| lose_place(call.id, call.comm as Comm));
        }
    }
    result
}
