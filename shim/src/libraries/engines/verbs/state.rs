//! What is known of ibverbs' objects: opened devices, memory that is registered, completion queues,
//! and work that is under way.
//!
//! Owns these tables. Does not read the program's structures, nor log: see the parent module.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use trace::Region;

use super::layout::ListEntry;
use crate::libraries::engines::work_queue::{Posted, WorkQueue};

/// The operations of an opened device that ours stand in front of.
#[derive(Clone, Copy)]
pub(super) struct Operations {
    pub poll_cq: usize,
    pub post_srq_recv: usize,
    pub post_send: usize,
    pub post_recv: usize,
}

/// An opened device, found without a lock: programs poll in tight loops.
struct Slot {
    context: AtomicUsize,
    poll_cq: AtomicUsize,
    post_srq_recv: AtomicUsize,
    post_send: AtomicUsize,
    post_recv: AtomicUsize,
}

/// So many devices at most; others are left alone.
const SLOTS: usize = 64;

static OPENED: [Slot; SLOTS] = [const {
    Slot {
        context: AtomicUsize::new(0),
        poll_cq: AtomicUsize::new(0),
        post_srq_recv: AtomicUsize::new(0),
        post_send: AtomicUsize::new(0),
        post_recv: AtomicUsize::new(0),
    }
}; SLOTS];

/// Holds a device's place while its operations are written.
const TAKEN: usize = 1;

/// A device was opened. Answers whether there was room for it.
pub(super) fn opened(context: usize, operations: Operations) -> bool {
    for slot in &OPENED {
        if slot.context.compare_exchange(0, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            slot.poll_cq.store(operations.poll_cq, Ordering::Relaxed);
            slot.post_srq_recv.store(operations.post_srq_recv, Ordering::Relaxed);
            slot.post_send.store(operations.post_send, Ordering::Relaxed);
            slot.post_recv.store(operations.post_recv, Ordering::Relaxed);
            slot.context.store(context, Ordering::Release);
            return true;
        }
    }
    false
}

/// The real operations of an opened device; `None`: it is not one of ours.
pub(super) fn operations(context: usize) -> Option<Operations> {
    let slot = OPENED.iter().find(|slot| slot.context.load(Ordering::Acquire) == context)?;
    Some(Operations {
        poll_cq: slot.poll_cq.load(Ordering::Relaxed),
        post_srq_recv: slot.post_srq_recv.load(Ordering::Relaxed),
        post_send: slot.post_send.load(Ordering::Relaxed),
        post_recv: slot.post_recv.load(Ordering::Relaxed),
    })
}

/// A device is closed.
pub(super) fn closed(context: usize) {
    if let Some(slot) = OPENED.iter().find(|slot| slot.context.load(Ordering::Acquire) == context) {
        slot.context.store(0, Ordering::Release);
    }
}

/// Registered memory.
#[derive(Clone, Copy)]
pub(super) struct Registered {
    /// The address by which work requests name its first byte.
    pub named: u64,
    /// Where that byte is in the process; `None`: not known.
    pub start: Option<u64>,
    pub length: u64,
}

/// What an entry of a work request names.
pub(super) enum Named {
    Bytes(Region),
    Nothing,
    /// Memory whose place in the process is not known.
    Unknown,
}

/// A queue of receives that several queue pairs share (`ibv_srq`).
#[derive(Default)]
pub(super) struct SharedQueue {
    receives: WorkQueue,
    /// Completions of all queue pairs that were seen to use it go to completion queues that are
    /// observed, and there is one.
    is_observed: bool,
    is_elsewhere: bool,
}

impl SharedQueue {
    /// All that is under way in it.
    pub(super) fn all(&mut self) -> Vec<Posted> {
        self.receives.all()
    }
}

/// The queues of a queue pair.
#[derive(Default)]
pub(super) struct Pair {
    pub sends: WorkQueue,
    pub receives: WorkQueue,
}

impl Pair {
    /// All that is under way in it.
    pub(super) fn all(&mut self) -> Vec<Posted> {
        let mut all = self.sends.all();
        all.extend(self.receives.all());
        all
    }
}

/// The tables. Objects are known by their addresses.
#[derive(Default)]
pub(super) struct State {
    /// By device and local key.
    regions: HashMap<(usize, u32), Registered>,
    /// Completion queues that are read by `ibv_poll_cq`.
    plain: HashSet<usize>,
    /// By device and number of the queue pair.
    pairs: HashMap<(usize, u32), Pair>,
    /// By device and queue.
    shared: HashMap<(usize, usize), SharedQueue>,
}

/// The tables, locked.
pub(super) fn lock() -> MutexGuard<'static, State> {
    static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    pub(super) fn register(&mut self, context: usize, key: u32, region: Registered) {
        self.regions.insert((context, key), region);
    }

    /// Takes memory out that is about to be deregistered. Once it is, another thread may be given
    /// the same key.
    pub(super) fn deregister(&mut self, context: usize, key: u32) -> Option<Registered> {
        self.regions.remove(&(context, key))
    }

    /// What an entry of a list names.
    pub(super) fn named(&self, context: usize, piece: ListEntry) -> Named {
        // A length of 0 means 2 GiB in ibverbs' specification; providers take it for nothing.
        if piece.length == 0 {
            return Named::Nothing;
        }
        let Some(region) = self.regions.get(&(context, piece.local_key)) else { return Named::Unknown };
        let offset = piece.address.wrapping_sub(region.named);
        // Bytes outside of the region are an error of the work request, which touches nothing.
        let is_within = offset.checked_add(piece.length.into()).is_some_and(|end| end <= region.length);
        match region.start {
            _ if !is_within => Named::Nothing,
            Some(start) => Named::Bytes(Region::linear(start.wrapping_add(offset), piece.length.into())),
            None => Named::Unknown,
        }
    }

    pub(super) fn made_queue(&mut self, queue: usize) {
        self.plain.insert(queue);
    }

    /// Takes a queue out that is about to be destroyed. Answers whether it was there.
    pub(super) fn take_queue(&mut self, queue: usize) -> bool {
        self.plain.remove(&queue)
    }

    /// Whether this completion queue's completions are seen.
    pub(super) fn is_plain(&self, queue: usize) -> bool {
        self.plain.contains(&queue)
    }

    pub(super) fn pair(&mut self, context: usize, number: u32) -> &mut Pair {
        self.pairs.entry((context, number)).or_default()
    }

    /// Takes a queue pair out that is about to be destroyed, or was reset. Once it is destroyed,
    /// another thread may be given one of the same number.
    pub(super) fn take_pair(&mut self, context: usize, number: u32) -> Pair {
        self.pairs.remove(&(context, number)).unwrap_or_default()
    }

    /// It was not destroyed.
    pub(super) fn put_pair_back(&mut self, context: usize, number: u32, pair: Pair) {
        self.pairs.entry((context, number)).or_insert(pair);
    }

    /// A queue pair uses a queue of receives that is shared, and this completion queue.
    pub(super) fn share(&mut self, context: usize, queue: usize, completions: usize) {
        let is_plain = self.is_plain(completions);
        let shared = self.shared.entry((context, queue)).or_default();
        shared.is_observed |= is_plain;
        shared.is_elsewhere |= !is_plain;
    }

    /// A queue of receives whose completions are all seen.
    pub(super) fn shared(&mut self, context: usize, queue: usize) -> Option<&mut WorkQueue> {
        let shared = self.shared.get_mut(&(context, queue))?;
        (shared.is_observed && !shared.is_elsewhere).then_some(&mut shared.receives)
    }

    /// Takes a shared queue out that is about to be destroyed.
    pub(super) fn take_shared(&mut self, context: usize, queue: usize) -> Option<SharedQueue> {
        self.shared.remove(&(context, queue))
    }

    /// It was not destroyed.
    pub(super) fn put_shared_back(&mut self, context: usize, queue: usize, shared: SharedQueue) {
        self.shared.entry((context, queue)).or_insert(shared);
    }

    /// A completion of sent work: what is over.
    pub(super) fn sent(&mut self, context: usize, pair: u32, number: u64) -> Vec<Posted> {
        self.pairs.get_mut(&(context, pair)).map_or_else(Vec::new, |pair| pair.sends.sent(number))
    }

    /// A completion of received work: what is over. Which shared queue it came from is not said:
    /// the number tells, in all of them.
    pub(super) fn received(&mut self, context: usize, pair: u32, number: u64) -> Vec<Posted> {
        let own = self.pairs.get_mut(&(context, pair)).and_then(|pair| pair.receives.received(number));
        if let Some(own) = own {
            return vec![own];
        }
        let shared = self.shared.iter_mut().filter(|((of, _), _)| *of == context);
        shared.filter_map(|(_, shared)| shared.receives.received(number)).collect()
    }

    /// A device is closed: all of its work is over.
    pub(super) fn end_device(&mut self, context: usize) -> Vec<Posted> {
        self.regions.retain(|(of, _), _| *of != context);
        let mut ended = Vec::new();
        for (_, mut pair) in self.pairs.extract_if(|(of, _), _| *of == context) {
            ended.extend(pair.all());
        }
        for (_, mut shared) in self.shared.extract_if(|(of, _), _| *of == context) {
            ended.extend(shared.all());
        }
        ended
    }
}
