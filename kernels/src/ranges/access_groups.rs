//! The bytes of a launch, joined: accesses that agree in everything but their bytes are one.
//!
//! Owns which accesses agree. What joins without loss is in `extent/coalesce.rs`.

use crate::effects::{Early, Tiles};
use crate::ir::AccessKind;
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::extent::coalesce::coalesce;
use crate::ranges::extent::delinearization::{self, Delinearized};
use crate::ranges::extent::reached::{EvaluatedAccesses, ReachedBytes, SymbolicBase};
use crate::ranges::graph::node::Access;
use rustc_hash::FxHashMap;

/// The accesses that agree in everything but their bytes.
pub(super) struct AccessGroup {
    kind: AccessKind,
    base: SymbolicBase,
    several: bool,
    early: Early,
    /// The first instruction.
    at: u32,
    extents: Vec<ByteSet>,
    /// Byte sets that are delinearized after they are joined, each with the set that holds anyway.
    delinearized: Vec<(Box<Delinearized>, ByteSet)>,
    /// Of a copy by tensor map. (Each is a group.)
    tiles: Option<Box<Tiles<ByteSet>>>,
}

/// The groups of a launch, in the order in which they were found.
#[derive(Default)]
pub(super) struct AccessGroups {
    all: Vec<AccessGroup>,
    /// By kind, base, whether that is one of several, whether it is before the wait, and whether
    /// extents are bounded (these are joined) or unknown: tables among the parameters have a base
    /// for each of their words.
    by_key: FxHashMap<(AccessKind, SymbolicBase, bool, Early, bool), usize>,
}

impl AccessGroup {
    fn new(acc: &Access, r: &ReachedBytes) -> AccessGroup {
        let (extents, delinearized) = Default::default();
        let (kind, early, at) = (acc.kind, acc.early, acc.at);
        AccessGroup { kind, base: r.base, several: r.several, early, at, extents, delinearized, tiles: r.tiles.clone() }
    }

    fn add(&mut self, r: ReachedBytes) {
        match r.delinearized {
            Some(w) => self.delinearized.push((w, r.extent)),
            None => self.extents.push(r.extent),
        }
    }

    /// Joins the byte sets of each group.
    pub(super) fn finish(sets: AccessGroups) -> EvaluatedAccesses<ByteSet> {
        let mut result = Vec::with_capacity(sets.all.len());
        for AccessGroup { kind, base, several, early, at, mut extents, delinearized, tiles } in sets.all {
            delinearization::into_byte_sets(delinearized, &mut extents);
            coalesce(&mut extents, several || base == SymbolicBase::Absolute);
            let whole = |extent| {
                (
                    kind,
                    ReachedBytes { tiles: tiles.clone(), ..ReachedBytes::new(base, several, extent).made(early) },
                    at,
                )
            };
            result.extend(extents.into_iter().map(whole));
        }
        result
    }
}

impl AccessGroups {
    /// Adds what an access reaches.
    pub(super) fn put(&mut self, acc: &Access, r: ReachedBytes) {
        if r.tiles.is_some() {
            return self.put_tiles(acc, r);
        }
        let known = matches!(r.extent, ByteSet::Bounded { .. });
        let at = *self.by_key.entry((acc.kind, r.base, r.several, acc.early, known)).or_insert_with(|| {
            self.all.push(AccessGroup::new(acc, &r));
            self.all.len() - 1
        });
        self.all[at].add(r);
    }

    /// Adds the tiles of a copy, unless another one takes the same.
    fn put_tiles(&mut self, acc: &Access, r: ReachedBytes) {
        let group = AccessGroup::new(acc, &r);
        let is_same = |g: &AccessGroup| {
            (g.kind, g.base, g.several, g.early, &g.tiles)
                == (group.kind, group.base, group.several, group.early, &group.tiles)
        };
        if !self.all.iter().any(is_same) {
            self.all.push(AccessGroup { extents: vec![r.extent], ..group });
        }
    }
}
