//! The analysis of one process: trace records in, an [`Outcome`] out.
//!
//! Owns [`Analysis`], the sequence of steps that each record takes, and the final step that turns
//! raw findings into report data. Does not decide which bytes an op touches
//! ([`detect::accesses`]), what is ordered ([`detect::state::happens_before`]), or what is a
//! race ([`detect::race`]).
//!
//! # The steps of one record
//!
//! 1. [`Analysis::feed`] holds the record back while an earlier launch is still being measured
//!    ([`detect::exact::pending`]).
//! 2. A definition goes to the tables of names, symbols and code, and ends there.
//! 3. Any other op gets its epoch from the happens-before engine.
//! 4. `submissions` records the submission: coverage counters, the history of the stream, launches
//!    in flight, early frees, NVTX regions.
//! 5. `dispatch` applies the op: `launch` handles kernels, `alloc_free` allocations and frees,
//!    `host_access` and `host_touch` loads and stores of the host. An op that touches memory is
//!    compared with the remembered accesses.
//! 6. `ipc_export` reports accesses to shared memory and events to the other processes of the run
//!    ([`crate::ipc`]).
//! 7. The races of the op are merged and counted as findings.
//!
//! `fast_path` takes a repeated launch from its record straight to the accesses that it made last
//! time. It performs the same steps in the same order.
//!
//! # Which files know each other
//!
//! Every file here adds methods to [`Analysis`], so all of them know this one. `op_context` and
//! `submissions` are plain data below it. Both the slow path (`launch`) and `fast_path` report a
//! launch through `submissions::Submissions::launch`, so neither can forget a side effect.

mod alloc_free;
mod assuming;
mod dispatch;
mod fast_path;
mod gap;
mod host_access;
mod host_touch;
mod ipc_export;
mod launch;
mod op_context;
mod replanned;
mod rules;
mod submissions;
mod trial;

use crate::ipc::Member;
use crate::process::gap::Gaps;
use crate::process::host_touch::HostTouches;
use crate::process::op_context::OpContext;
use crate::process::submissions::Submissions;
use crate::replan::waits::Replan;
use crate::rules::elaborate::breach;
use crate::rules::watch::RuleWatch;
use crate::whatif::assumed::{Assumed, AssumedRecord};
use crate::whatif::steps::Steps;
use detect::confidence::{self, Confidence};
use detect::coverage::{Coverage, KernelCoverage};
use detect::exact::confirm::Confirm;
use detect::exact::learned::{Learned, Lessons};
use detect::exact::measuring::SimMeasuring;
use detect::exact::oracle::Oracle;
use detect::exact::pending::PendingRecords;
use detect::exact::settle::Settle;
use detect::findings::{FindingState, Findings, RawFinding};
use detect::hints::Hints;
use detect::host_watch::HostWatches;
use detect::launch_memory::evaluator::LaunchEvaluator;
use detect::launches::kernel_code::CodeReader;
use detect::memory::Allocations;
use detect::race;
use detect::race::Race;
use detect::state::captures::Captures;
use detect::state::found_values::LeftMoments;
use detect::state::graphs::Graphs;
use detect::state::happens_before::Ordering;
use detect::state::names::Names;
use detect::state::streams::Streams;
use order::Policy;
use report::doubt::Measuring;
use report::fault::faults;
use report::fault::hint;
use report::fingerprint::{Identity, number};
use report::gate::forbidden::Forbidden;
use report::model::merge_finding;
use report::model::{AllocationInfo, Outcome};
use rustc_hash::FxHashMap;
use settings::Assumptions;
use std::sync::Arc;
use symbols::stacks::Stacks;
use symbols::torch::Schemas;
use trace::launch_flags::PROGRAMMATIC_SERIALIZATION;
use trace::ring::back_channel::LaunchClass;
use trace::{Epoch, KernelId, NoteKind, Op, Record, ThreadId};

/// The elaborator of an analysis. A macro for the analysis itself, because it borrows only these
/// fields, which a method could not: findings, hints and faults are iterated at the same time.
macro_rules! elaborator {
    ($analysis:expr) => {
        report::elaborate::Elaborator {
            names: &$analysis.names,
            streams: &$analysis.streams,
            regions: &$analysis.submissions.regions,
            handovers: &$analysis.submissions.handovers,
            graphs: &$analysis.graphs,
            stacks: &mut *$analysis.stacks,
            schemas: $analysis.schemas.clone(),
            code: &mut $analysis.code,
            memory_names: $analysis.memory.names(),
            measuring: $analysis.options.measuring,
            resolved: Default::default(),
        }
    };
}
use elaborator;

/// Options of an analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnalysisOptions {
    /// Which synchronisations count as order.
    pub policy: Policy,
    /// Also look for pairs that only an unpromised synchronisation orders.
    pub latent: bool,
    /// Judge work that is not ordered after the end of a synchronous copy from pageable memory.
    pub pageable_copies: bool,
    /// Also compare unknown extents at different addresses.
    pub pedantic: bool,
    /// Also look for calls that are no race but probably a mistake.
    pub hints: bool,
    /// Give host threads timelines of their own.
    pub host_threads: bool,
    /// Also compare the predicted bytes of launches with the bytes that exact mode measured.
    pub compare: bool,
    /// Check findings that are not certain by measurement: ask for their kernels to be measured,
    /// and withdraw the findings that the measurements refute.
    pub confirm: bool,
    /// With `confirm`: some kernels are measured from the start.
    pub measured_from_start: bool,
    /// What the run measures, for the words of what it leaves in doubt.
    pub measuring: Measuring,
    /// Determine which kernels need no measuring.
    pub settle: bool,
    /// What is assumed of the program, if anything is.
    pub assumptions: Option<&'static Assumptions>,
    /// What the program must not do, if anything.
    pub forbidden: Option<&'static [Forbidden]>,
}

impl Default for AnalysisOptions {
    fn default() -> Self {
        Self {
            policy: Policy::Observed,
            latent: false,
            pageable_copies: true,
            pedantic: false,
            hints: false,
            host_threads: false,
            compare: false,
            confirm: false,
            measured_from_start: false,
            measuring: Measuring::Nothing,
            settle: false,
            assumptions: None,
            forbidden: None,
        }
    }
}

impl AnalysisOptions {
    /// What the engine of the order is to know.
    fn order(&self) -> order::Options {
        let mut options = order::Options::default();
        options.policy = self.policy;
        options.latent = self.latent;
        // XLA reuses host buffers from host functions, and other programs fulfil promises there.
        options.host_functions_signal = true;
        // Without the trace's word for it, host threads share a timeline all the same.
        options.host_threads = self.host_threads;
        options.pageable_copies_wait = !self.pageable_copies;
        options.left_values = true;
        options
    }
}

/// One process under analysis.
pub struct Analysis {
    pub(crate) options: AnalysisOptions,
    /// What ids stand for.
    pub names: Names,
    pub(crate) streams: Streams,
    pub(crate) memory: Allocations,
    /// The happens-before order.
    pub ordering: Ordering,
    pub(crate) code: LaunchEvaluator,
    pub(crate) graphs: Graphs,
    pub(crate) captures: Captures,
    /// Whether repeated launches may take the fast path.
    direct: bool,
    watches: HostWatches,
    touches: HostTouches,
    latest: FxHashMap<ThreadId, Epoch>,
    /// Stacks, with names and lines.
    pub stacks: Box<dyn Stacks>,
    findings: Findings,
    pub(crate) submissions: Submissions,
    hints: Hints,
    /// What was seen, and what was not.
    pub coverage: Coverage,
    /// Whether a device reaches what the operating system allocated.
    system_memory: bool,
    /// Whether the trace records how host threads synchronise.
    has_host_edges: bool,
    kernels: FxHashMap<KernelId, KernelCoverage>,
    pub(crate) pending: PendingRecords,
    oracle: Oracle,
    confirm: Option<Confirm>,
    settle: Option<Settle>,
    /// The simulated GPU measures launches by itself.
    measuring: Option<Box<SimMeasuring>>,
    /// Ranges learned by earlier runs, and those learned by this one.
    learned: Option<Lessons>,
    races: Vec<Race>,
    pub(crate) schemas: Schemas,
    /// The program has switched checking off for now.
    pub(crate) paused: bool,
    /// The process's side of the comparison with the other processes of the run.
    pub(crate) member: Option<Member>,
    /// Whether the process shares memory or events with others.
    shares: bool,
    /// Changes to the order, when it is checked again.
    replan: Option<Box<Replan>>,
    /// What is assumed of the program, and the ops for trials of other orders.
    assumed: Option<Box<Assumed>>,
    steps: Option<Box<Steps>>,
    /// The rules that the program must not break.
    rules: Option<Box<RuleWatch>>,
    /// The findings that were reported, as they were before ids became names.
    pub reported: Vec<(RawFinding, Identity)>,
    /// What is missing of the trace.
    gaps: Gaps,
    /// When the latest fills and copies of known bytes were made.
    left: LeftMoments,
}

impl Analysis {
    /// The elaborator of this analysis.
    pub fn elaborator(&mut self) -> report::elaborate::Elaborator<'_> {
        elaborator!(self)
    }

    /// An analysis that resolves stacks with `stacks` and reads kernels with `code`.
    pub fn new(options: AnalysisOptions, stacks: Box<dyn Stacks>, code: Box<dyn CodeReader>) -> Self {
        Self {
            options,
            names: Names::default(),
            streams: Streams::default(),
            memory: Allocations::default(),
            ordering: Ordering::new(options.order()),
            code: LaunchEvaluator::new(code),
            graphs: Graphs::default(),
            captures: Captures::new(options.assumptions.is_some()),
            direct: false,
            watches: HostWatches::default(),
            touches: HostTouches::default(),
            latest: FxHashMap::default(),
            stacks,
            findings: Findings::default(),
            submissions: Submissions::default(),
            hints: Hints::default(),
            coverage: Coverage::default(),
            system_memory: false,
            has_host_edges: false,
            kernels: FxHashMap::default(),
            pending: PendingRecords::default(),
            oracle: Oracle::default(),
            confirm: options.confirm.then(|| Confirm::new(options.measured_from_start)),
            settle: options.settle.then(Settle::default),
            measuring: None,
            learned: None,
            races: Vec::new(),
            schemas: Schemas::default(),
            paused: false,
            member: None,
            shares: false,
            // Assumptions move the times of streams, which a plan keeps count of.
            replan: options.assumptions.map(|_| Box::default()),
            assumed: Self::assumed_by(&options),
            steps: None,
            rules: options.forbidden.map(|rules| Box::new(RuleWatch::new(rules))),
            reported: Vec::new(),
            gaps: Gaps::default(),
            left: LeftMoments::default(),
        }
    }

    /// Takes the next record of the trace.
    pub fn feed(&mut self, record: &Record<'_>) {
        if let Op::Gap { resumed } = record.op {
            self.gap(resumed, record);
        } else if self.pending.takes(record) {
            self.release();
        } else {
            self.apply(record);
        }
        self.direct = self.is_direct();
    }

    /// Applies the records whose wait for a measured launch is over.
    #[cold]
    fn release(&mut self) {
        while let Some(bytes) = self.pending.release() {
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
        if record.op.is_definition() {
            self.coverage.ops += 1;
            self.define(&record.op);
            return;
        }
        if self.rules.is_some() && self.gaps.obey(&record.op) {
            self.observe_rules(&record.op, &record.origin);
        }
        let recorded = record;
        let (mut assumed, mut ordered) = (*record, None);
        if self.assumed.is_some() {
            match self.assume(record) {
                AssumedRecord::Applied(record) => assumed = record,
                AssumedRecord::Ordered(record, op) => (assumed, ordered) = (record, Some(op)),
                AssumedRecord::LeftOut => return self.take_step(recorded, None, false),
            }
        }
        let record = &assumed;
        let translated;
        let record = match &self.replan {
            Some(plan) => {
                translated = plan.translated(record);
                self.before_replanned(record);
                &translated
            }
            None => record,
        };
        let (mut epoch, mut overlaps) = (None, false);
        if let Op::Launch { stream, kernel, shape, .. } = record.op
            && shape.flags & PROGRAMMATIC_SERIALIZATION != 0
        {
            overlaps = self.overlaps(stream, kernel);
            epoch = (!overlaps).then(|| self.ordering.launch(stream, record.origin.thread));
        }
        let op = ordered.as_ref().unwrap_or(&record.op);
        self.left.settle(op, record.origin.thread, &mut self.ordering, &mut self.memory);
        let epoch = epoch.unwrap_or_else(|| self.ordering.apply(op, record.origin.thread));
        if self.options.hints {
            let view = self.ordering.view(epoch, None);
            self.hints.observe(&record.op, &record.origin, &view, &self.names, &self.streams);
        }
        let (coverage, torch) = (&mut self.coverage, self.names.has_torch_blocks());
        if let Op::Launch { stream, kernel, .. } = record.op {
            self.submissions.launch(coverage, (stream, kernel), &record.origin, epoch, (torch, self.paused));
        } else {
            self.submissions.observe(coverage, &record.op, &record.origin, epoch, torch);
        }
        self.act(&record.op, &record.origin, epoch);
        if self.replan.is_some() {
            self.after_replanned(record, epoch);
        }
        if self.steps.is_some() {
            return self.take_step(recorded, Some(epoch), overlaps);
        }
        self.shares |= matches!(record.op, Op::SharedMemory { .. } | Op::SharedEvent { .. });
        if self.shares && !self.gaps.any() {
            self.export(&record.op, epoch);
        }
        if (self.gaps.any() && !self.gaps.judge(&record.op, self.names.contexts())) || self.paused {
            self.races.clear();
            // What is not judged refutes nothing.
            if let Some(trial) = &mut self.confirm {
                trial.supposed.clear();
            }
        }
        self.judge_supposed();
        if !self.races.is_empty() {
            self.count_races();
        }
    }

    /// The next class of launches whose need for measurement has changed; true when it need not be
    /// measured.
    pub fn settled(&mut self) -> Option<(LaunchClass, bool)> {
        let measuring = self.measuring.as_mut().map(|measuring| &mut measuring.settle);
        self.settle.as_mut().or(measuring)?.changed()
    }

    /// Uses the learned ranges, and learns more.
    pub fn learn(&mut self, known: Arc<Learned>) {
        self.learned = Some(Lessons { known, fresh: Learned::default() });
        self.direct = false;
    }

    /// Takes a definition from the trailer of a trace. It comes before all other records and is not
    /// counted as an op.
    pub fn define_late(&mut self, op: &Op<'_>) {
        if matches!(op, Op::Symbol { .. } | Op::Source { .. } | Op::Image { .. } | Op::Schema { .. }) {
            self.define(op);
        }
    }

    /// Counts a record that could not be decoded.
    pub fn damaged(&mut self) {
        self.coverage.damaged += 1;
    }

    /// Ends the analysis: all findings, and the coverage.
    pub fn finish(&mut self) -> Outcome {
        self.pending.end();
        self.release();
        for (tally, times) in self.code.counted() {
            let known = &tally.known;
            self.coverage.launched(times, known, known.indirect, tally.unplaced);
            self.kernels.entry(tally.kernel).or_default().count(times, known, tally.several, known.indirect);
        }
        self.code.keep();
        let missed = self.memory.escapes.take_missed();
        let mut elaborator = elaborator!(self);
        let (mut findings, mut withdrawn) = (Vec::new(), Vec::new());
        for (raw, standing) in self.findings.judged() {
            if standing == FindingState::Replaced {
                continue;
            }
            let finding = elaborator.finding(raw);
            // That function takes the stream as an argument, which the allocator's report does not
            // name.
            let elsewhere =
                |memory: &AllocationInfo| memory.stack.iter().any(|f| f.function == "caching_allocator_alloc");
            if raw.race.freed_early && finding.allocation.as_ref().is_some_and(elsewhere) {
                continue;
            }
            if standing == FindingState::Stands {
                self.reported.push((raw.clone(), finding.identity));
            }
            merge_finding(if standing == FindingState::Withdrawn { &mut withdrawn } else { &mut findings }, finding);
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
        if let Some(rules) = &self.rules {
            rules.count_in(&mut coverage);
        }
        let unwatched = self.memory.unwatched();
        (coverage.unwatched_managed, coverage.unwatched_pinned) = (unwatched.managed, unwatched.pinned);
        if !self.system_memory {
            coverage.launches_system = 0;
        }
        coverage.assumed = self.assumed.as_ref().map_or_else(Vec::new, |assumed| assumed.lines());
        coverage.forgotten = self.memory.forgotten();
        coverage.escaped = elaborator.missed(&missed);
        coverage.findings_dropped += self.findings.dropped();
        if self.pending.given_up() > 0 {
            let text = "exact ranges of launches that were not seen to end".to_string();
            *coverage.unobserved.entry(text).or_default() += self.pending.given_up();
        }
        let breaches = self.rules.as_mut().map_or_else(Vec::new, |rules| rules.finish());
        let breaches = breaches.iter().map(|raw| breach(raw, &mut elaborator)).collect();
        let hints = self.hints.finish().iter().map(|said| hint(said, &mut elaborator)).collect();
        let faults = faults(self.submissions.faults.failures(), &mut elaborator);
        let mut outcome = Outcome {
            process: self.names.process.clone(),
            member: None,
            findings,
            withdrawn,
            causes: Vec::new(),
            mended: None,
            with: Vec::new(),
            breaches,
            hints,
            faults,
            coverage,
            oracle: std::mem::take(&mut self.oracle),
            learned: self.learned.as_mut().map(|l| std::mem::take(&mut l.fresh)).unwrap_or_default(),
        };
        self.leave(&mut outcome);
        outcome
    }

    /// Whether weak findings count.
    pub fn is_pedantic(&self) -> bool {
        self.options.pedantic
    }

    /// Live roots, live blocks and remembered accesses, for the bounds on memory.
    pub fn footprint(&self) -> (usize, usize, usize) {
        self.memory.footprint()
    }

    /// Launches that found their memory where an earlier equal launch had found it, and were
    /// replayed; see [`detect::launch_memory::replay`].
    pub fn repeats(&self) -> u64 {
        self.code.repeats()
    }

    fn define(&mut self, op: &Op<'_>) {
        self.ordering.define(op);
        if let Op::Process { .. } = op {
            self.stacks.define(op);
        }
        if self.names.define(op) {
            return;
        }
        match *op {
            Op::Stack { .. } => {
                self.submissions.handovers.define(op);
                self.stacks.define(op);
            }
            Op::Module { .. } | Op::Symbol { .. } | Op::Source { .. } => self.stacks.define(op),
            Op::PyCode { .. } => {
                self.names.python = true;
                self.stacks.define(op);
            }
            Op::Image { .. } => self.code.image(op),
            Op::Schema { operator, text } => self.schemas.record(&operator.lossy(), &text.lossy()),
            Op::Note { kind, text, count } => {
                let text = text.lossy().into_owned();
                match kind {
                    NoteKind::NotModelled => *self.coverage.not_modelled.entry(text).or_default() += count.max(1),
                    NoteKind::Unobserved => *self.coverage.unobserved.entry(text).or_default() += count.max(1),
                    NoteKind::Lost => *self.coverage.lost.entry(text).or_default() += count.max(1),
                    NoteKind::Disabled => self.coverage.disabled.push(text),
                    NoteKind::Info if text == trace::SIM_MEASURES => {
                        self.measuring.get_or_insert_default();
                    }
                    NoteKind::Info => self.system_memory |= text == trace::SYSTEM_MEMORY,
                }
            }
            _ => {}
        }
    }

    #[cold]
    fn count_races(&mut self) {
        let (names, observed) = (&self.names, self.options.policy == Policy::Observed);
        self.races.retain_mut(|race| {
            let staged = confidence::is_staged_copy(names.call(race.previous.site.call), &race.previous);
            if staged {
                race.confidence = race.confidence.min(Confidence::Likely);
            }
            // A library that sends from device memory asks for such copies to be over
            // (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, which GPUDirect RDMA demands).
            !(staged && observed && race.access.site.cause == detect::memory::Cause::Message)
        });
        race::merge(&mut self.races);
        self.suspect();
        if let Some(trial) = self.replan.as_mut().and_then(|plan| plan.trial.as_mut()) {
            self.races.iter().for_each(|race| trial.race(race));
        }
        for race in self.races.drain(..) {
            self.findings.add(&race, &self.memory, &self.streams, &self.submissions.history);
        }
    }
}
