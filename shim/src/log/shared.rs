//! What the lock of the log guards: where an op gets its place in the order.
//!
//! Owns the happens-before engine, the table of stacks, the watches over the host's memory, and the
//! writing end of the ring. An op is applied to the engine and written in one critical section, so
//! the trace holds ops in the order that the engine saw them. What follows from an op is decided in
//! `order`.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_sys::FnId;
use order::Engine;
use trace::ring::Producer;
use trace::{CallId, Epoch, HostFuncId, KernelId, LAUNCH_HEAD, LaunchShape, Op, Origin, StackId, StreamId, ThreadId};

use super::call_names::HOST_ACCESS;
use super::endings::{Ending, Endings};
use super::ring_writer::RingWriter;
use super::stacks::StackDefinitions;
use crate::host::pinned_bounds;
use crate::host::touches;
use crate::host::touches::pages::HostMemory;
use crate::host::touches::runs::{self, Touched, Written};
use crate::host::watches::Watches;
use crate::runtime::cycles::{self, Part};
use crate::stack::frames::Frames;
use crate::stack::stack_ids::StackIds;

/// Whether this process shares memory or events with others: then records carry the time, by which
/// the processes are put in order.
#[unsafe(link_section = "streamsan_state")]
static SHARES: AtomicBool = AtomicBool::new(false);

/// Memory or events are shared with another process: from now on records carry the time.
pub fn record_time() {
    SHARES.store(true, Ordering::Relaxed);
}

/// Whether records carry the time.
pub fn has_time() -> bool {
    SHARES.load(Ordering::Relaxed)
}

/// Nanoseconds of the clock that all processes of the machine share.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: time is writable; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What the lock guards. What every op touches comes first.
#[repr(C)]
pub struct Shared {
    out: RingWriter,
    /// Bytes of the host that pending work reads.
    pub watches: Watches,
    stack_ids: StackIds,
    /// Memory of the host that devices can reach.
    host_memory: HostMemory,
    /// Whether host threads have an order of their own: then what one touches may race with what
    /// another enqueues later.
    host_threads: bool,
    /// Touches that may have been a graph's host function, which nobody sees running.
    untold_touches: u64,
    /// Frees and destroys whose calls have not returned.
    endings: Endings,
    /// The happens-before engine: builds the clocks.
    pub engine: Engine,
    stacks: HashMap<u128, StackId, BuildHasherDefault<IdentityHasher>>,
    definitions: StackDefinitions,
}

/// The hash of a key that is a hash already.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }
}

impl Shared {
    /// An empty log that is written to this end of the ring.
    pub fn new(producer: Producer, watches: Watches, stack_ids: StackIds, host_threads: bool) -> Self {
        Self {
            engine: Engine::with_options(engine_options()),
            watches,
            out: RingWriter::new(producer),
            stacks: HashMap::default(),
            stack_ids,
            host_memory: HostMemory::default(),
            host_threads,
            untold_touches: 0,
            endings: Endings::default(),
            definitions: StackDefinitions::default(),
        }
    }

    /// Logs one op: gives it its place in the order and writes it.
    #[unsafe(link_section = "streamsan_hot")]
    pub fn log(&mut self, call: FnId, thread: ThreadId, stack: Option<&Frames>, op: &Op<'_>) -> Epoch {
        for ending in self.endings.before(op) {
            self.log_ending(&ending);
        }
        let origin = self.place(call, thread, stack, op);
        self.emit(&origin, op);
        origin.epoch
    }

    /// Writes an op that has its place.
    #[inline(always)]
    fn emit(&mut self, origin: &Origin, op: &Op<'_>) {
        if self.watches.note(op) {
            pinned_bounds::note(&self.watches);
        }
        self.host_memory.note(op);
        if touches::is_linked() {
            self.set_gate();
        }
        self.out.emit(origin, op);
    }

    /// A call is about to be made that ends something if it succeeds: its op is logged then
    /// ([`Shared::finish`]).
    pub fn begin(&mut self, number: u32, origin: (FnId, ThreadId, Option<&Frames>), op: Op<'static>) {
        let (call, thread, stack) = origin;
        let stack = stack.map_or(StackId::NONE, |frames| self.intern(frames));
        let end = match op {
            Op::Free { ptr, .. } | Op::Unalias { ptr } => self.engine.memory_end(ptr).unwrap_or(ptr.saturating_add(1)),
            _ => 0,
        };
        self.endings.begin(number, op, end, (call, thread, stack));
    }

    /// The call has returned.
    pub fn finish(&mut self, number: u32, succeeded: bool) {
        for ending in self.endings.take(number).into_iter().filter(|_| succeeded) {
            self.log_ending(&ending);
        }
    }

    #[cold]
    fn log_ending(&mut self, ending: &Ending) {
        let (call, thread, stack) = ending.origin;
        let origin = self.place_of(call, thread, stack, &ending.op);
        self.emit(&origin, &ending.op);
    }

    /// As [`Shared::log`], of a launch whose parameters are written straight to where they belong:
    /// see [`Origin::encode_launch`].
    #[inline(always)]
    pub fn log_launch(
        &mut self,
        (call, thread, stack): (FnId, ThreadId, Option<&Frames>),
        (stream, kernel): (StreamId, KernelId),
        shape: &LaunchShape,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Epoch {
        let op = Op::Launch { stream, kernel, shape: *shape, params: &[] };
        let origin = self.place(call, thread, stack, &op);
        if touches::is_linked() {
            self.set_gate();
        }
        let most = LAUNCH_HEAD + len;
        if self.out.has_room(most) || self.out.make_room(most, "Launch") {
            self.out.write(most, |room| origin.encode_launch(stream, kernel, shape, len, room, fill));
        }
        origin.epoch
    }

    /// The place of an op.
    #[unsafe(link_section = "streamsan_hot")]
    fn place(&mut self, call: FnId, thread: ThreadId, stack: Option<&Frames>, op: &Op<'_>) -> Origin {
        let stack = stack.map_or(StackId::NONE, |frames| self.intern(frames));
        self.place_of(call, thread, stack, op)
    }

    #[inline(always)]
    fn place_of(&mut self, call: FnId, thread: ThreadId, stack: StackId, op: &Op<'_>) -> Origin {
        if runs::any_begun() {
            self.end_runs();
        }
        let call = self.out.name(call);
        if SHARES.load(Ordering::Relaxed) {
            self.log_time();
        }
        let epoch = cycles::of(Part::Order, || self.engine.apply(op, thread));
        Origin { call, thread, stack, epoch }
    }

    /// The time of what follows.
    #[cold]
    #[inline(never)]
    pub fn log_time(&mut self) {
        self.define(&Op::Clock { ns: now() });
    }

    /// Writes a definition: something that has no place in the order. Only devices and the nodes of
    /// graphs matter to it.
    pub fn define(&mut self, op: &Op<'_>) {
        match *op {
            Op::Device { ordinal, arch, .. } => self.engine.define_device(ordinal, arch),
            Op::GraphNode { .. } => {
                self.engine.apply(op, ThreadId::NONE);
            }
            _ => {}
        }
        self.out.emit(&Origin::default(), op);
    }

    /// The id of a stack, defining it when it is new.
    #[unsafe(link_section = "streamsan_hot")]
    pub fn intern(&mut self, frames: &Frames) -> StackId {
        if frames.is_empty() {
            return frames.known();
        }
        let key = frames.key();
        let id = match self.stacks.get(&key) {
            Some(id) => *id,
            None => self.new_stack(key, frames),
        };
        frames.remember(self.stack_ids, id);
        id
    }

    #[cold]
    #[inline(never)]
    fn new_stack(&mut self, key: u128, frames: &Frames) -> StackId {
        let id = StackId(self.stacks.len() as u32 + 1);
        self.stacks.insert(key, id);
        let out = &mut self.out;
        self.definitions.define(id, frames, |op| out.emit(&Origin::default(), op));
        id
    }

    /// An op comes: what was touched before it is written before it.
    #[cold]
    #[inline(never)]
    pub fn end_runs(&mut self) {
        // SAFETY: this is behind the lock of the log.
        unsafe { runs::end_all(|run| write_run(&mut self.engine, &mut self.out, run)) };
    }

    /// Begins a run of touches by the calling thread, and writes what ends by that. `func`: the
    /// host function that the thread runs.
    pub fn begin_run(&mut self, touched: &Touched, thread: ThreadId, stack: Option<&Frames>, func: HostFuncId) {
        if !touches::is_open() {
            return;
        }
        if func.is_none() && self.watches.graphs_call_host(&self.engine) {
            self.untold_touches += 1;
            return;
        }
        let stack = stack.map_or(StackId::NONE, |frames| self.intern(frames));
        // SAFETY: this is behind the lock of the log.
        let Some(table) = (unsafe { runs::table() }) else { return };
        let (engine, out) = (&mut self.engine, &mut self.out);
        // SAFETY: as above; the table is this thread's.
        unsafe { runs::begin(table, touched, (thread, stack, func), |run| write_run(engine, out, run)) };
    }

    /// Touches that were left out.
    pub fn untold_touches(&self) -> u64 {
        self.untold_touches
    }

    /// Opens the gate for touches while there is anything that they may race with.
    #[cold]
    #[inline(never)]
    fn set_gate(&mut self) {
        self.host_memory.show();
        let idle = self.engine.host_knows_all() && !self.host_threads;
        touches::set_open(!idle && !self.host_memory.is_empty());
    }

    /// The id of a function's name, defining it when it is new.
    pub fn name(&mut self, call: FnId) -> CallId {
        self.out.name(call)
    }
}

/// Writes a run of touches: an op of the host, at the place where its run ends.
fn write_run(engine: &mut Engine, out: &mut RingWriter, run: &Written) {
    let &Written { region, writes, atomic, polled, stack, func, thread } = run;
    let op = Op::HostTouch { region, writes, atomic, polled, func };
    let call = out.name(HOST_ACCESS);
    let epoch = engine.apply(&op, thread);
    out.emit(&Origin { call, thread, stack, epoch }, &op);
}

/// The end of a host function is known to the host (XLA hands buffers out again from one): without
/// this edge such programs look unordered.
fn engine_options() -> order::Options {
    let mut options = order::Options::default();
    options.host_functions_signal = true;
    options
}
