//! Where an op gets its place: one short lock around the happens-before engine, the table of stacks
//! and the ring.
//!
//! Owns the order in which ops are logged. Everything slow (unwinding, asking the driver, reading
//! images) happens before the lock is taken.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use order::Engine;
use trace::ring::Header;
use trace::{
    CallId, Epoch, KernelId, LAUNCH_HEAD, LaunchShape, NoteKind, Op, Origin, StackId, StreamId, ThreadId, USUAL_RECORD,
};

use crate::handles::tables::Handles;
use crate::host::page_protection;
use crate::host::watches::Watches;
use crate::intercept::symbol_hooks;
use crate::observe::context;
use crate::observe::host_watch;
use crate::observe::host_watch::Allowance;
use crate::runtime::attach::Attached;
use crate::runtime::lock::{Held, Lock};
use crate::runtime::options::Options;
use crate::runtime::{guard, lifecycle};
use crate::stack::frames;
use crate::stack::frames::{Frames, Known};

/// The running shim.
pub struct Core {
    /// The user's options.
    pub options: Options,
    /// Handle tables.
    pub handles: Handles,
    /// What looking at the host's memory may cost.
    pub allowance: Allowance,
    /// Whether exit waits for the report.
    pub own_analyzer: bool,
    /// Stacks by walks.
    pub known: Known,
    threads: AtomicU32,
    shared: Lock<Shared>,
    header: *const Header,
}

// SAFETY: header points into the ring, which is never unmapped; its fields are atomic. The rest is
// Sync by itself.
unsafe impl Sync for Core {}
// SAFETY: as above.
unsafe impl Send for Core {}

/// Whether this process shares memory or events with others: then records carry the time, by which
/// the processes are put in order.
#[unsafe(link_section = "streamsan_state")]
static SHARES: AtomicBool = AtomicBool::new(false);

/// From now on records carry the time.
pub fn share() {
    SHARES.store(true, Ordering::Relaxed);
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
    out: Out,
    /// Bytes of the host that pending work reads.
    pub watches: Watches,
    known: Known,
    /// The happens-before engine: builds the clocks.
    pub engine: Engine,
    stacks: HashMap<u128, StackId, BuildHasherDefault<Folded>>,
    frames: frames::Definitions,
}

/// The writing end of the ring, with what it takes to wait for room.
#[repr(C)]
pub struct Out {
    named: [u64; 16],
    producer: trace::ring::Producer,
}

/// A hash that is a hash already.
#[derive(Default)]
struct Folded(u64);

impl Hasher for Folded {
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

impl Core {
    /// Takes over a fresh connection.
    pub fn new(options: Options, attached: Attached) -> Self {
        let header: *const Header = attached.producer.ring().header();
        let watches = Watches::new(options.host_accesses);
        let known = Known::default();
        Self {
            options,
            handles: Handles::default(),
            allowance: Allowance::default(),
            own_analyzer: attached.own_analyzer,
            known,
            threads: AtomicU32::new(0),
            shared: Lock::new(Shared {
                engine: Engine::with_options(engine_options()),
                watches,
                out: Out { producer: attached.producer, named: [0; 16] },
                stacks: HashMap::default(),
                known,
                frames: frames::Definitions::default(),
            }),
            header,
        }
    }

    /// The ring's shared header.
    pub fn header(&self) -> &Header {
        // SAFETY: points into the ring, which is never unmapped.
        unsafe { &*self.header }
    }

    /// The first record: who writes.
    pub fn introduce(&self) {
        let exe = std::fs::read_link("/proc/self/exe").map(|p| p.into_os_string()).unwrap_or_default();
        let args = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let cwd = std::env::current_dir().map(|p| p.into_os_string()).unwrap_or_default();
        let mut driver: i32 = 0;
        let _ = crate::real!(cuDriverGetVersion(&raw mut driver => *mut i32));
        let op = Op::Process {
            pid: std::process::id(),
            // SAFETY: getppid has no preconditions.
            parent: unsafe { libc::getppid() } as u32,
            exe: trace::codec::Text(exe.as_encoded_bytes()),
            args: trace::codec::Text(&args[..args.len().min(8192)]),
            cwd: trace::codec::Text(cwd.as_encoded_bytes()),
            driver: driver as u32,
        };
        if let Some(mut shared) = self.lock() {
            shared.out.emit(&Origin::default(), &op);
            if self.options.host_threads {
                shared.log(context::HOST_THREADS, ThreadId::NONE, None, &Op::HostThreads {});
            }
        }
    }

    /// Logs the touches of protected pages that were seen since the last time.
    #[cold]
    pub fn log_touches(&self) {
        page_protection::drain(|touch| {
            let Some(mut shared) = self.lock() else { return };
            let (start, end) = (touch.address, touch.address.saturating_add(1));
            let op = Op::HostAccess { watch: touch.watch, start, end, writes: touch.writes, in_the_act: true };
            let frames = self.options.stacks.then_some(&touch.frames);
            shared.log(context::HOST_ACCESS, ThreadId(touch.thread & 0x00ff_ffff), frames, &op);
            // What there is to say of this copy has been said.
            shared.watches.end(touch.watch);
        });
    }

    /// The last records: what could not be observed.
    pub fn say_goodbye(&self) {
        self.log_touches();
        // The end of the process: whatever it has under way ends with it.
        if SHARES.load(Ordering::Relaxed)
            && let Some(mut shared) = self.lock()
        {
            shared.define(&Op::Clock { ns: now() });
        }
        let others = symbol_hooks::OTHERS.load(Ordering::Relaxed) as u64;
        let counts = [
            (page_protection::LOST.load(Ordering::Relaxed), "touches of host memory"),
            (guard::SKIPPED.load(Ordering::Relaxed), "calls made inside a hook (by a signal handler)"),
            (others, "functions looked up in a second driver (dlmopen, another library in front of it)"),
        ];
        for (count, text) in counts.into_iter().filter(|(count, _)| *count > 0) {
            if let Some(mut shared) = self.lock() {
                let op = Op::Note { kind: NoteKind::Unobserved, text: text.into(), count };
                shared.out.emit(&Origin::default(), &op);
            }
        }
    }

    /// Takes the lock; `None` (and the shim is off) when its owner was killed while holding it.
    #[inline]
    pub fn lock(&self) -> Option<Held<'_, Shared>> {
        match self.shared.lock() {
            Ok(held) => Some(held),
            Err(_) => {
                lifecycle::switch_off(format_args!("a thread was killed inside a hook"));
                None
            }
        }
    }

    /// Host threads that have made calls.
    pub fn thread_count(&self) -> u32 {
        self.threads.load(Ordering::Relaxed)
    }

    /// A number for a thread that makes its first call; logs its definition.
    pub fn new_thread(&self) -> ThreadId {
        frames::look_for_python();
        let id = ThreadId(self.threads.fetch_add(1, Ordering::Relaxed) + 1);
        let mut name = [0_u8; 16];
        // SAFETY: PR_GET_NAME writes up to 16 bytes.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        let op = Op::Thread { id, tid: crate::runtime::lock::tid() as u32, name: trace::codec::Text(&name[..len]) };
        if let Some(mut shared) = self.lock() {
            shared.out.emit(&Origin::default(), &op);
        }
        id
    }
}

impl Shared {
    /// Logs one op: gives it its place in the order and writes it.
    #[unsafe(link_section = "streamsan_hot")]
    pub fn log(&mut self, call: cuda_sys::FnId, thread: ThreadId, stack: Option<&Frames>, op: &Op<'_>) -> Epoch {
        let origin = self.place(call, thread, stack, op);
        if self.watches.note(op) {
            host_watch::note_bounds(&self.watches);
        }
        self.out.emit(&origin, op);
        origin.epoch
    }

    /// As [`Shared::log`], of a launch whose parameters are written straight to where they belong:
    /// see [`Origin::encode_launch`].
    #[inline(always)]
    pub fn log_launch(
        &mut self,
        (call, thread, stack): (cuda_sys::FnId, ThreadId, Option<&Frames>),
        (stream, kernel): (StreamId, KernelId),
        shape: &LaunchShape,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Epoch {
        let &LaunchShape { grid, block, cluster, shared, flags } = shape;
        let op = Op::Launch { stream, kernel, grid, block, cluster, shared, flags, params: &[] };
        let origin = self.place(call, thread, stack, &op);
        let most = LAUNCH_HEAD + len;
        if self.out.producer.has_room(most) || self.out.make_room(most) {
            self.out.write(most, |room| origin.encode_launch(stream, kernel, shape, len, room, fill));
        }
        origin.epoch
    }

    /// The place of an op.
    #[unsafe(link_section = "streamsan_hot")]
    fn place(&mut self, call: cuda_sys::FnId, thread: ThreadId, stack: Option<&Frames>, op: &Op<'_>) -> Origin {
        let stack = stack.map_or(StackId::NONE, |frames| self.intern(frames));
        let call = self.out.name(call);
        if SHARES.load(Ordering::Relaxed) {
            self.tell_time();
        }
        Origin { call, thread, stack, epoch: self.engine.apply(op, thread) }
    }

    #[cold]
    #[inline(never)]
    fn tell_time(&mut self) {
        self.define(&Op::Clock { ns: now() });
    }

    /// Writes a definition: something that has no place in the order.
    pub fn define(&mut self, op: &Op<'_>) {
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
        frames.remember(self.known, id);
        id
    }

    #[cold]
    #[inline(never)]
    fn new_stack(&mut self, key: u128, frames: &Frames) -> StackId {
        let id = StackId(self.stacks.len() as u32 + 1);
        self.stacks.insert(key, id);
        let out = &mut self.out;
        self.frames.define(id, frames, |op| out.emit(&Origin::default(), op));
        id
    }

    /// The id of a function's name, defining it when it is new.
    pub fn name(&mut self, call: cuda_sys::FnId) -> CallId {
        self.out.name(call)
    }
}

impl Out {
    fn name(&mut self, call: cuda_sys::FnId) -> CallId {
        let id = CallId(call.0 + 1);
        let (word, bit) = (usize::from(call.0) / 64, 1 << (call.0 % 64));
        if let Some(named) = self.named.get_mut(word)
            && *named & bit == 0
        {
            *named |= bit;
            self.define_name(id, call);
        }
        id
    }

    #[cold]
    #[inline(never)]
    fn define_name(&mut self, id: CallId, call: cuda_sys::FnId) {
        let op = Op::CallName { id, name: context::call_name(call).into() };
        self.emit(&Origin::default(), &op);
    }

    /// Writes a record, waiting for room while the analyzer lives. What cannot ever fit is left out
    /// and named.
    #[unsafe(link_section = "streamsan_hot")]
    fn emit(&mut self, origin: &Origin, op: &Op<'_>) {
        if !self.write(USUAL_RECORD, |room| origin.encode(op, room)) {
            self.emit_long(origin, op);
        }
    }

    /// As [`Out::emit`], of what is longer than most, or when there is no room.
    #[cold]
    #[inline(never)]
    fn emit_long(&mut self, origin: &Origin, op: &Op<'_>) {
        let most = USUAL_RECORD + lists(op);
        if self.producer.has_room(most) || self.make_room(most) {
            self.write(most, |room| origin.encode(op, room));
        }
    }

    /// Writes a record of at most so many bytes. False: there is no room for it.
    #[inline(always)]
    fn write(&mut self, most: usize, encode: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        let len = self.producer.try_reserve(most).and_then(encode);
        len.inspect(|len| self.producer.commit(*len)).is_some()
    }

    /// Sees to room for a record, whatever has to be waited for. False: there will be none.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, most: usize) -> bool {
        let can_be = most <= self.producer.max_record();
        if !can_be {
            self.too_large();
        }
        can_be && self.wait_for_room(most)
    }

    #[cold]
    #[inline(never)]
    fn too_large(&mut self) {
        let text = "a record larger than half the ring (raise ring-mib)".into();
        let op = Op::Note { kind: NoteKind::Unobserved, text, count: 1 };
        self.emit(&Origin::default(), &op);
    }

    /// Holds the program back until the analyzer has caught up. False when the analyzer is dead:
    /// then the shim is off.
    #[cold]
    fn wait_for_room(&mut self, len: usize) -> bool {
        if lifecycle::is_off() {
            return false;
        }
        let beat = |out: &Self| out.producer.ring().header().heartbeat.load(Ordering::Relaxed);
        let mut last = (beat(self), Instant::now());
        let mut pause = Duration::from_micros(20);
        loop {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
            if self.producer.try_reserve(len).is_some() {
                return true;
            }
            let now = beat(self);
            if now != last.0 {
                last = (now, Instant::now());
            } else if last.1.elapsed() > Duration::from_secs(5) {
                lifecycle::switch_off(format_args!("the analyzer has died"));
                return false;
            }
        }
    }
}

/// The end of a host function tells the host (XLA hands buffers out again from one): without this
/// edge such programs look unordered.
fn engine_options() -> order::Options {
    let mut options = order::Options::default();
    options.host_functions_signal = true;
    options
}

/// At least as many bytes as the op's lists take.
fn lists(op: &Op<'_>) -> usize {
    match op {
        Op::Launch { params, .. } => params.len(),
        Op::Process { exe, args, cwd, .. } => exe.0.len() + args.0.len() + cwd.0.len(),
        Op::CallName { name, .. } | Op::Thread { name, .. } | Op::Device { name, .. } => name.0.len(),
        Op::Module { path, build_id, .. } => path.0.len() + build_id.len(),
        Op::Stack { native, python, .. } => native.len() * 8 + python.len() * 8,
        Op::PyCode { file, name, lines, .. } => file.0.len() + name.0.len() + lines.len(),
        Op::Image { path, bytes, .. } => path.0.len() + bytes.len(),
        Op::Kernel { name, params, .. } => name.0.len() + params.len() * 8,
        Op::Note { text, .. } => text.0.len(),
        Op::Exact { runs, .. } => runs.len() * 32,
        Op::ExactNodes { nodes, .. } => nodes.len() * 4,
        Op::MemoryName { name, heap, .. } => name.0.len() + heap.0.len(),
        Op::SharedEvent { key, .. } | Op::SharedMemory { key, .. } => key.len(),
        Op::Global { name, .. } => name.0.len(),
        Op::GraphNode { dependencies, body, .. } => dependencies.len() * 8 + body.len(),
        _ => 0,
    }
}
