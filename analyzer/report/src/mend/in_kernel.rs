//! A race of two threads of one kernel, or a read of memory that nothing wrote: the finding made of
//! a raw one, and the sentences of its advice.
//!
//! Owns both. The memory model is that of `sim/races`.

use crate::call_site::{site, site_frame};
use crate::elaborate::{Elaborator, called};
use crate::finding::DYNAMIC;
use crate::fingerprint;
use crate::mend::unwritten_read;
use crate::model::{Actor, Finding, InKernel, MendingLines, SharedArray, Side, Synchronisation, ThreadPlace};
use crate::words::{Api, FindingKind, KernelCode, KernelGrade, KernelScope, Verb};
use detect::confidence::{Confidence, Weakness};
use detect::inside::RawInside;
use detect::memory::Precision;
use detect::race::Hazard;
use symbols::frame::{Frame, FrameKind};
use trace::op::inside::{InsideGrade, InsideKind, InsideRemedy, InsideScope, ReadSide};

impl Elaborator<'_> {
    /// Resolves a race inside a kernel.
    pub fn in_kernel(&mut self, raw: &RawInside) -> Finding {
        let race = &raw.race;
        let sides = race.sides.each_ref();
        let [previous, access] = sides.map(|side| self.thread_side(side, raw));
        let unwritten = race.remedy == InsideRemedy::FirstWrite;
        let hazard = match sides.map(|side| side.kind) {
            _ if unwritten => Hazard::ReadAfterWrite,
            [InsideKind::Read, _] => Hazard::WriteAfterRead,
            [_, InsideKind::Write] => Hazard::WriteAfterWrite,
            _ => Hazard::ReadAfterWrite,
        };
        let (confidence, weakness) = match race.grade {
            InsideGrade::Possible if unwritten => (Confidence::Possible, Some(Weakness::PartlyWritten)),
            InsideGrade::Benign => (Confidence::Possible, Some(Weakness::SameValue)),
            InsideGrade::Possible => (Confidence::Possible, Some(Weakness::Unpromised)),
            InsideGrade::Likely => (Confidence::Likely, None),
            InsideGrade::Certain => (Confidence::Certain, None),
        };
        let registers = matches!(race.remedy, InsideRemedy::RegisterFence | InsideRemedy::AwaitProduct);
        let shared = race.shared.as_ref().filter(|_| !registers).map(|(name, begins, size)| SharedArray {
            name: match (name.as_str(), size) {
                ("", 0) => String::new(),
                ("", _) => DYNAMIC.to_owned(),
                (name, _) => unadorned(&self.stacks.demangle(name)),
            },
            offset: *begins,
            size: *size,
            byte: race.address.wrapping_sub(u64::from(*begins)),
        });
        let variable = race.global.as_ref().map(|(name, byte, size)| SharedArray {
            name: self.stacks.demangle(name),
            offset: 0,
            size: *size,
            byte: u64::from(*byte),
        });
        let place = shared.as_ref().or(variable.as_ref().filter(|_| raw.allocation.is_none()));
        let from = place.map_or(race.address.wrapping_sub(raw.base), |place| place.byte);
        let in_kernel = InKernel {
            grade: match race.grade {
                InsideGrade::Benign => KernelGrade::Benign,
                InsideGrade::Possible => KernelGrade::Possible,
                InsideGrade::Likely => KernelGrade::Likely,
                InsideGrade::Certain => KernelGrade::Certain,
            },
            code: if raw.machine { KernelCode::Machine } else { KernelCode::Ptx },
            threads: sides.map(|side| ThreadPlace {
                block: side.block,
                thread: side.thread,
                scope: match side.scope {
                    InsideScope::Weak => None,
                    InsideScope::Block => Some(KernelScope::Block),
                    InsideScope::Cluster => Some(KernelScope::Cluster),
                    InsideScope::Device => Some(KernelScope::Device),
                },
                asynchronous: side.asynchronous,
                ends: side.ends,
            }),
            shared,
            variable,
            address: race.address,
            grid: raw.grid,
            block: raw.block,
            launches: raw.launches,
            graph: self.frames(raw.site.launched).to_vec(),
            two_grids: race.remedy == InsideRemedy::LaunchOrder,
            registers,
        };
        let memory = raw.allocation.as_ref().map(|allocation| self.memory(allocation));
        let kind = if unwritten { FindingKind::UninitializedRead } else { FindingKind::RaceInsideKernel };
        let synchronisation = match race.remedy {
            InsideRemedy::FirstWrite => unwritten_read::advice(&access, &in_kernel, memory.as_ref()),
            _ => advice(race.remedy, &previous, &access, &in_kernel),
        };
        let sides = [access, previous].map(|side| Side { from, to: from + 1, ..side });
        let mut finding = Finding {
            weakness,
            count: raw.count,
            pid: self.names.process.pid,
            origin: self.names.process.name(),
            ranges: self.ranges(raw.regions.as_slice()),
            allocation: memory,
            internal: is_of_collectives(&sides, &in_kernel),
            in_kernel: Some(in_kernel),
            ..Finding::new(kind, hazard, confidence, sides, synchronisation)
        };
        finding.identity = fingerprint::in_kernel(&finding);
        finding
    }

    /// The lines of an instruction inside a kernel of that mangled name.
    pub(crate) fn kernel_stack(&mut self, side: &ReadSide, kernel: &str, machine: bool) -> Vec<Frame> {
        let function = if side.function.is_empty() { kernel } else { &side.function };
        let function = self.stacks.demangle(function);
        let last = side.frames.len().saturating_sub(1);
        let mut stack: Vec<Frame> = Vec::new();
        for (at, (file, line)) in side.frames.iter().enumerate() {
            let inlined = at < last;
            stack.push(Frame {
                kind: FrameKind::Native,
                function: if inlined { "(an inlined function)".to_owned() } else { function.clone() },
                file: Some(file.clone()).filter(|file| !file.is_empty()),
                line: Some(*line),
                module: None,
                address: u64::from(side.at),
                inlined,
                source: self.stacks.source(file, *line),
            });
        }
        if stack.is_empty() {
            let what = if machine { format!("offset {:#x}", side.at) } else { format!("line {} of the PTX", side.at) };
            stack.push(Frame {
                kind: FrameKind::Native,
                function: format!("{function}, {what}"),
                file: None,
                line: None,
                module: None,
                address: u64::from(side.at),
                inlined: false,
                source: None,
            });
        }
        stack
    }

    /// One side: the lines inside the kernel are its stack, and the host's stack is where it was
    /// launched.
    fn thread_side(&mut self, side: &ReadSide, raw: &RawInside) -> Side {
        let site = &raw.site;
        let kernel = self.stacks.demangle(&raw.kernel);
        let stack = self.kernel_stack(side, &raw.kernel, raw.machine);
        let launch = self.frames(site.stack).to_vec();
        Side {
            actor: Actor::Kernel,
            verb: match (side.kind, side.scope) {
                (InsideKind::Read, InsideScope::Weak) => Verb::Reads,
                (InsideKind::Write, InsideScope::Weak) => Verb::Writes,
                (InsideKind::Read, _) => Verb::ReadsAtomically,
                (InsideKind::Write, _) => Verb::WritesAtomically,
                (InsideKind::Atomic, _) => Verb::UpdatesAtomically,
            },
            does_both: false,
            arguments: Vec::new(),
            to_output: false,
            guessed: false,
            call: called(&launch, self.names.call(site.call)),
            seen_by: String::new(),
            kernel: Some(kernel),
            symbol: raw.kernel.clone(),
            operator: None,
            stream: self.stream(site.stream),
            thread: self.names.thread(site.thread).map(|(tid, name)| (tid, name.to_string())),
            node: site.node.checked_sub(1),
            param: None,
            through: String::new(),
            from: 0,
            to: 0,
            precision: Precision::Exact,
            gaps: String::new(),
            stack,
            launched: launch,
            started: Vec::new(),
            regions: self.regions.names(site.region),
            process: None,
            encoded: Vec::new(),
            inside: None,
        }
    }
}

/// Headers of reductions and scans, and what these are made of.
const COLLECTIVES: [&str; 8] =
    ["reduce.h", "scan.h", "coalesced_reduce.h", "coalesced_scan.h", "memory.h", "sync.h", "helpers.h", "invoke.h"];

/// Whether both accesses are in the headers of cooperative groups, in the scratch memory through
/// which the warps of a tile reduce and scan. The last warp reads there what the others have
/// written behind a shuffle, which orders no memory: a race of the header, which the program can
/// not mend. Copies (`async.h`) are of the program's own memory.
fn is_of_collectives(sides: &[Side; 2], k: &InKernel) -> bool {
    let is_header = |side: &Side| {
        let innermost = side.stack.first().and_then(|frame| frame.file.as_deref());
        let name = innermost.and_then(|file| file.rsplit_once("/cooperative_groups/details/")).map(|(_, name)| name);
        name.is_some_and(|name| COLLECTIVES.contains(&name))
    };
    k.shared.is_some() && sides.iter().all(is_header)
}

/// A name without the type that a demangled template begins with.
fn unadorned(name: &str) -> String {
    name.strip_prefix("void ").unwrap_or(name).to_owned()
}

/// The frames of the two sides whose lines an order belongs between: in the function that both were
/// called from, if they were inlined into one.
fn apart<'a>(previous: &'a [Frame], access: &'a [Frame]) -> (&'a [Frame], &'a [Frame]) {
    let place = |frame: &Frame| (frame.file.clone(), frame.line);
    let mut outwards = previous.iter().rev().zip(access.iter().rev());
    let same = outwards.position(|(one, other)| place(one) != place(other));
    let Some(same) = same else { return (previous, access) };
    let from = |stack: &'a [Frame]| &stack[stack.len() - 1 - same..];
    let (one, other) = (from(previous), from(access));
    // The kernel itself, or another function that both are in.
    if same == 0 && one.len().min(other.len()) > 0 && one[0].function != other[0].function {
        return (previous, access);
    }
    (one, other)
}

/// What is missing, and what would order the two.
fn advice(remedy: InsideRemedy, previous: &Side, access: &Side, k: &InKernel) -> Synchronisation {
    let at = |stack: &[Frame]| site(stack).unwrap_or_else(|| "an unknown place".to_owned());
    let (one, other) = apart(&previous.stack, &access.stack);
    let (first, then) = (at(one), at(other));
    let one_line = first == then;
    let line = |stack: &[Frame]| site_frame(stack).map(|frame| (frame.file.clone(), frame.line));
    let is_loop = line(one).zip(line(other)).is_some_and(|(one, other)| one.0 == other.0 && one.1 > other.1);
    let between = match (one_line, is_loop) {
        (true, _) => format!("between two executions of {first}, or of its parts"),
        (_, true) => format!("between {first} and the next {then}"),
        _ => format!("between {first} and {then}"),
    };
    // A race between blocks at one line mostly adds to one place.
    let adds = one_line && k.threads.iter().all(|thread| thread.scope.is_none());
    let plain = match k.threads.map(|thread| thread.scope.is_some()) {
        [false, true] => &first,
        _ => &then,
    };
    let narrow = match k.threads.map(|thread| thread.scope) {
        [Some(KernelScope::Device), _] => &then,
        _ => &first,
    };
    let (missing, lines) = match remedy {
        InsideRemedy::WarpBarrier => (
            format!(
                "The threads are lanes of one warp, which need not execute together, and no barrier of the warp is {between}."
            ),
            vec![format!("__syncwarp();  // {between}, by all lanes that take part (or give it their mask)")],
        ),
        InsideRemedy::BlockBarrier if adds => (
            format!("The threads are of one block, and no barrier of all its threads is {between}."),
            vec![
                format!("__syncthreads();  // {between}, by all threads of the block"),
                format!(
                    "atomicAdd(...)  // or another atomic operation in place of both, at {first}, if they update one value"
                ),
            ],
        ),
        InsideRemedy::BlockBarrier => (
            format!("The threads are of one block, and no barrier of all its threads is {between}."),
            vec![format!("__syncthreads();  // {between}, by all threads of the block")],
        ),
        InsideRemedy::AwaitCopy => (
            format!("One of the two is an asynchronous copy, and its end is not awaited {between}."),
            vec![
                format!("__pipeline_wait_prior(0);  // {between}, by the thread that copies (cp.async.wait_group)"),
                "__syncthreads();  // behind it, where another thread uses what was copied".to_owned(),
            ],
        ),
        InsideRemedy::WiderScope => (
            format!(
                "Both are atomic, but the scope of one does not include the other's thread: {narrow} is too narrow."
            ),
            vec![
                format!("atomicAdd(...)  // not ..._block, at {narrow}"),
                "cuda::atomic_ref<T, cuda::thread_scope_device>  // or: .gpu in PTX".to_owned(),
            ],
        ),
        InsideRemedy::Atomic => (
            format!("One of the two is atomic and the other is not: {plain} is a plain access, and nothing orders it."),
            vec![
                format!(
                    "atomicAdd(...), atomicExch(...)  // or cuda::atomic_ref, in place of the plain access at {plain}"
                ),
                format!("__syncthreads();  // or, within one block, {between}"),
            ],
        ),
        InsideRemedy::ClusterBarrier => (
            format!("The threads are of two blocks of one cluster, and no barrier of the cluster is {between}."),
            vec![format!("cooperative_groups::this_cluster().sync();  // {between}")],
        ),
        InsideRemedy::ProxyFence => (
            format!(
                "One is an access of the generic proxy, the other a bulk operation of the asynchronous proxy, and no fence \
                 between the two proxies is {between}."
            ),
            vec![
                format!(
                    "cuda::ptx::fence_proxy_async(...)  // fence.proxy.async, behind {first}, by each thread that writes"
                ),
                format!("__syncthreads();  // or another barrier behind the fence, before {then}"),
            ],
        ),
        InsideRemedy::AwaitPhase => (
            format!(
                "One of the two is a bulk operation that reports to a barrier object (mbarrier), and the end of that phase \
                 is not awaited {between}."
            ),
            vec![format!(
                "cuda::ptx::mbarrier_try_wait_parity(...)  // {between}, until it is true, for the phase that gets the bytes"
            )],
        ),
        InsideRemedy::AwaitGroup => (
            format!(
                "One of the two is a bulk operation of a group, and the end of that group is not awaited {between}."
            ),
            vec![
                format!(
                    "cuda::ptx::cp_async_bulk_wait_group_read(...)  // {between}, by the thread that issues it; without \
                     _read where the bytes that it writes are used"
                ),
                "__syncthreads();  // behind it, where another thread accesses the bytes".to_owned(),
            ],
        ),
        InsideRemedy::AwaitUsers => (
            format!(
                "A bulk operation overwrites bytes that a thread may still read: that thread has not arrived anywhere \
                 {between}."
            ),
            vec![
                format!("cuda::ptx::mbarrier_arrive(...)  // behind {first}, by each thread that reads"),
                format!("cuda::ptx::mbarrier_try_wait_parity(...)  // before {then}, by the thread that issues it"),
                format!("__syncthreads();  // or {between}"),
            ],
        ),
        InsideRemedy::OneBegins => (
            format!("Several threads initialise one barrier object at {first}: the memory model leaves its state undefined."),
            vec![
                format!("if (cooperative_groups::this_thread_block().thread_rank() == 0)  // {first}, by one thread only"),
                "__syncthreads();  // behind it, before any thread uses the object".to_owned(),
            ],
        ),
        InsideRemedy::EachReader => (
            format!(
                "One overwrites bytes that a thread may still read: that thread has not arrived anywhere {between}, only \
                 another one of its warp group has, behind a wait for a product."
            ),
            vec![format!(
                "cuda::ptx::mbarrier_arrive(...)  // behind {first}, by each thread that reads, or by one lane of each \
                 warp behind __syncwarp()"
            )],
        ),
        InsideRemedy::MapFence => (
            format!(
                "One writes a tensor map, the other is a copy by it, which reads the map through a proxy of its own: no \
                 release to that proxy with an acquire for it is {between}."
            ),
            vec![
                format!(
                    "cuda::ptx::fence_proxy_tensormap_generic(cuda::ptx::sem_release, ...)  // behind {first}, by each \
                     thread that writes the map"
                ),
                format!(
                    "cuda::ptx::fence_proxy_tensormap_generic(cuda::ptx::sem_acquire, ..., map, 128)  // before {then}, \
                     behind the barrier or flag that tells of the map"
                ),
            ],
        ),
        InsideRemedy::BlockStays => (
            format!(
                "Shared memory of a block lasts until its last thread ends, and that does not wait for the other block's \
                 access: {first}, {then}."
            ),
            vec!["cooperative_groups::this_cluster().sync();  // by all threads of the cluster, behind the last access \
                  to another block's memory"
                .to_owned()],
        ),
        InsideRemedy::WiderWait => (
            format!(
                "The arrival at the barrier object releases to the cluster, but the wait before {then} acquires for its \
                 block only, which the other thread is not in."
            ),
            vec![format!("mbarrier.try_wait.acquire.cluster  // or test_wait, before {then}: not the default, .cta")],
        ),
        InsideRemedy::RegisterFence => (
            format!(
                "A product of a warp group uses registers that its threads have written, and no fence of the registers is \
                 {between}."
            ),
            vec![format!("wgmma.fence.sync.aligned;  // {between}, by all threads of the warp group")],
        ),
        InsideRemedy::AwaitProduct => (
            format!(
                "A product of a warp group uses registers until its group is complete, and that is not awaited {between}."
            ),
            vec![
                "wgmma.commit_group.sync.aligned;  // behind the product".to_owned(),
                format!("wgmma.wait_group.sync.aligned 0;  // behind it, before {then}"),
            ],
        ),
        InsideRemedy::LaunchOrder => (
            format!(
                "The threads are of two grids, of which a kernel launched one or both. A grid comes behind what its \
                 launching thread did before the launch, what that thread knew of others, and grids of the same stream: \
                 none of this is {between}."
            ),
            vec![
                "__syncthreads();  // before the launch, by all threads of the block that write what the new grid uses"
                    .to_owned(),
                "kernel<<<grid, block, 0, cudaStreamTailLaunch>>>(...)  // or begin it when the launching grid is complete"
                    .to_owned(),
            ],
        ),
        InsideRemedy::FirstWrite => return unwritten_read::advice(access, k, None),
        InsideRemedy::ReleaseAcquire if adds => (
            format!("The threads are of different blocks, which nothing orders {between}."),
            vec![format!("atomicAdd(...)  // or another atomic operation in place of both, at {first}")],
        ),
        InsideRemedy::ReleaseAcquire => (
            format!(
                "The threads are of different blocks: no release behind one is met by an acquire before the other, {between}."
            ),
            vec![
                format!("__threadfence();  // behind {first}, before the flag or counter that tells of it"),
                format!("__threadfence();  // before {then}, behind the atomic operation that reads the flag"),
                format!("cooperative_groups::this_grid().sync();  // or, in a cooperative launch, {between}"),
            ],
        ),
    };
    let mut facts = Vec::new();
    match k.grade {
        KernelGrade::Benign => facts.push(
            "A write leaves the value that was there: the memory model calls it a race, and it does no harm as long as \
             all threads write one value."
                .to_owned(),
        ),
        KernelGrade::Possible if remedy == InsideRemedy::EachReader => facts.push(
            "All warps of the warp group have issued that product behind their reads, so devices have read by then; the \
             memory model does not promise it."
                .to_owned(),
        ),
        KernelGrade::Possible => facts.push(
            "The lanes executed together, an access is volatile, a compare-and-swap checks what was read, or the two have \
             different sizes, or two writes through different proxies lack only the fence: many devices order that, and \
             the memory model does not promise it."
                .to_owned(),
        ),
        KernelGrade::Likely if matches!(remedy, InsideRemedy::RegisterFence | InsideRemedy::AwaitProduct) => facts.push(
            "The PTX has it in that order. A compiler may have moved the use there from behind the wait, and the \
             assembler may wait by itself and say so (\"wgmma.mma_async instructions are serialized\")."
                .to_owned(),
        ),
        KernelGrade::Likely if remedy == InsideRemedy::WiderWait => facts.push(
            "Waits that name no scope have that of the block, and devices do more than they promise.".to_owned(),
        ),
        KernelGrade::Likely if remedy == InsideRemedy::BlockStays => facts.push(
            "The access is an operation on a barrier object, or one that the hardware carries out: it may find the \
             memory there."
                .to_owned(),
        ),
        KernelGrade::Likely => facts.push(
            "One of the two is volatile, which orders nothing by itself, or it is a plain check in front of an atomic \
             operation, which does not check again what was read."
                .to_owned(),
        ),
        KernelGrade::Certain => {}
    }
    Synchronisation { facts, missing, mend: vec![MendingLines { api: Api::Runtime, lines }] }
}
