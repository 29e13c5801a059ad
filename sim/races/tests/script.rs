//! A way to write down what threads do: events by thread, each told to a detector.

use sim_races::{
    Detector, FenceOrder, Grade, Kind, LANES, Lanes, Meeting, Memory, MemoryEvents, Order, Proxies, Race, Reading,
    Remedy, Scope, Strength, ThreadOf, WarpAccess,
};

pub const GLOBAL: Memory = Memory::Global;
pub const RELAXED: Order = Order::RELAXED;
pub const ACQUIRE: Order = Order { acquire: true, release: false };
pub const RELEASE: Order = Order { acquire: false, release: true };

/// A thread: its block, and its number there.
pub type Thread = (u32, u32);

/// Blocks of `threads` threads that run.
pub struct Script {
    pub detector: Detector,
    pub threads: u32,
    pub executing: Option<u32>,
    pub unchanged: bool,
    /// Atomic operations compare and swap.
    pub compares: bool,
    /// And leave these bytes of 4 as they are.
    pub keeps: u8,
    pub site: u32,
}

impl Script {
    pub fn new(blocks: u32, threads: u32) -> Script {
        Script::clustered(blocks, threads, 1)
    }

    /// With clusters of so many blocks.
    pub fn clustered(blocks: u32, threads: u32, cluster: u32) -> Script {
        Script::read_as(Reading::default(), blocks, threads, cluster)
    }

    /// Of kernels in machine code.
    pub fn of_machine_code(blocks: u32, threads: u32) -> Script {
        Script::read_as(Reading { machine: true }, blocks, threads, 1)
    }

    fn read_as(reading: Reading, blocks: u32, threads: u32, cluster: u32) -> Script {
        let detector = Detector::new(reading);
        for block in 0..blocks {
            detector.block_starts(block, threads, block / cluster * cluster);
        }
        Script { detector, threads, executing: None, unchanged: false, compares: false, keeps: 0, site: 0 }
    }

    fn lanes((block, thread): Thread) -> Lanes {
        Lanes { block, warp: thread / 32, mask: 1 << (thread % 32) }
    }

    /// An access of one thread, by an instruction that nothing else is.
    pub fn access(&mut self, thread: Thread, memory: Memory, at: u64, size: u32, kind: Kind, strength: Strength) {
        let lanes = Script::lanes(thread);
        self.lanes_access(lanes, memory, &[at; LANES], size, kind, strength);
    }

    pub fn lanes_access(
        &mut self,
        lanes: Lanes,
        memory: Memory,
        addresses: &[u64; LANES],
        size: u32,
        kind: Kind,
        strength: Strength,
    ) {
        self.site += 1;
        self.tell(lanes, memory, addresses, size, kind, strength, false, false);
    }

    /// As [`Script::lanes_access`], of a plain access that is told lane by lane if `apart`.
    pub fn lanes_access_apart(
        &mut self,
        lanes: Lanes,
        memory: Memory,
        addresses: &[u64; LANES],
        size: u32,
        kind: Kind,
        apart: bool,
    ) {
        self.site += 1;
        for mask in if apart { (0..32).map(|lane| 1 << lane).collect() } else { vec![u32::MAX] } {
            let lanes = Lanes { mask: lanes.mask & mask, ..lanes };
            self.tell(lanes, memory, addresses, size, kind, Strength::Plain, false, false);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of an access")]
    fn tell(
        &self,
        lanes: Lanes,
        memory: Memory,
        addresses: &[u64; LANES],
        size: u32,
        kind: Kind,
        strength: Strength,
        asynchronous: bool,
        object: bool,
    ) {
        self.detector.access(&WarpAccess {
            block: lanes.block,
            warp: lanes.warp,
            lanes: lanes.mask,
            executing: self.executing.unwrap_or(lanes.mask),
            site: self.site,
            memory,
            addresses,
            size,
            kind,
            strength,
            unchanged: if self.unchanged { lanes.mask } else { 0 },
            alike: self.unchanged,
            asynchronous,
            object,
            compares: self.compares,
            keeps: std::array::from_fn(|byte| if self.keeps >> byte & 1 != 0 { lanes.mask } else { 0 }),
            bulk: None,
            map: false,
        });
    }

    /// A part of a bulk operation.
    pub fn bulk(&mut self, thread: Thread, operation: u64, place: (Memory, u64), kind: Kind) {
        self.bulk_part(thread, operation, place, kind, false);
    }

    /// A bulk operation reads a tensor map.
    pub fn reads_map(&mut self, thread: Thread, operation: u64, at: u64) {
        self.bulk_part(thread, operation, (GLOBAL, at), Kind::Read, true);
    }

    fn bulk_part(&mut self, thread: Thread, operation: u64, (memory, at): (Memory, u64), kind: Kind, map: bool) {
        self.site += 1;
        let lanes = Script::lanes(thread);
        let relaxed = Strength::Strong(RELAXED, Scope::Device);
        self.detector.access(&WarpAccess {
            block: lanes.block,
            warp: lanes.warp,
            lanes: lanes.mask,
            executing: lanes.mask,
            site: self.site,
            memory,
            addresses: &[at; LANES],
            size: 4,
            kind,
            // Reductions.
            strength: if kind == Kind::Atomic { relaxed } else { Strength::Plain },
            unchanged: 0,
            alike: false,
            asynchronous: false,
            object: false,
            compares: false,
            keeps: [0; 4],
            bulk: Some(operation),
            map,
        });
    }

    fn thread_of((block, thread): Thread) -> ThreadOf {
        ThreadOf { block, thread }
    }

    /// `mbarrier.init`, without the write.
    pub fn object_begins(&mut self, thread: Thread, at: u64) {
        self.detector.object_begins(Script::thread_of(thread), (Memory::Shared(thread.0), at));
    }

    pub fn object_arrives(&mut self, thread: Thread, of: u32, at: u64) {
        self.detector.object_arrives(Script::thread_of(thread), (Memory::Shared(of), at), true, false);
    }

    /// `mbarrier.arrive.release.cluster`
    pub fn object_arrives_far(&mut self, thread: Thread, of: u32, at: u64) {
        self.detector.object_arrives(Script::thread_of(thread), (Memory::Shared(of), at), true, true);
    }

    /// `mbarrier.arrive.relaxed`
    pub fn object_arrives_relaxed(&mut self, thread: Thread, of: u32, at: u64) {
        self.detector.object_arrives(Script::thread_of(thread), (Memory::Shared(of), at), false, false);
    }

    pub fn object_turns(&mut self, of: u32, at: u64) {
        self.detector.object_turns((Memory::Shared(of), at));
    }

    pub fn object_passes(&mut self, thread: Thread, of: u32, at: u64) {
        self.detector.object_passes(Script::thread_of(thread), (Memory::Shared(of), at), true, false);
    }

    /// `mbarrier.test_wait.acquire.cluster`
    pub fn object_passes_far(&mut self, thread: Thread, of: u32, at: u64) {
        self.detector.object_passes(Script::thread_of(thread), (Memory::Shared(of), at), true, true);
    }

    /// `mbarrier.test_wait.relaxed`
    pub fn object_passes_relaxed(&mut self, thread: Thread, of: u32, at: u64) {
        self.detector.object_passes(Script::thread_of(thread), (Memory::Shared(of), at), false, false);
    }

    pub fn bulk_completes(&mut self, operation: u64, of: u32, at: u64) {
        self.detector.bulk_completes(operation, (Memory::Shared(of), at));
    }

    pub fn product_issued(&mut self, thread: Thread, operation: u64) {
        self.detector.product_issued(Self::lanes(thread), operation);
    }

    pub fn bulk_awaited(&mut self, thread: Thread, operation: u64) {
        self.detector.bulk_awaited(Script::thread_of(thread), operation);
    }

    pub fn proxy_fence(&mut self, thread: Thread, global: bool, shared: bool) {
        self.detector.proxy_fence(Script::lanes(thread), Proxies { global, shared });
    }

    /// `fence.proxy.tensormap::generic`
    pub fn map_fence(&mut self, thread: Thread, acquires: bool) {
        self.detector.map_fence(Script::lanes(thread), acquires);
    }

    pub fn init_fence(&mut self, thread: Thread) {
        self.detector.init_fence(Script::lanes(thread));
    }

    pub fn write(&mut self, thread: Thread, at: u64) {
        self.access(thread, GLOBAL, at, 4, Kind::Write, Strength::Plain);
    }

    pub fn read(&mut self, thread: Thread, at: u64) {
        self.access(thread, GLOBAL, at, 4, Kind::Read, Strength::Plain);
    }

    pub fn strong(&mut self, thread: Thread, at: u64, kind: Kind, order: Order, scope: Scope) {
        self.access(thread, GLOBAL, at, 4, kind, Strength::Strong(order, scope));
    }

    /// An asynchronous copy into shared memory.
    pub fn copy(&mut self, thread: Thread, at: u64) {
        self.site += 1;
        let memory = Memory::Shared(thread.0);
        self.tell(Script::lanes(thread), memory, &[at; LANES], 4, Kind::Write, Strength::Plain, true, false);
    }

    /// An asynchronous copy reads global memory.
    pub fn copy_from(&mut self, thread: Thread, at: u64) {
        self.site += 1;
        self.tell(Script::lanes(thread), Memory::Global, &[at; LANES], 4, Kind::Read, Strength::Plain, true, false);
    }

    /// An operation on a barrier object in shared memory.
    pub fn object(&mut self, thread: Thread, at: u64, kind: Kind, order: Order) {
        self.site += 1;
        let memory = Memory::Shared(thread.0);
        let strength = Strength::Strong(order, Scope::Block);
        self.tell(Script::lanes(thread), memory, &[at; LANES], 8, kind, strength, false, true);
    }

    pub fn fence(&mut self, thread: Thread, scope: Scope) {
        self.detector.fence(Script::lanes(thread), scope, FenceOrder::Both);
    }

    /// `CCTL.IVALL` behind an acquire of machine code.
    pub fn acquire(&mut self, thread: Thread, scope: Scope) {
        self.detector.fence(Script::lanes(thread), scope, FenceOrder::Acquire);
    }

    /// `__threadfence()`.
    pub fn fence_sc(&mut self, thread: Thread) {
        self.detector.fence(Script::lanes(thread), Scope::Device, FenceOrder::Sequential);
    }

    /// A barrier of some threads of a block. Those in `gone` do not wait.
    pub fn barrier(&mut self, number: u8, block: u32, waiting: &[u32], gone: &[u32]) {
        self.barrier_of(number, block, waiting, gone, number == 0);
    }

    /// The same, of all threads or of a number.
    pub fn barrier_of(&mut self, number: u8, block: u32, waiting: &[u32], gone: &[u32], whole: bool) {
        for &thread in gone {
            self.detector.barrier_arrives(number, Script::lanes((block, thread)), false);
        }
        for &thread in waiting {
            self.detector.barrier_arrives(number, Script::lanes((block, thread)), true);
        }
        self.detector.barrier_completes(block, number, whole);
    }

    /// `__syncthreads()`.
    pub fn sync(&mut self, block: u32) {
        let all: Vec<u32> = (0..self.threads).collect();
        self.barrier(0, block, &all, &[]);
    }

    pub fn warp_sync(&mut self, block: u32, warp: u32, mask: u32) {
        self.detector.warp_meets(Lanes { block, warp, mask });
    }

    pub fn arrive(&mut self, meeting: Meeting, thread: Thread, releases: bool) {
        self.detector.meeting_arrives(meeting, Script::lanes(thread), releases);
    }

    pub fn pass(&mut self, meeting: Meeting, thread: Thread) {
        self.detector.meeting_passes(meeting, Script::lanes(thread));
    }

    pub fn commit(&mut self, thread: Thread) {
        self.detector.copies_committed(Script::lanes(thread));
    }

    pub fn wait(&mut self, thread: Thread, pending: Option<u32>) {
        self.detector.copies_awaited(Script::lanes(thread), pending);
    }

    pub fn copies_arrive(&mut self, thread: Thread, at: u64) {
        self.detector.copies_arrive(Script::lanes(thread), Memory::Shared(thread.0), &[at; LANES]);
    }

    pub fn exit(&mut self, thread: Thread) {
        self.site += 1;
        self.detector.exits(Script::lanes(thread), self.site);
    }

    /// A block has ended, with all its threads.
    pub fn ends(&mut self, block: u32) {
        self.detector.block_ends(block);
    }

    /// An operation on a barrier object of a block.
    pub fn object_of(&mut self, thread: Thread, of: u32, at: u64) {
        self.site += 1;
        let strength = Strength::Strong(RELAXED, Scope::Cluster);
        self.tell(Script::lanes(thread), Memory::Shared(of), &[at; LANES], 8, Kind::Atomic, strength, false, true);
    }

    pub fn shared(&mut self, thread: Thread, of: u32, at: u64, kind: Kind) {
        self.access(thread, Memory::Shared(of), at, 4, kind, Strength::Plain);
    }

    pub fn races(&self) -> Vec<Race> {
        self.detector.races()
    }

    /// The grade and the remedy of the surest race.
    pub fn surest(&self) -> Option<(Grade, Remedy)> {
        self.races().first().map(|race| (race.grade, race.remedy))
    }
}
