//! From the form of a tensor map's address and of coordinates to the tiles that a copy takes.
//!
//! Owns where maps lie, and the sets of coordinates. They are kept apart from what a map says
//! (sizes, strides, box), which `tensor_extent` puts in: so an evaluation holds for each map.

use crate::effects::Tiles;
use crate::ir::Reason;
use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::domain::constraints::ConstraintSet;
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::no_wrap::{concrete, interp};
use crate::ranges::extent::address::{bases, expand, extent_of, guarded, param_offsets};
use crate::ranges::extent::exactness::{path_complete, shape};
use crate::ranges::extent::reached::{AccessContext, ReachedBytes, SymbolicBase};
use crate::ranges::graph::node::{Access, NodeId};
use smallvec::SmallVec;

/// Bits for each axis when coordinates are put together in one number.
const AXIS: u32 = 36;
/// Axes that a number has room for.
const MAX_AXES: usize = 3;

/// All that a copy by tensor map takes in this launch, one entry for each map that it may use;
/// `None`: it is never made, or no map is known.
pub(crate) fn tiles(eval: &mut Eval<'_>, acc: &Access, map: NodeId, at: &[NodeId]) -> Option<Vec<ReachedBytes>> {
    let Some((cons, complete)) = guarded(eval, acc) else { return Some(Vec::new()) };
    let maps = maps(eval, map)?;
    let several = maps.len() > 1;
    let complete = complete && !several && path_complete(eval, acc.block);
    let found = coordinates(eval, acc, at, &cons, complete);
    let whole = |(base, at)| {
        let tiles = Tiles { at, ..found.clone() };
        let extent = ByteSet::Unknown { reason: Reason::Descriptor };
        ReachedBytes { tiles: Some(Box::new(tiles)), ..ReachedBytes::new(base, several, extent) }
    };
    Some(maps.into_iter().map(whole).collect())
}

/// Where the map may lie: a base, and how far behind it.
fn maps(eval: &mut Eval<'_>, map: NodeId) -> Option<SmallVec<[(SymbolicBase, i64); 2]>> {
    if let Some(offsets) = param_offsets(eval, map) {
        return Some(offsets.into_iter().map(|p| (SymbolicBase::ParamAddress(p), 0)).collect());
    }
    let f = eval.ev(map);
    let forms = expand(&eval.atoms, &f);
    let place = |f: &AffineForm| {
        let [(atom, base)] = bases(&eval.atoms, f)[..] else { return None };
        let rest = concrete(&eval.atoms, &f.without(atom)).norm(64);
        match base {
            SymbolicBase::Word(_) | SymbolicBase::Symbol(_) if rest.terms.is_empty() => {
                Some((base, i64::try_from(rest.c.pin()).ok()?))
            }
            _ => None,
        }
    };
    forms.iter().map(place).collect()
}

fn coordinates(
    eval: &mut Eval<'_>,
    acc: &Access,
    at: &[NodeId],
    cons: &ConstraintSet,
    complete: bool,
) -> Tiles<ByteSet> {
    let made = AccessContext { cons, width: Int::new(1), block: acc.block, complete };
    let (mut axes, mut forms) = (Vec::with_capacity(at.len()), Vec::with_capacity(at.len()));
    let mut exact = complete && !at.is_empty();
    for n in at {
        let f = eval.ev(*n);
        let f = interp(eval, &f, 32, true, acc.block);
        let alternatives: Vec<AffineForm> = expand(&eval.atoms, &f).iter().map(|f| concrete(&eval.atoms, f)).collect();
        let sets: Vec<ByteSet> = alternatives.iter().map(|f| extent_of(eval, f, made)).collect();
        axes.push(match <[ByteSet; 1]>::try_from(sets) {
            Ok([one]) => one,
            Err(sets) => hull(&sets),
        });
        exact &= matches!(axes.last(), Some(ByteSet::Bounded { exact: true, .. }));
        forms.extend(alternatives.into_iter().next());
    }
    exact = exact && are_independent(eval, &forms, cons, complete);
    Tiles { at: 0, axes, exact }
}

/// From the first to the last of several sets, as a bound.
fn hull(sets: &[ByteSet]) -> ByteSet {
    let mut ends: Option<(Int, Int)> = None;
    for set in sets {
        match set {
            ByteSet::Bounded { width, .. } if *width == 0 => {}
            ByteSet::Bounded { lo, hi, .. } => {
                ends = Some(ends.map_or((*lo, *hi), |(from, to)| (from.min(*lo), to.max(*hi))));
            }
            ByteSet::Unknown { reason } => return ByteSet::Unknown { reason: *reason },
        }
    }
    let Some((lo, hi)) = ends else { return ByteSet::Unknown { reason: Reason::Descriptor } };
    let dims = SmallVec::from_slice(&[(Int::new(1), hi - lo)]);
    ByteSet::Bounded { lo, hi, dims, width: Int::new(1), exact: false }
}

/// Is there a tile at each combination of the coordinates? One number that has them all, each in
/// bits of its own, takes exactly the values of a few progressions then, one axis each.
fn are_independent(eval: &Eval<'_>, forms: &[AffineForm], cons: &ConstraintSet, complete: bool) -> bool {
    let vary: Vec<&AffineForm> = forms.iter().filter(|f| !f.terms.is_empty()).collect();
    match vary.len() {
        0 => return forms.first().is_some_and(|f| shape(eval, f, cons, (f.c, f.c), complete).1),
        1 => return true,
        2..=MAX_AXES => {}
        _ => return false,
    }
    let mut all = AffineForm::default();
    for (k, f) in vary.iter().enumerate() {
        all = all.add(f, Int::pow2(AXIS * k as u32));
    }
    let ends = eval.atoms.bounds_in(&all, cons, true);
    if ends.0 <= -INF || ends.1 >= INF {
        return false;
    }
    let (dims, exact) = shape(eval, &all, cons, ends, complete);
    let along_one_axis = |step: Int| {
        let least = (0..MAX_AXES as u32).rev().map(|k| Int::pow2(AXIS * k)).find(|unit| step >= *unit);
        least.is_some_and(|unit| step.divides(unit) && step.div_euclid(unit) < Int::pow2(AXIS - 1))
    };
    exact && dims.iter().all(|d| along_one_axis(d.0))
}
