//! From the form of an address to bases and byte sets.
//!
//! Owns the choice of bases and the bounds of offsets. Which of the byte sets are exact is decided
//! in `exactness`.

use crate::ir::Reason;
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::AtomKind;
use crate::ranges::domain::byte_set::{ByteSet, Dims};
use crate::ranges::domain::condition::Cond;
use crate::ranges::domain::constraints::ConstraintSet;
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::extent::reached::{AccessContext, ReachedBytes, SymbolicBase};
use crate::ranges::graph::node::{Access, NodeId, Target};
use smallvec::SmallVec;
use std::rc::Rc;

/// Alternatives that one address is expanded to.
const MAX_ALTERNATIVES: usize = 256;

impl Eval<'_> {
    /// All that one access may reach in this launch; empty when it is never executed.
    pub(crate) fn access(&mut self, acc: &Access, out: &mut Vec<ReachedBytes>) {
        let (n, size) = match acc.target {
            Target::Address(n) => (n, None),
            Target::Bulk(n, size) => (n, Some(size)),
            _ => return,
        };
        let Some((cons, mut complete)) = self.guarded(acc) else { return };
        let mut width = Int::from(acc.bytes);
        if let Some(size) = size {
            let size = self.ev(size);
            let size = self.interp(&size, 32, false, acc.block);
            (_, width) = self.atoms.bounds_in(&size, &cons, true);
            if width >= INF {
                return self.unknown_access(n, self.atoms.why(&size).unwrap_or(Reason::Budget), out);
            }
            complete &= size.is_const();
        }
        let f = self.ev(n);
        let forms = self.expand(&f);
        let complete = complete && forms[..] == [f] && self.path_complete(acc.block);
        let made = AccessContext { cons: &cons, width, block: acc.block, complete };
        forms.iter().for_each(|f| self.one_form(f, made, out));
    }

    /// What holds when an access is made, and whether that is all that decides it; `None` when it
    /// is never made.
    fn guarded(&mut self, acc: &Access) -> Option<(Rc<ConstraintSet>, bool)> {
        self.atoms.budget.end_reserve();
        if !self.reachable(acc.block) {
            return None;
        }
        self.reserve();
        let mut cons = self.ctx(acc.block);
        let mut complete = true;
        if let Some(g) = acc.guard {
            let c = self.ev_pred(g);
            if c == Cond::False {
                return None;
            }
            complete = self.fully(&c);
            cons = Rc::new(cons.and(&self.conj(&c, false)));
        }
        self.reserve();
        Some((cons, complete))
    }

    /// Offsets of parameters that a number is the address of; `None` when it may be another
    /// address.
    pub(crate) fn param_offsets(&mut self, n: NodeId) -> Option<SmallVec<[u16; 2]>> {
        let f = self.ev(n);
        let mut out: SmallVec<[u16; 2]> = SmallVec::new();
        for g in self.expand(&f) {
            let [(x, k)] = g.terms[..] else { return None };
            if k != 1 {
                return None;
            }
            let AtomKind::ParamAddress(p) = self.atoms[x].kind else { return None };
            let at = p.wrapping_add(u16::try_from(g.c.pin().rem_euclid(1 << 16)).ok()?);
            if usize::from(at) >= self.launch.params.len() {
                return None;
            }
            if !out.contains(&at) {
                out.push(at);
            }
        }
        Some(out)
    }

    fn unknown_access(&mut self, n: NodeId, reason: Reason, out: &mut Vec<ReachedBytes>) {
        let f = self.ev(n);
        for g in self.expand(&f) {
            let bases = self.bases(&g);
            let several = bases.len() > 1;
            if bases.is_empty() {
                out.push(ReachedBytes::new(SymbolicBase::Unknown, false, ByteSet::Unknown { reason }));
            }
            for (_, base) in bases {
                out.push(ReachedBytes::new(base, several, ByteSet::Unknown { reason }));
            }
        }
    }

    /// Replaces choices by their alternatives.
    pub(crate) fn expand(&self, f: &AffineForm) -> Vec<AffineForm> {
        let mut out = Vec::new();
        let mut work = vec![f.clone()];
        while let Some(g) = work.pop() {
            let choice = g.terms.iter().find_map(|t| Some((t.0, t.1, self.atoms[t.0].alts.clone()?)));
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

    pub(crate) fn bases(&self, f: &AffineForm) -> SmallVec<[(AtomId, SymbolicBase); 2]> {
        f.terms
            .iter()
            .filter(|t| t.1 == 1)
            .filter_map(|t| {
                let base = match self.atoms[t.0].kind {
                    AtomKind::Param(p) => SymbolicBase::Word(p),
                    AtomKind::Symbol(s) => SymbolicBase::Symbol(s),
                    AtomKind::ParamAddress(p) => SymbolicBase::ParamAddress(p),
                    _ => return None,
                };
                Some((t.0, base))
            })
            .collect()
    }

    fn one_form(&mut self, f: &AffineForm, made: AccessContext<'_>, out: &mut Vec<ReachedBytes>) {
        let bases = self.bases(f);
        let opaque =
            f.terms.iter().find(|t| t.1 == 1 && self.atoms[t.0].opaque.is_some()).map(|t| self.atoms[t.0].opaque);
        // A window or local address is no global memory.
        if bases.is_empty()
            && f.terms
                .iter()
                .any(|t| self.atoms[t.0].kind == AtomKind::Local || self.atoms[t.0].opaque == Some(Reason::Window))
        {
            return;
        }
        if bases.is_empty()
            && let Some(r) = self.through_table(f, made)
        {
            out.push(r);
            return;
        }
        if bases.is_empty() {
            // A pure number is a fixed address; anything else is of unknown origin.
            let whole = self.concrete(f);
            let extent = self.extent(&whole, made);
            let base = match &extent {
                ByteSet::Bounded { .. } if opaque.is_none() => SymbolicBase::Absolute,
                _ if self.is_loaded_pointer(f) => SymbolicBase::Loaded,
                _ => SymbolicBase::Unknown,
            };
            if !is_dead(&extent) {
                let extent = if base == SymbolicBase::Absolute {
                    extent
                } else {
                    ByteSet::Unknown { reason: self.atoms.why(f).unwrap_or(Reason::Loaded) }
                };
                out.push(ReachedBytes::new(base, false, extent));
            }
            return;
        }
        let several = bases.len() > 1;
        for (atom, base) in &bases {
            let rel = f.without(*atom);
            let rel = if several || rel.terms.iter().any(|t| matches!(self.atoms[t.0].kind, AtomKind::Param(_))) {
                // Addresses wrap: a step back among the parameters is a number just below 2^64.
                self.concrete(&rel).norm(64)
            } else {
                rel
            };
            let extent = self.extent(&rel, made);
            if is_dead(&extent) {
                continue;
            }
            // The other bases are somewhere: their boxes say nothing.
            let delinearized = self.delinearize(&rel, made, &extent);
            let base = match (*base, &extent) {
                (SymbolicBase::Symbol(s), ByteSet::Unknown { .. }) => {
                    SymbolicBase::Symbol(self.g.variable_at(s, rel.c))
                }
                (base, _) => base,
            };
            out.push(ReachedBytes { base, several, extent, delinearized });
        }
        if let Some(reason) = opaque.flatten()
            && out.last().is_some_and(|r| matches!(r.extent, ByteSet::Unknown { .. }))
            && reason != Reason::Pairing
        {
            // Unscaled and unknown: the parameter word may be the offset and the unknown term the
            // pointer.
            for r in out.iter_mut().rev().take(bases.len()) {
                r.several = true;
            }
            out.push(ReachedBytes::new(SymbolicBase::Unknown, true, ByteSet::Unknown { reason }));
        }
    }

    /// Is an address without a parameter surely a pointer out of memory, and what is added to it?
    /// (Of two loaded words, one is.)
    fn is_loaded_pointer(&self, f: &AffineForm) -> bool {
        let mut unscaled = f.terms.iter().filter(|t| t.1 == 1 && self.atoms[t.0].opaque.is_some()).peekable();
        unscaled.peek().is_some() && unscaled.all(|t| self.atoms[t.0].loaded.is_some())
    }

    /// The byte set of an offset form.
    pub(crate) fn extent(&mut self, f: &AffineForm, made: AccessContext<'_>) -> ByteSet {
        let AccessContext { cons, width, complete, .. } = made;
        if let Some(e) = cons.known_extent(f, width, complete, self.atoms.epoch) {
            return e;
        }
        let e = self.find_extent(f, made);
        if !self.atoms.budget.exhausted() {
            cons.learn_extent(f, width, complete, self.atoms.epoch, &e);
        }
        e
    }

    fn find_extent(
        &self,
        f: &AffineForm,
        AccessContext { cons, width, mut complete, .. }: AccessContext<'_>,
    ) -> ByteSet {
        let (mut lo, mut hi) = self.atoms.bounds_in(f, cons, true);
        if (lo <= -INF) != (hi >= INF) {
            // A guard clamps one end of an unknown value; its type clamps the other (an unsigned
            // index below n).
            let (l, h) = self.atoms.bounds_in(f, cons, false);
            if l > -INF && h < INF && h - l < 1 << 32 {
                (lo, hi) = (l, h);
                complete = false;
            }
        }
        if lo <= -INF || hi >= INF {
            let reason = self.reason_behind(f, self.reason(f));
            return ByteSet::Unknown { reason };
        }
        if hi - lo >= 1 << 31 && self.may_wrap(f) {
            return ByteSet::Unknown { reason: Reason::MayWrap };
        }
        if lo > hi || width == 0 {
            // Guards contradict each other: never executed.
            return dead();
        }
        let far = lo < Int::from(i64::MIN) || hi + width > Int::from(i64::MAX) || width > Int::from(u32::MAX);
        if far {
            return ByteSet::Unknown { reason: Reason::MayWrap };
        }
        let (dims, exact) = self.shape(f, cons, (lo, hi), complete);
        ByteSet::Bounded { lo, hi: hi + width, dims, width, exact }
    }

    /// Is what a 32-bit number loses when it wraps around part of a form? Such a form is bounded by
    /// the type of the number only.
    fn may_wrap(&self, f: &AffineForm) -> bool {
        let word = Int::pow2(32);
        f.terms.iter().any(|t| t.1.abs() >= word && self.atoms[t.0].floor.is_some())
    }

    fn reason(&self, f: &AffineForm) -> Reason {
        if let Some(r) = self.atoms.why(f) {
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
            if let Some(r) = self.atoms[a].opaque {
                return r;
            }
            work.extend(self.atoms[a].deps.iter().copied());
        }
        Reason::Loop
    }
}

/// The extent of an access that never happens.
fn dead() -> ByteSet {
    let zero = Int::new(0);
    ByteSet::Bounded { lo: zero, hi: zero, dims: Dims::new(), width: zero, exact: true }
}

fn is_dead(e: &ByteSet) -> bool {
    matches!(e, ByteSet::Bounded { width, .. } if *width == 0)
}
