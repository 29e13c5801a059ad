//! From a raw finding to report data: ids become names, lines and sentences.
//!
//! Owns the naming of things and the advice on the missing synchronisation. Runs for findings only,
//! so it may be slow. Does not print.

use crate::detect::confidence::is_staged_copy;
use crate::detect::findings::RawFinding;
use crate::launch_memory::evaluator::LaunchEvaluator;
use crate::memory::{Access, Allocation, Cause, Precision};
use crate::report::call_site::site;
use crate::report::doubt::parameter;
use crate::report::finding::STAGED;
use crate::report::fingerprint::identity;
use crate::report::model::{Actor, AllocationInfo, Finding, GateStatus, Inside, Side, StreamName, Synchronisation};
use crate::report::words::{completion, memory_kind, verb};
use crate::state::names::{KernelDef, Names};
use crate::state::regions::Regions;
use crate::state::streams::Streams;
use crate::symbols::frame::{Frame, FrameKind};
use crate::symbols::stacks::Stacks;
use crate::symbols::torch::{Operator, Schemas, purpose};
use trace::{MemoryKind, StackId, StreamId, StreamKind};

/// Everything that resolving ids takes.
pub struct Elaborator<'a> {
    /// Calls, kernels, threads.
    pub names: &'a Names,
    /// Streams.
    pub streams: &'a Streams,
    /// NVTX regions.
    pub regions: &'a Regions,
    /// Stacks.
    pub stacks: &'a mut dyn Stacks,
    /// Operators of PyTorch.
    pub schemas: Schemas,
    /// Kernels, for the lines in them.
    pub code: &'a mut LaunchEvaluator,
    /// The program's names for its memory.
    pub memory_names: &'a [Box<str>],
}

/// The elaborator of an analysis. A macro, because it borrows only these fields, which a method
/// could not: findings, hints and faults are iterated at the same time.
macro_rules! elaborator {
    ($analysis:expr) => {
        $crate::report::elaborate::Elaborator {
            names: &$analysis.names,
            streams: &$analysis.streams,
            regions: &$analysis.submissions.regions,
            stacks: &mut *$analysis.stacks,
            schemas: $analysis.schemas.clone(),
            code: &mut $analysis.code,
            memory_names: $analysis.memory.names(),
        }
    };
}
pub(crate) use elaborator;

impl Elaborator<'_> {
    /// Resolves a finding.
    pub fn finding(&mut self, raw: &RawFinding) -> Finding {
        let race = &raw.race;
        let base = raw.allocation.map_or(0, |a| a.ptr);
        let access = self.side(&race.access, base);
        let previous = self.side(&race.previous, base);
        let (a, p) = (&race.access.extent, &race.previous.extent);
        let from = a.start.max(p.start);
        let to = a.end.min(p.end).max(from);
        let allocation = raw.allocation.as_ref().map(|a| self.memory(a));
        let other = raw.previous_allocation.filter(|o| raw.allocation.is_some_and(|a| a.id != o.id));
        let previous_allocation = other.as_ref().map(|o| self.memory(o));
        let is_tensor = allocation.as_ref().is_some_and(|memory| memory.kind == TENSOR);
        let synchronisation = self.synchronisation(raw, &previous, &access, is_tensor);
        let mut finding = Finding {
            identity: Default::default(),
            fingerprint: String::new(),
            standing: GateStatus::New,
            hazard: race.hazard,
            kind: match &allocation {
                Some(memory) if race.freed_early && memory.kind == TENSOR => "freed-without-record_stream",
                _ if race.freed_early => "freed-while-used",
                _ => "race",
            },
            confidence: race.confidence,
            established: established(&race.previous, &race.access),
            doubts: self.doubts(race),
            latent: race.latent,
            host: [access.actor, previous.actor].iter().any(|a| matches!(a, Actor::Host | Actor::Message)),
            // The call that found a change does not say where the host made it.
            internal: is_library_internal(
                if access.seen_by.is_empty() { &access.stack } else { &previous.stack },
                &previous.stack,
                allocation.as_ref(),
            ),
            count: raw.count,
            pid: self.names.process.pid,
            origin: self.names.process.name(),
            processes: Vec::new(),
            occurrences: Vec::new(),
            programs: Vec::new(),
            access,
            previous,
            allocation,
            previous_allocation,
            from: from.wrapping_sub(base),
            to: to.wrapping_sub(base),
            synchronisation,
            scene: self.scene(&raw.around),
            cause: String::new(),
        };
        finding.identity = identity(&finding);
        finding
    }

    /// Resolves one side. `base`: the address that its offsets count from.
    pub fn side(&mut self, access: &Access, base: u64) -> Side {
        let s = &access.site;
        let kernel = self.names.kernel(s.kernel).map(|k| self.stacks.demangle(&k.name));
        let stack = self.stacks.resolve(s.stack);
        let call = called(&stack, self.names.call(s.call));
        let (call, seen_by) = match s.cause {
            Cause::Host => (String::new(), String::new()),
            Cause::HostBetween => (String::new(), call),
            _ => (call, String::new()),
        };
        let mut side = Side {
            actor: actor(s.cause),
            verb: verb(s.cause, access.kind),
            guessed: s.guessed,
            call,
            seen_by,
            kernel,
            operator: Operator::of(&stack).filter(|_| self.names.torch).map(|operator| self.schemas.of(&operator)),
            stream: self.stream(s.stream),
            thread: self.names.thread(s.thread).map(|(tid, name)| (tid, name.to_string())),
            node: s.node.checked_sub(1),
            param: s.param,
            through: s.param.map_or_else(String::new, |offset| {
                parameter(offset, self.names.kernel(s.kernel).map_or(&[], |def| &def.params))
            }),
            from: 0,
            to: 0,
            precision: "unknown",
            gaps: String::new(),
            stack,
            launched: self.stacks.resolve(s.launched),
            regions: self.regions.names(s.region),
            process: None,
            inside: self.inside(access),
        };
        describe_bytes(&mut side, access, base);
        side
    }

    /// Where in its kernel an access is made, when the code has a line table.
    fn inside(&mut self, access: &Access) -> Option<Inside> {
        let s = &access.site;
        let def = self.names.kernel(s.kernel).filter(|_| s.at != 0)?;
        let context = self.streams.get(s.stream).map_or(trace::ContextId::NONE, |stream| stream.context);
        self.line_in(def, self.names.arch(context)?, s.at)
    }

    /// The source line of a kernel's instruction.
    pub(super) fn line_in(&mut self, def: &KernelDef, arch: u32, at: u32) -> Option<Inside> {
        let (file, line) = self.code.line(def, arch, at)?;
        let source = self.stacks.source(&file, line);
        Some(Inside { file, line, source })
    }

    /// Resolves an allocation.
    pub fn memory(&mut self, a: &Allocation) -> AllocationInfo {
        let stack = self.stacks.resolve(a.stack);
        AllocationInfo {
            name: self
                .memory_names
                .get((a.name as usize).wrapping_sub(1))
                .map_or_else(String::new, |name| name.to_string()),
            kind: match self.names.call(a.call) {
                call if a.kind == Some(MemoryKind::Block) && call.starts_with("c10::") => TENSOR,
                _ if a.kind == Some(MemoryKind::Device) && is_segment(&stack) => match self.names.torch {
                    true => "a segment of PyTorch's allocator",
                    false => "a segment of PyTorch's allocator, whose blocks were not seen",
                },
                _ => memory_kind(a.kind),
            },
            address: a.ptr,
            size: a.size,
            call: called(&stack, self.names.call(a.call)),
            stack,
            freed: a.freed.map_or_else(Vec::new, |s| self.stacks.resolve(s)),
        }
    }

    /// A kernel's name as its author wrote it; empty when it is unknown.
    pub fn kernel_name(&self, kernel: trace::KernelId) -> String {
        self.names.kernel(kernel).map_or_else(String::new, |k| self.stacks.demangle(&k.name))
    }

    /// The name of a stream in a sentence.
    pub fn stream_name(&mut self, id: StreamId) -> String {
        self.stream(id).long
    }

    /// The names of a stream.
    pub fn stream(&mut self, id: StreamId) -> StreamName {
        let of = |kind, name: &str, short: &str| StreamName {
            id: id.0,
            long: name.to_string(),
            name: name.to_string(),
            short: short.to_string(),
            kind,
            stack: Vec::new(),
            handle: 0,
        };
        if id.is_none() {
            return of("host", "the host", "host");
        }
        let (name, short) = (format!("stream {}", id.0), format!("stream_{}", id.0));
        let Some(stream) = self.streams.get(id).copied() else { return of("unknown", &name, &short) };
        let stack = self.stacks.resolve(stream.taken.unwrap_or(stream.stack));
        if stream.context == trace::ContextId::REQUESTS {
            let at = site(&stack).map_or_else(String::new, |at| format!(" that began at {at}"));
            let name = format!("the request{at}");
            return StreamName { stack, ..of("request", &name, "request") };
        }
        let made = site(&stack).map_or_else(String::new, |at| format!(", created at {at}"));
        let made = stream.taken.and_then(|_| purpose(&stack)).map_or(made.clone(), |what| format!(", {what}{made}"));
        // Only with several devices.
        let device = self.names.device_of(stream.context);
        let at = device.map_or_else(String::new, |d| format!(", device {d}"));
        let of_device = device.map_or_else(String::new, |d| format!(" of device {d}"));
        let called = self.streams.named(id).map_or_else(String::new, |called| format!(" \"{called}\""));
        let numbered = |kind| StreamName {
            long: format!("{name}{called} ({kind}{at}{made})"),
            handle: stream.handle,
            ..of(kind, &name, &short)
        };
        let named = match stream.kind {
            StreamKind::Blocking => numbered("blocking"),
            StreamKind::NonBlocking => numbered("non-blocking"),
            StreamKind::Legacy if self.names.torch => {
                of("legacy", &format!("the default stream{of_device}"), "cudaStreamLegacy")
            }
            StreamKind::Legacy => of("legacy", &format!("the legacy default stream{of_device}"), "cudaStreamLegacy"),
            StreamKind::PerThread => {
                let thread = self.names.thread(stream.thread);
                // Two of them must not read alike, in sentences and in the lines that mend.
                let (whose, short) = match thread {
                    Some((tid, _)) => {
                        (format!(" of thread {tid}"), format!("cudaStreamPerThread /* of thread {tid} */"))
                    }
                    None => (format!(" (stream {})", id.0), format!("cudaStreamPerThread /* stream {} */", id.0)),
                };
                of("per-thread", &format!("the per-thread default stream{whose}"), &short)
            }
        };
        StreamName { stack, ..named }
    }

    /// Whether PyTorch's streams are those that the program means: its allocator was seen, or no
    /// other package that has streams is on a stack.
    fn uses_torch(&self, previous: &Side, access: &Side) -> bool {
        const OTHERS: [&str; 5] = ["/cupy/", "/cupy_backends/", "/jaxlib/", "/jax/", "/cuda/core/"];
        let other = |f: &Frame| f.file.as_deref().is_some_and(|file| OTHERS.iter().any(|part| file.contains(part)));
        self.names.python && (self.names.torch || !previous.stack.iter().chain(&access.stack).any(other))
    }

    fn at(&mut self, stack: StackId) -> String {
        site(&self.stacks.resolve(stack)).map_or_else(String::new, |at| format!(" at {at}"))
    }

    fn synchronisation(
        &mut self,
        raw: &RawFinding,
        previous: &Side,
        access: &Side,
        is_tensor: bool,
    ) -> Synchronisation {
        let (p, a) = (&previous.stream, &access.stream);
        let mut s = Synchronisation::default();
        let (race, links) = (&raw.race, &raw.links);
        if race.latent {
            s.facts.push(
                "A synchronisation orders the two on today's drivers, but CUDA's documentation does not promise it."
                    .into(),
            );
        }
        if race.freed_early && !is_tensor {
            s.facts.push(format!(
                "The block went back to its pool while {} may still use it. This run's allocation got other memory; another run's may \
                 get this.",
                p.name
            ));
            s.missing =
                format!("Nothing makes {} wait for {} before the pool may give the bytes to it.", a.name, p.name);
            s.cuda.push(format!("cudaEventRecord(event, {});", p.short));
            s.cuda.push(format!("cudaStreamWaitEvent({}, event, 0);  // before the block goes back", a.short));
            return s;
        }
        if race.freed_early {
            s.facts.push(format!(
                "The tensor was freed while {} may still use it, without record_stream. This run's allocation got other memory; \
                 another run's may get this.",
                p.name
            ));
            s.missing = format!("Neither record_stream nor a wait makes {} wait for {} in time.", a.name, p.name);
            s.torch.push(format!("tensor.record_stream({})  # before its last reference goes", torch_name(p)));
            s.torch.push(format!("{}.wait_stream({})  # or this, before it goes", torch_name(a), torch_name(p)));
            return s;
        }
        if race.previous.epoch == race.access.epoch {
            let (from, to) = (previous.node.unwrap_or_default(), access.node.unwrap_or_default());
            s.facts.push("Both are nodes of one graph, launched together.".into());
            s.missing = format!("No path of dependencies leads from node {from} to node {to}.");
            s.cuda.push(format!("cudaGraphAddDependencies(graph, &node_{from}, &node_{to}, ...);"));
            if self.uses_torch(previous, access) {
                s.torch.push("order the two inside the capture, for example with side.wait_stream(main)".into());
            }
            return s;
        }
        if p.id == a.id && race.access.site.batch != 0 {
            s.facts.push("Both are copies of one batch, which may run in any order.".into());
            s.missing = "Nothing orders the members of a batch among themselves.".into();
            s.cuda.push("split the batch into two calls".into());
            return s;
        }
        if let Some(link) = links.forward {
            let (waited, recorded) = (self.at(link.waited), self.at(link.recorded));
            let early =
                link.upto.timeline == race.previous.epoch.timeline && link.upto.time <= race.previous.epoch.time;
            let why = if early { ", which was before the previous access" } else { "" };
            s.facts.push(format!(
                "{} last waited for {}{waited}, for an event recorded{recorded}{why}.",
                cap(&a.name),
                p.name
            ));
        }
        if let Some(stack) = links.empty {
            let at = self.at(stack);
            s.facts.push(format!(
                "{} waited{at} for an event that had never been recorded; such a wait orders nothing.",
                cap(&a.name)
            ));
        }
        if let Some(stack) = links.vain {
            let at = self.at(stack);
            s.facts.push(format!(
                "A query{at} asked for an event that had never been recorded; such a query succeeds and orders nothing."
            ));
        }
        if let (Some(link), None) = (links.backward, links.forward) {
            let at = self.at(link.waited);
            s.facts.push(format!("There is a wait the other way round: {} waited for {}{at}.", p.name, a.name));
        }
        if let Some(mistake) = self.mistaken_wait(&raw.around) {
            s.facts.push(mistake);
        }
        if !access.seen_by.is_empty() {
            s.facts.push("--host-accesses names the line of the host that writes there.".into());
        }
        if let (Some(old), Some(new)) = (raw.previous_allocation, raw.allocation)
            && old.id != new.id
            && let Some(freed) = old.freed
        {
            let (given, handed) = (self.at(freed), self.at(new.stack));
            s.facts.push(format!(
                "The memory was given back{given} and handed out again{handed}. Whatever handed it out took the \
                 previous access to be over, and nothing in the program orders that."
            ));
        }
        if matches!((p.kind, a.kind), ("legacy", "non-blocking") | ("non-blocking", "legacy")) {
            s.facts.push("A non-blocking stream takes no part in the order of the legacy default stream.".into());
        }
        if is_staged_copy(self.names.call(race.previous.site.call), &race.previous) {
            s.facts.push(format!(
                "{} {STAGED}, but its bytes may still be on their way to the device: CUDA's \"API synchronization \
                 behavior\", rule C3 in docs/reference/order-rules.md.",
                previous.call
            ));
        }
        let by_host = |name: &StreamName| matches!(name.kind, "host" | "request");
        if links.forward.is_none() && !race.latent && !by_host(a) && !by_host(p) {
            s.facts.push(format!("{} never waited for an event of {}.", cap(&a.name), p.name));
        }
        let (first, second) = (place(&previous.stack), place(&access.stack));
        if p.kind == "request" {
            s.missing = format!("The host does not wait until {} is complete.", p.name);
            s.cuda.push(format!("{}  // before this access{second}", completion(&previous.call)));
            return s;
        }
        if access.actor == Actor::Host || by_host(a) {
            s.missing = format!("The host does not wait for {} to finish the previous access.", p.name);
            let place = match (access.actor, access.seen_by.is_empty()) {
                (Actor::Host, false) => "before the host writes there".to_string(),
                _ => format!("before this access{second}"),
            };
            s.cuda.push(format!("cudaStreamSynchronize({});  // {place}", p.short));
            if self.uses_torch(previous, access) {
                s.torch.push(format!("{}.synchronize()  # {place}", torch_name(p)));
            }
            return s;
        }
        s.missing = format!("Nothing makes {} wait until {} has finished the previous access.", a.name, p.name);
        let record = format!("cudaEventRecord(event, {});", p.short);
        let wait = format!("cudaStreamWaitEvent({}, event, 0);", a.short);
        let width = record.len().max(wait.len());
        s.cuda.push(format!("{record:width$}  // after the previous access{first}"));
        s.cuda.push(format!("{wait:width$}  // before this access{second}"));
        if self.uses_torch(previous, access) {
            let reused = raw
                .previous_allocation
                .is_some_and(|o| o.freed.is_some() && raw.allocation.is_some_and(|n| n.id != o.id));
            if reused {
                s.torch.push(format!("tensor.record_stream({})  # before the tensor is freed", torch_name(p)));
            } else {
                s.torch.push(format!("{}.wait_stream({})  # before this access{second}", torch_name(a), torch_name(p)));
            }
        }
        s
    }
}

/// Describes the bytes that a side touches. `base`: the address that its offsets count from.
pub fn describe_bytes(side: &mut Side, access: &Access, base: u64) {
    let e = &access.extent;
    let gaps: Vec<String> = e.dims().iter().map(|d| format!("{} times every {} bytes", d.count, d.stride)).collect();
    side.gaps = if gaps.is_empty() { String::new() } else { format!("{} bytes {}", e.width(), gaps.join(", ")) };
    (side.from, side.to) = (e.start.wrapping_sub(base), e.end.wrapping_sub(base));
    side.precision = match e.precision {
        Precision::Exact => "exact",
        Precision::Bound => "bound",
        Precision::Unknown => "unknown",
    };
}

/// How the bytes of the two sides are known.
fn established(previous: &Access, access: &Access) -> &'static str {
    let predicted = |a: &&Access| a.site.cause == Cause::Kernel && !a.site.measured;
    let measured = |a: &&Access| a.site.measured;
    match [previous, access] {
        both if both.iter().any(predicted) => "code",
        both if both.iter().any(measured) => "exact",
        _ => "call",
    }
}

/// Whether both ops and the memory belong to one of NVIDIA's libraries. For example, cuDNN clears
/// the workspace of a new handle on a stream of its own and uses it on the program's without an
/// event between (seen with cuDNN 9 under PyTorch 2.11): a true race, but the program can not fix
/// it. Without recorded stacks the owner of the memory decides alone, because the caller of an
/// allocation is always known.
fn is_library_internal(access: &[Frame], previous: &[Frame], allocation: Option<&AllocationInfo>) -> bool {
    const LIBRARIES: [&str; 9] = [
        "libcudnn",
        "libcublas",
        "libcufft",
        "libcusolver",
        "libcusparse",
        "libcurand",
        "libnccl",
        "libnpp",
        "libnvjpeg",
    ];
    let library = |stack: &[Frame]| {
        let caller = stack.iter().find(|f| f.kind == FrameKind::Native)?;
        let module = caller.module.as_deref()?.rsplit('/').next()?;
        LIBRARIES.into_iter().find(|prefix| module.starts_with(prefix))
    };
    let owner = allocation.and_then(|memory| library(&memory.stack));
    owner.is_some() && [access, previous].iter().all(|side| side.is_empty() || library(side) == owner)
}

/// The function that the program called: that of CUDA's runtime when the stack shows it, otherwise
/// the driver's, as in CUDA's documentation.
pub(crate) fn called(stack: &[Frame], driver: &str) -> String {
    if let Some(runtime) = stack.first().and_then(crate::symbols::entered_by) {
        return runtime.to_string();
    }
    let name = driver.trim_end_matches("_ptsz").trim_end_matches("_ptds");
    let (base, version) = name.rsplit_once("_v").unwrap_or((name, ""));
    let is_version = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit());
    if is_version { base.to_string() } else { name.to_string() }
}

fn place(stack: &[Frame]) -> String {
    site(stack).map_or_else(String::new, |at| format!(", {at}"))
}

fn cap(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

fn torch_name(stream: &StreamName) -> String {
    if stream.kind == "legacy" { "torch.cuda.default_stream()".into() } else { stream.short.clone() }
}

fn actor(cause: Cause) -> Actor {
    match cause {
        Cause::Copy => Actor::Copy,
        Cause::Set => Actor::Set,
        Cause::Kernel => Actor::Kernel,
        Cause::Alloc => Actor::Alloc,
        Cause::Free => Actor::Free,
        Cause::Value => Actor::Value,
        Cause::Discard => Actor::Discard,
        Cause::Message => Actor::Message,
        Cause::Host | Cause::HostBetween => Actor::Host,
    }
}

/// Whether PyTorch's caching allocator asked CUDA for more memory.
fn is_segment(stack: &[Frame]) -> bool {
    stack.iter().any(|f| f.module.as_deref().is_some_and(|module| module.ends_with("/libc10_cuda.so")))
}

/// A block of PyTorch's allocator.
const TENSOR: &str = "PyTorch tensor memory";
