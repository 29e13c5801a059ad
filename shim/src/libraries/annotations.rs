//! The program's own annotations (`include/streamsan.h`): where checking stops and starts, what its
//! parts are called, which blocks its pools hand out; NVTX's ranges too.
//!
//! Owns these exports and the injection into NVTX version 3. NVTX's header-only library loads what
//! `NVTX_INJECTION64_PATH` names (the launcher names us, unless the variable is set already) and
//! offers it a table of its functions to replace. Only push and pop of ranges, the texts that are
//! registered for them, and the names of streams are taken, and only once CUDA is in use: a program
//! without CUDA is left alone. Nothing is forwarded: without an injection these functions do
//! nothing but count, and the depth that they answer is counted here as well. NVTX's memory
//! annotations are in [`super::nvtx_memory`].

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::Mutex;

use trace::codec::Text;
use trace::{FreeKind, Op, StreamId};

use crate::log::call_names::{POOL, PROGRAM};
use crate::observe::{Cx, Phase, observe};
use crate::runtime::lifecycle;

/// Longest name of a range that is kept, in bytes.
const MAX_NAME: usize = 200;

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
    // SAFETY: as the caller promises.
    unsafe { push(name) };
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
    say(&Op::Save { reason: Text(&reason[..reason.len().min(MAX_NAME)]) });
}

/// The stream of a block that is tied to none: `STREAMSAN_ANY_STREAM`.
const ANY_STREAM: usize = usize::MAX;

fn stream_of(cx: &mut Cx<'_>, stream: usize) -> StreamId {
    const LEGACY: usize = 1;
    match if stream == 0 { LEGACY } else { stream } {
        ANY_STREAM => StreamId::NONE,
        LEGACY if cx.current_context() == cuda_sys::CUcontext::NULL => StreamId::NONE,
        stream => cx.stream(cuda_sys::CUstream(stream as *mut _)),
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
            cx.define(&Op::MemoryName { ptr, name: Text(b""), heap: Text(&pool[..pool.len().min(MAX_NAME)]) });
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

fn say(op: &Op<'_>) {
    observe(PROGRAM, 0, Phase::Before, |cx| {
        cx.without_stack().log(op);
    });
}

/// # Safety
/// `name` is null or a C string.
unsafe fn push(name: *const c_char) {
    if name.is_null() {
        return say(&Op::RangePush { name: Text(b"") });
    }
    // SAFETY: not null, so a C string.
    push_text(unsafe { CStr::from_ptr(name) }.to_bytes());
}

fn push_text(name: &[u8]) {
    say(&Op::RangePush { name: Text(&name[..name.len().min(MAX_NAME)]) });
}

/// NVTX's attributes of an event, as far as they are needed here (version 2 and 3 agree in this).
#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_char,
}

const MESSAGE_ASCII: i32 = 1;
const MESSAGE_WIDE: i32 = 2;
const MESSAGE_REGISTERED: i32 = 3;

/// Texts that were registered. Their addresses are NVTX's handles, and they stay for good.
static REGISTERED: Mutex<BTreeSet<&'static CStr>> = Mutex::new(BTreeSet::new());

/// The handle of a text: the same for the same text, unless two threads register at once.
fn registered(text: CString) -> *mut c_void {
    let mut all = REGISTERED.try_lock().ok();
    let known = all.as_ref().and_then(|all| all.get(text.as_c_str()).copied());
    let kept = known.unwrap_or_else(|| {
        let new: &'static CStr = Box::leak(text.into_boxed_c_str());
        if let Some(all) = &mut all {
            all.insert(new);
        }
        new
    });
    kept.as_ptr().cast_mut().cast()
}

thread_local! {
    static DEPTH: Cell<c_int> = const { Cell::new(0) };
}

fn deeper() -> c_int {
    DEPTH.try_with(|depth| depth.replace(depth.get() + 1)).unwrap_or(0)
}

fn up() -> c_int {
    let pop = |depth: &Cell<c_int>| {
        let now = depth.get() - 1;
        depth.set(now.max(0));
        now
    };
    DEPTH.try_with(pop).unwrap_or(0)
}

/// # Safety
/// Called by NVTX with a C string.
unsafe extern "C" fn range_push(name: *const c_char) -> c_int {
    if lifecycle::is_running() {
        // SAFETY: as the caller promises.
        unsafe { push(name) };
    }
    deeper()
}

/// # Safety
/// Called by NVTX with a wide C string, or null.
unsafe extern "C" fn range_push_wide(name: *const u32) -> c_int {
    if lifecycle::is_running() {
        // SAFETY: as the caller promises.
        push_text(unsafe { narrow(name) }.as_bytes());
    }
    deeper()
}

/// # Safety
/// Called by NVTX with attributes.
unsafe extern "C" fn range_push_ex(attributes: *const Attributes) -> c_int {
    if lifecycle::is_running() && !attributes.is_null() {
        // SAFETY: NVTX passes valid attributes.
        let (kind, message) = unsafe { ((*attributes).message_type, (*attributes).message) };
        // SAFETY: of these types, it is a C string, a wide one, or a handle that we gave out, which
        // is a C string; null where there was no injection yet.
        unsafe {
            match kind {
                MESSAGE_ASCII | MESSAGE_REGISTERED => push(message),
                MESSAGE_WIDE => push_text(narrow(message.cast()).as_bytes()),
                _ => push(std::ptr::null()),
            }
        }
    }
    deeper()
}

/// # Safety
/// Called by NVTX with a C string, or null.
unsafe extern "C" fn register_string(_domain: *mut c_void, text: *const c_char) -> *mut c_void {
    // SAFETY: as the caller promises, where it is not null.
    if text.is_null() { std::ptr::null_mut() } else { registered(unsafe { CStr::from_ptr(text) }.to_owned()) }
}

/// # Safety
/// Called by NVTX with a wide C string, or null.
unsafe extern "C" fn register_string_wide(_domain: *mut c_void, text: *const u32) -> *mut c_void {
    if text.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: as the caller promises.
    let text = unsafe { narrow(text) };
    // A text that ended with a zero holds none.
    CString::new(text).map_or(std::ptr::null_mut(), registered)
}

extern "C" fn range_pop() -> c_int {
    if lifecycle::is_running() {
        say(&Op::RangePop {});
    }
    up()
}

/// # Safety
/// As [`range_push_ex`].
unsafe extern "C" fn domain_range_push_ex(_domain: *mut c_void, attributes: *const Attributes) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { range_push_ex(attributes) }
}

extern "C" fn domain_range_pop(_domain: *mut c_void) -> c_int {
    range_pop()
}

type Slots = *mut *mut *const c_void;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    functions: Option<unsafe extern "C" fn(module: c_int, table: *mut Slots, size: *mut c_uint) -> c_int>,
}

/// The program gives a stream a name.
fn name_stream(stream: usize, name: &[u8]) {
    if !name.is_empty() && lifecycle::is_running() {
        observe(PROGRAM, 0, Phase::Before, |cx| {
            let stream = stream_of(cx, stream);
            if !stream.is_none() {
                cx.without_stack().log(&Op::StreamName { stream, name: Text(&name[..name.len().min(MAX_NAME)]) });
            }
        });
    }
}

/// A name for a stream, from the program itself.
///
/// # Safety
/// `name` is null or a C string; `stream` is a stream, or null for the default one.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_name_stream(stream: usize, name: *const c_char) {
    if !name.is_null() {
        // SAFETY: not null, so a C string.
        name_stream(stream, unsafe { CStr::from_ptr(name) }.to_bytes());
    }
}

/// # Safety
/// Called by NVTX with a stream and a wide C string, or null.
unsafe extern "C" fn name_stream_wide(stream: usize, name: *const u32) {
    if name.is_null() {
        return;
    }
    // SAFETY: not null, so a wide C string.
    name_stream(stream, unsafe { narrow(name) }.as_bytes());
}

/// The first [`MAX_NAME`] characters of a wide C string; nothing of null.
///
/// # Safety
/// `text` is null or a wide C string (`wchar_t` has 32 bits on Linux).
unsafe fn narrow(text: *const u32) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: it ends with a zero; reading stops there.
    let wide = (0..MAX_NAME).map(|at| unsafe { *text.add(at) }).take_while(|c| *c != 0);
    wide.map(|c| char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Called by NVTX when a program uses it for the first time. Answers 1: it is initialised.
///
/// # Safety
/// Called by NVTX only, with its function that answers export tables.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn InitializeInjectionNvtx2(tables: Option<unsafe extern "C" fn(c_uint) -> *const c_void>) -> c_int {
    const CALLBACKS: c_uint = 1;
    const CORE: c_int = 1;
    const CUDA: c_int = 2;
    const CUDART: c_int = 4;
    const CORE2: c_int = 5;
    let Some(tables) = tables else { return 0 };
    // SAFETY: NVTX answers a table with static life, or null.
    let callbacks = unsafe { tables(CALLBACKS).cast::<Callbacks>().as_ref() };
    let Some(functions) = callbacks.filter(|c| c.size >= size_of::<Callbacks>()).and_then(|c| c.functions) else {
        return 0;
    };
    let replace = |module: c_int, rows: &[(usize, *const c_void)]| {
        let (mut table, mut size): (Slots, c_uint) = (std::ptr::null_mut(), 0);
        // SAFETY: both out-pointers are valid.
        if unsafe { functions(module, &raw mut table, &raw mut size) } == 0 || table.is_null() {
            return;
        }
        for (index, function) in rows.iter().filter(|(index, _)| *index < size as usize) {
            // SAFETY: the table has `size` places, each null or the place of a function pointer
            // that may be written now.
            unsafe {
                let slot = *table.add(*index);
                if !slot.is_null() {
                    *slot = *function;
                }
            }
        }
    };
    replace(
        CORE,
        &[
            (8, range_push_ex as *const c_void),
            (9, range_push as *const c_void),
            (10, range_push_wide as *const c_void),
            (11, range_pop as *const c_void),
        ],
    );
    // The functions that name streams, for the driver's handles and for the runtime's.
    let (narrow, wide) = (streamsan_name_stream as *const c_void, name_stream_wide as *const c_void);
    replace(CUDA, &[(5, narrow), (6, wide)]);
    replace(CUDART, &[(3, narrow), (4, wide)]);
    replace(
        CORE2,
        &[
            (4, domain_range_push_ex as *const c_void),
            (5, domain_range_pop as *const c_void),
            (10, register_string as *const c_void),
            (11, register_string_wide as *const c_void),
        ],
    );
    1
}
