//! The files under which the kernel's driver shows devices: `/dev/nvidiactl`, `/dev/nvidia0` and so
//! on. JAX looks whether there is one before it asks CUDA anything.
//!
//! Questions whether they exist are answered as for a device that is there. None can be opened.
//! Every other path goes to the C library.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whether it is such a file, of a simulated device.
///
/// # Safety
/// `path` is null or a C string.
unsafe fn is_device(path: *const c_char) -> bool {
    if path.is_null() {
        return false;
    }
    // SAFETY: the caller's promise.
    let Some(name) = unsafe { CStr::from_ptr(path) }.to_bytes().strip_prefix(b"/dev/nvidia") else { return false };
    let devices = || crate::nvml::count();
    match name {
        b"ctl" => devices() > 0,
        number => std::str::from_utf8(number).ok().and_then(|it| it.parse().ok()).is_some_and(|it: u32| it < devices()),
    }
}

/// What stands in for a device's file: a character device that everybody may open.
const LIKE: *const c_char = c"/dev/null".as_ptr();

/// The C library's function of a name, looked up once.
fn next(slot: &AtomicUsize, name: &CStr) -> usize {
    let known = slot.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
    slot.store(found, Ordering::Relaxed);
    found
}

/// Defines functions in front of the C library's: a path, with arguments before and behind it.
macro_rules! in_front {
    ($($name:ident($($before:ident: $before_kind:ty,)? @path $(, $behind:ident: $behind_kind:ty)*))*) => { $(
        /// # Safety
        /// As the C library's.
        // SAFETY: the C library's name and signature.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($before: $before_kind,)? path: *const c_char $(, $behind: $behind_kind)*) -> c_int {
            type Function = unsafe extern "C" fn($($before_kind,)? *const c_char $(, $behind_kind)*) -> c_int;
            static SLOT: AtomicUsize = AtomicUsize::new(0);
            let name = const {
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name without zeros"),
                }
            };
            let at = next(&SLOT, name);
            if at == 0 {
                // SAFETY: the calling thread's own.
                unsafe { *libc::__errno_location() = libc::ENOSYS };
                return -1;
            }
            // SAFETY: the C library's function of this name has this type; arguments and promises
            // are the caller's.
            unsafe {
                let real = std::mem::transmute::<usize, Function>(at);
                let path = if is_device(path) { LIKE } else { path };
                real($($before,)? path $(, $behind)*)
            }
        }
    )* };
}

in_front! {
    stat(@path, to: *mut c_void)
    stat64(@path, to: *mut c_void)
    // Before glibc 2.33.
    __xstat(version: c_int, @path, to: *mut c_void)
    __xstat64(version: c_int, @path, to: *mut c_void)
    access(@path, mode: c_int)
}
