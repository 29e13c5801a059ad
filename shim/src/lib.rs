//! The shim: a library that is preloaded into CUDA programs nobody rebuilt, and turns their driver
//! calls into ops.
//!
//! The way of a call: [`intercept`] (doors, wrappers) -> [`observe`] (re-entrancy, errno, faults)
//! -> [`ops`] (what the call means) -> [`core`] (its place in the order, then the ring). Analysis
//! happens in another process.
//!
//! # Rules of this crate
//!
//! 1. Never change what the program sees: results, errno, pointers, the order of its calls.
//! 2. No lock is held across a real call, and none that another thread can hold for long.
//! 3. Entered again on the same thread (a signal handler inside a hook): call the real function and
//!    return.
//! 4. No thread-local has a destructor.
//! 5. A forked child starts anew when it uses CUDA; the parent's ring is not mapped there.
//! 6. When anything is wrong: switch off, say so once, let the program run on.
//! 7. Nothing is started, opened or read in a process that uses no CUDA.
//!
//! # Where what every op uses lies
//!
//! Between two calls a framework pushes the shim's code and data out of the caches, so an op costs
//! what it touches, not what it computes: 129 lines of memory for a launch without stacks
//! (valgrind's lackey counts them), about one for six instructions. Code of the usual path lies
//! together in the section `streamsan_hot`, the statics it reads in `streamsan_state`, what a
//! thread keeps in [`local`]; what happens once is moved out of line. `scripts/bench` measures
//! calls with cold caches.

#![recursion_limit = "512"]
// `real!` states signatures next to arguments; what is passed is plain handles and pointers to
// locals.
#![allow(clippy::macro_metavars_in_unsafe)]

pub mod exact;
pub mod handles;
pub mod host;
pub mod ids;
pub mod intercept;
pub mod libraries;
pub mod log;
pub mod observe;
mod ops;
pub mod real;
pub mod runtime;
pub mod stack;

/// Start-up: finds the real `dlsym`, nothing else.
#[cfg(not(test))]
#[ctor::ctor(unsafe)]
fn start() {
    intercept::symbol_hooks::prepare();
}

/// The end of the process: see [`log::start::at_exit`].
#[cfg(not(test))]
extern "C" fn end() {
    log::start::at_exit();
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
