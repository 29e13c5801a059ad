//! Calls of which one argument decides what the others are: system calls by their numbers, and
//! functions with commands.
//!
//! Owns which arguments point to something. An argument that the call does not take is whatever its
//! register held: often an address that the program has just used. Opening the page there would
//! hide the program's accesses to it until the thread's next call of CUDA. Commands that are not
//! known here count as taking a pointer.

use crate::arch;

use super::calls;
use super::pieces::{PAGE, Piece, items, of, opens, path, reads, sized, texts, writes};

/// What any of the arguments of a system call may point to.
const ANY: &[Piece] = &[opens(0, PAGE), opens(1, PAGE), opens(2, PAGE), opens(3, PAGE), opens(4, PAGE)];
const NOTHING: &[Piece] = &[];

/// What the arguments of a system call point to that a program makes by its number.
pub(super) fn by_number(number: i64, args: &[usize; 6]) -> &'static [Piece] {
    const STAT: usize = of::<libc::stat>();
    match number {
        libc::SYS_futex => of_futex(args[1]),
        libc::SYS_fcntl => of_fcntl(args),
        libc::SYS_ioctl => of_ioctl(args),
        libc::SYS_prctl => of_prctl(args),
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
        libc::SYS_pipe2 => const { &[writes(0, of::<[i32; 2]>())] },
        libc::SYS_uname => const { &[writes(0, of::<libc::utsname>())] },
        number => &ANY[..arguments(number).min(ANY.len())],
    }
}

/// Up to which argument a system call may pass addresses; 0: none, or it is one that this library
/// makes itself, which works on pages as they are.
fn arguments(number: i64) -> usize {
    match number {
        libc::SYS_sysinfo | libc::SYS_times | libc::SYS_perf_event_open => 1,
        libc::SYS_getrusage
        | libc::SYS_gettimeofday
        | libc::SYS_clock_getres
        | libc::SYS_statfs
        | libc::SYS_fstatfs
        | libc::SYS_capget
        | libc::SYS_capset
        | libc::SYS_set_mempolicy
        | libc::SYS_fchmodat
        | libc::SYS_sched_getattr
        | libc::SYS_sched_setattr
        | libc::SYS_bpf => 2,
        libc::SYS_getcpu | libc::SYS_utimensat | libc::SYS_getxattr | libc::SYS_setxattr | libc::SYS_add_key => 3,
        libc::SYS_clock_nanosleep
        | libc::SYS_prlimit64
        | libc::SYS_epoll_ctl
        | libc::SYS_epoll_pwait
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_linkat
        | libc::SYS_get_mempolicy
        | libc::SYS_mbind => 4,
        libc::SYS_move_pages | libc::SYS_pselect6 | libc::SYS_keyctl => 5,
        number => arch::arguments_of_older_call(number),
    }
}

/// By the operation (futex(2)): the word, a timeout for those that wait, a second word for those
/// that move waiters or wake two.
fn of_futex(operation: usize) -> &'static [Piece] {
    const WORD: Piece = opens(0, of::<u32>());
    const TIMEOUT: Piece = opens(3, of::<libc::timespec>());
    const SECOND: Piece = opens(4, of::<u32>());
    match operation as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
        libc::FUTEX_WAIT | libc::FUTEX_LOCK_PI | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI2 => {
            const { &[WORD, TIMEOUT] }
        }
        libc::FUTEX_WAKE
        | libc::FUTEX_FD
        | libc::FUTEX_UNLOCK_PI
        | libc::FUTEX_TRYLOCK_PI
        | libc::FUTEX_WAKE_BITSET => const { &[WORD] },
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE | libc::FUTEX_WAKE_OP | libc::FUTEX_CMP_REQUEUE_PI => {
            const { &[WORD, SECOND] }
        }
        _ => const { &[WORD, TIMEOUT, SECOND] },
    }
}

/// By the command (fcntl(2)): these take a number or nothing.
fn of_fcntl(args: &[usize; 6]) -> &'static [Piece] {
    let takes_none = matches!(
        args[1] as i32,
        libc::F_DUPFD
            | libc::F_DUPFD_CLOEXEC
            | libc::F_GETFD
            | libc::F_SETFD
            | libc::F_GETFL
            | libc::F_SETFL
            | libc::F_GETOWN
            | libc::F_SETOWN
            | libc::F_SETLEASE
            | libc::F_GETLEASE
            | libc::F_NOTIFY
            | libc::F_SETPIPE_SZ
            | libc::F_GETPIPE_SZ
            | libc::F_ADD_SEALS
            | libc::F_GET_SEALS
    );
    if takes_none { NOTHING } else { const { &[opens(2, PAGE)] } }
}

/// By the request: most of those without an argument do not say so.
fn of_ioctl(args: &[usize; 6]) -> &'static [Piece] {
    let takes_none = matches!(
        args[1] as u64,
        libc::FIOCLEX | libc::FIONCLEX | libc::TIOCEXCL | libc::TIOCNXCL | libc::TIOCNOTTY | libc::TIOCSCTTY
    );
    if takes_none { NOTHING } else { const { &[opens(2, PAGE)] } }
}

/// By the operation (prctl(2)): these take numbers or nothing.
fn of_prctl(args: &[usize; 6]) -> &'static [Piece] {
    match args[0] as i32 {
        libc::PR_SET_PDEATHSIG
        | libc::PR_GET_DUMPABLE
        | libc::PR_SET_DUMPABLE
        | libc::PR_GET_KEEPCAPS
        | libc::PR_SET_KEEPCAPS
        | libc::PR_GET_TIMING
        | libc::PR_SET_TIMING
        | libc::PR_GET_SECCOMP
        | libc::PR_CAPBSET_READ
        | libc::PR_CAPBSET_DROP
        | libc::PR_GET_SECUREBITS
        | libc::PR_SET_SECUREBITS
        | libc::PR_SET_TIMERSLACK
        | libc::PR_GET_TIMERSLACK
        | libc::PR_TASK_PERF_EVENTS_DISABLE
        | libc::PR_TASK_PERF_EVENTS_ENABLE
        | libc::PR_MCE_KILL
        | libc::PR_MCE_KILL_GET
        | libc::PR_SET_CHILD_SUBREAPER
        | libc::PR_SET_NO_NEW_PRIVS
        | libc::PR_GET_NO_NEW_PRIVS
        | libc::PR_SET_THP_DISABLE
        | libc::PR_GET_THP_DISABLE
        | libc::PR_CAP_AMBIENT
        | libc::PR_SET_PTRACER => NOTHING,
        // The name of a mapping; the mapping itself is not touched.
        libc::PR_SET_VMA => const { &[path(4)] },
        _ => const { &[opens(1, PAGE)] },
    }
}

/// By the command (semctl(2)): these take a number or nothing.
fn of_semctl(args: &[usize; 6]) -> &'static [Piece] {
    /// The values that the C library's headers give these commands; not all of them are in `libc`.
    const GETPID: i32 = 11;
    const GETVAL: i32 = 12;
    const GETNCNT: i32 = 14;
    const GETZCNT: i32 = 15;
    const SETVAL: i32 = 16;
    match args[2] as i32 {
        libc::IPC_RMID | GETPID | GETVAL | GETNCNT | GETZCNT | SETVAL => NOTHING,
        _ => const { &[opens(3, PAGE)] },
    }
}

/// By the flags (mq_open(3)): attributes are for a queue that may be made.
fn of_mq_open(args: &[usize; 6]) -> &'static [Piece] {
    match args[1] as i32 & libc::O_CREAT {
        0 => const { &[path(0)] },
        _ => const { &[path(0), opens(3, of::<libc::mq_attr>())] },
    }
}

calls! {
    ioctl c"ioctl" Chosen(of_ioctl) true;
    fcntl c"fcntl" Chosen(of_fcntl) true;
    fcntl64 c"fcntl64" Chosen(of_fcntl) true;
    __fcntl c"__fcntl" Chosen(of_fcntl) true;
    prctl c"prctl" Chosen(of_prctl) true;
    semctl c"semctl" Chosen(of_semctl) true;
    mq_open c"mq_open" Chosen(of_mq_open) true;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments that are opened.
    fn opened(pieces: &[Piece]) -> Vec<usize> {
        pieces.iter().map(Piece::argument).collect()
    }

    #[test]
    fn a_futex_has_a_timeout_where_it_waits_and_a_second_word_where_it_moves_waiters() {
        let of = |operation: i32| {
            let args = [1, operation as usize, 1, 1, 1, 0];
            opened(by_number(libc::SYS_futex, &args))
        };
        for flags in [0, libc::FUTEX_PRIVATE_FLAG, libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME] {
            assert_eq!(of(libc::FUTEX_WAIT | flags), [0, 3]);
            assert_eq!(of(libc::FUTEX_WAIT_BITSET | flags), [0, 3]);
            assert_eq!(of(libc::FUTEX_WAKE | flags), [0]);
            assert_eq!(of(libc::FUTEX_WAKE_BITSET | flags), [0]);
            assert_eq!(of(libc::FUTEX_WAKE_OP | flags), [0, 4]);
            assert_eq!(of(libc::FUTEX_WAIT_REQUEUE_PI | flags), [0, 3, 4]);
        }
        assert_eq!(of(99), [0, 3, 4], "an operation that is not known");
    }

    #[test]
    fn no_argument_counts_that_the_call_does_not_take() {
        let by = |number: i64, args: [usize; 6]| opened(by_number(number, &args));
        assert_eq!(by(libc::SYS_sysinfo, [1; 6]), [0]);
        assert_eq!(by(libc::SYS_getcpu, [1; 6]), [0, 1, 2]);
        assert_eq!(by(libc::SYS_pselect6, [1; 6]), [0, 1, 2, 3, 4]);
        assert_eq!(by(libc::SYS_gettid, [1; 6]), [0; 0]);
        assert_eq!(by(libc::SYS_sched_yield, [1; 6]), [0; 0]);
        let with = |command: i32| [1, command as usize, 1, 1, 1, 1];
        assert_eq!(by(libc::SYS_fcntl, with(libc::F_GETFL)), [0; 0]);
        assert_eq!(by(libc::SYS_fcntl, with(libc::F_SETLK)), [2]);
        assert_eq!(by(libc::SYS_fcntl, with(77)), [2], "a command that is not known");
        assert_eq!(by(libc::SYS_ioctl, with(libc::FIOCLEX as i32)), [0; 0]);
        assert_eq!(by(libc::SYS_ioctl, with(libc::FIONREAD as i32)), [2]);
        let with = |operation: i32| [operation as usize, 1, 1, 1, 1, 1];
        assert_eq!(by(libc::SYS_prctl, with(libc::PR_GET_DUMPABLE)), [0; 0]);
        assert_eq!(by(libc::SYS_prctl, with(libc::PR_GET_NAME)), [1]);
        assert_eq!(by(libc::SYS_prctl, with(libc::PR_SET_VMA)), [4]);
        assert_eq!(opened(of_semctl(&[1, 0, libc::IPC_RMID as usize, 1, 1, 1])), [0; 0]);
        assert_eq!(opened(of_semctl(&[1, 0, libc::IPC_STAT as usize, 1, 1, 1])), [3]);
        assert_eq!(opened(of_mq_open(&[1, libc::O_RDWR as usize, 1, 1, 1, 1])), [0]);
        assert_eq!(opened(of_mq_open(&[1, (libc::O_RDWR | libc::O_CREAT) as usize, 1, 1, 1, 1])), [0, 3]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn nor_of_the_older_calls() {
        for (number, count) in
            [(libc::SYS_time, 1), (libc::SYS_stat, 2), (libc::SYS_epoll_wait, 2), (libc::SYS_select, 5)]
        {
            assert_eq!(opened(by_number(number, &[1; 6])).len(), count);
        }
    }
}
