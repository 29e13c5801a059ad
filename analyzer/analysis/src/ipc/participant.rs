//! A participant: one process's end of the channel to the others.
//!
//! Owns which memory and which events of the process are shared, and since when it reports its
//! accesses to them. A process that shares nothing sends nothing.

use order::{AwaitedWord, ClockSnapshot};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};
use trace::{Epoch, EventId, SyncId};

use super::lock;
use crate::ipc::exchange::{Exchange, Message, PeerProcess};
use crate::ipc::signals::{Signals, Words};
use detect::memory::{Access, AllocationId, Exclusion, Lock};

/// Offsets in shared memory count from here, so that bytes below the exported address have an
/// offset too.
pub(crate) const BASE: u64 = 1 << 50;

/// Maximum number of call sites of a process.
const MAX_SITES: usize = 1 << 14;

/// One process of a run.
pub struct Member {
    id: u32,
    exchange: Arc<Mutex<Exchange>>,
    now: u64,
    shares: bool,
    /// Shared events: their names, and the number of the record that was sent last.
    events: FxHashMap<EventId, (Arc<[u8]>, u64)>,
    /// Shared memory: the shift to subtract from its addresses.
    memory: FxHashMap<AllocationId, u64>,
    waits: FxHashMap<SyncId, (Arc<[u8]>, u64)>,
    sites: FxHashMap<(SiteKey, Details), Access>,
    changes: u64,
}

/// The key of one side of a finding.
type SiteKey =
    (trace::StackId, trace::KernelId, u32, detect::memory::AccessKind, trace::StreamId, detect::memory::Cause);

/// What accesses of one site may differ in, and what the reason for an inexact extent depends on.
type Details = (Option<u32>, detect::memory::Precision);

/// The details of an access.
pub(crate) fn details(access: &Access) -> Details {
    (access.site.param, access.extent.precision)
}

/// The key of an access.
pub(crate) fn site_key(access: &Access) -> SiteKey {
    let s = &access.site;
    (s.stack, s.kernel, s.node, access.kind, s.stream, s.cause)
}

impl Member {
    pub(crate) fn new(id: u32, exchange: Arc<Mutex<Exchange>>) -> Self {
        Self {
            id,
            exchange,
            now: 0,
            shares: false,
            events: FxHashMap::default(),
            memory: FxHashMap::default(),
            waits: FxHashMap::default(),
            sites: FxHashMap::default(),
            changes: 0,
        }
    }

    /// Its number in the run.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Whether it shares memory or events.
    pub(crate) fn shares(&self) -> bool {
        self.shares
    }

    /// Sets the time of the messages that follow.
    pub(crate) fn clock(&mut self, ns: u64) {
        self.now = self.now.max(ns);
    }

    fn send(&mut self, message: Message) {
        self.shares = true;
        lock(&self.exchange).send(self.id, self.now, message);
    }

    /// Every message from before this time has been sent.
    pub(crate) fn reached(&self, ns: u64) {
        lock(&self.exchange).reached(self.id, ns);
    }

    /// An address of an allocation gets a name that other processes can use. False: the allocation
    /// is shared already.
    pub(crate) fn memory(&mut self, root: AllocationId, ptr: u64, key: &[u8], imported: bool) -> bool {
        let is_new = !self.memory.contains_key(&root);
        let base = *self.memory.entry(root).or_insert(ptr);
        let at = BASE.wrapping_add(ptr.wrapping_sub(base));
        self.send(Message::Memory { root, key: key.into(), at, imported });
        is_new
    }

    /// The process touches shared memory. `clock`: what had finished by then; `None` when it was
    /// before the memory was shared.
    pub(crate) fn access(&mut self, root: AllocationId, access: &Access, clock: Option<ClockSnapshot>) {
        let Some(base) = self.memory.get(&root) else { return };
        let moved = access.extent.clone().moved(BASE.wrapping_sub(*base));
        // Another process has the lock at another address, and the words that select.
        let Exclusion { lock, reach, .. } = access.exclusion;
        let exclusion = Exclusion { lock: lock.map(Lock::anywhere), reach, ..Exclusion::NONE };
        let access = Access { extent: moved, exclusion, ..access.clone() };
        if self.sites.len() < MAX_SITES {
            self.sites.entry((site_key(&access), details(&access))).or_insert_with(|| access.clone());
        }
        // Asked now: once the wait is over, the clock knows of it no longer.
        let behind = clock.as_ref().filter(|clock| clock.clock().is_behind_open_wait());
        let awaits = behind.map_or_else(Vec::new, |clock| clock.awaited_words().collect());
        self.send(Message::Access { root, access, clock, awaits });
    }

    /// Shared memory ends.
    pub(crate) fn free(&mut self, root: AllocationId) {
        if self.memory.remove(&root).is_some() {
            self.send(Message::Gone { root });
        }
    }

    /// An event gets a name that other processes can use. `record` and `clock` are those of its
    /// latest record.
    pub(crate) fn event(&mut self, event: EventId, key: &[u8], record: u64, clock: Option<ClockSnapshot>) {
        self.shares = true;
        if self.events.contains_key(&event) {
            return;
        }
        let key: Arc<[u8]> = key.into();
        self.events.insert(event, (key.clone(), record));
        if let Some(clock) = clock {
            self.send(Message::Record { key, clock });
        }
    }

    /// The event may have been recorded: `record` is the number of its latest record.
    pub(crate) fn recorded(&mut self, event: EventId, record: u64, clock: impl FnOnce() -> Option<ClockSnapshot>) {
        let Some((key, sent)) = self.events.get_mut(&event) else { return };
        if *sent == record {
            return;
        }
        *sent = record;
        let key = key.clone();
        if let Some(clock) = clock() {
            self.send(Message::Record { key, clock });
        }
    }

    /// The latest record of an event is another process's.
    pub(crate) fn recorded_by_others(&mut self, event: EventId, record: u64) {
        if let Some((_, sent)) = self.events.get_mut(&event) {
            *sent = record;
        }
    }

    /// Events that are shared.
    pub(crate) fn events(&self) -> Vec<EventId> {
        self.events.keys().copied().collect()
    }

    /// An op waits for a shared event.
    pub(crate) fn waits(&mut self, event: EventId, epoch: Epoch) {
        if let Some((key, _)) = self.events.get(&event) {
            let key = key.clone();
            self.send(Message::Wait { key, epoch });
        }
    }

    /// A host thread begins to wait for an event.
    pub(crate) fn sync_begins(&mut self, sync: SyncId, event: EventId) {
        if let Some((key, _)) = self.events.get(&event) {
            self.waits.insert(sync, (key.clone(), self.now));
        }
    }

    /// A host thread has waited.
    pub(crate) fn sync_ends(&mut self, sync: SyncId) {
        if let Some((key, began)) = self.waits.remove(&sync) {
            self.send(Message::HostWaited { key, began });
        }
    }

    /// A query found a shared event complete.
    pub(crate) fn reached_event(&mut self, event: EventId) {
        if let Some((key, _)) = self.events.get(&event) {
            let (key, began) = (key.clone(), self.now);
            self.send(Message::HostWaited { key, began });
        }
    }

    /// Forgets an event.
    pub(crate) fn forget_event(&mut self, event: EventId) {
        self.events.remove(&event);
    }

    /// The host may have seen something finish: `changes` counts that.
    pub(crate) fn host(&mut self, changes: u64, clock: impl FnOnce() -> ClockSnapshot) {
        if self.shares && self.changes != changes {
            self.changes = changes;
            self.send(Message::Host { clock: clock() });
        }
    }

    /// A kernel is launched that waits for kernels of other processes, or may (`anywhere`).
    pub(crate) fn kernel_waits(&mut self, epoch: Epoch, anywhere: bool) {
        self.send(Message::KernelWaits { epoch, anywhere });
    }

    /// A place in shared memory, as other processes count.
    fn place(&self, root: AllocationId, address: u64) -> Option<u64> {
        self.memory.get(&root).map(|base| BASE.wrapping_add(address.wrapping_sub(*base)))
    }

    /// Places in shared memory, as other processes count. `None`: one of them is not known there.
    fn places(&self, words: &[(AllocationId, u64)]) -> Option<Words> {
        words.iter().map(|(root, address)| Some((*root, self.place(*root, *address)?))).collect()
    }

    /// A kernel of PyTorch's symmetric memory is launched, and its accesses are told next. It
    /// updates these words of signal pads; `None`: which they are is not known. Answers whether
    /// that counts.
    pub(crate) fn signals(
        &mut self,
        words: Option<&[(AllocationId, u64)]>,
        epoch: Epoch,
        clock: ClockSnapshot,
    ) -> bool {
        let words = words.and_then(|words| self.places(words));
        let is_known = words.is_some();
        match words {
            Some(words) => {
                self.send(Message::Signals(Signals::Sets { words: words.clone(), epoch, clock }));
                self.send(Message::Signals(Signals::Awaits { words, epoch }));
            }
            None => self.send(Message::SignalsUnknown),
        }
        is_known
    }

    /// The accesses of that kernel have been told.
    pub(crate) fn signals_end(&mut self, epoch: Epoch) {
        self.send(Message::Signals(Signals::Ends { epoch }));
        self.send(Message::Signals(Signals::AwaitsEnds { epoch }));
    }

    /// A stream writes a value (how wide, and which) to shared memory.
    pub(crate) fn writes_value(&mut self, root: AllocationId, address: u64, value: (u8, u64), clock: ClockSnapshot) {
        if let Some(at) = self.place(root, address) {
            self.send(Message::WritesValue { root, at, value, clock });
        }
    }

    /// An op waits for a value in shared memory.
    pub(crate) fn waits_for_value(&mut self, root: AllocationId, word: AwaitedWord, epoch: Epoch) {
        if let Some(at) = self.place(root, word.address) {
            self.send(Message::WaitsForValue { root, at, word, epoch });
        }
    }

    /// The kinds of accesses of each call site, which the process has to describe at its end.
    pub(crate) fn sites(&self) -> Vec<Access> {
        self.sites.values().cloned().collect()
    }

    /// The process has ended.
    pub(crate) fn end(&mut self, process: PeerProcess) {
        lock(&self.exchange).end(self.id, self.now, process);
    }
}
