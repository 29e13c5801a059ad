//! A library with nothing but stack capture, for the tests: programs in C and C++ call it as they would call a hook.

#[path = "../src/stack/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the probe uses a part of it")]
mod stack;

use std::cell::RefCell;
use std::ffi::c_char;

use stack::native::{self, MAX};

/// Fills `out` (room for `max`) with return addresses of the calling thread.
///
/// # Safety
/// `out` has room for `max` words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_capture(out: *mut u64, max: usize) -> usize {
    let mut frames = [0; MAX];
    let len = native::capture(&mut frames).min(max);
    // SAFETY: the caller's promise.
    unsafe { core::ptr::copy_nonoverlapping(frames.as_ptr(), out, len) };
    len
}

/// Captures `times` times and gives the nanoseconds of one capture; the number of frames goes to `frames`.
///
/// # Safety
/// `frames` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_bench(times: u32, frames: *mut usize) -> f64 {
    let mut buffer = [0; MAX];
    let mut len = native::capture(&mut buffer);
    let begin = std::time::Instant::now();
    for _ in 0..times {
        len = native::capture(std::hint::black_box(&mut buffer));
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

/// Calls `visit(start, end, bias, path, path length, build id, its length)` for modules since `generation`.
#[unsafe(no_mangle)]
pub extern "C" fn probe_modules(
    generation: u32,
    visit: extern "C" fn(u64, u64, u64, *const c_char, usize, *const u8, usize),
) -> u32 {
    native::modules_since(generation, |m| {
        visit(m.start, m.end, m.bias, m.path.as_ptr().cast(), m.path.len(), m.build_id.as_ptr(), m.build_id.len());
    })
}

thread_local! {
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Prints a capture to standard output: `frame ADDRESS` a line, `module START END BIAS PATH` before it, then `end`.
#[unsafe(no_mangle)]
pub extern "C" fn probe_print() {
    use std::fmt::Write;
    let mut frames = [0; MAX];
    let len = native::capture(&mut frames);
    TEXT.with_borrow_mut(|text| {
        text.clear();
        native::modules_since(0, |m| {
            let path = String::from_utf8_lossy(m.path);
            let _ = write!(text, "module {:x} {:x} {:x} {path} ", m.start, m.end, m.bias);
            for byte in m.build_id {
                let _ = write!(text, "{byte:02x}");
            }
            text.push('\n');
        });
        for frame in &frames[..len] {
            let _ = writeln!(text, "frame {frame:x}");
        }
        text.push_str("end\n");
        // SAFETY: writes bytes that are there.
        unsafe { libc::write(1, text.as_ptr().cast(), text.len()) };
    });
}
