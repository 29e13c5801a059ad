//! Host code that says itself what it touches: the library that stands in the place of
//! ThreadSanitizer's runtime, in programs that are compiled with `-fsanitize=thread` (gcc, clang,
//! `nvcc -Xcompiler`).
//!
//! Owns the functions that such code calls before each load and store and instead of each atomic
//! operation. A function asks one byte whether devices can reach what lies around its address. If
//! so, it moves on the run of its instruction, or tells the shim
//! (`shim/src/libraries/instrumented.rs`). Atomic operations are performed here. Nothing else is
//! kept: races among host threads are not looked for, and there is no shadow memory. Without the
//! shim in the process the functions only answer.
//!
//! The interface is the compilers', as their headers and documentation give it
//! (`sanitizer/tsan_interface.h`, `sanitizer/tsan_interface_atomic.h`); its parts are in
//! [`accesses`], [`atomics`], [`annotations`] and [`memory_functions`]. [`inlined`] is what code
//! knows that asks by itself. [`gate`] leads to the shim, [`modules`] knows which objects of the
//! process are instrumented, [`thread_sanitizer`] whether the real runtime is there too. None of
//! them knows this file.
//!
//! # Rules
//!
//! 1. Nothing here allocates or locks. A thread's runs are the shim's: only their ends are moved
//!    here.
//! 2. What has to be fast is written in machine code, and passes on to the shim by a jump: the
//!    stack then looks as if the program had called the shim.

#![warn(unreachable_pub)]

mod accesses;
mod annotations;
mod arch;
mod atomics;
mod gate;
mod inlined;
mod memory_functions;
mod modules;
mod thread_sanitizer;

use core::sync::atomic::Ordering;

use gate::{GATE, Gate, ORDER, TOUCH, global, say};

/// What the library and the shim have agreed on.
const VERSION: u32 = 4;

type Link = unsafe extern "C" fn(u32, *const Gate) -> bool;

/// Looks for the shim, and tells it that this library is here. The shim asks for this when it comes
/// later.
#[unsafe(no_mangle)]
pub extern "C" fn streamsan_host_announce() {
    let (touch, link) = (global(c"streamsan_host_touch"), global(c"streamsan_host_link"));
    if touch.is_null() || link.is_null() {
        return;
    }
    TOUCH.store(touch, Ordering::Release);
    inlined::make_room();
    // SAFETY: the shim's function of this name has this type in every version.
    let link: Link = unsafe { core::mem::transmute(link) };
    // SAFETY: the gate lives as long as the process: the library is never unloaded.
    if !unsafe { link(VERSION, &raw const GATE) } {
        return say("streamsan: libstreamsan_host.so does not fit libstreamsan.so (another version, or no room): \
             the host's own accesses are not watched\n");
    }
    ORDER.store(global(c"streamsan_host_order"), Ordering::Release);
    thread_sanitizer::warn();
}

#[ctor::ctor(unsafe)]
fn start() {
    memory_functions::find();
    // First: looking at an object moves bytes itself.
    modules::is_instrumented(start as *const () as u64);
    streamsan_host_announce();
}
