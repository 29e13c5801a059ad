//! What other threads find out about launches before their turn.
//!
//! Owns what they hand over, and its bound. They follow the launches of a kernel as the analysis
//! will, with kept results of their own ([`Ahead::own`]): so they evaluate what it will ask for, and
//! nothing that it will find kept. They guess its questions, not its answers: what is handed over
//! is a function of the kernel and one launch only, and a question that was not foreseen is
//! answered when it is asked. So no result depends on who was faster.

use super::evaluation_cache::{EvaluationCache, LaunchShape, Refined, shape};
use super::kept_locks::KeptLocks;
use super::replay::{self, RecordedEvaluation};
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
    /// The evaluation, and whether it was recorded: what it rests on differs.
    evaluated: Promised<(bool, RecordedEvaluation)>,
    /// What following the threads says more, and about which result.
    refined: Promised<(Arc<EvaluatedAccesses<Extent>>, Option<Refined>)>,
    /// Its locks, and those that it holds if it executes its fences.
    locks: OnceLock<[Option<KeptLocks>; 2]>,
    asked: AtomicBool,
}

impl Found {
    /// An evaluation, from another thread if it did the same.
    pub(crate) fn evaluated(
        &self,
        record: bool,
        evaluate: impl Fn() -> EvaluatedAccesses<ByteSet>,
    ) -> RecordedEvaluation {
        self.asked.store(true, Ordering::Relaxed);
        let (how, evaluated) = self.evaluated.get_or_make(|| (record, replay::record(record, &evaluate)));
        if how == record { evaluated } else { replay::record(record, evaluate) }
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

    /// Nothing had to be found out about a launch.
    pub(crate) fn close(&self, launch: &LaunchArgs<'_>, found: &Found) {
        if !found.asked.load(Ordering::Relaxed) {
            self.lock().by_launch.remove(&key(launch));
        }
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
