//! Standard error, as long as it is what it was when the program started.
//!
//! A program may close descriptor 2 and open a file of data, or a connection, under that number: a
//! message would end up in it. So messages are written while descriptor 2 is still the file that it
//! was when the first library of ours was loaded. A program that puts a file for its own messages
//! there (`freopen`, `dup2`) cannot be told from that, and gets none either. The report is not
//! lost: the launcher writes it.

use std::ffi::c_void;
use std::sync::OnceLock;

use crate::descriptors::FileIdentity;

/// Descriptor 2 when this library was loaded; none: it was closed.
static FIRST: OnceLock<Option<FileIdentity>> = OnceLock::new();

fn first() -> Option<FileIdentity> {
    *FIRST.get_or_init(|| {
        // A program passes no descriptor on that is closed when it starts another one: such a file
        // was opened by this program, before this library was loaded.
        // SAFETY: asks for the descriptor's flags; errno is this thread's.
        let (flags, errno) = unsafe {
            let before = *libc::__errno_location();
            (libc::fcntl(libc::STDERR_FILENO, libc::F_GETFD), before)
        };
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        (flags == 0).then(|| FileIdentity::of(libc::STDERR_FILENO)).flatten()
    })
}

/// When the library is loaded.
extern "C" fn remember() {
    first();
}

#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember;

/// Whether descriptor 2 is what it was when this library was loaded. `errno` stays.
pub fn is_unchanged() -> bool {
    first().is_some_and(|first| FileIdentity::of(libc::STDERR_FILENO) == Some(first))
}

/// The function of the shim that answers this: it was loaded before a library that the program
/// loads when it runs.
pub const SHIMS: &std::ffi::CStr = c"streamsan_stderr_is_unchanged";

/// As [`is_unchanged`], since the start of the program if the shim is preloaded.
pub fn is_ours() -> bool {
    static SHIM: OnceLock<Option<extern "C" fn() -> i32>> = OnceLock::new();
    let look_up = || {
        // SAFETY: a string that ends in NUL; errno is this thread's.
        let found = unsafe {
            let errno = *libc::__errno_location();
            let found = libc::dlsym(libc::RTLD_DEFAULT, SHIMS.as_ptr());
            *libc::__errno_location() = errno;
            found
        };
        // SAFETY: the shim's function of this name has this type.
        (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> i32>(found) })
    };
    is_unchanged() && SHIM.get_or_init(look_up).is_none_or(|shim| shim() != 0)
}
