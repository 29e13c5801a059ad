//! Writing without signals: what the libraries in a program write must never end the program.
//!
//! A file or shared memory that grows past the limit of file sizes (`ulimit -f`) raises SIGXFSZ,
//! and a write into a pipe that nobody reads raises SIGPIPE; both end a program that does not
//! expect them. Owns [`held`], which turns them into the errors EFBIG and EPIPE for one call, and
//! [`say!`], a line on standard error that is written in this way. Nor must they write into files
//! of the program: see [`descriptors`] and [`stderr`]. What the program defines or changes must not
//! lead them elsewhere: see [`calls`] and [`environment`].

#![warn(unreachable_pub)]

mod arch;
pub mod calls;
pub mod descriptors;
pub mod environment;
pub mod stderr;

/// Runs `call` while this thread holds back SIGXFSZ and SIGPIPE. Those that it raised are dropped;
/// one that was pending before stays. `errno` is what `call` leaves.
pub fn held<T>(call: impl FnOnce() -> T) -> T {
    // SAFETY: all-zero is a valid sigset_t; the sets live as long as the calls. A signal that a
    // system call raises goes to the thread that made it, so it is this thread's to drop.
    unsafe {
        let (mut ours, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut ours);
        let mut pending: libc::sigset_t = std::mem::zeroed();
        let errno = *libc::__errno_location();
        // Those that were pending are the program's.
        libc::sigpending(&mut pending);
        for signal in [libc::SIGXFSZ, libc::SIGPIPE] {
            if libc::sigismember(&pending, signal) != 1 {
                libc::sigaddset(&mut ours, signal);
            }
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &ours, &mut before);
        *libc::__errno_location() = 0;
        let answer = call();
        let left = *libc::__errno_location();
        // A sandbox may forbid the look: it is left out where nothing can have been raised.
        if matches!(left, libc::EFBIG | libc::EPIPE) {
            let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            while libc::sigtimedwait(&ours, std::ptr::null_mut(), &none) > 0 {}
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        *libc::__errno_location() = if left == 0 { errno } else { left };
        answer
    }
}

/// Sets the size of a file, as `ftruncate`. False: it can not have that size.
pub fn resize(file: i32, len: u64) -> bool {
    // SAFETY: takes numbers only.
    held(|| unsafe { libc::ftruncate(file, len as libc::off_t) } == 0)
}

/// A message as one line that no terminal obeys: it may hold a variable or a name of any text.
fn one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len() + 1);
    for c in message.chars() {
        if c.is_control() && c != '\t' { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line.push('\n');
    line
}

/// Writes one line to standard error, with one `write(2)`; control characters are spelt out. A line
/// that can not be written, or would go into a file of the program, is lost.
pub fn say(line: std::fmt::Arguments<'_>) {
    write(one_line(&line.to_string()).as_bytes());
}

/// Writes to standard error, with one `write(2)` and without signals. What can not be written, or
/// would go into a file of the program, is lost.
pub fn write(bytes: &[u8]) {
    if stderr::is_ours() {
        write_unasked(bytes);
    }
}

/// As [`write`], in the shim itself.
pub fn write_here(bytes: &[u8]) {
    if stderr::is_unchanged() {
        write_unasked(bytes);
    }
}

fn write_unasked(bytes: &[u8]) {
    // SAFETY: the buffer holds len bytes.
    held(|| unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) });
}

/// As `eprintln!`, through [`say`].
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::say(format_args!($($text)*)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn is_pending(signal: i32) -> bool {
        // SAFETY: all-zero is a valid sigset_t to be overwritten.
        unsafe {
            let mut pending: libc::sigset_t = std::mem::zeroed();
            libc::sigpending(&mut pending);
            libc::sigismember(&pending, signal) == 1
        }
    }

    #[test]
    fn messages_are_one_line_that_no_terminal_obeys() {
        assert_eq!(one_line("no 'größe'\tthere"), "no 'größe'\tthere\n");
        for code in (0..0x20).chain(0x7f..0xa0).filter(|code| *code != 9) {
            let c = char::from(code);
            let line = one_line(&format!("a{c}b"));
            assert_eq!(line, format!("a{}b\n", c.escape_default()));
            assert!(line.trim_end_matches('\n').chars().all(|c| !c.is_control()), "{line:?}");
        }
    }

    #[test]
    fn a_broken_pipe_is_an_error_and_no_signal() {
        // SAFETY: restores the default, which ends a program; the test must outlive that.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let write = || {
            // SAFETY: one valid byte.
            let wrote = unsafe { libc::write(writer.as_raw_fd(), b"x".as_ptr().cast(), 1) };
            (wrote, std::io::Error::last_os_error().raw_os_error())
        };
        for _ in 0..3 {
            assert_eq!(held(write), (-1, Some(libc::EPIPE)));
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EPIPE));
            assert!(!is_pending(libc::SIGPIPE));
        }
    }

    #[test]
    fn what_was_pending_and_errno_stay() {
        // SAFETY: blocks a signal of this thread and raises it there; errno is this thread's.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGXFSZ);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            libc::pthread_kill(libc::pthread_self(), libc::SIGXFSZ);
            *libc::__errno_location() = libc::ENOENT;
        }
        assert_eq!(held(|| 7), 7);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOENT));
        assert!(is_pending(libc::SIGXFSZ));
    }
}
