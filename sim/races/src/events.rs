//! What the detector is told: accesses of warps and what orders them. Owns no state.
//!
//! Whoever executes kernels calls [`MemoryEvents`] in the order in which it executes. A barrier's
//! events frame what the threads do: they arrive, and the barrier completes before any of them
//! goes on.

/// Lanes of a warp.
pub const LANES: usize = 32;

/// Which threads a strong access or a fence reaches (PTX ISA, "Scope"). The system's scope is the
/// device's: nobody else takes part in a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Threads of the block.
    Block,
    /// Threads of the cluster.
    Cluster,
    /// All threads.
    Device,
}

impl Scope {
    /// All of them, the narrowest first.
    pub const ALL: [Scope; 3] = [Scope::Block, Scope::Cluster, Scope::Device];
}

/// What a strong access orders besides itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Order {
    /// Later accesses of the thread come after the release that it reads from.
    pub acquire: bool,
    /// Earlier accesses of the thread come before the acquire that reads from it.
    pub release: bool,
}

impl Order {
    /// Neither.
    pub const RELAXED: Order = Order { acquire: false, release: false };
    /// Both.
    pub const BOTH: Order = Order { acquire: true, release: true };
}

/// What an access is towards other threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strength {
    /// Weak: the compiler may split, merge or move it.
    Plain,
    /// `volatile`: the model takes it as relaxed at the widest scope.
    Volatile,
    /// Strong.
    Strong(Order, Scope),
    /// Machine code does not say: a store to shared memory, where some loads are polled. It is
    /// plain towards others; where its thread has passed a fence, it may release.
    Unsaid,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes as one.
    Atomic,
}

/// Where the bytes of an access lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Memory {
    /// Global memory; addresses are the device's.
    Global,
    /// A block's shared memory; addresses count from its start.
    Shared(u32),
}

/// An access of lanes of a warp: what one instruction does to one memory.
#[derive(Debug, Clone, Copy)]
pub struct WarpAccess<'a> {
    /// Linear number of the block.
    pub block: u32,
    /// The warp in the block.
    pub warp: u32,
    /// The lanes that access the memory.
    pub lanes: u32,
    /// The lanes that execute the instruction.
    pub executing: u32,
    /// The instruction, as the caller counts them.
    pub site: u32,
    /// The memory.
    pub memory: Memory,
    /// The address of each lane: a multiple of `size` if that is a power of two.
    pub addresses: &'a [u64; LANES],
    /// Bytes of each lane.
    pub size: u32,
    /// What it does.
    pub kind: Kind,
    /// What it is towards others.
    pub strength: Strength,
    /// Lanes that write what memory holds already.
    pub unchanged: u32,
    /// Lanes of a write to one address write one value.
    pub alike: bool,
    /// It is carried out behind the back of the thread (`cp.async`), see
    /// [`MemoryEvents::copies_committed`].
    pub asynchronous: bool,
    /// It operates on a barrier object in memory, which plain loads may poll.
    pub object: bool,
    /// It is a compare-and-swap: what its thread has read there before was a guess.
    pub compares: bool,
    /// Of a compare-and-swap of 4 bytes: the lanes that leave each byte as it is. Smaller ones are
    /// made of such (by ptxas, and by libcu++ for `cuda::atomic<char>`).
    pub keeps: [u32; 4],
    /// It is a part of that bulk operation, which the asynchronous proxy carries out: see
    /// [`MemoryEvents::bulk_completes`].
    pub bulk: Option<u64>,
    /// That operation reads a tensor map, through a proxy of its own.
    pub map: bool,
}

/// Lanes of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes {
    /// Linear number of the block.
    pub block: u32,
    /// The warp in the block.
    pub warp: u32,
    /// Its lanes.
    pub mask: u32,
}

/// What a fence orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FenceOrder {
    /// What others have released to its thread is known behind it; it releases nothing.
    Acquire,
    /// Both directions.
    Both,
    /// Both, and it has an order with all other such fences.
    Sequential,
}

/// A barrier that is no block's own, but its threads' with those of other blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Meeting {
    /// `barrier.cluster`.
    Cluster,
    /// The barrier of a cooperative launch.
    Grid,
}

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadOf {
    /// Linear number of the block.
    pub block: u32,
    /// Its number in the block.
    pub thread: u32,
}

/// In the number of a bulk operation: threads wait for its group, it reports to no object.
pub const GROUPED: u64 = 1 << 63;

/// A barrier object (`mbarrier`): the memory and the address.
pub type ObjectPlace = (Memory, u64);

/// Which memory a fence between the generic and the asynchronous proxy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proxies {
    /// Global memory.
    pub global: bool,
    /// Shared memory.
    pub shared: bool,
}

/// Where a thread puts what it launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The stream without a name, one for each block.
    OfBlock,
    /// One that the grid has made.
    Named(u64),
    /// `cudaStreamFireAndForget`.
    Detached,
    /// `cudaStreamTailLaunch`.
    Tail,
}

/// An instruction that does nothing but order accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SyncKind {
    /// A fence of memory.
    Fence,
    /// One between proxies.
    ProxyFence,
    /// A barrier of a warp.
    WarpBarrier,
    /// A barrier of the block.
    BlockBarrier,
    /// A barrier of a warp whose lanes come to it in several places of the code.
    Divided,
}

/// A thread touches a register that a product of its warp group uses.
#[derive(Debug, Clone, Copy)]
pub struct RegisterUse {
    /// The thread.
    pub thread: ThreadOf,
    /// The product's instruction, and what it does with the register.
    pub product: (u32, Kind),
    /// The same of the thread's own instruction.
    pub other: (u32, Kind),
    /// What is missing is a fence of the registers behind the thread's instruction; else a wait for
    /// the product before it.
    pub fence: bool,
}

/// Told of everything that a launch does to memory and to the order of accesses.
pub trait MemoryEvents: Sync {
    /// A block begins, with its threads and the linear number of its cluster.
    fn block_starts(&self, block: u32, threads: u32, cluster: u32);
    /// All threads of a block have ended.
    fn block_ends(&self, block: u32);
    /// Lanes have ended, at an instruction.
    fn exits(&self, lanes: Lanes, site: u32);
    /// Lanes access memory. Writes and atomic operations are told before they are carried out.
    fn access(&self, access: &WarpAccess<'_>);
    /// A fence.
    fn fence(&self, lanes: Lanes, scope: Scope, order: FenceOrder);
    /// `bar.warp.sync`: the lanes have met.
    fn warp_meets(&self, lanes: Lanes);
    /// Lanes come to a barrier of the block. Those that do not wait go on at once.
    fn barrier_arrives(&self, number: u8, lanes: Lanes, waits: bool);
    /// A barrier of the block has what it waited for: all threads (`whole`), of which those that
    /// have ended count as come, or as many as it was told.
    fn barrier_completes(&self, block: u32, number: u8, whole: bool);
    /// Lanes come to a barrier beyond the block. A relaxed arrival releases what a fence before it
    /// has left (PTX ISA, memory consistency model, "Release Pattern").
    fn meeting_arrives(&self, meeting: Meeting, lanes: Lanes, releases: bool);
    /// Lanes go on behind the phase of it that they came to last.
    fn meeting_passes(&self, meeting: Meeting, lanes: Lanes);
    /// Global memory begins a new life: what was done there before does not matter to it.
    fn allocated(&self, address: u64, size: u64);
    /// Memory of a block has a value from the beginning.
    fn given(&self, _memory: Memory, _address: u64, _size: u64) {}
    /// Lanes close a group of asynchronous copies.
    fn copies_committed(&self, lanes: Lanes);
    /// Lanes have waited until all but so many of their groups are done; `None`: until all copies
    /// are, in groups or not.
    fn copies_awaited(&self, lanes: Lanes, pending: Option<u32>);
    /// The barrier objects at the lanes' addresses learn when the lanes' copies so far are done.
    fn copies_arrive(&self, lanes: Lanes, memory: Memory, addresses: &[u64; LANES]);
    /// A thread has made a barrier object, which begins a life.
    fn object_begins(&self, thread: ThreadOf, object: ObjectPlace);
    /// A thread arrives at an object, and releases what it knows to those who pass this phase;
    /// a relaxed arrival (not `releases`) what a fence before it has left. An arrival that names
    /// the cluster's scope (`far`) is for waits that do so, too, if it comes from another block.
    fn object_arrives(&self, thread: ThreadOf, object: ObjectPlace, releases: bool, far: bool);
    /// The object's phase is over: all have arrived, and all bytes.
    fn object_turns(&self, object: ObjectPlace);
    /// A thread has seen that the object's last phase is over. After a relaxed wait (not
    /// `acquires`) it knows what was released behind its next fence only. The wait may be of the
    /// block's scope (not `far`).
    fn object_passes(&self, thread: ThreadOf, object: ObjectPlace, acquires: bool, far: bool);
    /// A bulk operation is done: the object has got its bytes in the phase that it is in.
    fn bulk_completes(&self, operation: u64, object: ObjectPlace);
    /// A thread has waited for a bulk operation of its own, which is in a group.
    fn bulk_awaited(&self, thread: ThreadOf, operation: u64);
    /// Lanes order their proxies: what is behind them in the generic one comes before what comes in
    /// the asynchronous one.
    fn proxy_fence(&self, lanes: Lanes, proxies: Proxies);
    /// Lanes release to the proxy of tensor maps what they know, or acquire for it what was
    /// released (`fence.proxy.tensormap`).
    fn map_fence(&self, lanes: Lanes, acquires: bool);
    /// What is told next, up to anything but fences and barriers, is all that an instruction does,
    /// and it may be left out; `None`: it may not.
    fn synchronises(&self, _by: Option<(u32, SyncKind)>) {}
    /// Lanes make the barrier objects that they have initialised known to the cluster
    /// (`fence.mbarrier_init`).
    fn init_fence(&self, lanes: Lanes);
    /// Lanes have issued their part of a product of their warp group, under that number.
    fn product_issued(&self, _lanes: Lanes, _operation: u64) {}
    /// A thread touches a register that a product uses.
    fn uses_register(&self, _used: &RegisterUse) {}
    /// A thread launches a grid.
    fn launches(&self, _thread: ThreadOf, _stream: Stream) {}
    /// A thread of a block makes an event of the device runtime: launches of its grid may wait for
    /// each other.
    fn makes_event(&self, _block: u32) {}
}

/// The lanes of a mask.
#[inline(always)]
pub(crate) fn lanes(mask: u32) -> LanesOf {
    LanesOf(mask)
}

/// The lanes of a mask that are left.
#[derive(Debug, Clone)]
pub(crate) struct LanesOf(u32);

impl Iterator for LanesOf {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        let lane = self.0.trailing_zeros();
        let some = self.0 != 0;
        self.0 &= self.0.wrapping_sub(1);
        some.then_some(lane)
    }
}
