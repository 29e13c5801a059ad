//! Which tests a thread has passed when it makes an access.
//!
//! Owns the way from an access up the dominators, and what a condition that is put together of
//! others says about its parts. Does not know what a test compares: `claims` and `selections` do.

use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Cmp, Combine};
use crate::ranges::eval::conditions::Branch;
use crate::ranges::graph::node::{Access, Graph, Kind, NodeId};
use smallvec::{SmallVec, smallvec};

/// A predicate that is no combination of others, and its outcome.
pub(super) type Test = (NodeId, bool);

/// Tests that are kept of one access, and parts of a condition that are looked at.
const MOST: usize = 64;

/// The tests that every thread has passed when it makes an access, the latest first. All of their
/// values are those of the iterations in which the access is made.
pub(super) fn passed(g: &Graph, cfg: &Cfg, branches: &[Option<Branch>], access: &Access) -> Vec<Test> {
    let mut tests = Vec::new();
    if let Some(guard) = access.guard {
        implied(g, guard, true, &mut tests);
    }
    let mut b = access.block;
    while b.0 != 0 && tests.len() < MOST {
        let above = cfg.idom[b.0 as usize];
        if let Some(Branch { cond, taken, fall }) = branches[above.0 as usize]
            && taken != fall
            && cfg.outer_preds(b)[..] == [above]
        {
            implied(g, cond, taken == Some(b), &mut tests);
        }
        b = above;
    }
    tests
}

/// Adds the tests that a condition with an outcome is sure to have passed.
pub(super) fn implied(g: &Graph, cond: NodeId, outcome: bool, tests: &mut Vec<Test>) {
    let mut work = vec![(cond, outcome)];
    let mut steps = 0;
    while let Some((cond, outcome)) = work.pop() {
        steps += 1;
        if steps > MOST {
            return;
        }
        let (table, inputs): (u8, SmallVec<[NodeId; 3]>) = match g.node(cond).kind {
            Kind::Not(p) => (0b01, smallvec![p]),
            Kind::Combine(Combine::And, p, q) => (0b1000, smallvec![p, q]),
            Kind::Combine(Combine::Or, p, q) => (0b1110, smallvec![p, q]),
            Kind::Combine(Combine::Xor, p, q) => (0b0110, smallvec![p, q]),
            Kind::PLut(table, inputs) => (table, SmallVec::from_slice(&inputs)),
            _ => {
                tests.push((cond, outcome));
                work.extend(chosen(g, cond, outcome));
                continue;
            }
        };
        // The first input is the highest bit of a row.
        let value = |row: usize, k: usize| row >> (inputs.len() - 1 - k) & 1 == 1;
        let fits = |row: usize, k: usize| match g.node(inputs[k]).kind {
            Kind::Const(c) => (c != 0) == value(row, k),
            _ => true,
        };
        let is_possible = |row: &usize| (table >> row & 1 == 1) == outcome && (0..inputs.len()).all(|k| fits(*row, k));
        let rows: SmallVec<[usize; 8]> = (0..1 << inputs.len()).filter(is_possible).collect();
        for (k, input) in inputs.iter().enumerate() {
            for is in [true, false] {
                let known = matches!(g.node(*input).kind, Kind::Const(_));
                if !known && !rows.is_empty() && rows.iter().all(|row| value(*row, k) == is) {
                    work.push((*input, is));
                }
            }
        }
    }
}

/// What a comparison of a choice with a constant says about its condition: `(p ? x : 0) != 0` holds
/// only where `p` does.
fn chosen(g: &Graph, test: NodeId, outcome: bool) -> Option<Test> {
    let constant = |n: NodeId| match g.node(n).kind {
        Kind::Const(c) => Some(c),
        _ => None,
    };
    let (choice, with, differs) = match g.node(test).kind {
        Kind::Cmp(cmp @ (Cmp::Eq | Cmp::Ne), _, x, y) => {
            let (choice, with) = if constant(y).is_some() { (x, y) } else { (y, x) };
            (choice, constant(with)?, (cmp == Cmp::Ne) == outcome)
        }
        Kind::NonZero(x) => (x, 0, outcome),
        _ => return None,
    };
    let Kind::Sel(p, x, y) = g.node(choice).kind else { return None };
    // Whether the number that is compared with, or another one, is ruled out by choosing this.
    let excluded = |n: NodeId| constant(n).is_some_and(|c| (c == with) == differs);
    match (excluded(x), excluded(y)) {
        (false, true) => Some((p, true)),
        (true, false) => Some((p, false)),
        _ => None,
    }
}

/// Whether two blocks are in the same loops.
pub(super) fn in_same_loops(cfg: &Cfg, a: BlockId, b: BlockId) -> bool {
    cfg.loops.iter().all(|l| l.members[a.0 as usize] == l.members[b.0 as usize])
}
