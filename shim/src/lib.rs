//! The shim: a library that is preloaded into a CUDA program and turns its driver calls into ops.
//! The program needs no rebuild. Analysis happens in another process.
//!
//! Owns everything that runs inside the program under test. Does not decide what an op orders
//! (`order`) or which accesses race (`analyzer`).
//!
//! # The layers
//!
//! Each folder uses only those below it in this list.
//!
//! ```text
//! intercept           wrappers under the driver's names, hooks of dlsym and its like
//! libraries, ops      what a call means: one function for each row of the table
//! ids                 from CUDA's handles to the ids of the trace
//! observe             the fence around our own code, and the context of a call
//! exact               on request: which bytes a launch really touches
//! log                 the lock: a place in the order, then the ring
//! handles             the tables behind CUDA's handles
//! host                the host's own accesses to memory that copies still use
//! real                the driver's functions behind our exports
//! runtime             state of threads and process, lock, options, analyzer
//! stack               the calling thread's stack; knows nothing of the rest
//! arch                what depends on the processor, one file for each
//! ```
//!
//! # The way of one `cuLaunchKernel`
//!
//! 1. [`intercept`]: the program calls the wrapper in `exports`, by a direct link or because
//!    `symbol_hooks` answered its look-up. The wrapper finds the driver's function in a slot of
//!    `real::driver` and calls it first: the row says `after`. In exact mode NVIDIA's API calls
//!    back meanwhile, and `exact::callbacks` gives the launch a table.
//! 2. `observe::context`: [`observe()`](observe::observe) counts the call (`log::call_counts`),
//!    sees that the shim is not off (`runtime::lifecycle`) and that the call succeeded. It enters
//!    shim code (`runtime::guard`), takes the thread's buffer for a stack
//!    (`runtime::thread_state`), logs touches that `host::page_protection` has queued, and runs the
//!    op function with a `Cx`.
//! 3. `ops::launches`: the function of the row's name collects grid and block and takes the
//!    launch's table (`exact::launch`).
//! 4. [`ids`]: `streams` finds the stream's id, by way of `recall` in the thread's
//!    `runtime::handle_cache` or else in `handles::tables`; while anything is captured
//!    (`handles::captures`), `captures` asks whether the launch is a node instead. `kernels` finds
//!    the `handles::kernel`; a kernel's first launch asks the driver for name, image and
//!    parameters, and lists the image's variables (`variables`).
//! 5. `observe::context` again: `log_launch` finds the running `log::core` (`log::start`), numbers
//!    the thread, and takes its stack (`stack::frames`). `stack::walk_memo` recognises what
//!    `stack::python` and `stack::native` have walked before, and `stack::stack_ids` knows which
//!    stack of the trace that is.
//! 6. [`log`]: under the lock (`runtime::lock`), `shared` takes the id of the stack (`stacks`
//!    defines a new one), applies the op to the engine of `order` for its place, and has
//!    `ring_writer` reserve room in the ring of `trace`. The parameters are gathered straight into
//!    the record (`handles::kernel`).
//! 7. Back in `observe::context`, without the lock: watches that the op has ended are checked
//!    (`observe::host_watch`, `host::watches`).
//! 8. Back in `ops::launches`: in exact mode the table is handed in, and the analyzer's requests
//!    are read (`exact::launch`).
//! 9. Back in `observe::context`: finished tables are read (`exact::readback`), and leaving the
//!    guard restores `errno`.
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
//! # Where the data of the usual path lies
//!
//! Between two calls a framework pushes the shim's code and data out of the caches, so an op costs
//! what it touches, not what it computes: 129 lines of memory for a launch without stacks
//! (valgrind's lackey counts them), about one for six instructions. Code of the usual path lies
//! together in the section `streamsan_hot`, the statics it reads in `streamsan_state`, what a
//! thread keeps in [`runtime::thread_state`]; what happens once is moved out of line.
//! `scripts/bench` measures calls with cold caches.

#![warn(unreachable_pub)]
#![recursion_limit = "512"]
// `real!` states signatures next to arguments; what is passed is plain handles and pointers to
// locals.
#![allow(clippy::macro_metavars_in_unsafe)]

#[cfg(not(test))]
use std::ffi::{c_char, c_int};

mod arch;
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

/// Start-up: finds the real `dlsym`, and copies StreamSan's own variables, which the program may
/// remove before its first CUDA call. Nothing else. The loader passes the environment (glibc's
/// dl-init.c, as it does `main`).
#[cfg(not(test))]
unsafe extern "C" fn start(_count: c_int, _arguments: *const *const c_char, environment: *const *const c_char) {
    // SAFETY: the loader's list ends with a null.
    unsafe { signal_free::environment::remember(environment) };
    intercept::symbol_hooks::prepare();
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

/// The end of the process: see [`log::start::at_exit`].
#[cfg(not(test))]
extern "C" fn end() {
    log::start::at_exit();
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
