//! Short code behind a branch, which a pack executes under masks where its lanes part.

use std::collections::HashMap;

use super::lanes::{Narrow, Pack};
use super::uniformity::{Classes, Way};
use crate::decode::{self, Kind};
use crate::effects;
use crate::flow::{Flow, Registers};
use crate::instruction::simple_special;
use crate::plan::RegionPlan;
use sim_exec::operations::operands;
use sim_exec::program::{Inst, Pred, Program};

/// Instructions that one side of a branch may have.
const MOST: u32 = 48;

/// The two sides of a branch that meet again soon.
#[derive(Debug, Clone)]
pub(super) struct Short {
    /// First instruction and the one behind the last.
    pub(crate) untaken: Option<(u32, u32)>,
    pub(crate) taken: Option<(u32, u32)>,
    /// Where they meet.
    pub(crate) join: u32,
}

impl Short {
    /// How an instruction is executed: by all lanes if it only computes, and nobody elsewhere wants
    /// what.
    pub(super) fn way(&self, program: &Program, flow: &Flow, i: &Inst) -> Way {
        let effects = effects::effects(program, i);
        let places = [Some(self.join), self.untaken.map(|side| side.0), self.taken.map(|side| side.0)];
        let wanted = effects.writes.iter().any(|&register| {
            let index = flow.index(register);
            places.iter().flatten().any(|&pc| flow.live_at(pc).is_none_or(|live| live.has(index)))
        });
        if computes(i) && !wanted { Way::Aside } else { Way::Masked }
    }

    /// What is known behind both sides.
    pub(super) fn run(&self, program: &Program, flow: &Flow, classes: &mut Classes<'_>, changed: &mut Registers) {
        for (start, end) in [self.untaken, self.taken].into_iter().flatten() {
            for pc in start..end {
                let i = &program.code[pc as usize];
                if !matches!(decode::kind(i), Kind::Branch) {
                    classes.step(i, self.way(program, flow, i));
                    mark(program, flow, pc, changed);
                }
            }
        }
    }
}

/// Whether an instruction does nothing but compute.
pub(super) fn computes(i: &Inst) -> bool {
    match decode::kind(i) {
        Kind::Load { .. } | Kind::Store { .. } | Kind::Atom { .. } | Kind::Foreign | Kind::Stop => false,
        Kind::Special => simple_special(operands::Special::of(i).number()),
        _ => true,
    }
}

/// Compiles an instruction of the lanes of a mask. `aside`: the others may execute it, too.
pub(super) fn under(i: &Inst, pc: u32, mask: Narrow, aside: bool, p: &mut Pack<'_, '_>) {
    p.mask = (!aside).then_some(mask);
    p.instruction(i, pc, if aside { Way::Aside } else { Way::Masked });
    p.mask = None;
}

/// The branches of a region behind which code is short, by their blocks.
pub(super) fn candidates(program: &Program, flow: &Flow, plan: &RegionPlan) -> HashMap<usize, Short> {
    let mut before: HashMap<u32, u32> = HashMap::new();
    for &at in &plan.blocks {
        flow.blocks[at].next.iter().for_each(|&next| *before.entry(next).or_default() += 1);
    }
    // A side that only this branch leads to: where it ends, and where it goes on.
    let side = |pc: u32| {
        let at = *flow.at.get(&pc).filter(|at| plan.inside.contains(at))?;
        let block = &flow.blocks[at];
        let fits = block.end - block.start <= MOST && before.get(&pc) == Some(&1) && at != plan.entry;
        let plain = (block.start..block.end).all(|pc| {
            let i = &program.code[pc as usize];
            match decode::kind(i) {
                Kind::Stop => false,
                Kind::Branch => i.guard == Pred::ALWAYS,
                _ => true,
            }
        });
        let [next] = block.next[..] else { return None };
        (fits && plain && !plan.cuts.contains_key(&at) && next > pc).then_some((block.end, next))
    };
    let mut found = HashMap::new();
    for &at in &plan.blocks {
        let block = &flow.blocks[at];
        let i = &program.code[block.end as usize - 1];
        if !matches!(decode::kind(i), Kind::Branch) || i.guard == Pred::ALWAYS || plan.cuts.contains_key(&at) {
            continue;
        }
        let (target, fall) = (operands::Branch::of(i).target(), block.end);
        if target <= fall {
            continue;
        }
        let short = match (side(fall), side(target)) {
            (Some((end, next)), _) if next == target => Short { untaken: Some((fall, end)), taken: None, join: target },
            (Some((end, next)), Some((other_end, other_next))) if next == other_next => {
                Short { untaken: Some((fall, end)), taken: Some((target, other_end)), join: next }
            }
            _ => continue,
        };
        if flow.at.get(&short.join).is_some_and(|join| plan.inside.contains(join)) || short.taken.is_none() {
            found.insert(at, short);
        }
    }
    found
}

/// Notes what an instruction may change.
pub(super) fn mark(program: &Program, flow: &Flow, pc: u32, changed: &mut Registers) {
    let effects = effects::effects(program, &program.code[pc as usize]);
    effects.writes.iter().for_each(|&register| changed.add(flow.index(register)));
}
