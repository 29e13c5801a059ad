//! Tasks: what a call asks the device to do, before it is decided whether that happens now (an
//! operation of a stream) or later (a node of a graph).

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use cuda_sys::*;

use crate::arch;
use crate::config::{self, Schedule};
use crate::memory;
use crate::memory::Allocation;
use crate::memory::address_space::UnmappedAddress;
use crate::memory::memcpy::{Memcpy, Memset};
use crate::memory::{result_digests, unwritten};
use crate::objects::conditional::Conditional;
use crate::objects::context::Context;
use crate::objects::event::{Event, EventRecord};
use crate::objects::graph::Graph;
use crate::objects::kernel_exec;
use crate::objects::module::Function;
use crate::objects::overlap::{self, LaunchOverlap};
use crate::objects::stream::Stream;
use crate::objects::{capture, thread};
use crate::sched::{self, OpId, Step, StreamId, Work};
use crate::touched::{GraphTouched, LaunchTouched};

/// A host function and its argument.
#[derive(Clone, Copy)]
pub(crate) struct HostFn {
    /// The function.
    pub(crate) call: unsafe extern "C" fn(*mut c_void),
    /// What it gets.
    pub(crate) data: *mut c_void,
}

// SAFETY: the program handed both over to be used on another thread.
unsafe impl Send for HostFn {}
// SAFETY: as above.
unsafe impl Sync for HostFn {}

/// A step of a stream memory operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MemOp {
    /// Writes a value of 4 or 8 bytes.
    Write(u64, u64, u32),
    /// Waits until a value of 4 or 8 bytes compares as the flags say.
    Wait(u64, u64, u32, u32),
    /// Adds, ands or ors a value of 4 or 8 bytes.
    Reduce(u64, u64, u32, CUstreamAtomicReductionOpType),
    /// Orders memory operations: nothing to do here.
    Barrier,
}

/// A launch of a kernel.
#[derive(Clone)]
pub(crate) struct KernelLaunch {
    /// What is launched.
    pub(crate) function: Arc<Function>,
    /// How.
    pub(crate) launch: kernel_exec::LaunchConfig,
    /// It may overlap the kernel before it in its stream.
    pub(crate) overlaps: bool,
}

/// What is to be done.
#[derive(Clone)]
pub(crate) enum Task {
    /// Nothing.
    Empty,
    /// A kernel.
    Kernel(Box<KernelLaunch>),
    /// A copy.
    Copy(Box<Memcpy>),
    /// A copy whose source was read when it was enqueued.
    Staged(Box<Memcpy>, Arc<Vec<u8>>),
    /// Copies without order among themselves.
    Batch(Vec<Memcpy>),
    /// A set.
    Set(Memset),
    /// A call on a host thread.
    Host(HostFn),
    /// Stream memory operations, one after the other.
    Memory(Vec<MemOp>),
    /// Memory comes into being in stream order: address and bytes.
    Alloc(u64, u64),
    /// Memory of a graph ends.
    Free(u64),
    /// Memory ends in stream order, whose block is in no table any more.
    End(Allocation),
    /// Records an event.
    Record(Arc<Event>),
    /// Waits for an event.
    Wait(Arc<Event>),
    /// Another graph.
    Child(Arc<Graph>),
    /// Graphs that run, or not, as a condition says.
    Conditional(Arc<Conditional>),
}

/// A task made ready for the scheduler: steps with the steps before them (by index) and operations
/// outside.
#[derive(Default)]
pub(crate) struct Plan {
    /// The steps.
    pub(crate) steps: Vec<Step>,
    /// Events that are recorded by steps.
    pub(crate) records: Vec<(usize, Arc<Event>, sched::Stamp)>,
    /// What wants to know the bytes of its kernels.
    pub(crate) measured: PlanMeasured,
    /// The steps that are launches of kernels.
    pub(super) launches: HashMap<usize, Arc<LaunchOverlap>>,
}

/// What wants to know the bytes of the kernels of a plan.
#[derive(Clone, Default)]
pub(crate) enum PlanMeasured {
    /// Nothing.
    #[default]
    Nothing,
    /// It has one kernel.
    Launch(Arc<LaunchTouched>),
    /// Its kernels are nodes of a graph's launch, which keeps it until all of them have run.
    Graph(Weak<GraphTouched>),
}

impl PlanMeasured {
    fn of(&self, node: usize) -> Option<Arc<LaunchTouched>> {
        match self {
            PlanMeasured::Nothing => None,
            PlanMeasured::Launch(launch) => Some(launch.clone()),
            PlanMeasured::Graph(nodes) => nodes.upgrade()?.get(node),
        }
    }
}

impl KernelLaunch {
    /// Announces it to the process's observer; `node`: the graph's node that it is, or 0.
    pub(crate) fn measured(&self, node: usize) -> Option<LaunchTouched> {
        let (function, launch) = (&self.function, &self.launch);
        LaunchTouched::begin(function.number, &function.name, (launch.grid, launch.block), node)
    }
}

fn fault(ctx: &Context, what: &str, fault: UnmappedAddress) {
    signal_free::say!("streamsan-sim: {what}: no memory at 0x{:x}", fault.addr);
    ctx.fail(CUresult::ERROR_ILLEGAL_ADDRESS);
}

fn run(ctx: &Arc<Context>, body: impl FnOnce(&Arc<Context>) + Send + 'static) -> Work {
    let ctx = ctx.clone();
    Work::Run(Box::new(move || {
        // Work behind a failed kernel is dropped, as on a device.
        if ctx.check().is_ok() {
            body(&ctx);
        }
    }))
}

/// Whether memory that is not defined in stream order gets a content that no program expects.
fn spoils() -> bool {
    config::get_or_default().schedule != Schedule::Eager
}

/// Undefined content: a large number and no sensible index, whatever the type. Only in memory that
/// is allocated and freed in stream order, where an operation that comes too early or too late
/// would otherwise find what it expects.
fn spoil(at: u64, size: u64) {
    let pattern = [0x5a; 1 << 12];
    for from in (0..size).step_by(pattern.len()) {
        let len = (size - from).min(pattern.len() as u64);
        let _ = memory::get().space.write(at + from, &pattern[..len as usize]);
    }
}

fn end(block: &Allocation) {
    result_digests::allocation_ends(block);
    if spoils() {
        spoil(block.at, block.size);
    }
}

fn holds(addr: u64, value: u64, size: u32, flags: u32) -> bool {
    let mut bytes = [0u8; 8];
    if memory::get().space.read(addr, &mut bytes[..size as usize]).is_err() {
        // The memory is gone: no write can ever come.
        return true;
    }
    let now = u64::from_le_bytes(bytes);
    match flags & 3 {
        CU_STREAM_WAIT_VALUE_EQ => now == value,
        CU_STREAM_WAIT_VALUE_AND => now & value != 0,
        CU_STREAM_WAIT_VALUE_NOR => {
            let mask = if size == 4 { u64::from(u32::MAX) } else { u64::MAX };
            !(now | value) & mask != 0
        }
        // "Greater or equal" is cyclic.
        _ if size == 4 => (now as u32).wrapping_sub(value as u32) as i32 >= 0,
        _ => now.wrapping_sub(value) as i64 >= 0,
    }
}

/// Calls a host function on this thread, as the device does. It does not return where the function
/// throws.
pub(crate) fn call_host(host: HostFn) {
    let thread = thread::current();
    thread.in_callback.set(true);
    // SAFETY: the program asked for exactly this call.
    unsafe { arch::call_foreign(host.call, host.data) };
    thread.in_callback.set(false);
}

impl Plan {
    /// Adds a task behind the given steps and answers its last step, behind which all of it is
    /// done.
    pub(crate) fn add(&mut self, ctx: &Arc<Context>, task: &Task, before: &[usize]) -> usize {
        self.add_node(ctx, task, 0, before)
    }

    /// The same of a node of a graph, by the handle that the program could have for it.
    pub(crate) fn add_node(&mut self, ctx: &Arc<Context>, task: &Task, node: usize, before: &[usize]) -> usize {
        let work = match task.clone() {
            Task::Alloc(at, size) if spoils() || unwritten::is_kept() => run(ctx, move |_| {
                if spoils() {
                    spoil(at, size);
                }
                unwritten::begins(at, size);
            }),
            Task::Free(at) if spoils() => run(ctx, move |_| {
                if let Some(block) = memory::get().find(at) {
                    end(&block);
                }
            }),
            Task::End(block) if spoils() || result_digests::wanted() => run(ctx, move |_| end(&block)),
            Task::Empty | Task::Alloc(..) | Task::Free(_) | Task::End(_) => Work::Point(None),
            Task::Kernel(kernel) => {
                let launch = LaunchOverlap::new(*kernel, self.measured.of(node));
                self.launches.insert(self.steps.len(), launch.clone());
                let ctx = ctx.clone();
                Work::Run(Box::new(move || launch.run(&ctx)))
            }
            Task::Copy(copy) => run(ctx, move |ctx| match copy.run(memory::get().space) {
                Ok(()) => result_digests::copied(&copy),
                Err(at) => fault(ctx, "copy", at),
            }),
            Task::Staged(copy, bytes) => run(ctx, move |ctx| {
                copy.unstage(memory::get().space, &bytes).unwrap_or_else(|at| fault(ctx, "copy", at));
            }),
            Task::Batch(copies) => {
                let parts: Vec<usize> =
                    copies.into_iter().map(|copy| self.add(ctx, &Task::Copy(Box::new(copy)), before)).collect();
                return self.push(Work::Point(None), if parts.is_empty() { before } else { &parts });
            }
            Task::Set(set) => run(ctx, move |ctx| {
                set.run(memory::get().space).unwrap_or_else(|at| fault(ctx, "memset", at));
            }),
            Task::Host(host) => {
                let ctx = ctx.clone();
                Work::Host(Box::new(move || {
                    if ctx.check().is_ok() {
                        call_host(host);
                    }
                }))
            }
            Task::Memory(ops) => {
                let mut last = before.to_vec();
                for op in ops {
                    last = vec![self.memory_op(ctx, op, &last)];
                }
                return self.push(Work::Point(None), &last);
            }
            Task::Record(event) => {
                let stamp = Event::new_stamp();
                let step = self.push(Work::Point(Some(stamp.clone())), before);
                self.records.push((step, event, stamp));
                return step;
            }
            Task::Wait(event) => {
                self.steps.push((Work::Point(None), before.to_vec(), vec![event.last().op]));
                return self.steps.len() - 1;
            }
            Task::Child(graph) => return graph.plan(self, ctx, before),
            Task::Conditional(node) => Work::Expand(node.steps(ctx, self.measured.clone())),
        };
        self.push(work, before)
    }

    /// The kernel at a step may begin before the one at an earlier step has ended: an edge of a
    /// graph says so.
    pub(crate) fn overlap(&mut self, before: usize, step: usize) {
        if let (Some(before), Some(next), true) =
            (self.launches.get(&before), self.launches.get(&step), overlap::is_simulated())
        {
            before.overlapped_by(next);
        }
    }

    fn push(&mut self, work: Work, before: &[usize]) -> usize {
        self.steps.push((work, before.to_vec(), Vec::new()));
        self.steps.len() - 1
    }

    fn memory_op(&mut self, ctx: &Arc<Context>, op: MemOp, before: &[usize]) -> usize {
        let work = match op {
            MemOp::Barrier => Work::Point(None),
            MemOp::Wait(addr, value, size, flags) => {
                let ctx = ctx.clone();
                Work::Until(Box::new(move || ctx.check().is_err() || holds(addr, value, size, flags)))
            }
            MemOp::Write(addr, value, size) => run(ctx, move |ctx| {
                let bytes = value.to_le_bytes();
                let done = memory::get().space.write(addr, &bytes[..size as usize]);
                done.unwrap_or_else(|at| fault(ctx, "write value", at));
            }),
            MemOp::Reduce(addr, value, size, op) => run(ctx, move |ctx| {
                let space = memory::get().space;
                let mut bytes = [0u8; 8];
                let done = space.read(addr, &mut bytes[..size as usize]).and_then(|()| {
                    let old = u64::from_le_bytes(bytes);
                    let new = match op {
                        CU_STREAM_ATOMIC_REDUCTION_OP_OR => old | value,
                        CU_STREAM_ATOMIC_REDUCTION_OP_AND => old & value,
                        _ => old.wrapping_add(value),
                    };
                    space.write(addr, &new.to_le_bytes()[..size as usize])
                });
                done.unwrap_or_else(|at| fault(ctx, "atomic reduction", at));
            }),
        };
        self.push(work, before)
    }

    /// Puts the plan at the end of a stream.
    pub(crate) fn submit(self, stream: StreamId, after: &[OpId]) -> OpId {
        let scheduler = sched::get();
        let (end, ids) = scheduler.submit_dag(stream, self.steps, after);
        for (step, event, stamp) in self.records {
            event.set(EventRecord { op: ids[step], stamp, captured: None, is_set: true });
        }
        end
    }
}

/// What became of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueued {
    /// It will run, as this operation.
    Op(OpId),
    /// It became a node of a graph being captured.
    Captured,
}

/// Gives a task to a stream: to be run, or to be captured.
pub(crate) fn enqueue(stream: &Arc<Stream>, task: Task) -> Result<Enqueued, CUresult> {
    enqueue_after(stream, task, &[])
}

/// The same, behind operations of other streams as well.
pub(crate) fn enqueue_after(stream: &Arc<Stream>, task: Task, after: &[OpId]) -> Result<Enqueued, CUresult> {
    if capture::add(stream, &task)? {
        return Ok(Enqueued::Captured);
    }
    let mut plan = Plan::default();
    if let Task::Kernel(kernel) = &task
        && let Some(measured) = kernel.measured(0)
    {
        plan.measured = PlanMeasured::Launch(Arc::new(measured));
    }
    plan.add(&stream.ctx, &task, &[]);
    if plan.steps.len() == 1 && plan.records.is_empty() && plan.steps[0].2.is_empty() {
        let (work, ..) = plan.steps.remove(0);
        let op = sched::get().submit(stream.id, work, after);
        if let (Task::Kernel(kernel), Some(launch), true) = (&task, plan.launches.remove(&0), overlap::is_simulated()) {
            stream.launched(op, launch, kernel.overlaps);
        }
        return Ok(Enqueued::Op(op));
    }
    Ok(Enqueued::Op(plan.submit(stream.id, after)))
}

impl Enqueued {
    /// Waits for the operation; a capture has nothing to wait for.
    pub(crate) fn wait(self, ctx: &Context) -> Result<(), CUresult> {
        if let Enqueued::Op(op) = self {
            sched::get().wait(&[op]);
        }
        ctx.check()
    }
}
