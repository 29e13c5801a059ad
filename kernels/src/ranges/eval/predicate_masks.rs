//! Conditions that are stored in the bits of words and taken out again: `P2R`, masks made of `SEL`,
//! shifts and `LOP3`, and tests of one of their bits.
//!
//! Owns the meaning of a bit. Kernels that copy tiles decide once which rows are inside the matrix,
//! keep the answers as bits of a word, carry the word through the loop over tiles, and test a bit
//! before each copy. Here a bit of a node is a condition ([`bit_of`]): a choice has the bit of
//! the value that was chosen, a bitwise function has that of its inputs, and a shift has another
//! bit.
//!
//! # Why it is sound
//!
//! The condition of a bit is implied by the bit being set, in every execution that computes the
//! node. Where the condition may say less than the bit, it is a conjunction with `Unknown`, whose
//! negation implies nothing. Straight operations give this by their definition. A join of two
//! values, one of which lacks the bit, has the bit only when the other value was taken, and that
//! value was then computed with its meaning.
//!
//! At the header of a loop only values of this iteration mean anything, so the value of the back
//! edge is not looked into, except for one question: can the bit be set behind the body of the loop
//! when it was clear before it ([`settled_bit`], without numbers of the launch)? If it can
//! not, then by induction over iterations, of inner loops too, a set bit was set when the loop was
//! entered. The condition of the value from outside then holds, and it is about atoms that were
//! computed before the loop and do not change in it. What the body tests before it keeps the bit
//! held in every iteration before this one, as did the condition under which a loop goes round
//! (`trip_counts`). But no bit has to be cleared some day, so an inequality counts only when the
//! number steps onto zero.

use crate::ir::{BlockId, Combine};
use crate::ranges::domain::condition::{Cond, Fact, table};
use crate::ranges::eval::Eval;
use crate::ranges::eval::conditions::{edge_condition, implied_facts};
use crate::ranges::eval::state::loop_table::LoopState;
use crate::ranges::eval::trip_counts::{each_iteration, iteration_counter, solve_trip_count};
use crate::ranges::graph::node::Graph;
use crate::ranges::graph::node::{Kind, NodeId, Width};
use smallvec::SmallVec;

/// Nodes followed from one bit.
const MAX_DEPTH: u32 = 80;
/// Nodes looked at for one back edge.
const MAX_LOOK: u32 = 600;

/// Where a bit of a node comes from.
enum From {
    Known(bool),
    /// This bit of another node.
    Bit(NodeId, u32),
    /// A function of the same bit of three nodes.
    Table(u8, [(NodeId, u32); 3]),
    Choice(NodeId, (NodeId, u32), (NodeId, u32)),
    Join(SmallVec<[(BlockId, NodeId); 2]>),
    Header(SmallVec<[(BlockId, NodeId); 2]>, SmallVec<[(BlockId, NodeId); 2]>),
    Other,
}

/// The condition under which bit `k` of an integer node is set.
pub(crate) fn bit_of(eval: &mut Eval<'_>, n: NodeId, k: u32, depth: u32) -> Cond {
    if let Some(c) = eval.scope.memo.bits.get(&(n, k)) {
        return c.clone();
    }
    if eval.busy_bits.contains(&(n, k)) || depth > MAX_DEPTH || eval.atoms.budget.exhausted() {
        return Cond::Unknown;
    }
    let (c, clean) = eval.is_clean(|eval| find_bit(eval, n, k, depth));
    // What lacks the meaning of a bit under way is not kept.
    if clean && eval.busy_bits.is_empty() {
        eval.scope.memo.bits.insert((n, k), c.clone());
    }
    c
}

fn find_bit(eval: &mut Eval<'_>, n: NodeId, k: u32, depth: u32) -> Cond {
    let of = |eval: &mut Eval<'_>, (x, k): (NodeId, u32)| bit_of(eval, x, k, depth + 1);
    let home = eval.g.node(n).home;
    match origin_of_bit(eval.g, n, k) {
        From::Known(set) => Cond::of(set),
        From::Bit(x, j) => of(eval, (x, j)),
        From::Table(lut, s) => {
            let v = s.map(|s| of(eval, s));
            table(v, lut)
        }
        From::Choice(p, x, y) => match eval.ev_pred(p) {
            Cond::True => of(eval, x),
            Cond::False => of(eval, y),
            p => {
                let (x, y) = (of(eval, x), of(eval, y));
                Cond::choice(p, x, y)
            }
        },
        From::Join(arms) => {
            let mut live = Vec::new();
            for (p, x) in arms {
                if eval.reachable(p) && edge_condition(eval, p, home) != Cond::False {
                    live.push(of(eval, (x, k)));
                }
            }
            Cond::joined(live)
        }
        From::Header(outer, back) => {
            let mut look = MAX_LOOK;
            let mut clear = |x| settled_bit(eval, x, k, &mut vec![(n, k)], &mut look) == Some(false);
            if !back.iter().all(|b| clear(b.1)) {
                return Cond::Unknown;
            }
            let [(_, first)] = outer[..] else { return Cond::Unknown };
            let mut all = vec![of(eval, (first, k)), Cond::Unknown];
            if let [(_, next)] = back[..] {
                cleared_in_loop(eval, (n, k), next, home, depth, &mut all);
            }
            Cond::all(all)
        }
        From::Other => Cond::Unknown,
    }
}

/// For a bit that a loop passes on and only ever clears: what follows in an iteration in which
/// it is still set, namely that it was not cleared before.
fn cleared_in_loop(
    eval: &mut Eval<'_>,
    bit: (NodeId, u32),
    next: NodeId,
    header: BlockId,
    depth: u32,
    all: &mut Vec<Cond>,
) {
    let Some(l) = eval.cfg.loop_of_header[header.0 as usize] else { return };
    solve_trip_count(eval, l);
    if eval.loops.states[l as usize] != LoopState::Done || eval.assumed.is_some() {
        return;
    }
    // What the body makes of it, of the bit itself nothing being known.
    eval.busy_bits.push(bit);
    let c = bit_of(eval, next, bit.1, depth + 1);
    eval.busy_bits.pop();
    let count = iteration_counter(eval, l);
    let entry = eval.ctx(header);
    let mut facts = Vec::new();
    implied_facts(eval, &c, &mut facts);
    for f in facts {
        let (found, whole) = each_iteration(eval, (&f, false), count, l, &entry);
        // A step over zero would leave the number unequal in all iterations.
        if whole || matches!(f, Fact::Le(_)) {
            all.extend(found.into_iter().map(Cond::Le));
        }
    }
}

/// Whether some bit of a word is set, when all but a few bits can not be.
pub(crate) fn any_bit(eval: &mut Eval<'_>, n: NodeId) -> Cond {
    let node = eval.g.node(n);
    // Only words that are made of bits.
    if !matches!(node.kind, Kind::Lop3(..) | Kind::Sel(..) | Kind::Phi(_) | Kind::LoopPhi(..)) {
        return Cond::Unknown;
    }
    let mut any = Vec::new();
    for k in 0..node.width.bits() {
        match bit_of(eval, n, k, 0) {
            Cond::False => {}
            Cond::Unknown => return Cond::Unknown,
            c => any.push(c),
        }
        if any.len() > 4 {
            return Cond::Unknown;
        }
    }
    Cond::any(any)
}

fn origin_of_bit(graph: &Graph, n: NodeId, k: u32) -> From {
    let node = graph.node(n);
    let bits = node.width.bits();
    let constant = |n: NodeId| match graph.node(n).kind {
        Kind::Const(c) => Some(c),
        _ => None,
    };
    // A bit of an operand that may be shifted out.
    let at = |x: NodeId, j: i64| match u32::try_from(j) {
        Ok(j) if j < graph.node(x).width.bits() => From::Bit(x, j),
        _ => From::Known(false),
    };
    match &node.kind {
        Kind::Const(c) => From::Known(c >> k & 1 == 1),
        Kind::Lop3(lut, x, y, z) => From::Table(*lut, [(*x, k), (*y, k), (*z, k)]),
        Kind::Sel(p, x, y) => From::Choice(*p, (*x, k), (*y, k)),
        Kind::Phi(arms) => From::Join(arms.clone()),
        Kind::LoopPhi(outer, back) => From::Header(outer.clone(), back.clone()),
        Kind::Lin(t, 0) => match t[..] {
            // A left shift.
            [(x, c)] => {
                let c = if bits == 32 { u64::from(c as u32) } else { c as u64 };
                if c.is_power_of_two() { at(x, i64::from(k) - i64::from(c.trailing_zeros())) } else { From::Other }
            }
            _ => From::Other,
        },
        Kind::Shl(x, s) => match constant(*s) {
            Some(s) if s < u64::from(bits) => at(*x, i64::from(k) - s as i64),
            _ => From::Other,
        },
        Kind::Shr(signed, x, s) => match constant(*s) {
            Some(s) if s < u64::from(bits) => {
                let j = i64::from(k) + s as i64;
                at(*x, if *signed { j.min(i64::from(bits) - 1) } else { j })
            }
            _ => From::Other,
        },
        Kind::Ext(low, signed, x) => {
            let low = u32::from(*low);
            match (k < low, signed) {
                (true, _) => From::Bit(*x, k),
                (false, true) => From::Bit(*x, low - 1),
                (false, false) => From::Known(false),
            }
        }
        Kind::Prmt(x, s, y) => match constant(*s).map(|s| s >> (k / 8 * 4) & 15) {
            Some(s) if s < 8 => From::Bit(if s < 4 { *x } else { *y }, (s as u32 & 3) * 8 + k % 8),
            _ => From::Other,
        },
        _ => From::Other,
    }
}

/// The value of bit `k` of a node (of a predicate: bit 0) that follows when the bits in `clear`
/// are clear, whatever the launch.
fn settled_bit(eval: &Eval<'_>, n: NodeId, k: u32, clear: &mut Vec<(NodeId, u32)>, look: &mut u32) -> Option<bool> {
    *look = look.checked_sub(1)?;
    if clear.contains(&(n, k)) {
        return Some(false);
    }
    if eval.g.node(n).width == Width::Pred {
        return settled_predicate(eval, n, clear, look);
    }
    let mut of = |x: NodeId, k: u32| settled_bit(eval, x, k, clear, look);
    match origin_of_bit(eval.g, n, k) {
        From::Known(set) => Some(set),
        From::Bit(x, j) => of(x, j),
        From::Table(lut, s) => {
            let v = s.map(|(x, k)| of(x, k));
            decided(v, lut)
        }
        From::Choice(p, (x, i), (y, j)) => match settled_bit(eval, p, 0, clear, look) {
            Some(true) => settled_bit(eval, x, i, clear, look),
            Some(false) => settled_bit(eval, y, j, clear, look),
            None => {
                let x = settled_bit(eval, x, i, clear, look)?;
                (settled_bit(eval, y, j, clear, look)? == x).then_some(x)
            }
        },
        From::Join(arms) => same_in_all(eval, &arms, k, clear, look),
        From::Header(outer, back) => settled_header(eval, n, k, &outer, &back, clear, look),
        From::Other => None,
    }
}

fn same_in_all(
    eval: &Eval<'_>,
    arms: &[(BlockId, NodeId)],
    k: u32,
    clear: &mut Vec<(NodeId, u32)>,
    look: &mut u32,
) -> Option<bool> {
    let mut all = None;
    for (_, x) in arms {
        let v = settled_bit(eval, *x, k, clear, look)?;
        if all.is_some_and(|a| a != v) {
            return None;
        }
        all = Some(v);
    }
    all
}

/// An inner loop: clear when it is entered clear, and its body keeps it clear.
fn settled_header(
    eval: &Eval<'_>,
    n: NodeId,
    k: u32,
    outer: &[(BlockId, NodeId)],
    back: &[(BlockId, NodeId)],
    clear: &mut Vec<(NodeId, u32)>,
    look: &mut u32,
) -> Option<bool> {
    if same_in_all(eval, outer, k, clear, look)? {
        return None;
    }
    clear.push((n, k));
    let kept = same_in_all(eval, back, k, clear, look) == Some(false);
    clear.pop();
    kept.then_some(false)
}

fn settled_predicate(eval: &Eval<'_>, n: NodeId, clear: &mut Vec<(NodeId, u32)>, look: &mut u32) -> Option<bool> {
    let mut of = |x: NodeId| settled_bit(eval, x, 0, clear, look);
    match &eval.g.node(n).kind {
        Kind::Const(c) => Some(*c != 0),
        Kind::Not(x) => of(*x).map(|v| !v),
        Kind::Combine(how, x, y) => {
            let lut = match how {
                Combine::And => 0xc0,
                Combine::Or => 0xfc,
                Combine::Xor => 0x3c,
            };
            let v = [of(*x), of(*y), Some(false)];
            decided(v, lut)
        }
        Kind::PLut(lut, s) => {
            let v = s.map(of);
            decided(v, *lut)
        }
        Kind::Sel(p, x, y) => match of(*p) {
            Some(true) => of(*x),
            Some(false) => of(*y),
            None => {
                let x = of(*x)?;
                (of(*y)? == x).then_some(x)
            }
        },
        Kind::NonZero(x) => {
            let x = *x;
            let none = (0..eval.g.node(x).width.bits()).all(|k| settled_bit(eval, x, k, clear, look) == Some(false));
            none.then_some(false)
        }
        Kind::Phi(arms) => same_in_all(eval, arms, 0, clear, look),
        Kind::LoopPhi(outer, back) => settled_header(eval, n, 0, outer, back, clear, look),
        _ => None,
    }
}

/// The value of a predicate that a loop passes on and only ever clears: what it was when the
/// loop was entered.
pub(crate) fn passed_on(
    eval: &mut Eval<'_>,
    n: NodeId,
    outer: &[(BlockId, NodeId)],
    back: &[(BlockId, NodeId)],
) -> Cond {
    let mut look = MAX_LOOK;
    let mut kept =
        |set: bool| back.iter().all(|(_, x)| settled_bit(eval, *x, 0, &mut vec![(n, 0)], &mut look) == Some(set));
    match *outer {
        [(_, x)] if kept(false) => {
            let first = eval.ev_pred(x);
            Cond::all([first, Cond::Unknown])
        }
        _ => Cond::Unknown,
    }
}

/// A truth table over inputs of which some are known.
fn decided(v: [Option<bool>; 3], lut: u8) -> Option<bool> {
    let rows = (0..8u8).filter(|r| (0..3).all(|i| v[i].is_none_or(|b| b == (r >> (2 - i) & 1 == 1))));
    let mut ones = rows.map(|r| lut >> r & 1 == 1);
    let first = ones.next()?;
    ones.all(|o| o == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_decided_by_what_is_known() {
        assert_eq!(decided([Some(false), None, None], 0x80), Some(false));
        assert_eq!(decided([Some(true), None, None], 0xfe), Some(true));
        assert_eq!(decided([Some(false), None, Some(false)], 0xfe), None);
        assert_eq!(decided([None, Some(false), None], 0xc0), Some(false));
    }
}
