//! Values looked up by an index: parameter words at a dynamic offset, and arrays in local memory.
//!
//! Owns the set of words that an index may select. Tables in global memory are in
//! `extent/pointer_table.rs`.

use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::atom::AtomKey;
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::no_wrap::interp;
use crate::ranges::eval::recurrences::varies_around;
use crate::ranges::eval::value::{alternatives, param_value};
use crate::ranges::graph::node::{NodeId, StoredWords};
use smallvec::SmallVec;

/// Parameter bytes at a dynamic offset: the list of words it may be.
pub(crate) fn indexed(
    eval: &mut Eval<'_>,
    n: NodeId,
    off: i32,
    bytes: u8,
    signed: bool,
    idx: NodeId,
    b: BlockId,
) -> AffineForm {
    let f = eval.ev(idx);
    let f = interp(eval, &f, 32, true, b);
    let ctx = eval.ctx(b);
    let (lo, hi) = eval.atoms.bounds_in(&f, &ctx, true);
    let step = f.gcd().max(1);
    let bits = 8 * u32::from(bytes);
    let why = eval.atoms.why(&f).unwrap_or(Reason::Constant);
    if lo <= -INF || hi >= INF || (hi - lo).div_euclid(step) > 512 {
        return eval.opaque(AtomKey::Node(n, 29), why, bits, b);
    }
    // The offsets reached are congruent to the constant part modulo the step.
    let mut at = lo + (f.c - lo).rem_euclid(step);
    let mut alts = Vec::new();
    while at <= hi {
        let Ok(o) = u16::try_from(i128::from(off) + at.pin()) else {
            return eval.opaque(AtomKey::Node(n, 30), Reason::Constant, bits, b);
        };
        // A word outside of the recorded bytes is not reached by a program that runs.
        if usize::from(o) + usize::from(bytes) <= eval.launch.params.len() {
            let v = param_value(eval, n, o, bytes, b);
            let v = match (signed, v.as_const()) {
                (true, Some(c)) if bytes < 4 => {
                    let half = Int::pow2(bits - 1);
                    AffineForm::konst((c + half).rem_euclid(Int::pow2(bits)) - half)
                }
                _ => v,
            };
            alts.push(v);
        }
        at += step;
    }
    if alts.is_empty() {
        return eval.opaque(AtomKey::Node(n, 31), Reason::Constant, bits, b);
    }
    alternatives(eval, alts, AtomKey::Table(f.clone(), off, bytes, signed), Some(&f), b)
}

/// Local array read at a dynamic index: any value stored into a slot that the index may reach.
pub(crate) fn local_load(eval: &mut Eval<'_>, n: NodeId, addr: NodeId, bytes: u8, b: BlockId) -> AffineForm {
    let bits = 8 * u32::from(bytes);
    let g = eval.g;
    if eval.local_busy.contains(&n) || g.local_stores.is_empty() || g.local_stores.len() > 200 {
        return eval.opaque(AtomKey::Node(n, 32), Reason::Local, bits, b);
    }
    eval.local_busy.push(n);
    let r = stored_values(eval, addr, bytes, b);
    eval.local_busy.pop();
    match r {
        Some(alts) if !alts.is_empty() && alts.len() <= 64 => alternatives(eval, alts, AtomKey::Alts(n), None, b),
        _ => eval.opaque(AtomKey::Node(n, 33), Reason::Local, bits, b),
    }
}

fn stored_values(eval: &mut Eval<'_>, addr: NodeId, bytes: u8, b: BlockId) -> Option<Vec<AffineForm>> {
    let g = eval.g;
    let a = eval.ev(addr);
    let ctx = eval.ctx(b);
    let mut alts = Vec::new();
    for s in &g.local_stores {
        let at = eval.ev(s.addr);
        // Both are the local base plus an offset; the base cancels.
        let d = a.add(&at, -1).norm(32);
        let (lo, hi) = eval.atoms.bounds_in(&d, &ctx, true);
        for v in words_at((lo, hi), &d, s, bytes)? {
            let f = eval.ev(v);
            // What one iteration stored may be read by another.
            if varies_around(eval, &f, s.block) {
                return None;
            }
            alts.push(f);
        }
    }
    Some(alts)
}

/// The values that a load of `bytes` may take from a store, when it begins `d` bytes behind it,
/// which lies in `bounds`. `None`: words that this store does not make alone.
pub(super) fn words_at(
    (lo, hi): (Int, Int),
    d: &AffineForm,
    s: &StoredWords,
    bytes: u8,
) -> Option<SmallVec<[NodeId; 4]>> {
    let (step, width, c) = (d.gcd().pin(), i128::from(bytes), d.c.pin());
    let mut values = SmallVec::new();
    // Every place at which the load may begin so that the two share a byte.
    for off in lo.max(1 - width).pin()..=hi.min(i64::from(s.bytes) - 1).pin() {
        if step != 0 && (off - c).rem_euclid(step) != 0 {
            continue;
        }
        // A word, or an aligned pair of words, that this store alone makes; else it is put together
        // from several.
        if s.bytes < 4 || off < 0 || off % 4 != 0 || off + width > 4 * s.words.len() as i128 {
            return None;
        }
        let q = (off / 4) as usize;
        values.push(match bytes {
            8 if !q.is_multiple_of(2) => return None,
            8 => *s.pairs.get(q / 2)?,
            _ => s.words[q],
        });
    }
    Some(values)
}
