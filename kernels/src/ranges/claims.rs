//! Claims: which accesses are made only by the thread whose compare-and-swap has succeeded.
//!
//! Owns the recognition. Hash tables, visited sets and free lists hand out their elements so:
//! `if (atomicCAS(&key[slot], EMPTY, mine) == EMPTY) owner[slot] = ...`. Of all threads of all
//! kernels one only finds a word empty, so two kernels that claim a word before they touch an
//! element never touch one element both (PTX ISA, "atom": read, compare and write are one step). An
//! access is *claimed* when
//!
//! - a test that it has passed says that a swap returned the value which it compared with: an equal
//!   comparison, on each way that leads to the access. These are several tests where `nvcc` has
//!   unrolled a loop that probes. One that was passed in an earlier turn of a loop does not count;
//! - that value is a constant or a parameter, and not the one that the swap stores. (A swap that
//!   compares with a value it has read before is an update, and each thread succeeds in the end. A
//!   swap of a value with itself is a load.)
//! - no other access of the kernel may write to the word: what gives a word back is a lock
//!   ([`crate::ranges::locks`]).
//!
//! Whether a word belongs to the element is not known, and neither is whether something else has
//! emptied it between the two kernels. So a claim lowers a finding and does not withdraw it.

use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Cmp, Reason};
use crate::ranges::domain::tape::gcd;
use crate::ranges::eval::conditions::Branch;
use crate::ranges::graph::node::{Access, Given, Graph, Kind, NodeId, Swap, Target};
use crate::ranges::graph::provenance::Provenance;
use crate::ranges::locks::{Held, Words, same_value};
use crate::ranges::passed_tests::{Test, implied, passed};
use crate::ranges::ways::Edge;
use rustc_hash::FxHashMap;

/// Joins that one value or condition is followed through.
const MAX_JOINS: u32 = 4;
/// Sums within sums that one address is followed through.
const MAX_TERMS: u32 = 8;

/// Gives the accesses that no lock protects the words that are claimed before them.
pub(super) fn mark(g: &Graph, cfg: &Cfg, branches: &[Option<Branch>], origins: &[Provenance], held: &mut [Held]) {
    let swaps: Vec<&Swap> = g.swaps.iter().filter(|swap| is_claim(g, origins, swap)).collect();
    if swaps.is_empty() {
        return;
    }
    let claims = Claims { g, swaps };
    let by_edge = claims.edges(branches);
    for (access, held) in g.accesses.iter().zip(held) {
        if !access.kind.is_atomic() && held.words.is_empty() {
            let tests = passed(g, cfg, branches, access);
            let by_test = tests.into_iter().find_map(|test| claims.made_by(test, MAX_JOINS));
            held.claims = by_test.or_else(|| on_each_way(cfg, &by_edge, access.block)).unwrap_or_default();
        }
    }
}

/// The words that are claimed on the ways to a block, if each of them passes a claim. A way that
/// comes back to the head of a loop is one that has come there from outside before.
fn on_each_way(cfg: &Cfg, by_edge: &FxHashMap<Edge, Words>, to: BlockId) -> Option<Words> {
    let (mut words, mut work) = (Words::new(), vec![to]);
    let mut seen = vec![false; cfg.succs.len()];
    while let Some(b) = work.pop() {
        let before = cfg.outer_preds(b);
        if before.is_empty() {
            return None;
        }
        for from in before {
            match by_edge.get(&(from, b)) {
                Some(made) => {
                    words.extend(made.iter().copied().filter(|word| !words.contains(word)).collect::<Words>())
                }
                None if !std::mem::replace(&mut seen[from.0 as usize], true) => work.push(from),
                None => {}
            }
        }
    }
    (!words.is_empty()).then_some(words)
}

/// Whether a swap can claim its word: it changes the word, and nothing else may.
fn is_claim(g: &Graph, origins: &[Provenance], swap: &Swap) -> bool {
    let (own, from) = (&g.accesses[swap.access as usize], &origins[swap.access as usize]);
    let Target::Address(to) = own.target else { return false };
    let is_harmless = |(k, other): (u32, &Access)| {
        let its = &origins[k as usize];
        let akin = !its.words.is_disjoint(&from.words) || !its.symbols.is_disjoint(&from.symbols);
        if !other.kind.writes() || !akin {
            return true;
        }
        match (g.swaps.iter().find(|s| s.access == k), &other.target) {
            (Some(another), _) => another.compared == swap.compared && another.stored != another.compared,
            (None, Target::Address(at)) => is_another_member(g, (to, own.bytes), (*at, other.bytes)),
            (None, _) => false,
        }
    };
    swap.compared.is_some()
        && swap.stored != swap.compared
        && from.has_base()
        && (0_u32..).zip(&g.accesses).all(is_harmless)
}

/// Whether an address and its bytes are those of another member of the same structure: one number
/// plus two constants, which keep the bytes apart in every element of the array.
fn is_another_member(g: &Graph, (a, bytes): (NodeId, u32), (b, others): (NodeId, u32)) -> bool {
    let split = |mut n: NodeId| {
        let mut offset = 0_i64;
        while let Kind::Lin(terms, c) = &g.node(n).kind
            && let [(inner, 1)] = terms[..]
        {
            (n, offset) = (inner, offset.wrapping_add(*c));
        }
        (n, offset)
    };
    let ((x, from), (y, to)) = (split(a), split(b));
    let (distance, bytes, others) = (to.wrapping_sub(from), i64::from(bytes), i64::from(others));
    let apart = match stride(g, x, 1, MAX_TERMS) {
        0 => distance >= bytes || distance <= -others,
        stride => {
            let distance = distance.rem_euclid(stride);
            distance >= bytes && distance + others <= stride
        }
    };
    apart && same_value(g, x, y)
}

/// A number that all distances between the values of an address are multiples of; 0: it has one
/// value.
fn stride(g: &Graph, n: NodeId, factor: i64, depth: u32) -> i64 {
    let common = |a: i64, b: i64| i64::try_from(gcd(a.into(), b.into())).unwrap_or(1);
    match &g.node(n).kind {
        Kind::Const(_) | Kind::Param(..) | Kind::Symbol(_) | Kind::ParamAddress(_) => 0,
        Kind::Lin(terms, _) if depth > 0 => {
            let each = terms.iter().map(|(n, k)| stride(g, *n, factor.saturating_mul(*k), depth - 1));
            each.fold(0, common)
        }
        Kind::Shl(inner, by) if depth > 0 => match g.node(*by).kind {
            Kind::Const(by) if by < 32 => stride(g, *inner, factor.saturating_mul(1 << by), depth - 1),
            _ => 1,
        },
        _ => common(factor, 0),
    }
}

struct Claims<'a> {
    g: &'a Graph,
    swaps: Vec<&'a Swap>,
}

impl Claims<'_> {
    /// The words that are claimed where a branch is taken, or where it is not.
    fn edges(&self, branches: &[Option<Branch>]) -> FxHashMap<Edge, Words> {
        let mut found = FxHashMap::default();
        for (b, branch) in (0_u32..).zip(branches) {
            let Some(Branch { cond, taken, fall }) = *branch else { continue };
            for (to, outcome) in [(taken, true), (fall, false)] {
                let Some(to) = to.filter(|_| taken != fall) else { continue };
                let mut tests = Vec::new();
                implied(self.g, cond, outcome, &mut tests);
                if let Some(words) = tests.into_iter().find_map(|test| self.made_by(test, MAX_JOINS)) {
                    found.insert((BlockId(b), to), words);
                }
            }
        }
        found
    }

    /// The words that are claimed when a test has its outcome; `None`: it is none of a claim.
    fn made_by(&self, (test, outcome): Test, joins: u32) -> Option<Words> {
        let g = self.g;
        match &g.node(test).kind {
            Kind::Cmp(Cmp::Eq, _, x, y) if outcome => self.returned(*x, *y),
            Kind::Cmp(Cmp::Ne, _, x, y) if !outcome => self.returned(*x, *y),
            Kind::NonZero(x) if !outcome => self.swapped(*x, &|swap| swap.compared == Some(Given::Number(0)), joins),
            // Each way that brings this outcome has claimed a word.
            Kind::Phi(arms) if joins > 0 => {
                let mut words = Words::new();
                for (_, arm) in arms {
                    match g.node(*arm).kind {
                        Kind::Const(c) if (c != 0) != outcome => {}
                        _ => {
                            let mut tests = Vec::new();
                            implied(g, *arm, outcome, &mut tests);
                            let made = tests.into_iter().find_map(|test| self.made_by(test, joins - 1))?;
                            words.extend(made.into_iter().filter(|word| !words.contains(word)).collect::<Words>());
                        }
                    }
                }
                (!words.is_empty()).then_some(words)
            }
            _ => None,
        }
    }

    /// The swaps of which one number is the result, if the other is what they compare with.
    fn returned(&self, x: NodeId, y: NodeId) -> Option<Words> {
        let compares = |with: NodeId| {
            let with = Given::of(self.g, with);
            move |swap: &Swap| swap.compared.is_some() && swap.compared == with
        };
        self.swapped(x, &compares(y), MAX_JOINS).or_else(|| self.swapped(y, &compares(x), MAX_JOINS))
    }

    /// The swaps that a value is the result of, if all of them are such.
    fn swapped(&self, value: NodeId, is: &dyn Fn(&Swap) -> bool, joins: u32) -> Option<Words> {
        let g = self.g;
        match &g.node(value).kind {
            Kind::Opaque(Reason::AtomicResult) => {
                let (block, at) = (g.node(value).home, *g.made_at.get(&value)?);
                let made = self.swaps.iter().filter(|swap| {
                    let access = &g.accesses[swap.access as usize];
                    (access.block, access.at) == (block, at)
                });
                let words: Option<Words> = made.map(|swap| is(swap).then_some(swap.access)).collect();
                words.filter(|words| !words.is_empty())
            }
            // Both words of a number of 64 bits.
            Kind::Pack(low, high) => {
                let words = self.swapped(*low, is, joins)?;
                (self.swapped(*high, is, joins)? == words).then_some(words)
            }
            Kind::Phi(arms) if joins > 0 => {
                let mut words = Words::new();
                for (_, arm) in arms {
                    let made = self.swapped(*arm, is, joins - 1)?;
                    words.extend(made.into_iter().filter(|word| !words.contains(word)).collect::<Words>());
                }
                Some(words)
            }
            _ => None,
        }
    }
}
