//! Conditions that are stored in the bits of words and taken out again: `P2R`, masks made of `SEL`,
//! shifts and `LOP3`, and tests of one of their bits.
//!
//! Owns the meaning of a bit. Kernels that copy tiles decide once which rows are inside the matrix,
//! keep the answers as bits of a word, carry the word through the loop over tiles, and test a bit
//! before each copy. Here a bit of a node is a condition ([`Eval::bit`]): a choice has the bit of
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
//! when it was clear before it ([`Eval::settled_bit`], without numbers of the launch)? If it can
//! not, then by induction over iterations, of inner loops too, a set bit was set when the loop was
//! entered. The condition of the value from outside then holds, and it is about atoms that were
//! computed before the loop and do not change in it. What the body tests before it keeps the bit
//! held in every iteration before this one, as did the condition under which a loop goes round
//! (`trip_counts`). But no bit has to be cleared some day, so an inequality counts only when the
//! number steps onto zero.

use crate::ir::{BlockId, Combine};
use crate::ranges::domain::condition::{Cond, Fact, table};
use crate::ranges::eval::Eval;
use crate::ranges::eval::state::loop_table::LoopState;
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

impl Eval<'_> {
    /// The condition under which bit `k` of an integer node is set.
    pub(crate) fn bit(&mut self, n: NodeId, k: u32, depth: u32) -> Cond {
        if let Some(c) = self.scope.memo.bits.get(&(n, k)) {
            return c.clone();
        }
        if self.busy_bits.contains(&(n, k)) || depth > MAX_DEPTH || self.atoms.budget.exhausted() {
            return Cond::Unknown;
        }
        let (c, clean) = self.is_clean(|e| e.find_bit(n, k, depth));
        // What lacks the meaning of a bit under way is not kept.
        if clean && self.busy_bits.is_empty() {
            self.scope.memo.bits.insert((n, k), c.clone());
        }
        c
    }

    fn find_bit(&mut self, n: NodeId, k: u32, depth: u32) -> Cond {
        let of = |e: &mut Self, (x, k): (NodeId, u32)| e.bit(x, k, depth + 1);
        let home = self.g.node(n).home;
        match self.origin_of_bit(n, k) {
            From::Known(set) => Cond::of(set),
            From::Bit(x, j) => of(self, (x, j)),
            From::Table(lut, s) => {
                let v = s.map(|s| of(self, s));
                table(v, lut)
            }
            From::Choice(p, x, y) => match self.ev_pred(p) {
                Cond::True => of(self, x),
                Cond::False => of(self, y),
                p => {
                    let (x, y) = (of(self, x), of(self, y));
                    Cond::choice(p, x, y)
                }
            },
            From::Join(arms) => {
                let mut live = Vec::new();
                for (p, x) in arms {
                    if self.reachable(p) && self.edge(p, home) != Cond::False {
                        live.push(of(self, (x, k)));
                    }
                }
                Cond::joined(live)
            }
            From::Header(outer, back) => {
                let mut look = MAX_LOOK;
                let mut clear = |x| self.settled_bit(x, k, &mut vec![(n, k)], &mut look) == Some(false);
                if !back.iter().all(|b| clear(b.1)) {
                    return Cond::Unknown;
                }
                let [(_, first)] = outer[..] else { return Cond::Unknown };
                let mut all = vec![of(self, (first, k)), Cond::Unknown];
                if let [(_, next)] = back[..] {
                    self.cleared_in_loop((n, k), next, home, depth, &mut all);
                }
                Cond::all(all)
            }
            From::Other => Cond::Unknown,
        }
    }

    /// For a bit that a loop passes on and only ever clears: what follows in an iteration in which
    /// it is still set, namely that it was not cleared before.
    fn cleared_in_loop(&mut self, bit: (NodeId, u32), next: NodeId, header: BlockId, depth: u32, all: &mut Vec<Cond>) {
        let Some(l) = self.cfg.loop_of_header[header.0 as usize] else { return };
        self.trip(l);
        if self.loops.states[l as usize] != LoopState::Done || self.assumed.is_some() {
            return;
        }
        // What the body makes of it, of the bit itself nothing being known.
        self.busy_bits.push(bit);
        let c = self.bit(next, bit.1, depth + 1);
        self.busy_bits.pop();
        let count = self.iteration(l);
        let entry = self.ctx(header);
        let mut facts = Vec::new();
        self.facts(&c, &mut facts);
        for f in facts {
            let (found, whole) = self.each_iteration(&f, count, l, &entry);
            // A step over zero would leave the number unequal in all iterations.
            if whole || matches!(f, Fact::Le(_)) {
                all.extend(found.into_iter().map(Cond::Le));
            }
        }
    }

    /// Whether some bit of a word is set, when all but a few bits can not be.
    pub(crate) fn any_bit(&mut self, n: NodeId) -> Cond {
        let node = self.g.node(n);
        // Only words that are made of bits.
        if !matches!(node.kind, Kind::Lop3(..) | Kind::Sel(..) | Kind::Phi(_) | Kind::LoopPhi(..)) {
            return Cond::Unknown;
        }
        let mut any = Vec::new();
        for k in 0..node.width.bits() {
            match self.bit(n, k, 0) {
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

    fn origin_of_bit(&self, n: NodeId, k: u32) -> From {
        let node = self.g.node(n);
        let bits = node.width.bits();
        let constant = |n: NodeId| match self.g.node(n).kind {
            Kind::Const(c) => Some(c),
            _ => None,
        };
        // A bit of an operand that may be shifted out.
        let at = |x: NodeId, j: i64| match u32::try_from(j) {
            Ok(j) if j < self.g.node(x).width.bits() => From::Bit(x, j),
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
    fn settled_bit(&self, n: NodeId, k: u32, clear: &mut Vec<(NodeId, u32)>, look: &mut u32) -> Option<bool> {
        *look = look.checked_sub(1)?;
        if clear.contains(&(n, k)) {
            return Some(false);
        }
        if self.g.node(n).width == Width::Pred {
            return self.settled_predicate(n, clear, look);
        }
        let mut of = |x: NodeId, k: u32| self.settled_bit(x, k, clear, look);
        match self.origin_of_bit(n, k) {
            From::Known(set) => Some(set),
            From::Bit(x, j) => of(x, j),
            From::Table(lut, s) => {
                let v = s.map(|(x, k)| of(x, k));
                decided(v, lut)
            }
            From::Choice(p, (x, i), (y, j)) => match self.settled_bit(p, 0, clear, look) {
                Some(true) => self.settled_bit(x, i, clear, look),
                Some(false) => self.settled_bit(y, j, clear, look),
                None => {
                    let x = self.settled_bit(x, i, clear, look)?;
                    (self.settled_bit(y, j, clear, look)? == x).then_some(x)
                }
            },
            From::Join(arms) => self.same_in_all(&arms, k, clear, look),
            From::Header(outer, back) => self.settled_header(n, k, &outer, &back, clear, look),
            From::Other => None,
        }
    }

    fn same_in_all(
        &self,
        arms: &[(BlockId, NodeId)],
        k: u32,
        clear: &mut Vec<(NodeId, u32)>,
        look: &mut u32,
    ) -> Option<bool> {
        let mut all = None;
        for (_, x) in arms {
            let v = self.settled_bit(*x, k, clear, look)?;
            if all.is_some_and(|a| a != v) {
                return None;
            }
            all = Some(v);
        }
        all
    }

    /// An inner loop: clear when it is entered clear, and its body keeps it clear.
    fn settled_header(
        &self,
        n: NodeId,
        k: u32,
        outer: &[(BlockId, NodeId)],
        back: &[(BlockId, NodeId)],
        clear: &mut Vec<(NodeId, u32)>,
        look: &mut u32,
    ) -> Option<bool> {
        if self.same_in_all(outer, k, clear, look)? {
            return None;
        }
        clear.push((n, k));
        let kept = self.same_in_all(back, k, clear, look) == Some(false);
        clear.pop();
        kept.then_some(false)
    }

    fn settled_predicate(&self, n: NodeId, clear: &mut Vec<(NodeId, u32)>, look: &mut u32) -> Option<bool> {
        let mut of = |x: NodeId| self.settled_bit(x, 0, clear, look);
        match &self.g.node(n).kind {
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
                let none = (0..self.g.node(x).width.bits()).all(|k| self.settled_bit(x, k, clear, look) == Some(false));
                none.then_some(false)
            }
            Kind::Phi(arms) => self.same_in_all(arms, 0, clear, look),
            Kind::LoopPhi(outer, back) => self.settled_header(n, 0, outer, back, clear, look),
            _ => None,
        }
    }

    /// The value of a predicate that a loop passes on and only ever clears: what it was when the
    /// loop was entered.
    pub(crate) fn passed_on(&mut self, n: NodeId, outer: &[(BlockId, NodeId)], back: &[(BlockId, NodeId)]) -> Cond {
        let mut look = MAX_LOOK;
        let mut kept =
            |set: bool| back.iter().all(|(_, x)| self.settled_bit(*x, 0, &mut vec![(n, 0)], &mut look) == Some(set));
        match *outer {
            [(_, x)] if kept(false) => {
                let first = self.ev_pred(x);
                Cond::all([first, Cond::Unknown])
            }
            _ => Cond::Unknown,
        }
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
