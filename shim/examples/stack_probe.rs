//! A library with nothing but stack capture, for the tests: programs in C and C++ call it as they
//! would call a hook. Every capture is made twice, with what is kept of earlier walks and without:
//! where the two differ, the process aborts.

#[path = "../src/arch/mod.rs"]
#[expect(dead_code, unused_imports, unused_macros, reason = "the probe uses a part of it")]
mod arch;
#[path = "../src/stack/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the probe uses a part of it")]
mod stack;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use stack::native::{self, MAX};
use stack::python::{self, RawPyFrame};
use stack::walk::WalkResult;
use stack::walk_memo::WalkMemo;

/// Walks that were known.
static KNOWN: AtomicUsize = AtomicUsize::new(0);

/// What the numbers of known walks stand for.
struct Walks<T>(Mutex<BTreeMap<u32, Vec<T>>>);

impl<T: Copy + PartialEq + std::fmt::Debug> Walks<T> {
    const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Holds a walk against the same one without anything kept.
    fn compare(&self, kept: WalkResult, kept_frames: &[T], frames: &[T]) {
        if kept.is_known() {
            KNOWN.fetch_add(1, Ordering::Relaxed);
        } else {
            assert_eq!(&kept_frames[..kept.len], frames, "a walk that was to be kept");
        }
        let Some(id) = kept.id else { return };
        assert_eq!(id == 0, frames.is_empty());
        // Never waited for: a signal handler may have interrupted this very place.
        let Ok(mut all) = self.0.try_lock() else { return };
        let first = all.entry(id).or_insert_with(|| frames.to_vec());
        assert_eq!(first, frames, "another walk has this number");
    }
}

/// Captures with what is kept and without, and gives the second.
fn capture(native: &mut [u64; MAX], python: &mut [RawPyFrame; 64]) -> (usize, usize) {
    static NATIVE: Walks<u64> = Walks::new();
    static PYTHON: Walks<RawPyFrame> = Walks::new();
    static CUT: Walks<u64> = Walks::new();
    let python_len = python::capture(python, None).len;
    let native_len = native::capture(native, false, None).len;
    let (mut kept_native, mut kept_python) = ([0; MAX], [RawPyFrame::default(); 64]);
    if let Some(memo) = WalkMemo::take() {
        let found = python::capture(&mut kept_python, Some(&mut memo.kept.python));
        PYTHON.compare(found, &kept_python, &python[..python_len]);
        let found = native::capture(&mut kept_native, false, Some(&mut memo.kept.native));
        NATIVE.compare(found, &kept_native, &native[..native_len]);
        // With other limits.
        let mut cut = [0; 28];
        let len = native::capture(&mut cut, true, None).len;
        let found = native::capture(&mut kept_native[..28], true, Some(&mut memo.kept.native));
        CUT.compare(found, &kept_native, &cut[..len]);
    }
    (native_len, python_len)
}

/// How many walks were known so far.
#[unsafe(no_mangle)]
pub extern "C" fn probe_known() -> usize {
    KNOWN.load(Ordering::Relaxed)
}

/// Fills `out` (room for `max`) with return addresses of the calling thread.
///
/// # Safety
/// `out` has room for `max` words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_capture(out: *mut u64, max: usize) -> usize {
    let (mut frames, mut python) = ([0; MAX], [RawPyFrame::default(); 64]);
    let len = capture(&mut frames, &mut python).0.min(max);
    // SAFETY: the caller's promise.
    unsafe { core::ptr::copy_nonoverlapping(frames.as_ptr(), out, len) };
    len
}

/// Captures `times` times, with what is kept of earlier walks or without, and gives the nanoseconds
/// of one capture; the number of frames goes to `frames`.
///
/// # Safety
/// `frames` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_bench(times: u32, keep: bool, frames: *mut usize) -> f64 {
    let mut buffer = [0; MAX];
    let len = native::capture(&mut buffer, false, None).len;
    let begin = std::time::Instant::now();
    for _ in 0..times {
        let mut memo = WalkMemo::take().filter(|_| keep);
        native::capture(std::hint::black_box(&mut buffer), false, memo.as_mut().map(|memo| &mut memo.kept.native));
    }
    let ns = begin.elapsed().as_nanos() as f64 / f64::from(times);
    // SAFETY: the caller's promise.
    unsafe { *frames = len };
    ns
}

/// What the shim does after `dlclose`.
#[unsafe(no_mangle)]
pub extern "C" fn probe_modules_changed() {
    native::note_modules_changed();
}

/// Calls `visit(start, end, bias, path, path length, build id, its length)` for modules since
/// `generation`.
#[unsafe(no_mangle)]
pub extern "C" fn probe_modules(
    generation: u32,
    visit: extern "C" fn(u64, u64, u64, *const c_char, usize, *const u8, usize),
) -> u32 {
    native::modules_since(generation, |m| {
        visit(m.start, m.end, m.bias, m.path.as_ptr().cast(), m.path.len(), m.build_id.as_ptr(), m.build_id.len());
    })
}

/// Looks for Python as the shim does. 1: found, 0: not found, below 0: refused.
#[unsafe(no_mangle)]
pub extern "C" fn probe_python() -> i32 {
    /// The real one: the probe hooks nothing.
    unsafe fn resolve(name: &CStr) -> *mut c_void {
        // SAFETY: a C string.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    }
    // SAFETY: `resolve` is dlsym.
    let found = unsafe { python::detect(resolve) };
    python::refusal().map_or(i32::from(found), |refusal| -(refusal as i32))
}

/// Like [`probe_bench`], for Python frames.
///
/// # Safety
/// `frames` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_python_bench(times: u32, keep: bool, frames: *mut usize) -> f64 {
    let mut buffer = [RawPyFrame::default(); 64];
    // The first captures are slow on purpose.
    let mut len = 0;
    for _ in 0..32 {
        len = python::capture(&mut buffer, None).len;
    }
    let begin = std::time::Instant::now();
    for _ in 0..times {
        let mut memo = WalkMemo::take().filter(|_| keep);
        python::capture(std::hint::black_box(&mut buffer), memo.as_mut().map(|memo| &mut memo.kept.python));
    }
    let ns = begin.elapsed().as_nanos() as f64 / f64::from(times);
    // SAFETY: the caller's promise.
    unsafe { *frames = len };
    ns
}

thread_local! {
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Prints a capture to standard output, one item a line, fields separated by tabs: `module START
/// END BIAS PATH BUILD_ID`, `code CODE CHECK LINE ENCODING TABLE FILE NAME`, `python CODE CHECK
/// OFFSET`, `frame ADDRESS`, `cut ADDRESS` (up to the interpreter), and at last `end`. Numbers are
/// hexadecimal.
#[unsafe(no_mangle)]
pub extern "C" fn probe_print() {
    use std::fmt::Write;
    let (mut frames, mut py) = ([0; MAX], [RawPyFrame::default(); 64]);
    let (len, py_len) = capture(&mut frames, &mut py);
    python::address().into_iter().for_each(native::note_interpreter);
    let mut cut = [0; MAX];
    let cut_len = native::capture(&mut cut, true, None).len;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    TEXT.with_borrow_mut(|text| {
        text.clear();
        native::modules_since(0, |m| {
            let path = String::from_utf8_lossy(m.path);
            let _ = writeln!(text, "module\t{:x}\t{:x}\t{:x}\t{path}\t{}", m.start, m.end, m.bias, hex(m.build_id));
        });
        for frame in &py[..py_len] {
            let _ = python::describe(frame, |d| {
                let (line, encoding, lines) = (d.first_line, d.encoding as u8, hex(d.lines));
                let key = format!("{:x}\t{:x}", frame.code, frame.check);
                writeln!(text, "code\t{key}\t{line:x}\t{encoding}\t{lines}\t{}\t{}", d.file, d.name)
            });
            let _ = writeln!(text, "python\t{:x}\t{:x}\t{:x}", frame.code, frame.check, frame.offset);
        }
        for frame in &frames[..len] {
            let _ = writeln!(text, "frame\t{frame:x}");
        }
        for frame in &cut[..cut_len] {
            let _ = writeln!(text, "cut\t{frame:x}");
        }
        text.push_str("end\n");
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            // SAFETY: writes bytes that are there.
            match unsafe { libc::write(1, rest.as_ptr().cast(), rest.len()) } {
                written if written > 0 => rest = &rest[written as usize..],
                _ => break,
            }
        }
    });
}
