//! Functions of the C library that ask the kernel about clocks, threads and the system, or set
//! something there.
//!
//! Owns the table of those that are not as common as the ones in [`super::structures`]. Not
//! `clock_gettime`: it gets to the kernel for few clocks, and would cost all programs for these.

use super::pieces::{PAGE, of, opens, path, reads, sized, writes};
use super::{calls, passing};

passing! {
    clock_settime c"clock_settime" [reads(1, of::<libc::timespec>())];
    clock_adjtime c"clock_adjtime" [opens(1, PAGE)];
    adjtimex c"adjtimex" [opens(0, PAGE)];
    ntp_adjtime c"ntp_adjtime" [opens(0, PAGE)];
    ntp_gettime c"ntp_gettime" [opens(0, PAGE)];
    ntp_gettimex c"ntp_gettimex" [opens(0, PAGE)];
    adjtime c"adjtime" [opens(0, of::<libc::timeval>()), opens(1, of::<libc::timeval>())];
    settimeofday c"settimeofday" [opens(0, of::<libc::timeval>()), opens(1, 8)];
    timer_create c"timer_create" [opens(1, of::<libc::sigevent>()), opens(2, 8)];
    thrd_sleep c"thrd_sleep" [reads(0, of::<libc::timespec>()), opens(1, of::<libc::timespec>())];
    sched_getparam c"sched_getparam" [writes(1, of::<libc::sched_param>())];
    sched_setparam c"sched_setparam" [reads(1, of::<libc::sched_param>())];
    sched_setscheduler c"sched_setscheduler" [reads(2, of::<libc::sched_param>())];
    sched_rr_get_interval c"sched_rr_get_interval" [writes(1, of::<libc::timespec>())];
    pthread_setname_np c"pthread_setname_np" [path(1)];
    pthread_getname_np c"pthread_getname_np" [sized(1, 2)];
    pthread_setaffinity_np c"pthread_setaffinity_np" [sized(2, 1)];
    pthread_getaffinity_np c"pthread_getaffinity_np" [sized(2, 1)];
    getentropy c"getentropy" [sized(0, 1)];
    klogctl c"klogctl" [sized(1, 2)];
    sethostname c"sethostname" [sized(0, 1)];
    setdomainname c"setdomainname" [sized(0, 1)];
    capget c"capget" [opens(0, PAGE), opens(1, PAGE)];
    capset c"capset" [opens(0, PAGE), opens(1, PAGE)];
    quotactl c"quotactl" [path(1), opens(3, PAGE)];
    ptrace c"ptrace" [opens(3, PAGE)];
}
