//! Host threads with timelines of their own: what one of them knows reaches the others only along
//! an edge.

use crate::common::World;
use order::Options;
use trace::*;

const T1: ThreadId = ThreadId(1);
const T2: ThreadId = ThreadId(2);
const T3: ThreadId = ThreadId(3);
const MUTEX: u64 = 0x1000;
const OTHER: u64 = 0x2000;

struct Threads {
    w: World,
    next_sync: u32,
}

impl Threads {
    /// Threads 1 and 2 have been seen to start before anything happened.
    fn new() -> Self {
        Self::with(true)
    }

    fn with(follow: bool) -> Self {
        let mut options = Options::default();
        options.host_threads = true;
        let mut t = Self { w: World::with(options), next_sync: 500 };
        if follow {
            t.w.op(Op::HostThreads {});
        }
        t.starts(T2, 77);
        t
    }

    fn by(&mut self, thread: ThreadId, op: Op<'_>) -> Epoch {
        self.w.engine.apply(&op, thread)
    }

    fn launch(&mut self, thread: ThreadId, stream: StreamId) -> Epoch {
        let shape = LaunchShape::new([1; 3], [1; 3]);
        self.by(thread, Op::Launch { stream, kernel: KernelId(1), shape, params: &[] })
    }

    fn launch_after(&mut self, thread: ThreadId, stream: StreamId, earlier: Epoch) -> bool {
        self.launch(thread, stream);
        self.w.after(earlier)
    }

    fn sync(&mut self, thread: ThreadId, stream: StreamId) {
        self.next_sync += 1;
        let sync = SyncId(self.next_sync);
        let (scope, event, context) = (SyncScope::Stream, EventId::NONE, ContextId::NONE);
        self.by(thread, Op::SyncBegin { sync, scope, stream, event, context });
        self.by(thread, Op::SyncEnd { sync });
    }

    fn release(&mut self, thread: ThreadId, object: u64) {
        self.by(thread, Op::HostEdge { object, acquire: false, start: false });
    }

    fn acquire(&mut self, thread: ThreadId, object: u64) {
        self.by(thread, Op::HostEdge { object, acquire: true, start: false });
    }

    /// A thread starts; who made it left what it knew with `object`.
    fn starts(&mut self, thread: ThreadId, object: u64) {
        self.by(thread, Op::HostEdge { object, acquire: true, start: true });
    }
}

/// C11, 5.1.2.4: what a thread has seen is another one's only by synchronisation.
#[test]
fn a_wait_is_known_to_the_thread_that_waited() {
    let mut t = Threads::new();
    let [a, b, c] = t.w.streams();
    let k = t.launch(T1, a);
    t.sync(T1, a);
    assert!(t.launch_after(T1, b, k), "silent: the same thread");
    assert!(!t.launch_after(T2, c, k), "reported: nothing told the other one");
    assert!(!t.w.host_after(k), "so it must not be forgotten");
}

/// POSIX, memory synchronization: `pthread_mutex_unlock` before the next `pthread_mutex_lock`.
#[test]
fn a_mutex_hands_knowledge_over() {
    let mut t = Threads::new();
    let [a, b, c] = t.w.streams();
    let k = t.launch(T1, a);
    t.sync(T1, a);
    t.release(T1, MUTEX);
    t.acquire(T2, OTHER);
    assert!(!t.launch_after(T2, b, k), "reported: another mutex");
    t.acquire(T2, MUTEX);
    assert!(t.launch_after(T2, c, k), "silent");
    assert!(t.w.host_after(k), "all threads know, so the floor does");
    let late = t.launch(T1, a);
    t.sync(T1, a);
    t.acquire(T2, MUTEX);
    assert!(!t.launch_after(T2, c, late), "reported: synchronised after the mutex was released");
}

/// The edge carries what the thread knows, not what its streams still have to do.
#[test]
fn handing_over_is_not_finishing() {
    let mut t = Threads::new();
    let [a, b] = t.w.streams();
    let k = t.launch(T1, a);
    t.release(T1, MUTEX);
    t.acquire(T2, MUTEX);
    assert!(!t.launch_after(T2, b, k), "reported: a queue that hands an index over, and no event with it");
    assert!(t.launch_after(T2, a, k), "silent: one stream is in order whoever uses it");
}

/// POSIX: semaphores and barriers gather what several threads knew.
#[test]
fn several_may_leave_something_with_one_object() {
    let mut t = Threads::new();
    t.starts(T3, 78);
    let [a, b, c] = t.w.streams();
    let (ka, kb) = (t.launch(T1, a), t.launch(T2, b));
    t.sync(T1, a);
    t.sync(T2, b);
    // A barrier: all arrive, then all leave.
    t.release(T1, OTHER);
    t.release(T2, OTHER);
    t.acquire(T3, OTHER);
    t.launch(T3, c);
    assert!(t.w.after(ka) && t.w.after(kb));
}

/// POSIX: `pthread_create`, `pthread_join`.
#[test]
fn a_thread_starts_from_who_made_it() {
    let mut t = Threads::new();
    let [a, b, c] = t.w.streams();
    let before = t.launch(T1, a);
    t.sync(T1, a);
    t.release(T1, 90);
    let after = t.launch(T1, b);
    t.sync(T1, b);
    t.starts(T3, 90);
    t.launch(T3, c);
    assert!(t.w.after(before), "silent: synchronised before it was made");
    assert!(!t.w.after(after), "reported");
    // Joining it: what it had seen finish when it ended.
    let k = t.launch(T3, c);
    t.sync(T3, c);
    t.release(T3, 91);
    assert!(!t.launch_after(T1, a, k), "reported: not joined yet");
    t.acquire(T1, 91);
    assert!(t.launch_after(T1, a, k), "silent");
}

/// A thread of the driver, or one made before the tool was loaded: less than everything would be a
/// guess.
#[test]
fn a_thread_whose_start_was_not_seen_knows_everything() {
    let mut t = Threads::new();
    let [a, b] = t.w.streams();
    let k = t.launch(T1, a);
    t.sync(T1, a);
    assert!(t.launch_after(T3, b, k));
}

/// An event recorded by one thread and waited for by another orders the streams; it needs no edge
/// between the threads.
#[test]
fn events_order_streams_whoever_uses_them() {
    let mut t = Threads::new();
    let [a, b] = t.w.streams();
    let k = t.launch(T1, a);
    t.by(T1, Op::EventRecord { event: EventId(1), stream: a, mode: EventMode::Plain });
    t.by(T2, Op::StreamWait { stream: b, event: EventId(1), mode: EventMode::Plain });
    assert!(t.launch_after(T2, b, k));
}

/// Freeing on one thread what another one goes on using, without an edge.
#[test]
fn the_host_itself_is_several() {
    let mut t = Threads::new();
    let [a, b] = t.w.streams();
    let freed = t.by(T1, Op::Free { ptr: 0x10, kind: FreeKind::Unmap, stream: StreamId::NONE });
    assert!(t.launch_after(T1, a, freed), "silent");
    assert!(!t.launch_after(T2, b, freed), "reported");
    t.release(T1, MUTEX);
    t.acquire(T2, MUTEX);
    assert!(t.launch_after(T2, b, freed), "silent");
}

/// A trace without edges was recorded without `--host-order threads`.
#[test]
fn without_edges_in_the_trace_threads_share_one_timeline() {
    let mut t = Threads::with(false);
    let [a, b] = t.w.streams();
    let k = t.launch(T1, a);
    t.sync(T1, a);
    assert!(t.launch_after(T2, b, k));
    assert!(t.w.host_after(k));
}

/// One thread alone is the merged timeline: everything that it learns reaches the floor.
#[test]
fn one_thread_keeps_nothing_to_itself() {
    let mut options = Options::default();
    options.host_threads = true;
    let mut w = World::with(options);
    w.op(Op::HostThreads {});
    let [a, b] = w.streams();
    for _ in 0..100 {
        let k = w.launch(a);
        w.record(1, a);
        w.wait(b, 1);
        let l = w.launch(b);
        w.sync_context();
        assert!(w.host_after(k) && w.host_after(l));
    }
}

/// Follows: what several left with an object is not one thread's knowledge, however much that
/// thread has acquired since. (Found by `property_threads`: over many streams, clocks of one thread
/// are compared by age.)
#[test]
fn what_others_left_is_not_lost_among_many_streams() {
    let mut t = Threads::new();
    t.starts(T3, 78);
    let streams: [StreamId; 17] = t.w.streams();
    let own = streams[16];
    let learn = |t: &mut Threads, thread: ThreadId, streams: &[StreamId]| {
        streams.iter().map(|s| (t.launch(T1, *s), t.sync(thread, *s)).0).collect::<Vec<_>>()
    };
    learn(&mut t, T2, &streams[..8]);
    let k = learn(&mut t, T3, &streams[8..16])[0];
    t.release(T3, OTHER);
    t.release(T2, OTHER);
    learn(&mut t, T2, &streams[..8]);
    assert!(!t.launch_after(T2, own, k), "reported: left there, not taken yet");
    t.acquire(T2, OTHER);
    assert!(t.launch_after(T2, own, k), "silent: thread 3 had left it");
}
