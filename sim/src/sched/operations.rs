//! The operations of the scheduler's core: what each comes after, when it starts, and what its end
//! lets go on.
//!
//! Owns the table's changes, under the lock that the caller holds. It runs nothing: `worker` does.

use std::sync::atomic::Ordering;

use super::{Core, Op, OpId, StreamId, StreamKind, StreamState, Work, now, policy};

impl Core {
    /// What the next operation of a stream comes after, by stream order and by the legacy stream's
    /// rule.
    pub(super) fn stream_deps(&self, stream: StreamId) -> Vec<OpId> {
        let Some(state) = self.streams.get(&stream) else { return Vec::new() };
        let mut deps = vec![state.tail];
        match state.kind {
            StreamKind::NonBlocking => {}
            StreamKind::Blocking => {
                if let Some(legacy) = self.legacy.get(&state.ctx).and_then(|id| self.streams.get(id)) {
                    deps.push(legacy.tail);
                }
            }
            StreamKind::Legacy => {
                let blocking = |s: &&StreamState| s.ctx == state.ctx && s.kind == StreamKind::Blocking;
                deps.extend(self.streams.values().filter(blocking).map(|s| s.tail));
            }
        }
        deps.retain(|dep| self.ops.contains_key(dep));
        deps
    }

    pub(super) fn insert(&mut self, work: Work, lane: u64, mut deps: Vec<OpId>) -> OpId {
        let id = OpId(self.next);
        self.next += 1;
        deps.sort_unstable();
        deps.dedup();
        deps.retain(|dep| self.ops.contains_key(dep));
        for dep in &deps {
            if let Some(op) = self.ops.get_mut(dep) {
                op.next.push(id);
            }
        }
        let stamp = if let Work::Point(stamp) = &work { stamp.clone() } else { None };
        let missing = deps.len();
        self.ops.insert(id, Op { work: Some(work), lane, deps, missing, next: Vec::new(), waits: Vec::new(), stamp });
        if missing == 0 {
            self.start(id);
        }
        id
    }

    /// A node of a graph may run on any stream of the device: it is a lane of its own.
    pub(super) fn insert_part(&mut self, work: Work, deps: Vec<OpId>) -> OpId {
        let lane = self.next;
        self.insert(work, lane, deps)
    }

    /// Puts what an operation decides on in front of its end; ends it when it wants nothing more.
    pub(super) fn expand(&mut self, id: OpId) {
        loop {
            let Some(Some(Work::Expand(mut next))) = self.ops.get_mut(&id).map(|op| op.work.take()) else { return };
            let Some(parts) = next() else { return self.finish(id) };
            let mut ids: Vec<OpId> = Vec::with_capacity(parts.len());
            for (work, parents, outside) in parts {
                let mut deps: Vec<OpId> = parents.iter().map(|&p| ids[p]).collect();
                deps.extend(outside);
                ids.push(self.insert_part(work, deps));
            }
            ids.retain(|part| self.ops.contains_key(part));
            for part in &ids {
                if let Some(op) = self.ops.get_mut(part) {
                    op.next.push(id);
                }
            }
            let Some(op) = self.ops.get_mut(&id) else { return };
            op.work = Some(Work::Expand(next));
            op.missing = ids.len();
            op.deps = ids;
            if op.missing > 0 {
                return;
            }
        }
    }

    /// The operation's turn has come: finish it here if it is a point, queue it otherwise.
    pub(super) fn start(&mut self, id: OpId) {
        let Some(op) = self.ops.get_mut(&id) else { return };
        op.deps.clear();
        let lane = op.lane;
        match &op.work {
            Some(Work::Host(_)) => {
                if !self.hold_host_code(id) {
                    self.ready.insert((policy::key(&self.config, id, lane), id));
                }
            }
            Some(Work::Point(_)) => self.finish(id),
            Some(Work::Until(_)) => self.parked.push(id),
            Some(Work::Expand(_)) => self.expand(id),
            _ => {
                self.ready.insert((policy::key(&self.config, id, lane), id));
            }
        }
    }

    /// The operation is done: forget it, wake who waits, start what it held up.
    pub(super) fn finish(&mut self, id: OpId) {
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            let Some(op) = self.ops.remove(&id) else { continue };
            self.finished += 1;
            if let Some(stamp) = op.stamp {
                stamp.store(now(), Ordering::Release);
            }
            for wait in op.waits {
                if wait.left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    // Taken back here and not by the waiting thread: a held schedule must stop at
                    // exactly this point.
                    self.waits -= 1;
                    wait.cv.notify_all();
                }
            }
            for next in op.next {
                let Some(op) = self.ops.get_mut(&next) else { continue };
                op.missing -= 1;
                if op.missing > 0 {
                    continue;
                }
                if matches!(op.work, Some(Work::Point(_))) {
                    op.deps.clear();
                    todo.push(next);
                } else {
                    self.start(next);
                }
            }
        }
        if self.ops.is_empty() {
            self.bury();
        }
    }

    /// Asks every parked condition once.
    pub(super) fn poll_parked(&mut self) {
        let mut at = 0;
        while at < self.parked.len() {
            let id = self.parked[at];
            let holds = match self.ops.get_mut(&id).map(|op| &mut op.work) {
                Some(Some(Work::Until(condition))) => condition(),
                _ => true,
            };
            if holds {
                self.parked.swap_remove(at);
                self.finish(id);
                at = 0;
            } else {
                at += 1;
            }
        }
    }

    pub(super) fn bury(&mut self) {
        let ops = &self.ops;
        self.streams.retain(|_, stream| !stream.dead || ops.contains_key(&stream.tail));
    }
}
