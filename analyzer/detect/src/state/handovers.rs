//! Work that a thread of Python hands to one that runs no Python: PyTorch's engine of autograd runs
//! a backward pass on threads of its own, while the thread that called `backward` waits.
//!
//! Owns from which call such work came, by the order of submission: the last call of another
//! thread, if that has Python frames. Whether that call is a backward pass is for the reader of its
//! stack.

use rustc_hash::{FxHashMap, FxHashSet};
use trace::{Epoch, Op, Origin, StackId, ThreadId, TimelineId};

/// Maximum number of changes remembered. A loop that calls one line makes one.
const MOST: usize = 1 << 16;

/// The hand-overs of one process.
#[derive(Default)]
pub struct HandOvers {
    /// Stacks with Python frames.
    python: FxHashSet<StackId>,
    /// The thread and stack of the last call.
    last: (ThreadId, StackId),
    /// The call that handed work to the thread of the last call.
    from: Option<StackId>,
    /// The same for each thread.
    threads: FxHashMap<ThreadId, StackId>,
    /// What each thread was handed, by stream: from which time on by which call.
    handed: FxHashMap<(ThreadId, TimelineId), Vec<(u64, StackId)>>,
    changes: usize,
}

impl HandOvers {
    /// Takes the definition of a stack.
    pub fn define(&mut self, op: &Op<'_>) {
        if let Op::Stack { id, python, .. } = op
            && python.iter().next().is_some()
        {
            self.python.insert(*id);
        }
    }

    /// Observes an op that has been given its epoch.
    #[inline]
    pub fn observe(&mut self, origin: &Origin, epoch: Epoch) {
        if origin.thread != self.last.0 {
            self.change(origin);
        }
        self.last = (origin.thread, origin.stack);
        if let Some(from) = self.from {
            self.note(from, origin.thread, epoch);
        }
    }

    #[cold]
    fn change(&mut self, origin: &Origin) {
        let (thread, is_python) = (origin.thread, self.python.contains(&origin.stack));
        if !is_python && self.python.contains(&self.last.1) {
            self.threads.insert(thread, self.last.1);
        }
        self.from = self.threads.get(&thread).copied().filter(|_| !is_python);
    }

    fn note(&mut self, from: StackId, thread: ThreadId, epoch: Epoch) {
        let calls = self.handed.entry((thread, epoch.timeline)).or_default();
        if calls.last().is_none_or(|(_, last)| *last != from) && self.changes < MOST {
            self.changes += 1;
            calls.push((epoch.time, from));
        }
    }

    /// The call that handed the work of this epoch to this thread.
    pub fn started(&self, thread: ThreadId, epoch: Epoch) -> Option<StackId> {
        let calls = self.handed.get(&(thread, epoch.timeline))?;
        let at = calls.partition_point(|(time, _)| *time <= epoch.time);
        Some(calls.get(at.checked_sub(1)?)?.1)
    }
}

#[cfg(test)]
mod tests {
    use trace::{PyCodeId, PyFrame, codec::List};

    use super::*;

    const MAIN: u32 = 1;
    const ENGINE: u32 = 2;

    fn epoch(timeline: u32, time: u64) -> Epoch {
        Epoch { timeline: TimelineId(timeline), time }
    }

    fn submit(all: &mut HandOvers, thread: u32, stack: u32, at: Epoch) {
        all.observe(&Origin { thread: ThreadId(thread), stack: StackId(stack), ..Origin::default() }, at);
    }

    /// Stacks from 100 on have Python frames.
    fn process() -> HandOvers {
        let mut all = HandOvers::default();
        let frames = [PyFrame { code: PyCodeId(1), offset: 0 }];
        for id in [100, 101, 102] {
            all.define(&Op::Stack { id: StackId(id), native: List::new(&[]), python: List::new(&frames) });
        }
        all.define(&Op::Stack { id: StackId(7), native: List::new(&[]), python: List::new(&[]) });
        all
    }

    #[test]
    fn each_backward_pass_is_that_of_the_call_before_it() {
        let mut all = process();
        for (round, call) in [(0, 100), (1, 101), (2, 100)] {
            submit(&mut all, MAIN, call, epoch(1, 10 * round + 1));
            submit(&mut all, ENGINE, 7, epoch(1, 10 * round + 2));
            submit(&mut all, ENGINE, 8, epoch(2, 10 * round + 3));
        }
        let started = |timeline, time| all.started(ThreadId(ENGINE), epoch(timeline, time)).map(|stack| stack.0);
        for timeline in [1, 2] {
            assert_eq!(started(timeline, 3), Some(100));
            assert_eq!(started(timeline, 14), Some(101));
            assert_eq!(started(timeline, 29), Some(100));
        }
        assert_eq!((started(1, 1), started(3, 5)), (None, None));
        assert_eq!(all.started(ThreadId(MAIN), epoch(1, 5)), None);
    }

    #[test]
    fn threads_that_take_turns_keep_what_started_them() {
        let mut all = process();
        submit(&mut all, MAIN, 102, epoch(1, 1));
        for time in 2..6 {
            submit(&mut all, ENGINE, 7, epoch(1, time));
            submit(&mut all, ENGINE + 1, 7, epoch(4, time));
        }
        assert_eq!(all.started(ThreadId(ENGINE), epoch(1, 5)), Some(StackId(102)));
        // The second was started by a thread without Python, as far as the order says.
        assert_eq!(all.started(ThreadId(ENGINE + 1), epoch(4, 5)), None);
    }

    #[test]
    fn what_python_calls_itself_was_handed_by_nobody_and_memory_is_bounded() {
        let mut all = process();
        for time in 0..100 {
            submit(&mut all, MAIN, 100, epoch(1, 2 * time));
            submit(&mut all, ENGINE, if time % 2 == 0 { 101 } else { 102 }, epoch(1, 2 * time + 1));
        }
        assert_eq!(all.started(ThreadId(ENGINE), epoch(1, 150)), None);
        let mut all = process();
        for time in 0..1000 {
            submit(&mut all, MAIN, 100, epoch(1, 2 * time));
            submit(&mut all, ENGINE, 7, epoch(1, 2 * time + 1));
        }
        assert_eq!(all.changes, 1);
    }
}
