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
use crate::ranges::domain::tape::{LaunchInput, input};
use crate::ranges::eval::Eval;
use crate::ranges::eval::conditions::implied_constraints;
use crate::ranges::eval::no_wrap::{concrete, interp};
use crate::ranges::eval::state::atoms::Atoms;
use crate::ranges::eval::trip_counts::reason_behind;
use crate::ranges::extent::delinearization::delinearize;
use crate::ranges::extent::exactness::{fully, path_complete, shape};
use crate::ranges::extent::pointer_table::through_table;
use crate::ranges::extent::reached::{AccessContext, ReachedBytes, SymbolicBase};
use crate::ranges::graph::node::{Access, NodeId, Target};
use smallvec::SmallVec;
use std::rc::Rc;

/// Alternatives that one address is expanded to.
const MAX_ALTERNATIVES: usize = 256;

/// All that one access may reach in this launch; empty when it is never executed.
pub(crate) fn access_bytes(eval: &mut Eval<'_>, acc: &Access, out: &mut Vec<ReachedBytes>) {
    let (n, size) = match acc.target {
        Target::Address(n) => (n, None),
        Target::Bulk(n, size) => (n, Some(size)),
        _ => return,
    };
    let Some((cons, mut complete)) = guarded(eval, acc) else { return };
    let mut width = Int::from(acc.bytes);
    if let Some(size) = size {
        let size = eval.ev(size);
        let size = interp(eval, &size, 32, false, acc.block);
        (_, width) = eval.atoms.bounds_in(&size, &cons, true);
        if width >= INF {
            return unknown_access(eval, n, eval.atoms.why(&size).unwrap_or(Reason::Budget), out);
        }
        complete &= size.is_const();
    }
    let f = eval.ev(n);
    let forms = expand(&eval.atoms, &f);
    let complete = complete && forms[..] == [f] && path_complete(eval, acc.block);
    let made = AccessContext { cons: &cons, width, block: acc.block, complete };
    forms.iter().for_each(|f| one_form(eval, f, made, out));
}

/// What holds when an access is made, and whether that is all that decides it; `None` when it
/// is never made.
pub(crate) fn guarded(eval: &mut Eval<'_>, acc: &Access) -> Option<(Rc<ConstraintSet>, bool)> {
    eval.atoms.budget.end_reserve();
    if !eval.reachable(acc.block) {
        return None;
    }
    eval.reserve();
    let mut cons = eval.ctx(acc.block);
    let mut complete = true;
    if let Some(g) = acc.guard {
        let c = eval.ev_pred(g);
        if c == Cond::False {
            return None;
        }
        complete = fully(eval, &c);
        cons = Rc::new(cons.and(&implied_constraints(eval, &c)));
    }
    eval.reserve();
    Some((cons, complete))
}

/// Offsets of parameters that a number is the address of; `None` when it may be another
/// address.
pub(crate) fn param_offsets(eval: &mut Eval<'_>, n: NodeId) -> Option<SmallVec<[u16; 2]>> {
    let f = eval.ev(n);
    let mut out: SmallVec<[u16; 2]> = SmallVec::new();
    for g in expand(&eval.atoms, &f) {
        let [(x, k)] = g.terms[..] else { return None };
        if k != 1 {
            return None;
        }
        let AtomKind::ParamAddress(p) = eval.atoms[x].kind else { return None };
        let at = p.wrapping_add(u16::try_from(g.c.pin().rem_euclid(1 << 16)).ok()?);
        if usize::from(at) >= eval.launch.params.len() {
            return None;
        }
        if !out.contains(&at) {
            out.push(at);
        }
    }
    Some(out)
}

fn unknown_access(eval: &mut Eval<'_>, n: NodeId, reason: Reason, out: &mut Vec<ReachedBytes>) {
    let f = eval.ev(n);
    for g in expand(&eval.atoms, &f) {
        let bases = bases(&eval.atoms, &g);
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
pub(crate) fn expand(atoms: &Atoms, f: &AffineForm) -> Vec<AffineForm> {
    let mut out = Vec::new();
    let mut work = vec![f.clone()];
    while let Some(g) = work.pop() {
        let choice = g.terms.iter().find_map(|t| Some((t.0, t.1, atoms[t.0].alts.clone()?)));
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

pub(crate) fn bases(atoms: &Atoms, f: &AffineForm) -> SmallVec<[(AtomId, SymbolicBase); 2]> {
    f.terms
        .iter()
        .filter(|t| t.1 == 1)
        .filter_map(|t| {
            let base = match atoms[t.0].kind {
                AtomKind::Param(p) => SymbolicBase::Word(p),
                AtomKind::Symbol(s) => SymbolicBase::Symbol(s),
                AtomKind::ParamAddress(p) => SymbolicBase::ParamAddress(p),
                _ => return None,
            };
            Some((t.0, base))
        })
        .collect()
}

/// Of several words in a sum the one that lies where pointers do, if only one does. The others are
/// numbers then: with one of them as the base, the pointer would be a number of the result, which
/// no launch with another pointer could take.
fn only_pointer(
    eval: &Eval<'_>,
    bases: SmallVec<[(AtomId, SymbolicBase); 2]>,
) -> SmallVec<[(AtomId, SymbolicBase); 2]> {
    if bases.len() < 2 || !bases.iter().all(|(_, base)| matches!(base, SymbolicBase::Word(_))) {
        return bases;
    }
    let is_pointer =
        |base| matches!(base, SymbolicBase::Word(at) if input(LaunchInput::IsPointer(at), &eval.launch).pin() == 1);
    let mut pointers = bases.iter().filter(|(_, base)| is_pointer(*base));
    match (pointers.next(), pointers.next()) {
        (Some(one), None) => SmallVec::from_slice(&[*one]),
        _ => bases,
    }
}

fn one_form(eval: &mut Eval<'_>, f: &AffineForm, made: AccessContext<'_>, out: &mut Vec<ReachedBytes>) {
    let bases = bases(&eval.atoms, f);
    let opaque = f.terms.iter().find(|t| t.1 == 1 && eval.atoms[t.0].opaque.is_some()).map(|t| eval.atoms[t.0].opaque);
    // A window or local address is no global memory.
    if bases.is_empty()
        && f.terms
            .iter()
            .any(|t| eval.atoms[t.0].kind == AtomKind::Local || eval.atoms[t.0].opaque == Some(Reason::Window))
    {
        return;
    }
    if bases.is_empty()
        && let Some(r) = through_table(eval, f, made)
    {
        out.push(r);
        return;
    }
    if bases.is_empty() {
        // A pure number is a fixed address; anything else is of unknown origin.
        let whole = concrete(&eval.atoms, f);
        let extent = extent_of(eval, &whole, made);
        let base = match &extent {
            ByteSet::Bounded { .. } if opaque.is_none() => SymbolicBase::Absolute,
            _ if is_loaded_pointer(&eval.atoms, f) => SymbolicBase::Loaded,
            _ => SymbolicBase::Unknown,
        };
        if !is_dead(&extent) {
            let extent = if base == SymbolicBase::Absolute {
                extent
            } else {
                ByteSet::Unknown { reason: eval.atoms.why(f).unwrap_or(Reason::Loaded) }
            };
            out.push(ReachedBytes::new(base, false, extent));
        }
        return;
    }
    let several = bases.len() > 1;
    let bases = only_pointer(eval, bases);
    for (atom, base) in &bases {
        let rel = f.without(*atom);
        let rel = if several || rel.terms.iter().any(|t| matches!(eval.atoms[t.0].kind, AtomKind::Param(_))) {
            // Addresses wrap: a step back among the parameters is a number just below 2^64.
            concrete(&eval.atoms, &rel).norm(64)
        } else {
            rel
        };
        let extent = extent_of(eval, &rel, made);
        if is_dead(&extent) {
            continue;
        }
        // The other bases are somewhere: their boxes say nothing.
        let delinearized = delinearize(eval, &rel, made, &extent);
        let base = match (*base, &extent) {
            (SymbolicBase::Symbol(s), ByteSet::Unknown { .. }) => SymbolicBase::Symbol(eval.g.variable_at(s, rel.c)),
            (base, _) => base,
        };
        out.push(ReachedBytes { delinearized, ..ReachedBytes::new(base, several, extent) });
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
fn is_loaded_pointer(atoms: &Atoms, f: &AffineForm) -> bool {
    let mut unscaled = f.terms.iter().filter(|t| t.1 == 1 && atoms[t.0].opaque.is_some()).peekable();
    unscaled.peek().is_some() && unscaled.all(|t| atoms[t.0].loaded.is_some())
}

/// The byte set of an offset form.
pub(crate) fn extent_of(eval: &mut Eval<'_>, f: &AffineForm, made: AccessContext<'_>) -> ByteSet {
    let AccessContext { cons, width, complete, .. } = made;
    if let Some(e) = cons.known_extent(f, width, complete, eval.atoms.epoch) {
        return e;
    }
    let e = find_extent(eval, f, made);
    if !eval.atoms.budget.exhausted() {
        cons.learn_extent(f, width, complete, eval.atoms.epoch, &e);
    }
    e
}

fn find_extent(
    eval: &Eval<'_>,
    f: &AffineForm,
    AccessContext { cons, width, mut complete, .. }: AccessContext<'_>,
) -> ByteSet {
    let (mut lo, mut hi) = eval.atoms.bounds_in(f, cons, true);
    if (lo <= -INF) != (hi >= INF) {
        // A guard clamps one end of an unknown value; its type clamps the other (an unsigned
        // index below n).
        let (l, h) = eval.atoms.bounds_in(f, cons, false);
        if l > -INF && h < INF && h - l < 1 << 32 {
            (lo, hi) = (l, h);
            complete = false;
        }
    }
    if lo <= -INF || hi >= INF {
        let reason = reason_behind(eval, f, reason_unknown(&eval.atoms, f));
        return ByteSet::Unknown { reason };
    }
    if hi - lo >= 1 << 31 && may_wrap(&eval.atoms, f) {
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
    let (dims, exact) = shape(eval, f, cons, (lo, hi), complete);
    ByteSet::Bounded { lo, hi: hi + width, dims, width, exact }
}

/// Is what a 32-bit number loses when it wraps around part of a form? Such a form is bounded by
/// the type of the number only.
fn may_wrap(atoms: &Atoms, f: &AffineForm) -> bool {
    let word = Int::pow2(32);
    f.terms.iter().any(|t| t.1.abs() >= word && atoms[t.0].floor.is_some())
}

fn reason_unknown(atoms: &Atoms, f: &AffineForm) -> Reason {
    if let Some(r) = atoms.why(f) {
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
        if let Some(r) = atoms[a].opaque {
            return r;
        }
        work.extend(atoms[a].deps.iter().copied());
    }
    Reason::Loop
}

/// The extent of an access that never happens.
fn dead() -> ByteSet {
    let zero = Int::new(0);
    ByteSet::Bounded { lo: zero, hi: zero, dims: Dims::new(), width: zero, exact: true }
}

fn is_dead(e: &ByteSet) -> bool {
    matches!(e, ByteSet::Bounded { width, .. } if *width == 0)
}
