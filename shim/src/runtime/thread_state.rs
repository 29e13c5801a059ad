//! What the shim keeps for each host thread, in one place.
//!
//! Owns one thread-local with all that an op touches, so that an op asks the loader for one address
//! and finds the small things on one cache line: in a framework's step the shim's lines are cold
//! whenever it is called, and each costs more than the instructions that use it. What the fields
//! mean is said by the modules that use them. Nothing here has a destructor: it is valid in late
//! exit handlers too.

use std::cell::{Cell, UnsafeCell};

use crate::exact::Table;
use crate::handles::tables::Recent;
use crate::stack::frames::Frames;

/// The state of one host thread.
#[repr(C, align(64))]
pub struct Local {
    /// Whether it runs shim code: [`crate::runtime::guard`].
    pub inside: Cell<bool>,
    /// Whether it is in a call of a library that is an op of its own:
    /// [`crate::observe::context::inside_library`].
    pub inside_library: Cell<bool>,
    /// Its number, with the generation of the process; 0 before its first op.
    pub thread: Cell<u32>,
    /// Its kernel id: [`crate::runtime::lock::tid`].
    pub tid: Cell<i32>,
    /// How often it did something of CUDA or learnt of it: [`crate::libraries::host_threads`].
    pub changes: Cell<u64>,
    /// The object that its start acquires, until it has.
    pub start: Cell<u64>,
    /// The table of the launch that it is making: [`crate::exact`].
    pub launching: Cell<*mut Table>,
    /// The legacy streams that it used last, by context.
    pub legacy: Recent<2>,
    /// The streams that it used last.
    pub streams: Recent<16>,
    /// The events that it used last.
    pub events: Recent<16>,
    /// Room for a stack: too large to be cleared for every call.
    pub frames: UnsafeCell<Frames>,
}

// Thread-local memory that the loader lays out at start, all zeros: its place is one load away.
// `thread_local!` would call the loader each time, which touches five lines of its own. A library
// that is preloaded is there at start; whoever opens this one later needs the loader's reserve.
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
    size = const size_of::<Local>(),
);

/// Works with the calling thread's state.
#[inline(always)]
pub fn with<R>(work: impl FnOnce(&Local) -> R) -> R {
    let local: *const Local;
    // SAFETY: the x86-64 TLS ABI: the offset from the thread's control block, whose first word is
    // its own address. Both words stay.
    unsafe {
        std::arch::asm!(
            "mov {local}, qword ptr [rip + streamsan_local@GOTTPOFF]",
            "add {local}, qword ptr fs:[0]",
            local = out(reg) local, options(pure, nomem, nostack),
        );
    }
    // SAFETY: as large and as aligned as a Local; all its fields are valid as zeros; it lives as
    // long as its thread, which alone refers to it.
    work(unsafe { &*local })
}
