//! System calls that no function of the program gets in the way of.
//!
//! A program, or a library of it, may define `socket`, `getrandom` or `readlink` itself, and the
//! loader binds a preloaded library's call to the first definition it finds: the program's. So the
//! libraries that lie in a program have the calls below linked under other names. The linker's
//! option `--wrap=NAME` turns each reference to `NAME` into one to `__wrap_NAME`, those of Rust's
//! standard library included, and this file defines these. Their build scripts read the names from
//! `wrapped_calls.txt`.
//!
//! Owns these functions. Each makes one system call, sets `errno` as the C library does, and is no
//! cancellation point: a thread of the program must not end in the middle of our code.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

use crate::arch::{define_wrapped, system_call};

/// The answer of a system call as that of a function of the C library.
fn answer(result: isize) -> isize {
    // The kernel's errors are the last page of numbers.
    if !(-4095..0).contains(&result) {
        return result;
    }
    // SAFETY: errno is this thread's.
    unsafe { *libc::__errno_location() = -result as c_int };
    -1
}

/// An argument in the kernel's form.
trait Argument {
    fn word(self) -> *const c_void;
}

impl<T> Argument for *const T {
    fn word(self) -> *const c_void {
        self.cast()
    }
}

impl<T> Argument for *mut T {
    fn word(self) -> *const c_void {
        self.cast_const().cast()
    }
}

macro_rules! numbers {
    ($($ty:ty),*) => { $(
        impl Argument for $ty {
            fn word(self) -> *const c_void {
                self as isize as *const c_void
            }
        }
    )* };
}
numbers!(c_int, c_uint, i64, usize);

macro_rules! calls {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) -> $result:ty = $number:ident [$($word:expr),*];)*) => { $(
        unsafe extern "C" fn $name($($arg: $ty),*) -> $result {
            let mut words = [std::ptr::null(); 5];
            let given: &[*const c_void] = &[$(Argument::word($word)),*];
            words[..given.len()].copy_from_slice(given);
            // SAFETY: the caller keeps the contract of the C library's function of this name.
            answer(unsafe { system_call(libc::$number as c_long, words) }) as $result
        }
        define_wrapped!($name);
    )* };
}

calls! {
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int = SYS_socket [domain, kind, protocol];
    fn connect(file: c_int, address: *const c_void, len: c_uint) -> c_int = SYS_connect [file, address, len];
    fn sendmsg(file: c_int, message: *const c_void, flags: c_int) -> isize = SYS_sendmsg [file, message, flags];
    fn getsockopt(file: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut c_uint) -> c_int =
        SYS_getsockopt [file, level, name, value, len];
    fn getrandom(buffer: *mut c_void, len: usize, flags: c_uint) -> isize = SYS_getrandom [buffer, len, flags];
    // On the two architectures, `struct stat` is the kernel's.
    fn fstat(file: c_int, to: *mut c_void) -> c_int = SYS_fstat [file, to];
    fn fstat64(file: c_int, to: *mut c_void) -> c_int = SYS_fstat [file, to];
    fn ftruncate(file: c_int, len: i64) -> c_int = SYS_ftruncate [file, len];
    fn ftruncate64(file: c_int, len: i64) -> c_int = SYS_ftruncate [file, len];
    fn lseek64(file: c_int, offset: i64, from: c_int) -> i64 = SYS_lseek [file, offset, from];
    fn pread64(file: c_int, buffer: *mut c_void, len: usize, at: i64) -> isize = SYS_pread64 [file, buffer, len, at];
    fn pwrite64(file: c_int, buffer: *const c_void, len: usize, at: i64) -> isize =
        SYS_pwrite64 [file, buffer, len, at];
    fn read(file: c_int, buffer: *mut c_void, len: usize) -> isize = SYS_read [file, buffer, len];
    fn write(file: c_int, buffer: *const c_void, len: usize) -> isize = SYS_write [file, buffer, len];
    fn writev(file: c_int, vector: *const c_void, count: c_int) -> isize = SYS_writev [file, vector, count];
    fn close(file: c_int) -> c_int = SYS_close [file];
    fn readlink(path: *const c_char, buffer: *mut c_char, len: usize) -> isize =
        SYS_readlinkat [libc::AT_FDCWD, path, buffer, len];
    fn symlink(target: *const c_char, path: *const c_char) -> c_int = SYS_symlinkat [target, libc::AT_FDCWD, path];
    fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int = SYS_prctl [option, a, b, c, d];
    fn kill(process: c_int, signal: c_int) -> c_int = SYS_kill [process, signal];
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int = SYS_memfd_create [name, flags];
    fn getuid() -> c_uint = SYS_getuid [];
    fn geteuid() -> c_uint = SYS_geteuid [];
}

/// Whether the 8 bytes at `address` rounded down can be read: the kernel is asked to read them as a
/// signal set for a change of the signal mask that it must refuse. No `errno`, no side effect,
/// allowed by every sandbox.
pub fn is_readable(address: u64) -> bool {
    const EFAULT: isize = -14;
    // A null set means "no change" to the kernel, and nothing is ever mapped in the first page.
    if address < 4096 {
        return false;
    }
    let set = (address & !7) as *const c_void;
    let words = [(-1_isize) as *const c_void, set, std::ptr::null(), 8 as *const c_void, std::ptr::null()];
    // SAFETY: reads 8 bytes or answers EFAULT, and always refuses `how == -1`.
    (unsafe { system_call(libc::SYS_rt_sigprocmask, words) }) != EFAULT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in the list that the build scripts read.
    const LIST: &str = include_str!("../wrapped_calls.txt");

    #[test]
    fn the_list_names_what_is_defined() {
        let source = include_str!("calls.rs");
        let defined = source.lines().filter_map(|line| line.strip_prefix("    fn ")?.split('(').next());
        let mut defined: Vec<&str> = defined.filter(|name| *name != "word").collect();
        let tests = defined.iter().position(|name| name.starts_with("the_list")).expect("this test");
        defined.truncate(tests);
        defined.sort_unstable();
        let listed: Vec<&str> = LIST.lines().collect();
        assert_eq!(defined, listed);
    }

    #[test]
    fn calls_answer_as_those_of_the_c_library() {
        let file = std::fs::File::open("/proc/self/exe").expect("this test");
        let number = std::os::fd::AsRawFd::as_raw_fd(&file);
        let error = |result: isize| (result, std::io::Error::last_os_error().raw_os_error());
        // SAFETY: as for the functions of the C library, which get the same arguments.
        unsafe {
            let (mut ours, mut theirs) = ([0_u8; 4096], [0_u8; 4096]);
            let (to, from) = (ours.as_mut_ptr(), theirs.as_mut_ptr());
            assert_eq!(fstat(number, to.cast()), libc::fstat(number, from.cast()));
            assert_eq!(ours, theirs);
            assert_eq!(pread64(number, to.cast(), 100, 64), libc::pread64(number, from.cast(), 100, 64));
            assert_eq!(ours, theirs);
            let exe = c"/proc/self/exe".as_ptr();
            assert_eq!(readlink(exe, to.cast(), 4096), libc::readlink(exe, from.cast(), 4096));
            assert_eq!(ours, theirs);
            assert_eq!(lseek64(number, -5, libc::SEEK_END), libc::lseek64(number, -5, libc::SEEK_END));
            assert_eq!((getuid(), geteuid()), (libc::getuid(), libc::geteuid()));
            assert_eq!(prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0), libc::prctl(libc::PR_GET_DUMPABLE));
            assert_eq!(getrandom(to.cast(), 16, 0), 16);
            assert_eq!(error(close(-1) as isize), error(libc::close(-1) as isize));
            assert_eq!(error(write(-1, exe.cast(), 1)), (-1, Some(libc::EBADF)));
            assert_eq!(error(ftruncate(number, 0) as isize), (-1, Some(libc::EINVAL)));
            assert_eq!(error(socket(-1, 0, 0) as isize), (-1, Some(libc::EAFNOSUPPORT)));
            assert_eq!(error(sendmsg(number, to.cast(), 0)), (-1, Some(libc::ENOTSOCK)));
            assert_eq!(error(symlink(exe, exe) as isize), (-1, Some(libc::EEXIST)));
            let memory = memfd_create(c"calls".as_ptr(), 0);
            assert_eq!(write(memory, exe.cast(), 5), 5);
            assert_eq!(pwrite64(memory, exe.cast(), 5, 95), 5);
            assert_eq!(ftruncate64(memory, 98), 0);
            assert_eq!((lseek64(memory, 0, libc::SEEK_END), close(memory)), (98, 0));
        }
    }

    #[test]
    fn tells_what_can_be_read() {
        let local = 5_u64;
        assert!(is_readable(&raw const local as u64));
        for address in [0, 8, 4095, u64::MAX, 0x0000_8000_0000_0000] {
            assert!(!is_readable(address), "{address:x}");
        }
    }
}
