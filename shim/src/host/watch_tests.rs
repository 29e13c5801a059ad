//! Watches and the pages of their bytes, while a copy may run and when a thread has waited.

use super::*;
use order::Policy;
use std::sync::{Mutex, MutexGuard, PoisonError};
use trace::{ContextId, EventId, MemoryKind, PoolId, StreamId, StreamKind, SyncId, SyncScope, ThreadId};

const STREAM: StreamId = StreamId(1);
const PAGE: usize = 4096;

/// The table of protected pages is one for the process, and knows watches by their numbers.
static ALONE: Mutex<()> = Mutex::new(());

/// One page that copies use, and a copy that was enqueued.
struct Scene {
    _alone: MutexGuard<'static, ()>,
    engine: Engine,
    watches: Watches,
    start: u64,
    copy: Epoch,
}

impl Scene {
    fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, where nothing else is.
        let page = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), PAGE, rights, flags, -1, 0)
        };
        assert_ne!(page, libc::MAP_FAILED);
        let (start, context) = (page as u64, ContextId(1));
        let (mut engine, mut watches) = (Engine::new(Policy::Observed), Watches::new(true));
        engine.apply(&Op::ContextCreate { context, device: 0, handle: 1 }, ThreadId(1));
        let made = Op::StreamCreate { stream: STREAM, context, kind: StreamKind::NonBlocking, priority: 0, handle: 1 };
        engine.apply(&made, ThreadId(1));
        let pinned = MemoryKind::PinnedHost;
        let (size, stream, pool) = (PAGE as u64, StreamId::NONE, PoolId(0));
        watches.note(&Op::Alloc { ptr: start, size, kind: pinned, context, stream, pool, flags: 0 });
        let work = Op::Prefetch { stream: STREAM, region: Region::linear(start, size), discard: false };
        let copy = engine.apply(&work, ThreadId(1));
        Self { _alone: alone, engine, watches, start, copy }
    }

    /// Watches the page for the copy.
    fn watch(&mut self) -> u32 {
        let region = Region::linear(self.start, PAGE as u64);
        let look = self
            .watches
            .begin(&self.engine, self.copy, &region, Watched::Pinned, |_, _| Some(PAGE as u64))
            .expect("pinned");
        assert!(self.watches.ready(&self.engine, look.id, look.seed, Some([0; checksum::PARTS])));
        self.watches.protect(look.id);
        look.id
    }

    /// The host waits for the stream.
    fn wait(&mut self) {
        let (sync, scope) = (SyncId(1), SyncScope::Stream);
        let begin = Op::SyncBegin { sync, scope, stream: STREAM, event: EventId(0), context: ContextId(1) };
        self.engine.apply(&begin, ThreadId(2));
        self.engine.apply(&Op::SyncEnd { sync }, ThreadId(2));
    }

    fn may_be_written(&self) -> bool {
        page_protection::is_ordinary(self.start, self.start + PAGE as u64)
    }
}

#[test]
fn pages_are_free_once_a_thread_has_waited_although_another_still_checks() {
    let mut scene = Scene::new();
    let id = scene.watch();
    assert!(!scene.may_be_written());
    scene.wait();
    // The first thread that learns of it sums the bytes up, outside of the lock.
    assert_eq!(scene.watches.next_ended(&scene.engine, None).map(|look| look.id), Some(id));
    assert!(!scene.may_be_written());
    // The second one returns to the program, which may write now.
    assert!(scene.watches.next_ended(&scene.engine, None).is_none());
    assert!(scene.may_be_written());
    assert_eq!(scene.watches.changed(id, &[1; checksum::PARTS]), None);
    scene.watches.settle(id, false);
    assert!(scene.watches.is_empty());
}

#[test]
fn pages_stay_protected_while_the_copy_may_run() {
    let mut scene = Scene::new();
    let id = scene.watch();
    assert!(scene.watches.next_ended(&scene.engine, None).is_none());
    assert!(!scene.may_be_written());
    let region = Region::linear(scene.start, 8);
    assert_eq!(scene.watches.next_reused(&region, u32::MAX, 0).map(|look| look.id), Some(id));
    scene.watches.settle(id, true);
    assert!(!scene.may_be_written());
    scene.watches.leave(scene.start, scene.start + PAGE as u64);
    assert!(scene.may_be_written());
}

/// The touch of a page says whether the word that the copy waits for had its value then.
#[test]
fn a_touch_tells_whether_the_copy_was_still_held_back() {
    for (value, registered, met) in [(0_u32, false, false), (5, false, true), (9, false, true), (5, true, false)] {
        let mut scene = Scene::new();
        let (word, half) = (scene.start + PAGE as u64 - 64, Region::linear(scene.start, PAGE as u64 / 2));
        if registered {
            let (ptr, size, kind) = (scene.start, PAGE as u64, MemoryKind::RegisteredHost);
            let (context, stream, pool) = (ContextId(1), StreamId::NONE, PoolId(0));
            scene.watches.note(&Op::Alloc { ptr, size, kind, context, stream, pool, flags: 0 });
        }
        // SAFETY: the scene's own page.
        unsafe { *(word as *mut u32) = value };
        let compare = trace::WaitCompare::GreaterEqual;
        scene.engine.apply(&Op::WaitValue { stream: STREAM, address: word, value: 5, width: 4, compare }, ThreadId(1));
        let work = Op::Prefetch { stream: STREAM, region: half, discard: false };
        scene.copy = scene.engine.apply(&work, ThreadId(1));
        let look = scene.watches.begin(&scene.engine, scene.copy, &half, Watched::Pinned, |_, _| Some(PAGE as u64));
        let look = look.expect("pinned");
        assert!(scene.watches.ready(&scene.engine, look.id, look.seed, Some([0; checksum::PARTS])));
        scene.watches.protect(look.id);
        assert!(!scene.may_be_written());
        page_protection::touched(scene.start, scene.start + 4, true, false, |_| false);
        let mut touches = Vec::new();
        page_protection::drain(|touch| touches.push((touch.watch, touch.waits_met)));
        assert_eq!(touches, [(look.id, met)], "{value} {registered}");
    }
}
