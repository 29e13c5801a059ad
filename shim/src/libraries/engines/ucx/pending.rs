//! What is under way in UCX, and what a completion ends.
//!
//! Owns the table of operations, by a key of our own: the pointer by which the program knows an
//! operation exists only when the call returns, and a callback may come before that. Does not log.
//!
//! A flush ends the one-sided operations (put, get, atomic) that were issued before it on its
//! endpoint or worker (`ucp_ep_flush_nbx`); closing an endpoint or destroying a worker ends all.

use std::collections::HashMap;
#[cfg(not(test))]
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// An operation.
#[derive(Clone, Copy, Default)]
pub(super) struct Operation {
    /// Its request; 0: it accesses nothing that is known.
    pub request: u32,
    /// The endpoint; 0: a receive of any.
    pub endpoint: usize,
    /// The worker; 0: not known.
    pub worker: usize,
    /// A put, a get or an atomic operation.
    pub is_one_sided: bool,
}

/// Which operations a flush or an end covers.
#[derive(Clone, Copy)]
pub(super) enum Scope {
    /// One-sided ones of an endpoint.
    Endpoint(usize),
    /// One-sided ones of a worker.
    Worker(usize),
    /// All of an endpoint.
    Closed(usize),
    /// All of a worker.
    Destroyed(usize),
    /// All.
    All,
}

struct Entry {
    operation: Operation,
    /// The program's pointer; 0: not known, or given back.
    pointer: usize,
    /// What it ends besides itself.
    covers: Vec<u64>,
}

/// The table.
#[derive(Default)]
pub(super) struct Pending {
    entries: HashMap<u64, Entry>,
    by_pointer: HashMap<usize, u64>,
    workers: HashMap<usize, usize>,
    last: u64,
}

/// The table, locked.
#[cfg(not(test))]
pub(super) fn lock() -> MutexGuard<'static, Pending> {
    static PENDING: LazyLock<Mutex<Pending>> = LazyLock::new(Mutex::default);
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pending {
    /// An endpoint belongs to this worker.
    pub(super) fn made_endpoint(&mut self, endpoint: usize, worker: usize) {
        self.workers.insert(endpoint, worker);
    }

    /// An operation begins.
    pub(super) fn begin(&mut self, operation: Operation) -> u64 {
        let known = self.workers.get(&operation.endpoint).copied().unwrap_or(0);
        let worker = if operation.worker == 0 { known } else { operation.worker };
        self.insert(Operation { worker, ..operation }, Vec::new())
    }

    /// A flush or the close of an endpoint begins.
    pub(super) fn begin_end(&mut self, scope: Scope) -> u64 {
        let covers = self.covered(scope);
        self.insert(Operation::default(), covers)
    }

    fn insert(&mut self, operation: Operation, covers: Vec<u64>) -> u64 {
        self.last += 1;
        self.entries.insert(self.last, Entry { operation, pointer: 0, covers });
        self.last
    }

    fn covered(&self, scope: Scope) -> Vec<u64> {
        let is_covered = |operation: &Operation| match scope {
            Scope::Endpoint(endpoint) => operation.is_one_sided && operation.endpoint == endpoint,
            // An endpoint that no worker is known of might be of this one.
            Scope::Worker(worker) => operation.is_one_sided && [0, worker].contains(&operation.worker),
            Scope::Closed(endpoint) => operation.endpoint == endpoint,
            Scope::Destroyed(worker) => [0, worker].contains(&operation.worker),
            Scope::All => true,
        };
        let covered = self.entries.iter().filter(|(_, entry)| is_covered(&entry.operation));
        covered.map(|(key, _)| *key).collect()
    }

    /// The program knows an operation by this pointer from here on, unless it is over already.
    pub(super) fn known_as(&mut self, key: u64, pointer: usize) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.pointer = pointer;
            self.by_pointer.insert(pointer, key);
        }
    }

    /// An operation is over: the requests that have ended.
    pub(super) fn end(&mut self, key: u64) -> Vec<u32> {
        let mut ended = Vec::new();
        let mut left = vec![key];
        while let Some(key) = left.pop() {
            let Some(entry) = self.entries.remove(&key) else { continue };
            if self.by_pointer.get(&entry.pointer) == Some(&key) {
                self.by_pointer.remove(&entry.pointer);
            }
            ended.extend(Some(entry.operation.request).filter(|request| *request != 0));
            left.extend(entry.covers);
        }
        ended
    }

    /// The operation that the program knows by this pointer is over.
    pub(super) fn end_known(&mut self, pointer: usize) -> Vec<u32> {
        self.by_pointer.get(&pointer).copied().map_or_else(Vec::new, |key| self.end(key))
    }

    /// All that a scope covers is over.
    pub(super) fn end_all(&mut self, scope: Scope) -> Vec<u32> {
        self.covered(scope).into_iter().flat_map(|key| self.end(key)).collect()
    }

    /// The program gives the pointer back before the operation is over. A flush can still end a
    /// one-sided one; of another one nothing will be heard, and it counts as over.
    pub(super) fn give_back(&mut self, pointer: usize) -> Vec<u32> {
        let Some(key) = self.by_pointer.remove(&pointer) else { return Vec::new() };
        match self.entries.get_mut(&key) {
            Some(entry) if entry.operation.is_one_sided => {
                entry.pointer = 0;
                Vec::new()
            }
            _ => self.end(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(request: u32, endpoint: usize, is_one_sided: bool) -> Operation {
        Operation { request, endpoint, worker: 0, is_one_sided }
    }

    fn sorted(mut ended: Vec<u32>) -> Vec<u32> {
        ended.sort_unstable();
        ended
    }

    #[test]
    fn a_flush_ends_earlier_one_sided_work_of_its_endpoint() {
        let mut pending = Pending::default();
        pending.begin(operation(1, 10, true));
        pending.begin(operation(2, 10, false));
        pending.begin(operation(3, 20, true));
        let flush = pending.begin_end(Scope::Endpoint(10));
        pending.begin(operation(4, 10, true));
        assert_eq!(pending.end(flush), [1]);
        assert_eq!(sorted(pending.end_all(Scope::Closed(10))), [2, 4]);
        assert_eq!(pending.end_all(Scope::All), [3]);
    }

    #[test]
    fn a_flush_of_a_worker_leaves_other_workers_alone() {
        let mut pending = Pending::default();
        pending.made_endpoint(10, 1);
        pending.made_endpoint(20, 2);
        pending.begin(operation(1, 10, true));
        pending.begin(operation(2, 20, true));
        // Of an endpoint that was never seen to be made.
        pending.begin(operation(3, 30, true));
        assert_eq!(sorted(pending.end_all(Scope::Worker(1))), [1, 3]);
        assert_eq!(pending.end_all(Scope::Destroyed(2)), [2]);
    }

    #[test]
    fn an_operation_ends_by_its_pointer_or_its_callback() {
        let mut pending = Pending::default();
        let first = pending.begin(operation(1, 10, false));
        pending.known_as(first, 0x100);
        assert_eq!(pending.end_known(0x100), [1]);
        assert!(pending.end_known(0x100).is_empty());
        // The callback comes before the call has returned; the pointer may be another's by then.
        let second = pending.begin(operation(2, 10, false));
        assert_eq!(pending.end(second), [2]);
        pending.known_as(second, 0x100);
        assert!(pending.end_known(0x100).is_empty());
    }

    #[test]
    fn a_pointer_that_is_given_back_and_used_again_is_the_later_operation() {
        let mut pending = Pending::default();
        let put = pending.begin(operation(1, 10, true));
        pending.known_as(put, 0x100);
        assert!(pending.give_back(0x100).is_empty(), "a flush can end it");
        let send = pending.begin(operation(2, 10, false));
        pending.known_as(send, 0x100);
        assert_eq!(pending.end_all(Scope::Endpoint(10)), [1]);
        assert_eq!(pending.give_back(0x100), [2]);
    }
}
