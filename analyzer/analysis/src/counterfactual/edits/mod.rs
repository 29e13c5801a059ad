//! Edits: record in, edited record out.
//!
//! Owns the stage in front of a pass: all edits of one pass ([`Edits`]), and what is noted of their
//! effect. A record goes through it in three steps: [`Edits::redirect`] moves ops of a default
//! stream, [`Edits::edit`] leaves synchronisations out, and [`Edits::before`] and [`Edits::after`]
//! add waits around what is left. Does not judge what the edits are good for: that is
//! [`super::causes`] and [`super::excess`].
//!
//! The files in the order of use: `sync` says which ops synchronise, `pattern` which of them a user
//! names, `assumed` what is assumed and `assuming` how that acts. `waits` are the waits that are
//! added, `written` reads those of a file, and `adding` adds them. `notes` is kept of a trial of
//! waits; `steps` is the trace as the order sees it, `graphs` the launched graphs in it, and `need`
//! a pair that must stay ordered.

mod adding;
pub(crate) mod assumed;
mod assuming;
pub mod graphs;
pub mod need;
pub mod notes;
pub(crate) mod pattern;
pub mod steps;
pub mod sync;
pub mod waits;
pub mod written;

use crate::process::facts::ProcessFacts;
use crate::process::options::AnalysisOptions;
use crate::process::state::ProcessState;
use assumed::{Assumed, EditedRecord, LeftOut};
use detect::race::Race;
use order::Overlap;
use steps::Steps;
use sync::{SyncKind, stream_of, unblocked};
use trace::{Epoch, GraphExecId, Op, Record, TimelineId};
use waits::Replan;

/// The edits of one pass.
pub(crate) struct Edits {
    /// Waits that are added to the order.
    pub(crate) replan: Option<Box<Replan>>,
    /// What is assumed of the program.
    pub(crate) assumed: Option<Box<Assumed>>,
    /// The ops for trials of other orders.
    pub(crate) steps: Option<Box<Steps>>,
}

impl Edits {
    /// The edits that these options ask for.
    pub(crate) fn new(options: &AnalysisOptions) -> Self {
        let assumed = |assumptions| Box::new(Assumed::new(LeftOut::Named(assumptions)));
        Self {
            // Assumptions move the times of streams, which a plan keeps count of.
            replan: options.assumptions.map(|_| Box::default()),
            assumed: options.assumptions.map(assumed),
            steps: None,
        }
    }

    /// Moves an op of a default stream to the stream that is assumed. Returns the record that makes
    /// this stream, if it is needed first.
    pub(crate) fn redirect<'a>(&mut self, record: &mut Record<'a>) -> Option<Record<'a>> {
        let assumed = self.assumed.as_mut().filter(|assumed| assumed.default_stream().is_some())?;
        assuming::assume_default_stream(assumed, record)
    }

    /// A record without what is left out.
    pub(crate) fn edit<'a>(
        &mut self,
        record: &Record<'a>,
        state: &mut ProcessState,
        facts: &mut ProcessFacts,
    ) -> EditedRecord<'a> {
        let Some(assumed) = &mut self.assumed else { return EditedRecord::Applied(None) };
        if let (Op::EventReached { event, record: number }, Some(steps)) = (record.op, &self.steps)
            && steps.is_of_pool(event, number)
        {
            return EditedRecord::LeftOut;
        }
        let kind =
            SyncKind::of(&record.op, state.options.judging.policy, |address| state.ordering.memory_kind(address));
        if !kind.is_some_and(|kind| assuming::is_left_out(assumed, record, kind, facts)) {
            return EditedRecord::Applied(None);
        }
        let unblocked = unblocked(&record.op);
        if unblocked.is_none() {
            self.leave_out(record, state);
        }
        unblocked.map_or(EditedRecord::LeftOut, |op| EditedRecord::Applied(Some(op)))
    }

    /// An op that is left out takes no time of its stream. A query of that stream may name the time
    /// that it had.
    #[cold]
    fn leave_out(&mut self, record: &Record<'_>, state: &mut ProcessState) {
        state.coverage.ops += 1;
        state.submissions.early_free.interrupt(record.origin.thread);
        let (stream, recorded) = (stream_of(&record.op), record.origin.epoch.time);
        if let (Op::StreamWait { .. }, Some(stream)) = (record.op, stream) {
            let now = state.ordering.stream_time(stream);
            if let Some(plan) = &mut self.replan {
                plan.note_time(stream, recorded, now);
            }
        }
    }

    /// Adds the waits that come before a record. Returns it with its times of streams as they are
    /// now, if they may have moved.
    pub(crate) fn before<'a>(
        &mut self,
        record: &Record<'a>,
        state: &mut ProcessState,
        facts: &mut ProcessFacts,
    ) -> Option<Record<'a>> {
        let plan = self.replan.as_mut()?;
        let translated = plan.translated(record);
        adding::before(plan, record, state, facts);
        Some(translated)
    }

    /// Edits the order inside a graph that is launched.
    #[cold]
    pub(crate) fn launch_graph(&mut self, exec: GraphExecId, state: &mut ProcessState, facts: &mut ProcessFacts) {
        let Some(mut graph) = state.graphs.take(exec) else { return };
        if let Some(plan) = &mut self.replan {
            adding::add_to_graph(plan, &mut graph, facts);
        }
        if let Some(assumed) = &mut self.assumed {
            let steps = self.steps.as_deref_mut();
            assuming::assume_graph(assumed, steps, (exec, &mut graph), &state.captures, facts);
        }
        state.graphs.put(exec, graph);
    }

    /// Adds what comes after a record, and takes notes of it.
    pub(crate) fn after(&mut self, record: &Record<'_>, epoch: Epoch, state: &mut ProcessState) {
        if let Some(plan) = &mut self.replan {
            adding::after(plan, record, epoch, &mut state.ordering);
        }
    }

    /// Notes an op, as it was recorded, for trials of other orders. `epoch`: its place, unless it
    /// was left out. False: no such trials are asked for.
    pub(crate) fn note_step(
        &mut self,
        record: &Record<'_>,
        epoch: Option<Epoch>,
        overlap: Option<Overlap>,
        state: &mut ProcessState,
    ) -> bool {
        let Some(steps) = &mut self.steps else { return false };
        let ordering = &state.ordering;
        let epoch = epoch.unwrap_or_else(|| {
            stream_of(&record.op).map_or(Epoch { timeline: TimelineId::HOST, time: 0 }, |s| ordering.stream_epoch(s))
        });
        let memory = |address| ordering.memory_kind(address);
        let context = steps::Context { epoch, overlap, policy: state.options.judging.policy, memory: &memory };
        steps.take(record, &context, &state.races);
        state.races.clear();
        true
    }

    /// Notes the races of an op.
    pub(crate) fn note_races(&mut self, races: &[Race]) {
        if let Some(notes) = self.replan.as_mut().and_then(|plan| plan.notes.as_mut()) {
            races.iter().for_each(|race| notes.race(race));
        }
    }
}
