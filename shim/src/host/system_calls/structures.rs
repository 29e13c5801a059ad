//! Functions of the C library that pass the kernel structures, paths and lists.
//!
//! Owns the table: which arguments point to what. What the kernel certainly reads or writes counts
//! as an access; of paths, lists and buffers whose size the kernel chooses, the pages are opened
//! and nothing is recorded.

use super::pieces::{PAGE, items, of, opens, path, reads, sized, texts, writes};
use super::{calls, passing};

passing! {
    // Children. What a child is told is in the memory of its parent.
    wait c"wait" [writes(0, of::<i32>())];
    waitpid c"waitpid" [writes(1, of::<i32>())];
    __waitpid c"__waitpid" [writes(1, of::<i32>())];
    wait3 c"wait3" [writes(0, of::<i32>()), writes(2, of::<libc::rusage>())];
    wait4 c"wait4" [writes(1, of::<i32>()), writes(3, of::<libc::rusage>())];
    waitid c"waitid" [writes(2, of::<libc::siginfo_t>())];
    execv c"execv" [path(0), texts(1)];
    execve c"execve" [path(0), texts(1), texts(2)];
    execvp c"execvp" [path(0), texts(1)];
    execvpe c"execvpe" [path(0), texts(1), texts(2)];
    fexecve c"fexecve" [texts(1), texts(2)];
    execveat c"execveat" [path(1), texts(2), texts(3)];
    // Those of their arguments that are in registers.
    execl c"execl" [path(0), path(1), path(2), path(3), path(4), path(5)];
    execle c"execle" [path(0), path(1), path(2), path(3), path(4), path(5)];
    execlp c"execlp" [path(0), path(1), path(2), path(3), path(4), path(5)];
    // The child reads the actions and attributes in the memory of its parent, with all signals
    // blocked.
    posix_spawn c"posix_spawn" [opens(0, of::<i32>()), path(1), opens(2, PAGE), opens(3, PAGE), texts(4), texts(5)];
    posix_spawnp c"posix_spawnp" [opens(0, of::<i32>()), path(1), opens(2, PAGE), opens(3, PAGE), texts(4), texts(5)];
    system c"system" [path(0)];
    popen c"popen" [path(0)];
    // Files by their names.
    stat c"stat" [path(0), writes(1, of::<libc::stat>())];
    stat64 c"stat64" [path(0), writes(1, of::<libc::stat>())];
    lstat c"lstat" [path(0), writes(1, of::<libc::stat>())];
    lstat64 c"lstat64" [path(0), writes(1, of::<libc::stat>())];
    fstat c"fstat" [writes(1, of::<libc::stat>())];
    fstat64 c"fstat64" [writes(1, of::<libc::stat>())];
    fstatat c"fstatat" [path(1), writes(2, of::<libc::stat>())];
    fstatat64 c"fstatat64" [path(1), writes(2, of::<libc::stat>())];
    __xstat c"__xstat" [path(1), writes(2, of::<libc::stat>())];
    __xstat64 c"__xstat64" [path(1), writes(2, of::<libc::stat>())];
    __lxstat c"__lxstat" [path(1), writes(2, of::<libc::stat>())];
    __lxstat64 c"__lxstat64" [path(1), writes(2, of::<libc::stat>())];
    __fxstat c"__fxstat" [writes(2, of::<libc::stat>())];
    __fxstat64 c"__fxstat64" [writes(2, of::<libc::stat>())];
    __fxstatat c"__fxstatat" [path(2), writes(3, of::<libc::stat>())];
    __fxstatat64 c"__fxstatat64" [path(2), writes(3, of::<libc::stat>())];
    statx c"statx" [path(1), writes(4, of::<libc::statx>())];
    statfs c"statfs" [path(0), writes(1, of::<libc::statfs>())];
    statfs64 c"statfs64" [path(0), writes(1, of::<libc::statfs>())];
    fstatfs c"fstatfs" [writes(1, of::<libc::statfs>())];
    fstatfs64 c"fstatfs64" [writes(1, of::<libc::statfs>())];
    open c"open" [path(0)];
    open64 c"open64" [path(0)];
    __open c"__open" [path(0)];
    __open64 c"__open64" [path(0)];
    __open_2 c"__open_2" [path(0)];
    __open64_2 c"__open64_2" [path(0)];
    creat c"creat" [path(0)];
    creat64 c"creat64" [path(0)];
    access c"access" [path(0)];
    euidaccess c"euidaccess" [path(0)];
    chdir c"chdir" [path(0)];
    chroot c"chroot" [path(0)];
    mkdir c"mkdir" [path(0)];
    rmdir c"rmdir" [path(0)];
    unlink c"unlink" [path(0)];
    remove c"remove" [path(0)];
    chmod c"chmod" [path(0)];
    chown c"chown" [path(0)];
    lchown c"lchown" [path(0)];
    truncate c"truncate" [path(0)];
    truncate64 c"truncate64" [path(0)];
    mkfifo c"mkfifo" [path(0)];
    mknod c"mknod" [path(0)];
    opendir c"opendir" [path(0)];
    mkstemp c"mkstemp" [path(0)];
    mkstemp64 c"mkstemp64" [path(0)];
    mkostemp c"mkostemp" [path(0)];
    mkostemp64 c"mkostemp64" [path(0)];
    mkdtemp c"mkdtemp" [path(0)];
    statvfs c"statvfs" [path(0)];
    statvfs64 c"statvfs64" [path(0)];
    fopen c"fopen" [path(0)];
    fopen64 c"fopen64" [path(0)];
    freopen c"freopen" [path(0)];
    freopen64 c"freopen64" [path(0)];
    openat c"openat" [path(1)];
    openat64 c"openat64" [path(1)];
    __openat_2 c"__openat_2" [path(1)];
    __openat64_2 c"__openat64_2" [path(1)];
    faccessat c"faccessat" [path(1)];
    mkdirat c"mkdirat" [path(1)];
    unlinkat c"unlinkat" [path(1)];
    fchmodat c"fchmodat" [path(1)];
    fchownat c"fchownat" [path(1)];
    mkfifoat c"mkfifoat" [path(1)];
    mknodat c"mknodat" [path(1)];
    rename c"rename" [path(0), path(1)];
    link c"link" [path(0), path(1)];
    symlink c"symlink" [path(0), path(1)];
    renameat c"renameat" [path(1), path(3)];
    renameat2 c"renameat2" [path(1), path(3)];
    linkat c"linkat" [path(1), path(3)];
    symlinkat c"symlinkat" [path(0), path(2)];
    readlink c"readlink" [path(0), sized(1, 2)];
    __readlink_chk c"__readlink_chk" [path(0), sized(1, 2)];
    readlinkat c"readlinkat" [path(1), sized(2, 3)];
    __readlinkat_chk c"__readlinkat_chk" [path(1), sized(2, 3)];
    getcwd c"getcwd" [sized(0, 1)];
    __getcwd_chk c"__getcwd_chk" [sized(0, 1)];
    getdents64 c"getdents64" [sized(1, 2)];
    utime c"utime" [path(0), reads(1, of::<libc::utimbuf>())];
    utimes c"utimes" [path(0), reads(1, of::<[libc::timeval; 2]>())];
    utimensat c"utimensat" [path(1), reads(2, of::<[libc::timespec; 2]>())];
    futimens c"futimens" [reads(1, of::<[libc::timespec; 2]>())];
    fputs c"fputs" [path(0)];
    fputs_unlocked c"fputs_unlocked" [path(0)];
    puts c"puts" [path(0)];
    // Waiting for descriptors.
    poll c"poll" [items(0, 1, of::<libc::pollfd>())];
    __poll c"__poll" [items(0, 1, of::<libc::pollfd>())];
    __poll_chk c"__poll_chk" [items(0, 1, of::<libc::pollfd>())];
    ppoll c"ppoll" [
        items(0, 1, of::<libc::pollfd>()),
        opens(2, of::<libc::timespec>()),
        opens(3, of::<libc::sigset_t>()),
    ];
    __ppoll_chk c"__ppoll_chk" [
        items(0, 1, of::<libc::pollfd>()),
        opens(2, of::<libc::timespec>()),
        opens(3, of::<libc::sigset_t>()),
    ];
    select c"select" [
        opens(1, of::<libc::fd_set>()),
        opens(2, of::<libc::fd_set>()),
        opens(3, of::<libc::fd_set>()),
        opens(4, of::<libc::timeval>()),
    ];
    __select c"__select" [
        opens(1, of::<libc::fd_set>()),
        opens(2, of::<libc::fd_set>()),
        opens(3, of::<libc::fd_set>()),
        opens(4, of::<libc::timeval>()),
    ];
    pselect c"pselect" [
        opens(1, of::<libc::fd_set>()),
        opens(2, of::<libc::fd_set>()),
        opens(3, of::<libc::fd_set>()),
        opens(4, of::<libc::timespec>()),
        opens(5, of::<libc::sigset_t>()),
    ];
    epoll_wait c"epoll_wait" [items(1, 2, of::<libc::epoll_event>())];
    epoll_pwait c"epoll_pwait" [items(1, 2, of::<libc::epoll_event>()), opens(4, of::<libc::sigset_t>())];
    epoll_pwait2 c"epoll_pwait2" [
        items(1, 2, of::<libc::epoll_event>()),
        opens(3, of::<libc::timespec>()),
        opens(4, of::<libc::sigset_t>()),
    ];
    epoll_ctl c"epoll_ctl" [reads(3, of::<libc::epoll_event>())];
    pipe c"pipe" [writes(0, of::<[i32; 2]>())];
    pipe2 c"pipe2" [writes(0, of::<[i32; 2]>())];
    socketpair c"socketpair" [writes(3, of::<[i32; 2]>())];
    // Sockets, and data from descriptor to descriptor.
    accept c"accept" [opens(1, of::<libc::sockaddr_storage>()), opens(2, of::<i32>())];
    accept4 c"accept4" [opens(1, of::<libc::sockaddr_storage>()), opens(2, of::<i32>())];
    getsockname c"getsockname" [opens(1, of::<libc::sockaddr_storage>()), opens(2, of::<i32>())];
    getpeername c"getpeername" [opens(1, of::<libc::sockaddr_storage>()), opens(2, of::<i32>())];
    bind c"bind" [sized(1, 2)];
    connect c"connect" [sized(1, 2)];
    getsockopt c"getsockopt" [opens(3, PAGE), opens(4, of::<i32>())];
    setsockopt c"setsockopt" [sized(3, 4)];
    sendfile c"sendfile" [writes(2, of::<i64>())];
    sendfile64 c"sendfile64" [writes(2, of::<i64>())];
    splice c"splice" [opens(1, of::<i64>()), opens(3, of::<i64>())];
    copy_file_range c"copy_file_range" [opens(1, of::<i64>()), opens(3, of::<i64>())];
    // Time.
    nanosleep c"nanosleep" [reads(0, of::<libc::timespec>()), opens(1, of::<libc::timespec>())];
    __nanosleep c"__nanosleep" [reads(0, of::<libc::timespec>()), opens(1, of::<libc::timespec>())];
    clock_nanosleep c"clock_nanosleep" [
        reads(2, of::<libc::timespec>()),
        opens(3, of::<libc::timespec>()),
    ];
    clock_getres c"clock_getres" [writes(1, of::<libc::timespec>())];
    times c"times" [writes(0, of::<libc::tms>())];
    getitimer c"getitimer" [writes(1, of::<libc::itimerval>())];
    setitimer c"setitimer" [reads(1, of::<libc::itimerval>()), opens(2, of::<libc::itimerval>())];
    timer_settime c"timer_settime" [
        opens(2, of::<libc::itimerspec>()),
        opens(3, of::<libc::itimerspec>()),
    ];
    timerfd_settime c"timerfd_settime" [
        opens(2, of::<libc::itimerspec>()),
        opens(3, of::<libc::itimerspec>()),
    ];
    timer_gettime c"timer_gettime" [writes(1, of::<libc::itimerspec>())];
    timerfd_gettime c"timerfd_gettime" [writes(1, of::<libc::itimerspec>())];
    // Signals: contexts hold a mask, too.
    sigpending c"sigpending" [writes(0, of::<libc::sigset_t>())];
    sigsuspend c"sigsuspend" [opens(0, of::<libc::sigset_t>())];
    sigwait c"sigwait" [opens(0, of::<libc::sigset_t>()), opens(1, of::<i32>())];
    sigwaitinfo c"sigwaitinfo" [opens(0, of::<libc::sigset_t>()), opens(1, of::<libc::siginfo_t>())];
    sigtimedwait c"sigtimedwait" [
        opens(0, of::<libc::sigset_t>()),
        opens(1, of::<libc::siginfo_t>()),
        opens(2, of::<libc::timespec>()),
    ];
    signalfd c"signalfd" [opens(1, of::<libc::sigset_t>())];
    getcontext c"getcontext" [opens(0, of::<libc::ucontext_t>())];
    setcontext c"setcontext" [opens(0, of::<libc::ucontext_t>())];
    swapcontext c"swapcontext" [opens(0, of::<libc::ucontext_t>()), opens(1, of::<libc::ucontext_t>())];
    // The process and the system.
    uname c"uname" [writes(0, of::<libc::utsname>())];
    sysinfo c"sysinfo" [writes(0, of::<libc::sysinfo>())];
    getrusage c"getrusage" [writes(1, of::<libc::rusage>())];
    getrlimit c"getrlimit" [writes(1, of::<libc::rlimit>())];
    getrlimit64 c"getrlimit64" [writes(1, of::<libc::rlimit>())];
    setrlimit c"setrlimit" [reads(1, of::<libc::rlimit>())];
    setrlimit64 c"setrlimit64" [reads(1, of::<libc::rlimit>())];
    prlimit c"prlimit" [opens(2, of::<libc::rlimit>()), opens(3, of::<libc::rlimit>())];
    prlimit64 c"prlimit64" [opens(2, of::<libc::rlimit>()), opens(3, of::<libc::rlimit>())];
    sched_getaffinity c"sched_getaffinity" [sized(2, 1)];
    sched_setaffinity c"sched_setaffinity" [sized(2, 1)];
    getresuid c"getresuid" [writes(0, of::<u32>()), writes(1, of::<u32>()), writes(2, of::<u32>())];
    getresgid c"getresgid" [writes(0, of::<u32>()), writes(1, of::<u32>()), writes(2, of::<u32>())];
    getgroups c"getgroups" [opens(0, PAGE), opens(1, PAGE)];
    setgroups c"setgroups" [opens(0, PAGE), opens(1, PAGE)];
}
