//! Queues of work that is under way, and which of it a completion ends.
//!
//! Owns the rules of ibverbs' queues. Does not know what work accesses, nor how it is logged: an
//! entry holds the number of its request.
//!
//! Work of a send queue completes in the order in which it was posted, and only signalled work says
//! so: a completion stands for all earlier entries too (`ibv_post_send(3)`, `IBV_SEND_SIGNALED`;
//! InfiniBand Architecture Specification, "Unsignaled Completions"). Where it is not certain which
//! entry is meant (equal numbers, a queue that signals everything), an entry ends rather too early
//! than too late: what is over must not look as if it were under way.

use std::collections::VecDeque;

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The program's number (`wr_id`).
    pub number: u64,
    /// Whether its completion is asked for.
    pub is_signalled: bool,
    /// Its request; 0: it accesses nothing that is known.
    pub request: u32,
}

/// A queue of one direction.
#[derive(Default)]
pub struct WorkQueue {
    entries: VecDeque<Posted>,
}

impl WorkQueue {
    /// Work is posted.
    pub fn post(&mut self, posted: Posted) {
        self.entries.push_back(posted);
    }

    /// The last `count` entries of those with these requests were refused: they were never posted.
    pub fn take_back(&mut self, refused: &[Posted]) {
        for one in refused {
            if let Some(at) = self.entries.iter().rposition(|entry| entry == one) {
                self.entries.remove(at);
            }
        }
    }

    /// A completion of sent work with this number: which entries are over.
    pub fn sent(&mut self, number: u64) -> Vec<Posted> {
        let alike = |entry: &Posted| entry.number == number;
        let signalled = self.entries.iter().position(|entry| alike(entry) && entry.is_signalled);
        let last = signalled.or_else(|| self.entries.iter().position(alike));
        last.map_or_else(Vec::new, |last| self.entries.drain(..=last).collect())
    }

    /// A completion of received work with this number: the entry that is over.
    pub fn received(&mut self, number: u64) -> Option<Posted> {
        let at = self.entries.iter().position(|entry| entry.number == number)?;
        self.entries.remove(at)
    }

    /// Everything is over: the queue is destroyed or reset.
    pub fn all(&mut self) -> Vec<Posted> {
        self.entries.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(entries: &[(u64, bool)]) -> WorkQueue {
        let mut queue = WorkQueue::default();
        for (at, (number, is_signalled)) in entries.iter().enumerate() {
            queue.post(Posted { number: *number, is_signalled: *is_signalled, request: at as u32 + 1 });
        }
        queue
    }

    fn requests(ended: Vec<Posted>) -> Vec<u32> {
        ended.into_iter().map(|posted| posted.request).collect()
    }

    #[test]
    fn a_completion_ends_all_earlier_work_and_none_that_is_later() {
        let mut queue = queue(&[(1, false), (2, false), (3, true), (4, false), (5, true)]);
        assert_eq!(requests(queue.sent(3)), [1, 2, 3]);
        assert_eq!(requests(queue.sent(5)), [4, 5]);
        assert!(queue.sent(5).is_empty(), "nothing is left");
    }

    #[test]
    fn of_equal_numbers_the_signalled_one_is_meant() {
        let mut queue = queue(&[(0, false), (0, false), (0, true), (0, false)]);
        assert_eq!(requests(queue.sent(0)), [1, 2, 3]);
        // A completion with an error comes without being asked for.
        assert_eq!(requests(queue.sent(0)), [4]);
    }

    #[test]
    fn an_unknown_number_ends_nothing() {
        let mut queue = queue(&[(1, true)]);
        assert!(queue.sent(2).is_empty() && queue.received(2).is_none());
        assert_eq!(requests(queue.all()), [1]);
    }

    #[test]
    fn received_work_ends_alone() {
        let mut queue = queue(&[(1, true), (2, true), (1, true)]);
        assert_eq!(queue.received(2).map(|posted| posted.request), Some(2));
        assert_eq!(queue.received(1).map(|posted| posted.request), Some(1));
        assert_eq!(requests(queue.all()), [3]);
    }

    #[test]
    fn refused_work_was_never_posted() {
        let mut queue = queue(&[(1, true), (2, true), (2, true)]);
        queue.take_back(&[
            Posted { number: 2, is_signalled: true, request: 2 },
            Posted { number: 2, is_signalled: true, request: 3 },
        ]);
        assert_eq!(requests(queue.all()), [1]);
    }
}
