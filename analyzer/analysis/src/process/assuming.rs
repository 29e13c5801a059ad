//! The hook for assumptions: a record as it would be if the program synchronised otherwise.
//!
//! Owns how an assumption acts on a record. What is assumed is [`crate::whatif::assumed`].

use super::{Analysis, AnalysisOptions};
use crate::replan::waits::Replan;
use crate::whatif::assumed::{Assumed, AssumedRecord, LeftOut};
use crate::whatif::pattern;
use crate::whatif::steps::{self, Steps};
use crate::whatif::sync::{SyncKind, SyncSite, made_by, stream_mut, stream_of, unblocked};
use detect::coverage::KernelCoverage;
use detect::state::captures::Captures;
use detect::state::graph_waits::GraphWaits;
use detect::state::graphs::Graph;
use report::elaborate::called;
use rustc_hash::FxHashSet;
use settings::DefaultStream;
use trace::{CallId, Epoch, GraphExecId, KernelId, Op, Record, StackId, StreamKind, SyncScope, TimelineId};

impl Analysis {
    /// The state of the assumptions of these options.
    pub(super) fn assumed_by(options: &AnalysisOptions) -> Option<Box<Assumed>> {
        options.assumptions.map(|assumptions| Box::new(Assumed::new(LeftOut::Named(assumptions))))
    }

    /// An analysis of the same records with nothing that synchronises, which notes the ops and the
    /// pairs that race then.
    pub fn unsynchronised(&mut self) -> Self {
        let partly = |known: &KernelCoverage| known.ranges < known.launches || known.indirect > 0;
        let unknown: FxHashSet<KernelId> =
            self.kernels.iter().filter(|(_, known)| partly(known)).map(|(kernel, _)| *kernel).collect();
        let mut twin = self.twin(Replan::default());
        twin.assumed = Some(Box::new(Assumed::new(LeftOut::All)));
        twin.captures = Captures::new(true);
        twin.submissions.early_free.ignore_events();
        twin.steps = Some(Box::new(Steps::new(unknown)));
        twin
    }

    /// Ends such an analysis. Second: accesses that were forgotten for lack of room.
    pub fn take_steps(&mut self, mut twin: Self) -> Option<(Steps, u64)> {
        twin.pending.end();
        twin.release();
        let (steps, forgotten) = (twin.steps.take(), twin.memory.forgotten());
        self.take_back(twin);
        steps.map(|steps| (*steps, forgotten))
    }

    /// Notes an op for the order trials.
    #[cold]
    pub(super) fn take_step(&mut self, record: &Record<'_>, epoch: Option<Epoch>, overlaps: bool) {
        let Some(mut steps) = self.steps.take() else { return };
        let ordering = &self.ordering;
        let epoch = epoch.unwrap_or_else(|| {
            stream_of(&record.op).map_or(Epoch { timeline: TimelineId::HOST, time: 0 }, |s| ordering.stream_epoch(s))
        });
        let memory = |address| ordering.memory_kind(address);
        let context = steps::Context { epoch, overlaps, policy: self.options.policy, memory: &memory };
        steps.take(record, &context, &self.races);
        self.races.clear();
        self.steps = Some(steps);
    }

    /// A record under the assumptions.
    #[cold]
    pub(super) fn assume<'a>(&mut self, record: &Record<'a>) -> AssumedRecord<'a> {
        let mut record = *record;
        if self.assumed.as_ref().is_some_and(|assumed| assumed.default_stream().is_some()) {
            self.assume_default_stream(&mut record);
        }
        if let (Op::EventReached { event, record: number }, Some(steps)) = (record.op, &self.steps)
            && steps.is_of_pool(event, number)
        {
            return AssumedRecord::LeftOut;
        }
        let (ordering, policy) = (&self.ordering, self.options.policy);
        let kind = SyncKind::of(&record.op, policy, |address| ordering.memory_kind(address));
        match kind {
            Some(kind) if self.is_left_out(&record, kind) => match unblocked(&record.op) {
                Some(op) => AssumedRecord::Ordered(record, op),
                None => {
                    self.leave_out(&record);
                    AssumedRecord::LeftOut
                }
            },
            _ => AssumedRecord::Applied(record),
        }
    }

    fn is_left_out(&mut self, record: &Record<'_>, kind: SyncKind) -> bool {
        let (stack, call) = made_by(record);
        let Some(word) = self.left_out_by(SyncSite { stack, kind }, call) else { return false };
        // A node waits when its graph is launched.
        if kind != SyncKind::CapturedWait
            && let Some(count) = self.assumed.as_mut().and_then(|assumed| assumed.counts.get_mut(word))
        {
            *count += 1;
        }
        true
    }

    /// The word that leaves a site out, by its number.
    fn left_out_by(&mut self, site: SyncSite, call: CallId) -> Option<usize> {
        let assumed = self.assumed.as_mut()?;
        let assumptions = match assumed.left_out {
            LeftOut::All => return Some(usize::MAX),
            LeftOut::Named(assumptions) if assumptions.without.is_empty() => return None,
            LeftOut::Named(assumptions) => assumptions,
        };
        let (stacks, names) = (&mut self.stacks, &self.names);
        *assumed.known.entry(site).or_insert_with(|| {
            let stack = stacks.resolve(site.stack);
            let driver = names.call(call);
            let call = called(&stack, driver);
            assumptions.without.iter().position(|word| pattern::names(word, site.kind, [&call, driver], &stack))
        })
    }

    /// A graph is launched: its order is that without the waits that are left out.
    #[cold]
    pub(super) fn assume_graph(&mut self, exec: GraphExecId, graph: &mut Graph) {
        if !graph.is_assumed {
            let waits = GraphWaits::of(graph, &self.captures);
            let mut words: Vec<usize> = Vec::new();
            let kind = SyncKind::CapturedWait;
            let mut is_out = |site: (StackId, CallId)| {
                let word = self.left_out_by(SyncSite { stack: site.0, kind }, site.1);
                words.extend(word);
                word.is_some()
            };
            let out = waits.captures.iter().map(|part| {
                part.capture.waits.iter().map(|wait| !part.is_opaque && is_out((wait.stack, wait.call))).collect()
            });
            let out: Vec<Vec<bool>> = out.collect();
            for node in graph.nodes().iter().filter(|node| node.waits_outside()) {
                is_out((node.stack, node.call));
            }
            let order = out
                .iter()
                .flatten()
                .any(|is_out| *is_out)
                .then(|| waits.order_without(graph, &|capture, wait| out[capture as usize][wait as usize]).0);
            if let Some(assumed) = &mut self.assumed {
                assumed.in_graphs.insert(exec, words);
            }
            if let Some(steps) = &mut self.steps {
                steps.graph(exec, graph, waits);
            }
            match order {
                Some(order) => graph.assume(order),
                None => graph.is_assumed = true,
            }
        }
        if let Some(assumed) = &mut self.assumed {
            for word in assumed.in_graphs.get(&exec).into_iter().flatten() {
                assumed.counts.get_mut(*word).into_iter().for_each(|count| *count += 1);
            }
        }
    }

    /// An op that is left out takes no time of its stream. A query of that stream may name the time
    /// that it had.
    fn leave_out(&mut self, record: &Record<'_>) {
        self.coverage.ops += 1;
        self.submissions.early_free.interrupt(record.origin.thread);
        let (stream, recorded) = (stream_of(&record.op), record.origin.epoch.time);
        if let (Op::StreamWait { .. }, Some(stream)) = (record.op, stream) {
            let now = self.ordering.stream_time(stream);
            if let Some(plan) = &mut self.replan {
                plan.note_time(stream, recorded, now);
            }
        }
    }

    /// Ops of default streams go to the streams that are assumed.
    fn assume_default_stream(&mut self, record: &mut Record<'_>) {
        let Some(mut assumed) = self.assumed.take() else { return };
        let thread = record.origin.thread;
        match (&mut record.op, assumed.default_stream()) {
            (
                Op::StreamCreate { stream, kind: kind @ (StreamKind::Legacy | StreamKind::PerThread), .. },
                Some(DefaultStream::NonBlocking),
            ) => {
                *kind = StreamKind::NonBlocking;
                assumed.alter(*stream);
            }
            (
                &mut Op::StreamCreate { stream, context, kind: StreamKind::Legacy, .. },
                Some(DefaultStream::PerThread),
            )
            | (
                &mut Op::StreamCreate { stream, context, kind: StreamKind::PerThread, .. },
                Some(DefaultStream::Legacy),
            ) => {
                assumed.change(stream, context);
            }
            (&mut Op::StreamCreate { stream, context, kind: StreamKind::Legacy, .. }, _) => {
                assumed.set_legacy(context, stream);
            }
            (&mut Op::StreamDestroy { stream }, _) => assumed.forget(stream),
            _ => {}
        }
        let is_made = matches!(record.op, Op::StreamCreate { .. });
        let stream = stream_of(&record.op).filter(|_| !is_made);
        stream.into_iter().for_each(|stream| assumed.count(stream));
        if let Some((stand_in, context)) = stream.and_then(|stream| assumed.stand_in(stream, thread)) {
            let per_thread = assumed.default_stream() == Some(DefaultStream::PerThread);
            let kind = if per_thread { StreamKind::PerThread } else { StreamKind::Legacy };
            if let Some(context) = context {
                let op = Op::StreamCreate { stream: stand_in, context, kind, priority: 0, handle: 0 };
                self.apply(&Record { origin: record.origin, op });
            }
            if let Some(stream) = stream_mut(&mut record.op) {
                *stream = stand_in;
            }
            if let Op::SyncBegin { scope: scope @ (SyncScope::Legacy | SyncScope::Stream), .. } = &mut record.op {
                *scope = if per_thread { SyncScope::Stream } else { SyncScope::Legacy };
            }
            assumed.moved += 1;
        }
        self.assumed = Some(assumed);
    }
}
