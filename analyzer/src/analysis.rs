//! One process under analysis: records in, an outcome out.
//!
//! Owns the dispatch of ops to the parts that understand them. Each op is applied to the order first and then, if it does
//! anything to memory, compared with what was there before.

use crate::across::Member;
use crate::code::{Code, CodeReader, Knowledge, Launch};
use crate::coverage::{Coverage, KernelCoverage};
use crate::elaborate::Elaborator;
use crate::exact::confirm::{self, Confirm};
use crate::exact::hold::Hold;
use crate::exact::learned::{Learned, Lessons, Shape};
use crate::exact::oracle::Oracle;
use crate::exact::{compare, measured};
use crate::faults::Faults;
use crate::findings::{Findings, Standing};
use crate::given_back::GivenBack;
use crate::graphs::{Graph, Graphs};
use crate::hints::Hints;
use crate::host::{self, Watch, Watches};
use crate::memory::allocations::Object;
use crate::memory::{Access, AccessKind, Allocation, AllocationId, Allocations, Cause, Extent, Site};
use crate::names::Names;
use crate::ordering::Ordering;
use crate::race::{self, Confidence, Race};
use crate::recent::Recent;
use crate::regions::{Region, Regions};
use crate::report::fingerprint::number;
use crate::report::model::{Memory, Outcome, merge_finding};
use crate::stacks::Stacks;
use crate::streams::{Stream, Streams};
use crate::torch::Schemas;
use crate::work::Work;
use order::Policy;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use trace::launch_flags::{INSIDE_LIBRARY, PARAMS_UNKNOWN, PROGRAMMATIC_SERIALIZATION};
use trace::{Epoch, FreeKind, KernelId, MemoryKind, NoteKind, Op, Origin, Record, StackId, StreamId, ThreadId};

/// What an analysis may be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnalysisOptions {
    /// Which synchronisations count.
    pub policy: Policy,
    /// Also look for pairs that only an unpromised synchronisation orders.
    pub latent: bool,
    /// Also compare unknown extents at different addresses.
    pub pedantic: bool,
    /// Also look for what is no race, but probably not meant.
    pub hints: bool,
    /// Give host threads timelines of their own.
    pub host_threads: bool,
    /// Also compare what was predicted of launches with what exact mode measured.
    pub compare: bool,
    /// Put findings that are not certain on trial: ask for their kernels to be measured, withdraw what measurements refute.
    pub confirm: bool,
}

impl Default for AnalysisOptions {
    fn default() -> Self {
        Self {
            policy: Policy::Observed,
            latent: false,
            pedantic: false,
            hints: false,
            host_threads: false,
            compare: false,
            confirm: false,
        }
    }
}

/// One process under analysis.
pub struct Analysis {
    options: AnalysisOptions,
    pub(crate) names: Names,
    pub(crate) streams: Streams,
    pub(crate) memory: Allocations,
    pub(crate) ordering: Ordering,
    code: Code,
    pub(crate) graphs: Graphs,
    watches: Watches,
    latest: FxHashMap<ThreadId, Epoch>,
    pub(crate) stacks: Box<dyn Stacks>,
    findings: Findings,
    given_back: GivenBack,
    faults: Faults,
    hints: Hints,
    pub(crate) coverage: Coverage,
    /// Whether the trace says how host threads synchronise.
    has_host_edges: bool,
    kernels: FxHashMap<KernelId, KernelCoverage>,
    pub(crate) hold: Hold,
    oracle: Oracle,
    confirm: Option<Confirm>,
    /// What earlier runs have learned of launches, and what this one has.
    learned: Option<Lessons>,
    races: Vec<Race>,
    pub(crate) regions: Regions,
    recent: Recent,
    pub(crate) schemas: Schemas,
    /// The program has asked for its work not to be checked.
    pub(crate) paused: bool,
    /// The thread and the destination of the last op, when that was a copy from pageable memory.
    copied: Option<(ThreadId, u64)>,
    /// What it shares with other processes of its run.
    pub(crate) member: Option<Member>,
    /// Whether it shares anything.
    shares: bool,
}

impl Analysis {
    /// An analysis that resolves stacks and reads code through these.
    pub fn new(options: AnalysisOptions, stacks: Box<dyn Stacks>, code: Box<dyn CodeReader>) -> Self {
        Self {
            options,
            names: Names::default(),
            streams: Streams::default(),
            memory: Allocations::default(),
            ordering: Ordering::new(options.policy, options.latent, options.host_threads),
            code: Code::new(code),
            graphs: Graphs::default(),
            watches: Watches::default(),
            latest: FxHashMap::default(),
            stacks,
            findings: Findings::default(),
            given_back: GivenBack::default(),
            faults: Faults::default(),
            hints: Hints::default(),
            coverage: Coverage::default(),
            has_host_edges: false,
            kernels: FxHashMap::default(),
            hold: Hold::default(),
            oracle: Oracle::default(),
            confirm: options.confirm.then(Confirm::default),
            learned: None,
            races: Vec::new(),
            regions: Regions::default(),
            recent: Recent::default(),
            schemas: Schemas::default(),
            paused: false,
            copied: None,
            member: None,
            shares: false,
        }
    }

    /// Takes the next record of the trace.
    pub fn feed(&mut self, record: &Record<'_>) {
        if self.hold.takes(record) {
            self.release();
        } else {
            self.apply(record);
        }
    }

    /// Applies records that waited for a launch to be measured, and need not wait any more.
    #[cold]
    fn release(&mut self) {
        while let Some(bytes) = self.hold.release() {
            match Record::decode(&bytes) {
                Ok(record) => self.apply(&record),
                Err(_) => self.damaged(),
            }
        }
    }

    fn apply(&mut self, record: &Record<'_>) {
        if let Op::Clock { ns } = record.op {
            self.member.iter_mut().for_each(|member| member.clock(ns));
            return;
        }
        self.coverage.ops += 1;
        if record.op.tag() < 32 {
            self.define(&record.op);
            return;
        }
        let epoch = match record.op {
            Op::Launch { stream, kernel, flags, .. } if flags & PROGRAMMATIC_SERIALIZATION != 0 => {
                let arch = self.arch(stream);
                if self.code.waits(kernel, self.names.kernel(kernel), arch) {
                    self.ordering.apply_waiting_launch(stream, record.origin.thread)
                } else {
                    self.ordering.apply(&record.op, record.origin.thread)
                }
            }
            _ => self.ordering.apply(&record.op, record.origin.thread),
        };
        if self.options.hints {
            let view = self.ordering.view(epoch, None);
            self.hints.observe(&record.op, &record.origin, &view, &self.names, &self.streams);
        }
        if self.names.torch {
            self.given_back.observe(&record.op, record.origin.thread, epoch);
        }
        self.recent.observe(&record.op, &record.origin, epoch);
        self.act(&record.op, &record.origin, epoch);
        self.shares |= matches!(record.op, Op::SharedMemory { .. } | Op::SharedEvent { .. });
        if self.shares {
            self.tell_others(&record.op, epoch);
        }
        if self.paused {
            self.races.clear();
        }
        if let Some(trial) = &mut self.confirm
            && !trial.supposed.is_empty()
        {
            let mut supposed = std::mem::take(&mut trial.supposed);
            race::merge(&mut supposed);
            for race in supposed.iter().filter(|race| confirm::is_refuted(race, &self.races)) {
                self.findings.refute(race, &self.memory);
            }
        }
        if !self.races.is_empty() {
            self.count_races();
        }
    }

    /// Uses what was learned of launches, and learns more.
    pub fn learn(&mut self, known: Arc<Learned>) {
        self.learned = Some(Lessons { known, fresh: Learned::default() });
    }

    /// A kernel that is to be measured from now on, each once.
    pub fn wanted(&mut self) -> Option<KernelId> {
        self.confirm.as_mut()?.wanted()
    }

    /// Takes a definition that the trace has at its end: before all other records, and counted with none of them.
    pub fn define_late(&mut self, op: &Op<'_>) {
        if matches!(op, Op::Symbol { .. } | Op::Source { .. } | Op::Image { .. } | Op::Schema { .. }) {
            self.define(op);
        }
    }

    /// A record could not be decoded.
    pub fn damaged(&mut self) {
        self.coverage.damaged += 1;
    }

    /// Everything found, and what could be seen.
    pub fn finish(&mut self) -> Outcome {
        self.hold.end();
        self.release();
        let mut elaborator =
            Elaborator::new(&self.names, &self.streams, &self.regions, &mut *self.stacks, &self.schemas);
        let (mut findings, mut withdrawn) = (Vec::new(), Vec::new());
        for (raw, standing) in self.findings.judged() {
            if standing == Standing::Replaced {
                continue;
            }
            let finding = elaborator.finding(raw);
            // That function takes the stream as an argument, which the allocator does not tell.
            let elsewhere = |memory: &Memory| memory.stack.iter().any(|f| f.function == "caching_allocator_alloc");
            if raw.race.given_back && finding.allocation.as_ref().is_some_and(elsewhere) {
                continue;
            }
            merge_finding(if standing == Standing::Withdrawn { &mut withdrawn } else { &mut findings }, finding);
        }
        number(&mut findings);
        let mut coverage = self.coverage.clone();
        for (id, kernel) in &self.kernels {
            let name = self.names.kernel(*id).map_or("", |k| &k.name);
            coverage.kernels.entry(name.to_string()).or_default().merge(kernel);
        }
        if self.options.host_threads && !self.has_host_edges {
            let what = "synchronisation of host threads (recorded with --host-order threads only)";
            coverage.unobserved.insert(what.to_string(), 1);
        }
        coverage.forgotten = self.memory.forgotten();
        coverage.findings_dropped = self.findings.dropped();
        if self.hold.given_up() > 0 {
            let text = "exact ranges of launches that were not seen to end".to_string();
            *coverage.unobserved.entry(text).or_default() += self.hold.given_up();
        }
        let hints = self.hints.finish(&mut elaborator);
        let faults = self.faults.finish(&mut elaborator);
        let mut outcome = Outcome {
            process: self.names.process.clone(),
            member: None,
            findings,
            withdrawn,
            hints,
            faults,
            coverage,
            oracle: std::mem::take(&mut self.oracle),
            learned: self.learned.as_mut().map(|l| std::mem::take(&mut l.fresh)).unwrap_or_default(),
        };
        self.leave(&mut outcome);
        outcome
    }

    /// Live roots, live blocks and remembered accesses, for the bounds on memory.
    pub fn footprint(&self) -> (usize, usize, usize) {
        self.memory.footprint()
    }

    fn define(&mut self, op: &Op<'_>) {
        if let Op::Process { .. } = op {
            self.stacks.define(op);
        }
        if self.names.define(op) {
            return;
        }
        match *op {
            Op::Module { .. } | Op::Stack { .. } | Op::Symbol { .. } | Op::Source { .. } => self.stacks.define(op),
            Op::PyCode { .. } => {
                self.names.python = true;
                self.stacks.define(op);
            }
            Op::Image { .. } => self.code.image(op),
            Op::Schema { operator, text } => self.schemas.tell(&operator.lossy(), &text.lossy()),
            Op::Note { kind, text, count } => {
                let text = text.lossy().into_owned();
                match kind {
                    NoteKind::NotModelled => *self.coverage.not_modelled.entry(text).or_default() += count.max(1),
                    NoteKind::Unobserved => *self.coverage.unobserved.entry(text).or_default() += count.max(1),
                    NoteKind::Disabled => self.coverage.disabled.push(text),
                    NoteKind::Info => {}
                }
            }
            _ => {}
        }
    }

    fn moment(&self, origin: &Origin, epoch: Epoch) -> Moment {
        Moment { origin: *origin, epoch, graph: None, region: self.regions.current(origin.thread) }
    }

    fn act(&mut self, op: &Op<'_>, origin: &Origin, epoch: Epoch) {
        if matches!(op, Op::Copy { .. } | Op::GraphLaunch { .. }) {
            self.latest.insert(origin.thread, epoch);
        }
        match *op {
            Op::Checking { on } => {
                // What is written meanwhile is not seen.
                self.memory.contents.forget_all();
                self.copied = None;
                self.paused = !on;
            }
            Op::RangePush { name } => self.regions.push(origin.thread, &name.lossy()),
            Op::RangePop {} => self.regions.pop(origin.thread),
            Op::Launch { .. }
            | Op::Copy { .. }
            | Op::AttributedCopy { .. }
            | Op::Set { .. }
            | Op::WriteValue { .. }
            | Op::Prefetch { .. }
            | Op::GraphLaunch { .. }
                if self.paused =>
            {
                self.coverage.paused += 1;
            }
            Op::Launch { .. }
            | Op::Copy { .. }
            | Op::AttributedCopy { .. }
            | Op::Set { .. }
            | Op::WriteValue { .. }
            | Op::Prefetch { .. } => {
                self.work(op, self.moment(origin, epoch), None);
            }
            Op::GraphLaunch { stream, exec } => self.launch_graph(stream, exec, origin, epoch),
            Op::Alloc { .. } | Op::Free { .. } => self.work(op, self.moment(origin, epoch), None),
            Op::ContextCreate { .. } => {
                self.names.define(op);
            }
            Op::ContextDestroy { context } => self.memory.destroy_context(context, origin.stack),
            Op::StreamCreate { stream, context, kind, handle, .. } => {
                let (stack, thread) = (origin.stack, origin.thread);
                self.streams.create(Stream { id: stream, kind, context, stack, thread, handle, taken: None });
            }
            Op::Failed { result, stream } => {
                let ordering = &self.ordering;
                self.faults.failed(result, stream, origin, |epoch| ordering.host_saw(epoch));
            }
            Op::StreamTaken { stream } => self.streams.taken(stream, origin.stack),
            Op::StreamDestroy { stream } => self.streams.destroy(stream),
            Op::EventRecord { event, stream, .. } => self.streams.record(event, stream, epoch, origin.stack),
            Op::StreamWait { stream, event, .. } => self.streams.wait(stream, event, origin.stack),
            Op::EventDestroy { event } => self.streams.destroy_event(event),
            Op::Contents { ptr, bytes } => {
                let told = std::mem::take(&mut self.copied);
                Work::learn(&mut self.memory, if told == Some((origin.thread, ptr)) { bytes } else { &[] }, ptr);
            }
            Op::Alias { ptr, target, size } => self.memory.alias(ptr, target, size),
            Op::Global { ptr, size, image, name } => {
                let info = Self::allocation(ptr, size, MemoryKind::ModuleGlobal, origin);
                self.memory.name_global(image, &name.lossy(), info);
            }
            Op::ArrayCreate { array, size, .. } => {
                let info = Allocation { kind: None, ..Self::allocation(0, size, MemoryKind::Device, origin) };
                self.memory.array(array, info);
            }
            Op::ArrayDestroy { array } => {
                let view = self.ordering.view(epoch, None);
                let site = self.moment(origin, epoch).site(Cause::Free, StreamId::NONE);
                Work::new(&mut self.memory, view, site, &mut self.races, self.options.pedantic).whole_array(array);
                self.memory.destroy_array(array);
            }
            Op::ObjectCreate { object, region, writable } => self.memory.object(object, Object { region, writable }),
            Op::ObjectDestroy { object } => self.memory.destroy_object(object),
            Op::HostThreads {} => self.has_host_edges = true,
            Op::GraphExec { exec, nodes, .. } => self.graphs.define(exec, nodes),
            Op::GraphNode { .. } => {
                let (code, names) = (&mut self.code, &self.names);
                let arch = names.arch(trace::ContextId::NONE);
                // Not asked before the device is known: the answer would stay.
                let waits = |kernel| arch.is_none() || code.waits(kernel, names.kernel(kernel), arch);
                let known = self.graphs.node(op, waits);
                self.coverage.damaged += u64::from(!known);
            }
            Op::GraphExecDestroy { exec } => self.graphs.destroy(exec),
            Op::HostWatch { .. } => self.watch(op, origin),
            Op::HostAccess { .. } => self.host_access(op, origin, epoch),
            _ => {}
        }
    }

    /// An op that touches memory, by itself or as a node of a graph.
    fn work(&mut self, op: &Op<'_>, moment: Moment, node: Option<(&Graph, u32)>) {
        self.copied = None;
        match *op {
            Op::Launch { stream, kernel, grid, block, cluster, shared, params, flags } => {
                if node.is_none() {
                    self.faults.launched(stream, kernel, &moment.origin, moment.epoch);
                }
                if flags & INSIDE_LIBRARY != 0 {
                    // What it touches is told by the library's own op.
                    self.coverage.launches += 1;
                    self.coverage.launches_exact += 1;
                    return;
                }
                if flags & PARAMS_UNKNOWN != 0 {
                    self.coverage.launches += 1;
                    self.coverage.launch_unknown("the parameters are not known");
                    return;
                }
                let launch = Launch { grid, block, cluster, shared, params };
                self.launch(stream, kernel, &launch, moment, node);
            }
            Op::Copy { stream, ref dst, ref src, dst_space, src_space, batch, .. }
            | Op::AttributedCopy { stream, ref dst, ref src, dst_space, src_space, batch, .. } => {
                self.coverage.memory_ops += 1;
                let site = Site { batch, ..moment.site(Cause::Copy, stream) };
                let staged = node.is_none() && self.ordering.source_is_read();
                self.at(moment, site, node).copy(dst, src, (dst_space, src_space), staged);
                // Only pageable memory is read before the call returns; pinned memory may still change.
                let pageable = node.is_none() && self.memory.locate(src.start).is_none();
                self.copied = pageable.then_some((moment.origin.thread, dst.start));
            }
            Op::Set { stream, ref dst, .. } => {
                self.coverage.memory_ops += 1;
                let site = moment.site(Cause::Set, stream);
                let kind = crate::memory::AccessKind::Write;
                self.at(moment, site, node).region(dst, kind, trace::Space::Unified, true);
            }
            Op::WriteValue { stream, address, width, .. } => {
                let site = moment.site(Cause::Value, stream);
                self.at(moment, site, node).value(address, width);
            }
            Op::Prefetch { stream, ref region, discard: true } => {
                let site = moment.site(Cause::Discard, stream);
                let kind = crate::memory::AccessKind::Write;
                self.at(moment, site, node).region(region, kind, trace::Space::Device, false);
            }
            Op::Alloc { ptr, size, kind, stream, .. } => self.alloc(op, ptr, size, kind, stream, moment, node),
            Op::Free { ptr, kind, stream } => self.free(ptr, kind, stream, moment, node),
            _ => {}
        }
    }

    fn at<'a>(&'a mut self, moment: Moment, site: Site, node: Option<(&'a Graph, u32)>) -> Work<'a, 'a> {
        let view = self.ordering.view(moment.epoch, node);
        let site = Site { node: node.map_or(0, |(_, i)| i + 1), ..site };
        let supposed = self.confirm.as_mut().map(|c| &mut c.supposed);
        Work::new(&mut self.memory, view, site, &mut self.races, self.options.pedantic).suppose(supposed)
    }

    fn launch(
        &mut self,
        stream: StreamId,
        kernel: KernelId,
        l: &Launch<'_>,
        moment: Moment,
        node: Option<(&Graph, u32)>,
    ) {
        let def = self.names.kernel(kernel);
        let arch = self.arch(stream);
        let predicted = self.code.evaluate(kernel, def, arch, l);
        if self.shares {
            let signals = self.code.signals(kernel, def, arch);
            self.member.iter_mut().filter(|_| signals).for_each(Member::signals);
        }
        let image = def.map_or(trace::ImageId::NONE, |d| d.image);
        // Nodes of graphs are not measured one by one.
        let touched = if node.is_none() { self.hold.touched(moment.origin.epoch) } else { None };
        // Code that runs as it was before it was patched touches nothing: not a word for it, then.
        let nothing = |runs: &Vec<_>| self.confirm.is_some() && runs.is_empty() && measured::claims(&predicted);
        let touched = if touched.as_ref().is_some_and(nothing) {
            *self.coverage.unobserved.entry("exact ranges that came back empty".to_string()).or_default() += 1;
            None
        } else {
            touched
        };
        let (mut touched, mut recalled) = (touched, false);
        if let Some(lessons) = self.learned.as_mut().filter(|_| !predicted.exact)
            && let Some(code) = self.code.identity(kernel, def, arch)
        {
            let shape = Shape::of(code, def.map_or("", |d| &d.name), l, &predicted.effects, &self.memory);
            match &touched {
                // Code that runs as it was before it was patched touches nothing.
                Some(runs) if runs.is_empty() && measured::claims(&predicted) => {}
                Some(runs) => lessons.fresh.learn(&shape, runs, &self.memory),
                None => {
                    touched = lessons.known.recall(&shape, &self.memory);
                    recalled = touched.is_some();
                }
            }
        }
        if let Some(runs) = touched.as_ref().filter(|_| self.options.compare && !recalled) {
            let c = compare::compare(&predicted, image, &mut self.memory, runs);
            self.oracle.add(def.map_or("(unknown)", |d| &d.name), l, &predicted, runs, &c);
        }
        let site = Site { kernel, ..moment.site(Cause::Kernel, stream) };
        let site = Site { node: node.map_or(0, |(_, i)| i + 1), ..site };
        let view = self.ordering.view(moment.epoch, node);
        let measured = touched.map(|runs| {
            let nowhere = |name: &str| !self.memory.has_address(image, name);
            (measured::effects(&runs), measured::unseen(&predicted, nowhere))
        });
        let supposed = self.confirm.as_mut().map(|c| &mut c.supposed);
        let mut work =
            Work::new(&mut self.memory, view, site, &mut self.races, self.options.pedantic).suppose(supposed);
        let known = match &measured {
            Some((known, unseen)) => {
                work.predicted(|work| match predicted.knowledge {
                    Knowledge::Unknown => work.pointers(Code::pointers(l.params, def)),
                    _ => work.effects(&predicted, image),
                });
                work.effects(unseen, image);
                work.site.measured = true;
                work.effects(known, image);
                known
            }
            None if predicted.knowledge == Knowledge::Unknown => {
                work.pointers(Code::pointers(l.params, def));
                &predicted
            }
            None => {
                work.effects(&predicted, image);
                &predicted
            }
        };
        let (several, work_unfollowed) = (work.several(), work.unfollowed());
        let c = &mut self.coverage;
        c.unknown_memory += work.unknown_memory;
        c.launches += 1;
        let indirect = known.indirect || work_unfollowed;
        c.launches_indirect += u64::from(indirect);
        c.launches_measured += u64::from(measured.is_some() && !recalled);
        c.launches_learned += u64::from(recalled);
        match known.knowledge {
            Knowledge::Exact => c.launches_exact += 1,
            Knowledge::KindsOnly => c.launches_kinds_only += 1,
            Knowledge::Unknown => {
                c.launch_unknown(self.code.reason(kernel).unwrap_or("the code could not be analysed"))
            }
        }
        self.kernels.entry(kernel).or_default().count(known, several, indirect);
    }

    fn arch(&self, stream: StreamId) -> Option<u32> {
        let context = self.streams.get(stream).map_or(trace::ContextId::NONE, |s| s.context);
        self.names.arch(context)
    }

    fn allocation(ptr: u64, size: u64, kind: MemoryKind, origin: &Origin) -> Allocation {
        Allocation {
            id: AllocationId::NONE,
            ptr,
            size,
            kind: Some(kind),
            stack: origin.stack,
            call: origin.call,
            thread: origin.thread,
            stream: StreamId::NONE,
            context: trace::ContextId::NONE,
            freed: None,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one op, taken apart by the caller")]
    fn alloc(
        &mut self,
        op: &Op<'_>,
        ptr: u64,
        size: u64,
        kind: MemoryKind,
        stream: StreamId,
        moment: Moment,
        node: Option<(&Graph, u32)>,
    ) {
        let Op::Alloc { context, .. } = *op else { return };
        let live = self.memory.root(ptr);
        // A variable of a module is announced whenever its address is asked for, and a graph's memory at each launch.
        let lasting = matches!(kind, MemoryKind::ModuleGlobal);
        if lasting && live.is_some_and(|a| a.size == size && a.kind == Some(kind)) {
            return;
        }
        let mut info = Self::allocation(ptr, size, kind, &moment.origin);
        (info.stream, info.context) = (stream, context);
        let id = self.memory.alloc(info);
        self.given_back.forget(ptr, ptr.saturating_add(size));
        if kind == MemoryKind::Block && self.given_back.watches(stream) {
            let site = moment.site(Cause::Alloc, stream);
            let view = self.ordering.view_of_stream(stream);
            self.given_back.handed_out(size, &view, site, &mut self.races);
        }
        // Memory of these kinds exists only once its stream gets there. The others are there when the call returns.
        if matches!(kind, MemoryKind::Pool | MemoryKind::GraphNode) {
            let site = moment.site(Cause::Alloc, stream);
            self.at(moment, site, node).whole(ptr, size, id, Cause::Alloc);
        }
    }

    fn free(&mut self, ptr: u64, kind: FreeKind, stream: StreamId, moment: Moment, node: Option<(&Graph, u32)>) {
        let stack = moment.origin.stack;
        if kind == FreeKind::Block {
            if let Some((info, home)) = self.memory.block(ptr).filter(|(info, _)| !info.stream.is_none()) {
                let view = self.ordering.view_of_stream(info.stream);
                let site = moment.site(Cause::Free, info.stream);
                self.given_back.freed(&info, home, &mut self.memory, &view, site);
            }
            self.memory.free_block(ptr, stack);
            return;
        }
        let Some(root) = self.memory.root(ptr).copied() else {
            self.memory.free_root(ptr, stack, false);
            return;
        };
        self.given_back.forget(ptr, root.end());
        let site = moment.site(Cause::Free, stream);
        self.at(moment, site, node).whole(ptr, root.size, root.id, Cause::Free);
        // Work enqueued later may still run before a free in stream order.
        let ghost = kind == FreeKind::Async || root.kind == Some(MemoryKind::Pool);
        self.memory.free_root(ptr, stack, ghost);
    }

    fn launch_graph(&mut self, stream: StreamId, exec: trace::GraphExecId, origin: &Origin, epoch: Epoch) {
        self.coverage.graph_launches += 1;
        let Some(graph) = self.graphs.take(exec) else {
            *self.coverage.unobserved.entry("launch of a graph that was never seen".to_string()).or_default() += 1;
            return;
        };
        let launched = origin.stack;
        for &index in graph.sequence() {
            let Some(node) = graph.node(index) else { continue };
            let Some(op) = node.op() else { continue };
            if matches!(op, Op::HostFunc { .. }) {
                self.watches.graph_tells(epoch);
            }
            let origin = Origin { stack: node.stack, call: node.call, ..*origin };
            let moment = Moment { graph: Some((stream, launched)), ..self.moment(&origin, epoch) };
            if self.options.hints {
                self.hints.event_node(&op, stream, node.stack, &self.ordering.view(epoch, None));
            }
            self.work(&op, moment, Some((&graph, index)));
        }
        self.graphs.put(exec, graph);
    }

    /// The shim watches what work of this thread reads or writes.
    fn watch(&mut self, op: &Op<'_>, origin: &Origin) {
        let Op::HostWatch { watch, stream, exec, node, ref region, writes } = *op else { return };
        let Some(epoch) = self.latest.get(&origin.thread).copied() else { return };
        let Some(place) = self.memory.locate(region.start) else { return };
        let site = self.moment(origin, epoch).site(Cause::Copy, stream);
        let made = node.checked_sub(1).and_then(|index| self.graphs.find(exec, index)).map(|n| (n.stack, n.call));
        let (stack, call) = made.unwrap_or((site.stack, site.call));
        let work = Access {
            epoch,
            kind: if writes { AccessKind::Write } else { AccessKind::Read },
            extent: host::extent(region).moved(place.address.wrapping_sub(region.start)),
            allocation: place.allocation,
            site: Site { stack, call, node, launched: if node > 0 { origin.stack } else { StackId::NONE }, ..site },
        };
        let begun = Watch { work, home: place.home, known: self.ordering.known(), void: false };
        let void = begun.is_overwritten(&self.memory);
        self.watches.begin(watch, Watch { void, ..begun });
    }

    /// The host touched watched bytes.
    fn host_access(&mut self, op: &Op<'_>, origin: &Origin, epoch: Epoch) {
        let Op::HostAccess { watch, start, end, writes, in_the_act } = *op else { return };
        let Some(watch) = self.watches.judge(watch, in_the_act, &self.memory) else { return };
        let cause = if in_the_act { Cause::Host } else { Cause::HostBetween };
        let access = Access {
            epoch,
            kind: if writes { AccessKind::Write } else { AccessKind::Read },
            extent: if in_the_act { Extent::exact(start, end) } else { Extent::bound(start, end, start) },
            allocation: watch.work.allocation,
            site: self.moment(origin, epoch).site(cause, StreamId::NONE),
        };
        // Even where it is not known which bytes were written: some of them were.
        let race = Race::judge(&watch.work, &access, false).map(|r| Race { confidence: Confidence::Certain, ..r });
        self.races.extend(race);
    }

    #[cold]
    fn count_races(&mut self) {
        race::merge(&mut self.races);
        if let Some(trial) = &mut self.confirm {
            let least = if self.options.pedantic { Confidence::Possible } else { Confidence::Likely };
            self.races.iter().for_each(|race| trial.suspect(race, least));
        }
        for race in self.races.drain(..) {
            self.findings.add(&race, &self.memory, &self.streams, &self.recent);
        }
    }
}

/// When and from where an op, or a node of a graph, acts.
#[derive(Clone, Copy)]
struct Moment {
    origin: Origin,
    epoch: Epoch,
    /// Of a node: the stream that its graph is launched in, which its op does not name, and where.
    graph: Option<(StreamId, StackId)>,
    /// The part of the program that the thread is in.
    region: Region,
}

impl Moment {
    fn site(&self, cause: Cause, stream: StreamId) -> Site {
        Site {
            stack: self.origin.stack,
            call: self.origin.call,
            cause,
            thread: self.origin.thread,
            stream: self.graph.map_or(stream, |(stream, _)| stream),
            kernel: KernelId::NONE,
            batch: 0,
            node: 0,
            launched: self.graph.map_or(StackId::NONE, |(_, stack)| stack),
            region: self.region,
            param: None,
            measured: false,
        }
    }
}
