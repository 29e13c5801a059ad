//! Threads of the simulator's own in the program's process.
//!
//! Does not know what they do, and keeps no list of them.

/// Starts a thread that takes no signals: they belong to the program's own threads. `stack` is in
/// bytes. False where the system gives no thread.
pub(crate) fn spawn(name: &str, stack: usize, work: impl FnOnce() + Send + 'static) -> bool {
    // SAFETY: plain signal-mask calls on locals; the mask of this thread is restored below.
    let old = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        old
    };
    let started = std::thread::Builder::new().name(name.into()).stack_size(stack).spawn(work).is_ok();
    // SAFETY: restores the mask saved above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut()) };
    started
}
