//! The launch cache: evaluated launches by the hash of their key.
//!
//! Owns the table, its placement and its eviction. Does not compute keys ([`super::launch_key`]). A
//! hash finds a candidate; the caller confirms it with [`CachedLaunch::is`].
//!
//! The table is two-way set-associative with two hashes, as in cuckoo hashing: a launch has two
//! sets of two slots. It goes where there is room. Otherwise room is made by moving another launch
//! to its other set, so that three in four slots fill before any launch is evicted. With one set a
//! launch, a hundredth of the launches of a run were evicted again and again while half of the
//! slots were free.

use crate::launch_memory::launch_key::LaunchKey;
use crate::launch_memory::replay::ReplayLog;
use crate::launches::effects::Evaluated;
use crate::launches::param_mask::Mask;
use crate::memory::prefetch::fetch;
use smallvec::SmallVec;
use std::sync::Arc;

/// Number of sets, of two slots each. A power of two. A training step has a thousand launches, each
/// with a few sets of addresses.
const SETS: usize = 1 << 13;

/// A cached launch.
pub(crate) struct CachedLaunch {
    /// The part of its key besides the parameters: see [`LaunchKey`].
    pub(crate) words: [u64; 6],
    /// Its parameters.
    pub(crate) params: SmallVec<[u8; 32]>,
    /// Which parameter bytes matter.
    pub(crate) mask: Mask,
    /// Its accesses.
    pub(crate) result: Arc<Evaluated>,
    /// Where its accesses went, when they can be replayed.
    pub(crate) replay: Option<ReplayLog>,
}

impl CachedLaunch {
    /// Whether this entry is the launch with that key and those parameters.
    #[inline(always)]
    pub(crate) fn is(&self, key: &LaunchKey, params: &[u8]) -> bool {
        let ([a, b, c, d, e, f], [u, v, w, x, y, z]) = (self.words, key.words);
        // Without a branch and a call for each word.
        let differ = (a ^ u) | (b ^ v) | (c ^ w) | (d ^ x) | (e ^ y) | (f ^ z);
        differ == 0 && self.mask.agree(&self.params, params)
    }
}

/// A slot. Small, so that scanning a few is cheap.
#[derive(Default)]
struct CacheSlot {
    hash: u64,
    cached: Option<Box<CachedLaunch>>,
}

/// The cached launches.
pub(crate) struct LaunchCache(Box<[[CacheSlot; 2]; SETS]>);

impl Default for LaunchCache {
    fn default() -> Self {
        // Built on the heap: it is too large for a stack.
        let sets: Box<[[CacheSlot; 2]]> = (0..SETS).map(|_| Default::default()).collect();
        Self(sets.try_into().unwrap_or_else(|_| unreachable!("so many were made")))
    }
}

/// The set that is probed first.
#[inline(always)]
fn first_set(hash: u64) -> usize {
    hash as usize % SETS
}

/// The second set, sometimes equal to the first.
#[inline(always)]
fn other_set(hash: u64) -> usize {
    (hash >> 32) as usize % SETS
}

impl LaunchCache {
    /// The launch with this hash.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, hash: u64) -> Option<&mut CachedLaunch> {
        let set = first_set(hash);
        let [one, two] = &self.0[set];
        let (set, second) = match (one.hash == hash, two.hash == hash) {
            (true, _) => (set, false),
            (_, true) => (set, true),
            _ => (other_set(hash), self.0[other_set(hash)][0].hash != hash),
        };
        let place = &mut self.0[set][usize::from(second)];
        place.cached.as_deref_mut().filter(|_| place.hash == hash)
    }

    /// Passes all launches to `each`.
    pub(crate) fn each(&mut self, each: impl FnMut(&mut CachedLaunch)) {
        self.0.iter_mut().flatten().filter_map(|slot| slot.cached.as_deref_mut()).for_each(each);
    }

    /// Inserts a launch with this hash. It replaces an entry with the same hash or, without room,
    /// the older entry of its first set.
    pub(crate) fn put(&mut self, hash: u64, cached: CachedLaunch) {
        let here = self.places(hash);
        let same = here.iter().find(|at| self.at(**at).hash == hash && self.at(**at).cached.is_some());
        let free = here.iter().find(|at| self.at(**at).cached.is_none()).copied();
        let (set, way) = match same.copied().or(free).or_else(|| self.make_room(here)) {
            Some(at) => at,
            None => {
                let [one, two] = &mut self.0[here[0].0];
                std::mem::swap(one, two);
                here[0]
            }
        };
        self.0[set][way] = CacheSlot { hash, cached: Some(Box::new(cached)) };
    }

    /// Moves a launch from one of these slots to its other set, if there is room. Returns the freed
    /// slot.
    fn make_room(&mut self, here: [(usize, usize); 4]) -> Option<(usize, usize)> {
        for at in here {
            let free = self.places(self.at(at).hash).into_iter().find(|to| self.at(*to).cached.is_none());
            if let Some(free) = free {
                self.0[free.0][free.1] = std::mem::take(&mut self.0[at.0][at.1]);
                return Some(at);
            }
        }
        None
    }

    /// The slots where a launch with this hash may be.
    fn places(&self, hash: u64) -> [(usize, usize); 4] {
        let (first, other) = (first_set(hash), other_set(hash));
        [(first, 0), (first, 1), (other, 0), (other, 1)]
    }

    fn at(&self, (set, way): (usize, usize)) -> &CacheSlot {
        &self.0[set][way]
    }

    /// Prefetches the first set of a launch that is fed later.
    #[inline(always)]
    pub(crate) fn fetch(&self, hash: u64) {
        fetch(&self.0[first_set(hash)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launches::effects::Knowledge;

    fn cached(number: u64) -> CachedLaunch {
        let (effects, knowledge) = (Vec::new(), Knowledge::Unknown);
        let result = Evaluated { effects, knowledge, indirect: false, exact: false, gap: None, indirect_gap: None };
        let (params, mask, result) = (SmallVec::new(), Mask::default(), Arc::new(result));
        CachedLaunch { words: [number; 6], params, mask, result, replay: None }
    }

    /// Distributed like real hashes.
    fn hash(number: u64) -> u64 {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    #[test]
    fn nearly_all_places_are_taken_before_launches_have_to_go() {
        for (few, most_lost) in [(SETS as u64, 20), (3 * SETS as u64 / 2, 400)] {
            let mut launches = LaunchCache::default();
            (0..few).for_each(|n| launches.put(hash(n), cached(n)));
            let lost = (0..few).filter(|n| launches.get_mut(hash(*n)).is_none()).count() as u64;
            assert!(lost <= most_lost, "{lost} of {few} in {} places", 2 * SETS);
            assert!((0..few).all(|n| launches.get_mut(hash(n)).is_none_or(|cached| cached.words[0] == n)));
        }
    }

    #[test]
    fn the_latest_launch_stays_and_nothing_grows() {
        let mut launches = LaunchCache::default();
        for n in 0..8 * SETS as u64 {
            launches.put(hash(n), cached(n));
            assert!(launches.get_mut(hash(n)).is_some_and(|cached| cached.words[0] == n));
        }
        launches.put(hash(3), cached(7));
        launches.put(hash(3), cached(8));
        assert_eq!(launches.get_mut(hash(3)).map(|cached| cached.words[0]), Some(8));
        let kept = launches.0.iter().flatten().filter(|place| place.cached.is_some() && place.hash == hash(3)).count();
        assert_eq!(kept, 1, "one launch has one place");
        assert!(launches.get_mut(0).is_none(), "empty places hold nothing");
    }
}
