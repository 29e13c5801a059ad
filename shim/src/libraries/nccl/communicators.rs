//! Communicators of NCCL: which one a handle is, and what this process has enqueued on it last.
//!
//! Owns the exports of the functions that make and end communicators, and the table of those that
//! are there. Members of one communicator, in one process or in several, know it by the same
//! number: it is made of the id that all of them are given, or, of a split, of the parent's number,
//! the colour, and how often the parent was split before, which all of its members do together. A
//! communicator of another origin (`ncclCommShrink`, `ncclCommGrow`) has no number. A handle whose
//! communicator has ended may stand for another one: nothing follows what was enqueued before. But
//! `ncclCommFinalize` completes all operations before it answers, and `ncclCommDestroy` does that
//! for a communicator that was not finalized (NCCL's user guide, "Finalizing a communicator"): the
//! host has seen them end. `ncclCommAbort` promises no such thing.

use std::ffi::{c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuda_sys::FnId;
use trace::{ContextId, EventId, Op, StreamId, SyncId, SyncScope};

use super::{Comm, INTERNAL, SUCCESS};
use crate::log::call_names::library_call;
use crate::observe::{Phase, observe};
use crate::real::library::LibraryFunction;

/// `NCCL_SPLIT_NOCOLOR`: the member is in none of the new communicators.
const NO_COLOUR: c_int = -1;

/// `ncclInProgress`: a communicator that does not block has begun.
const IN_PROGRESS: c_int = 7;

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy, Hash)]
pub struct UniqueId([u8; 128]);

/// What is known of a communicator.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// Its handle, as a number.
    handle: usize,
    /// Its number; 0: it is not known.
    pub(super) number: u64,
    /// Collective operations of this member.
    pub(super) enqueued: u64,
    /// How often it was split.
    splits: u64,
    /// An event behind its last operation, and the stream of that.
    pub(super) last: Option<(EventId, StreamId)>,
}

static ALL: Mutex<Vec<Known>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<Known>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of the communicator with this handle is looked at, or changed.
pub(super) fn with<R>(handle: usize, look: impl FnOnce(&mut Known) -> R) -> R {
    let mut all = all();
    let at = all.iter().position(|known| known.handle == handle).unwrap_or_else(|| {
        all.push(Known { handle, number: 0, enqueued: 0, splits: 0, last: None });
        all.len() - 1
    });
    look(&mut all[at])
}

/// A number that says where a communicator comes from.
fn number(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish().max(1)
}

/// The handle that is there now.
fn handle_at(at: *const Comm) -> usize {
    // SAFETY: NCCL writes a handle there, and the program keeps one there.
    if at.is_null() { 0 } else { unsafe { at.read_unaligned() as usize } }
}

/// A new communicator, if its handle is there by now. Some versions write it when the group of the
/// call ends: such a communicator has no number.
fn made(at: *const Comm, before: usize, number: u64, result: c_int) {
    let handle = handle_at(at);
    if handle == 0 || handle == before || (result != SUCCESS && result != IN_PROGRESS) {
        return;
    }
    // If there is one, its end was not seen.
    if let Some(left) = take(handle) {
        ended(DESTROY, left, false);
    }
    with(handle, |known| known.number = number);
}

/// A communicator leaves the table.
fn take(handle: usize) -> Option<Known> {
    let mut all = all();
    let at = all.iter().position(|known| known.handle == handle)?;
    Some(all.swap_remove(at))
}

/// A communicator has ended. `waited`: behind all of its operations.
fn ended(id: FnId, known: Known, waited: bool) {
    let Some((event, _)) = known.last else { return };
    observe(id, 0, Phase::Before, |cx| {
        if let Some(core) = cx.core().filter(|_| waited) {
            let (sync, scope) = (SyncId(core.handles.fresh()), SyncScope::Event);
            let (stream, context) = (StreamId::NONE, ContextId::NONE);
            cx.log(&Op::SyncBegin { sync, scope, stream, event, context });
            cx.without_stack().log(&Op::SyncEnd { sync });
        }
        cx.log(&Op::EventDestroy { event });
    });
}

macro_rules! export {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) $body:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for NCCL's function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
            static REAL: LibraryFunction = LibraryFunction::new(c"libnccl.so.2", match std::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => c"",
            });
            let Some(real) = REAL.find($name as *const () as usize) else { return INTERNAL };
            type Real = unsafe extern "C" fn($($ty),*) -> c_int;
            // SAFETY: NCCL's function of this name has had this signature since it exists.
            let real: Real = unsafe { std::mem::transmute::<usize, Real>(real) };
            // SAFETY: arguments are passed on as they came.
            let real = move || unsafe { real($($arg),*) };
            let body: fn(_, $($ty),*) -> c_int = $body;
            body(&real, $($arg),*)
        }
    )*};
}

/// The call behind an export.
type Call<'a> = &'a dyn Fn() -> c_int;

/// Makes a communicator from an id.
fn join(real: Call<'_>, to: *mut Comm, ids: &[UniqueId]) -> c_int {
    let (number, before) = (number(ids), handle_at(to));
    let result = real();
    made(to, before, number, result);
    result
}

const DESTROY: FnId = library_call("ncclCommDestroy");
const ABORT: FnId = library_call("ncclCommAbort");
const FINALIZE: FnId = library_call("ncclCommFinalize");

/// Ends a communicator. Before the call it leaves the table: behind it another thread may be given
/// the same handle. `flushes`: a call that succeeds has waited for all of its operations. (One
/// whose communicator does not block is in progress, and the host asks NCCL when that is over.)
fn ends(id: FnId, real: Call<'_>, comm: Comm, flushes: bool) -> c_int {
    let known = take(comm as usize);
    let result = real();
    match (known, result) {
        (Some(known), SUCCESS) => ended(id, known, flushes),
        (Some(known), IN_PROGRESS) => ended(id, known, false),
        (Some(known), _) => all().push(known),
        (None, _) => {}
    }
    result
}

export! {
    /// `ncclCommInitRank`.
    ncclCommInitRank(to: *mut Comm, ranks: c_int, id: UniqueId, rank: c_int)
        |real: Call<'_>, to, _, id, _| join(real, to, &[id]);
    /// `ncclCommInitRankConfig`.
    ncclCommInitRankConfig(to: *mut Comm, ranks: c_int, id: UniqueId, rank: c_int, config: *mut c_void)
        |real: Call<'_>, to, _, id, _, _| join(real, to, &[id]);
    /// `ncclCommInitRankScalable`, since NCCL 2.23.
    ncclCommInitRankScalable(to: *mut Comm, ranks: c_int, rank: c_int, count: c_int, ids: *mut UniqueId, config: *mut c_void)
        |real: Call<'_>, to, _, _, count, ids, _| match usize::try_from(count) {
            // SAFETY: so many ids are there, as the caller says.
            Ok(count) if !ids.is_null() => join(real, to, unsafe { std::slice::from_raw_parts(ids, count) }),
            _ => real(),
        };
    /// `ncclCommInitAll`: all members are this process's.
    ncclCommInitAll(to: *mut Comm, count: c_int, devices: *const c_int)
        |real: Call<'_>, to, count, _| {
            static MADE: AtomicU64 = AtomicU64::new(0);
            let number = number((std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)));
            let result = real();
            for member in 0..usize::try_from(count).unwrap_or(0) {
                made(to.wrapping_add(member), 0, number, result);
            }
            result
        };
    /// `ncclCommSplit`, since NCCL 2.18.
    ncclCommSplit(comm: Comm, colour: c_int, key: c_int, to: *mut Comm, config: *mut c_void)
        |real: Call<'_>, comm, colour, _, to, _| {
            let (parent, nth) = with(comm as usize, |known| {
                known.splits += 1;
                (known.number, known.splits)
            });
            let before = handle_at(to);
            let result = real();
            if colour != NO_COLOUR && parent != 0 {
                made(to, before, number((parent, colour, nth)), result);
            }
            result
        };
    /// `ncclCommDestroy`.
    ncclCommDestroy(comm: Comm) |real: Call<'_>, comm| ends(DESTROY, real, comm, true);
    /// `ncclCommAbort`.
    ncclCommAbort(comm: Comm) |real: Call<'_>, comm| ends(ABORT, real, comm, false);
    /// `ncclCommFinalize`.
    ncclCommFinalize(comm: Comm) |real: Call<'_>, comm| ends(FINALIZE, real, comm, true);
}
