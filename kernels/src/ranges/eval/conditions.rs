//! Conditions: the truth of a predicate in a launch, the constraints that it implies, and the
//! guards of blocks and edges.
//!
//! Owns conditions. The numbers that they compare come from `value`.

use crate::ir::{BlockId, Cmp, Combine};
use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::condition::{Cond, Fact, table};
use crate::ranges::domain::constraints::ConstraintRef;
use crate::ranges::domain::int::Int;
use crate::ranges::eval::Eval;
use crate::ranges::eval::no_wrap::{concrete, interp};
use crate::ranges::eval::predicate_masks::{any_bit, passed_on};
use crate::ranges::graph::node::{Kind, NodeId};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A branch as `eval` sees it: which successor is taken when the condition holds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Branch {
    pub(crate) cond: NodeId,
    pub(crate) taken: Option<BlockId>,
    pub(crate) fall: Option<BlockId>,
}

/// Truth of a predicate node.
pub(crate) fn truth(eval: &mut Eval<'_>, n: NodeId) -> Cond {
    let node = eval.g.node(n);
    let b = node.home;
    match &node.kind {
        Kind::Const(c) => Cond::of(*c != 0),
        Kind::Not(p) => eval.ev_pred(*p).negate(),
        Kind::Cmp(c, signed, x, y) => compare(eval, *c, *signed, *x, *y, b),
        Kind::FloatCmp(holds, flush, x, y) => compare_floats(eval, *holds, *flush, *x, *y),
        Kind::Combine(how, p, q) => {
            let p = eval.ev_pred(*p);
            let q = eval.ev_pred(*q);
            match how {
                Combine::And => Cond::all([p, q]),
                Combine::Or => Cond::any([p, q]),
                Combine::Xor => match (p.known(), q.known()) {
                    (Some(a), _) => {
                        if a {
                            q.negate()
                        } else {
                            q
                        }
                    }
                    (_, Some(a)) => {
                        if a {
                            p.negate()
                        } else {
                            p
                        }
                    }
                    _ => Cond::Unknown,
                },
            }
        }
        Kind::PLut(lut, s) => {
            let v = s.map(|p| eval.ev_pred(p));
            table(v, *lut)
        }
        Kind::NonZero(x) => {
            let bits = eval.g.node(*x).width.bits();
            let f = eval.ev(*x);
            let f = interp(eval, &f, bits, false, b);
            match decide(eval, Cond::Ne(f), b) {
                c @ (Cond::True | Cond::False) => c,
                c => match any_bit(eval, *x) {
                    Cond::Unknown => c,
                    bits => bits,
                },
            }
        }
        Kind::Sel(p, x, y) => {
            let p = eval.ev_pred(*p);
            match p {
                Cond::True => eval.ev_pred(*x),
                Cond::False => eval.ev_pred(*y),
                p => {
                    let x = eval.ev_pred(*x);
                    let y = eval.ev_pred(*y);
                    Cond::choice(p, x, y)
                }
            }
        }
        Kind::Phi(arms) => {
            // Short circuits: a constant on one path says which path was taken when the value
            // differs from it.
            let mut live = Vec::new();
            for (p, v) in arms.clone() {
                if !eval.reachable(p) || edge_condition(eval, p, b) == Cond::False {
                    continue;
                }
                live.push(eval.ev_pred(v));
            }
            Cond::joined(live)
        }
        Kind::LoopPhi(outer, back) => passed_on(eval, n, outer, back),
        _ => Cond::Unknown,
    }
}

/// Comparisons of constants and parameters: a factor that is zero, as a rule.
fn compare_floats(eval: &mut Eval<'_>, holds: u8, flush: bool, x: NodeId, y: NodeId) -> Cond {
    let bits = eval.g.node(x).width.bits();
    let v = [x, y].map(|n| {
        let f = eval.ev(n);
        let v = concrete(&eval.atoms, &f).as_const()?.pin().rem_euclid(1 << bits) as u64;
        let v = if bits == 64 { f64::from_bits(v) } else { f64::from(f32::from_bits(v as u32)) };
        let least = if bits == 64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
        Some(if flush && v.abs() < least { 0.0 } else { v })
    });
    let [Some(x), Some(y)] = v else { return Cond::Unknown };
    let way = x.partial_cmp(&y).map_or(3, |o| o as i8 + 1);
    Cond::of(holds >> way & 1 == 1)
}

/// A comparison with zero that only looks at the sign of bits that were joined, or of a high
/// word. (Compilers test that two numbers are not negative by the sign of `x | y`.)
fn sign_test(eval: &mut Eval<'_>, c: Cmp, x: NodeId, y: NodeId, b: BlockId) -> Option<Cond> {
    let Kind::Const(y) = eval.g.node(y).kind else { return None };
    let bits = eval.g.node(x).width.bits();
    let negative = match (c, y) {
        (Cmp::Lt, 0) => true,
        (Cmp::Ge, 0) => false,
        (Cmp::Le, y) if y == u64::MAX >> (64 - bits) => true,
        (Cmp::Gt, y) if y == u64::MAX >> (64 - bits) => false,
        _ => return None,
    };
    if !matches!(eval.g.node(x).kind, Kind::Lop3(..) | Kind::Hi(_)) {
        return None;
    }
    let sign = is_negative(eval, x, b, 4);
    Some(if negative { sign } else { sign.negate() })
}

/// Is a number negative, taken as signed?
fn is_negative(eval: &mut Eval<'_>, n: NodeId, b: BlockId, depth: u32) -> Cond {
    match eval.g.node(n).kind {
        Kind::Lop3(lut, x, y, z) if depth > 0 => {
            let signs = [x, y, z].map(|operand| is_negative(eval, operand, b, depth - 1));
            table(signs, lut)
        }
        Kind::Hi(whole) if depth > 0 => is_negative(eval, whole, b, depth - 1),
        _ => {
            let bits = eval.g.node(n).width.bits();
            let f = eval.ev(n);
            let f = interp(eval, &f, bits, true, b);
            decide(eval, Cond::Le(f.plus(1)), b)
        }
    }
}

/// An address and a number below all pointers, null as a rule: wherever the pointer leads to.
fn compare_addresses(eval: &Eval<'_>, c: Cmp, x: &AffineForm, y: &AffineForm) -> Option<bool> {
    let small = Int::pow2(32);
    let is_above = |address: &AffineForm, number: &AffineForm| {
        let below = number.as_const()?;
        let pointer = eval.pointer_in(address)?;
        let behind = address.without(pointer).as_const()?;
        (behind > -small && behind < small && below >= 0 && below < small).then_some(())
    };
    let order = match (is_above(x, y), is_above(y, x)) {
        (Some(()), _) => Ordering::Greater,
        (_, Some(())) => Ordering::Less,
        _ => return None,
    };
    Some(c.holds(order))
}

fn compare(eval: &mut Eval<'_>, c: Cmp, signed: bool, x: NodeId, y: NodeId, b: BlockId) -> Cond {
    if signed && let Some(sign) = sign_test(eval, c, x, y, b) {
        return sign;
    }
    let bits = eval.g.node(x).width.bits();
    let (fx, fy) = (eval.ev(x), eval.ev(y));
    if matches!(c, Cmp::Eq | Cmp::Ne) {
        // Equal as forms: equal as registers.
        if fx.add(&fy, -1).norm(bits) == AffineForm::default() {
            return Cond::of(c == Cmp::Eq);
        }
    }
    if bits == 64
        && let Some(outcome) = compare_addresses(eval, c, &fx, &fy)
    {
        return Cond::of(outcome);
    }
    let (ix, iy) = (interp(eval, &fx, bits, signed, b), interp(eval, &fy, bits, signed, b));
    let d = ix.add(&iy, -1);
    let c = match c {
        Cmp::Lt => Cond::Le(d.plus(1)),
        Cmp::Le => Cond::Le(d),
        Cmp::Gt => Cond::Le(d.scale(-1).plus(1)),
        Cmp::Ge => Cond::Le(d.scale(-1)),
        Cmp::Eq => Cond::Eq(d),
        Cmp::Ne => Cond::Ne(d),
    };
    decide(eval, c, b)
}

pub(crate) fn decide(eval: &mut Eval<'_>, c: Cond, b: BlockId) -> Cond {
    let (Cond::Le(f) | Cond::Eq(f) | Cond::Ne(f)) = &c else { return c };
    let (lo, hi) = match (eval.atoms.boxed(f, false), eval.assumed.is_some()) {
        // Decided by the boxes.
        (z, _) if z.0 > 0 || z.1 < 0 || (z.0 == 0 && z.1 == 0) || (z.1 == 0 && matches!(c, Cond::Le(_))) => z,
        (_, true) => eval.atoms.bounds_in(f, &eval.none, false),
        (_, false) => eval.bounds(f, b),
    };
    // 16*x == 10 has no solution.
    let g = f.gcd();
    let never = g > 1 && !f.c.divides(g);
    match &c {
        Cond::Eq(_) if never => Cond::False,
        Cond::Ne(_) if never => Cond::True,
        Cond::Le(_) if hi <= 0 => Cond::True,
        Cond::Le(_) if lo > 0 => Cond::False,
        Cond::Eq(_) if lo > 0 || hi < 0 => Cond::False,
        Cond::Eq(_) if lo == 0 && hi == 0 => Cond::True,
        Cond::Ne(_) if lo > 0 || hi < 0 => Cond::True,
        Cond::Ne(_) if lo == 0 && hi == 0 => Cond::False,
        _ => c,
    }
}

/// The facts that a condition implies.
pub(crate) fn implied_facts(eval: &mut Eval<'_>, c: &Cond, out: &mut Vec<Fact>) {
    match c {
        Cond::Le(f) => out.push(Fact::Le(eval.atoms.con(f.clone().tighten()))),
        Cond::Eq(f) => {
            out.push(Fact::Le(eval.atoms.con(f.clone().tighten())));
            out.push(Fact::Le(eval.atoms.con(f.scale(-1).tighten())));
        }
        Cond::Ne(f) => out.push(Fact::Ne(f.clone())),
        Cond::And(v) => v.iter().for_each(|c| implied_facts(eval, c, out)),
        Cond::Or(v) => {
            // All but one of the alternatives decided elsewhere are gone by now; one left is a
            // conjunction.
            if let [one] = v.as_slice() {
                implied_facts(eval, one, out);
            }
        }
        Cond::True | Cond::False | Cond::Unknown => {}
    }
}

/// Constraints implied by a condition.
pub(crate) fn implied_constraints(eval: &mut Eval<'_>, c: &Cond) -> Vec<ConstraintRef> {
    let mut facts = Vec::new();
    implied_facts(eval, c, &mut facts);
    facts
        .into_iter()
        .filter_map(|f| match f {
            Fact::Le(c) => Some(c),
            Fact::Ne(f) => {
                // x != 0 at the end of x's range.
                let (lo, hi) = eval.atoms.bounds_in(&f, &eval.none, false);
                if lo == 0 {
                    Some(eval.atoms.con(f.scale(-1).plus(1)))
                } else if hi == 0 {
                    Some(eval.atoms.con(f.plus(1)))
                } else {
                    None
                }
            }
        })
        .collect()
}

/// Condition of the edge p -> b.
pub(crate) fn edge_condition(eval: &mut Eval<'_>, p: BlockId, b: BlockId) -> Cond {
    let Some(br) = eval.branches[p.0 as usize] else { return Cond::True };
    if br.taken == br.fall {
        return Cond::True;
    }
    let c = eval.ev_pred(br.cond);
    if br.taken == Some(b) { c } else { c.negate() }
}

/// Constraints on the edge p -> b besides those of p.
pub(crate) fn edge_facts(eval: &mut Eval<'_>, p: BlockId, b: BlockId) -> Vec<ConstraintRef> {
    let c = edge_condition(eval, p, b);
    implied_constraints(eval, &c)
}

/// Constraints of block `p` and of the edge p -> b.
pub(crate) fn arm_facts(eval: &mut Eval<'_>, p: BlockId, b: BlockId) -> Vec<ConstraintRef> {
    let mut v = eval.ctx(p).to_vec();
    v.extend(edge_facts(eval, p, b));
    v
}

pub(crate) fn dominator_facts(eval: &mut Eval<'_>, b: BlockId) -> Vec<ConstraintRef> {
    let d = eval.cfg.idom[b.0 as usize];
    let mut r = eval.ctx(d).to_vec();
    if eval.cfg.outer_preds(b)[..] == [d] {
        r.extend(edge_facts(eval, d, b));
    }
    r
}

pub(crate) fn may_reach(eval: &mut Eval<'_>, b: BlockId) -> bool {
    let d = eval.cfg.idom[b.0 as usize];
    if !eval.reachable(d) {
        return false;
    }
    let preds = eval.cfg.outer_preds(b);
    if preds[..] == [d] {
        return edge_condition(eval, d, b) != Cond::False;
    }
    // Back edges into an irreducible region count as ways in.
    preds.iter().any(|p| {
        let back = eval.cfg.order[p.0 as usize] >= eval.cfg.order[b.0 as usize];
        back || (edge_condition(eval, *p, b) != Cond::False && (*p == d || eval.reachable(*p)))
    })
}
