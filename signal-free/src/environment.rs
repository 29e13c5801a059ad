//! The variables that a process was started with, whatever the program makes of them.
//!
//! A program may clear its environment (`clearenv`, `environ = 0`), overwrite it, or define
//! `getenv` itself, all before its first CUDA call. Owns a copy of StreamSan's own variables, which
//! [`remember`] makes when the library is loaded, and the look into both. Neither calls `getenv`.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicPtr, Ordering};

/// How the names begin that are copied.
const PREFIX: &[u8] = b"STREAMSAN_";

/// Entries with their zeros, and an empty one at the end. Null: none.
static COPY: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());

/// Copies what the program was started with. For the library's constructor: neither allocates from
/// the program's heap nor does anything where there is nothing to copy.
///
/// # Safety
/// `environment` is a list of C strings with a null at its end, or null.
pub unsafe fn remember(environment: *const *const c_char) {
    // SAFETY: the caller's promise.
    let ours = || unsafe { entries(environment) }.filter(|entry| entry.starts_with(PREFIX));
    let len: usize = ours().map(|entry| entry.len() + 1).sum();
    if len == 0 {
        return;
    }
    // SAFETY: reserves fresh memory, no preconditions.
    let copy = unsafe {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        libc::mmap(std::ptr::null_mut(), len + 1, rights, flags, -1, 0)
    };
    if copy == libc::MAP_FAILED {
        return;
    }
    let mut at = copy.cast::<u8>();
    for entry in ours() {
        // SAFETY: the mapping has room for all entries and their zeros; it holds zeros.
        unsafe {
            std::ptr::copy_nonoverlapping(entry.as_ptr(), at, entry.len());
            at = at.add(entry.len() + 1);
        }
    }
    COPY.store(copy.cast(), Ordering::Release);
}

/// A variable as the program has it now; where it has none of this name, as it was started with.
pub fn variable(name: &CStr) -> Option<&'static [u8]> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: a list of C strings with a null at its end, or null, as the program keeps it; another
    // thread that changes it at this moment is the program's own race.
    let now = unsafe { entries(environ) };
    now.into_iter().find_map(|entry| value(entry, name)).or_else(|| first(name))
}

/// A variable as the program was started with it.
pub fn first(name: &CStr) -> Option<&'static [u8]> {
    let mut at = COPY.load(Ordering::Acquire).cast_const();
    while !at.is_null() {
        // SAFETY: entries with their zeros, which are never unmapped.
        let entry = unsafe { CStr::from_ptr(at) }.to_bytes();
        if entry.is_empty() {
            return None;
        }
        if let Some(value) = value(entry, name) {
            return Some(value);
        }
        // SAFETY: an entry or the empty one follows.
        at = unsafe { at.add(entry.len() + 1) };
    }
    None
}

fn value<'a>(entry: &'a [u8], name: &CStr) -> Option<&'a [u8]> {
    entry.strip_prefix(name.to_bytes())?.strip_prefix(b"=")
}

/// # Safety
/// As for [`remember`]; the strings live as long as the answer is used.
unsafe fn entries(list: *const *const c_char) -> impl Iterator<Item = &'static [u8]> {
    let mut at = list;
    std::iter::from_fn(move || {
        // SAFETY: the caller's promise: the null at the end has not come yet.
        unsafe {
            if at.is_null() || (*at).is_null() {
                return None;
            }
            let entry = CStr::from_ptr(*at).to_bytes();
            at = at.add(1);
            Some(entry)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_remembered() {
        let name = c"STREAMSAN_TEST_ENVIRONMENT";
        let other = c"STREAMSAN_TEST_ENV";
        assert_eq!((variable(name), first(name)), (None, None));
        let list = [
            c"HOME=/".as_ptr(),
            c"STREAMSAN_TEST_ENVIRONMENT=one=two".as_ptr(),
            c"".as_ptr(),
            c"=".as_ptr(),
            c"STREAMSAN_".as_ptr(),
            c"STREAMSAN_TEST_EMPTY=".as_ptr(),
            std::ptr::null(),
        ];
        // SAFETY: as C passes it.
        unsafe { remember(list.as_ptr()) };
        assert_eq!(variable(name), Some(&b"one=two"[..]));
        assert_eq!((variable(other), first(c"HOME")), (None, None));
        assert_eq!(variable(c"STREAMSAN_TEST_EMPTY"), Some(&b""[..]));
        assert!(variable(c"PATH").is_some(), "as it is now");
        // SAFETY: no other test of this crate reads or writes this variable.
        unsafe { libc::setenv(name.as_ptr(), c"three".as_ptr(), 1) };
        assert_eq!((variable(name), first(name)), (Some(&b"three"[..]), Some(&b"one=two"[..])));
        // SAFETY: as above.
        unsafe { libc::unsetenv(name.as_ptr()) };
        assert_eq!(variable(name), Some(&b"one=two"[..]));
        // SAFETY: an environment without anything of ours leaves the copy alone.
        unsafe { remember(std::ptr::null()) };
        assert_eq!(first(name), Some(&b"one=two"[..]));
    }
}
