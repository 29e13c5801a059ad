//! A trial: a fresh pass over the records of a process, with edits.
//!
//! Owns [`Trial`], which borrows what the first pass has read and evaluated of the process, and the
//! records that are fed again ([`records`]). Does not decide which edits are worth a trial, nor
//! what follows from one: that is [`super::causes`] and [`super::excess`].

pub mod records;

use super::edits::assumed::{Assumed, LeftOut};
use super::edits::steps::Steps;
use super::edits::waits::Replan;
use crate::pass::Pass;
use crate::pass::analysis::Analysis;
use crate::process::facts::ProcessFacts;
use detect::coverage::KernelCoverage;
use detect::findings::Findings;
use detect::state::captures::Captures;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use trace::{KernelId, Op, Record};

/// A pass over edited records, beside the first one.
pub struct Trial<'a> {
    facts: &'a mut ProcessFacts,
    pass: Pass,
}

impl<'a> Trial<'a> {
    /// A trial with these waits added to the order.
    pub fn with_waits(first: &'a mut Analysis, plan: Replan) -> Self {
        let Analysis { facts, pass: of_first, .. } = first;
        let mut pass = Pass::new(of_first.state.options.of_trial());
        facts.code.forget_places();
        for (ordinal, arch) in facts.names.devices() {
            pass.state.define(&Op::Device { ordinal, arch, name: "".into() });
        }
        if let Some(lessons) = &of_first.state.exact.learned {
            pass.learn(Arc::clone(&lessons.known));
        }
        // To resolve stacks takes long.
        if let (Some(known), Some(its)) = (&of_first.edits.assumed, &mut pass.edits.assumed) {
            its.known.clone_from(&known.known);
        }
        pass.replan(plan);
        Self { facts, pass }
    }

    /// A trial with nothing that synchronises, which notes the ops and the pairs that race then.
    pub fn unsynchronised(first: &'a mut Analysis) -> Self {
        let partly = |known: &KernelCoverage| known.ranges < known.launches || known.indirect > 0;
        let kernels = first.pass.state.kernels.iter();
        let unknown: FxHashSet<KernelId> =
            kernels.filter(|(_, known)| partly(known)).map(|(kernel, _)| *kernel).collect();
        let mut trial = Self::with_waits(first, Replan::default());
        let Pass { state, edits, .. } = &mut trial.pass;
        edits.assumed = Some(Box::new(Assumed::new(LeftOut::All)));
        edits.steps = Some(Box::new(Steps::new(unknown)));
        state.captures = Captures::new(true);
        state.submissions.early_free.ignore_events();
        trial
    }

    /// A trial in which these kernels do not wait for the grids they depend on. Its findings are
    /// all that may race then, also what is weak.
    pub(super) fn without_grid_waits(first: &'a mut Analysis, kernels: FxHashSet<KernelId>) -> Self {
        let trial = Self::with_waits(first, Replan::default());
        trial.facts.code.suppose_without_wait(kernels);
        Self { pass: trial.pass.pedantic(), facts: trial.facts }
    }

    /// Ends a trial in which nothing may race: whether nothing does.
    pub(super) fn ends_silent(mut self) -> bool {
        self.complete();
        let state = &self.pass.state;
        !state.findings.judged_so_far(|_| true) && state.findings.dropped() == 0 && state.memory.forgotten() == 0
    }

    /// Takes the next record, unless the trial was given up. What could not be decoded was counted
    /// in the first pass, which has taken the definitions as well.
    pub fn feed_encoded(&mut self, bytes: &[u8]) {
        if self.pass.edits.replan.as_ref().is_some_and(|plan| plan.is_given_up()) {
            return;
        }
        match Record::decode(bytes) {
            Ok(record) if record.op.is_definition() => self.pass.state.define(&record.op),
            Ok(record) => self.pass.feed(self.facts, &record),
            Err(_) => {}
        }
    }

    /// Ends the trial. Returns its findings, and the waits with what became of them.
    pub fn end(mut self) -> (Findings, Replan) {
        self.complete();
        let plan = self.pass.edits.replan.take().unwrap_or_default();
        (self.pass.state.findings, *plan)
    }

    /// Ends a trial without synchronisation. Second: accesses that were forgotten for lack of room.
    pub fn into_steps(mut self) -> Option<(Steps, u64)> {
        self.complete();
        let forgotten = self.pass.state.memory.forgotten();
        self.pass.edits.steps.take().map(|steps| (*steps, forgotten))
    }

    fn complete(&mut self) {
        self.pass.end(self.facts);
        // What the trial repeated is no launch of the program.
        drop(self.facts.code.counted());
        self.facts.code.suppose_without_wait(FxHashSet::default());
    }
}
