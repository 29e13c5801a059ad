//! The modes that watch a pass and change nothing in it.
//!
//! Owns when each of them sees a record: the rules of a team before its edits, hints at its place
//! in the order, other processes of the run once it is applied. What they look for is theirs:
//! [`crate::rules`], [`detect::hints`], [`crate::ipc`].

use crate::ipc::Member;
use crate::ipc::export;
use crate::process::facts::ProcessFacts;
use crate::process::options::AnalysisOptions;
use crate::process::state::{FlagWait, ProcessState};
use crate::rules::watch::{RuleContext, RuleWatch};
use detect::hints::{CodeSpot, Hints};
use trace::{Epoch, GraphExecId, Op, Record, StreamId};

/// The observers of one pass.
pub(super) struct Observers {
    /// Calls that are no race but probably a mistake.
    pub(super) hints: Hints,
    wants_hints: bool,
    /// Races that code may have are wanted beside those of the run.
    wants_possible: bool,
    /// The rules that the program must not break.
    pub(super) rules: Option<Box<RuleWatch>>,
    /// The process's side of the comparison with the other processes of the run.
    pub(super) member: Option<Member>,
}

impl Observers {
    pub(super) fn new(options: &AnalysisOptions) -> Self {
        Self {
            hints: Hints::default(),
            wants_hints: options.judging.hints,
            wants_possible: options.judging.pedantic,
            rules: options.forbidden.map(|rules| Box::new(RuleWatch::new(rules))),
            member: None,
        }
    }

    /// Whether none of them looks at launches.
    pub(super) fn pass_launches_over(&self) -> bool {
        !self.wants_hints && !self.rules.as_ref().is_some_and(|rules| rules.is_for_launches())
    }

    /// The time of the ops that follow.
    pub(super) fn clock(&mut self, ns: u64) {
        self.member.iter_mut().for_each(|member| member.clock(ns));
    }

    /// Records are missing: a hint might rest on them.
    pub(super) fn gap(&mut self) {
        self.wants_hints = false;
    }

    /// A record as the program made it, before it takes effect.
    pub(super) fn recorded(&mut self, record: &Record<'_>, state: &ProcessState, facts: &mut ProcessFacts) {
        let Some(rules) = self.rules.as_mut().filter(|_| state.gaps.obey(&record.op)) else { return };
        let mut context = RuleContext {
            call: facts.names.call(record.origin.call),
            memory: &|address| state.ordering.memory_kind(address),
            regions: &state.submissions.regions,
            stacks: &mut *facts.stacks,
            paused: state.paused,
        };
        rules.observe(&record.op, &record.origin, &mut context);
    }

    /// A record has its place in the order.
    pub(super) fn placed(&mut self, record: &Record<'_>, epoch: Epoch, state: &ProcessState, facts: &ProcessFacts) {
        if self.wants_hints {
            let view = state.ordering.view(epoch, None);
            self.hints.observe(&record.op, &record.origin, &view, &facts.names, &state.streams);
        }
    }

    /// A graph has its place in the order, and its nodes with it.
    pub(super) fn graph_placed(&mut self, exec: GraphExecId, stream: StreamId, epoch: Epoch, state: &mut ProcessState) {
        if !self.wants_hints {
            return;
        }
        let Some(graph) = state.graphs.take(exec) else { return };
        let view = state.ordering.view(epoch, None);
        for (index, node) in graph.sequence().iter().filter_map(|&index| Some((index, graph.node(index)?))) {
            if let Some(op) = node.op() {
                self.hints.event_node(&op, stream, node.stack, &view);
                if !state.stale_graphs.names_ended(exec, index) {
                    self.hints.copy_node(&op, stream, node.stack, &state.memory);
                }
            }
        }
        state.graphs.put(exec, graph);
    }

    /// An op is applied to the order and to memory.
    pub(super) fn applied(&mut self, op: &Op<'_>, epoch: Epoch, state: &mut ProcessState) {
        for launch in state.doubtful.drain(..) {
            let is_possible = matches!(launch.spot, CodeSpot::Copy(_)) && self.wants_possible;
            if self.wants_hints || is_possible {
                self.hints.doubtful_launch(&launch);
            }
        }
        for uses in state.pad_uses.drain(..).filter(|_| self.wants_hints) {
            self.hints.signal_pad(uses);
        }
        if let (Some(wait), Some(member)) = (state.waits.take(), &mut self.member) {
            member.kernel_waits(epoch, wait == FlagWait::Anywhere);
        }
        state.shares |= matches!(op, Op::SharedMemory { .. } | Op::SharedEvent { .. });
        if state.shares && !state.gaps.any() {
            export::export(self.member.as_mut(), state, op, epoch);
        }
    }
}
