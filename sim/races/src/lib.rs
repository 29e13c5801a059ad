//! Races inside one kernel. The crate knows no instruction and no driver: whoever executes a
//! launch tells it of accesses and of what orders them ([`MemoryEvents`]), and it says which
//! accesses race ([`Race`]).
//!
//! # The model
//!
//! It is the memory consistency model of PTX (PTX ISA, "Memory Consistency Model"). Two accesses of
//! different threads to one byte *conflict* if one of them writes. They are *morally strong* if
//! both are strong, the scope of each includes the other's thread, and they are of the same bytes.
//! They *race* if they conflict, are not morally strong, and neither happens before the other.
//!
//! Happens-before is the transitive closure of
//!
//! - program order of a thread;
//! - barriers: of a block, by number and for as many threads as take part (`bar.arrive` gives its
//!   clock and takes none; threads that have ended count as come to a barrier of all threads), of
//!   lanes of a warp, of a cluster (a relaxed arrival gives nothing), of the grid;
//! - synchronisation through memory: a release (a releasing write, or a fence and a strong write
//!   behind it) is seen by an acquire (an acquiring read, or a strong read and a fence behind it)
//!   that reads what it wrote, or what read-modify-writes of anybody made of that. The scope of
//!   each side must include the other; that of a fence and its access is the smaller of both. A
//!   plain write ends what was released at its place;
//! - sequentially consistent fences (`__threadfence()`), where a read forces their order: the first
//!   is behind the thread that writes, the second comes behind the read, and barriers may stand
//!   between each and its access. So `__threadfence(); __syncthreads();` by all threads and an
//!   atomic operation by one of them release what all have written;
//! - the ends of asynchronous copies, for their thread where it waits for their group, for others
//!   through a barrier object or what the thread does next. A copy reads its source from its
//!   instruction to that wait (`sources`). Copies of one thread have no order with each other
//!   before that;
//! - launches by kernels: a new grid is behind what its launching thread did before the launch, and
//!   behind grids of its stream; one in the tail stream behind its launcher and all else that this
//!   launched (`grids`);
//! - barrier objects (`mbarrier`) by phase: who arrives releases to those who see the phase over,
//!   and to nobody before it is;
//! - the ends of bulk operations (`cp.async.bulk`): for those who see the phase of the object over
//!   that got their bytes, or for the thread that waits for their group.
//!
//! A bulk operation is carried out by the asynchronous proxy, like a thread of its own that begins
//! where it is issued. What was written through the generic proxy is before it only if a fence
//! between the proxies is on the way (PTX ISA, "Proxy-preserved base causality order"): clocks
//! therefore also say what of each thread a fence has made known to that proxy (`clock`). Reads
//! need no such fence, nor do accesses of barrier objects, nor does what comes behind the end of an
//! operation ("Completion of cp.async.bulk": an implicit fence).
//!
//! A wait for a product of a warp group (`wgmma`) orders no reads that its threads have made by
//! themselves, but devices have made them by then: clocks say of each thread which of its accesses
//! an awaited product comes behind, and a read of shared memory among them that is overwritten is
//! [`Grade::Possible`] (`pair`).
//!
//! Reductions (`cp.reduce.async.bulk`) are relaxed operations of that proxy at the device's scope.
//! Tensor maps are read through a proxy of their own, from the issue to the end of the operation: a
//! write is before that where a fence has released it to that proxy and one has acquired it there,
//! each anywhere on the way (PTX ISA, "membar/fence", `fence.proxy.tensormap`).
//!
//! Shared memory of a block of a cluster lives until the last thread of the block ends. What other
//! blocks do there must come before (`lives`).
//!
//! A strong write is also before whatever follows a strong read that reads it, or that reads what
//! read-modify-writes have made of it ("Observation Order"); what its thread did before it is not.
//!
//! `volatile` is relaxed at the widest scope. What lanes of a warp do together (shuffles, votes)
//! orders no memory.
//!
//! # Why the verdict is sound for the execution
//!
//! Each thread has a vector clock (`clock`, `threads`), each byte the accesses that later ones may
//! still race with (`shadow`), each place of synchronisation the clocks that were released there
//! (`locations`). Events come in the order of execution, which agrees with happens-before. So an
//! access of before is either in the clock of the thread that accesses now, or unordered with it.
//! An access leaves the history of a byte only where a later one covers it: it comes behind, and
//! whatever races with the first races with the second. A byte has a race in the history exactly
//! if it has one in the execution (`tests/random.rs` compares with a detector that keeps every
//! access and every clock whole).
//!
//! Reads are put off until something else accesses their page (`deferred`): they come to the
//! histories before it does, and until then nothing could have raced with them.
//!
//! The order of execution does not matter beside that: what is unordered is found whichever comes
//! first. It matters where values steer threads, for other accesses are executed then, and where a
//! read sees one release or another.
//!
//! # Reads of unwritten bytes
//!
//! Beside races, and from the same events, the detector can look for reads of bytes that nothing
//! has written ([`Detector::watching`]); `unwritten` has the rule.
//!
//! # What is superfluous
//!
//! A detector can keep what it is told, and judge it again without a fence or a barrier
//! ([`Detector::recording`], [`Detector::trials`]); `trials` says when that is superfluous.
//!
//! # What it cannot see
//!
//! - Accesses that were not executed.
//! - Two `fence.sc` of which one happens to come first: the model orders them in this execution,
//!   but another one may have them the other way round. A pair that only this orders is a race.
//!   Where a read forces the order, an acquire serves as well as the second fence.
//! - Bytes of more than 48 unordered accesses: they are joined to accesses of whole blocks. Where
//!   such a one says more than was there, a race with it is at most [`Grade::Possible`], and
//!   [`Inexact`] counts it.
//! - `fence.mbarrier_init` ends the history of the objects that its thread has initialised, but for
//!   operations of other blocks, which must come behind a barrier of the cluster (`lives`).
//! - The source of an asynchronous copy counts as read when the copy reports to a barrier object,
//!   not when somebody has waited for that.
//! - Arrivals at barrier objects reach whoever waits there, but for those that name the cluster's
//!   scope and come from another block: a wait of the block's scope hears of reads only.
//! - A release to the device is seen by an acquire of the cluster's scope whichever block made it.
//! - What one instruction does in a single lane is one access, vectors too.

mod accesses;
mod clock;
mod deferred;
mod deferring;
mod detector;
mod events;
mod grade;
mod grids;
mod lives;
mod locations;
mod objects;
mod pair;
mod records;
mod shadow;
mod simple;
mod sources;
mod threads;
mod trials;
mod unwritten;

pub use detector::{Detector, Inexact, Reading};
pub use events::{
    FenceOrder, GROUPED, Kind, LANES, Lanes, Meeting, Memory, MemoryEvents, ObjectPlace, Order, Proxies, RegisterUse,
    Scope, Stream, Strength, SyncKind, ThreadOf, WarpAccess,
};
pub use grade::Grade;
pub use grids::{GridEvents, LaunchPoint};
pub use records::{Race, Remedy, Side};
pub use trials::{Answer, Synchronisation, Trials};
pub use unwritten::WrittenBytes;
