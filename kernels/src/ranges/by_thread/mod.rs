//! Small launches, thread by thread: the bytes that each thread touches, from parameters and its
//! indices alone.
//!
//! Owns when a launch is looked at so, and what of its result is replaced. An evaluation describes
//! all threads of a launch by a few forms. What is no progression (windows at edges, triangles,
//! loops that end early, trees of a reduction) is a bound then, or unknown. A small launch can be
//! followed thread by thread instead: `walk` leads the threads through the kernel, `lanes`
//! calculates (one number for threads that have it in common: `lane_value`), `runs` says what was
//! touched in few progressions.
//!
//! # Why the result holds
//!
//! A thread is followed with the numbers of the launch, as the kernel calculates them: modulo 2^32
//! and 2^64, without forms and bounds. Values that are data (loaded, of threads that are not known)
//! are unknown, and so is all that is made of them. Where a test is unknown, the thread is
//! not followed up to the block at which all ways meet again (the immediate post-dominator). What
//! lies in between may happen, any number of times: an access there whose address rests on nothing
//! that changes in between is one that *may* touch these bytes; of any other the bytes are not
//! known. What is assigned in between is unknown behind it.
//!
//! All accesses of a direction are followed. Those through one base are replaced only if every
//! instruction of which not all addresses are known surely goes elsewhere (`graph/provenance.rs`,
//! where no table and nothing stored is in the address). Then nothing else can be touched.
//!
//! A branch behind which all ways come to the same for the accesses that are followed is not asked
//! (`program_slice`): threads go on where its ways meet. They come there in the end, or never make
//! another access.
//!
//! Bytes are claimed as exact when a thread touches them whatever the data are. A value of a
//! pointer is part of an address only: as soon as anything else is done with it, it is noted as an
//! input that the result rests on. So an address that is put together of two words is a number, and
//! holds for these pointers only. A comparison with a number below all pointers, such as null,
//! rests on the word being a pointer alone. A sum of several words counts from the largest one,
//! which is the pointer, and rests on the others.
//!
//! Threads share a number only where theirs were calculated and found equal, or are made of numbers
//! that they share. That all have moved by the same distance is kept apart from the numbers for
//! sums and multiples, which agree with them modulo 2^32 and 2^64, and for widening where no lane
//! leaves the range of the narrow type.
//!
//! Only what the evaluation left inexact is replaced, in launches of few threads, within a budget
//! of operations. All three follow from the launch and the kernel, so the result does not depend on
//! what was launched before.

mod lane_arithmetic;
mod lane_classes;
mod lane_sums;
mod lane_value;
mod lanes;
mod made_maps;
mod numbers;
mod plan;
mod rounds;
mod runs;
mod shuffles;
mod tile_set;
mod unknown_branches;
mod walk;

use crate::Extent;
use crate::effects::{Early, LaunchArgs, Tiles};
use crate::ir::{AccessKind, Reason};
use crate::ranges::analysis::Analysis;
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::domain::int::Int;
use crate::ranges::domain::tape::{self, LaunchInput};
use crate::ranges::extent::reached::{EvaluatedAccesses, ReachedBytes, SymbolicBase};
use crate::ranges::graph::node::{MapStepNode, Target};
use made_maps::MapPlace;
pub(crate) use plan::Plan;
use runs::Runs;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use tile_set::TileSet;
use walk::{Touched, Walk};

/// Threads of a launch that is followed.
const MAX_THREADS: u64 = 1 << 18;
/// Byte sets of one direction and base: a row each of any triangle that is small enough to be
/// followed.
const MAX_SETS: usize = 1024;

/// The accesses of one direction through one base; `None`: all of the direction, because an
/// evaluation did not find the base of some. And whether they are those before the wait.
type Group = (AccessKind, Option<SymbolicBase>, Early);

/// One entry of a result.
type Entry = (AccessKind, ReachedBytes<Extent>, u32);

impl Analysis {
    /// A result with what following the threads says more, and the inputs that it rests on besides;
    /// `None`: it says nothing more.
    pub(super) fn by_thread(
        &self,
        launch: &LaunchArgs<'_>,
        found: &EvaluatedAccesses<Extent>,
    ) -> Option<(EvaluatedAccesses<Extent>, Vec<LaunchInput>)> {
        let count = |n: &[u32; 3]| n.iter().map(|n| u64::from(*n)).product::<u64>();
        let (blocks, per_block) = (count(&launch.grid), count(&launch.block));
        let threads = blocks.checked_mul(per_block)?;
        if threads == 0 || threads > MAX_THREADS {
            return None;
        }
        let (wanted, tiles) = (self.wanted(found), self.wanted_tiles(found));
        if wanted.is_empty() && tiles.is_empty() {
            return None;
        }
        let is_wanted = |k: &usize| {
            let a = &self.graph.accesses[*k];
            wanted.iter().any(|g| a.kind == g.0) || (a.is_tiled() && tiles.contains(&(a.kind, a.early)))
        };
        let followed: Vec<usize> = (0..self.graph.accesses.len()).filter(is_wanted).collect();
        let unbounded = found.iter().any(|(_, r, _)| matches!(r.extent, Extent::Unknown { .. }));
        let walk = || Walk::new(self, launch, (blocks, per_block), &followed, unbounded).run();
        let (touched, tape) = tape::run(false, walk);
        let touched = touched?;
        let mut result = found.clone();
        let mut replaced = false;
        for (kind, early) in tiles {
            if let Some(new) = self.tiles(kind, early, &touched, found) {
                let is_replaced =
                    |e: &Entry| (e.0, e.1.early) == (kind, early) && (e.1.tiles.is_some() || self.is_by_made_map(e));
                result.retain(|e| !is_replaced(e));
                result.extend(new);
                replaced = true;
            }
        }
        for group in wanted {
            let is_own = |k: &usize| {
                let access = &self.graph.accesses[*k];
                (access.kind, access.early) == (group.0, group.2)
            };
            let own: Vec<usize> = followed.iter().copied().filter(is_own).collect();
            if own.iter().any(|k| touched.lost.contains(k) && self.may_belong(*k, group)) {
                continue;
            }
            // (Tiles were replaced above.)
            let covers = |e: &Entry| {
                e.1.tiles.is_none()
                    && !e.1.by_map
                    && (e.0, e.1.early) == (group.0, group.2)
                    && group.1.is_none_or(|base| self.whole(e.1.base) == base)
            };
            let before = bytes(found.iter().filter(|e| covers(e)));
            let is_better = |new: &Vec<Entry>| before.is_none_or(|b| bytes(new.iter()).is_some_and(|n| n <= b));
            if let Some(new) = self.entries(group, &own, &touched, before.is_none()).filter(is_better) {
                result.retain(|e| !covers(e));
                // (What has no base may be of several groups.)
                let new: Vec<Entry> = new.into_iter().filter(|e| !result.contains(e)).collect();
                result.extend(new);
                replaced = true;
            }
        }
        replaced.then(|| (result, tape.into_touched()))
    }

    /// The base that threads count from: the bank, for a variable in it.
    fn whole(&self, base: SymbolicBase) -> SymbolicBase {
        match base {
            SymbolicBase::Symbol(s) => SymbolicBase::Symbol(self.graph.whole_bank(s)),
            base => base,
        }
    }

    /// The groups of a result that may become exact.
    fn wanted(&self, found: &EvaluatedAccesses<Extent>) -> Vec<Group> {
        let mut wanted: Vec<Group> = Vec::new();
        let mut given_up: Vec<Group> = Vec::new();
        for (kind, r, at) in found {
            if matches!(r.extent, Extent::Bounded { exact: true, .. }) || r.tiles.is_some() {
                continue;
            }
            let group = match self.whole(r.base) {
                base @ (SymbolicBase::Word(_) | SymbolicBase::Symbol(_)) => (*kind, Some(base), r.early),
                SymbolicBase::Unknown | SymbolicBase::Absolute => (*kind, None, r.early),
                SymbolicBase::Table { .. }
                | SymbolicBase::Loaded
                | SymbolicBase::Handle(..)
                | SymbolicBase::ParamAddress(_) => continue,
            };
            // What is made, and surely of data, needs no walk.
            let mut made = self.graph.accesses.iter().zip(&self.plan().data).filter(|(a, _)| a.at == *at);
            if made.all(|(_, data)| *data) {
                given_up.push(group);
            } else if !wanted.contains(&group) {
                wanted.push(group);
            }
        }
        wanted.retain(|group| !given_up.contains(group));
        wanted
    }

    /// The directions, before or behind the wait, in which tiles of maps among the parameters are
    /// not exact.
    fn wanted_tiles(&self, found: &EvaluatedAccesses<Extent>) -> Vec<(AccessKind, Early)> {
        let mut wanted = Vec::new();
        for (kind, r, _) in found {
            let open = r.tiles.as_ref().is_some_and(|t| match r.base {
                SymbolicBase::ParamAddress(_) => !t.exact && !t.axes.is_empty(),
                base => base == SymbolicBase::Unknown,
            });
            if open && !wanted.contains(&(*kind, r.early)) {
                wanted.push((*kind, r.early));
            }
        }
        wanted
    }

    /// The tiles that all copies by tensor map of a direction take; `None`: not all maps are known.
    /// What was found before bounds those of which a coordinate is not known.
    fn tiles(&self, kind: AccessKind, early: Early, touched: &Touched, found: &[Entry]) -> Option<Vec<Entry>> {
        // (A map has one number of axes; a copy that names another is bounded by the tensor.)
        let mut maps: BTreeMap<(MapPlace, usize), (TileSet, u32)> = BTreeMap::new();
        let mut anywhere: BTreeSet<MapPlace> = BTreeSet::new();
        for (k, a) in self.graph.accesses.iter().enumerate().filter(|(_, a)| (a.kind, a.early) == (kind, early)) {
            let Target::TensorMap(_, at) = &a.target else { continue };
            if at.is_empty() || touched.lost.contains(&k) {
                return None;
            }
            for (key, tiles) in touched.tiles.iter().filter(|t| t.0.0 == k) {
                let (all, at) = maps.entry((key.1, at.len())).or_insert_with(|| (TileSet::default(), a.at));
                *at = a.at.min(*at);
                all.append(tiles)?;
            }
            for key in touched.anywhere.iter().filter(|t| t.0 == k) {
                maps.entry((key.1, at.len())).or_insert_with(|| (TileSet::default(), a.at));
                anywhere.insert(key.1);
            }
        }
        if maps.keys().any(|map| matches!(map.0, MapPlace::Made(_))) && !self.keeps_maps(touched) {
            return None;
        }
        let mut entries: Vec<Entry> = Vec::new();
        for ((place, rank), (tiles, at)) in maps {
            let mut all = tiles.products()?;
            all.iter_mut().for_each(|tiles| tiles.axes.truncate(rank));
            match place {
                MapPlace::Param(offset) => {
                    let base = SymbolicBase::ParamAddress(offset);
                    let bound =
                        if anywhere.contains(&place) { bound_of(base, (kind, early), at, found) } else { Vec::new() };
                    entries.extend(all.into_iter().map(|tiles| by_param(base, (kind, early), at, tiles)));
                    entries.extend(bound);
                }
                MapPlace::Made(k) => {
                    let (base, from, tensor) = touched.tensors.get(k)?;
                    let behind = tensor.address.wrapping_sub(*from) as i64;
                    all.extend(anywhere.contains(&place).then(whole));
                    for tiles in &all {
                        for mut extent in Extent::of_tiles(tensor, tiles, kind)? {
                            if let Extent::Bounded { lo, hi, .. } = &mut extent {
                                (*lo, *hi) = (lo.checked_add(behind)?, hi.checked_add(behind)?);
                            }
                            let reached = ReachedBytes::new(*base, false, extent).made(early);
                            entries.push((kind, ReachedBytes { by_map: true, ..reached }, at));
                        }
                    }
                }
            }
        }
        Some(entries)
    }

    /// Is an entry what a copy may reach through a map that the kernel makes?
    fn is_by_made_map(&self, (kind, r, at): &Entry) -> bool {
        matches!(r.extent, Extent::Unknown { reason: Reason::Descriptor })
            && self
                .graph
                .accesses
                .iter()
                .any(|a| matches!(a.target, Target::Made(_)) && (a.at, a.kind, a.early) == (*at, *kind, r.early))
    }

    /// Does nothing write to the maps that are made but what makes them?
    fn keeps_maps(&self, touched: &Touched) -> bool {
        let makes = |at: u32| {
            self.graph.map_words.iter().any(|s| matches!(s.step, MapStepNode::Word { at: put, .. } if put == at))
        };
        self.graph.accesses.iter().enumerate().all(|(k, a)| {
            let is_other = a.kind.writes() && !makes(a.at) && !a.is_tiled() && !matches!(a.target, Target::Made(_));
            !is_other || touched.places.iter().all(|base| !self.may_belong(k, (a.kind, Some(*base), a.early)))
        })
    }

    /// May an access of which not all addresses are known be one of a group?
    fn may_belong(&self, k: usize, (_, base, _): Group) -> bool {
        let from = &self.origins[k];
        let named = match base {
            Some(SymbolicBase::Word(w)) => from.words.contains(&w),
            Some(SymbolicBase::Symbol(s)) => from.symbols.contains(&s),
            _ => true,
        };
        named || self.plan().elsewhere[k] || from.unknown.is_some() || !from.has_base()
    }

    /// What the accesses of a group touch; `None` when that is too much to tell.
    fn entries(&self, group: Group, own: &[usize], touched: &Touched, is_open: bool) -> Option<Vec<Entry>> {
        let mut bases: Vec<(SymbolicBase, u32)> = Vec::new();
        for k in own {
            for (_, base) in touched.surely.keys().chain(touched.perhaps.keys()).filter(|t| t.0 == *k) {
                // A parameter that is read through its own address is nobody else's.
                if matches!(base, SymbolicBase::ParamAddress(_)) {
                    continue;
                }
                let at = self.graph.accesses[*k].at;
                match bases.iter_mut().find(|b| b.0 == *base) {
                    Some(b) => b.1 = b.1.min(at),
                    None if group.1.is_none_or(|wanted| wanted == *base) => bases.push((*base, at)),
                    None if *base == SymbolicBase::Absolute && self.may_belong(*k, group) => bases.push((*base, at)),
                    None => {}
                }
            }
        }
        bases.sort_unstable_by_key(|b| b.1);
        let mut entries = Vec::new();
        for (base, at) in bases {
            let of = |map: &FxHashMap<(usize, SymbolicBase), Runs>| {
                let mut all = Runs::default();
                own.iter().filter_map(|k| map.get(&(*k, base))).for_each(|runs| all.append(runs));
                all.joined()
            };
            let surely = of(&touched.surely);
            let perhaps = of(&touched.perhaps).without(&surely);
            // Of a bound in pieces each piece would be taken for a place that is touched.
            let exact = surely.byte_sets(true, MAX_SETS).zip(perhaps.byte_sets(false, 1));
            let sets = match exact {
                Some((surely, perhaps)) => [surely, perhaps].concat(),
                // What was unknown gets a bound at least.
                None if is_open => {
                    let mut all = surely;
                    all.append(&perhaps);
                    vec![all.joined().hull()?]
                }
                None => return None,
            };
            let whole = |set: &ByteSet| ReachedBytes::new(base, false, set.finished(Int::now)).made(group.2);
            entries.extend(sets.iter().map(|set| (group.0, whole(set), at)));
        }
        Some(entries)
    }
}

/// All of a tensor, as a bound.
fn whole() -> Tiles {
    Tiles { at: 0, axes: Vec::new(), exact: false }
}

/// Tiles by a map among the parameters.
fn by_param(base: SymbolicBase, (kind, early): (AccessKind, Early), at: u32, tiles: Tiles) -> Entry {
    let unknown = Extent::Unknown { reason: Reason::Descriptor };
    let reached = ReachedBytes::new(base, false, unknown).made(early);
    (kind, ReachedBytes { tiles: Some(Box::new(tiles)), ..reached }, at)
}

/// What bounds all tiles by a map among the parameters: what was found before, if that names maps.
fn bound_of(base: SymbolicBase, of: (AccessKind, Early), at: u32, found: &[Entry]) -> Vec<Entry> {
    let before = || found.iter().filter(|e| e.1.tiles.is_some() && (e.0, e.1.early) == of);
    let own: Vec<Entry> = before().filter(|e| e.1.base == base).cloned().collect();
    if own.is_empty() || before().any(|e| e.1.base == SymbolicBase::Unknown) {
        return vec![by_param(base, of, at, whole())];
    }
    own
}

/// How many bytes entries name, those that several name as often; `None`: not all are known.
fn bytes<'a>(mut of: impl Iterator<Item = &'a Entry>) -> Option<u64> {
    of.try_fold(0u64, |sum, e| match &e.1.extent {
        Extent::Bounded { dims, width, .. } => {
            let places = dims.iter().fold(1u64, |n, d| n.saturating_mul(d.count));
            Some(sum.saturating_add(places.saturating_mul(u64::from(*width))))
        }
        Extent::Unknown { .. } => None,
    })
}
