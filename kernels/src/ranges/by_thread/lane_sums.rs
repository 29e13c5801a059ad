//! Sums and multiples of values, and what they count from.
//!
//! Owns the choice of the pointer among a sum's parts. The other operations are in
//! `lane_arithmetic`, how numbers are kept and added in `lane_value`.

use super::lane_value::{LaneValue, NUMBER, Tag, Tags, UNKNOWN};
use super::lanes::ThreadLanes;
use crate::ranges::domain::tape::LIKELY_POINTERS;
use crate::ranges::extent::reached::SymbolicBase;
use crate::ranges::graph::node::{Kind, NodeId};
use smallvec::SmallVec;

/// Terms of a sum that are looked at.
const MAX_PARTS: usize = 16;
/// Words outside are no pointers: sizes, and steps back, which are just below 2^64.
const POINTERS: std::ops::Range<u64> = 1 << 20..1 << 57;

impl ThreadLanes<'_> {
    /// A value, taken so many times. `of`: what it is made of.
    pub(super) fn multiple(&mut self, n: NodeId, x: NodeId, times: u64, of: &[NodeId], mask: u64, out: &mut LaneValue) {
        self.numbers(of, &mut out.tags);
        self.summed(n, &[(x, times)], 0, mask, out);
    }

    fn summed(&mut self, n: NodeId, of: &[(NodeId, u64)], c: u64, mask: u64, out: &mut LaneValue) {
        let mut recipe = self.recipes[n.0 as usize].take();
        let parts: SmallVec<[(&LaneValue, u64); 4]> = of.iter().map(|(n, k)| (self.operand(*n), *k)).collect();
        out.sum(&parts, c, mask, &mut recipe);
        drop(parts);
        self.recipes[n.0 as usize] = recipe;
    }

    pub(super) fn sum(&mut self, n: NodeId, terms: &[(NodeId, i64)], c: i64, mask: u64, out: &mut LaneValue) {
        let parts: SmallVec<[(NodeId, u64); 4]> = terms.iter().map(|(n, k)| (*n, *k as u64)).collect();
        self.summed(n, &parts, c as u64, mask, out);
        let tag = |lane: usize| {
            // What is part of the sum and may be a pointer, and how often.
            let mut parts: SmallVec<[(Tag, i64); 4]> = SmallVec::new();
            let mut work: SmallVec<[(NodeId, i64); 8]> = terms.iter().copied().collect();
            while let Some((n, k)) = work.pop() {
                match (self.operand(n).tags.at(lane), &self.g.node(n).kind) {
                    (NUMBER, _) => {}
                    // An address taken away may meet itself again.
                    (UNKNOWN, Kind::Lin(inner, _)) if work.len() < MAX_PARTS => {
                        work.extend(inner.iter().map(|(m, j)| (*m, j.wrapping_mul(k))));
                    }
                    (UNKNOWN, _) => return UNKNOWN,
                    (t, _) => match parts.iter_mut().find(|p| p.0 == t) {
                        Some(p) => p.1 = p.1.wrapping_add(k),
                        None => parts.push((t, k)),
                    },
                }
            }
            self.base_among(&parts)
        };
        let of: SmallVec<[&Tags; 4]> = terms.iter().map(|t| &self.operand(t.0).tags).collect();
        let looks_inside = terms.iter().any(|t| matches!(self.g.node(t.0).kind, Kind::Lin(..)));
        self.each_tag(&of, &mut out.tags, looks_inside, tag);
    }

    /// What a sum counts from, of what may be pointers in it. A multiple of a word is a number. Of
    /// several words the sum counts from the one that looks like a pointer, and the others are
    /// numbers. Where that cannot be told, all are, and the sum is an address by itself: to count
    /// from the wrong one would say that nothing is touched.
    fn base_among(&self, parts: &[(Tag, i64)]) -> Tag {
        let times = |wanted: bool| parts.iter().filter(move |p| p.1 != 0 && (p.1 == 1) == wanted).map(|p| p.0);
        let once: SmallVec<[Tag; 4]> = times(true).collect();
        let base = self.pointer_among(&once);
        let noted: SmallVec<[Tag; 4]> = times(false).chain(once.into_iter().filter(|t| Some(*t) != base)).collect();
        match self.number(&noted) {
            UNKNOWN => UNKNOWN,
            _ => base.unwrap_or(NUMBER),
        }
    }

    /// The one of some bases that must be the pointer. What is no word always is.
    fn pointer_among(&self, once: &[Tag]) -> Option<Tag> {
        let base = |t: Tag| self.bases[usize::from(t) - 1];
        let one = |from: &dyn Fn(Tag) -> bool| {
            let mut found = once.iter().copied().filter(|t| from(*t));
            (found.next(), found.next())
        };
        if let [only] = once {
            return Some(*only);
        }
        if let (Some(symbol), _) = one(&|t| !matches!(base(t).0, SymbolicBase::Word(_))) {
            return Some(symbol);
        }
        match one(&|t| LIKELY_POINTERS.contains(&base(t).1)) {
            (None, _) => {}
            (Some(word), None) => return Some(word),
            (Some(_), Some(_)) => return None,
        }
        match one(&|t| POINTERS.contains(&base(t).1)) {
            (Some(word), None) => Some(word),
            _ => None,
        }
    }
}
