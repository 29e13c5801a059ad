//! Export: what a process reports to the other processes of its run (see [`crate::ipc`]).
//!
//! Owns the translation from ops of this process to messages. Runs only in processes that share
//! memory or events.

use order::AwaitedWord;
use trace::{Epoch, Op, SyncScope};

use super::Member;
use super::collectives::Collectives;
use super::exchange::PeerProcess;
use crate::process::facts::ProcessFacts;
use crate::process::state::ProcessState;
use detect::memory::{Access, AllocationId};
use detect::state::communicators::Communicators;
use report::words::DoubtSide;

/// Reports an op that was just applied to the order and to memory.
#[cold]
pub(crate) fn export(member: Option<&mut Member>, state: &mut ProcessState, op: &Op<'_>, epoch: Epoch) {
    let Some(member) = member else {
        if let Op::SharedMemory { .. } = op {
            let what = "what other processes do with shared memory (compared under one `streamsan run`, without --host-order threads)";
            *state.coverage.unobserved.entry(what.to_string()).or_default() += 1;
        }
        return;
    };
    tell_events(member, state, op, epoch);
    if let Op::SharedMemory { ptr, key } = *op {
        tell_memory(member, state, ptr, key);
    }
    let words = state.pad_words.take().map(|words| placed(state, &words));
    let signals = words.is_some_and(|words| member.signals(words.as_deref(), epoch, state.ordering.kept_start()));
    if let Some(touched) = state.memory.take_shared() {
        let clock = state.ordering.kept_start();
        for (root, access) in touched.iter().filter(|_| !state.paused) {
            member.access(*root, access, Some(clock.clone()));
        }
    }
    if signals {
        member.signals_end(epoch);
    }
    for root in state.memory.take_shared_ends() {
        member.free(root);
    }
    tell_values(member, state, op, epoch);
    // After its accesses, because records in a graph stand for its whole launch.
    let recorded = match *op {
        Op::GraphLaunch { .. } => member.events(),
        Op::EventRecord { event, .. } | Op::ContextRecord { event, .. } => vec![event],
        _ => Vec::new(),
    };
    for event in recorded {
        let (number, ordering) = (state.ordering.event_record(event), &state.ordering);
        member.recorded(event, number, || ordering.event_clock(event));
    }
    let ordering = &state.ordering;
    member.host(ordering.host_changes(), || ordering.known());
}

fn tell_events(member: &mut Member, state: &mut ProcessState, op: &Op<'_>, epoch: Epoch) {
    match *op {
        Op::SharedEvent { event, key } => {
            member.event(event, key, state.ordering.event_record(event), state.ordering.event_clock(event));
        }
        Op::OthersRecord { event, .. } => member.recorded_by_others(event, state.ordering.event_record(event)),
        Op::StreamWait { event, .. } | Op::ContextWait { event, .. } => member.waits(event, epoch),
        Op::SyncBegin { sync, scope: SyncScope::Event, event, .. } => member.sync_begins(sync, event),
        Op::SyncEnd { sync } => member.sync_ends(sync),
        Op::EventReached { event, .. } => member.reached_event(event),
        Op::EventDestroy { event } => member.forget_event(event),
        Op::GraphLaunch { exec, .. } => {
            let Some(graph) = state.graphs.take(exec) else { return };
            // The rest of the graph comes after its waits, so they count from the op before the
            // launch.
            let before = Epoch { time: epoch.time.saturating_sub(1), ..epoch };
            for node in graph.sequence().iter().filter_map(|&index| graph.node(index)) {
                if let Some(Op::StreamWait { event, .. }) = node.op() {
                    member.waits(event, before);
                }
            }
            state.graphs.put(exec, graph);
        }
        _ => {}
    }
}

/// Values that streams write to shared memory, and wait for there.
fn tell_values(member: &mut Member, state: &mut ProcessState, op: &Op<'_>, epoch: Epoch) {
    let mut tell = |state: &ProcessState, op: &Op<'_>, epoch: Epoch| match *op {
        Op::WriteValue { address, value, width, barrier: true, .. } => {
            if let Some(root) = state.memory.shared_root(address) {
                member.writes_value(root, address, (width, value), state.ordering.kept_start());
            }
        }
        _ => {
            if let Some(word) = AwaitedWord::of(op)
                && let Some(root) = state.memory.shared_root(word.address)
            {
                member.waits_for_value(root, word, epoch);
            }
        }
    };
    match *op {
        Op::WriteValue { .. } | Op::WaitValue { .. } => tell(state, op, epoch),
        Op::GraphLaunch { exec, .. } => {
            let Some(graph) = state.graphs.take(exec) else { return };
            let before = Epoch { time: epoch.time.saturating_sub(1), ..epoch };
            for node in graph.sequence().iter().filter_map(|&index| graph.node(index)) {
                if let Some(op) = node.op() {
                    tell(state, &op, before);
                }
            }
            state.graphs.put(exec, graph);
        }
        _ => {}
    }
}

/// The words of signal pads that a kernel has updated, with their memory. `None`: they are not
/// known.
fn placed(state: &ProcessState, words: &[u64]) -> Option<Vec<(AllocationId, u64)>> {
    let placed = words.iter().map(|address| Some((state.memory.shared_root(*address)?, *address)));
    placed.collect::<Option<Vec<_>>>().filter(|words| !words.is_empty())
}

fn tell_memory(member: &mut Member, state: &mut ProcessState, ptr: u64, key: &[u8]) {
    let Some((root, start, imported)) = state.memory.share(ptr) else { return };
    if !member.memory(root, ptr, key, imported) {
        return;
    }
    // Earlier accesses that may not have finished yet.
    let ordering = &state.ordering;
    let home = detect::memory::allocations::Home::Root(start);
    for access in state.memory.accesses(home).filter(|a| !ordering.host_saw(a.epoch)) {
        member.access(root, &access, None);
    }
}

/// Ends the process: passes on the descriptions of its call sites and of its shared memory.
pub(crate) fn leave(member: &mut Member, enqueued: &Communicators, state: &ProcessState, facts: &mut ProcessFacts) {
    let mut process =
        PeerProcess { name: facts.names.process.name(), pid: facts.names.process.pid, ..PeerProcess::default() };
    process.collectives = Collectives::of(enqueued, &mut facts.elaborator(state));
    if member.shares() {
        (process.python, process.torch) = (facts.names.python, facts.names.torch);
        let mut elaborator = facts.elaborator(state);
        let described =
            |a: Access| (a.clone(), elaborator.side(&a, 0), elaborator.doubt_of(DoubtSide::Access, &a, true));
        process.sites = member.sites().into_iter().map(described).collect();
        let shared = state.memory.ever_shared().filter_map(|id| state.memory.info(id));
        process.memory = shared.map(|info| (info.id, elaborator.memory(info))).collect();
    }
    member.end(process);
}
