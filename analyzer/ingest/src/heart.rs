//! Tells the program that its analyzer lives, and the moment that it does not.
//!
//! Owns the thread that does so for one ring, and looks with each beat at what the program takes of
//! the cores ([`crate::contention`]): it increments the heartbeat, even while the reading
//! thread is busy (symbolisation takes its time), and it is the owner of a robust futex in the
//! header. When this process is killed, the kernel marks that word (`FUTEX_OWNER_DIED`,
//! get_robust_list(2)), and the program can say at its end that nobody has checked it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use trace::ring::{Ring, owner};

use crate::contention::Load;

/// Pause between two beats.
const PAUSE: Duration = Duration::from_millis(20);

/// Keeps a ring's heart beating while it lives.
pub(crate) struct Heart {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Heart {
    /// Begins to beat, and to look at the load, if there is one to look at.
    pub(crate) fn beat(ring: &Arc<Ring>, mut load: Option<Load>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (ring, stopped) = (Arc::clone(ring), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            owned(&ring.header().owner, || {
                while !stopped.load(Ordering::Relaxed) {
                    ring.header().heartbeat.fetch_add(1, Ordering::Relaxed);
                    if let Some(load) = &mut load {
                        load.look(Instant::now());
                    }
                    std::thread::sleep(PAUSE);
                }
            });
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The kernel's `struct robust_list` and `struct robust_list_head`. They lie in this process, out
/// of the program's reach; only the word is shared.
#[repr(C)]
struct Entry {
    next: *const Entry,
}

#[repr(C)]
struct Head {
    list: Entry,
    word_offset: libc::c_long,
    pending: *const Entry,
}

/// Runs `work` on this thread as the owner of `word`.
fn owned(word: &AtomicU32, work: impl FnOnce()) {
    let mut entry = Entry { next: std::ptr::null() };
    let mut head = Head { list: Entry { next: std::ptr::null() }, word_offset: 0, pending: std::ptr::null() };
    head.word_offset = (std::ptr::from_ref(word) as isize).wrapping_sub(&raw const entry as isize) as libc::c_long;
    head.list.next = &raw const entry;
    entry.next = &raw const head.list;
    // SAFETY: both structures outlive the registration, which ends below. The C library's own list
    // of this thread is empty: the thread takes no robust mutex.
    let marked = unsafe { libc::syscall(libc::SYS_set_robust_list, &raw const head, size_of::<Head>()) } == 0;
    // SAFETY: gettid has no preconditions.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    word.store(if marked { thread } else { owner::UNMARKED }, Ordering::Release);
    work();
    word.store(owner::UNMARKED, Ordering::Release);
    if marked {
        // An empty list: the end of this thread marks nothing.
        let empty = Head { list: Entry { next: std::ptr::null() }, word_offset: 0, pending: std::ptr::null() };
        let empty = Box::leak(Box::new(empty));
        empty.list.next = &raw const empty.list;
        // SAFETY: the list is never freed.
        unsafe { libc::syscall(libc::SYS_set_robust_list, std::ptr::from_ref::<Head>(empty), size_of::<Head>()) };
    }
    // What the kernel was told of lived until here.
    std::hint::black_box((&entry, &head));
}
