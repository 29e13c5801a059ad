//! The synchronisation of host threads, as the library beside this one reports it (`--host-order
//! threads`, crate `shim-threads`).
//!
//! Owns which of it is worth an op: programs lock mutexes by the million. An op is needed only when
//! knowledge of CUDA's work moves from one thread to another. So a release is left out while the
//! thread has made no op since its last release of that object, and an acquisition while no release
//! has been logged that the thread has not seen already.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use trace::Op;

use crate::log::call_names::HOST_THREADS;
use crate::observe::{Phase, observe};
use crate::runtime::{lifecycle, thread_state};

/// Objects whose state is remembered. Objects that share a slot are logged more often than needed.
const OBJECTS: usize = 4096;

/// How many releases were logged for the objects that share each slot.
static RELEASES: [AtomicU64; OBJECTS] = [const { AtomicU64::new(0) }; OBJECTS];

const RECENT: usize = 64;

thread_local! {
    /// What this thread released and acquired last, by object: the object, how many ops the thread
    /// had made at its release, and how many releases it has seen.
    static RECENT_EDGES: [Cell<(u64, u64, u64)>; RECENT] = const { [const { Cell::new((0, 0, 0)) }; RECENT] };
}

fn spread(object: u64) -> u64 {
    object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// Whether a release or acquisition must be logged; remembers that it was.
fn is_news(object: u64, acquire: bool) -> bool {
    let slot = &RELEASES[spread(object) as usize % OBJECTS];
    let changes = thread_state::with(|l| l.ops.get());
    let news = RECENT_EDGES.try_with(|recent| {
        let cell = &recent[spread(object) as usize % RECENT];
        let (known, released_at, seen_releases) = cell.get();
        let (released_at, seen_releases) = if known == object { (released_at, seen_releases) } else { (0, 0) };
        if acquire {
            let releases = slot.load(Ordering::Acquire);
            // No thread that has made an op has ever released an object of this slot.
            if releases == 0 || releases == seen_releases {
                return false;
            }
            cell.set((object, released_at, releases));
        } else {
            if changes == 0 || changes == released_at {
                return false;
            }
            let releases = slot.fetch_add(1, Ordering::AcqRel) + 1;
            cell.set((object, changes, releases));
        }
        true
    });
    news.unwrap_or(false)
}

/// A host thread releases or acquires an object. Called by the library beside this one.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn streamsan_host_edge(object: u64, acquire: i32) {
    let acquire = acquire != 0;
    if !lifecycle::is_running() || !is_news(object, acquire) {
        return;
    }
    observe(HOST_THREADS, 0, Phase::Before, |cx| {
        cx.without_stack().log(&Op::HostEdge { object, acquire, start: false });
    });
}

/// A host thread starts, after the last release of this object by its creator. Called by the
/// library beside this one.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn streamsan_host_thread(object: u64) {
    thread_state::with(|l| l.start.set(object));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_news_is_logged() {
        const MUTEX: u64 = 0x7fff_1000;
        assert!(!is_news(MUTEX, false), "a thread that made no op has nothing to pass on");
        assert!(!is_news(MUTEX, true), "and no other thread has");
        thread_state::note_op();
        assert!(is_news(MUTEX, false));
        assert!(!is_news(MUTEX, false), "nothing new since");
        assert!(!is_news(MUTEX, true), "its own");
        let other = std::thread::spawn(|| {
            assert!(is_news(MUTEX, true) && !is_news(MUTEX, true));
            thread_state::note_op();
            assert!(is_news(MUTEX, false));
        });
        assert!(other.join().is_ok());
        assert!(is_news(MUTEX, true));
    }

    #[test]
    fn a_start_is_taken_once() {
        streamsan_host_thread(5);
        assert_eq!((thread_state::take_start(), thread_state::take_start()), (Some(5), None));
    }
}
