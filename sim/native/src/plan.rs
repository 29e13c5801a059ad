//! Which blocks a region has, and where it ends although native code could go on; where ways that
//! part at a branch meet again.

use std::collections::{HashMap, HashSet};

use super::decode::{self, Kind};
use super::flow::Flow;
use sim_exec::exec::load_store::SHARED;
use sim_exec::operations::operands;
use sim_exec::program::{Inst, Program};

/// Instructions that one region may have.
pub(super) const MOST: usize = 6000;

/// The blocks of a region in the order of the code, and the instructions in front of which it ends
/// although native code could go on.
pub(super) struct RegionPlan {
    pub(crate) blocks: Vec<usize>,
    pub(crate) inside: HashSet<usize>,
    /// Of each block: an instruction that is not executed any more.
    pub(crate) cuts: HashMap<usize, u32>,
    /// Blocks from which the region is left instead of going back to its entry.
    pub(crate) no_return: HashSet<usize>,
    pub(crate) entry: usize,
}

/// What a lane has done in a region with shared memory. A load behind a store may be of what
/// another lane stores: it has to wait for that lane. (Where code is right, a barrier stands
/// between.)
const STORED: u8 = 1;
/// A store behind a load may be to what another lane has not loaded yet. In machine code only: the
/// assembler leaves out `bar.warp.sync` where it knows that the warp is together.
const LOADED: u8 = 2;

fn stores_shared(inst: &Inst, kind: Kind) -> bool {
    matches!(kind, Kind::Store { .. }) && operands::Store::of(inst).space() == SHARED
}

fn loads_shared(inst: &Inst, kind: Kind) -> bool {
    matches!(kind, Kind::Load { .. }) && operands::Load::of(inst).space() == SHARED
}

/// `most`: the instructions that it may have; it ends where more would follow. `goes_on` says which
/// instructions that stop native code a region does not end at; a region that has such ones is of
/// whole warps, whose lanes wait for nobody in it. `bound`: a block in front of which it ends.
pub(super) fn plan(
    program: &Program,
    flow: &Flow,
    entry: usize,
    most: usize,
    goes_on: Option<fn(&Inst) -> bool>,
    bound: Option<usize>,
) -> RegionPlan {
    let mut inside = HashSet::new();
    let mut todo = std::collections::VecDeque::from([entry]);
    let mut size = 0;
    while let Some(at) = todo.pop_front() {
        let block = &flow.blocks[at];
        let length = (block.end - block.start) as usize;
        let ends = block.stop && !goes_on.is_some_and(|goes_on| goes_on(&program.code[block.end as usize - 1]));
        if ends || bound == Some(at) || size + length > most && at != entry || !inside.insert(at) {
            continue;
        }
        size += length;
        todo.extend(block.next.iter().filter_map(|next| flow.at.get(next)));
    }
    let mut blocks: Vec<usize> = inside.iter().copied().collect();
    blocks.sort_unstable_by_key(|&at| flow.blocks[at].start);
    let machine = program.machine.is_some();
    // What lanes may have done before each block.
    let mut before: HashMap<usize, u8> = blocks.iter().map(|&at| (at, 0)).collect();
    let mut changed = true;
    let mut cuts = HashMap::new();
    // An entry that has to wait itself is not gone back to after that.
    let mut waits = false;
    let mut done_behind = HashSet::new();
    while changed && goes_on.is_none() {
        changed = false;
        cuts.clear();
        done_behind.clear();
        for &at in &blocks {
            let block = &flow.blocks[at];
            let mut done = before[&at];
            for pc in block.start..block.end {
                let inst = &program.code[pc as usize];
                let kind = decode::kind(inst);
                let (stores, loads) = (stores_shared(inst, kind), loads_shared(inst, kind));
                if loads && done & STORED != 0 || stores && done & LOADED != 0 {
                    cuts.entry(at).or_insert(pc);
                }
                done |= if stores { STORED } else { 0 } | if loads && machine { LOADED } else { 0 };
            }
            if done != 0 {
                done_behind.insert(at);
                for next in block.next.iter().filter_map(|next| flow.at.get(next)) {
                    if let Some(before) = before.get_mut(next)
                        && *before | done != *before
                        && !(waits && *next == entry)
                    {
                        *before |= done;
                        changed = true;
                    }
                }
            }
        }
        if !changed && !waits && !cuts.is_empty() {
            (waits, changed) = (true, true);
            before.values_mut().for_each(|before| *before = 0);
        }
    }
    RegionPlan { blocks, inside, cuts, no_return: if waits { done_behind } else { HashSet::new() }, entry }
}

/// Of a block: see [`joins`].
pub(super) fn join(flow: &Flow, block: usize) -> Option<usize> {
    joins(flow).get(block).copied().flatten()
}

/// Of each block the first one that all ways from its end lead to, if there is one before the
/// function's end: its immediate postdominator.
pub(super) fn joins(flow: &Flow) -> Vec<Option<usize>> {
    let end = flow.blocks.len();
    let next: Vec<Vec<usize>> = flow
        .blocks
        .iter()
        .map(|block| {
            let known = block.next.iter().map(|next| flow.at.get(next).copied().unwrap_or(end));
            let known: Vec<usize> = known.collect();
            if known.is_empty() { vec![end] } else { known }
        })
        .collect();
    let mut before = vec![Vec::new(); end + 1];
    for (at, next) in next.iter().enumerate() {
        next.iter().for_each(|&next| before[next].push(at));
    }
    // From the end backwards, each block behind those that it leads to where loops allow it.
    let mut numbers = vec![usize::MAX; end + 1];
    let mut order = Vec::new();
    let mut seen = vec![false; end + 1];
    let mut stack = vec![(end, 0)];
    seen[end] = true;
    while let Some((at, child)) = stack.pop() {
        match before[at].get(child) {
            Some(&one) => {
                stack.push((at, child + 1));
                if !std::mem::replace(&mut seen[one], true) {
                    stack.push((one, 0));
                }
            }
            None => {
                numbers[at] = order.len();
                order.push(at);
            }
        }
    }
    let mut joins = vec![None; end + 1];
    joins[end] = Some(end);
    let mut changed = true;
    while changed {
        changed = false;
        for &at in order.iter().rev().filter(|&&at| at != end) {
            let mut new: Option<usize> = None;
            for &one in next[at].iter().filter(|&&one| joins[one].is_some()) {
                let mut a = one;
                if let Some(mut b) = new {
                    while a != b {
                        let lower = if numbers[a] < numbers[b] { &mut a } else { &mut b };
                        match joins[*lower] {
                            Some(next) => *lower = next,
                            None => return vec![None; end + 1],
                        }
                    }
                }
                new = Some(a);
            }
            if new != joins[at] {
                (joins[at], changed) = (new, true);
            }
        }
    }
    joins.into_iter().map(|join| join.filter(|&join| join != end)).collect()
}
