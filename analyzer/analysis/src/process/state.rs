//! The state that the ops of a process build up in one pass: order, memory, races, findings.
//!
//! Owns [`ProcessState`], the sound core of an analysis: the place of an op in the order, the side
//! effects of its submission, and what becomes of its races. Which bytes an op touches is decided
//! in [`crate::ops`].

use super::early_values::EarlyValues;
use super::exact::ExactRanges;
use super::gaps::Gaps;
use super::host_touches::HostTouches;
use super::options::AnalysisOptions;
use super::submissions::Submissions;
use detect::confidence::{self, Confidence, Weakness};
use detect::coverage::{Coverage, KernelCoverage};
use detect::early_free::EarlyFreeWatch;
use detect::exact::confirm;
use detect::findings::Findings;
use detect::hints::DoubtfulLaunch;
use detect::host_watch::HostWatches;
use detect::inside::InsideRaces;
use detect::launches::dependence::Dependence;
use detect::memory::{Allocations, Cause};
use detect::race::{self, Race};
use detect::stale_graphs::StaleGraphs;
use detect::state::captures::Captures;
use detect::state::found_values::LeftMoments;
use detect::state::graphs::Graphs;
use detect::state::happens_before::Ordering;
use detect::state::names::Names;
use detect::state::polls::Polls;
use detect::state::regions::Regions;
use detect::state::signal_pads::{PadUse, SignalPads};
use detect::state::streams::Streams;
use detect::superfluous::Synchronisations;
use order::{Overlap, Policy};
use rustc_hash::{FxHashMap, FxHashSet};
use trace::{Epoch, KernelId, NoteKind, Op, Origin, Record, StreamId, ThreadId};

/// What is known of kernels of one op that wait for kernels of other processes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum FlagWait {
    /// They poll flags that are known, and their accesses tell whether they lie behind that.
    Known,
    /// They may wait in other ways, and anywhere.
    Anywhere,
}

/// The state of one process in one pass over its records.
pub(crate) struct ProcessState {
    pub(crate) options: AnalysisOptions,
    pub(crate) streams: Streams,
    pub(crate) graphs: Graphs,
    pub(crate) captures: Captures,
    pub(crate) memory: Allocations,
    /// The happens-before order.
    pub(crate) ordering: Ordering,
    /// Waits that the program did not make may have been added to the order.
    pub(crate) is_order_edited: bool,
    pub(crate) watches: HostWatches,
    pub(crate) touches: HostTouches,
    pub(crate) early_values: EarlyValues,
    /// By thread: its latest copy or graph launch.
    pub(crate) latest: FxHashMap<ThreadId, Epoch>,
    pub(crate) submissions: Submissions,
    /// Measured and learned ranges.
    pub(crate) exact: ExactRanges,
    /// The races of the current op.
    pub(crate) races: Vec<Race>,
    pub(crate) findings: Findings,
    /// Races inside kernels.
    pub(crate) inside: InsideRaces,
    /// Fences and barriers inside kernels.
    pub(crate) synchronisations: Synchronisations,
    /// Graphs that name memory which has ended.
    pub(crate) stale_graphs: StaleGraphs,
    /// What was seen, and what was not.
    pub(crate) coverage: Coverage,
    pub(crate) kernels: FxHashMap<KernelId, KernelCoverage>,
    /// Whether a device reaches what the operating system allocated.
    pub(crate) system_memory: bool,
    /// Whether the trace records how host threads synchronise.
    pub(crate) has_host_edges: bool,
    /// The program has switched checking off for now.
    pub(crate) paused: bool,
    /// Of kernels of which the launch decides whether they let dependent ones begin: what the last
    /// launch on a stream does about that.
    pub(crate) triggers: FxHashMap<StreamId, (KernelId, Dependence)>,
    /// The streams on which the last kernel may not have begun beside the one before it, though it
    /// counts as having done so.
    pub(crate) overlaps_in_doubt: FxHashSet<StreamId>,
    /// Whether the process shares memory or events with others.
    pub(crate) shares: bool,
    /// Kernels that poll flags.
    pub(crate) polls: Polls,
    /// The current op launches kernels that wait, or may wait, for those of other processes.
    pub(crate) waits: Option<FlagWait>,
    /// The places of the current op's kernels that hints are about.
    pub(crate) doubtful: Vec<DoubtfulLaunch>,
    /// Signal pads of PyTorch, and the launches that the current op's kernels share a word with.
    pub(crate) pads: SignalPads,
    pub(crate) pad_uses: Vec<[PadUse; 2]>,
    /// The words of pads that the current op's kernel was measured to update; none: it updates
    /// some, and which is not known.
    pub(crate) pad_words: Option<Vec<u64>>,
    /// What is missing of the trace.
    pub(crate) gaps: Gaps,
    /// When the latest fills and copies of known bytes were made.
    pub(crate) left: LeftMoments,
}

impl ProcessState {
    /// The state before the first record.
    pub(crate) fn new(options: AnalysisOptions) -> Self {
        Self {
            streams: Streams::default(),
            graphs: Graphs::default(),
            captures: Captures::new(options.assumptions.is_some()),
            memory: Allocations::default(),
            ordering: Ordering::new(options.order()),
            is_order_edited: false,
            watches: HostWatches::default(),
            touches: HostTouches::default(),
            early_values: EarlyValues::default(),
            latest: FxHashMap::default(),
            submissions: Submissions::default(),
            exact: ExactRanges::new(&options),
            races: Vec::new(),
            findings: Findings::default(),
            inside: InsideRaces::default(),
            synchronisations: Synchronisations::default(),
            stale_graphs: StaleGraphs::default(),
            coverage: Coverage::default(),
            kernels: FxHashMap::default(),
            system_memory: false,
            has_host_edges: false,
            paused: false,
            triggers: FxHashMap::default(),
            overlaps_in_doubt: FxHashSet::default(),
            shares: false,
            polls: Polls::default(),
            waits: None,
            doubtful: Vec::new(),
            pads: SignalPads::default(),
            pad_uses: Vec::new(),
            pad_words: None,
            gaps: Gaps::default(),
            left: LeftMoments::default(),
            options,
        }
    }

    /// Whether launches are only checked: nothing is measured, learned or sent to other processes.
    pub(crate) fn is_plain(&self) -> bool {
        !self.shares && self.exact.is_unused()
    }

    /// Takes from a definition what is no name: devices matter to the order, notes to the coverage.
    pub(crate) fn define(&mut self, op: &Op<'_>) {
        self.ordering.define(op);
        match *op {
            Op::Stack { .. } => self.submissions.handovers.define(op),
            Op::Note { kind, text, count } => {
                let text = text.lossy().into_owned();
                match kind {
                    NoteKind::NotModelled => *self.coverage.not_modelled.entry(text).or_default() += count.max(1),
                    NoteKind::Unobserved => *self.coverage.unobserved.entry(text).or_default() += count.max(1),
                    NoteKind::Lost => *self.coverage.lost.entry(text).or_default() += count.max(1),
                    NoteKind::Disabled => self.coverage.disabled.push(text),
                    NoteKind::Info if text == trace::SIM_MEASURES => {
                        self.exact.measuring.get_or_insert_default();
                    }
                    NoteKind::Info => self.system_memory |= text == trace::SYSTEM_MEMORY,
                }
            }
            _ => {}
        }
    }

    /// Gives an op its place in the order. `overlap`: how a launch may overlap its predecessor.
    pub(crate) fn place(&mut self, op: &Op<'_>, thread: ThreadId, overlap: Option<Overlap>) -> Epoch {
        self.left.settle(op, thread, &mut self.ordering, &mut self.memory);
        match *op {
            Op::Launch { stream, kernel, .. } => match overlap {
                None => self.ordering.launch(stream, kernel, thread),
                Some(overlap) => self.ordering.overlapping_launch(stream, kernel, thread, overlap),
            },
            _ => self.ordering.apply(op, thread),
        }
    }

    /// The side effects of a submission. `torch`: the trace covers PyTorch's allocator.
    pub(crate) fn submit(&mut self, op: &Op<'_>, origin: &Origin, epoch: Epoch, torch: bool) {
        let coverage = &mut self.coverage;
        if let Op::Launch { stream, kernel, .. } = *op {
            self.submissions.launch(coverage, (stream, kernel), origin, epoch, (torch, self.paused));
        } else {
            self.submissions.observe(coverage, op, origin, epoch, torch);
        }
    }

    /// Drops the races of the current op if nothing may be judged now.
    pub(crate) fn drop_unjudged(&mut self, op: &Op<'_>, names: &Names) {
        if (self.gaps.any() && !self.gaps.judge(op, names.contexts())) || self.paused {
            self.races.clear();
            // What is not judged refutes nothing.
            self.exact.supposed().into_iter().for_each(Vec::clear);
        }
    }

    /// What the measured bytes of the current op say of the races that predictions make.
    pub(crate) fn judge_supposed(&mut self) {
        let Some(supposed) = self.exact.supposed().filter(|supposed| !supposed.is_empty()) else { return };
        let mut supposed = std::mem::take(supposed);
        race::merge(&mut supposed);
        let least = self.least_suspected();
        for race in supposed.iter().filter(|race| confirm::is_refuted(race, &self.races)) {
            let known = self.findings.refute(race, &self.memory);
            if !known && self.exact.confirm.as_ref().is_some_and(|trial| trial.tells(race, least)) {
                self.findings.withdraw(race, &self.memory, &self.streams, &self.submissions.history);
            }
        }
    }

    /// The least confidence of what is put on trial.
    fn least_suspected(&self) -> Confidence {
        if self.options.judging.pedantic { Confidence::Possible } else { Confidence::Likely }
    }

    /// Weighs and merges the races of the current op.
    pub(crate) fn weigh_races(&mut self, names: &Names) {
        let observed = self.options.judging.policy == Policy::Observed;
        self.races.retain_mut(|race| {
            let staged = confidence::is_staged_copy(names.call(race.previous.site.call), &race.previous);
            if staged {
                race.confidence = race.confidence.min(Confidence::Likely);
            }
            // A library that sends from device memory asks for such copies to be over
            // (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, which GPUDirect RDMA demands).
            !(staged && observed && race.access.site.cause == Cause::Message)
        });
        let relays = &self.memory.relays;
        for race in self.races.iter_mut().filter(|race| race.confidence > Confidence::Possible) {
            if confidence::is_handed_on(relays, &race.previous, &race.access) {
                race.demote(Weakness::Handover);
            }
        }
        self.weigh_polls();
        race::merge(&mut self.races);
        let least = self.least_suspected();
        self.exact.suspect(&self.races, least);
    }

    /// Lowers races that a flag may order which a kernel polls.
    fn weigh_polls(&mut self) {
        if self.polls.is_empty() {
            return;
        }
        for race in self.races.iter_mut().filter(|race| race.confidence > Confidence::Possible) {
            let (previous, access) = (race.previous.epoch, race.access.epoch);
            let view = self.ordering.view(access, None);
            if let Some(poll) = self.polls.between(previous, access, view.clock()) {
                race.demote(Weakness::Flag);
                self.polls.keep(previous, access, poll);
            }
        }
    }

    /// Counts the races of the current op as findings.
    pub(crate) fn count_races(&mut self) {
        for race in self.races.drain(..) {
            self.findings.add(&race, &self.memory, &self.streams, &self.submissions.history);
        }
    }

    /// Records are missing from here on: forgets what lives, which is told again.
    #[cold]
    pub(crate) fn forget_before_gap(&mut self) {
        self.gaps.begin(&self.coverage);
        self.memory.end_all();
        self.graphs = Graphs::default();
        self.stale_graphs.forget_all();
        self.watches = HostWatches::default();
        self.touches = HostTouches::default();
        self.early_values = EarlyValues::default();
        self.latest.clear();
        self.submissions.early_free = EarlyFreeWatch::default();
        self.submissions.regions = Regions::default();
        self.submissions.staged_copy = None;
        self.streams.forget_events();
        self.paused = false;
    }

    /// All that lives has been told again.
    #[cold]
    pub(crate) fn resume_after_gap(&mut self) {
        if let Some(counted) = self.gaps.end() {
            self.coverage = counted;
        }
        self.submissions.early_free = EarlyFreeWatch::default();
    }

    /// Applies the record of a gap to the order.
    #[cold]
    pub(crate) fn place_gap(&mut self, record: &Record<'_>) {
        self.races.clear();
        self.ordering.apply(&record.op, record.origin.thread);
    }
}
