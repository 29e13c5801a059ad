//! The locks of a launch: which of them are held during its accesses, and where their words lie.
//!
//! Owns the step from the critical sections of a kernel ([`crate::ranges::locks`]) to one launch of
//! it, and the same step for claims and handovers ([`crate::ranges::claims`],
//! [`crate::ranges::handovers`]). Only the accesses that the launch can make count: a look without
//! the lock, for which a parameter asks that is not set, takes no lock away from the others. A lock
//! for which a parameter asks is held where it is set, and a launch that makes none of the updates
//! of a lock holds it nowhere.
//!
//! # Bytes by lock
//!
//! A lock that is one of an array (a stripe for each bucket, say) protects some of the bytes only,
//! and which ones differs from thread to thread. Blocks of threads are looked at one by one, as in
//! [`crate::ranges::per_block`], and the bytes of a launch are told apart by the words of the lock
//! that is held, as long as exactly these bytes are touched. So two kernels that find the lock of
//! one element differently are seen to hold two locks.

use crate::effects::{Base, Extent, KernelAccess, LaunchArgs, Lock, LockRole};
use crate::ir::{AccessKind, Reason};
use crate::ranges::analysis::Analysis;
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::domain::condition::Cond;
use crate::ranges::domain::int::Int;
use crate::ranges::domain::tape::LaunchInput;
use crate::ranges::eval::Eval;
use crate::ranges::extent::coalesce::coalesce;
use crate::ranges::extent::reached::{ReachedBytes, SymbolicBase};
use crate::ranges::locks::Held;
use crate::ranges::memo::kept_locks::{KeptLocks, SymbolicWords};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::OnceLock;

/// A word of a lock that may lie anywhere.
const UNKNOWN_WORD: (Base, Extent) = (Base::Unknown, Extent::Unknown { reason: Reason::Loaded });

/// Blocks of threads that are looked at one by one.
const MAX_BLOCKS: u64 = 256;
/// Bounds computed for all of them together.
const MAX_TOTAL: u32 = 100_000;
/// Maximum number of locks by which the bytes behind one base are told apart.
const MAX_PARTS: usize = 64;

/// Where the words of locks lie, by the numbers of the accesses that go through them. Accesses that
/// the launch does not make are not in it.
type Words = FxHashMap<u32, SmallVec<[(Base, Extent); 1]>>;

/// The byte sets of each lock, and of none.
type SetsByLock = Vec<(Option<Lock>, Vec<ByteSet>)>;

/// Which of the words that addresses derive from are equal in a launch.
fn equal_words(analysis: &Analysis, launch: &LaunchArgs<'_>) -> Vec<bool> {
    let values: Vec<u64> =
        analysis.address_words().iter().map(|word| LaunchInput::Bytes(*word, 8).read(launch)).collect();
    (1..values.len()).flat_map(|k| values[..k].iter().map(|other| *other == values[k]).collect::<Vec<_>>()).collect()
}

/// Bytes that are accessed under one lock, or under none.
pub(super) type Part = (ReachedBytes<Extent>, Option<Lock>);

/// The locks of a launch.
pub(super) struct HeldLocks<'a> {
    analysis: &'a Analysis,
    /// What orders each access: the analysis has this twice.
    all: &'a [Held],
    words: Words,
    /// Whether it takes the locks that launches are asked for.
    asked: bool,
    /// Which accesses the launch can make.
    made: Vec<bool>,
    /// The bytes of a direction behind a base, where several locks share them.
    parts: FxHashMap<(AccessKind, SymbolicBase), Vec<Part>>,
}

impl<'a> HeldLocks<'a> {
    /// `None`: the kernel takes no lock. All accesses were evaluated with the launch, so the locks
    /// rest on no more of its parameters. `kept`: those of its evaluation, once they were found.
    pub(super) fn of(
        analysis: &'a Analysis,
        all: &'a [Held],
        launch: &LaunchArgs<'_>,
        kept: &OnceLock<KeptLocks>,
    ) -> Option<HeldLocks<'a>> {
        if all.iter().all(Held::is_empty) {
            return None;
        }
        let equal = equal_words(analysis, launch);
        if let Some(KeptLocks { words, asked, made, .. }) = kept.get().filter(|kept| kept.equal == equal) {
            let (asked, made, parts) = (*asked, made.clone(), FxHashMap::default());
            return Some(HeldLocks { analysis, all, words: resolved(analysis, words, launch), asked, made, parts });
        }
        let mut eval = analysis.eval(launch);
        let made: Vec<bool> = (0..all.len()).map(|k| !analysis.reach(&mut eval, k).is_empty()).collect();
        let asked = analysis.asked.iter().all(|(cond, outcome)| eval.ev_pred(*cond) == Cond::of(*outcome));
        let symbolic = words(analysis, all, &mut eval);
        let words = resolved(analysis, &symbolic, launch);
        let parts = parts(analysis, all, launch, asked).unwrap_or_default();
        if parts.is_empty() {
            kept.get_or_init(|| KeptLocks { words: symbolic, asked, made: made.clone(), equal });
        }
        Some(HeldLocks { analysis, all, words, asked, made, parts })
    }

    /// The bytes of a direction behind a base by lock, if there are several and all of these bytes
    /// are touched.
    pub(super) fn parts(&self, kind: AccessKind, base: SymbolicBase) -> Option<&[Part]> {
        self.parts.get(&(kind, base)).map(Vec::as_slice)
    }

    /// The lock that all accesses of a kind are made under that may go through a base.
    pub(super) fn during(&self, kind: AccessKind, base: SymbolicBase) -> Option<Lock> {
        let (Analysis { graph, origins, .. }, locks) = (self.analysis, self.all);
        let goes = |k: &usize| graph.accesses[*k].kind == kind && base.may_come_from(&origins[*k]);
        let through = (0..locks.len()).filter(|k| self.made[*k] && goes(k));
        let mut lock: Option<Lock> = None;
        for k in through {
            let one = self.held(&locks[k])?;
            let Some(lock) = &mut lock else {
                lock = Some(one);
                continue;
            };
            lock.role = lock.role.common(one.role)?;
            lock.words.extend(one.words.into_iter().filter(|word| !lock.words.contains(word)).collect::<Vec<_>>());
        }
        lock
    }

    /// What orders an access in the launch.
    fn held(&self, by: &Held) -> Option<Lock> {
        section(by, self.asked, &self.words).or_else(|| {
            let made = |k: &&u32| self.made[**k as usize];
            let claims: SmallVec<[u32; 2]> = by.claims.iter().filter(made).copied().collect();
            if !claims.is_empty() {
                return Some(lock(claims.iter(), &self.words, LockRole::Claims));
            }
            let gives: SmallVec<[u32; 2]> = by.gives.iter().filter(made).copied().collect();
            let awaits: SmallVec<[u32; 2]> = by.awaits.iter().filter(made).copied().collect();
            let role = match (gives.is_empty(), awaits.is_empty()) {
                (true, true) => return None,
                (false, true) => LockRole::Gives,
                (true, false) => LockRole::Awaits,
                (false, false) => LockRole::Passes,
            };
            Some(lock(gives.iter().chain(&awaits), &self.words, role))
        })
    }
}

/// The lock that is held during an access in a launch. A launch that touches none of its words has
/// not taken it, whichever way the code left for that.
fn section(by: &Held, asked: bool, words: &Words) -> Option<Lock> {
    let is_held = by.words.iter().any(|k| words.contains_key(k)) && (asked || !by.asked);
    is_held.then(|| lock(by.words.iter(), words, LockRole::Section))
}

/// The lock that has these words in a launch.
fn lock<'a>(taken: impl Iterator<Item = &'a u32>, words: &Words, role: LockRole) -> Lock {
    let mut lock = Lock { words: SmallVec::new(), role };
    for word in taken.filter_map(|k| words.get(k)).flatten() {
        if !lock.words.contains(word) {
            lock.words.push(word.clone());
        }
    }
    // A word that is not evaluated belongs to an update that this launch does not make.
    if lock.words.is_empty() {
        lock.words.push(UNKNOWN_WORD);
    }
    lock
}

fn words(analysis: &Analysis, all: &[Held], eval: &mut Eval<'_>) -> SymbolicWords {
    let mut words = SymbolicWords::default();
    let mut seen = FxHashSet::default();
    for k in all.iter().flat_map(Held::all).filter(|k| seen.insert(*k)) {
        let reached = analysis.reach(eval, k as usize);
        if !reached.is_empty() {
            words.insert(k, reached.iter().map(|r| r.finished(Int::now)).collect());
        }
    }
    words
}

/// The words with the values of the launch.
fn resolved(analysis: &Analysis, words: &SymbolicWords, launch: &LaunchArgs<'_>) -> Words {
    let of = |(k, reached): (&u32, &SmallVec<[ReachedBytes<Extent>; 1]>)| {
        let access = &analysis.graph.accesses[*k as usize];
        let resolved = reached.iter().flat_map(|r| analysis.resolve(access.kind, r, access.at, launch));
        // Of several bases, any sum may be the address.
        let word = |w: KernelAccess| if w.several { UNKNOWN_WORD } else { (w.base, w.extent) };
        (*k, resolved.map(word).collect())
    };
    words.iter().map(of).collect()
}

/// The bytes of a launch by lock: see the head of this file. `None`: that costs too much, or no
/// lock is held.
fn parts(
    analysis: &Analysis,
    all: &[Held],
    launch: &LaunchArgs<'_>,
    asked: bool,
) -> Option<FxHashMap<(AccessKind, SymbolicBase), Vec<Part>>> {
    if all.iter().all(|held| held.words.is_empty()) {
        return None;
    }
    let blocks = [0, 1, 2].map(|axis| LaunchInput::Grid(axis).read(launch));
    let longest = (0..3_u8).max_by_key(|axis| blocks[usize::from(*axis)])?;
    let count = blocks[usize::from(longest)];
    let one_by_one = (2..=MAX_BLOCKS).contains(&count);
    let mut found: FxHashMap<(AccessKind, SymbolicBase), Option<SetsByLock>> = FxHashMap::default();
    let mut total = 0_u32;
    for block in 0..if one_by_one { count as u32 } else { 1 } {
        let mut eval = analysis.eval(launch);
        eval.block = one_by_one.then_some((longest, block));
        let words = resolved(analysis, &words(analysis, all, &mut eval), launch);
        for (k, access) in analysis.graph.accesses.iter().enumerate() {
            for r in analysis.reach(&mut eval, k) {
                let entry = found.entry((access.kind, r.base)).or_insert_with(|| Some(Vec::new()));
                let whole = !r.several && matches!(r.extent, ByteSet::Bounded { exact: true, .. });
                let Some(parts) = entry.as_mut().filter(|parts| whole && parts.len() <= MAX_PARTS) else {
                    *entry = None;
                    continue;
                };
                let lock = section(&all[k], asked, &words);
                match parts.iter_mut().find(|part| part.0 == lock) {
                    Some(part) => part.1.push(r.extent),
                    None => parts.push((lock, vec![r.extent])),
                }
            }
        }
        total = total.saturating_add(eval.atoms.budget.total());
        if total > MAX_TOTAL {
            return None;
        }
    }
    let several = found.into_iter().filter_map(|(key, all)| Some((key, all.filter(|all| all.len() > 1)?)));
    let finished = several.map(|((kind, base), all)| {
        let part = |(lock, mut sets): (Option<Lock>, Vec<ByteSet>)| {
            coalesce(&mut sets, base == SymbolicBase::Absolute);
            let parts =
                sets.into_iter().map(move |set| (ReachedBytes::new(base, false, set.finished(Int::now)), lock.clone()));
            parts.collect::<Vec<_>>()
        };
        ((kind, base), all.into_iter().flat_map(part).collect())
    });
    Some(finished.collect())
}
