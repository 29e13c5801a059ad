//! NVTX's ranges and names: its library of version 3, which is headers only, loads what
//! `NVTX_INJECTION64_PATH` names (the launcher names us, unless the variable is set already) and
//! offers it a table of its functions to replace.
//!
//! Owns the injection, the texts and domains that are registered, and the numbers of ranges. Only
//! ranges (push and pop, start and end), what they are called, and the names of streams are taken,
//! and only once CUDA is in use: a program without CUDA is left alone. Nothing is forwarded:
//! without an injection these functions do nothing but count, and the depth that they answer is
//! counted here as well. NVTX's extensions are in [`super::nvtx_extensions`].

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use trace::Op;

use super::annotations::{MAX_NAME, cut, name_stream, say, streamsan_name_stream};
use crate::runtime::lifecycle;

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

/// Names of domains. A handle is the number of its name here, from 1 on, so that one that is not
/// ours does no harm. They stay for good; further ones have no name.
static DOMAINS: [OnceLock<CString>; 256] = [const { OnceLock::new() }; 256];

/// The handle of a domain: the same for the same name.
fn domain(name: &CStr) -> *mut c_void {
    let place = DOMAINS.iter().position(|place| **place.get_or_init(|| name.to_owned()) == *name);
    std::ptr::without_provenance_mut(place.map_or(usize::MAX, |at| at + 1))
}

/// The name of a domain; empty of the default one, and of what is none.
pub(super) fn name_of_domain(domain: *mut c_void) -> &'static [u8] {
    let place = domain.addr().checked_sub(1).and_then(|at| DOMAINS.get(at));
    place.and_then(OnceLock::get).map_or(&[], |name| name.to_bytes())
}

/// The text of a C string; nothing of null.
///
/// # Safety
/// `text` is null or a C string, which stays as it is for as long as the answer is used.
unsafe fn text<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: not null, so a C string.
    if text.is_null() { &[] } else { unsafe { CStr::from_ptr(text) }.to_bytes() }
}

/// The name that attributes give.
///
/// # Safety
/// `attributes` is null, or NVTX's attributes.
unsafe fn name_in<'a>(attributes: *const Attributes) -> Cow<'a, [u8]> {
    if attributes.is_null() {
        return Cow::Borrowed(&[]);
    }
    // SAFETY: NVTX passes valid attributes.
    let (kind, message) = unsafe { ((*attributes).message_type, (*attributes).message) };
    // SAFETY: of these types, it is a C string, a wide one, or a handle that we gave out, which
    // is a C string; null where there was no injection yet.
    unsafe {
        match kind {
            MESSAGE_ASCII | MESSAGE_REGISTERED => Cow::Borrowed(text(message)),
            MESSAGE_WIDE => Cow::Owned(narrow(message.cast()).into_bytes()),
            _ => Cow::Borrowed(&[]),
        }
    }
}

pub(super) fn push(name: impl FnOnce() -> Cow<'static, [u8]>, domain: &[u8]) -> c_int {
    if lifecycle::is_running() {
        let name = name();
        let name = cut(&name);
        say(&if domain.is_empty() { Op::RangePush { name } } else { Op::DomainPush { name, domain: cut(domain) } });
    }
    deeper()
}

pub(super) fn pop(domain: &[u8]) -> c_int {
    if lifecycle::is_running() {
        say(&if domain.is_empty() { Op::RangePop {} } else { Op::DomainPop { domain: cut(domain) } });
    }
    up()
}

/// Begins a range of the process. The answer is its number, which no other range has.
pub(super) fn start(name: impl FnOnce() -> Cow<'static, [u8]>, domain: &[u8]) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let range = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    if lifecycle::is_running() {
        let name = name();
        say(&Op::RangeStart { range, name: cut(&name), domain: cut(domain) });
    }
    range
}

/// # Safety
/// Called by NVTX with a C string, or null.
unsafe extern "C" fn range_push(name: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    push(|| Cow::Borrowed(unsafe { text(name) }), &[])
}

/// # Safety
/// Called by NVTX with a wide C string, or null.
unsafe extern "C" fn range_push_wide(name: *const u32) -> c_int {
    // SAFETY: as the caller promises.
    push(|| Cow::Owned(unsafe { narrow(name) }.into_bytes()), &[])
}

/// # Safety
/// Called by NVTX with attributes.
unsafe extern "C" fn range_push_ex(attributes: *const Attributes) -> c_int {
    // SAFETY: as the caller promises.
    push(|| unsafe { name_in(attributes) }, &[])
}

/// # Safety
/// As [`range_push_ex`].
unsafe extern "C" fn domain_range_push_ex(domain: *mut c_void, attributes: *const Attributes) -> c_int {
    // SAFETY: as the caller promises.
    push(|| unsafe { name_in(attributes) }, name_of_domain(domain))
}

extern "C" fn range_pop() -> c_int {
    pop(&[])
}

extern "C" fn domain_range_pop(domain: *mut c_void) -> c_int {
    pop(name_of_domain(domain))
}

/// # Safety
/// As [`range_push`].
unsafe extern "C" fn range_start(name: *const c_char) -> u64 {
    // SAFETY: as the caller promises.
    start(|| Cow::Borrowed(unsafe { text(name) }), &[])
}

/// # Safety
/// As [`range_push_wide`].
unsafe extern "C" fn range_start_wide(name: *const u32) -> u64 {
    // SAFETY: as the caller promises.
    start(|| Cow::Owned(unsafe { narrow(name) }.into_bytes()), &[])
}

/// # Safety
/// As [`range_push_ex`].
unsafe extern "C" fn range_start_ex(attributes: *const Attributes) -> u64 {
    // SAFETY: as the caller promises.
    start(|| unsafe { name_in(attributes) }, &[])
}

/// # Safety
/// As [`range_push_ex`].
unsafe extern "C" fn domain_range_start_ex(domain: *mut c_void, attributes: *const Attributes) -> u64 {
    // SAFETY: as the caller promises.
    start(|| unsafe { name_in(attributes) }, name_of_domain(domain))
}

pub(super) extern "C" fn range_end(range: u64) {
    if lifecycle::is_running() {
        say(&Op::RangeEnd { range });
    }
}

extern "C" fn domain_range_end(_domain: *mut c_void, range: u64) {
    range_end(range);
}

/// # Safety
/// Called by NVTX with a C string, or null.
unsafe extern "C" fn domain_create(name: *const c_char) -> *mut c_void {
    // SAFETY: as the caller promises, where it is not null.
    if name.is_null() { std::ptr::null_mut() } else { domain(unsafe { CStr::from_ptr(name) }) }
}

/// # Safety
/// Called by NVTX with a wide C string, or null.
unsafe extern "C" fn domain_create_wide(name: *const u32) -> *mut c_void {
    // SAFETY: as the caller promises.
    let name = unsafe { narrow(name) };
    // A text that ended with a zero holds none.
    CString::new(name).map_or(std::ptr::null_mut(), |name| domain(&name))
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

type Slots = *mut *mut *const c_void;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    functions: Option<unsafe extern "C" fn(module: c_int, table: *mut Slots, size: *mut c_uint) -> c_int>,
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
            (4, range_start_ex as *const c_void),
            (5, range_start as *const c_void),
            (6, range_start_wide as *const c_void),
            (7, range_end as *const c_void),
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
            (2, domain_range_start_ex as *const c_void),
            (3, domain_range_end as *const c_void),
            (4, domain_range_push_ex as *const c_void),
            (5, domain_range_pop as *const c_void),
            (10, register_string as *const c_void),
            (11, register_string_wide as *const c_void),
            (12, domain_create as *const c_void),
            (13, domain_create_wide as *const c_void),
        ],
    );
    1
}
