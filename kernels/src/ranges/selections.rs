//! Selections: which accesses are made only where a word in memory has certain values.
//!
//! Owns the recognition of such accesses (`if (mask[i]) p[i] = ...`, `if (colour[i] == k) ...`),
//! and the step to one launch: how the address of the access follows from that of the word, and for
//! which values the access is made.
//!
//! # Why two selections keep apart
//!
//! Let two kernels access bytes at `a` where the word at `m` has one of some values, with `q * a ==
//! p * m + k` for all threads of both, `p` and `q` without a common divisor. If a thread of each
//! touches a common byte, their addresses `a` are less than the width of the access apart.
//! Addresses `m` that differ do so by a multiple of `q`, and of the width of the word, since loads
//! are aligned (PTX ISA, "Alignment"). Then the addresses `a` differ by the corresponding multiple
//! of `p`. Where that is no less than the width of the access, the two have looked at one word. If
//! it has the same value for both, and no value is one of both selections, there are no two such
//! threads.
//!
//! Where all threads of both look at one word, the addresses `a` do not matter.
//!
//! It has the same value: the loads are plain. What writes to the word and is not ordered with both
//! kernels races with one of the loads, and is a finding of its own. What is ordered between the
//! two orders them.
//!
//! Addresses are numbers modulo 2^64, but no two of them are 2^48 apart, and `p` and `q` are small.

use crate::effects::{LaunchArgs, Selection};
use crate::ir::cfg::Cfg;
use crate::ir::{AccessKind, Cmp, Reason};
use crate::ranges::analysis::Analysis;
use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::int::Int;
use crate::ranges::domain::tape::{self, LaunchInput};
use crate::ranges::eval::Eval;
use crate::ranges::eval::conditions::Branch;
use crate::ranges::eval::no_wrap::{concrete, interp};
use crate::ranges::extent::address::expand;
use crate::ranges::extent::reached::SymbolicBase;
use crate::ranges::graph::node::{Access, Graph, Kind, NodeId, Target};
use crate::ranges::locks::is_uniform;
use crate::ranges::passed_tests::{in_same_loops, passed};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// Largest factor between addresses of elements and of words.
const MAX_STRIDE: i128 = 1 << 12;

/// Least and greatest number.
type Ends = (i64, i64);

/// The ends of a word of 32 bits.
const WORD: Ends = (i32::MIN as i64, i32::MAX as i64);

/// A test of a loaded word that decides whether an access is made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Selector {
    /// The access that loads the word.
    load: u32,
    /// Least and greatest number that is compared.
    range: Ends,
    /// The access is made where the word compares so with the value.
    cmp: Cmp,
    signed: bool,
    value: NodeId,
}

/// By access, the tests of loaded words that it has passed.
pub(super) type Selectors = Vec<SmallVec<[Selector; 1]>>;

/// Finds them.
pub(super) fn selectors(g: &Graph, cfg: &Cfg, branches: &[Option<Branch>]) -> Selectors {
    let loads = g.accesses.iter().any(|a| a.kind == AccessKind::Read && a.bytes <= 4);
    let of = |access: &Access| {
        if !loads || cfg.irreducible || access.kind.is_atomic() || !matches!(access.target, Target::Address(_)) {
            return SmallVec::new();
        }
        let tests = passed(g, cfg, branches, access);
        let found = tests.into_iter().filter_map(|(test, outcome)| selector(g, test, outcome));
        found.filter(|s| in_same_loops(cfg, g.accesses[s.load as usize].block, access.block)).collect()
    };
    g.accesses.iter().map(of).collect()
}

fn selector(g: &Graph, test: NodeId, outcome: bool) -> Option<Selector> {
    let (cmp, signed, word, value) = match g.node(test).kind {
        Kind::Cmp(cmp, signed, x, y) if is_uniform(g, y) => (cmp, signed, x, y),
        Kind::Cmp(cmp, signed, x, y) if is_uniform(g, x) => (cmp.mirrored(), signed, y, x),
        _ => return None,
    };
    let cmp = if outcome { cmp } else { cmp.negated() };
    let (load, range) = loaded(g, word)?;
    let range = match (cmp, signed) {
        (Cmp::Eq | Cmp::Ne, _) | (_, true) => range,
        (_, false) if range == WORD => (0, i64::from(u32::MAX)),
        (_, false) => Some(range).filter(|range| range.0 >= 0)?,
    };
    Some(Selector { load, range, cmp, signed: range.0 < 0, value })
}

/// The plain load that gives a number, and between which ends the number lies.
fn loaded(g: &Graph, n: NodeId) -> Option<(u32, Ends)> {
    let node = g.node(n);
    let narrowed = |inner: NodeId, bits: u32, signed: bool| {
        let (load, range) = loaded(g, inner)?;
        Some((load, extended(range, bits, signed)?))
    };
    let is_zero = |n: NodeId| matches!(g.node(n).kind, Kind::Const(0));
    let (range, bytes) = match node.kind {
        _ if node.width.bits() != 32 => return None,
        Kind::Opaque(Reason::Loaded) => (WORD, 4..=4),
        Kind::Bounded(lo, hi) => ((lo, hi), 1..=2),
        Kind::Ext(bits, signed, inner) => return narrowed(inner, bits.into(), signed),
        Kind::Prmt(x, selector, y) => {
            return match g.node(selector).kind {
                Kind::Const(0x9910) => narrowed(x, 16, true),
                Kind::Const(0x8880) => narrowed(x, 8, true),
                Kind::Const(0x7710) if is_zero(y) => narrowed(x, 16, false),
                Kind::Const(0x7770 | 0x4440) if is_zero(y) => narrowed(x, 8, false),
                _ => None,
            };
        }
        _ => return None,
    };
    let at = *g.made_at.get(&n)?;
    let is = |a: &Access| (a.block, a.at) == (node.home, at);
    let mut all = (0_u32..).zip(&g.accesses).filter(|(_, a)| is(a));
    let (load, access) = all.next()?;
    // Of a vector of words, it is not known which this is.
    let plain = access.kind == AccessKind::Read && bytes.contains(&access.bytes) && all.next().is_none();
    (plain && matches!(access.target, Target::Address(_))).then_some((load, range))
}

/// The ends of a number whose low bits are extended; `None`: they are no progression any more.
fn extended((lo, hi): Ends, bits: u32, signed: bool) -> Option<Ends> {
    let half = 1_i64 << (bits - 1);
    let (signed_ends, unsigned_ends) = ((-half, half - 1), (0, 2 * half - 1));
    let (ends, others) = if signed { (signed_ends, unsigned_ends) } else { (unsigned_ends, signed_ends) };
    if ends.0 <= lo && hi <= ends.1 { Some((lo, hi)) } else { ((lo, hi) == others).then_some(ends) }
}

/// The selections of a launch.
pub(super) struct Selections<'a> {
    analysis: &'a Analysis,
    /// By access: `None`: the launch does not make it.
    made: Vec<Option<Option<Selection>>>,
    inputs: Vec<LaunchInput>,
}

impl<'a> Selections<'a> {
    /// `None`: the kernel selects nothing.
    pub(super) fn of(analysis: &'a Analysis, launch: &LaunchArgs<'_>) -> Option<Selections<'a>> {
        if analysis.selectors.iter().all(SmallVec::is_empty) {
            return None;
        }
        let evaluate = || {
            let mut eval = analysis.eval(launch);
            let one = |(k, selectors): (usize, &SmallVec<[Selector; 1]>)| {
                let made = !analysis.reach(&mut eval, k).is_empty();
                made.then(|| selectors.iter().find_map(|s| selection(&mut eval, &analysis.graph.accesses[k], s)))
            };
            analysis.selectors.iter().enumerate().map(one).collect()
        };
        let (made, tape) = tape::run(false, evaluate);
        Some(Selections { analysis, made, inputs: tape.into_touched() })
    }

    /// The parameter bytes that the selections rest on.
    pub(super) fn bytes(&self) -> impl Iterator<Item = Range<usize>> {
        self.inputs.iter().filter_map(|input| input.bytes())
    }

    /// The selection of all accesses of a kind that may go through a base.
    pub(super) fn during(&self, kind: AccessKind, base: SymbolicBase) -> Option<Selection> {
        let Analysis { graph, origins, .. } = self.analysis;
        let goes = |k: &usize| graph.accesses[*k].kind == kind && base.may_come_from(&origins[*k]);
        let mut all = (0..self.made.len()).filter(goes).filter_map(|k| self.made[k]);
        let first = all.next()??;
        all.all(|other| other == Some(first)).then_some(first)
    }
}

/// An address as a number that rests on what differs between threads only.
fn address(eval: &mut Eval<'_>, access: &Access) -> Option<AffineForm> {
    let Target::Address(n) = access.target else { return None };
    let f = eval.ev(n);
    match &expand(&eval.atoms, &f)[..] {
        [one] => Some(concrete(&eval.atoms, one)),
        _ => None,
    }
}

fn selection(eval: &mut Eval<'_>, access: &Access, by: &Selector) -> Option<Selection> {
    let load = &eval.g.accesses[by.load as usize];
    let value = eval.ev(by.value);
    let value = interp(eval, &value, 32, by.signed, access.block).as_const()?.pin();
    let select =
        |relation: DefaultHasher| Selection::of(relation.finish(), by.cmp, i64::try_from(value).ok()?, by.range);
    let from = address(eval, load)?;
    let mut relation = DefaultHasher::new();
    load.bytes.hash(&mut relation);
    // One word for all threads: nothing is touched where it excludes the other side.
    if let Some(word) = from.as_const() {
        word.pin().rem_euclid(1 << 64).hash(&mut relation);
        return select(relation);
    }
    let to = address(eval, access)?;
    let (atom, p) = to.terms.first().copied()?;
    let (p, q) = (p.pin(), from.coef(atom).pin());
    if q == 0 || p.abs() > MAX_STRIDE || q.abs() > MAX_STRIDE {
        return None;
    }
    let common = tape::gcd(p, q) * p.signum();
    let (p, q) = (p / common, q / common);
    let k = to.combine(Int::new(q), &from, Int::new(-p))?.norm(64).as_const()?.pin();
    // Two words are this far apart at least, counted in steps of `q`, and their elements as many
    // steps of `p`.
    let word = i128::from(load.bytes);
    let apart = word / tape::gcd(word, q) * p;
    if i128::from(access.bytes) > apart {
        return None;
    }
    (p, q, k.rem_euclid(1 << 64)).hash(&mut relation);
    select(relation)
}
