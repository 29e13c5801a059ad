//! The analysis of one process: trace records in, an [`Outcome`](report::model::Outcome) out.
//!
//! Owns [`Analysis`], what other crates see of a pass and of the facts that it rests on.

use super::Pass;
use crate::counterfactual::edits::waits::Replan;
use crate::counterfactual::edits::written::WrittenWait;
use crate::ipc::Member;
use crate::process::facts::ProcessFacts;
use crate::process::options::AnalysisOptions;
use crate::rules::elaborate::breach;
use detect::confidence::Confidence;
use detect::exact::learned::Learned;
use detect::findings::RawFinding;
use detect::launches::kernel_code::CodeReader;
use detect::memory::SeenRegions;
use detect::race::Race;
use report::elaborate::Elaborator;
use report::fingerprint::Identity;
use report::mend::stale_graph;
use report::model::{Breach, Finding};
use std::sync::Arc;
use symbols::stacks::Stacks;
use trace::ring::back_channel::LaunchClass;
use trace::{KernelId, Op, Record};

/// One process under analysis.
pub struct Analysis {
    /// What ids stand for.
    pub facts: ProcessFacts,
    pub(crate) pass: Pass,
    /// The findings that were reported, as they were before ids became names.
    pub reported: Vec<(RawFinding, Identity)>,
    handed_on: HandedOn,
}

/// How many of each list [`Analysis::take_fresh`] has handed on.
#[derive(Default)]
struct HandedOn {
    inside: Cursor,
    stale: Cursor,
    broken: Cursor,
}

/// A place in a list that grows.
#[derive(Default)]
struct Cursor(usize);

impl Cursor {
    /// What has come up since the last call.
    fn rest<'a, T>(&mut self, list: &'a [T]) -> &'a [T] {
        &list[std::mem::replace(&mut self.0, list.len())..]
    }
}

impl Analysis {
    /// An analysis that resolves stacks with `stacks` and reads kernels with `code`.
    pub fn new(options: AnalysisOptions, stacks: Box<dyn Stacks>, code: Box<dyn CodeReader>) -> Self {
        Self {
            facts: ProcessFacts::new(stacks, code),
            pass: Pass::new(options),
            reported: Vec::new(),
            handed_on: HandedOn::default(),
        }
    }

    /// Takes the next record of the trace.
    pub fn feed(&mut self, record: &Record<'_>) {
        self.pass.feed(&mut self.facts, record);
    }

    /// Takes a definition from the trailer of a trace. It comes before all other records and is not
    /// counted as an op. `whole`: the bytes that it is a part of.
    pub fn define_late(&mut self, op: &Op<'_>, whole: &Arc<Vec<u8>>) {
        match op {
            Op::Image { .. } => self.facts.code.image_within(op, whole),
            Op::Symbol { .. } | Op::Source { .. } | Op::Schema { .. } => self.facts.define(op),
            _ => {}
        }
    }

    /// Counts a record that could not be decoded.
    pub fn damaged(&mut self) {
        self.pass.state.coverage.damaged += 1;
    }

    /// Uses the learned ranges, and learns more.
    pub fn learn(&mut self, known: Arc<Learned>) {
        self.pass.learn(known);
    }

    /// Adds waits that the user wrote down. Before the first record.
    pub fn add_waits(&mut self, waits: &[WrittenWait]) {
        if !waits.is_empty() {
            self.pass.replan(Replan::written(waits));
        }
    }

    /// The waits that were added, and what became of them.
    pub fn take_replan(&mut self) -> Option<Replan> {
        self.pass.edits.replan.take().map(|plan| *plan)
    }

    /// Compares this process with the others of its run.
    pub fn join(&mut self, member: Member) {
        self.pass.observers.member = Some(member);
    }

    /// Every op of this process from before this time (nanoseconds of `CLOCK_MONOTONIC`) has been
    /// fed.
    pub fn reached(&self, ns: u64) {
        // Records that wait for a measured launch are still to come.
        let has_all = self.pass.state.exact.pending.is_empty();
        if let Some(member) = self.pass.observers.member.as_ref().filter(|_| has_all) {
            member.reached(ns);
        }
    }

    /// The next kernel to measure from now on. Each kernel is returned once.
    pub fn wanted(&mut self) -> Option<KernelId> {
        self.pass.state.exact.wanted()
    }

    /// The next class of launches whose need for measurement has changed; true when it need not be
    /// measured.
    pub fn settled(&mut self) -> Option<(LaunchClass, bool)> {
        self.pass.state.exact.settled()
    }

    /// Turns ids into names.
    pub fn elaborator(&mut self) -> Elaborator<'_> {
        self.facts.elaborator(&self.pass.state)
    }

    /// Whether weak findings count.
    pub fn is_pedantic(&self) -> bool {
        self.pass.state.options.judging.pedantic
    }

    /// Whether records are missing somewhere.
    pub fn has_gaps(&self) -> bool {
        self.pass.state.gaps.any()
    }

    /// Whether the process shares memory or events with others.
    pub(crate) fn shares(&self) -> bool {
        self.pass.state.shares
    }

    /// Whether a finding stands that is shown by default.
    pub fn has_found(&self) -> bool {
        let least = Confidence::Likely;
        self.pass.state.findings.judged_so_far(|race: &Race| race.confidence >= least && !race.latent)
    }

    /// The findings and broken rules that are new, or have become more certain, since the last
    /// call.
    pub fn take_fresh(&mut self) -> (Vec<Finding>, Vec<Breach>) {
        let Self { facts, pass, handed_on, .. } = self;
        let fresh = pass.state.findings.take_fresh();
        let rules = pass.observers.rules.as_ref().map_or(&[][..], |rules| rules.all());
        let inside = handed_on.inside.rest(pass.state.inside.all());
        let stale = handed_on.stale.rest(pass.state.stale_graphs.all());
        let broken = handed_on.broken.rest(rules);
        if fresh.is_empty() && inside.is_empty() && stale.is_empty() && broken.is_empty() {
            return Default::default();
        }
        let mut elaborator = facts.elaborator(&pass.state);
        let mut findings: Vec<Finding> = fresh.iter().map(|raw| elaborator.finding(raw)).collect();
        findings.extend(inside.iter().map(|raw| elaborator.in_kernel(raw)));
        findings.extend(stale.iter().map(|raw| stale_graph::finding(&mut elaborator, raw)));
        let broken = broken.iter().map(|raw| breach(raw, &SeenRegions::of(raw.region), &mut elaborator));
        (findings, broken.collect())
    }

    /// Ops that were taken.
    pub fn ops(&self) -> u64 {
        self.pass.state.coverage.ops
    }

    /// What the engine of the order was told.
    pub fn order_options(&self) -> order::Options {
        self.pass.state.ordering.options()
    }

    /// Live roots, live blocks and remembered accesses, for the bounds on memory.
    pub fn footprint(&self) -> (usize, usize, usize) {
        self.pass.state.memory.footprint()
    }

    /// Launches that found their memory where an earlier equal launch had found it, and were
    /// replayed; see [`detect::launch_memory::replay`].
    pub fn repeats(&self) -> u64 {
        self.facts.code.repeats()
    }
}
