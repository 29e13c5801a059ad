//! Waits that the program did not make, applied before and after its ops.
//!
//! Owns how a change acts on the order. What is changed is [`super::waits`]. An added record or
//! wait goes to the order alone: it is no op of the program, so nothing else observes it.

use super::waits::{KeptBlock, Recorded, Replan};
use crate::process::facts::ProcessFacts;
use crate::process::state::ProcessState;
use detect::state::graphs::Graph;
use detect::state::happens_before::Ordering;
use detect::state::op_site::{OpClass, OpSite};
use report::cause::Join;
use trace::{Epoch, EventId, EventMode, FreeKind, MemoryKind, Op, Record, StreamId, SyncScope, ThreadId};

/// Applies what is added before an op.
#[cold]
pub(super) fn before(plan: &mut Replan, record: &Record<'_>, state: &mut ProcessState, facts: &mut ProcessFacts) {
    let (op, thread) = (&record.op, record.origin.thread);
    match *op {
        Op::Free { ptr, kind: FreeKind::Block, .. } => keep_alive(plan, record, ptr, state),
        Op::Alloc { ptr, size, kind: MemoryKind::Block, stream, .. } => {
            let (start, end) = (ptr, ptr.saturating_add(size));
            let mut held = Vec::new();
            // Looking at a block costs a small part of an op.
            plan.added += plan.kept.len() as u64 / 16;
            plan.kept.retain(|block| {
                let apart = block.end <= start || end <= block.start;
                held.extend((!apart).then_some(block.event));
                apart
            });
            plan.added += held.len() as u64;
            for event in held {
                // A pool hands such a block out when it has seen the event complete.
                match stream.is_none() {
                    true => drop(state.ordering.apply(&Op::EventReached { event, record: 1 }, thread)),
                    false => add_wait(&mut state.ordering, stream, event, thread),
                }
            }
        }
        _ => {}
    }
    if let Some((site, stream)) = OpSite::of(op, record.origin.stack) {
        meet(plan, site, facts);
        for index in plan.before.get(&site).cloned().unwrap_or_default() {
            match plan.waits[index].join {
                Join::Event | Join::Existing if !stream.is_none() => {
                    wait_on_stream(plan, index, stream, thread, &mut state.ordering);
                }
                Join::Event | Join::Existing | Join::Host => wait_on_host(plan, index, thread, &mut state.ordering),
                Join::KeepAlive | Join::Capture => {}
            }
        }
    }
}

/// Applies what is added after an op, and takes notes of it.
#[cold]
pub(super) fn after(plan: &mut Replan, record: &Record<'_>, epoch: Epoch, ordering: &mut Ordering) {
    let at = OpSite::of(&record.op, record.origin.stack);
    if let Some(notes) = &mut plan.notes {
        notes.op(&record.op, at, epoch);
    }
    if let Some((site, stream)) = at.filter(|(_, stream)| !stream.is_none()) {
        let recorded = record.origin.epoch;
        if recorded.time > 0 {
            plan.note_time(stream, recorded.time, epoch.time);
        }
        for index in plan.after.get(&site).cloned().unwrap_or_default() {
            plan.added += 1;
            let blocked = ordering.is_blocked(stream);
            let new = match (plan.waits[index].join, record.op) {
                (Join::Existing, Op::EventRecord { event, .. }) => Recorded { stream, event, epoch, blocked },
                _ => {
                    let event = plan.event_of(index, stream);
                    let op = Op::EventRecord { event, stream, mode: EventMode::Plain };
                    Recorded { stream, event, epoch: ordering.apply(&op, record.origin.thread), blocked }
                }
            };
            plan.note_record(index, new);
        }
    }
}

/// A site has come up: waits that the user wrote down may name it.
fn meet(plan: &mut Replan, site: OpSite, facts: &mut ProcessFacts) {
    if !plan.written.is_empty() && plan.met.insert(site) {
        let kernel = facts.names.kernel(site.kernel).map_or_else(String::new, |k| facts.stacks.demangle(&k.name));
        plan.meet(site, &facts.stacks.resolve(site.stack), &kernel);
    }
}

/// Adds the edges that waits between captured streams would make, once for what was captured
/// once. A wait that the user wrote down is such a wait where both of its places are captured.
#[cold]
pub(super) fn add_to_graph(plan: &mut Replan, graph: &mut Graph, facts: &mut ProcessFacts) {
    if !graph.begin_replan() {
        return;
    }
    let sites: Vec<OpSite> = graph.sites().into_iter().flatten().collect();
    sites.iter().for_each(|site| meet(plan, *site, facts));
    for index in 0..plan.waits.len() {
        let wait = &plan.waits[index];
        let is_written = index < plan.written.len();
        if wait.join != Join::Capture && !is_written {
            continue;
        }
        let has = |wanted: &[OpSite]| sites.iter().any(|site| wanted.contains(site));
        let both = has(&wait.after) && has(&wait.before) && wait.join != Join::Host;
        let added = if both { graph.wait_between(&wait.after, &wait.before) } else { 0 };
        let applied = &mut plan.applied[index];
        applied.records += added.max(u64::from(both));
        applied.waits += added;
        applied.idle += u64::from(both && added == 0);
        applied.captured += u64::from(!both && (has(&wait.after) || has(&wait.before)));
    }
}

fn add_wait(ordering: &mut Ordering, stream: StreamId, event: EventId, thread: ThreadId) {
    ordering.apply(&Op::StreamWait { stream, event, mode: EventMode::Plain }, thread);
}

/// The records that a wait may take. One that is behind a wait for a value which somebody has
/// yet to write is left alone: whoever waited for it might be the one who writes.
fn takes(plan: &mut Replan, index: usize, stream: StreamId, ordering: &mut Ordering) -> Vec<Recorded> {
    // What the host has seen finish needs no wait.
    plan.recorded[index].retain(|r| r.stream == stream || !ordering.host_saw(r.epoch));
    let mut taken: Vec<Recorded> = plan.recorded[index].iter().filter(|r| r.stream != stream).copied().collect();
    let before = taken.len();
    taken.retain(|r| !(r.blocked && ordering.is_blocked(r.stream)));
    let applied = &mut plan.applied[index];
    applied.blocked += u64::from(taken.len() < before);
    applied.waits += u64::from(!taken.is_empty());
    applied.idle += u64::from(before == 0);
    plan.added += 1 + taken.len() as u64;
    taken
}

fn wait_on_stream(plan: &mut Replan, index: usize, stream: StreamId, thread: ThreadId, ordering: &mut Ordering) {
    for recorded in takes(plan, index, stream, ordering) {
        add_wait(ordering, stream, recorded.event, thread);
    }
}

fn wait_on_host(plan: &mut Replan, index: usize, thread: ThreadId, ordering: &mut Ordering) {
    for Recorded { stream, event, .. } in takes(plan, index, StreamId::NONE, ordering) {
        let (sync, context) = (plan.sync(), trace::ContextId::NONE);
        let begin = Op::SyncBegin { sync, scope: SyncScope::Event, stream, event, context };
        ordering.apply(&begin, thread);
        ordering.apply(&Op::SyncEnd { sync }, thread);
    }
}

/// A block is freed: the pool is told of the streams that use it. What it holds back is the
/// block, so one event on each stream does for all waits of the place.
fn keep_alive(plan: &mut Replan, record: &Record<'_>, ptr: u64, state: &mut ProcessState) {
    let site = OpSite { stack: record.origin.stack, kernel: trace::KernelId::NONE, class: OpClass::Free };
    let Some((info, _)) = state.memory.block(ptr) else { return };
    let mut users: Vec<StreamId> = Vec::new();
    for index in plan.before.get(&site).cloned().unwrap_or_default() {
        if plan.waits[index].join != Join::KeepAlive {
            continue;
        }
        plan.added += 1;
        let mut own: Vec<StreamId> = plan.recorded[index].iter().map(|r| r.stream).collect();
        own.retain(|stream| !state.ordering.is_blocked(*stream));
        let applied = &mut plan.applied[index];
        applied.waits += u64::from(!own.is_empty());
        applied.idle += u64::from(own.is_empty());
        users.extend(own);
    }
    users.sort_unstable();
    users.dedup();
    plan.added += users.len() as u64;
    for stream in users {
        let event = plan.event();
        let op = Op::EventRecord { event, stream, mode: EventMode::Plain };
        let epoch = state.ordering.apply(&op, record.origin.thread);
        state.submissions.early_free.covered(record.origin.thread, epoch);
        plan.kept.push(KeptBlock { start: info.ptr, end: info.end(), event });
    }
}
