//! A record as it would be if the program synchronised otherwise.
//!
//! Owns how an assumption acts on a record. What is assumed is [`super::assumed`].

use super::assumed::{Assumed, LeftOut};
use super::pattern;
use super::steps::Steps;
use super::sync::{SyncKind, SyncSite, made_by, stream_mut, stream_of};
use crate::process::facts::ProcessFacts;
use detect::state::captures::Captures;
use detect::state::graph_waits::GraphWaits;
use detect::state::graphs::Graph;
use report::elaborate::called;
use settings::DefaultStream;
use trace::{CallId, GraphExecId, Op, Record, StackId, StreamKind, SyncScope};

/// Whether an assumption leaves a synchronisation out.
pub(super) fn is_left_out(
    assumed: &mut Assumed,
    record: &Record<'_>,
    kind: SyncKind,
    facts: &mut ProcessFacts,
) -> bool {
    let (stack, call) = made_by(record);
    let Some(word) = left_out_by(assumed, SyncSite { stack, kind }, call, facts) else { return false };
    // A node waits when its graph is launched.
    if kind != SyncKind::CapturedWait
        && let Some(count) = assumed.counts.get_mut(word)
    {
        *count += 1;
    }
    true
}

/// The word that leaves a site out, by its number.
fn left_out_by(assumed: &mut Assumed, site: SyncSite, call: CallId, facts: &mut ProcessFacts) -> Option<usize> {
    let assumptions = match assumed.left_out {
        LeftOut::All => return Some(usize::MAX),
        LeftOut::Named(assumptions) if assumptions.without.is_empty() => return None,
        LeftOut::Named(assumptions) => assumptions,
    };
    let (stacks, names) = (&mut facts.stacks, &facts.names);
    *assumed.known.entry(site).or_insert_with(|| {
        let stack = stacks.resolve(site.stack);
        let driver = names.call(call);
        let call = called(&stack, driver);
        assumptions.without.iter().position(|word| pattern::names(word, site.kind, [&call, driver], &stack))
    })
}

/// A graph is launched: its order is that without the waits that are left out.
#[cold]
pub(super) fn assume_graph(
    assumed: &mut Assumed,
    steps: Option<&mut Steps>,
    (exec, graph): (GraphExecId, &mut Graph),
    captures: &Captures,
    facts: &mut ProcessFacts,
) {
    if !graph.is_assumed {
        let waits = GraphWaits::of(graph, captures);
        let mut words: Vec<usize> = Vec::new();
        let kind = SyncKind::CapturedWait;
        let mut is_out = |site: (StackId, CallId)| {
            let word = left_out_by(assumed, SyncSite { stack: site.0, kind }, site.1, facts);
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
        assumed.in_graphs.insert(exec, words);
        if let Some(steps) = steps {
            steps.graph(exec, graph, waits);
        }
        match order {
            Some(order) => graph.assume(order),
            None => graph.is_assumed = true,
        }
    }
    for word in assumed.in_graphs.get(&exec).into_iter().flatten() {
        assumed.counts.get_mut(*word).into_iter().for_each(|count| *count += 1);
    }
}

/// Ops of default streams go to the streams that are assumed. Returns the record that makes such a
/// stream, if it is needed first.
#[cold]
pub(super) fn assume_default_stream<'a>(assumed: &mut Assumed, record: &mut Record<'a>) -> Option<Record<'a>> {
    let mut made = None;
    let thread = record.origin.thread;
    match (&mut record.op, assumed.default_stream()) {
        (
            Op::StreamCreate { stream, kind: kind @ (StreamKind::Legacy | StreamKind::PerThread), .. },
            Some(DefaultStream::NonBlocking),
        ) => {
            *kind = StreamKind::NonBlocking;
            assumed.alter(*stream);
        }
        (&mut Op::StreamCreate { stream, context, kind: StreamKind::Legacy, .. }, Some(DefaultStream::PerThread))
        | (&mut Op::StreamCreate { stream, context, kind: StreamKind::PerThread, .. }, Some(DefaultStream::Legacy)) => {
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
            made = Some(Record { origin: record.origin, op });
        }
        if let Some(stream) = stream_mut(&mut record.op) {
            *stream = stand_in;
        }
        if let Op::SyncBegin { scope: scope @ (SyncScope::Legacy | SyncScope::Stream), .. } = &mut record.op {
            *scope = if per_thread { SyncScope::Stream } else { SyncScope::Legacy };
        }
        assumed.moved += 1;
    }
    made
}
