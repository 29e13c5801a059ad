//! The program's own annotations (`include/streamsan.h`): where checking stops and starts, what its
//! parts are called, which blocks its pools hand out, the names of its streams.
//!
//! Owns these exports, and what they say to the log. NVTX's ranges and names say the same through
//! [`super::nvtx`]; its memory annotations are in [`super::nvtx_memory`].

use std::ffi::{CStr, c_char};

use trace::codec::Text;
use trace::{FreeKind, Op, StreamId};

use crate::ids::contexts::current_context;
use crate::ids::streams::stream_id;
use crate::log::call_names::{POOL, PROGRAM};
use crate::observe::{Cx, Phase, observe};
use crate::runtime::lifecycle;

/// Longest name that is kept, in bytes.
pub(super) const MAX_NAME: usize = 200;

/// As much of a name as is kept.
pub(super) fn cut(name: &[u8]) -> Text<'_> {
    Text(&name[..name.len().min(MAX_NAME)])
}

/// Checking goes on.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_start() {
    say(&Op::Checking { on: true });
}

/// What follows is not checked.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_stop() {
    say(&Op::Checking { on: false });
}

/// A part of the program begins, on this thread.
///
/// # Safety
/// `name` is null or a C string.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_push(name: *const c_char) {
    // SAFETY: not null, so a C string.
    let name = if name.is_null() { &[][..] } else { unsafe { CStr::from_ptr(name) }.to_bytes() };
    say(&Op::RangePush { name: cut(name) });
}

/// It ends.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_pop() {
    say(&Op::RangePop {});
}

/// What was recorded last is to be kept. `reason`: a word or two, or null.
///
/// # Safety
/// `reason` is null or a C string.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_save(reason: *const c_char) {
    if !lifecycle::is_running() {
        return;
    }
    // SAFETY: as the caller promises.
    let reason = if reason.is_null() { &[][..] } else { unsafe { CStr::from_ptr(reason) }.to_bytes() };
    say(&Op::Save { reason: cut(reason) });
}

/// The stream of a block that is tied to none: `STREAMSAN_ANY_STREAM`.
const ANY_STREAM: usize = usize::MAX;

fn stream_of(cx: &mut Cx<'_>, stream: usize) -> StreamId {
    const LEGACY: usize = 1;
    match if stream == 0 { LEGACY } else { stream } {
        ANY_STREAM => StreamId::NONE,
        LEGACY if current_context() == cuda_sys::CUcontext::NULL => StreamId::NONE,
        stream => stream_id(cx, cuda_sys::CUstream(stream as *mut _)),
    }
}

/// A pool of the program hands out a block, which may be used on this stream at once. `pool`: its
/// name, or null.
///
/// # Safety
/// `pool` is null or a C string; `stream` is a stream, null for the default one, or `ANY_STREAM`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_allocated(pool: *const c_char, ptr: u64, size: usize, stream: usize) {
    if ptr == 0 || size == 0 || !lifecycle::is_running() {
        return;
    }
    // SAFETY: as the caller promises.
    let pool = if pool.is_null() { &[][..] } else { unsafe { CStr::from_ptr(pool) }.to_bytes() };
    observe(POOL, 0, Phase::Before, |cx| {
        let stream = stream_of(cx, stream);
        cx.with_python_stack().log_block(ptr, size as u64, stream);
        if !pool.is_empty() {
            cx.define(&Op::MemoryName { ptr, name: Text(b""), heap: cut(pool) });
        }
    });
}

/// The pool takes a block back, and may hand it out again to this stream at once. With
/// `ANY_STREAM`: to the one it was handed out to.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_freed(ptr: u64, stream: usize) {
    if ptr != 0 && lifecycle::is_running() {
        observe(POOL, 0, Phase::Before, |cx| {
            let stream = stream_of(cx, stream);
            cx.without_stack().log(&Op::Free { ptr, kind: FreeKind::Block, stream });
        });
    }
}

/// Logs what the program says of itself.
pub(super) fn say(op: &Op<'_>) {
    observe(PROGRAM, 0, Phase::Before, |cx| {
        cx.without_stack().log(op);
    });
}

/// The program gives a stream a name.
pub(super) fn name_stream(stream: usize, name: &[u8]) {
    if !name.is_empty() && lifecycle::is_running() {
        observe(PROGRAM, 0, Phase::Before, |cx| {
            let stream = stream_of(cx, stream);
            if !stream.is_none() {
                cx.without_stack().log(&Op::StreamName { stream, name: cut(name) });
            }
        });
    }
}

/// A name for a stream, from the program itself.
///
/// # Safety
/// `name` is null or a C string; `stream` is a stream, or null for the default one.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn streamsan_name_stream(stream: usize, name: *const c_char) {
    if !name.is_null() {
        // SAFETY: not null, so a C string.
        name_stream(stream, unsafe { CStr::from_ptr(name) }.to_bytes());
    }
}
