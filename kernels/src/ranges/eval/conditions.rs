//! Conditions: the truth of a predicate in a launch, the constraints that it implies, and the
//! guards of blocks and edges.
//!
//! Owns conditions. The numbers that they compare come from `value`.

use crate::ir::{BlockId, Cmp, Combine};
use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::condition::{Cond, Fact, table};
use crate::ranges::domain::constraints::ConstraintRef;
use crate::ranges::eval::Eval;
use crate::ranges::graph::node::{Kind, NodeId};
use serde::{Deserialize, Serialize};

/// A branch as `eval` sees it: which successor is taken when the condition holds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Branch {
    pub(crate) cond: NodeId,
    pub(crate) taken: Option<BlockId>,
    pub(crate) fall: Option<BlockId>,
}

impl Eval<'_> {
    /// Truth of a predicate node.
    pub(crate) fn truth(&mut self, n: NodeId) -> Cond {
        let node = self.g.node(n);
        let b = node.home;
        match &node.kind {
            Kind::Const(c) => Cond::of(*c != 0),
            Kind::Not(p) => self.ev_pred(*p).negate(),
            Kind::Cmp(c, signed, x, y) => self.compare(*c, *signed, *x, *y, b),
            Kind::FloatCmp(holds, flush, x, y) => self.compare_floats(*holds, *flush, *x, *y),
            Kind::Combine(how, p, q) => {
                let p = self.ev_pred(*p);
                let q = self.ev_pred(*q);
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
                let v = s.map(|p| self.ev_pred(p));
                table(v, *lut)
            }
            Kind::NonZero(x) => {
                let bits = self.g.node(*x).width.bits();
                let f = self.ev(*x);
                let f = self.interp(&f, bits, false, b);
                match self.decide(Cond::Ne(f), b) {
                    c @ (Cond::True | Cond::False) => c,
                    c => match self.any_bit(*x) {
                        Cond::Unknown => c,
                        bits => bits,
                    },
                }
            }
            Kind::Sel(p, x, y) => {
                let p = self.ev_pred(*p);
                match p {
                    Cond::True => self.ev_pred(*x),
                    Cond::False => self.ev_pred(*y),
                    p => {
                        let x = self.ev_pred(*x);
                        let y = self.ev_pred(*y);
                        Cond::choice(p, x, y)
                    }
                }
            }
            Kind::Phi(arms) => {
                // Short circuits: a constant on one path says which path was taken when the value
                // differs from it.
                let mut live = Vec::new();
                for (p, v) in arms.clone() {
                    if !self.reachable(p) || self.edge(p, b) == Cond::False {
                        continue;
                    }
                    live.push(self.ev_pred(v));
                }
                Cond::joined(live)
            }
            Kind::LoopPhi(outer, back) => self.passed_on(n, outer, back),
            _ => Cond::Unknown,
        }
    }

    /// Comparisons of constants and parameters: a factor that is zero, as a rule.
    fn compare_floats(&mut self, holds: u8, flush: bool, x: NodeId, y: NodeId) -> Cond {
        let bits = self.g.node(x).width.bits();
        let v = [x, y].map(|n| {
            let f = self.ev(n);
            let v = self.concrete(&f).as_const()?.pin().rem_euclid(1 << bits) as u64;
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
    fn sign_test(&mut self, c: Cmp, x: NodeId, y: NodeId, b: BlockId) -> Option<Cond> {
        let Kind::Const(y) = self.g.node(y).kind else { return None };
        let bits = self.g.node(x).width.bits();
        let negative = match (c, y) {
            (Cmp::Lt, 0) => true,
            (Cmp::Ge, 0) => false,
            (Cmp::Le, y) if y == u64::MAX >> (64 - bits) => true,
            (Cmp::Gt, y) if y == u64::MAX >> (64 - bits) => false,
            _ => return None,
        };
        if !matches!(self.g.node(x).kind, Kind::Lop3(..) | Kind::Hi(_)) {
            return None;
        }
        let sign = self.is_negative(x, b, 4);
        Some(if negative { sign } else { sign.negate() })
    }

    /// Is a number negative, taken as signed?
    fn is_negative(&mut self, n: NodeId, b: BlockId, depth: u32) -> Cond {
        match self.g.node(n).kind {
            Kind::Lop3(lut, x, y, z) if depth > 0 => {
                let signs = [x, y, z].map(|operand| self.is_negative(operand, b, depth - 1));
                table(signs, lut)
            }
            Kind::Hi(whole) if depth > 0 => self.is_negative(whole, b, depth - 1),
            _ => {
                let bits = self.g.node(n).width.bits();
                let f = self.ev(n);
                let f = self.interp(&f, bits, true, b);
                self.decide(Cond::Le(f.plus(1)), b)
            }
        }
    }

    fn compare(&mut self, c: Cmp, signed: bool, x: NodeId, y: NodeId, b: BlockId) -> Cond {
        if signed && let Some(sign) = self.sign_test(c, x, y, b) {
            return sign;
        }
        let bits = self.g.node(x).width.bits();
        let (fx, fy) = (self.ev(x), self.ev(y));
        if matches!(c, Cmp::Eq | Cmp::Ne) {
            // Equal as forms: equal as registers.
            if fx.add(&fy, -1).norm(bits) == AffineForm::default() {
                return Cond::of(c == Cmp::Eq);
            }
        }
        let (ix, iy) = (self.interp(&fx, bits, signed, b), self.interp(&fy, bits, signed, b));
        let d = ix.add(&iy, -1);
        let c = match c {
            Cmp::Lt => Cond::Le(d.plus(1)),
            Cmp::Le => Cond::Le(d),
            Cmp::Gt => Cond::Le(d.scale(-1).plus(1)),
            Cmp::Ge => Cond::Le(d.scale(-1)),
            Cmp::Eq => Cond::Eq(d),
            Cmp::Ne => Cond::Ne(d),
        };
        self.decide(c, b)
    }

    pub(crate) fn decide(&mut self, c: Cond, b: BlockId) -> Cond {
        let (Cond::Le(f) | Cond::Eq(f) | Cond::Ne(f)) = &c else { return c };
        let (lo, hi) = match (self.atoms.boxed(f, false), self.assumed.is_some()) {
            // Decided by the boxes.
            (z, _) if z.0 > 0 || z.1 < 0 || (z.0 == 0 && z.1 == 0) || (z.1 == 0 && matches!(c, Cond::Le(_))) => z,
            (_, true) => self.atoms.bounds_in(f, &self.none, false),
            (_, false) => self.bounds(f, b),
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

    /// ConstraintSet implied by a condition.
    pub(crate) fn facts(&mut self, c: &Cond, out: &mut Vec<Fact>) {
        match c {
            Cond::Le(f) => out.push(Fact::Le(self.atoms.con(f.clone().tighten()))),
            Cond::Eq(f) => {
                out.push(Fact::Le(self.atoms.con(f.clone().tighten())));
                out.push(Fact::Le(self.atoms.con(f.scale(-1).tighten())));
            }
            Cond::Ne(f) => out.push(Fact::Ne(f.clone())),
            Cond::And(v) => v.iter().for_each(|c| self.facts(c, out)),
            Cond::Or(v) => {
                // All but one of the alternatives decided elsewhere are gone by now; one left is a
                // conjunction.
                if let [one] = v.as_slice() {
                    self.facts(one, out);
                }
            }
            Cond::True | Cond::False | Cond::Unknown => {}
        }
    }

    /// Constraints implied by a condition. `keep`: has every part of the condition become a
    /// constraint?
    pub(crate) fn conj(&mut self, c: &Cond, _keep: bool) -> Vec<ConstraintRef> {
        let mut facts = Vec::new();
        self.facts(c, &mut facts);
        facts
            .into_iter()
            .filter_map(|f| match f {
                Fact::Le(c) => Some(c),
                Fact::Ne(f) => {
                    // x != 0 at the end of x's range.
                    let (lo, hi) = self.atoms.bounds_in(&f, &self.none, false);
                    if lo == 0 {
                        Some(self.atoms.con(f.scale(-1).plus(1)))
                    } else if hi == 0 {
                        Some(self.atoms.con(f.plus(1)))
                    } else {
                        None
                    }
                }
            })
            .collect()
    }

    /// Condition of the edge p -> b.
    pub(crate) fn edge(&mut self, p: BlockId, b: BlockId) -> Cond {
        let Some(br) = self.branches[p.0 as usize] else { return Cond::True };
        if br.taken == br.fall {
            return Cond::True;
        }
        let c = self.ev_pred(br.cond);
        if br.taken == Some(b) { c } else { c.negate() }
    }

    /// Constraints on the edge p -> b besides those of p.
    pub(crate) fn edge_facts(&mut self, p: BlockId, b: BlockId) -> Vec<ConstraintRef> {
        let c = self.edge(p, b);
        self.conj(&c, false)
    }

    /// Constraints of block `p` and of the edge p -> b.
    pub(crate) fn arm_facts(&mut self, p: BlockId, b: BlockId) -> Vec<ConstraintRef> {
        let mut v = self.ctx(p).to_vec();
        v.extend(self.edge_facts(p, b));
        v
    }

    pub(crate) fn dominator_facts(&mut self, b: BlockId) -> Vec<ConstraintRef> {
        let d = self.cfg.idom[b.0 as usize];
        let mut r = self.ctx(d).to_vec();
        if self.cfg.outer_preds(b)[..] == [d] {
            r.extend(self.edge_facts(d, b));
        }
        r
    }

    pub(crate) fn may_reach(&mut self, b: BlockId) -> bool {
        let d = self.cfg.idom[b.0 as usize];
        if !self.reachable(d) {
            return false;
        }
        let preds = self.cfg.outer_preds(b);
        if preds[..] == [d] {
            return self.edge(d, b) != Cond::False;
        }
        // Back edges into an irreducible region count as ways in.
        preds.iter().any(|p| {
            let back = self.cfg.order[p.0 as usize] >= self.cfg.order[b.0 as usize];
            back || (self.edge(*p, b) != Cond::False && (*p == d || self.reachable(*p)))
        })
    }
}
