//! Which blocks a region has, and where it ends although native code could go on.

use std::collections::{HashMap, HashSet};

use super::decode::{self, Kind};
use super::flow::Flow;
use crate::interp::exec::load_store::SHARED;
use crate::interp::program::{Inst, Program};

/// Instructions that one region may have.
const MOST: usize = 6000;

/// The blocks of a region in the order of the code, and the instructions in front of which it ends
/// although native code could go on.
pub(super) struct RegionPlan {
    pub blocks: Vec<usize>,
    pub inside: HashSet<usize>,
    /// Of each block: an instruction that is not executed any more.
    pub cuts: HashMap<usize, u32>,
    /// Blocks from which the region is left instead of going back to its entry.
    pub no_return: HashSet<usize>,
    pub entry: usize,
}

/// Loads from shared memory that may follow a store of another lane in the same region: they have
/// to wait for that lane. (Where code is right, a barrier stands between.)
fn stores_shared(inst: &Inst, kind: Kind) -> bool {
    matches!(kind, Kind::Store { .. }) && inst.z & 15 == SHARED
}

fn loads_shared(inst: &Inst, kind: Kind) -> bool {
    matches!(kind, Kind::Load { .. }) && inst.z & 15 == SHARED
}

/// `goes_on` says which instructions that stop native code a region does not end at; a region that
/// has such ones is of whole warps, whose lanes wait for nobody in it.
pub(super) fn plan(program: &Program, flow: &Flow, entry: usize, goes_on: Option<fn(&Inst) -> bool>) -> RegionPlan {
    let mut inside = HashSet::new();
    let mut todo = std::collections::VecDeque::from([entry]);
    let mut size = 0;
    while let Some(at) = todo.pop_front() {
        let block = &flow.blocks[at];
        let length = (block.end - block.start) as usize;
        let ends = block.stop && !goes_on.is_some_and(|goes_on| goes_on(&program.code[block.end as usize - 1]));
        if ends || size + length > MOST && at != entry || !inside.insert(at) {
            continue;
        }
        size += length;
        todo.extend(block.next.iter().filter_map(|next| flow.at.get(next)));
    }
    let mut blocks: Vec<usize> = inside.iter().copied().collect();
    blocks.sort_unstable_by_key(|&at| flow.blocks[at].start);
    // Which blocks a store to shared memory may stand before.
    let mut dirty: HashMap<usize, bool> = blocks.iter().map(|&at| (at, false)).collect();
    let mut changed = true;
    let mut cuts = HashMap::new();
    // An entry that has to wait itself is not gone back to after a store.
    let mut waits = false;
    let mut stored_behind = HashSet::new();
    while changed && goes_on.is_none() {
        changed = false;
        cuts.clear();
        stored_behind.clear();
        for &at in &blocks {
            let block = &flow.blocks[at];
            let mut stored = dirty[&at];
            for pc in block.start..block.end {
                let inst = &program.code[pc as usize];
                let kind = decode::kind(inst);
                if stored && loads_shared(inst, kind) {
                    cuts.entry(at).or_insert(pc);
                }
                stored |= stores_shared(inst, kind);
            }
            if stored {
                stored_behind.insert(at);
                for next in block.next.iter().filter_map(|next| flow.at.get(next)) {
                    if let Some(dirty) = dirty.get_mut(next)
                        && !*dirty
                        && !(waits && *next == entry)
                    {
                        *dirty = true;
                        changed = true;
                    }
                }
            }
        }
        if !changed && !waits && !cuts.is_empty() {
            (waits, changed) = (true, true);
            dirty.values_mut().for_each(|dirty| *dirty = false);
        }
    }
    RegionPlan { blocks, inside, cuts, no_return: if waits { stored_behind } else { HashSet::new() }, entry }
}
