//! From the form of an address to bases and byte sets; which of them are exact is told in `exact`.

use super::eval::{AtomKind, Eval};
use super::facts::Facts;
use super::form::{AtomId, Form, INF, Int};
use super::logic::Cond;
use super::node::{Access, NodeId, Target};
use crate::access::Extent;
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
}

/// The extent of an access that never happens.
fn dead() -> Extent {
    Extent::Bounded { lo: 0, hi: 0, dims: SmallVec::new(), width: 0, exact: true }
}

fn is_dead(e: &Extent) -> bool {
    matches!(e, Extent::Bounded { width: 0, .. })
}
