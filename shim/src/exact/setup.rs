//! Starts exact mode, and ends it with the program.
//!
//! Owns reading its options, loading NVIDIA's library and the patches, and subscribing to
//! callbacks. What happens in a callback is in [`super::callbacks`].

use std::collections::HashSet;
use std::ffi::{CStr, OsStr, OsString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ::options::{Id, Value, Word};

use super::callbacks::callback;
use super::demand::Demand;
use super::sanitizer_api::SanitizerApi;
use super::settled::SettledLaunches;
use super::simulated;
use super::state::{EXACT, Exact, PATIENCE, PENDING, fail, note, running};
use super::table_pool::TablePool;
use crate::log::start::core;
use crate::runtime::lock::Lock;
use crate::runtime::{options, stderr};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Before the first `cuInit`: starts exact mode if the options ask for it. When it can not, says so
/// once; the program runs on, checked without it.
pub fn prepare() {
    if ASKED.swap(true, Ordering::AcqRel) {
        return;
    }
    let text = options::text();
    let exact = match ::options::last(text, Id::Exact) {
        Some(Value::Word(word)) => word,
        _ => Word::Off,
    };
    // All kernels but those that the code decides; `all`: those too.
    let settles = exact == Word::On;
    let pattern: Option<&[u8]> = match exact {
        Word::Off => None,
        Word::On | Word::Named(b"all") => Some(b""),
        Word::Named(pattern) => Some(pattern),
    };
    let confirm = options::is_on(Id::Confirm);
    let share = match ::options::last(text, Id::ExactShare) {
        Some(Value::Number(percent)) => Some(percent),
        _ => None,
    };
    // What a kernel reads may be what another one has written: all of them are watched.
    let unwritten = options::is_on(Id::Initcheck);
    let inside: Option<&[u8]> = match ::options::last(text, Id::Inside) {
        _ if unwritten => Some(b""),
        Some(Value::Word(Word::On)) => Some(b""),
        Some(Value::Word(Word::Named(pattern))) => Some(pattern),
        _ => None,
    };
    if pattern.is_none() && !confirm && inside.is_none() {
        return;
    }
    let superfluous = options::is_on(Id::Hints);
    match simulated::start(simulated::Asked { pattern, settles, confirm, share, inside, unwritten, superfluous }) {
        Ok(true) => return,
        Ok(false) if inside.is_some() => {
            stderr::say(format_args!("kernels are not checked inside: that takes the simulated GPU (--sim)"));
            note("races inside kernels, without the simulated GPU", 1);
            if pattern.is_none() && !confirm {
                return;
            }
        }
        Ok(false) => {}
        Err(why) => return fail(format_args!("no exact mode: {why}")),
    }
    let path = |id: Id, otherwise: OsString| match ::options::last(text, id) {
        Some(Value::Text(path)) => OsStr::from_bytes(path).to_os_string(),
        _ => otherwise,
    };
    let library = path(Id::SanitizerLibrary, "libsanitizer-public.so".into());
    let patch = path(Id::ExactPatch, beside());
    if let Err(why) = start(&library, &patch, pattern, settles, confirm) {
        fail(format_args!("no exact mode: {why}"));
    }
}

fn start(library: &OsStr, patch: &OsStr, pattern: Option<&[u8]>, settles: bool, confirm: bool) -> Result<(), String> {
    let image =
        std::fs::read(patch).map_err(|e| format!("{}: {e} (scripts/patch makes it)", patch.to_string_lossy()))?;
    let api = SanitizerApi::load(library)?;
    let exact: &'static Exact = Box::leak(Box::new(Exact {
        api,
        image,
        pattern: pattern.map(<[u8]>::to_vec),
        settled: settles.then(SettledLaunches::default),
        demand: confirm.then(Demand::default),
        patched: Lock::new(Vec::new()),
        pool: Lock::new(TablePool::default()),
        stuck: AtomicBool::new(false),
        missed: AtomicU64::new(0),
        idle: Lock::new(HashSet::new()),
        refused: Lock::new(Vec::new()),
    }));
    let mut subscriber: *mut c_void = std::ptr::null_mut();
    let api = &exact.api;
    // SAFETY: the callback lives as long as the process.
    let answer = unsafe { (api.subscribe)(&raw mut subscriber, callback, std::ptr::null_mut()) };
    if answer != 0 {
        return Err(format!("sanitizerSubscribe answered {answer} (another tool is using the API?)"));
    }
    EXACT.store(std::ptr::from_ref(exact).cast_mut(), Ordering::Release);
    for domain in [
        super::sanitizer_api::domain::RESOURCE,
        super::sanitizer_api::domain::LAUNCH,
        super::sanitizer_api::domain::GRAPHS,
    ] {
        // SAFETY: the subscriber was just made.
        let answer = unsafe { (api.enable_domain)(1, subscriber, domain) };
        if answer != 0 {
            return Err(format!("sanitizerEnableDomain answered {answer}"));
        }
    }
    // While the driver still works: cudart takes its context down in a handler that was registered
    // earlier and so runs later.
    // SAFETY: the handler lives as long as the process.
    unsafe { libc::atexit(at_exit) };
    Ok(())
}

/// `exact.fatbin` beside this library.
fn beside() -> OsString {
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is one of our own code; the out-pointer is to a local.
    if unsafe { libc::dladdr(prepare as *const c_void, &raw mut info) } == 0 || info.dli_fname.is_null() {
        return "exact.fatbin".into();
    }
    // SAFETY: dladdr answers a C string.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes());
    std::path::Path::new(path).with_file_name("exact.fatbin").into_os_string()
}

/// The program ends: what is still running is waited for, a little.
extern "C" fn at_exit() {
    let (Some(exact), Some(core)) = (running(), core()) else { return };
    let begun = Instant::now();
    while PENDING.load(Ordering::Relaxed) != 0 && begun.elapsed() < PATIENCE {
        exact.drain(core);
        if PENDING.load(Ordering::Relaxed) != 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let missed = exact.missed.load(Ordering::Relaxed);
    if missed > 0 {
        note("exact ranges of launches that found no free table", missed);
    }
}
