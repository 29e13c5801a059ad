//! What a launch has told the detector, kept so that it can be told again without some of its
//! synchronisation: the answer to whether a fence or a barrier is superfluous.
//!
//! Owns the events and which instruction made them; judges nothing. A launch that launches grids,
//! or that tells more than there is room for, has no answer.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::events::{
    FenceOrder, LANES, Lanes, Meeting, Memory, MemoryEvents, ObjectPlace, Proxies, RegisterUse, Scope, SyncKind,
    ThreadOf, WarpAccess,
};

/// Events of a launch that are kept.
const MOST_EVENTS: usize = 1 << 20;

/// Addresses of lanes that are kept.
const MOST_ADDRESSES: usize = 1 << 24;

/// What was told.
#[derive(Debug, Clone, Copy)]
enum Event {
    BlockStarts(u32, u32, u32),
    BlockEnds(u32),
    Exits(Lanes, u32),
    /// Without its addresses, of which the first active lane's is at that place.
    Access(WarpAccess<'static>, usize),
    Fence(Lanes, Scope, FenceOrder),
    WarpMeets(Lanes),
    BarrierArrives(u8, Lanes, bool),
    BarrierCompletes(u32, u8, bool),
    MeetingArrives(Meeting, Lanes, bool),
    MeetingPasses(Meeting, Lanes),
    Allocated(u64, u64),
    CopiesCommitted(Lanes),
    CopiesAwaited(Lanes, Option<u32>),
    CopiesArrive(Lanes, Memory, usize),
    ObjectBegins(ThreadOf, ObjectPlace),
    ObjectArrives(ThreadOf, ObjectPlace, [bool; 2]),
    ObjectTurns(ObjectPlace),
    ObjectPasses(ThreadOf, ObjectPlace, [bool; 2]),
    BulkCompletes(u64, ObjectPlace),
    BulkAwaited(ThreadOf, u64),
    ProxyFence(Lanes, Proxies),
    MapFence(Lanes, bool),
    InitFence(Lanes),
    ProductIssued(Lanes, u64),
    UsesRegister(RegisterUse),
}

/// An instruction that does nothing but order accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synchronisation {
    /// The instruction.
    pub site: u32,
    /// What it is.
    pub kind: SyncKind,
    /// How often warps have executed it.
    pub count: u64,
}

#[derive(Debug, Default)]
struct Kept {
    /// With the instruction, for one of [`Synchronisation`].
    events: Vec<(Event, Option<u32>)>,
    addresses: Vec<u64>,
    sites: BTreeMap<u32, (SyncKind, u64)>,
    /// The instruction that tells now.
    telling: Option<u32>,
    /// Blocks of the grid.
    blocks: u32,
    /// Something was not kept.
    torn: bool,
}

/// The events of one launch.
#[derive(Debug, Default)]
pub(crate) struct Tape(Mutex<Kept>);

const NO_ADDRESSES: &[u64; LANES] = &[0; LANES];

impl Tape {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, event: Event) {
        let mut kept = self.kept();
        if kept.torn || kept.events.len() >= MOST_EVENTS {
            kept.torn = true;
            return;
        }
        let orders = matches!(
            event,
            Event::Fence(..)
                | Event::WarpMeets(_)
                | Event::BarrierArrives(..)
                | Event::BarrierCompletes(..)
                | Event::ProxyFence(..)
                | Event::MapFence(..)
                | Event::InitFence(_)
        );
        let site = if orders { kept.telling } else { None };
        kept.telling = site;
        kept.events.push((event, site));
    }

    /// The addresses of the lanes, and where the first of them is kept.
    fn keep_addresses(&self, lanes: u32, addresses: &[u64; LANES]) -> usize {
        let mut kept = self.kept();
        let at = kept.addresses.len();
        if at + LANES > MOST_ADDRESSES {
            kept.torn = true;
        }
        if !kept.torn {
            kept.addresses
                .extend(addresses.iter().enumerate().filter(|(lane, _)| lanes >> lane & 1 != 0).map(|it| it.1));
        }
        at
    }

    /// The answer is given up.
    pub(crate) fn tear(&self) {
        self.kept().torn = true;
    }

    /// A grid begins: the first one, or one that a kernel launched.
    pub(crate) fn begins(&self, number: u32, blocks: u32) {
        let mut kept = self.kept();
        kept.torn |= number > 0;
        kept.blocks = blocks;
    }

    /// Blocks of the grid.
    pub(crate) fn blocks(&self) -> u32 {
        self.kept().blocks
    }

    /// The synchronisation that was executed; `None` if not all was kept.
    pub(crate) fn synchronisations(&self) -> Option<Vec<Synchronisation>> {
        let kept = self.kept();
        let of = |(&site, &(kind, count)): (&u32, &(SyncKind, u64))| Synchronisation { site, kind, count };
        (!kept.torn).then(|| kept.sites.iter().map(of).collect())
    }

    /// How much telling it all again is.
    pub(crate) fn len(&self) -> usize {
        self.kept().events.len()
    }

    /// Tells it all again, but for what some instructions told. False if a barrier has some
    /// arrivals of theirs and some of others: without the ones, the others would wait for ever.
    pub(crate) fn tell_without(&self, left_out: &FxHashSet<u32>, to: &dyn MemoryEvents) -> bool {
        let kept = self.kept();
        // Of each barrier: whether arrivals of its phase were left out, and whether any were told.
        let mut barriers: FxHashMap<(u32, u8), [bool; 2]> = FxHashMap::default();
        for (event, site) in &kept.events {
            let is_out = site.is_some_and(|site| left_out.contains(&site));
            match *event {
                Event::BarrierArrives(number, lanes, _) => {
                    barriers.entry((lanes.block, number)).or_default()[usize::from(!is_out)] = true;
                }
                Event::BarrierCompletes(block, number, _) => match barriers.remove(&(block, number)) {
                    Some([true, true]) => return false,
                    Some([true, false]) => continue,
                    _ => {}
                },
                _ => {}
            }
            let completes = matches!(event, Event::BarrierCompletes(..));
            if !is_out || completes {
                kept.tell(event, to);
            }
        }
        true
    }
}

impl Kept {
    fn lanes_of(&self, at: usize, lanes: u32) -> [u64; LANES] {
        let mut addresses = [0; LANES];
        let active = (0..LANES).filter(|lane| lanes >> lane & 1 != 0);
        for (lane, &address) in active.zip(self.addresses.get(at..).unwrap_or_default()) {
            addresses[lane] = address;
        }
        addresses
    }

    fn tell(&self, event: &Event, to: &dyn MemoryEvents) {
        match *event {
            Event::BlockStarts(block, threads, cluster) => to.block_starts(block, threads, cluster),
            Event::BlockEnds(block) => to.block_ends(block),
            Event::Exits(lanes, site) => to.exits(lanes, site),
            Event::Access(access, at) => {
                let addresses = self.lanes_of(at, access.lanes);
                to.access(&WarpAccess { addresses: &addresses, ..access });
            }
            Event::Fence(lanes, scope, order) => to.fence(lanes, scope, order),
            Event::WarpMeets(lanes) => to.warp_meets(lanes),
            Event::BarrierArrives(number, lanes, waits) => to.barrier_arrives(number, lanes, waits),
            Event::BarrierCompletes(block, number, whole) => to.barrier_completes(block, number, whole),
            Event::MeetingArrives(meeting, lanes, releases) => to.meeting_arrives(meeting, lanes, releases),
            Event::MeetingPasses(meeting, lanes) => to.meeting_passes(meeting, lanes),
            Event::Allocated(address, size) => to.allocated(address, size),
            Event::CopiesCommitted(lanes) => to.copies_committed(lanes),
            Event::CopiesAwaited(lanes, pending) => to.copies_awaited(lanes, pending),
            Event::CopiesArrive(lanes, memory, at) => {
                to.copies_arrive(lanes, memory, &self.lanes_of(at, lanes.mask));
            }
            Event::ObjectBegins(thread, object) => to.object_begins(thread, object),
            Event::ObjectArrives(thread, object, [releases, far]) => to.object_arrives(thread, object, releases, far),
            Event::ObjectTurns(object) => to.object_turns(object),
            Event::ObjectPasses(thread, object, [acquires, far]) => to.object_passes(thread, object, acquires, far),
            Event::BulkCompletes(operation, object) => to.bulk_completes(operation, object),
            Event::BulkAwaited(thread, operation) => to.bulk_awaited(thread, operation),
            Event::ProxyFence(lanes, proxies) => to.proxy_fence(lanes, proxies),
            Event::MapFence(lanes, acquires) => to.map_fence(lanes, acquires),
            Event::InitFence(lanes) => to.init_fence(lanes),
            Event::ProductIssued(lanes, operation) => to.product_issued(lanes, operation),
            Event::UsesRegister(used) => to.uses_register(&used),
        }
    }
}

impl MemoryEvents for Tape {
    fn block_starts(&self, block: u32, threads: u32, cluster: u32) {
        self.keep(Event::BlockStarts(block, threads, cluster));
    }

    fn block_ends(&self, block: u32) {
        self.keep(Event::BlockEnds(block));
    }

    fn exits(&self, lanes: Lanes, site: u32) {
        self.keep(Event::Exits(lanes, site));
    }

    fn access(&self, access: &WarpAccess<'_>) {
        let at = self.keep_addresses(access.lanes, access.addresses);
        self.keep(Event::Access(WarpAccess { addresses: NO_ADDRESSES, ..*access }, at));
    }

    fn fence(&self, lanes: Lanes, scope: Scope, order: FenceOrder) {
        self.keep(Event::Fence(lanes, scope, order));
    }

    fn warp_meets(&self, lanes: Lanes) {
        self.keep(Event::WarpMeets(lanes));
    }

    fn barrier_arrives(&self, number: u8, lanes: Lanes, waits: bool) {
        self.keep(Event::BarrierArrives(number, lanes, waits));
    }

    fn barrier_completes(&self, block: u32, number: u8, whole: bool) {
        self.keep(Event::BarrierCompletes(block, number, whole));
    }

    fn meeting_arrives(&self, meeting: Meeting, lanes: Lanes, releases: bool) {
        self.keep(Event::MeetingArrives(meeting, lanes, releases));
    }

    fn meeting_passes(&self, meeting: Meeting, lanes: Lanes) {
        self.keep(Event::MeetingPasses(meeting, lanes));
    }

    fn allocated(&self, address: u64, size: u64) {
        self.keep(Event::Allocated(address, size));
    }

    fn copies_committed(&self, lanes: Lanes) {
        self.keep(Event::CopiesCommitted(lanes));
    }

    fn copies_awaited(&self, lanes: Lanes, pending: Option<u32>) {
        self.keep(Event::CopiesAwaited(lanes, pending));
    }

    fn copies_arrive(&self, lanes: Lanes, memory: Memory, addresses: &[u64; LANES]) {
        let at = self.keep_addresses(lanes.mask, addresses);
        self.keep(Event::CopiesArrive(lanes, memory, at));
    }

    fn object_begins(&self, thread: ThreadOf, object: ObjectPlace) {
        self.keep(Event::ObjectBegins(thread, object));
    }

    fn object_arrives(&self, thread: ThreadOf, object: ObjectPlace, releases: bool, far: bool) {
        self.keep(Event::ObjectArrives(thread, object, [releases, far]));
    }

    fn object_turns(&self, object: ObjectPlace) {
        self.keep(Event::ObjectTurns(object));
    }

    fn object_passes(&self, thread: ThreadOf, object: ObjectPlace, acquires: bool, far: bool) {
        self.keep(Event::ObjectPasses(thread, object, [acquires, far]));
    }

    fn bulk_completes(&self, operation: u64, object: ObjectPlace) {
        self.keep(Event::BulkCompletes(operation, object));
    }

    fn bulk_awaited(&self, thread: ThreadOf, operation: u64) {
        self.keep(Event::BulkAwaited(thread, operation));
    }

    fn proxy_fence(&self, lanes: Lanes, proxies: Proxies) {
        self.keep(Event::ProxyFence(lanes, proxies));
    }

    fn map_fence(&self, lanes: Lanes, acquires: bool) {
        self.keep(Event::MapFence(lanes, acquires));
    }

    fn init_fence(&self, lanes: Lanes) {
        self.keep(Event::InitFence(lanes));
    }

    fn synchronises(&self, by: Option<(u32, SyncKind)>) {
        let mut kept = self.kept();
        kept.telling = by.map(|(site, _)| site);
        if let Some((site, kind)) = by {
            let (known, count) = kept.sites.entry(site).or_insert((kind, 0));
            *count += 1;
            if kind == SyncKind::Divided {
                *known = kind;
            }
        }
    }

    fn product_issued(&self, lanes: Lanes, operation: u64) {
        self.keep(Event::ProductIssued(lanes, operation));
    }

    fn uses_register(&self, used: &RegisterUse) {
        self.keep(Event::UsesRegister(*used));
    }
}
