//! Ranges of values that a loop carries round without a progression: a choice between a step and a
//! new start, a number that is masked again in each turn, the next tile of a walk that wraps
//! around.
//!
//! Owns the range of a header's phi that `recurrences` found no form for. It is found by induction:
//! a symbol within a range stands for the value at the start of a turn, and each back edge is
//! evaluated with it, under what holds where that edge is taken. If all of their values lie within
//! the range again, and the value from outside does, so do all.
//!
//! # Why the result holds
//!
//! A form is congruent to its register. Let `v` be a number in the range that is congruent to the
//! register at the start of a turn. The form of the back edge, made of `v`, is congruent to the
//! register at the start of the next turn, and its bounds say that it lies in the range too: it is
//! the next `v`. Guards are those of the blocks of this very turn, so they are about this `v`.
//!
//! A range that is tried may be wrong, and so may be all that was found with it. Memos forget it as
//! for every unsolved phi. Atoms are found again by keys, not all of which name what their boxes
//! rest on, so a turn has keys of its own. Loops whose trips were counted meanwhile are counted
//! again. What is remembered of a phi for the rest of the evaluation was found without any symbol
//! from outside, and without what is assumed while a trip is counted.

use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::{AtomKey, AtomKind};
use crate::ranges::domain::constraints::ConstraintSet;
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::conditions::arm_facts;
use crate::ranges::eval::no_wrap::{concrete, floor_div};
use crate::ranges::eval::recurrences::{Arms, before_the_loop};
use crate::ranges::eval::state::atoms::Atoms;
use crate::ranges::eval::state::loop_table::{Carried, LoopState};
use crate::ranges::eval::state::scope::CLEAN;
use crate::ranges::eval::trip_counts::count_again;
use crate::ranges::graph::node::NodeId;
use crate::ranges::graph::provenance::data_in;
use rustc_hash::FxHashMap;

/// Turns that one evaluation may try.
const MAX_TURNS: u32 = 12;
/// Phis that are tried while others are.
const MAX_DEPTH: usize = 2;
/// Ranges that are tried for one phi: each end may move twice.
const MAX_GUESSES: u32 = 4;
/// How often a phi is tried in vain. (While a trip is counted, or another phi is tried, less is
/// known than later.)
const MAX_FAILURES: u8 = 3;
/// How often a 64-bit value is asked for in vain to know its half.
const MAX_WHOLES: u8 = 16;
/// How far from zero a range may be guessed to end. (Sums of two such numbers are no larger than a
/// signed word.)
const FAR: i64 = 1 << 30;

/// The value of a header's phi as a number within a range, if all turns of the loop stay in it.
/// `init`: its value from outside; `touched`: see [`rests_on_nothing`].
pub(crate) fn carried_range(
    eval: &mut Eval<'_>,
    n: NodeId,
    init: &AffineForm,
    (outer, back): (&Arms, &Arms),
    touched: u32,
    b: BlockId,
) -> Option<AffineForm> {
    let whole = eval.g.halves.get(&n).map_or(n, |half| half.0);
    let busy = &eval.loops.carried.busy;
    if busy.len() >= MAX_DEPTH || busy.contains(&n) || busy.contains(&whole) || eval.atoms.budget.half_spent() {
        return None;
    }
    let found = match eval.loops.carried.known.get(&n) {
        Some(known) => *known,
        None => {
            eval.loops.carried.busy.push(n);
            let found = if touched == CLEAN {
                carried_alone(eval, n, (outer, back), b)
            } else {
                carried(eval, n, init, back, b)
            };
            eval.loops.carried.busy.pop();
            if matches!(found, Carried::Nothing) {
                let failures = eval.loops.carried.failures.entry(n).or_default();
                *failures += 1;
                if *failures >= MAX_FAILURES {
                    eval.loops.carried.known.insert(n, found);
                }
            }
            found
        }
    };
    match found {
        Carried::Same => Some(init.clone()),
        Carried::Within(lo, hi) if lo == hi => Some(AffineForm::konst(lo)),
        Carried::Within(lo, hi) => Some(AffineForm::atom(eval.keyed(AtomKey::Range(n, lo, hi), |eval| {
            // As far as was guessed: nothing wraps around, and that is all that is known.
            let guessed = hi - lo >= Int::from(FAR / 2);
            let why = guessed.then(|| data_in(eval.g, &[n], None).unwrap_or(Reason::Loop));
            let a = eval.atoms.new_atom(lo, hi, why, b);
            // Another one in each turn.
            eval.atoms[a].choice = true;
            a
        }))),
        Carried::Nothing => None,
    }
}

/// Does what depends on an unsolved phi no further out than `touched` rest on a symbol without
/// bounds? That leaves nothing to be proved, and is evaluated again when the phi is solved.
pub(crate) fn rests_on_nothing(eval: &Eval<'_>, touched: u32) -> bool {
    eval.scope.solving.values().any(|(s, depth)| *depth >= touched && eval.atoms[*s].hi >= INF)
}

/// Is a word half of a 64-bit value that a symbol stands for now?
pub(crate) fn half_of_unsolved(eval: &Eval<'_>, n: NodeId) -> bool {
    eval.g.halves.get(&n).is_some_and(|half| eval.scope.solving.contains_key(&half.0))
}

/// A word that is half of a 64-bit value which the loop carries round too, and which is known.
/// (Tests of both words together bound that value, and not the word by itself.)
pub(crate) fn half_of_carried(eval: &mut Eval<'_>, n: NodeId, b: BlockId) -> Option<AffineForm> {
    let (whole, high) = *eval.g.halves.get(&n)?;
    if eval.loops.carried.unknown_wholes.get(&whole).is_some_and(|n| *n >= MAX_WHOLES) {
        return None;
    }
    let f = eval.ev(whole);
    if f.terms.iter().any(|t| eval.atoms[t.0].opaque.is_some()) {
        *eval.loops.carried.unknown_wholes.entry(whole).or_default() += 1;
        return None;
    }
    let f = concrete(&eval.atoms, &f);
    Some(if high { floor_div(eval, &f, Int::pow2(32), b) } else { f })
}

/// The same in a world of its own, and remembered.
fn carried_alone(eval: &mut Eval<'_>, n: NodeId, (outer, back): (&Arms, &Arms), b: BlockId) -> Carried {
    let keys = base_keys(&eval.atoms);
    let keys = std::mem::replace(&mut eval.atoms.keys, keys);
    let outer_scope = eval.scope.enter();
    let (assumed, log) = (eval.assumed.take(), eval.atoms.key_log.take());
    let loops = eval.loops.states.clone();
    let init = before_the_loop(eval, n, outer, b);
    let found = carried(eval, n, &init, back, b);
    count_again(eval, &loops, None);
    eval.scope.leave(outer_scope);
    (eval.assumed, eval.atoms.key_log) = (assumed, log);
    restore_keys(eval, keys);
    if !matches!(found, Carried::Nothing) || !loops.contains(&LoopState::Solving) {
        eval.loops.carried.known.insert(n, found);
    }
    found
}

fn carried(eval: &mut Eval<'_>, n: NodeId, init: &AffineForm, back: &Arms, b: BlockId) -> Carried {
    let number = |e: &Eval<'_>, x: AtomId| {
        let atom = &e.atoms[x];
        let kind = matches!(atom.kind, AtomKind::Plain | AtomKind::Index | AtomKind::Iteration(_) | AtomKind::Unsolved);
        kind && atom.alts.is_none()
    };
    if !init.terms.iter().all(|t| number(eval, t.0)) {
        return Carried::Nothing;
    }
    let ctx = eval.ctx(b);
    let first = eval.atoms.bounds_in(init, &ctx, true);
    let far = Int::from(FAR);
    let mut range = first;
    // As it came; then each end as far as a turn takes it: to zero, or to where little is
    // known.
    for _ in 0..MAX_GUESSES {
        if range.0 < -far || range.1 > far || eval.loops.carried.turns >= MAX_TURNS {
            return Carried::Nothing;
        }
        eval.loops.carried.turns += 1;
        let ((lo, hi), same) = after_a_turn(eval, n, range, back, b);
        if range.0 <= lo && hi <= range.1 {
            // What one more turn leaves of the guess is enough.
            return if same { Carried::Same } else { Carried::Within(first.0.min(lo), first.1.max(hi)) };
        }
        // More values before bring more values after.
        if lo < -far || hi >= INF {
            break;
        }
        if lo < range.0 {
            range.0 = if lo >= 0 { Int::new(0) } else { -far };
        }
        if hi > range.1 {
            range.1 = far;
        }
    }
    Carried::Nothing
}

/// Bounds of what the back edges bring, when the value lies in a range before, and whether it
/// is the value itself.
fn after_a_turn(eval: &mut Eval<'_>, n: NodeId, (lo, hi): (Int, Int), back: &Arms, b: BlockId) -> ((Int, Int), bool) {
    let keys = base_keys(&eval.atoms);
    let keys = std::mem::replace(&mut eval.atoms.keys, keys);
    let loops = eval.loops.states.clone();
    let s = eval.atoms.new_atom(lo, hi, None, b);
    eval.atoms[s].kind = AtomKind::Unsolved;
    let mark = eval.scope.unsolved(n, s);
    let (mut least, mut most, mut same) = (INF, -INF, true);
    for (p, v) in back {
        let f = eval.ev(*v);
        same &= f == AffineForm::atom(s);
        let cons = ConstraintSet::new(arm_facts(eval, *p, b));
        let (l, h) = eval.atoms.bounds_in(&f, &cons, true);
        (least, most) = (least.min(l), most.max(h));
    }
    eval.scope.solved(n, mark);
    count_again(eval, &loops, None);
    restore_keys(eval, keys);
    ((least, most), same)
}

/// The keys of what is the same wherever it is asked for.
fn base_keys(atoms: &Atoms) -> FxHashMap<Box<AtomKey>, AtomId> {
    atoms.keys.iter().filter(|(key, _)| key.is_of_launch()).map(|(key, a)| (key.clone(), *a)).collect()
}

fn restore_keys(eval: &mut Eval<'_>, keys: FxHashMap<Box<AtomKey>, AtomId>) {
    let own = std::mem::replace(&mut eval.atoms.keys, keys);
    own.into_iter().filter(|(key, _)| key.is_of_launch()).for_each(|(key, a)| {
        eval.atoms.keys.insert(key, a);
    });
}
