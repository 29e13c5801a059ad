//! What the shim keeps for each host thread, in one place.
//!
//! Owns one thread-local with all the state that an op touches. An op asks the loader for one
//! address and finds the small fields on one cache line: in a framework's step the shim's lines are
//! cold at each call, and a cold line costs more than the instructions that use it. The modules
//! that use a field define what it means. Nothing here has a destructor, so the state is valid in
//! late exit handlers too.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;

use super::handle_cache::HandleCache;
use crate::arch;
use crate::stack::frames::Frames;

/// The state of one host thread.
#[repr(C, align(64))]
pub struct ThreadState {
    /// Whether it runs shim code: [`super::guard`].
    pub inside: Cell<bool>,
    /// Whether it is in a library call that is an op of its own: [`inside_library`].
    pub inside_library: Cell<bool>,
    /// Whether it is in a library's call whose CUDA calls are transport: [`inside_transport`].
    pub inside_transport: Cell<bool>,
    /// Its number, with the generation of the process; 0 before its first op.
    pub thread: Cell<u32>,
    /// Its kernel id: [`super::lock::tid`].
    pub tid: Cell<i32>,
    /// How many ops it has made: [`note_op`].
    pub ops: Cell<u64>,
    /// The object that its start acquires, until it has: [`take_start`].
    pub start: Cell<u64>,
    /// The table of the launch that it is making, a type of `crate::exact`.
    pub launching: Cell<*mut c_void>,
    /// What it has touched of the host's memory, a type of `crate::host::touches`; null: nothing.
    pub touches: Cell<*mut c_void>,
    /// The host function that it runs in stream order; 0: none.
    pub host_function: Cell<u32>,
    /// The legacy streams that it used last, by context.
    pub legacy: HandleCache<2>,
    /// The streams that it used last.
    pub streams: HandleCache<16>,
    /// The events that it used last.
    pub events: HandleCache<16>,
    /// The contexts that it used last.
    pub contexts: HandleCache<2>,
    /// Pages that it closes behind its next instruction: `crate::host::single_step`.
    pub stepping: [Cell<u64>; 4],
    /// It had blocked the signal of that.
    pub trap_blocked: Cell<bool>,
    /// Room for a stack: too large to be cleared for every call.
    pub frames: UnsafeCell<Frames>,
}

// Thread-local memory that the loader lays out at start, all zeros: its place is one load away.
// `thread_local!` would call the loader each time, which touches five lines of its own. A library
// that is preloaded is there at start; a program that opens this one later needs the loader's
// reserve.
std::arch::global_asm!(
    ".pushsection .tbss.streamsan_local,\"awT\",@nobits",
    ".p2align 6",
    ".globl streamsan_local",
    ".hidden streamsan_local",
    ".type streamsan_local,@object",
    ".size streamsan_local,{size}",
    "streamsan_local:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<ThreadState>(),
);

/// Works with the calling thread's state.
#[inline(always)]
pub fn with<R>(work: impl FnOnce(&ThreadState) -> R) -> R {
    let local = arch::local().cast::<ThreadState>();
    // SAFETY: as large and as aligned as a ThreadState; all its fields are valid as zeros; it lives
    // as long as its thread, which alone refers to it.
    work(unsafe { &*local })
}

/// The calling thread's buffer for a stack, to be emptied before it is used.
///
/// # Safety
/// The thread is inside shim code ([`super::guard::EntryGuard`]), which happens once at a time, and
/// keeps no other reference to its buffer.
pub unsafe fn frames<'a>() -> &'a mut Frames {
    with(|l| {
        // SAFETY: the caller's promise: there is no other reference to this thread's buffer. It has
        // no destructor, so it lives as long as the thread.
        unsafe { &mut *l.frames.get() }
    })
}

/// Whether this thread is in a library call that is an op of its own, so that launches made inside
/// it are part of that op.
#[inline]
pub fn inside_library() -> bool {
    with(|l| l.inside_library.get())
}

/// Marks this thread as in such a call, or out of it; answers what it was.
pub fn set_inside_library(inside: bool) -> bool {
    with(|l| l.inside_library.replace(inside))
}

/// Whether this thread is in a call of a library that moves bytes for the host (MPI): the CUDA
/// calls inside are its own business. They are no work of the program, and what they wait for is
/// no promise to it.
#[inline]
pub fn inside_transport() -> bool {
    with(|l| l.inside_transport.get())
}

/// Marks this thread as in such a call, or out of it.
pub fn set_inside_transport(inside: bool) {
    with(|l| l.inside_transport.set(inside));
}

/// The thread has made an op: its next release of a lock is worth an op too
/// ([`crate::libraries::host_threads`]).
#[inline]
pub fn note_op() {
    with(|l| l.ops.set(l.ops.get() + 1));
}

/// The object that the start of this thread acquires, once.
pub fn take_start() -> Option<u64> {
    with(|l| Some(l.start.replace(0)).filter(|object| *object != 0))
}
