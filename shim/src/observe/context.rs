//! The context in which an op function runs: which call, which thread, before or after it, and the
//! way to the log.
//!
//! Owns the outer fence of the shim ([`observe`]): re-entrancy, `errno`, faults of our own. What an
//! op means is stated in `crate::ops`; how handles become ids, in `crate::ids`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cuda_sys::{CUresult, FnId, Stream0};
use trace::{
    ContextId, Epoch, HostFuncId, KernelId, LaunchShape, MemoryKind, NoteKind, Op, PoolId, StackId, StreamId, ThreadId,
};

use crate::exact;
use crate::handles::captures;
use crate::host::{holds, page_protection};
use crate::log::call_names::{HOST_THREADS, name_of};
use crate::log::core::Core;
use crate::log::shared::Shared;
use crate::log::{call_counts, endings, start};
use crate::observe::host_watch::look_at_ended;
use crate::runtime::cycles::{self, Part};
use crate::runtime::guard::EntryGuard;
use crate::runtime::lock::tid;
use crate::runtime::{lifecycle, thread_state};
use crate::stack::frames::{self, Depth, Frames};

/// Where in a call we are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The real function has not been called yet.
    Before,
    /// It has answered this.
    After(CUresult),
}

/// What an op function works with.
pub struct Cx<'a> {
    inside: &'a EntryGuard,
    core: Cell<Option<&'static Core>>,
    stream0: Stream0,
    /// The function that was called.
    pub call: FnId,
    /// Before or after the real call.
    pub phase: Phase,
    /// What the part before the real call passes to the part after it; 0: nothing.
    pub token: u64,
    frames: &'a mut Frames,
    captured: bool,
    depth: Depth,
    host_changes: u64,
}

/// Failed calls that were logged. A program that goes on after each of them logs no more.
static FAILURES: AtomicU32 = AtomicU32::new(0);
const MAX_FAILURES: u32 = 256;

/// Marks the token of a call that ends something: the rest is the number of [`endings`].
const ENDS: u64 = 1 << 63;

/// Runs an op function around a real call. Returns the token for the second part.
#[inline(always)]
pub fn observe(call: FnId, token: u64, phase: Phase, op: impl FnOnce(&mut Cx<'_>)) -> u64 {
    cycles::of_call(call, || observe_call(call, token, phase, op))
}

#[inline(always)]
fn observe_call(call: FnId, token: u64, phase: Phase, op: impl FnOnce(&mut Cx<'_>)) -> u64 {
    call_counts::count(call, phase == Phase::Before);
    if lifecycle::is_off() {
        return 0;
    }
    if let Phase::After(result) = phase
        && result != CUresult::SUCCESS
    {
        failed(call, token, result);
        // Only these say that they failed.
        let orders = matches!(call.info().row, "cuEventRecord" | "cuEventRecordWithFlags" | "cuStreamWaitEvent");
        // So does a launch that was logged before.
        let logged = token != 0 && call.info().row == "cuGraphLaunch";
        if !(orders || logged) || ends_context(result) || FAILURES.fetch_add(1, Ordering::Relaxed) >= MAX_FAILURES {
            return 0;
        }
    }
    let Some(inside) = EntryGuard::enter() else { return 0 };
    let run = AssertUnwindSafe(|| {
        // SAFETY: inside proves that this thread is in shim code, and only once.
        let frames = unsafe { thread_state::frames() };
        let mut cx = Cx {
            inside: &inside,
            core: Cell::new(None),
            // Known when this is compiled: the call is a constant.
            stream0: if call.index() < FnId::COUNT { call.info().stream0 } else { Stream0::Plain },
            call,
            phase,
            token,
            frames,
            captured: false,
            depth: Depth::Full,
            host_changes: 0,
        };
        let open = holds::OPEN_PAGES.load(Ordering::Relaxed) != 0;
        if (open || page_protection::WAITING.load(Ordering::Relaxed) != 0)
            && let Some(core) = cx.core()
        {
            core.log_touches();
        }
        if open {
            holds::close(tid());
        }
        op(&mut cx);
        cx.token
    });
    // A panic has said its line and switched the shim off (see lifecycle): the program goes on.
    let token = catch_unwind(run).unwrap_or(0);
    if phase != Phase::Before {
        exact::drain();
    }
    token
}

/// A call has failed. Errors that end the context (illegal address, device-side assert and their
/// like) are logged once, a capture with a stream that was not joined too, lack of memory always.
#[cold]
fn failed(call: FnId, token: u64, result: CUresult) {
    // What it would have ended goes on.
    if token & ENDS != 0
        && endings::any()
        && let Some(_inside) = EntryGuard::enter()
        && let Some(core) = start::core()
    {
        core.handles.mappings.unmapped(token, false);
        if let Some(mut shared) = core.lock() {
            shared.finish(token as u32, false);
        }
    }
    if ends_context(result) {
        observe(call, 0, Phase::Before, |cx| cx.log_failure(result, StreamId::NONE));
    } else if result == CUresult::ERROR_STREAM_CAPTURE_UNJOINED {
        // The capture is over, though nothing came of it.
        captures::ended();
        static LOGGED: AtomicBool = AtomicBool::new(false);
        if !LOGGED.swap(true, Ordering::Relaxed) {
            observe(call, 0, Phase::Before, |cx| {
                cx.log(&Op::Failed { result: result.0, stream: StreamId::NONE });
            });
        }
    } else if result == CUresult::ERROR_STREAM_CAPTURE_INVALIDATED && call.info().row == "cuStreamEndCapture" {
        // So is a broken one. The same answer of another call leaves it to be ended (CUDA
        // Programming Guide, "Invalidation").
        captures::ended();
    } else if result == CUresult::ERROR_OUT_OF_MEMORY {
        observe(call, 0, Phase::Before, |cx| {
            cx.log(&Op::OutOfMemory {});
        });
    }
}

/// Whether nothing works in this context any more (cuda.h: "the process must be terminated and
/// relaunched").
fn ends_context(result: CUresult) -> bool {
    matches!(
        result,
        CUresult::ERROR_ILLEGAL_ADDRESS
            | CUresult::ERROR_LAUNCH_TIMEOUT
            | CUresult::ERROR_ASSERT
            | CUresult::ERROR_HARDWARE_STACK_ERROR
            | CUresult::ERROR_ILLEGAL_INSTRUCTION
            | CUresult::ERROR_MISALIGNED_ADDRESS
            | CUresult::ERROR_INVALID_ADDRESS_SPACE
            | CUresult::ERROR_INVALID_PC
            | CUresult::ERROR_LAUNCH_FAILED
    )
}

impl Cx<'_> {
    /// Logs an error that ends the context, the first one only: every later call answers the same.
    /// `stream`: the stream whose last launch is to blame, when that is known.
    pub fn log_failure(&mut self, result: CUresult, stream: StreamId) {
        static LOGGED: AtomicBool = AtomicBool::new(false);
        if ends_context(result) && !LOGGED.swap(true, Ordering::Relaxed) {
            self.log(&Op::Failed { result: result.0, stream });
        }
    }

    /// Whether the real call is still to come.
    pub fn is_before(&self) -> bool {
        self.phase == Phase::Before
    }

    /// Whether the real call has succeeded.
    pub fn is_after(&self) -> bool {
        self.phase == Phase::After(CUresult::SUCCESS)
    }

    /// What a call has answered that failed: only those are observed that would have ordered.
    pub fn failure(&self) -> Option<CUresult> {
        match self.phase {
            Phase::After(result) if result != CUresult::SUCCESS => Some(result),
            _ => None,
        }
    }

    /// What stream 0 means through the symbol that was called.
    pub fn stream0(&self) -> Stream0 {
        self.stream0
    }

    /// The running shim; `None` when it must stay out of this process.
    #[inline(always)]
    pub fn core(&self) -> Option<&'static Core> {
        self.core.get().or_else(|| self.find_core())
    }

    #[unsafe(link_section = "streamsan_hot")]
    #[inline(never)]
    fn find_core(&self) -> Option<&'static Core> {
        let core = start::core();
        self.core.set(core);
        core
    }

    /// This host thread.
    #[inline(always)]
    pub fn thread(&mut self) -> ThreadId {
        let number = self.inside.thread();
        // A number given out before a fork belongs to the parent's ring.
        if number != 0 && number >> 24 == lifecycle::generation() & 0xff {
            return ThreadId(number & 0x00ff_ffff);
        }
        self.new_thread()
    }

    #[cold]
    #[inline(never)]
    fn new_thread(&mut self) -> ThreadId {
        let Some(core) = self.core() else { return ThreadId::NONE };
        let thread = ThreadId(core.new_thread().0 & 0x00ff_ffff);
        self.inside.set_thread(thread.0 | (lifecycle::generation() & 0xff) << 24);
        if let Some(object) = thread_state::take_start()
            && let Some(core) = self.core()
            && let Some(mut shared) = core.lock()
        {
            shared.log(HOST_THREADS, thread, None, &Op::HostEdge { object, acquire: true, start: true });
        }
        thread
    }

    /// Ops of this call need no stack (polling, creation of handles that reports never show).
    pub fn without_stack(&mut self) -> &mut Self {
        self.depth = Depth::None;
        self
    }

    /// Ops of this call need Python frames only, where there are any.
    pub fn with_python_stack(&mut self) -> &mut Self {
        self.depth = Depth::PythonFirst;
        self
    }

    /// Ops of this call need no more than who called, where no stacks are wanted.
    pub fn with_caller(&mut self) -> &mut Self {
        if self.core().is_some_and(|core| !core.options.stacks) {
            self.depth = Depth::Caller;
        }
        self
    }

    #[unsafe(link_section = "streamsan_hot")]
    pub(super) fn capture(&mut self, core: &Core) {
        let wanted = self.depth != Depth::None && (core.options.stacks || self.depth == Depth::Caller);
        if !self.captured && wanted {
            self.captured = true;
            cycles::of(Part::Stack, || frames::recall(self.frames, self.depth, core.stack_ids));
        }
    }

    /// Logs an op with the stack of this call.
    #[unsafe(link_section = "streamsan_hot")]
    pub fn log(&mut self, op: &Op<'_>) -> Epoch {
        if thread_state::inside_transport() && !self.outlives_transport(op) {
            return Epoch::default();
        }
        let func = if let Op::HostFuncRun { func, done: false } = *op { Some(func) } else { None };
        self.log_with(func, |shared, (call, thread, frames)| shared.log(call, thread, frames, op))
    }

    /// Whether an op that was made inside a library's call counts: handles that the program may
    /// meet later do, the program's own memory, and what makes the edges of its graphs. Work,
    /// synchronisation and the library's staging buffers are its transport: they neither race nor
    /// order.
    #[cold]
    fn outlives_transport(&self, op: &Op<'_>) -> bool {
        match *op {
            Op::ContextCreate { .. }
            | Op::ContextDestroy { .. }
            | Op::ContextPart { .. }
            | Op::StreamCreate { .. }
            | Op::StreamDestroy { .. }
            | Op::EventCreate { .. }
            | Op::EventDestroy { .. }
            | Op::Global { .. }
            | Op::HostEdge { .. }
            | Op::CaptureStart { .. }
            | Op::CaptureRecord { .. }
            | Op::CaptureWait { .. }
            | Op::CaptureNode { .. }
            | Op::CaptureDone { .. }
            | Op::CaptureChanged { .. }
            | Op::Failed { .. } => true,
            Op::Alloc { kind, .. } => kind == MemoryKind::RegisteredHost,
            Op::Free { ptr, .. } => {
                self.core().and_then(Core::lock).is_some_and(|shared| shared.engine.memory_kind(ptr).is_some())
            }
            _ => false,
        }
    }

    /// The two halves of a call that frees or destroys something: `op` is logged if it succeeds.
    /// Before the call `op` is asked for, perhaps several times.
    pub fn ends(&mut self, op: Op<'static>) {
        let Some(core) = self.core().filter(|_| self.is_before()) else { return };
        if thread_state::inside_transport() && !self.outlives_transport(&op) {
            return;
        }
        let (number, thread) = (self.ending() as u32, self.thread());
        self.capture(core);
        let origin = (self.call, thread, self.captured.then_some(&*self.frames));
        if let Some(mut shared) = core.lock() {
            shared.begin(number, origin, op);
        }
    }

    /// The number of this call, which may end something.
    pub fn ending(&mut self) -> u64 {
        if self.token == 0
            && let Some(core) = self.core()
        {
            self.token = ENDS | u64::from(core.handles.fresh());
        }
        self.token
    }

    /// The second half.
    pub fn ended(&mut self) {
        let number = self.token as u32;
        if self.is_after() && self.token & ENDS != 0 {
            self.without_stack().log_with(None, |shared, _| {
                shared.finish(number, true);
                Epoch::default()
            });
        }
    }

    /// Logs a launch, whose `len` bytes of parameters `fill` writes: see [`Shared::log_launch`].
    #[inline(always)]
    pub fn log_launch(
        &mut self,
        what: (StreamId, KernelId),
        shape: &LaunchShape,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Epoch {
        self.log_with(None, |shared, origin| shared.log_launch(origin, what, shape, len, fill))
    }

    /// Logs two ops of one call, one directly after the other. Returns the epoch of the first.
    #[unsafe(link_section = "streamsan_hot")]
    pub fn log_both(&mut self, first: &Op<'_>, second: &Op<'_>) -> Epoch {
        if thread_state::inside_transport() {
            let epoch = self.log(first);
            self.log(second);
            return epoch;
        }
        self.log_with(None, |shared, (call, thread, frames)| {
            let epoch = shared.log(call, thread, frames, first);
            shared.log(call, thread, frames, second);
            epoch
        })
    }

    /// `func`: a host function begins.
    #[inline(always)]
    fn log_with(
        &mut self,
        func: Option<HostFuncId>,
        log: impl FnOnce(&mut Shared, (FnId, ThreadId, Option<&Frames>)) -> Epoch,
    ) -> Epoch {
        let Some(core) = self.core() else { return Epoch::default() };
        let thread = self.thread();
        self.capture(core);
        thread_state::note_op();
        let frames = self.captured.then_some(&*self.frames);
        let Some(mut shared) = cycles::of(Part::Lock, || core.lock()) else { return Epoch::default() };
        let epoch = cycles::of(Part::Log, || log(&mut shared, (self.call, thread, frames)));
        self.host_changes = shared.engine.host_changes();
        let due = shared.watches.is_due(&shared.engine, func.is_some());
        cycles::of(Part::Unlock, || drop(shared));
        if due {
            look_at_ended(self, func);
        }
        epoch
    }

    /// Logs that an allocator hands out a block of memory that it has, with the stack of this call.
    pub fn log_block(&mut self, ptr: u64, size: u64, stream: StreamId) {
        let (context, pool) = (ContextId::NONE, PoolId::NONE);
        self.log(&Op::Alloc { ptr, size, kind: MemoryKind::Block, context, stream, pool, flags: 0 });
    }

    /// How often the host's knowledge had changed when the latest op of this call was logged.
    pub fn host_changes(&self) -> u64 {
        self.host_changes
    }

    /// This call's stack, if it was captured.
    pub fn captured_frames(&self) -> Option<&Frames> {
        self.captured.then_some(&*self.frames)
    }

    /// From now on this call's ops have a stack, whatever was said before.
    pub fn with_full_stack(&mut self, core: &Core) {
        self.depth = Depth::Full;
        self.capture(core);
    }

    /// The id of this call's stack, for ops that refer to it later.
    pub fn stack(&mut self) -> StackId {
        let Some(core) = self.core() else { return StackId::NONE };
        self.capture(core);
        let frames = self.captured.then_some(&*self.frames);
        match (core.lock(), frames) {
            (Some(mut shared), Some(frames)) => shared.intern(frames),
            _ => StackId::NONE,
        }
    }

    /// Writes a definition.
    pub fn define(&mut self, op: &Op<'_>) {
        if let Some(core) = self.core()
            && let Some(mut shared) = core.lock()
        {
            shared.define(op);
        }
    }

    /// Notes that this call has an effect that is not modelled. Counted per function by the
    /// analyzer.
    pub fn not_modelled(&mut self) {
        let text = name_of(self.call).into();
        self.define(&Op::Note { kind: NoteKind::NotModelled, text, count: 1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_capture_lasts_until_it_is_ended() {
        captures::begun();
        failed(cuda_sys::id::cuLaunchKernel, 0, CUresult::ERROR_STREAM_CAPTURE_INVALIDATED);
        assert!(captures::any());
        failed(cuda_sys::id::cuStreamEndCapture, 0, CUresult::ERROR_STREAM_CAPTURE_INVALIDATED);
        assert!(!captures::any());
    }
}
