//! Export: what a process reports to the other processes of its run (see [`crate::ipc`]).
//!
//! Owns the translation from ops of this process to messages. Runs only in processes that share
//! memory or events.

use trace::{Epoch, Op, SyncScope};

use super::elaborator;
use crate::Analysis;
use crate::ipc::{Member, PeerProcess};
use detect::memory::Access;
use report::model::Outcome;
use report::words::DoubtSide;

impl Analysis {
    /// Compares this process with the others of its run.
    pub fn join(&mut self, member: Member) {
        self.member = Some(member);
    }

    /// Every op of this process from before this time (nanoseconds of `CLOCK_MONOTONIC`) has been
    /// fed.
    pub fn reached(&self, ns: u64) {
        // Records that wait for a measured launch are still to come.
        if let Some(member) = self.member.as_ref().filter(|_| self.pending.is_empty()) {
            member.reached(ns);
        }
    }

    /// Reports an op that was just applied to the order and to memory.
    #[cold]
    pub(crate) fn export(&mut self, op: &Op<'_>, epoch: Epoch) {
        let Some(mut member) = self.member.take() else {
            if let Op::SharedMemory { .. } = op {
                let what = "what other processes do with shared memory (compared under one `streamsan run`, without --host-order threads)";
                *self.coverage.unobserved.entry(what.to_string()).or_default() += 1;
            }
            return;
        };
        self.tell_events(&mut member, op, epoch);
        if let Op::SharedMemory { ptr, key } = *op {
            self.tell_memory(&mut member, ptr, key);
        }
        if let Some(touched) = self.memory.take_shared() {
            let clock = self.ordering.kept_start();
            for (root, access) in touched.iter().filter(|_| !self.paused) {
                member.access(*root, access, Some(clock.clone()));
            }
        }
        for root in self.memory.take_shared_ends() {
            member.free(root);
        }
        // After its accesses, because records in a graph stand for its whole launch.
        let recorded = match *op {
            Op::GraphLaunch { .. } => member.events(),
            Op::EventRecord { event, .. } | Op::ContextRecord { event, .. } => vec![event],
            _ => Vec::new(),
        };
        for event in recorded {
            let (number, ordering) = (self.ordering.event_record(event), &self.ordering);
            member.recorded(event, number, || ordering.event_clock(event));
        }
        let ordering = &self.ordering;
        member.host(ordering.host_changes(), || ordering.known());
        self.member = Some(member);
    }

    fn tell_events(&mut self, member: &mut Member, op: &Op<'_>, epoch: Epoch) {
        match *op {
            Op::SharedEvent { event, key } => {
                member.event(event, key, self.ordering.event_record(event), self.ordering.event_clock(event));
            }
            Op::OthersRecord { event, .. } => member.recorded_by_others(event, self.ordering.event_record(event)),
            Op::StreamWait { event, .. } | Op::ContextWait { event, .. } => member.waits(event, epoch),
            Op::SyncBegin { sync, scope: SyncScope::Event, event, .. } => member.sync_begins(sync, event),
            Op::SyncEnd { sync } => member.sync_ends(sync),
            Op::EventReached { event, .. } => member.reached_event(event),
            Op::EventDestroy { event } => member.forget_event(event),
            Op::GraphLaunch { exec, .. } => {
                let Some(graph) = self.graphs.take(exec) else { return };
                // The rest of the graph comes after its waits, so they count from the op before the
                // launch.
                let before = Epoch { time: epoch.time.saturating_sub(1), ..epoch };
                for node in graph.sequence().iter().filter_map(|&index| graph.node(index)) {
                    if let Some(Op::StreamWait { event, .. }) = node.op() {
                        member.waits(event, before);
                    }
                }
                self.graphs.put(exec, graph);
            }
            _ => {}
        }
    }

    fn tell_memory(&mut self, member: &mut Member, ptr: u64, key: &[u8]) {
        let Some((root, start, imported)) = self.memory.share(ptr) else { return };
        if !member.memory(root, ptr, key, imported) {
            return;
        }
        // Earlier accesses that may not have finished yet.
        let ordering = &self.ordering;
        let home = detect::memory::allocations::Home::Root(start);
        for access in self.memory.accesses(home).filter(|a| !ordering.host_saw(a.epoch)) {
            member.access(root, &access, None);
        }
    }

    /// Ends the process: passes on the descriptions of its call sites and of its shared memory.
    pub(crate) fn leave(&mut self, outcome: &mut Outcome) {
        let Some(mut member) = self.member.take() else { return };
        outcome.member = Some(member.id());
        let mut process =
            PeerProcess { name: self.names.process.name(), pid: self.names.process.pid, ..PeerProcess::default() };
        if member.shares() {
            (process.python, process.torch) = (self.names.python, self.names.torch);
            let mut elaborator = elaborator!(self);
            let described =
                |a: Access| (a.clone(), elaborator.side(&a, 0), elaborator.doubt_of(DoubtSide::Access, &a, true));
            process.sites = member.sites().into_iter().map(described).collect();
            let shared = self.memory.ever_shared().filter_map(|id| self.memory.info(id));
            process.memory = shared.map(|info| (info.id, elaborator.memory(info))).collect();
        }
        member.end(process);
        self.member = Some(member);
    }
}
