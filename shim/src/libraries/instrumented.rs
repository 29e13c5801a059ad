//! Instrumented host code, as the library beside this one reports it (`libstreamsan_host.so`, crate
//! `shim-instrumented`).
//!
//! Owns the exports that the two have agreed on. The library asks only for addresses on pages of
//! [`crate::host::touches::pages`], and only while its gate is open. What is worth an op is decided
//! in [`crate::host::touches`].

use crate::host::touches::runs::{self, Touched};
use crate::host::touches::{self, Gate};
use crate::libraries::host_threads::streamsan_host_edge;
use crate::log::call_names::HOST_ACCESS;
use crate::observe::host_touch::host_touch;
use crate::observe::{Phase, observe};
use crate::runtime::lifecycle;

/// What the library and the shim have agreed on.
const VERSION: u32 = 4;

/// The library announces itself, with the place where it looks for the pages. Answers whether both
/// speak the same version.
///
/// # Safety
/// `gate` is valid for the life of the process.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn streamsan_host_link(version: u32, gate: *mut Gate) -> bool {
    // SAFETY: as the caller promises.
    version == VERSION && unsafe { touches::link(gate) }
}

/// An instruction at `pc` touches an address on a page that devices can reach, and the latest run
/// of it does not go on there. `what`: how many bytes and how, see [`Touched::what`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn streamsan_host_touch(address: u64, what: u64, pc: u64) {
    let touched = Touched { address, what, pc };
    if !runs::goes_on(&touched) {
        begin(&touched);
    }
}

/// A host thread acquires or releases an object, by an atomic operation or an annotation.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn streamsan_host_order(object: u64, acquire: bool) {
    if touches::has_thread_order() {
        streamsan_host_edge(object, i32::from(acquire));
    }
}

#[cold]
#[inline(never)]
fn begin(touched: &Touched) {
    if lifecycle::is_running() && touches::is_open() {
        observe(HOST_ACCESS, 0, Phase::Before, |cx| host_touch(cx, touched));
    }
}
