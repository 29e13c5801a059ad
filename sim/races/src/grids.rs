//! The grids of one launch: what the host launched, and what kernels launch in turn. Owns their
//! numbers and what a new grid has behind it; one detector compares them all.
//!
//! CUDA C++ Programming Guide, "CUDA Dynamic Parallelism": a grid that a kernel launches sees what
//! its launching thread did before, and what that thread knew of others. Grids in one stream come
//! one after the other; the stream without a name is that of the launching block. A grid is
//! complete when all that it launched is; then begins what it put into the tail stream. What a
//! thread does behind a launch is unordered with the new grid, as are grids of different streams.
//!
//! Blocks are numbered through all grids, in the order in which grids begin. Whoever runs them runs
//! what a grid launches behind it, one by one, each with all that it launches in turn: so
//! everything from a grid's first block up to the first one of the next grid of the same launcher
//! is of that grid or below it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::clock::{ALL, ENDED, Known, Span, join};
use crate::detector::{Detector, State};
use crate::events::{
    FenceOrder, GROUPED, LANES, Lanes, Meeting, Memory, MemoryEvents, ObjectPlace, Proxies, RegisterUse, Scope, Stream,
    SyncKind, ThreadOf, WarpAccess,
};

/// Bits of the numbers of bulk operations that one grid has.
const OPERATIONS: u32 = 40;

/// What a thread knows, and what it has behind it without knowing it yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) known: Arc<Known>,
    pub(crate) sc: Arc<Known>,
    pub(crate) met: Arc<Known>,
}

/// Where in the run of its launcher a grid was launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchPoint {
    past: Past,
    /// The launcher's number.
    grid: u32,
    /// What it comes behind beside its launching thread.
    chain: Chain,
}

/// What is in order with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Chain {
    /// Launches of one block into its own stream.
    Block(u32),
    /// Those of a grid into one stream with a name.
    Stream(u32, u64),
    /// All of a grid: events may order them.
    Grid(u32),
    /// Nothing.
    Detached,
    /// The launcher, with all else that it launched.
    Tail,
}

/// A grid that has begun.
#[derive(Debug)]
struct Begun {
    first: u32,
    past: Past,
}

/// All grids of a launch.
#[derive(Debug, Default)]
pub(crate) struct Grids {
    begun: Vec<Begun>,
    /// The first block that no grid has yet.
    next: u32,
    /// The last launch that was told, and not asked for yet.
    launched: Option<LaunchPoint>,
    /// Blocks of grids that have ended, by what comes behind them.
    ended: FxHashMap<Chain, Vec<(u32, u32)>>,
    /// Of each launcher the last grid that has begun: it has ended when the next one begins.
    last: FxHashMap<u32, (Chain, u32)>,
    /// Grids that have made an event.
    with_events: FxHashSet<u32>,
}

impl Grids {
    /// The grid of a block.
    fn of(&self, block: u32) -> u32 {
        (self.begun.partition_point(|grid| grid.first <= block) as u32).saturating_sub(1)
    }

    /// What blocks of the running grid know when they begin.
    pub(crate) fn past(&self) -> Past {
        self.begun.last().map(|grid| grid.past.clone()).unwrap_or_default()
    }

    /// Whether two blocks are of one grid.
    pub(crate) fn are_of_one(&self, one: u32, other: u32) -> bool {
        self.begun.len() <= 1 || self.of(one) == self.of(other)
    }

    /// Begins a grid of so many blocks. Its number and its first block.
    fn begin(&mut self, point: Option<&LaunchPoint>, blocks: u32) -> (u32, u32) {
        let first = self.next;
        let mut past = Past::default();
        if let Some(point) = point {
            if let Some((chain, from)) = self.last.insert(point.grid, (point.chain, first)) {
                self.ended.entry(chain).or_default().push((from, first));
            }
            past = point.past.clone();
            let launcher = &self.begun[point.grid as usize];
            let whole = [(launcher.first, first)];
            let behind = match point.chain {
                Chain::Detached => &[],
                Chain::Tail => {
                    past.known = join(&past.known, &launcher.past.known);
                    &whole[..]
                }
                chain => self.ended.get(&chain).map_or(&[][..], Vec::as_slice),
            };
            if !behind.is_empty() {
                let of = |&(from, to): &(u32, u32)| Span { thread: ALL, first: from, last: to - 1, epoch: ENDED };
                Arc::make_mut(&mut past.known).learn(behind.iter().map(of).collect());
            }
        }
        // One number is left out, so that no access is joined with one of another grid.
        self.next = first.saturating_add(blocks).saturating_add(1);
        self.begun.push(Begun { first, past });
        (self.begun.len() as u32 - 1, first)
    }
}

impl State {
    /// A thread launches a grid.
    fn launches(&mut self, thread: ThreadOf, stream: Stream) {
        let grid = self.grids.of(thread.block);
        let Some(block) = self.blocks.get_mut(&thread.block) else { return };
        let snapshot = block.snapshot(thread.thread as usize);
        let chain = match stream {
            Stream::Detached => Chain::Detached,
            Stream::Tail => Chain::Tail,
            _ if self.grids.with_events.contains(&grid) => Chain::Grid(grid),
            Stream::OfBlock => Chain::Block(thread.block),
            Stream::Named(stream) => Chain::Stream(grid, stream),
        };
        let past = Past { known: Arc::new(snapshot.clock()), sc: snapshot.sc, met: snapshot.met };
        self.grids.launched = Some(LaunchPoint { past, grid, chain });
        // What the thread does from now on is not behind the launch.
        block.threads[thread.thread as usize].released();
    }
}

impl Detector {
    /// The launch that was told of last.
    pub fn launched(&self) -> Option<LaunchPoint> {
        self.state().grids.launched.take()
    }

    /// Begins a grid of so many blocks. `point` is where it was launched, `None` of the grid that
    /// the host launched; its instructions count from `sites` on. Grids run one after the other.
    pub fn grid(&self, point: Option<&LaunchPoint>, blocks: u32, sites: u32) -> GridEvents<'_> {
        let (number, first) = self.state().grids.begin(point, blocks);
        if let Some(tape) = &self.tape {
            tape.begins(number, blocks);
        }
        GridEvents { detector: self, number, first, sites }
    }
}

/// What a grid tells the detector, in its own numbers.
#[derive(Clone, Copy)]
pub struct GridEvents<'d> {
    detector: &'d Detector,
    number: u32,
    first: u32,
    sites: u32,
}

impl GridEvents<'_> {
    /// The first of the detector's numbers of its blocks.
    pub fn first_block(&self) -> u32 {
        self.first
    }

    #[inline]
    fn tell(&self, tell: impl Fn(&dyn MemoryEvents)) {
        if let Some(tape) = &self.detector.tape {
            tell(tape);
        }
        tell(self.detector);
    }

    fn lanes(&self, lanes: Lanes) -> Lanes {
        Lanes { block: self.first + lanes.block, ..lanes }
    }

    fn thread(&self, thread: ThreadOf) -> ThreadOf {
        ThreadOf { block: self.first + thread.block, ..thread }
    }

    fn memory(&self, memory: Memory) -> Memory {
        match memory {
            Memory::Global => Memory::Global,
            Memory::Shared(block) => Memory::Shared(self.first + block),
        }
    }

    fn object(&self, (memory, address): ObjectPlace) -> ObjectPlace {
        (self.memory(memory), address)
    }

    /// Each grid counts its bulk operations by itself.
    fn operation(&self, operation: u64) -> u64 {
        let number = (operation & !GROUPED).wrapping_add(u64::from(self.number) << OPERATIONS);
        operation & GROUPED | number & !GROUPED
    }
}

impl MemoryEvents for GridEvents<'_> {
    fn block_starts(&self, block: u32, threads: u32, cluster: u32) {
        self.tell(|to| to.block_starts(self.first + block, threads, self.first + cluster));
    }

    fn block_ends(&self, block: u32) {
        self.tell(|to| to.block_ends(self.first + block));
    }

    fn exits(&self, lanes: Lanes, site: u32) {
        self.tell(|to| to.exits(self.lanes(lanes), self.sites + site));
    }

    fn access(&self, access: &WarpAccess<'_>) {
        if (self.first, self.sites) == (0, 0) {
            self.tell(|to| to.access(access));
            return;
        }
        let access = WarpAccess {
            block: self.first + access.block,
            site: self.sites + access.site,
            memory: self.memory(access.memory),
            bulk: access.bulk.map(|operation| self.operation(operation)),
            ..*access
        };
        self.tell(|to| to.access(&access));
    }

    fn fence(&self, lanes: Lanes, scope: Scope, order: FenceOrder) {
        self.tell(|to| to.fence(self.lanes(lanes), scope, order));
    }

    fn warp_meets(&self, lanes: Lanes) {
        self.tell(|to| to.warp_meets(self.lanes(lanes)));
    }

    fn barrier_arrives(&self, number: u8, lanes: Lanes, waits: bool) {
        self.tell(|to| to.barrier_arrives(number, self.lanes(lanes), waits));
    }

    fn barrier_completes(&self, block: u32, number: u8, whole: bool) {
        self.tell(|to| to.barrier_completes(self.first + block, number, whole));
    }

    fn meeting_arrives(&self, meeting: Meeting, lanes: Lanes, releases: bool) {
        self.tell(|to| to.meeting_arrives(meeting, self.lanes(lanes), releases));
    }

    fn meeting_passes(&self, meeting: Meeting, lanes: Lanes) {
        self.tell(|to| to.meeting_passes(meeting, self.lanes(lanes)));
    }

    fn allocated(&self, address: u64, size: u64) {
        self.tell(|to| to.allocated(address, size));
    }

    fn given(&self, memory: Memory, address: u64, size: u64) {
        self.tell(|to| to.given(self.memory(memory), address, size));
    }

    fn copies_committed(&self, lanes: Lanes) {
        self.tell(|to| to.copies_committed(self.lanes(lanes)));
    }

    fn copies_awaited(&self, lanes: Lanes, pending: Option<u32>) {
        self.tell(|to| to.copies_awaited(self.lanes(lanes), pending));
    }

    fn copies_arrive(&self, lanes: Lanes, memory: Memory, addresses: &[u64; LANES]) {
        self.tell(|to| to.copies_arrive(self.lanes(lanes), self.memory(memory), addresses));
    }

    fn object_begins(&self, thread: ThreadOf, object: ObjectPlace) {
        self.tell(|to| to.object_begins(self.thread(thread), self.object(object)));
    }

    fn object_arrives(&self, thread: ThreadOf, object: ObjectPlace, releases: bool, far: bool) {
        self.tell(|to| to.object_arrives(self.thread(thread), self.object(object), releases, far));
    }

    fn object_turns(&self, object: ObjectPlace) {
        self.tell(|to| to.object_turns(self.object(object)));
    }

    fn object_passes(&self, thread: ThreadOf, object: ObjectPlace, acquires: bool, far: bool) {
        self.tell(|to| to.object_passes(self.thread(thread), self.object(object), acquires, far));
    }

    fn bulk_completes(&self, operation: u64, object: ObjectPlace) {
        self.tell(|to| to.bulk_completes(self.operation(operation), self.object(object)));
    }

    fn bulk_awaited(&self, thread: ThreadOf, operation: u64) {
        self.tell(|to| to.bulk_awaited(self.thread(thread), self.operation(operation)));
    }

    fn proxy_fence(&self, lanes: Lanes, proxies: Proxies) {
        self.tell(|to| to.proxy_fence(self.lanes(lanes), proxies));
    }

    fn map_fence(&self, lanes: Lanes, acquires: bool) {
        self.tell(|to| to.map_fence(self.lanes(lanes), acquires));
    }

    fn init_fence(&self, lanes: Lanes) {
        self.tell(|to| to.init_fence(self.lanes(lanes)));
    }

    fn synchronises(&self, by: Option<(u32, SyncKind)>) {
        if let Some(tape) = &self.detector.tape {
            tape.synchronises(by.map(|(site, kind)| (self.sites + site, kind)));
        }
    }

    fn product_issued(&self, lanes: Lanes, operation: u64) {
        self.tell(|to| to.product_issued(self.lanes(lanes), self.operation(operation)));
    }

    fn uses_register(&self, used: &RegisterUse) {
        let site = |(site, kind)| (self.sites + site, kind);
        let thread = self.thread(used.thread);
        let used = RegisterUse { thread, product: site(used.product), other: site(used.other), ..*used };
        self.tell(|to| to.uses_register(&used));
    }

    fn launches(&self, thread: ThreadOf, stream: Stream) {
        if let Some(tape) = &self.detector.tape {
            tape.tear();
        }
        self.detector.state().launches(self.thread(thread), stream);
    }

    fn makes_event(&self, block: u32) {
        let mut state = self.detector.state();
        let grid = state.grids.of(self.first + block);
        state.grids.with_events.insert(grid);
    }
}
