//! From a raw finding to report data: ids become names, lines and sentences.
//!
//! Owns the naming of things. Runs for findings only, so it may be slow. What would mend a finding
//! is [`super::mend`]. Does not print.

use crate::call_site::{self, is_segment, place, site, site_frame};
use crate::doubt::{Measuring, parameter};
use crate::fingerprint::identity;
use crate::model::{AllocationInfo, Finding, Inside, Side, StreamName, titled};
use crate::words::{Actor, Established, FindingKind, LaneKind, MemoryWord, counted, memory_kind, verb};
use detect::findings::RawFinding;
use detect::launch_memory::evaluator::LaunchEvaluator;
use detect::memory::{Access, AccessKind, Allocation, Cause, Missed, Precision, Region, Site, TensorMaps};
use detect::race::Beside;
use detect::state::graphs::Graphs;
use detect::state::handovers::HandOvers;
use detect::state::names::{KernelDef, Names};
use detect::state::polls::Polls;
use detect::state::regions::Regions;
use detect::state::streams::Streams;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use symbols::frame::{Frame, FrameKind};
use symbols::stacks::Stacks;
use symbols::torch::{Operator, Schemas, backward, held_by, operands, purpose, touched};
use trace::{MemoryKind, StackId, StreamId, StreamKind};

/// Everything that resolving ids takes.
pub struct Elaborator<'a> {
    /// Calls, kernels, threads.
    pub names: &'a Names,
    /// Streams.
    pub streams: &'a Streams,
    /// NVTX regions.
    pub regions: &'a Regions,
    /// Work that threads of Python have handed to others.
    pub handovers: &'a HandOvers,
    /// Kernels that poll flags.
    pub polls: &'a Polls,
    /// Graphs, for the streams that were captured.
    pub graphs: &'a Graphs,
    /// Tensor maps, for where they were made.
    pub maps: &'a TensorMaps,
    /// Stacks.
    pub stacks: &'a mut dyn Stacks,
    /// Operators of PyTorch.
    pub schemas: Schemas,
    /// Kernels, for the lines in them.
    pub code: &'a mut LaunchEvaluator,
    /// The program's names for its memory.
    pub memory_names: &'a [Box<str>],
    /// Where the levels of mipmapped arrays end.
    pub array_levels: &'a [Box<[u64]>],
    /// What this run measures.
    pub measuring: Measuring,
    /// Stacks that have been resolved: many findings share few.
    pub resolved: Resolved,
}

/// Most stacks that are kept resolved.
const MOST: usize = 1 << 14;

/// What is known of stacks.
#[derive(Default)]
pub struct Resolved {
    frames: FxHashMap<StackId, Rc<[Frame]>>,
    places: FxHashMap<StackId, Option<String>>,
    sites: FxHashMap<StackId, (Rc<str>, Rc<str>)>,
}

impl Elaborator<'_> {
    /// The frames of a stack.
    pub fn frames(&mut self, stack: StackId) -> Rc<[Frame]> {
        let known = &mut self.resolved;
        if known.frames.len() > MOST {
            *known = Resolved::default();
        }
        Rc::clone(known.frames.entry(stack).or_insert_with(|| self.stacks.resolve(stack).into()))
    }

    /// A call site in prose.
    pub fn place(&mut self, stack: StackId) -> Option<String> {
        if let Some(known) = self.resolved.places.get(&stack) {
            return known.clone();
        }
        let frames = self.frames(stack);
        let place = call_site::place(&frames, self.stacks);
        self.resolved.places.insert(stack, place.clone());
        place
    }

    /// The call site of a stack and its line of source, both empty where they are not known.
    pub(super) fn site_of(&mut self, stack: StackId) -> (Rc<str>, Rc<str>) {
        if let Some(known) = self.resolved.sites.get(&stack) {
            return known.clone();
        }
        let frames = self.frames(stack);
        let source = site_frame(&frames).and_then(|frame| frame.source.as_deref()).unwrap_or_default().trim();
        let found = (site(&frames).unwrap_or_default().into(), source.into());
        self.resolved.sites.insert(stack, found.clone());
        found
    }

    /// Resolves a finding.
    pub fn finding(&mut self, raw: &RawFinding) -> Finding {
        let race = &raw.race;
        let base = raw.allocation.map_or(0, |a| a.ptr);
        let [previous, access] =
            [(&race.previous, race.beside[0]), (&race.access, race.beside[1])].map(|(one, other)| {
                let mut side = self.side(one, base);
                side.does_both = other.is_some() && !side.guessed;
                (side.arguments, side.to_output) = self.arguments(&side, one, other);
                side
            });
        let (a, p) = (&race.access.extent, &race.previous.extent);
        let from = a.start.max(p.start);
        let to = a.end.min(p.end).max(from);
        let allocation = raw.allocation.as_ref().map(|a| self.memory(a));
        let other = raw.previous_allocation.filter(|o| raw.allocation.is_some_and(|a| a.id != o.id));
        let previous_allocation = other.as_ref().map(|o| self.memory(o));
        let is_tensor = allocation.as_ref().is_some_and(|memory| memory.kind == MemoryWord::Tensor);
        let synchronisation = self.synchronisation(raw, &previous, &access, is_tensor);
        let kind = match &allocation {
            Some(memory) if race.freed_early && memory.kind == MemoryWord::Tensor => {
                FindingKind::FreedWithoutRecordStream
            }
            _ if race.freed_early => FindingKind::FreedWhileUsed,
            _ => FindingKind::Race,
        };
        let mut finding = Finding {
            weakness: race.weakness,
            established: established(&race.previous, &race.access),
            doubts: self.doubts(race, raw.count > 1),
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
            ranges: self.ranges(raw.regions.as_slice()),
            allocation,
            previous_allocation,
            from: from.wrapping_sub(base),
            to: to.wrapping_sub(base),
            scene: self.scene(&raw.around),
            ..Finding::new(kind, race.hazard, race.confidence, [access, previous], synchronisation)
        };
        finding.identity = identity(&finding);
        finding
    }

    /// The names of regions, without those that have none.
    pub fn ranges(&self, regions: &[Region]) -> Vec<Vec<String>> {
        regions.iter().map(|region| self.regions.names(*region)).filter(|names| !names.is_empty()).collect()
    }

    /// Resolves one side. `base`: the address that its offsets count from.
    pub fn side(&mut self, access: &Access, base: u64) -> Side {
        let s = &access.site;
        let kernel = self.names.kernel(s.kernel).map(|k| self.stacks.demangle(&k.name));
        let stack = self.frames(s.stack).to_vec();
        let call = called(&stack, self.names.call(s.call));
        let (call, seen_by) = match s.cause {
            Cause::Host => (String::new(), String::new()),
            Cause::HostBetween => (String::new(), call),
            _ => (call, String::new()),
        };
        let mut side = Side {
            actor: Actor::of(s.cause),
            verb: verb(s.cause, access.kind),
            does_both: false,
            arguments: Vec::new(),
            to_output: false,
            guessed: s.guessed,
            call,
            seen_by,
            kernel,
            symbol: self.names.kernel(s.kernel).map_or_else(String::new, |k| k.name.to_string()),
            operator: Operator::of(&stack)
                .filter(|_| self.names.has_torch_blocks())
                .map(|operator| self.schemas.of(&operator)),
            stream: self.stream(s.stream),
            thread: self.names.thread(s.thread).map(|(tid, name)| (tid, name.to_string())),
            node: s.node.checked_sub(1),
            param: s.param,
            through: s.param.map_or_else(String::new, |offset| {
                parameter(offset, self.names.kernel(s.kernel).map_or(&[], |def| &def.params))
            }),
            from: 0,
            to: 0,
            precision: Precision::Unknown,
            gaps: String::new(),
            started: self.started(&stack, access),
            stack,
            launched: self.frames(s.launched).to_vec(),
            regions: self.regions.names(s.region),
            process: None,
            encoded: self.encoded(access),
            inside: self.inside(access),
        };
        describe_bytes(&mut side, access, base);
        side
    }

    /// The calls that made the tensor map by which a kernel copies these bytes.
    fn encoded(&mut self, access: &Access) -> Vec<String> {
        let (site, bytes) = (&access.site, &access.extent);
        if site.cause != Cause::Kernel {
            return Vec::new();
        }
        let made = self.maps.made_for(site.kernel, site.param, bytes.start, bytes.end);
        let mut places: Vec<String> = made.into_iter().filter_map(|stack| self.place(stack)).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Where Python started the backward pass that an access of PyTorch's engine belongs to.
    fn started(&mut self, stack: &[Frame], access: &Access) -> Vec<Frame> {
        if !self.names.has_torch_blocks() || stack.iter().any(|f| f.kind == FrameKind::Python) {
            return Vec::new();
        }
        let started = self.handovers.started(access.site.thread, access.epoch);
        started.map_or_else(Vec::new, |started| backward(self.frames(started).to_vec()))
    }

    /// Which arguments of its operator hold the memory of a side.
    fn arguments(&self, side: &Side, access: &Access, beside: Option<Beside>) -> (Vec<String>, bool) {
        let Some(schema) = &side.operator else { return (Vec::new(), access.kind.writes()) };
        let does = |kind: AccessKind| access.kind == kind || beside.is_some_and(|other| other.kind == kind);
        let writes = access.kind.writes() || does(AccessKind::Write);
        let def = self.names.kernel(access.site.kernel);
        let pointers = side.kernel.as_deref().and_then(operands).and_then(|number| {
            let slot = def?.params.iter().find(|slot| slot.size == 8 * number as u32)?;
            let index = |param: Option<u32>| {
                let from = param?.checked_sub(slot.offset).filter(|from| *from < slot.size)?;
                Some(from as usize / 8)
            };
            let mut held: Vec<usize> = vec![index(access.site.param)?];
            held.extend(beside.and_then(|other| index(other.param)));
            Some((held, number))
        });
        match pointers {
            Some((held, number)) => held_by(schema, &held, number),
            None => touched(schema, writes, does(AccessKind::Read)),
        }
    }

    /// Where in its kernel an access is made, when the code has a line table.
    fn inside(&mut self, access: &Access) -> Option<Inside> {
        let s = &access.site;
        let def = self.names.kernel(s.kernel).filter(|_| s.at != 0)?;
        let context = self.streams.get(s.stream).map_or(trace::ContextId::NONE, |stream| stream.context);
        self.line_in(def, self.names.arch(context)?, s.at)
    }

    /// The line of an access in its kernel, and the last wait for other grids that the source has
    /// in front of it, by the outermost lines of code that was inlined.
    pub(super) fn wait_above(&mut self, access: &Access) -> Option<(String, String)> {
        let site = &access.site;
        let def = self.names.kernel(site.kernel).filter(|_| site.at != 0)?;
        let context = self.streams.get(site.stream).map_or(trace::ContextId::NONE, |stream| stream.context);
        let arch = self.names.arch(context)?;
        let (file, below) = self.code.outer_line(def, arch, site.at)?;
        let waits = self.code.waits(site.kernel);
        let lines = waits.into_iter().filter_map(|at| self.code.outer_line(def, arch, at));
        let above = lines.filter(|(in_file, line)| *in_file == file && *line < below).map(|(_, line)| line).max()?;
        let name = file.rsplit('/').next().unwrap_or_default();
        Some((format!("{name}:{below}"), format!("{name}:{above}")))
    }

    /// `file:line` of an instruction of a kernel that runs on a stream.
    pub(super) fn kernel_line(&mut self, stream: trace::StreamId, kernel: trace::KernelId, at: u32) -> Option<String> {
        let def = self.names.kernel(kernel)?;
        let context = self.streams.get(stream).map_or(trace::ContextId::NONE, |stream| stream.context);
        let (file, line) = self.code.line(def, self.names.arch(context)?, at)?;
        Some(format!("{}:{line}", file.rsplit('/').next().unwrap_or_default()))
    }

    /// The same, and where the kernel itself has called what has that line, if that was inlined.
    pub(super) fn kernel_lines(&mut self, stream: trace::StreamId, kernel: trace::KernelId, at: u32) -> Option<String> {
        let inner = self.kernel_line(stream, kernel, at)?;
        let def = self.names.kernel(kernel)?;
        let context = self.streams.get(stream).map_or(trace::ContextId::NONE, |stream| stream.context);
        let outer = self.code.outer_line(def, self.names.arch(context)?, at);
        let outer = outer.map(|(file, line)| format!("{}:{line}", file.rsplit('/').next().unwrap_or_default()));
        Some(match outer.filter(|outer| *outer != inner) {
            Some(outer) => format!("{inner} (called at {outer})"),
            None => inner,
        })
    }

    /// The source line of a kernel's instruction.
    pub(super) fn line_in(&mut self, def: &KernelDef, arch: u32, at: u32) -> Option<Inside> {
        let (file, line) = self.code.line(def, arch, at)?;
        let source = self.stacks.source(&file, line);
        Some(Inside { file, line, source })
    }

    /// Resolves an allocation.
    pub fn memory(&mut self, a: &Allocation) -> AllocationInfo {
        let stack = self.frames(a.stack).to_vec();
        AllocationInfo {
            name: self
                .memory_names
                .get((a.name as usize).wrapping_sub(1))
                .map_or_else(String::new, |name| name.to_string()),
            kind: match self.names.call(a.call) {
                call if a.kind == Some(MemoryKind::Block) && call.starts_with("c10::") => MemoryWord::Tensor,
                _ if a.kind == Some(MemoryKind::Device) && is_segment(&stack) => match self.names.has_torch_blocks() {
                    true => MemoryWord::Segment,
                    false => MemoryWord::SegmentOfUnseenBlocks,
                },
                _ => memory_kind(a.kind),
            },
            levels: self
                .array_levels
                .get((a.levels as usize).wrapping_sub(1))
                .map_or_else(Vec::new, |ends| ends.to_vec()),
            address: trace::mapped_address(a.ptr),
            size: a.size,
            call: called(&stack, self.names.call(a.call)),
            stack,
            freed: a.freed.map_or_else(Vec::new, |s| self.frames(s).to_vec()),
        }
    }

    /// A kernel's name as its author wrote it; empty when it is unknown.
    pub fn kernel_name(&self, kernel: trace::KernelId) -> String {
        self.names.kernel(kernel).map_or_else(String::new, |k| self.stacks.demangle(&k.name))
    }

    /// The lines about work that escaped captures and that graphs miss, each once.
    pub fn missed(&mut self, missed: &[Missed]) -> Vec<String> {
        let mut lines: Vec<String> = missed.iter().map(|missed| self.missed_line(missed)).collect();
        lines.sort();
        lines.dedup();
        lines
    }

    fn missed_line(&mut self, missed: &Missed) -> String {
        let stream = self.stream_name(missed.captured);
        let [escaped, node, changed] = [&missed.escaped, &missed.node, &missed.changed].map(|site| self.work_at(site));
        format!(
            "{escaped} ran once, while its thread captured {stream}, and is no node of the graph: {node} reads what it left, \
             and {changed} has changed what that was made of"
        )
    }

    fn work_at(&mut self, site: &Site) -> String {
        let what = match site.cause {
            Cause::Kernel => format!("kernel {}", self.kernel_name(site.kernel)),
            Cause::Copy => "a copy".to_owned(),
            Cause::Set => "a fill".to_owned(),
            Cause::Value => "a written value".to_owned(),
            Cause::Message => "a message".to_owned(),
            Cause::Host | Cause::HostBetween => "the host".to_owned(),
            Cause::Alloc | Cause::Free | Cause::Discard => "another use of its memory".to_owned(),
        };
        let stack = self.stacks.resolve(site.stack);
        place(&stack, self.stacks).map_or(what.clone(), |place| format!("{what} ({place})"))
    }

    /// The name of a stream in a sentence.
    pub fn stream_name(&mut self, id: StreamId) -> String {
        self.stream(id).long
    }

    /// The names of a stream.
    pub fn stream(&mut self, id: StreamId) -> StreamName {
        let of = |kind: LaneKind, name: &str, short: &str| StreamName {
            id: id.0,
            long: name.to_string(),
            name: name.to_string(),
            called: String::new(),
            short: short.to_string(),
            kind,
            stack: Vec::new(),
            handle: 0,
        };
        if id.is_none() {
            return of(LaneKind::Host, "the host", "host");
        }
        let (name, short) = (format!("stream {}", id.0), format!("stream_{}", id.0));
        let Some(stream) = self.streams.get(id).copied() else { return of(LaneKind::Unknown, &name, &short) };
        let made_at = stream.taken.unwrap_or(stream.stack);
        let (stack, place) = (self.frames(made_at).to_vec(), self.place(made_at));
        if stream.context == trace::ContextId::REQUESTS {
            let at = place.map_or_else(String::new, |at| format!(" that began at {at}"));
            let name = format!("{}{at}", self.streams.named(id).unwrap_or("the request"));
            return StreamName { stack, ..of(LaneKind::Request, &name, "request") };
        }
        let made = place.map_or_else(String::new, |at| format!(", created at {at}"));
        let made = stream.taken.and_then(|_| purpose(&stack)).map_or(made.clone(), |what| format!(", {what}{made}"));
        // Only with several devices.
        let device = self.names.device_of(stream.context);
        let at = device.map_or_else(String::new, |d| format!(", device {d}"));
        let of_device = device.map_or_else(String::new, |d| format!(" of device {d}"));
        let called = self.streams.named(id).unwrap_or_default();
        let title = titled(&name, called);
        let numbered = |kind: LaneKind| StreamName {
            long: format!("{title} ({kind}{at}{made})"),
            called: called.to_string(),
            handle: stream.handle,
            ..of(kind, &name, &short)
        };
        let named = match stream.kind {
            StreamKind::Blocking => numbered(LaneKind::Blocking),
            StreamKind::NonBlocking => numbered(LaneKind::NonBlocking),
            StreamKind::Legacy if self.names.has_torch_blocks() => {
                of(LaneKind::Legacy, &format!("the default stream{of_device}"), "cudaStreamLegacy")
            }
            StreamKind::Legacy => {
                of(LaneKind::Legacy, &format!("the legacy default stream{of_device}"), "cudaStreamLegacy")
            }
            StreamKind::PerThread => {
                let thread = self.names.thread(stream.thread);
                // Two of them must not read alike, in sentences and in the lines that mend.
                let (whose, short) = match thread {
                    Some((tid, _)) => {
                        (format!(" of thread {tid}"), format!("cudaStreamPerThread /* of thread {tid} */"))
                    }
                    None => (format!(" (stream {})", id.0), format!("cudaStreamPerThread /* stream {} */", id.0)),
                };
                of(LaneKind::PerThread, &format!("the per-thread default stream{whose}"), &short)
            }
        };
        StreamName { stack, ..named }
    }
}

/// Describes the bytes that a side touches. `base`: the address that its offsets count from.
pub fn describe_bytes(side: &mut Side, access: &Access, base: u64) {
    let e = &access.extent;
    let gaps: Vec<String> = e.dims().iter().map(|d| format!("{} times every {} bytes", d.count, d.stride)).collect();
    side.gaps = match e.pieces() {
        Some(pieces) => format!("{} bytes in {} pieces", pieces.bytes(), pieces.spans().len()),
        None if gaps.is_empty() => String::new(),
        None => format!("{} {}", counted(e.width(), "byte", "bytes"), gaps.join(", ")),
    };
    (side.from, side.to) = (e.start.wrapping_sub(base), e.end.wrapping_sub(base));
    side.precision = e.precision;
}

/// How the bytes of the two sides are known.
fn established(previous: &Access, access: &Access) -> Established {
    let predicted = |a: &&Access| a.site.cause == Cause::Kernel && !a.site.measured;
    let measured = |a: &&Access| a.site.measured;
    match [previous, access] {
        both if both.iter().any(predicted) => Established::Code,
        both if both.iter().any(measured) => Established::Exact,
        _ => Established::Call,
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
pub fn called(stack: &[Frame], driver: &str) -> String {
    if let Some(runtime) = stack.first().and_then(symbols::entered_by) {
        return runtime.to_string();
    }
    let name = driver.trim_end_matches("_ptsz").trim_end_matches("_ptds");
    let (base, version) = name.rsplit_once("_v").unwrap_or((name, ""));
    let is_version = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit());
    if is_version { base.to_string() } else { name.to_string() }
}
