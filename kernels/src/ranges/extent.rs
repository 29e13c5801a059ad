//! From the form of an address to bases and byte sets.
//!
//! Exactness: the set of addresses is the image of the threads that execute the access. It is claimed only when the form
//! splits into groups of atoms that are independent of each other, each group is dense (its values form one progression
//! without gaps), every guard on the way is a bound on exactly one group's value, and every guard on the way is known.

use super::compact::{clamp, merge};
use super::eval::{AtomKind, Eval};
use super::facts::{Con, Facts};
use super::form::{AtomId, Form, INF, Int, gcd, mul_sat};
use super::logic::Cond;
use super::node::{Access, NodeId, Target};
use crate::access::{Dim, Extent};
use crate::ir::{BlockId, Reason};
use smallvec::SmallVec;
use std::rc::Rc;

/// An access before its bounds are found.
pub(super) struct Ready {
    pub cons: Rc<Facts>,
    /// The addresses it may have.
    pub forms: Vec<Form>,
    /// Bytes.
    pub width: Int,
    /// Nothing else decides whether and where it happens.
    pub complete: bool,
}

/// A base candidate of an access, and the bytes relative to its value.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Reached {
    pub base: RawBase,
    pub several: bool,
    pub extent: Extent,
}

/// A base before parameter values are put in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RawBase {
    Word(u16),
    Symbol(u32),
    ParamAddress(u16),
    /// Texture (false) or surface handle.
    Handle(u16, bool),
    Absolute,
    /// The addresses that a table holds: `count` 8-byte words from `lo` on behind a parameter word, `stride` bytes apart.
    Table {
        word: u16,
        lo: i64,
        stride: u64,
        count: u64,
    },
    Unknown,
}

/// Alternatives that one address is expanded to.
const MAX_ALTERNATIVES: usize = 256;

impl Eval<'_> {
    /// All that one access may reach in this launch; empty when it is never executed.
    pub(super) fn access(&mut self, acc: &Access, out: &mut Vec<Reached>) {
        if let Target::Bulk(n, size) = acc.target {
            return self.bulk(acc, n, size, out);
        }
        if let Some(r) = self.ready(acc) {
            r.forms.iter().for_each(|f| self.one_form(f, &r.cons, r.width, acc.block, r.complete, out));
        }
    }

    /// What holds when an access is made, and whether that is all that decides it; `None` when it is never made.
    fn guarded(&mut self, acc: &Access) -> Option<(Rc<Facts>, bool)> {
        self.end_reserve();
        if !self.reachable(acc.block) {
            return None;
        }
        self.reserve();
        let mut cons = self.ctx(acc.block);
        let mut complete = true;
        if let Some(g) = acc.guard {
            let c = self.evp(g);
            if c == Cond::False {
                return None;
            }
            complete = self.fully(&c);
            cons = Rc::new(cons.and(&self.conj(&c, false)));
        }
        self.reserve();
        Some((cons, complete))
    }

    /// The addresses of an access, with what holds when it is made.
    pub(super) fn ready(&mut self, acc: &Access) -> Option<Ready> {
        let Target::Address(n) = acc.target else { return None };
        let (cons, complete) = self.guarded(acc)?;
        let f = self.ev(n);
        let forms = self.expand(&f);
        let complete = complete && forms[..] == [f] && self.path_complete(acc.block);
        Some(Ready { cons, forms, width: Int::from(acc.bytes), complete })
    }

    fn bulk(&mut self, acc: &Access, n: NodeId, size: NodeId, out: &mut Vec<Reached>) {
        let Some((cons, complete)) = self.guarded(acc) else { return };
        let size = self.ev(size);
        let size = self.interp(&size, 32, false, acc.block);
        let (_, width) = self.bounds_in(&size, &cons, true);
        if width >= INF {
            return self.unknown_access(n, self.why(&size).unwrap_or(Reason::Budget), out);
        }
        let f = self.ev(n);
        let complete = complete && size.is_const() && self.path_complete(acc.block);
        for g in self.expand(&f) {
            self.one_form(&g, &cons, width, acc.block, complete && g == f, out);
        }
    }

    /// Offsets of parameters that a number is the address of; `None` when it may be another address.
    pub(super) fn param_offsets(&mut self, n: NodeId) -> Option<SmallVec<[u16; 2]>> {
        let f = self.ev(n);
        let mut out: SmallVec<[u16; 2]> = SmallVec::new();
        for g in self.expand(&f) {
            let [(x, 1)] = g.terms[..] else { return None };
            let AtomKind::ParamAddress(p) = self.a(x).kind else { return None };
            let at = p.wrapping_add(u16::try_from(g.c.rem_euclid(1 << 16)).ok()?);
            if usize::from(at) >= self.launch.params.len() {
                return None;
            }
            if !out.contains(&at) {
                out.push(at);
            }
        }
        Some(out)
    }

    fn unknown_access(&mut self, n: NodeId, reason: Reason, out: &mut Vec<Reached>) {
        let f = self.ev(n);
        for g in self.expand(&f) {
            let bases = self.bases(&g);
            let several = bases.len() > 1;
            if bases.is_empty() {
                out.push(Reached { base: RawBase::Unknown, several: false, extent: Extent::Unknown { reason } });
            }
            for (_, base) in bases {
                out.push(Reached { base, several, extent: Extent::Unknown { reason } });
            }
        }
    }

    /// Replaces choices by their alternatives.
    pub(super) fn expand(&self, f: &Form) -> Vec<Form> {
        let mut out = Vec::new();
        let mut work = vec![f.clone()];
        while let Some(g) = work.pop() {
            let choice = g.terms.iter().find_map(|t| Some((t.0, t.1, self.a(t.0).alts.clone()?)));
            match choice {
                Some((x, c, alts)) if out.len() + work.len() + alts.len() <= MAX_ALTERNATIVES => {
                    let rest = g.without(x);
                    work.extend(alts.iter().map(|a| rest.add(a, c).norm(64)));
                }
                _ => out.push(g),
            }
        }
        out
    }

    pub(super) fn bases(&self, f: &Form) -> SmallVec<[(AtomId, RawBase); 2]> {
        f.terms
            .iter()
            .filter(|t| t.1 == 1)
            .filter_map(|t| {
                let base = match self.a(t.0).kind {
                    AtomKind::Param(p) => RawBase::Word(p),
                    AtomKind::Symbol(s) => RawBase::Symbol(s),
                    AtomKind::ParamAddress(p) => RawBase::ParamAddress(p),
                    _ => return None,
                };
                Some((t.0, base))
            })
            .collect()
    }

    pub(super) fn one_form(
        &mut self,
        f: &Form,
        cons: &Facts,
        width: Int,
        b: BlockId,
        complete: bool,
        out: &mut Vec<Reached>,
    ) {
        let bases = self.bases(f);
        let opaque = f.terms.iter().find(|t| t.1 == 1 && self.a(t.0).opaque.is_some()).map(|t| self.a(t.0).opaque);
        // A window or local address is no global memory.
        if bases.is_empty()
            && f.terms.iter().any(|t| self.a(t.0).kind == AtomKind::Local || self.a(t.0).opaque == Some(Reason::Window))
        {
            return;
        }
        if bases.is_empty()
            && let Some(r) = self.through_table(f, cons, width, b, complete)
        {
            out.push(r);
            return;
        }
        if bases.is_empty() {
            // A pure number is a fixed address; anything else is of unknown origin.
            let whole = self.concrete(f);
            let extent = self.extent(&whole, cons, width, complete);
            let base = match &extent {
                Extent::Bounded { .. } if opaque.is_none() => RawBase::Absolute,
                _ => RawBase::Unknown,
            };
            if !is_dead(&extent) {
                let extent = if base == RawBase::Unknown {
                    Extent::Unknown { reason: self.why(f).unwrap_or(Reason::Loaded) }
                } else {
                    extent
                };
                out.push(Reached { base, several: false, extent });
            }
            return;
        }
        let several = bases.len() > 1;
        for (atom, base) in &bases {
            let rel = f.without(*atom);
            let rel = if several
                || rel.terms.iter().any(|t| matches!(self.a(t.0).kind, AtomKind::Param(_) | AtomKind::Scalar(_)))
            {
                // Addresses wrap: a step back among the parameters is a number just below 2^64.
                self.concrete(&rel).norm(64)
            } else {
                rel
            };
            let extent = self.extent(&rel, cons, width, complete);
            if is_dead(&extent) {
                continue;
            }
            // The other bases are somewhere: their boxes say nothing.
            out.push(Reached { base: *base, several, extent });
        }
        if let Some(reason) = opaque.flatten()
            && out.last().is_some_and(|r| matches!(r.extent, Extent::Unknown { .. }))
            && reason != Reason::Pairing
        {
            // Unscaled and unknown: the parameter word may be the offset and the unknown term the pointer.
            for r in out.iter_mut().rev().take(bases.len()) {
                r.several = true;
            }
            out.push(Reached { base: RawBase::Unknown, several: true, extent: Extent::Unknown { reason } });
        }
    }

    /// The byte set of an offset form under constraints.
    pub(super) fn extent(&mut self, f: &Form, cons: &Facts, width: Int, complete: bool) -> Extent {
        if let Some(e) = cons.known_extent(f, width, complete, self.epoch) {
            return e;
        }
        let e = self.find_extent(f, cons, width, complete);
        if !self.exhausted() {
            cons.learn_extent(f, width, complete, self.epoch, &e);
        }
        e
    }

    fn find_extent(&self, f: &Form, cons: &Facts, width: Int, complete: bool) -> Extent {
        let (mut lo, mut hi) = self.bounds_in(f, cons, true);
        let mut complete = complete;
        if (lo <= -INF) != (hi >= INF) {
            // A guard clamps one end of an unknown value; its type clamps the other (an unsigned index below n).
            let (l, h) = self.bounds_in(f, cons, false);
            if l > -INF && h < INF && h - l < 1 << 32 {
                (lo, hi) = (l, h);
                complete = false;
            }
        }
        if lo <= -INF || hi >= INF {
            let reason = self.reason(f);
            return Extent::Unknown { reason };
        }
        if lo > hi || width == 0 {
            // Guards contradict each other: never executed.
            return dead();
        }
        let (Ok(l), Ok(h), Ok(w)) = (i64::try_from(lo), i64::try_from(hi + width), u32::try_from(width)) else {
            return Extent::Unknown { reason: Reason::MayWrap };
        };
        let (dims, exact) = self.shape(f, cons, (lo, hi), width, complete);
        Extent::Bounded { lo: l, hi: h, dims, width: w, exact }
    }

    fn reason(&self, f: &Form) -> Reason {
        if let Some(r) = self.why(f) {
            return r;
        }
        // Hidden below: the first opaque atom in what the form rests on.
        let mut work: Vec<AtomId> = f.terms.iter().map(|t| t.0).collect();
        let mut seen = Vec::new();
        while let Some(a) = work.pop() {
            if seen.contains(&a) {
                continue;
            }
            seen.push(a);
            if let Some(r) = self.a(a).opaque {
                return r;
            }
            work.extend(self.a(a).deps.iter().copied());
        }
        Reason::Loop
    }

    /// Is the whole of a condition captured by constraints?
    fn fully(&self, c: &Cond) -> bool {
        match c {
            Cond::True | Cond::Le(_) | Cond::Eq(_) => true,
            // At the end of a range it is an inequality (see `conj`).
            Cond::Ne(f) => {
                let (lo, hi) = self.bounds_in(f, &self.none, false);
                lo == 0 || hi == 0
            }
            Cond::And(v) => v.iter().all(|c| self.fully(c)),
            _ => false,
        }
    }

    /// Are all decisions between the entry and block `b` captured by its constraints?
    fn path_complete(&mut self, b: BlockId) -> bool {
        if self.paths.contains(&b) {
            return true;
        }
        // A loop on the way may not have been looked at yet.
        let c = self.captured_way(b);
        if c {
            self.paths.insert(b);
        }
        c
    }

    fn captured_way(&mut self, b: BlockId) -> bool {
        if self.cfg.irreducible {
            return false;
        }
        let mut x = b;
        while x.0 != 0 {
            let d = self.cfg.idom[x.0 as usize];
            if self.cfg.post_dominates(x, d) {
                // Reached whatever is decided in between (loops end).
            } else if self.cfg.outer_preds(x)[..] == [d] {
                let c = self.edge(d, x);
                if !self.fully(&c) || (self.cfg.succs[d.0 as usize].len() > 1 && self.f_conds[d.0 as usize].is_none()) {
                    return false;
                }
            } else {
                return false;
            }
            x = d;
        }
        // Inside a loop the threads that reach iteration k are those that passed every condition before: only loops whose
        // conditions are captured in full.
        (0..self.cfg.loops.len()).all(|l| !self.cfg.loops[l].members[b.0 as usize] || self.exact_trip[l])
    }

    /// Progressions that cover the form's values, and whether they are exactly those values.
    fn shape(
        &self,
        f: &Form,
        cons: &Facts,
        (lo, hi): (Int, Int),
        width: Int,
        complete: bool,
    ) -> (SmallVec<[Dim; 3]>, bool) {
        let terms: SmallVec<[(AtomId, Int); 6]> = f.terms.iter().copied().collect();
        let whole = gcd_of(&terms);
        let flat = |step: Int| -> SmallVec<[Dim; 3]> {
            let mut v = SmallVec::new();
            if hi > lo && step > 0 {
                v.push(Dim { stride: clamp(step), count: clamp((hi - lo) / step + 1) });
            }
            v
        };
        if terms.is_empty() {
            let exact = complete && cons.is_empty();
            return (SmallVec::new(), exact);
        }
        let groups = self.groups(&terms, cons);
        let mut dims: SmallVec<[(Int, Int); 4]> = SmallVec::new();
        let (mut slo, mut shi) = (f.c, f.c);
        let mut exact = complete;
        for g in &groups {
            let part = Form { terms: g.iter().copied().collect(), c: 0 };
            let (l, h) = self.bounds_in(&part, cons, true);
            if l <= -INF || h >= INF {
                return (flat(whole), false);
            }
            if l > h {
                return (flat(whole), false);
            }
            slo += l;
            shi += h;
            let step = gcd_of(g);
            if h > l {
                dims.push((step, (h - l) / step + 1));
            }
            exact = exact && self.dense(g, step) && self.reached(g, &groups, cons, (l, h), step);
        }
        if (slo, shi) != (lo, hi) {
            return (flat(whole), false);
        }
        exact = exact && self.guards_within(&groups, cons);
        let (mut dims, merged_exact) = merge(dims, width);
        exact = exact && merged_exact;
        if dims.len() > 3 {
            dims.clear();
            return (flat(whole), false);
        }
        (dims.into_iter().map(|d| Dim { stride: clamp(d.0), count: clamp(d.1) }).collect(), exact)
    }

    /// Splits the terms of a form into sets that no constraint ties together.
    fn groups(&self, terms: &[(AtomId, Int)], cons: &[Con]) -> Vec<SmallVec<[(AtomId, Int); 4]>> {
        let n = terms.len();
        let mut set: Vec<usize> = (0..n).collect();
        let tie = |c: &Form, set: &mut Vec<usize>| {
            let mut first = None;
            for (k, t) in terms.iter().enumerate() {
                if c.has(t.0) {
                    match first {
                        None => first = Some(set[k]),
                        Some(s) => {
                            let old = set[k];
                            set.iter_mut().filter(|x| **x == old).for_each(|x| *x = s);
                        }
                    }
                }
            }
        };
        for c in cons {
            tie(c, &mut set);
        }
        for t in terms {
            for c in &self.a(t.0).cons {
                tie(c, &mut set);
            }
        }
        let mut out: Vec<SmallVec<[(AtomId, Int); 4]>> = Vec::new();
        let mut seen: Vec<usize> = Vec::new();
        for k in 0..n {
            match seen.iter().position(|s| *s == set[k]) {
                Some(p) => out[p].push(terms[k]),
                None => {
                    seen.push(set[k]);
                    out.push(SmallVec::from_slice(&[terms[k]]));
                }
            }
        }
        out
    }

    /// Do the values of a group form a progression without gaps? Its atoms must be indices or counters whose ranges,
    /// ordered by coefficient, each reach to the next (mixed radix).
    fn dense(&self, g: &[(AtomId, Int)], step: Int) -> bool {
        let mut v: SmallVec<[(Int, Int); 4]> = SmallVec::new();
        for (x, c) in g {
            let a = self.a(*x);
            let free = match a.kind {
                AtomKind::Index => true,
                AtomKind::Iteration(l) => self.exact_trip[l as usize],
                _ => false,
            };
            // Mixed signs are no mixed radix.
            if !free || (*c > 0) != (g[0].1 > 0) {
                return false;
            }
            v.push((c.abs(), if self.is_counter(*x) { INF } else { a.hi - a.lo + 1 }));
        }
        v.sort_unstable();
        let mut reach = step;
        for (c, count) in &v {
            if c % step != 0 || *c > reach {
                return false;
            }
            reach = if *count >= INF { INF } else { reach.saturating_add(c.saturating_mul(count - 1)).min(INF) };
        }
        true
    }

    fn is_counter(&self, x: AtomId) -> bool {
        matches!(self.a(x).kind, AtomKind::Iteration(_))
    }

    /// The range of a dense group's sum when only its indices' boxes count (counters are unbounded above).
    fn free_range(&self, g: &[(AtomId, Int)]) -> (Int, Int) {
        let (mut lo, mut hi) = (0, 0);
        for (x, c) in g {
            let a = self.a(*x);
            let top = if self.is_counter(*x) { INF } else { a.hi };
            let (p, q) =
                if *c > 0 { (mul_sat(*c, a.lo), mul_sat(*c, top)) } else { (mul_sat(*c, top), mul_sat(*c, a.lo)) };
            lo = -super::form::add_hi(-lo, -p);
            hi = super::form::add_hi(hi, q);
        }
        (lo, hi)
    }

    /// Are the bounds of a dense group really reached: is each the end of its free range, or of a constraint on this very
    /// sum?
    fn reached(
        &self,
        g: &SmallVec<[(AtomId, Int); 4]>,
        groups: &[SmallVec<[(AtomId, Int); 4]>],
        cons: &[Con],
        (l, h): (Int, Int),
        step: Int,
    ) -> bool {
        let (mut lo, mut hi) = self.free_range(g);
        // Values are congruent to any of the free ends modulo the step.
        let origin = if lo > -INF { lo } else { hi };
        for c in self.all_constraints(groups, cons) {
            let c = self.concrete(&c);
            let Some((k0, c0)) = proportional(&c, g) else { continue };
            // c = (k0/c0) * sum + c.c <= 0
            let bound = -c.c * c0;
            if (k0 > 0) == (c0 > 0) {
                let b = floor_ratio(bound, k0);
                hi = hi.min(b - (b - origin).rem_euclid(step));
            } else {
                let b = -floor_ratio(-bound, k0);
                lo = lo.max(b + (origin - b).rem_euclid(step));
            }
        }
        (lo, hi) == (l, h)
    }

    fn all_constraints(&self, groups: &[SmallVec<[(AtomId, Int); 4]>], cons: &[Con]) -> Vec<Con> {
        let mut all: Vec<Con> = cons.to_vec();
        for (x, _) in groups.iter().flatten() {
            all.extend(self.a(*x).cons.iter().cloned());
        }
        all
    }

    /// Is every constraint decided by the boxes, a bound on exactly one group's sum, implied by such a bound, or about one
    /// index that the address does not contain?
    fn guards_within(&self, groups: &[SmallVec<[(AtomId, Int); 4]>], cons: &[Con]) -> bool {
        let all = self.all_constraints(groups, cons);
        let concrete: Vec<Form> = all.iter().map(|c| self.concrete(c)).collect();
        let on_group = |c: &Form| groups.iter().any(|g| proportional(c, g).is_some());
        concrete.iter().all(|c| {
            if self.boxed(c, false).1 <= 0 || on_group(c) {
                return true;
            }
            if let [(x, _)] = c.terms[..]
                && self.a(x).kind == AtomKind::Index
                && !groups.iter().flatten().any(|t| t.0 == x)
                && concrete.iter().all(|o| !o.has(x) || o.terms.len() == 1)
            {
                // Another coordinate is restricted, by itself: are threads left?
                let (mut lo, mut hi) = (self.a(x).lo, self.a(x).hi);
                for o in concrete.iter().filter(|o| o.has(x)) {
                    let k = o.coef(x);
                    if k > 0 {
                        hi = hi.min(floor_ratio(-o.c, k));
                    } else {
                        lo = lo.max(-floor_ratio(-o.c, -k));
                    }
                }
                return lo <= hi;
            }
            // Implied: c <= r*q for a bound q <= 0.
            concrete.iter().filter(|q| on_group(q)).any(|q| {
                c.terms.iter().any(|(x, cx)| {
                    let qx = q.coef(*x);
                    qx != 0
                        && (qx > 0) == (*cx > 0)
                        && c.combine(qx.abs(), q, -cx.abs()).is_some_and(|d| self.boxed(&d, false).1 <= 0)
                })
            })
        })
    }
}

/// When a constraint is about a group's sum alone: its coefficient and the sum's, of one atom.
fn proportional(c: &Form, g: &[(AtomId, Int)]) -> Option<(Int, Int)> {
    let (x0, c0) = *g.first()?;
    let k0 = c.coef(x0);
    let fits = c.terms.len() == g.len() && k0 != 0 && g.iter().all(|(x, cx)| c.coef(*x) * c0 == k0 * cx);
    fits.then_some((k0, c0))
}

/// `floor(a / b)`
fn floor_ratio(a: Int, b: Int) -> Int {
    let q = a / b;
    if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q }
}

fn gcd_of(t: &[(AtomId, Int)]) -> Int {
    t.iter().fold(0, |g, t| gcd(g, t.1))
}

/// The extent of an access that never happens.
fn dead() -> Extent {
    Extent::Bounded { lo: 0, hi: 0, dims: SmallVec::new(), width: 0, exact: true }
}

fn is_dead(e: &Extent) -> bool {
    matches!(e, Extent::Bounded { width: 0, .. })
}
