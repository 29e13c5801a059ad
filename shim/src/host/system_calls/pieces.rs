//! What arguments of functions point to.
//!
//! Owns the ways to say it, and the same of system calls by their numbers.

use crate::arch;

use super::opening::{concerns, open_pages, readable, touch};

/// What an argument points to.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    argument: usize,
    size: Size,
    how: How,
}

#[derive(Clone, Copy)]
enum Size {
    Bytes(usize),
    /// As many as another argument says.
    Argument(usize),
    /// As many as another argument says, and some more.
    Beyond(usize, usize),
    /// As many items as another argument says, of so many bytes.
    Items(usize, usize),
    /// A text ends with a zero.
    Text,
    /// Addresses of texts, and a zero.
    Texts,
}

#[derive(Clone, Copy)]
enum How {
    Reads,
    Writes,
    /// Not known, or not all of it.
    Opens,
}

pub(super) const fn of<T>() -> usize {
    size_of::<T>()
}

pub(super) const fn reads(argument: usize, bytes: usize) -> Piece {
    Piece { argument, size: Size::Bytes(bytes), how: How::Reads }
}

pub(super) const fn writes(argument: usize, bytes: usize) -> Piece {
    Piece { argument, size: Size::Bytes(bytes), how: How::Writes }
}

pub(super) const fn opens(argument: usize, bytes: usize) -> Piece {
    Piece { argument, size: Size::Bytes(bytes), how: How::Opens }
}

pub(super) const fn sized(argument: usize, by: usize) -> Piece {
    Piece { argument, size: Size::Argument(by), how: How::Opens }
}

pub(super) const fn beyond(argument: usize, by: usize, more: usize) -> Piece {
    Piece { argument, size: Size::Beyond(by, more), how: How::Opens }
}

pub(super) const fn items(argument: usize, count: usize, bytes: usize) -> Piece {
    Piece { argument, size: Size::Items(count, bytes), how: How::Opens }
}

pub(super) const fn path(argument: usize) -> Piece {
    Piece { argument, size: Size::Text, how: How::Opens }
}

pub(super) const fn texts(argument: usize) -> Piece {
    Piece { argument, size: Size::Texts, how: How::Opens }
}

/// More than the structures of `ioctl`, `prctl` and options of sockets take.
pub(super) const PAGE: usize = 4096;

/// The sender's address.
pub(super) const PEER: &[Piece] = &[opens(4, of::<libc::sockaddr_storage>()), opens(5, of::<i32>())];
/// The receiver's.
pub(super) const DESTINATION: &[Piece] = &[sized(4, 5)];

impl Piece {
    /// Makes it accessible; an access is recorded where it is certain.
    pub(super) fn open(&self, args: &[usize; 6]) {
        let start = args[self.argument];
        if start == 0 {
            return;
        }
        let len = match self.size {
            Size::Bytes(bytes) => bytes,
            Size::Argument(by) => args[by],
            Size::Beyond(by, more) => args[by].saturating_add(more),
            Size::Items(count, bytes) => args[count].saturating_mul(bytes),
            Size::Text => return open_text(start),
            Size::Texts => return open_texts(start),
        };
        match self.how {
            How::Reads => touch(start as *const _, len, false),
            How::Writes => touch(start as *const _, len, true),
            How::Opens => open_pages(start as u64, len as u64),
        }
    }
}

/// A text, page by page until it ends.
fn open_text(start: usize) {
    /// More than the kernel takes of a path, and of an argument.
    const MOST: usize = 32 * PAGE;
    let mut at = start;
    while at < start.saturating_add(MOST) {
        let Some(end) = at.checked_add(1).and_then(|next| next.checked_next_multiple_of(PAGE)) else { return };
        if !concerns(at as u64, end as u64) || !readable(at, end - at) {
            return;
        }
        // SAFETY: just found readable.
        let bytes = unsafe { std::slice::from_raw_parts(at as *const u8, end - at) };
        if bytes.contains(&0) {
            return;
        }
        at = end;
    }
}

/// A list of texts, as programs are started with.
fn open_texts(start: usize) {
    const MOST: usize = 1 << 16;
    const WORD: usize = of::<usize>();
    for index in 0..MOST {
        let at = start.saturating_add(index * WORD);
        let first = index == 0 || at % PAGE < WORD;
        if first && (!at.is_multiple_of(WORD) || !readable(at, PAGE - at % PAGE)) {
            return;
        }
        // SAFETY: its page was just found readable; aligned.
        match unsafe { *(at as *const usize) } {
            0 => return,
            text => open_text(text),
        }
    }
}

/// What any of the arguments of a system call may point to.
const ANY: &[Piece] = &[opens(0, PAGE), opens(1, PAGE), opens(2, PAGE), opens(3, PAGE), opens(4, PAGE)];

/// Whether arguments of a system call may be addresses, and it is none that this library makes
/// itself: that one works on pages as they are.
fn passes_addresses(number: i64) -> bool {
    let is_usual = matches!(
        number,
        libc::SYS_getrusage
            | libc::SYS_gettimeofday
            | libc::SYS_clock_getres
            | libc::SYS_clock_nanosleep
            | libc::SYS_prlimit64
            | libc::SYS_sysinfo
            | libc::SYS_times
            | libc::SYS_statfs
            | libc::SYS_fstatfs
            | libc::SYS_getcpu
            | libc::SYS_capget
            | libc::SYS_capset
            | libc::SYS_get_mempolicy
            | libc::SYS_set_mempolicy
            | libc::SYS_mbind
            | libc::SYS_move_pages
            | libc::SYS_pselect6
            | libc::SYS_epoll_ctl
            | libc::SYS_epoll_pwait
            | libc::SYS_renameat
            | libc::SYS_renameat2
            | libc::SYS_linkat
            | libc::SYS_fchmodat
            | libc::SYS_utimensat
            | libc::SYS_getxattr
            | libc::SYS_setxattr
            | libc::SYS_sched_getattr
            | libc::SYS_sched_setattr
            | libc::SYS_perf_event_open
            | libc::SYS_keyctl
            | libc::SYS_add_key
            | libc::SYS_bpf
    );
    is_usual || arch::is_older_call(number)
}

/// What the arguments of a system call point to that a program makes by its number.
pub(super) fn by_number(number: i64) -> &'static [Piece] {
    const STAT: usize = of::<libc::stat>();
    match number {
        libc::SYS_futex => const { &[opens(0, of::<u32>()), opens(3, of::<libc::timespec>()), opens(4, of::<u32>())] },
        libc::SYS_getdents64 => const { &[sized(1, 2)] },
        libc::SYS_openat | libc::SYS_faccessat | libc::SYS_mkdirat | libc::SYS_unlinkat => const { &[path(1)] },
        libc::SYS_newfstatat => const { &[path(1), writes(2, STAT)] },
        libc::SYS_fstat => const { &[writes(1, STAT)] },
        libc::SYS_statx => const { &[path(1), writes(4, of::<libc::statx>())] },
        libc::SYS_getcwd => const { &[sized(0, 1)] },
        libc::SYS_readlinkat => const { &[path(1), sized(2, 3)] },
        libc::SYS_wait4 => const { &[writes(1, of::<i32>()), opens(3, of::<libc::rusage>())] },
        libc::SYS_waitid => const { &[opens(2, of::<libc::siginfo_t>()), opens(4, of::<libc::rusage>())] },
        libc::SYS_execve => const { &[path(0), texts(1), texts(2)] },
        libc::SYS_nanosleep => const { &[reads(0, of::<libc::timespec>()), opens(1, of::<libc::timespec>())] },
        libc::SYS_clock_gettime => const { &[writes(1, of::<libc::timespec>())] },
        libc::SYS_ppoll => const { &[items(0, 1, of::<libc::pollfd>()), opens(2, of::<libc::timespec>())] },
        libc::SYS_sched_getaffinity | libc::SYS_sched_setaffinity => const { &[sized(2, 1)] },
        libc::SYS_ioctl | libc::SYS_fcntl => const { &[opens(2, PAGE)] },
        libc::SYS_prctl => const { &[opens(1, PAGE)] },
        libc::SYS_pipe2 => const { &[writes(0, of::<[i32; 2]>())] },
        libc::SYS_uname => const { &[writes(0, of::<libc::utsname>())] },
        number if passes_addresses(number) => ANY,
        _ => const { &[] },
    }
}
