//! What a lane gets from another one of its warp.
//!
//! Owns which lane that is, and when its value is known; what warps decide together.
//!
//! # Why the result holds
//!
//! A shuffle gives the value of a lane that executes the same instruction (PTX ISA, "shfl.sync":
//! what a lane gives that does not take part is undefined, and programs that run do not use it). A
//! lane that executes it has its value by then, and threads go through the blocks of code in their
//! order, so all that come to the instruction from outside of loops are there. Of values that
//! change in a loop the threads may be in different iterations: they count only where the whole
//! warp is at the block. A value that all threads of a warp have alike is what any of them gets.
//! On a cycle with two ways in, threads may meet elsewhere than on hardware: there a warp decides
//! only as a whole.

use super::lane_classes::{LANES, Mask};
use super::lane_value::{LaneValue, NUMBER, Tags, UNKNOWN};
use super::lanes::ThreadLanes;
use super::plan::Reach;
use crate::ranges::graph::node::{LaneChoice, NodeId, WarpDecision};
use std::ops::Range;

/// The lane that a lane of a warp takes from (PTX ISA, "shfl"); itself where that is outside of its
/// segment. `within`: clamp in bits 0 to 4, mask of the segment in bits 8 to 12.
fn source(mode: u8, lane: u32, by: u32, within: u32) -> u32 {
    let (by, clamp, segment) = (by & 31, within & 31, within >> 8 & 31);
    let (first, last) = (lane & segment, lane & segment | clamp & !segment);
    let from = match mode {
        0 => first | by & !segment,
        1 => lane.wrapping_sub(by),
        2 => lane + by,
        _ => lane ^ by,
    };
    // Upwards the clamp is the least lane.
    let inside = if mode == 1 { from as i32 >= last as i32 } else { from <= last };
    if inside { from } else { lane }
}

impl ThreadLanes<'_> {
    /// The warps among the lanes, and whether a warp is there as a whole.
    fn warps(&self) -> Vec<(Range<usize>, bool)> {
        let per_block = self.launch.block.iter().map(|n| *n as usize).product::<usize>();
        let (mut all, mut first) = (Vec::new(), 0);
        while first < self.len {
            let in_block = self.round.thread(first).1 as usize;
            let left = (32 - in_block % 32).min(per_block - in_block);
            let warp = first..(first + left).min(self.len);
            all.push((warp.clone(), in_block.is_multiple_of(32) && warp.len() == left));
            first = warp.end;
        }
        all
    }

    /// What the warps decide whose lanes are at a block. (All that take part are: they are
    /// converged there. Of them the first is elected: measured on an H200.) `as_whole`: only warps
    /// of which all lanes are there.
    pub(super) fn decided(&mut self, decision: WarpDecision, mask: &Mask, as_whole: bool) -> LaneValue {
        let asked = decision.asks();
        if let Some(p) = asked {
            self.get(p);
        }
        let mut tags = Box::new([UNKNOWN; LANES]);
        let mut numbers = [0; LANES];
        for (warp, is_whole) in self.warps() {
            if as_whole && !(is_whole && warp.clone().all(|lane| has(mask, lane))) {
                continue;
            }
            let here = || warp.clone().filter(|lane| has(mask, *lane));
            let answer = |lane: usize| {
                let value = self.operand(asked?);
                (value.tags.at(lane) == NUMBER).then(|| value.at(lane) & 1 == 1)
            };
            let whole = match decision {
                WarpDecision::Elects => None,
                WarpDecision::Votes { all, .. } if here().any(|lane| answer(lane) == Some(!all)) => Some(!all),
                WarpDecision::Votes { all, .. } if here().all(|lane| answer(lane) == Some(all)) => Some(all),
                WarpDecision::Votes { .. } => continue,
            };
            let first = here().next();
            for lane in here() {
                numbers[lane] = u64::from(whole.unwrap_or(Some(lane) == first));
                tags[lane] = NUMBER;
            }
        }
        let mut out = LaneValue::unknown();
        out.put(self.len, |lane| numbers[lane]);
        out.tags = Tags::found(tags, self.len);
        out
    }

    /// The value of node `x` in the lane that each lane chooses.
    pub(super) fn other_lane(&self, x: NodeId, from: LaneChoice, out: &mut LaneValue) {
        let changes = self.plan.reach[x.0 as usize] > Reach::Once;
        let (by, within) = (self.operand(from.lane), self.operand(from.within));
        let x = self.operand(x);
        let mut tags = Box::new([UNKNOWN; LANES]);
        let mut numbers = [0; LANES];
        for (warp, whole) in self.warps() {
            if !whole || changes && !warp.clone().all(|lane| has(&self.here, lane)) {
                continue;
            }
            let alike = |lane: usize| (x.at(lane), x.tags.at(lane)) == (x.at(warp.start), x.tags.at(warp.start));
            let all_alike = warp.clone().all(alike);
            for lane in warp.clone() {
                let known = by.tags.at(lane) == NUMBER && within.tags.at(lane) == NUMBER;
                let giver = if known {
                    let own = (lane - warp.start) as u32;
                    let giver = source(from.mode, own, by.at(lane) as u32, within.at(lane) as u32);
                    warp.start + giver as usize
                } else if all_alike {
                    lane
                } else {
                    continue;
                };
                // A warp may have fewer threads than lanes.
                if giver < warp.end {
                    (numbers[lane], tags[lane]) = (x.at(giver), x.tags.at(giver));
                }
            }
        }
        out.put(self.len, |lane| numbers.get(lane).copied().unwrap_or(0));
        out.tags = Tags::found(tags, self.len);
    }
}

fn has(mask: &Mask, lane: usize) -> bool {
    mask[lane / 64] >> (lane % 64) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::source;

    /// As CUDA's functions call it: segments of `width` lanes.
    fn within(width: u32, up: bool) -> u32 {
        (32 - width) << 8 | if up { 0 } else { 31 }
    }

    #[test]
    fn lanes_are_chosen_as_by_cuda() {
        for width in [2, 4, 8, 16, 32_u32] {
            for lane in 0..32 {
                let (first, end) = (lane / width * width, (lane / width + 1) * width);
                for by in 0..32 {
                    assert_eq!(source(0, lane, by, within(width, false)), first + by % width);
                    let up = if lane >= first + by { lane - by } else { lane };
                    assert_eq!(source(1, lane, by, within(width, true)), up, "{width} {lane} {by}");
                    let down = if lane + by < end { lane + by } else { lane };
                    assert_eq!(source(2, lane, by, within(width, false)), down);
                    let other = if lane ^ by < end { lane ^ by } else { lane };
                    assert_eq!(source(3, lane, by, within(width, false)), other);
                }
            }
        }
    }
}
