//! What other threads find out about launches before their turn.
//!
//! Owns what they hand over, and its bound. They follow the launches of a kernel as the analysis
//! will, with kept results of their own ([`Ahead::own`]): so they evaluate what it will ask for,
//! and nothing that it will find kept. They guess its questions, not its answers: what is handed
//! over is a function of the kernel and one launch only, and a question that was not foreseen is
//! answered when it is asked. So no result depends on who was faster.

use super::evaluation_cache::{EvaluationCache, LaunchShape, Refined, shape};
use super::kept_locks::KeptLocks;
use super::replay::{self, RecordedEvaluation, Way};
use crate::Extent;
use crate::effects::LaunchArgs;
use crate::promised::Promised;
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::extent::reached::EvaluatedAccesses;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Launches of a kernel about which something is handed over. The first go when there are more:
/// their turn was over, or never came.
const MOST: usize = 1024;

/// What is found about one launch.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The evaluation, and which way: what it rests on differs.
    evaluated: Promised<(Way, RecordedEvaluation)>,
    /// What following the threads says more, and about which result.
    refined: Promised<(Arc<EvaluatedAccesses<Extent>>, Option<Refined>)>,
    /// Its locks, and those that it holds if it executes its fences.
    locks: OnceLock<[Option<KeptLocks>; 2]>,
    asked: AtomicBool,
}

impl Found {
    /// An evaluation, from another thread if it did the same.
    pub(crate) fn evaluated(&self, way: Way, evaluate: impl Fn() -> EvaluatedAccesses<ByteSet>) -> RecordedEvaluation {
        self.asked.store(true, Ordering::Relaxed);
        let (how, evaluated) = self.evaluated.get_or_make(|| (way, replay::record(way, &evaluate)));
        if how == way { evaluated } else { replay::record(way, evaluate) }
    }

    /// What `refine` says of a result, from another thread if it asked about the same.
    pub(crate) fn refined(
        &self,
        result: &EvaluatedAccesses<Extent>,
        refine: impl Fn(&EvaluatedAccesses<Extent>) -> Option<Refined>,
    ) -> Option<Refined> {
        self.asked.store(true, Ordering::Relaxed);
        let (of, refined) = self.refined.get_or_make(|| (Arc::new(result.clone()), refine(result)));
        if *of == *result { refined } else { refine(result) }
    }

    /// Hands the locks of the launch over.
    pub(crate) fn hand_over_locks(&self, locks: [Option<KeptLocks>; 2]) {
        let _ = self.locks.set(locks);
    }

    /// Puts what was handed over where nothing was looked for yet.
    pub(crate) fn take_locks(&self, into: [&OnceLock<KeptLocks>; 2]) {
        for (into, locks) in into.into_iter().zip(self.locks.get().into_iter().flatten()) {
            if let Some(locks) = locks.as_ref().filter(|_| into.get().is_none()) {
                let _ = into.set(locks.clone());
            }
        }
    }
}

type Key = (LaunchShape, Box<[u8]>);

#[derive(Debug, Default)]
struct HandedOver {
    by_launch: FxHashMap<Key, Arc<Found>>,
    /// The latest last. Some were taken.
    in_order: VecDeque<Key>,
}

/// What is found ahead about the launches of one kernel.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    handed_over: Mutex<HandedOver>,
    /// Whether anything ever was.
    is_used: AtomicBool,
    own: EvaluationCache,
}

fn key(launch: &LaunchArgs<'_>) -> Key {
    (shape(launch), launch.params.into())
}

impl Ahead {
    /// The kept results of those that work ahead.
    pub(crate) fn own(&self) -> &EvaluationCache {
        &self.own
    }

    /// What is found about a launch goes here. `None`: somebody does that already.
    pub(crate) fn open(&self, launch: &LaunchArgs<'_>) -> Option<Arc<Found>> {
        self.is_used.store(true, Ordering::Release);
        let (key, mut all) = (key(launch), self.lock());
        if all.by_launch.contains_key(&key) {
            return None;
        }
        if all.in_order.len() >= MOST
            && let Some(first) = all.in_order.pop_front()
        {
            all.by_launch.remove(&first);
        }
        let found = Arc::new(Found::default());
        all.in_order.push_back(key.clone());
        all.by_launch.insert(key, Arc::clone(&found));
        Some(found)
    }

    /// Whether nothing had to be found out about a launch. Then nothing is handed over.
    pub(crate) fn is_closed(&self, launch: &LaunchArgs<'_>, found: &Found) -> bool {
        let is_closed = !found.asked.load(Ordering::Relaxed);
        if is_closed {
            self.lock().by_launch.remove(&key(launch));
        }
        is_closed
    }

    /// What was found about a launch whose turn has come.
    pub(crate) fn take(&self, launch: &LaunchArgs<'_>) -> Option<Arc<Found>> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        self.lock().by_launch.remove(&key(launch))
    }

    fn lock(&self) -> MutexGuard<'_, HandedOver> {
        self.handed_over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::AccessKind;
    use crate::ranges::extent::reached::{ReachedBytes, SymbolicBase};
    use crate::{Extent, Reason};
    use std::cell::Cell;

    fn result(at: u32) -> EvaluatedAccesses<Extent> {
        let unknown = Extent::Unknown { reason: Reason::Loaded };
        vec![(AccessKind::Read, ReachedBytes::new(SymbolicBase::Unknown, false, unknown), at)]
    }

    fn launch(params: &[u8]) -> LaunchArgs<'_> {
        LaunchArgs::new([1; 3], [32, 1, 1], params)
    }

    #[test]
    fn an_equal_question_is_answered_once_and_another_one_when_it_is_asked() {
        let (found, evaluated, refined) = (Found::default(), Cell::new(0), Cell::new(0));
        let evaluate = || {
            evaluated.set(evaluated.get() + 1);
            Vec::new()
        };
        let refine = |of: &EvaluatedAccesses<Extent>| {
            refined.set(refined.get() + 1);
            Some((of.clone(), Vec::new()))
        };
        let ways = [(Way::Plain, 1), (Way::Plain, 1), (Way::Recorded, 2), (Way::Plain, 2), (Way::Brief, 3)];
        for (way, times) in ways {
            assert_eq!(found.evaluated(way, evaluate).program.is_some(), way == Way::Recorded);
            assert_eq!(evaluated.get(), times);
        }
        for (at, times) in [(1, 1), (1, 1), (2, 2), (1, 2)] {
            assert_eq!(found.refined(&result(at), refine).map(|refined| refined.0), Some(result(at)));
            assert_eq!(refined.get(), times);
        }
    }

    #[test]
    fn what_was_found_is_taken_once_by_the_launch_of_its_turn() {
        let ahead = Ahead::default();
        assert!(ahead.take(&launch(&[1])).is_none());
        let found = ahead.open(&launch(&[1])).expect("nobody was there");
        assert!(ahead.open(&launch(&[1])).is_none() && ahead.take(&launch(&[2])).is_none());
        assert!(ahead.take(&LaunchArgs::new([2, 1, 1], [32, 1, 1], &[1])).is_none(), "another shape");
        let taken = ahead.take(&launch(&[1])).expect("it was found");
        assert!(Arc::ptr_eq(&found, &taken) && ahead.take(&launch(&[1])).is_none());
    }

    #[test]
    fn what_was_not_asked_is_not_handed_over_and_the_first_go_where_there_are_many() {
        let ahead = Ahead::default();
        let found = ahead.open(&launch(&[1])).expect("nobody was there");
        assert!(ahead.is_closed(&launch(&[1]), &found) && ahead.take(&launch(&[1])).is_none());
        let number = |n: usize| n.to_le_bytes();
        for n in 0..2 * MOST {
            let found = ahead.open(&launch(&number(n))).expect("nobody was there");
            found.evaluated(Way::Plain, Vec::new);
            assert!(!ahead.is_closed(&launch(&number(n)), &found));
        }
        assert_eq!(ahead.lock().by_launch.len(), MOST);
        assert_eq!(ahead.lock().in_order.len(), MOST);
        assert!(ahead.take(&launch(&number(MOST - 1))).is_none());
        assert!(ahead.take(&launch(&number(MOST))).is_some());
    }

    #[test]
    fn locks_go_where_none_were_looked_for() {
        let locks = |asked| KeptLocks { words: FxHashMap::default(), asked, made: Vec::new(), equal: Vec::new() };
        let (found, own, fenced) = (Found::default(), OnceLock::from(locks(false)), OnceLock::new());
        found.take_locks([&own, &fenced]);
        assert_eq!(fenced.get(), None);
        found.hand_over_locks([Some(locks(true)), Some(locks(true))]);
        found.take_locks([&own, &fenced]);
        assert_eq!((own.get(), fenced.get()), (Some(&locks(false)), Some(&locks(true))));
    }
}
