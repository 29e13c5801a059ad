//! A pass: the records of one process, taken one after the other.
//!
//! Owns [`Pass`], the sequence of steps that each record takes. Does not decide which bytes an op
//! touches ([`crate::ops`]), what is ordered ([`detect::state::happens_before`]), or what is a race
//! ([`detect::race`]).
//!
//! # The steps of one record
//!
//! 1. [`Pass::feed`] holds the record back while an earlier launch is still being measured
//!    ([`detect::exact::pending`]).
//! 2. A definition goes to the facts of the process, and ends there.
//! 3. Observers see the record as the program made it: the rules of a team.
//! 4. The edits change the record, leave it out, or add waits before it
//!    ([`crate::counterfactual::edits`]).
//! 5. The op gets its epoch from the happens-before engine.
//! 6. `submissions` records the submission: coverage counters, the history of the stream, launches
//!    in flight, early frees, NVTX regions.
//! 7. [`crate::ops`] applies the op to memory, graphs and streams.
//! 8. Observers see what the op has touched: other processes of the run ([`crate::ipc`]).
//! 9. The races of the op are merged and counted as findings.
//!
//! `fast_path` takes a repeated launch from its record straight to the accesses that it made last
//! time. It performs the same steps in the same order.
//!
//! The files in the order of use: `analysis` is the pass over a process with all that was asked for
//! and `outcome` its end; `observers` are the modes that watch a pass.

pub(crate) mod analysis;
mod fast_path;
mod observers;
mod outcome;

use crate::counterfactual::edits::Edits;
use crate::counterfactual::edits::assumed::EditedRecord;
use crate::counterfactual::edits::waits::Replan;
use crate::ops;
use crate::process::early_values;
use crate::process::facts::ProcessFacts;
use crate::process::options::AnalysisOptions;
use crate::process::state::ProcessState;
use detect::exact::learned::{Learned, Lessons};
use detect::state::names::Names;
use observers::Observers;
use std::sync::Arc;
use trace::{Op, Record};

/// One pass over the records of a process.
pub(crate) struct Pass {
    /// Order, memory, races, findings.
    pub(crate) state: ProcessState,
    /// What is changed in front of it.
    pub(crate) edits: Edits,
    observers: Observers,
    /// Whether repeated launches may take the fast path.
    direct: bool,
}

impl Pass {
    /// A pass before its first record.
    pub(crate) fn new(options: AnalysisOptions) -> Self {
        let (edits, observers) = (Edits::new(&options), Observers::new(&options));
        let mut state = ProcessState::new(options);
        state.is_order_edited = edits.replan.is_some();
        Self { state, edits, observers, direct: false }
    }

    /// The same with weak findings.
    pub(crate) fn pedantic(mut self) -> Self {
        self.state.options.judging.pedantic = true;
        self
    }

    /// Adds waits to the order from here on.
    pub(crate) fn replan(&mut self, plan: Replan) {
        self.edits.replan = Some(Box::new(plan));
        self.state.is_order_edited = true;
        self.direct = false;
    }

    /// Uses the learned ranges, and learns more.
    pub(crate) fn learn(&mut self, known: Arc<Learned>) {
        self.state.exact.learned = Some(Lessons { known, fresh: Learned::default() });
        self.direct = false;
    }

    /// Takes the next record of the trace.
    pub(crate) fn feed(&mut self, facts: &mut ProcessFacts, record: &Record<'_>) {
        if let Op::Gap { resumed } = record.op {
            self.gap(facts, resumed, record);
        } else if self.state.exact.pending.takes(record) {
            self.release(facts);
        } else {
            self.apply(facts, record);
        }
        self.direct = self.is_direct();
    }

    /// Ends the pass: no launch is waited for any longer.
    pub(crate) fn end(&mut self, facts: &mut ProcessFacts) {
        self.state.exact.pending.end();
        self.release(facts);
        early_values::settle(&mut self.state, true);
        self.judge_races(&facts.names);
    }

    /// Applies the records whose wait for a measured launch is over.
    #[cold]
    fn release(&mut self, facts: &mut ProcessFacts) {
        while let Some(bytes) = self.state.exact.pending.release() {
            match Record::decode(&bytes) {
                Ok(record) => self.apply(facts, &record),
                Err(_) => self.state.coverage.damaged += 1,
            }
        }
    }

    /// A gap: before what lives is told, and (`resumed`) after it.
    #[cold]
    fn gap(&mut self, facts: &mut ProcessFacts, resumed: bool, record: &Record<'_>) {
        if resumed {
            self.state.resume_after_gap();
        } else {
            self.end(facts);
            self.state.forget_before_gap();
            facts.stacks.define(&record.op);
            self.observers.gap();
        }
        self.state.place_gap(record);
    }

    /// Takes a record from its edits to its races.
    fn apply(&mut self, facts: &mut ProcessFacts, record: &Record<'_>) {
        if let Op::Clock { ns } = record.op {
            return self.observers.clock(ns);
        }
        if record.op.is_definition() {
            self.state.coverage.ops += 1;
            self.state.define(&record.op);
            return facts.define(&record.op);
        }
        self.observers.recorded(record, &self.state, facts);
        match self.edits.assumed {
            None => self.apply_edited(facts, record, record, None),
            Some(_) => self.apply_assumed(facts, record),
        }
    }

    /// Applies a record as it would be under the assumptions.
    fn apply_assumed(&mut self, facts: &mut ProcessFacts, record: &Record<'_>) {
        let mut edited = *record;
        if let Some(made) = self.edits.redirect(&mut edited) {
            self.apply_edited(facts, &made, &made, None);
        }
        match self.edits.edit(&edited, &mut self.state, facts) {
            EditedRecord::Applied(in_order) => self.apply_edited(facts, record, &edited, in_order.as_ref()),
            EditedRecord::LeftOut => drop(self.edits.note_step(record, None, None, &mut self.state)),
        }
    }

    /// Applies a record that was edited. `in_order`: what the order gets of it, if that is another
    /// op.
    fn apply_edited(
        &mut self,
        facts: &mut ProcessFacts,
        recorded: &Record<'_>,
        edited: &Record<'_>,
        in_order: Option<&Op<'_>>,
    ) {
        let (state, edits) = (&mut self.state, &mut self.edits);
        let translated = edits.before(edited, state, facts);
        let record = translated.as_ref().unwrap_or(edited);
        let (op, origin) = (&record.op, &record.origin);
        ops::launch::wait_for_fired(state, facts, op);
        let overlap = ops::launch::overlap(state, facts, op);
        let epoch = state.place(in_order.unwrap_or(op), origin.thread, overlap);
        self.observers.placed(record, epoch, state, facts);
        state.submit(op, origin, epoch, facts.names.has_torch_blocks());
        if let (Op::GraphLaunch { stream, exec }, false) = (*op, state.paused) {
            edits.launch_graph(exec, state, facts);
            self.observers.graph_placed(exec, stream, epoch, state);
        }
        ops::act(state, facts, op, origin, epoch);
        edits.after(record, epoch, state);
        if edits.note_step(recorded, Some(epoch), overlap, state) {
            return;
        }
        self.observers.applied(op, epoch, state);
        if !state.early_values.is_empty() {
            early_values::look(state, op, epoch);
        }
        if !state.polls.is_empty() {
            state.polls.settle(&state.ordering);
        }
        state.drop_unjudged(op, &facts.names);
        state.judge_supposed();
        self.judge_races(&facts.names);
    }

    /// Weighs the races of the current op and counts them as findings.
    #[inline]
    fn judge_races(&mut self, names: &Names) {
        if !self.state.races.is_empty() {
            self.count_races(names);
        }
    }

    #[cold]
    fn count_races(&mut self, names: &Names) {
        self.state.weigh_races(names);
        self.edits.note_races(&self.state.races);
        self.state.count_races();
    }
}
