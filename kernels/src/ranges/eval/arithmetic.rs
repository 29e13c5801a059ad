//! Shifts, division, minima and absolute values of forms.
//!
//! Owns these operations for any operands. Quotients by a constant, and products, are in `no_wrap`.

use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::atom::AtomKey;
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::bitwise::boxed_atom;
use crate::ranges::eval::no_wrap::{concrete, floor_div, interp};
use crate::ranges::graph::node::NodeId;

pub(crate) fn abs(eval: &mut Eval<'_>, f: &AffineForm, bits: u32, b: BlockId) -> AffineForm {
    let s = interp(eval, f, bits, true, b);
    let (lo, hi) = eval.bounds(&s, b);
    if lo >= 0 {
        return s;
    }
    if hi <= 0 {
        return s.scale(-1);
    }
    let why = eval.atoms.why(&s);
    let hi = (-lo).max(hi);
    let key = AtomKey::Abs(s.clone(), b);
    AffineForm::atom(eval.keyed(key, |eval| {
        let a = eval.atoms.new_atom(0, hi, why, b);
        let one = AffineForm::atom(a);
        eval.atoms[a].deps = eval.atoms.depends(&[&s]);
        eval.atoms[a].cons = vec![eval.atoms.con(s.add(&one, -1)), eval.atoms.con(s.scale(-1).add(&one, -1))];
        a
    }))
}

pub(crate) fn min_max(eval: &mut Eval<'_>, x: &AffineForm, y: &AffineForm, min: bool, b: BlockId) -> AffineForm {
    let (dl, dh) = eval.bounds(&x.add(y, -1), b);
    if dh <= 0 {
        return if min { x.clone() } else { y.clone() };
    }
    if dl >= 0 {
        return if min { y.clone() } else { x.clone() };
    }
    let (lx, hx) = eval.bounds(x, b);
    let (ly, hy) = eval.bounds(y, b);
    let (lo, hi) = if min { (lx.min(ly), hx.min(hy)) } else { (lx.max(ly), hx.max(hy)) };
    // One known side bounds the result on one side only: it stays opaque, its constraints do
    // the rest.
    let why = eval.atoms.why(x).or_else(|| eval.atoms.why(y));
    AffineForm::atom(eval.keyed(AtomKey::Pair(if min { 4 } else { 5 }, x.clone(), y.clone(), b), |eval| {
        let m = eval.atoms.new_atom(lo, hi, why, b);
        let one = AffineForm::atom(m);
        let s = if min { 1 } else { -1 };
        let mut cons = vec![eval.atoms.con(one.add(x, -1).scale(s)), eval.atoms.con(one.add(y, -1).scale(s))];
        // An opaque atom's box does not count in the end, but these hold: min >= the smaller
        // lower bound.
        if min && lo > -INF && strictly_bounded(eval, x, y, b, false) {
            cons.push(eval.atoms.con(one.scale(-1).plus(lo)));
        }
        if !min && hi < INF && strictly_bounded(eval, x, y, b, true) {
            cons.push(eval.atoms.con(one.plus(-hi)));
        }
        eval.atoms[m].deps = eval.atoms.depends(&[x, y]);
        eval.atoms[m].cons = cons;
        m
    }))
}

/// Are both bounded above (or below) without the help of opaque boxes?
fn strictly_bounded(eval: &mut Eval<'_>, x: &AffineForm, y: &AffineForm, b: BlockId, above: bool) -> bool {
    let ctx = eval.ctx(b);
    [x, y].iter().all(|f| {
        let (lo, hi) = eval.atoms.bounds_in(f, &ctx, true);
        if above { hi < INF } else { lo > -INF }
    })
}

pub(crate) fn shift_left(eval: &mut Eval<'_>, n: NodeId, x: NodeId, k: NodeId, bits: u32, b: BlockId) -> AffineForm {
    let k = eval.ev(k);
    if let Some(c) = k.as_const() {
        let c = c.pin().rem_euclid(1 << 32) as u32;
        return if c >= bits { AffineForm::default() } else { eval.ev(x).scale(Int::pow2(c)) };
    }
    let x = eval.ev(x);
    let (sl, sh) = eval.bounds(&k, b);
    let ux = interp(eval, &x, bits, false, b);
    let (lo, hi) = eval.bounds(&ux, b);
    let why = eval.atoms.why(&k).or_else(|| eval.atoms.why(&ux));
    let scaled = |v: Int, k: Int| v * Int::pow2(k.pin() as u32);
    if why.is_some() || sl < 0 || sh >= Int::from(bits) || scaled(hi, sh) >= Int::pow2(bits) {
        return eval.opaque(AtomKey::Node(n, 23), why.unwrap_or(Reason::Bits), bits, b);
    }
    let (lo, hi) = (scaled(lo, sl), scaled(hi, sh));
    boxed_atom(eval, AtomKey::Range(n, lo, hi), (lo, hi), None, &[&k, &ux], b)
}

pub(crate) fn shift_right(
    eval: &mut Eval<'_>,
    n: NodeId,
    signed: bool,
    x: NodeId,
    k: NodeId,
    bits: u32,
    b: BlockId,
) -> AffineForm {
    let k = eval.ev(k);
    let x = eval.ev(x);
    let x = interp(eval, &x, bits, signed, b);
    let x = concrete(&eval.atoms, &x);
    if let Some(c) = k.as_const() {
        let c = c.pin().rem_euclid(1 << 32) as u32;
        if c >= bits {
            return if signed { floor_div(eval, &x, Int::pow2(bits - 1), b) } else { AffineForm::default() };
        }
        return floor_div(eval, &x, Int::pow2(c), b);
    }
    let (sl, sh) = eval.bounds(&k, b);
    let (lo, hi) = eval.bounds(&x, b);
    let why = eval.atoms.why(&k).or_else(|| eval.atoms.why(&x));
    if why.is_some() || sl < 0 || sh >= Int::from(bits) {
        return eval.opaque(AtomKey::Node(n, 24), why.unwrap_or(Reason::Bits), bits, b);
    }
    let shifted = |v: Int, k: Int| v.div_euclid(Int::pow2(k.pin() as u32));
    let lo = shifted(lo, if lo >= 0 { sh } else { sl });
    let hi = shifted(hi, if hi >= 0 { sl } else { sh });
    boxed_atom(eval, AtomKey::Range(n, lo, hi), (lo, hi), None, &[&k, &x], b)
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn divide(
    eval: &mut Eval<'_>,
    n: NodeId,
    signed: bool,
    x: NodeId,
    y: NodeId,
    rem: bool,
    bits: u32,
    b: BlockId,
) -> AffineForm {
    let (x, y) = (eval.ev(x), eval.ev(y));
    let (x, y) = (interp(eval, &x, bits, signed, b), interp(eval, &y, bits, signed, b));
    let (x, y) = (concrete(&eval.atoms, &x), concrete(&eval.atoms, &y));
    let (xl, xh) = eval.bounds(&x, b);
    let (yl, yh) = eval.bounds(&y, b);
    let why = eval.atoms.why(&x).or_else(|| eval.atoms.why(&y));
    if yl <= 0 {
        return eval.opaque(AtomKey::Node(n, 25), why.unwrap_or(Reason::Bits), bits, b);
    }
    if let Some(d) = y.as_const().filter(|_| xl >= 0) {
        let q = floor_div(eval, &x, d, b);
        return if rem { x.add(&q, -d) } else { q };
    }
    if let Some(d) = y.as_const()
        && xl > -INF
        && xh < INF
    {
        // Rounding to zero of a number that may be negative.
        let (lo, hi) = if rem {
            (if xl < 0 { -(d - 1) } else { Int::new(0) }, if xh > 0 { d - 1 } else { Int::new(0) })
        } else {
            (-(-xl).div_euclid(d), xh.max(0).div_euclid(d))
        };
        let why = if rem { None } else { why };
        return boxed_atom(eval, AtomKey::Range(n, lo, hi), (lo, hi), why, &[&x, &y], b);
    }
    if xl < 0 {
        return eval.opaque(AtomKey::Node(n, 26), why.unwrap_or(Reason::Bits), bits, b);
    }
    let (lo, hi) = if rem { (Int::new(0), xh.min(yh - 1)) } else { (xl.div_euclid(yh.max(1)), xh.div_euclid(yl)) };
    let why = if rem { eval.atoms.why(&y) } else { why };
    AffineForm::atom(eval.keyed(AtomKey::Range(n, lo, hi), |eval| {
        let a = eval.atoms.new_atom(lo, hi, why, b);
        let one = AffineForm::atom(a);
        eval.atoms[a].deps = eval.atoms.depends(&[&x, &y]);
        let mut cons = vec![eval.atoms.con(one.add(&x, -1))];
        if rem {
            cons.push(eval.atoms.con(one.add(&y, -1).plus(1)));
        }
        eval.atoms[a].cons = cons;
        a
    }))
}
