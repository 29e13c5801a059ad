//! What the shim keeps for each host thread, in one place.
//!
//! Owns one thread-local with all that an op touches, so that an op asks the loader for one address and finds the small things on one cache
//! line: in a framework's step the shim's lines are cold whenever it is called, and each costs more than the instructions that use it. What
//! the fields mean is said by the modules that use them. Nothing here has a destructor: it is valid in late exit handlers too.

use std::cell::{Cell, UnsafeCell};

use trace::{EventId, StreamId};

use crate::exact::Table;
use crate::frames::Frames;
use crate::handles::Recent;

/// The state of one host thread.
#[repr(C, align(64))]
pub struct Local {
    /// Whether it runs shim code: [`crate::process::guard`].
    pub inside: Cell<bool>,
    /// Whether it is in a call of a library that is an op of its own: [`crate::observe::inside_library`].
    pub inside_library: Cell<bool>,
    /// Its number, with the generation of the process; 0 before its first op.
    pub thread: Cell<u32>,
    /// Its kernel id: [`crate::process::lock::tid`].
    pub tid: Cell<i32>,
    /// How often it did something of CUDA or learnt of it: [`crate::host_threads`].
    pub changes: Cell<u64>,
    /// The object that its start acquires, until it has.
    pub start: Cell<u64>,
    /// The table of the launch that it is making: [`crate::exact`].
    pub launching: Cell<*mut Table>,
    /// The streams that it used last.
    pub streams: Recent<StreamId>,
    /// The legacy streams that it used last, by context.
    pub legacy: Recent<StreamId>,
    /// The events that it used last.
    pub events: Recent<EventId>,
    /// Room for a stack: too large to be cleared for every call.
    pub frames: UnsafeCell<Frames>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            inside: Cell::new(false),
            inside_library: Cell::new(false),
            thread: Cell::new(0),
            tid: Cell::new(0),
            changes: Cell::new(0),
            start: Cell::new(0),
            launching: Cell::new(std::ptr::null_mut()),
            streams: Recent::new(),
            legacy: Recent::new(),
            events: Recent::new(),
            frames: UnsafeCell::new(Frames::new()),
        }
    };
}

/// Works with the calling thread's state.
#[inline(always)]
pub fn with<R>(work: impl FnOnce(&Local) -> R) -> R {
    LOCAL.with(work)
}
