//! From forms modulo 2^32 or 2^64 to the numbers that they stand for: proves that nothing wrapped.
//!
//! Owns that proof, and two operations that need it: quotients and products. Masks are in
//! `bitwise`; shifts and division by a variable are in `arithmetic`.

use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::{AtomKey, AtomKind};
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::state::atoms::Atoms;
use crate::ranges::eval::state::loop_table::LoopState;
use std::rc::Rc;

/// The number that a form modulo 2^bits stands for.
pub(crate) fn interp(eval: &mut Eval<'_>, f: &AffineForm, bits: u32, signed: bool, b: BlockId) -> AffineForm {
    let (m, half) = (Int::pow2(bits), Int::pow2(bits - 1));
    let (tlo, thi) = if signed { (-half, half - 1) } else { (Int::new(0), m - 1) };
    if let Some(c) = f.as_const() {
        let c = c.rem_euclid(m);
        return AffineForm::konst(if c > thi { c - m } else { c });
    }
    if eval.assumed.is_some() {
        let (lo, hi) = eval.atoms.boxed(f, false);
        // What rests on a loop that was given up will not be proved.
        let given_up = |x: AtomId| match eval.atoms[x].kind {
            AtomKind::Iteration(l) => {
                eval.atoms[x].hi >= INF
                    && eval.atoms[x].cons.is_empty()
                    && eval.loops.states[l as usize] == LoopState::Done
            }
            _ => false,
        };
        if (lo <= -INF || hi >= INF) && !f.terms.iter().any(|t| given_up(t.0)) {
            // Which of the numbers congruent to it is meant shows in the first iteration.
            let mut first = f.clone();
            for (x, _) in &f.terms {
                if matches!(eval.atoms[*x].kind, AtomKind::Iteration(_)) {
                    first = first.without(*x);
                }
            }
            let (lo, hi) = eval.bounds(&first, b);
            if let Some(s) = [Int::new(0), m, -m].into_iter().find(|s| tlo <= lo + *s && hi + *s <= thi) {
                let f = f.plus(s);
                if let Some(v) = &mut eval.assumed {
                    v.push((f.clone(), tlo, thi));
                }
                return f;
            }
        }
    }
    // As a rule the boxes are enough.
    let (lo, hi) = eval.atoms.boxed(f, false);
    if tlo <= lo && hi <= thi {
        return f.clone();
    }
    let (lo, hi) = eval.bounds(f, b);
    for s in [Int::new(0), m, -m] {
        if tlo <= lo + s && hi + s <= thi {
            return f.plus(s);
        }
    }
    if eval.g.split_words
        && bits == 32
        && lo > -INF
        && hi < INF
        && eval.atoms.why(f).is_none()
        && eval.assumed.is_none()
    {
        // (Where no number is put together from words, nothing makes up for what is lost.)
        // `f mod m` is `f - m * floor(f / m)`, whatever f is. Products of two 64-bit numbers
        // add the high word times m, which cancels the quotient.
        let quotient = floor_div(eval, &f.plus(-tlo), m, b);
        return f.add(&quotient, -m);
    }
    let why = eval.atoms.why(f).unwrap_or(Reason::MayWrap);
    AffineForm::atom(eval.keyed(AtomKey::Interp(f.clone(), bits, signed), |eval| {
        let a = eval.atoms.new_atom(tlo, thi, Some(why), b);
        eval.atoms[a].deps = eval.atoms.depends(&[f]);
        a
    }))
}

/// `floor(f / d)` of an integer form; exact multiples are split off.
pub(crate) fn floor_div(eval: &mut Eval<'_>, f: &AffineForm, d: Int, b: BlockId) -> AffineForm {
    if d == 1 {
        return f.clone();
    }
    let mut whole = AffineForm::konst(f.c.div_euclid(d));
    let mut rest = AffineForm::konst(f.c.rem_euclid(d));
    for (x, c) in &f.terms {
        if c.divides(d) {
            whole.terms.push((*x, c.div_euclid(d)));
        } else {
            rest.terms.push((*x, *c));
        }
    }
    if rest.terms.is_empty() {
        return whole;
    }
    if let Some((inner, unit)) = nested_floor(&eval.atoms, &rest)
        && let Some(d) = d.checked_mul(unit).filter(|d| *d < 1 << 80)
    {
        return whole.add(&floor_div(eval, &inner, d, b), 1);
    }
    let same = |(lo, hi): (Int, Int)| lo > -INF && hi < INF && lo.div_euclid(d) == hi.div_euclid(d);
    let (lo, hi) = eval.atoms.boxed(&rest, false);
    if same((lo, hi)) {
        return whole.plus(lo.div_euclid(d));
    }
    let (lo, hi) = eval.bounds(&rest, b);
    if same((lo, hi)) {
        return whole.plus(lo.div_euclid(d));
    }
    let (rest, d) = reciprocal(rest, d, (lo, hi));
    let (lo, hi) = if rest.c == 0 && d > 1 { eval.bounds(&rest, b) } else { (lo, hi) };
    if lo > -INF && hi < INF && lo.div_euclid(d) == hi.div_euclid(d) {
        return whole.plus(lo.div_euclid(d));
    }
    let q = eval.keyed(AtomKey::Floor(rest.clone(), d), |eval| {
        // Shared between blocks: no guards here.
        let (lo, hi) = eval.atoms.bounds_in(&rest, &eval.none, false);
        let (slo, shi) = eval.atoms.bounds_in(&rest, &eval.none, true);
        let why = (slo <= -INF || shi >= INF).then(|| eval.atoms.why(&rest)).flatten();
        let q = eval.atoms.new_atom(lo.div_bound(d), hi.div_bound(d), why, b);
        let one = AffineForm::atom(q);
        let c1 = one.scale(d).add(&rest, -1);
        let c2 = rest.add(&one, -d).plus(-(d - 1));
        let deps = eval.atoms.depends(&[&rest]);
        let cons = vec![eval.atoms.con(c1), eval.atoms.con(c2)];
        let a = &mut eval.atoms[q];
        a.cons = cons;
        a.deps = deps;
        a.floor = Some(Rc::new((rest.clone(), d)));
        q
    });
    whole.add(&AffineForm::atom(q), 1)
}

/// `floor(F / u) + I`, with integers only in I, as the numerator over u: `F + u*I`. Then
/// `floor((floor(F / u) + I) / d) = floor((F + u*I) / (u*d))`.
pub(crate) fn nested_floor(atoms: &Atoms, f: &AffineForm) -> Option<(AffineForm, Int)> {
    let mut found = f.terms.iter().filter(|t| t.1 == 1 && atoms[t.0].floor.is_some());
    let (x, _) = *found.next()?;
    if found.next().is_some() {
        return None;
    }
    let inner = atoms[x].floor.clone()?;
    let others = f.without(x);
    // Saturated or unbounded parts are no integers to calculate with.
    let big = |v: Int| v.abs() > 1 << 70;
    let unit = inner.1;
    if big(unit) || big(others.c) || others.terms.iter().chain(&inner.0.terms).any(|t| big(t.1)) || big(inner.0.c) {
        return None;
    }
    others.combine(unit, &inner.0, Int::new(1)).map(|n| (n, unit))
}

/// Division by a rounded reciprocal: `floor(m*n / d)` is `floor(n / e)` for `e = ceil(d / m)`,
/// when every n is in `0..d / (m*e - d)`.
pub(crate) fn reciprocal(f: AffineForm, d: Int, (lo, hi): (Int, Int)) -> (AffineForm, Int) {
    let m = f.gcd();
    if f.c != 0 || m < 2 || lo < 0 || hi >= INF || m >= d {
        return (f, d);
    }
    let e = -((-d).div_euclid(m));
    let error = m * e - d;
    // n * error < d, with n at most hi / m.
    if hi.div_euclid(m).checked_mul(error).is_none_or(|x| x >= d) {
        return (f, d);
    }
    let n = AffineForm { terms: f.terms.iter().map(|t| (t.0, t.1.div_euclid(m))).collect(), c: Int::new(0) };
    (n, e)
}

/// Replaces pointer atoms by their values.
pub(crate) fn concrete(atoms: &Atoms, f: &AffineForm) -> AffineForm {
    let given = |x: AtomId| matches!(atoms[x].kind, AtomKind::Param(_));
    let mut f = f.clone();
    if !f.terms.iter().any(|t| given(t.0)) {
        return f;
    }
    for (x, c) in f.terms.clone() {
        let a = &atoms[x];
        if given(x) {
            f = f.without(x).plus(c.wrapping_mul(a.lo));
        }
    }
    f
}

/// Product of two integer or modular forms.
pub(crate) fn mul(eval: &mut Eval<'_>, a: &AffineForm, b: &AffineForm, bits: u32, home: BlockId) -> AffineForm {
    let (a, b) = (concrete(&eval.atoms, a), concrete(&eval.atoms, b));
    if let Some(c) = a.as_const() {
        return b.scale(c);
    }
    if let Some(c) = b.as_const() {
        return a.scale(c);
    }
    let (ca, cb) = (a.c, b.c);
    let (va, vb) = (a.plus(-ca), b.plus(-cb));
    let linear = va.scale(cb).add(&vb, ca).plus(ca.wrapping_mul(cb));
    let (la, ha) = eval.bounds(&va, home);
    let (lb, hb) = eval.bounds(&vb, home);
    if ha >= INF || hb >= INF || la <= -INF || lb <= -INF {
        let why = eval.atoms.why(&va).or_else(|| eval.atoms.why(&vb)).unwrap_or(Reason::Loop);
        // Congruent, but nothing is known of the product as a number.
        let p = eval.keyed(AtomKey::Mul(va.clone(), vb.clone(), home), |eval| {
            let p = eval.atoms.new_atom(-INF, INF, Some(why), home);
            eval.atoms[p].deps = eval.atoms.depends(&[&va, &vb]);
            p
        });
        let _ = bits;
        return linear.add(&AffineForm::atom(p), 1);
    }
    let why = eval.atoms.why(&va).or_else(|| eval.atoms.why(&vb));
    let p = eval.keyed(AtomKey::Mul(va.clone(), vb.clone(), home), |eval| {
        let corners = [la.mul_sat(lb), la.mul_sat(hb), ha.mul_sat(lb), ha.mul_sat(hb)];
        let lo = corners.into_iter().fold(INF, Int::min);
        let hi = corners.into_iter().fold(-INF, Int::max);
        let p = eval.atoms.new_atom(lo, hi, why, home);
        let deps = eval.atoms.depends(&[&va, &vb]);
        let one = AffineForm::atom(p);
        eval.atoms[p].deps = deps;
        let small = ha < 1 << 62 && hb < 1 << 62;
        if why.is_none() && la >= 0 && lb >= 0 && small {
            // McCormick.
            let k = la * lb;
            eval.atoms[p].cons = vec![
                eval.atoms.con(one.add(&va, -hb)),
                eval.atoms.con(one.add(&vb, -ha)),
                eval.atoms.con(va.scale(lb).add(&vb, la).add(&one, -1).plus(-k)),
            ];
        }
        p
    });
    linear.add(&AffineForm::atom(p), 1)
}

/// An integer representative with finite bounds.
pub(crate) fn number(eval: &mut Eval<'_>, f: &AffineForm, bits: u32, b: BlockId) -> AffineForm {
    let (m, half) = (Int::pow2(bits), Int::pow2(bits - 1));
    let (lo, hi) = eval.atoms.boxed(f, false);
    if -half <= lo && hi < m {
        return f.clone();
    }
    let (lo, hi) = eval.bounds(f, b);
    if -half <= lo && hi < m { f.clone() } else { interp(eval, f, bits, false, b) }
}
