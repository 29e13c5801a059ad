//! The hooks for a changed order: waits that the program did not make, applied before and after
//! its ops.
//!
//! Owns how a change acts on the order, and how a second analysis takes over what the first one
//! knows of the process. What is changed is [`crate::replan::waits`]. An added record or wait goes
//! to the order alone: it is no op of the program, so nothing else observes it.

use super::Analysis;
use crate::replan::waits::{KeptBlock, Recorded, Replan};
use crate::replan::written::WrittenWait;
use detect::findings::Findings;
use detect::launches::kernel_code::{CodeReader, KernelCode};
use detect::state::graphs::Graph;
use detect::state::op_site::{OpClass, OpSite};
use report::cause::Join;
use symbols::stacks::RawStacks;
use trace::{Epoch, EventId, EventMode, FreeKind, ImageId, MemoryKind, Op, Record, StreamId, SyncScope, ThreadId};

/// Reads nothing: the code was read in the first pass.
struct NoCode;

impl CodeReader for NoCode {
    fn read(&mut self, _: ImageId, _: &str, _: u32) -> Result<Box<dyn KernelCode>, String> {
        Err("the code was not read in the first pass".into())
    }
    fn image(&mut self, _: &Op<'_>) {}
}

impl Analysis {
    /// Changes the order from here on.
    pub(crate) fn replan(&mut self, plan: Replan) {
        self.replan = Some(Box::new(plan));
        self.direct = false;
    }

    /// Adds waits that the user wrote down. Before the first record.
    pub fn add_waits(&mut self, waits: &[WrittenWait]) {
        if !waits.is_empty() {
            self.replan(Replan::written(waits));
        }
    }

    /// The changes and what became of them.
    pub fn take_replan(&mut self) -> Option<Replan> {
        self.replan.take().map(|plan| *plan)
    }

    /// Whether the changes were too much work: then nothing more need be fed.
    pub fn has_given_up(&self) -> bool {
        self.replan.as_ref().is_some_and(|plan| plan.is_given_up())
    }

    /// An analysis of the same process under a changed order. It takes what definitions have
    /// given, and the kernels; [`Analysis::take_back`] returns them.
    pub fn twin(&mut self, plan: Replan) -> Self {
        let options =
            super::AnalysisOptions { hints: false, compare: false, settle: false, forbidden: None, ..self.options };
        let mut twin = Self::new(options, Box::new(RawStacks::default()), Box::new(NoCode));
        std::mem::swap(&mut twin.names, &mut self.names);
        std::mem::swap(&mut twin.code, &mut self.code);
        twin.code.forget_places();
        for (ordinal, arch) in twin.names.devices() {
            twin.ordering.define(&Op::Device { ordinal, arch, name: "".into() });
        }
        if let Some(lessons) = &self.learned {
            twin.learn(std::sync::Arc::clone(&lessons.known));
        }
        // Its stacks have no names.
        if let (Some(own), Some(its)) = (&self.assumed, &mut twin.assumed) {
            its.known.clone_from(&own.known);
        }
        twin.replan(plan);
        twin
    }

    /// Ends a twin. Returns its findings, and its changes.
    pub fn take_back(&mut self, mut twin: Self) -> (Findings, Replan) {
        twin.pending.end();
        twin.release();
        std::mem::swap(&mut twin.names, &mut self.names);
        std::mem::swap(&mut twin.code, &mut self.code);
        // What the twin repeated is no launch of the program.
        drop(self.code.counted());
        (std::mem::take(&mut twin.findings), twin.take_replan().unwrap_or_default())
    }

    /// Applies what is added before an op.
    #[cold]
    pub(super) fn before_replanned(&mut self, record: &Record<'_>) {
        let Some(mut plan) = self.replan.take() else { return };
        let (op, thread) = (&record.op, record.origin.thread);
        match *op {
            Op::Free { ptr, kind: FreeKind::Block, .. } => self.keep_alive(&mut plan, record, ptr),
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
                        true => drop(self.ordering.apply(&Op::EventReached { event, record: 1 }, thread)),
                        false => self.add_wait(stream, event, thread),
                    }
                }
            }
            _ => {}
        }
        if let Some((site, stream)) = OpSite::of(op, record.origin.stack) {
            self.meet(&mut plan, site);
            for index in plan.before.get(&site).cloned().unwrap_or_default() {
                match plan.waits[index].join {
                    Join::Event | Join::Existing if !stream.is_none() => {
                        self.wait_on_stream(&mut plan, index, stream, thread);
                    }
                    Join::Event | Join::Existing | Join::Host => self.wait_on_host(&mut plan, index, thread),
                    Join::KeepAlive | Join::Capture => {}
                }
            }
        }
        self.replan = Some(plan);
    }

    /// Applies what is added after an op, and takes notes of it.
    #[cold]
    pub(super) fn after_replanned(&mut self, record: &Record<'_>, epoch: Epoch) {
        let Some(mut plan) = self.replan.take() else { return };
        let at = OpSite::of(&record.op, record.origin.stack);
        if let Some(trial) = &mut plan.trial {
            trial.op(&record.op, at, epoch);
        }
        if let Some((site, stream)) = at.filter(|(_, stream)| !stream.is_none()) {
            let recorded = record.origin.epoch;
            if recorded.time > 0 {
                plan.note_time(stream, recorded.time, epoch.time);
            }
            for index in plan.after.get(&site).cloned().unwrap_or_default() {
                plan.added += 1;
                let blocked = self.ordering.is_blocked(stream);
                let new = match (plan.waits[index].join, record.op) {
                    (Join::Existing, Op::EventRecord { event, .. }) => Recorded { stream, event, epoch, blocked },
                    _ => {
                        let event = plan.event_of(index, stream);
                        let op = Op::EventRecord { event, stream, mode: EventMode::Plain };
                        Recorded { stream, event, epoch: self.ordering.apply(&op, record.origin.thread), blocked }
                    }
                };
                plan.note_record(index, new);
            }
        }
        self.replan = Some(plan);
    }

    /// A site has come up: waits that the user wrote down may name it.
    fn meet(&mut self, plan: &mut Replan, site: OpSite) {
        if !plan.written.is_empty() && plan.met.insert(site) {
            let kernel = self.names.kernel(site.kernel).map_or_else(String::new, |k| self.stacks.demangle(&k.name));
            plan.meet(site, &self.stacks.resolve(site.stack), &kernel);
        }
    }

    /// Adds the edges that waits between captured streams would make, once for what was captured
    /// once. A wait that the user wrote down is such a wait where both of its places are captured.
    #[cold]
    pub(super) fn replan_graph(&mut self, graph: &mut Graph) {
        if !graph.begin_replan() {
            return;
        }
        let Some(mut plan) = self.replan.take() else { return };
        let sites: Vec<OpSite> = graph.sites().into_iter().flatten().collect();
        sites.iter().for_each(|site| self.meet(&mut plan, *site));
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
        self.replan = Some(plan);
    }

    fn add_wait(&mut self, stream: StreamId, event: EventId, thread: ThreadId) {
        self.ordering.apply(&Op::StreamWait { stream, event, mode: EventMode::Plain }, thread);
    }

    /// The records that a wait may take. One that is behind a wait for a value which somebody has
    /// yet to write is left alone: whoever waited for it might be the one who writes.
    fn takes(&mut self, plan: &mut Replan, index: usize, stream: StreamId) -> Vec<Recorded> {
        // What the host has seen finish needs no wait.
        let ordering = &self.ordering;
        plan.recorded[index].retain(|r| r.stream == stream || !ordering.host_saw(r.epoch));
        let mut taken: Vec<Recorded> = plan.recorded[index].iter().filter(|r| r.stream != stream).copied().collect();
        let before = taken.len();
        taken.retain(|r| !(r.blocked && self.ordering.is_blocked(r.stream)));
        let applied = &mut plan.applied[index];
        applied.blocked += u64::from(taken.len() < before);
        applied.waits += u64::from(!taken.is_empty());
        applied.idle += u64::from(before == 0);
        plan.added += 1 + taken.len() as u64;
        taken
    }

    fn wait_on_stream(&mut self, plan: &mut Replan, index: usize, stream: StreamId, thread: ThreadId) {
        for recorded in self.takes(plan, index, stream) {
            self.add_wait(stream, recorded.event, thread);
        }
    }

    fn wait_on_host(&mut self, plan: &mut Replan, index: usize, thread: ThreadId) {
        for Recorded { stream, event, .. } in self.takes(plan, index, StreamId::NONE) {
            let (sync, context) = (plan.sync(), trace::ContextId::NONE);
            let begin = Op::SyncBegin { sync, scope: SyncScope::Event, stream, event, context };
            self.ordering.apply(&begin, thread);
            self.ordering.apply(&Op::SyncEnd { sync }, thread);
        }
    }

    /// A block is freed: the pool is told of the streams that use it. What it holds back is the
    /// block, so one event on each stream does for all waits of the place.
    fn keep_alive(&mut self, plan: &mut Replan, record: &Record<'_>, ptr: u64) {
        let site = OpSite { stack: record.origin.stack, kernel: trace::KernelId::NONE, class: OpClass::Free };
        let Some((info, _)) = self.memory.block(ptr) else { return };
        let mut users: Vec<StreamId> = Vec::new();
        for index in plan.before.get(&site).cloned().unwrap_or_default() {
            if plan.waits[index].join != Join::KeepAlive {
                continue;
            }
            plan.added += 1;
            let mut own: Vec<StreamId> = plan.recorded[index].iter().map(|r| r.stream).collect();
            own.retain(|stream| !self.ordering.is_blocked(*stream));
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
            let epoch = self.ordering.apply(&op, record.origin.thread);
            self.submissions.early_free.covered(record.origin.thread, epoch);
            plan.kept.push(KeptBlock { start: info.ptr, end: info.end(), event });
        }
    }
}
