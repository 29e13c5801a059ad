//! Linearises divergent branches whose code up to the reconvergence point is long or has loops:
//! each block runs under the mask of the lanes pending there.
//!
//! The blocks are in code order. The first block with pending lanes runs; its lanes then become
//! pending at their next blocks. Lanes that leave a loop therefore wait for the rest.

use std::collections::{BTreeSet, HashMap, HashSet};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::Variable;

use super::class::{Class, Classes};
use super::lanes::{Narrow, Pack, each};
use super::masked::{computes, mark};
use super::{Builder, ONE_BY_ONE};
use crate::context::at;
use crate::decode::{self, Kind};
use crate::effects::{self, Register};
use crate::flow::{Flow, Registers};
use crate::plan::{RegionPlan, joins};
use crate::region::FEW;
use crate::values::plain;
use sim_exec::program::{Inst, Pred, Program};

/// Instructions behind all such branches of a region, each for as many vectors as they have.
const MOST: usize = 4000;

/// Instructions for each access to memory there, at least, for masks to be faster than lanes one
/// by one: words at addresses that have nothing to do with each other take a pack as long as them.
const FOR_EACH_ACCESS: usize = 16;

/// What lies between a branch and where its ways meet again.
#[derive(Debug, Clone)]
pub(super) struct Between {
    /// In the order of the code.
    blocks: Vec<usize>,
    /// The instruction where the ways meet.
    pub(crate) join: u32,
}

/// The same, with what is known of registers there.
struct Lives {
    /// Wanted where some block begins, or where the ways meet.
    wanted: Registers,
    /// Written by some block.
    written: Vec<Register>,
}

impl Between {
    /// None where lanes cannot go together. `plan`: the region that it has to be inside of.
    fn of(flow: &Flow, plan: Option<&RegionPlan>, joins: &[Option<usize>], at: usize) -> Option<Between> {
        let join = (*joins.get(at)?)?;
        let mut found = HashSet::new();
        let mut todo = flow.blocks[at].next.clone();
        while let Some(pc) = todo.pop() {
            let one = *flow.at.get(&pc)?;
            if one == join || !found.insert(one) {
                continue;
            }
            let block = &flow.blocks[one];
            let outside = |plan: &RegionPlan| !plan.inside.contains(&one) || plan.cuts.contains_key(&one);
            if block.stop || plan.is_some_and(outside) {
                return None;
            }
            todo.extend(&block.next);
        }
        // Such a region is left instead of going back to its entry.
        if plan.is_some_and(|plan| found.contains(&plan.entry) && !plan.no_return.is_empty()) {
            return None;
        }
        let mut blocks: Vec<usize> = found.into_iter().collect();
        blocks.sort_unstable_by_key(|&at| flow.blocks[at].start);
        Some(Between { blocks, join: flow.blocks[join].start })
    }

    fn length(&self, flow: &Flow) -> usize {
        self.blocks.iter().map(|&at| (flow.blocks[at].end - flow.blocks[at].start) as usize).sum()
    }

    fn lives(&self, program: &Program, flow: &Flow) -> Lives {
        let mut wanted = flow.none();
        let starts = self.blocks.iter().map(|&at| flow.blocks[at].start).chain([self.join]);
        for start in starts {
            match flow.live_at(start) {
                Some(live) => {
                    wanted.join(live);
                }
                None => (0..flow.registers()).for_each(|index| wanted.add(index)),
            }
        }
        let mut written = Vec::new();
        for pc in self.instructions(flow) {
            written.extend(effects::effects(program, &program.code[pc as usize]).writes);
        }
        written.sort_unstable();
        written.dedup();
        Lives { wanted, written }
    }

    fn instructions<'f>(&'f self, flow: &'f Flow) -> impl Iterator<Item = u32> + 'f {
        self.blocks.iter().flat_map(|&at| flow.blocks[at].start..flow.blocks[at].end)
    }

    /// What is known where the ways meet.
    pub(super) fn run(&self, program: &Program, flow: &Flow, classes: &mut Classes<'_>, changed: &mut Registers) {
        for pc in self.instructions(flow) {
            for register in effects::effects(program, &program.code[pc as usize]).writes {
                classes.set(register, Class::Varying);
            }
            mark(program, flow, pc, changed);
        }
    }
}

/// Whether code for a branch at which lanes part would be faster than they are one by one.
pub(crate) fn worth(program: &Program, flow: &Flow, pc: u32) -> bool {
    let Some(at) = flow.blocks.iter().position(|block| block.end == pc + 1) else { return false };
    let Some(between) = Between::of(flow, None, &joins(flow), at) else { return false };
    let accesses = between.instructions(flow).filter(|&pc| {
        matches!(
            decode::kind(&program.code[pc as usize]),
            Kind::Load { .. } | Kind::Store { .. } | Kind::Atom { .. } | Kind::Foreign
        )
    });
    accesses.count() * FOR_EACH_ACCESS <= between.length(flow)
}

/// The branches of a region for which there is such code, by their blocks. `parting`: those at
/// which lanes part often.
pub(super) fn candidates(
    program: &Program,
    flow: &Flow,
    plan: &RegionPlan,
    parting: &BTreeSet<u32>,
    parts: usize,
) -> HashMap<usize, Between> {
    let mut found = HashMap::new();
    if parting.is_empty() {
        return found;
    }
    let (joins, mut room) = (joins(flow), MOST / parts);
    for &at in &plan.blocks {
        let last = flow.blocks[at].end - 1;
        let i = &program.code[last as usize];
        let is_branch = matches!(decode::kind(i), Kind::Branch) && i.guard != Pred::ALWAYS;
        if !is_branch || !parting.contains(&last) || plan.cuts.contains_key(&at) {
            continue;
        }
        if let Some(between) = Between::of(flow, Some(plan), &joins, at)
            && let Some(rest) = room.checked_sub(between.length(flow))
        {
            room = rest;
            found.insert(at, between);
        }
    }
    found
}

impl Pack<'_, '_> {
    /// A mask of the lanes whose bits are set.
    pub(super) fn mask_of_bits(&mut self, bits: Value) -> Narrow {
        let bits = self.e.v.b.ins().splat(types::I32X4, bits);
        each(self.width, |at| {
            let own = (0..4).flat_map(|lane| (1u32 << (4 * at + lane)).to_le_bytes()).collect();
            let own = self.vector(types::I32X4, own);
            let is = self.e.v.b.ins().band(bits, own);
            self.e.v.b.ins().icmp(IntCC::Equal, is, own)
        })
    }
}

/// The lanes that wait for each block, as bits, and where its code is.
struct Waiting {
    variables: HashMap<usize, Variable>,
    heads: Vec<Block>,
}

impl<'p> Builder<'p, '_> {
    /// Executes what lies behind a branch for the lanes that take it and for those that do not, and
    /// goes on where they meet. `taken`: bits of the lanes that take it.
    pub(super) fn part(&mut self, program: &'p Program, between: &Between, at: usize, pc: u32, taken: Value) {
        let flow = self.flow;
        let lives = between.lives(program, flow);
        for &register in &lives.written {
            if self.p.classes.of(register) != Class::Varying && lives.wanted.has(flow.index(register)) {
                self.p.vary(register);
            }
            self.p.classes.set(register, Class::Varying);
        }
        between.instructions(flow).for_each(|pc| mark(program, flow, pc, &mut self.changed));
        let zero = self.p.e.v.int(types::I32, 0);
        let variables: HashMap<usize, Variable> =
            between.blocks.iter().map(|&one| (one, self.p.e.v.b.declare_var(types::I32))).collect();
        variables.values().for_each(|&variable| self.p.e.v.b.def_var(variable, zero));
        let heads = (0..=between.blocks.len()).map(|_| self.p.e.v.b.create_block()).collect();
        let waiting = Waiting { variables, heads };
        let all = self.p.e.v.int(types::I32, u64::from(self.p.width.full()));
        self.wait(&waiting, program.code[pc as usize].x as u32, taken);
        let others = self.p.e.v.b.ins().band_not(all, taken);
        self.wait(&waiting, pc + 1, others);
        let base = self.p.classes.clone();
        self.p.e.v.b.ins().jump(waiting.heads[0], &[]);
        for (number, &one) in between.blocks.iter().enumerate() {
            self.p.e.v.b.switch_to_block(waiting.heads[number]);
            let run = self.p.e.v.b.create_block();
            let lanes = self.p.e.v.b.use_var(waiting.variables[&one]);
            self.p.e.v.b.ins().brif(lanes, run, &[], waiting.heads[number + 1], &[]);
            self.p.e.v.b.switch_to_block(run);
            let zero = self.p.e.v.int(types::I32, 0);
            self.p.e.v.b.def_var(waiting.variables[&one], zero);
            self.p.e.v.forget();
            self.p.classes = base.clone();
            self.parted_block(program, between, &lives, &waiting, number, lanes);
        }
        self.p.e.v.b.switch_to_block(waiting.heads[between.blocks.len()]);
        self.p.e.v.forget();
        self.p.classes = base;
        self.go(program, Some(at), between.join);
    }

    /// Has lanes wait for the block that begins at an instruction. Where the ways meet they do so
    /// anyway.
    fn wait(&mut self, waiting: &Waiting, to: u32, lanes: Value) {
        let target = self.flow.at.get(&to).and_then(|at| waiting.variables.get(at));
        if let Some(&variable) = target {
            let known = self.p.e.v.b.use_var(variable);
            let known = self.p.e.v.b.ins().bor(known, lanes);
            self.p.e.v.b.def_var(variable, known);
        }
    }

    fn parted_block(
        &mut self,
        program: &'p Program,
        between: &Between,
        lives: &Lives,
        waiting: &Waiting,
        number: usize,
        lanes: Value,
    ) {
        let flow = self.flow;
        let block = &flow.blocks[between.blocks[number]];
        let mask = self.p.mask_of_bits(lanes);
        let mut branch: Option<&Inst> = None;
        for pc in block.start..block.end {
            let i = &program.code[pc as usize];
            if matches!(decode::kind(i), Kind::Branch) {
                branch = Some(i);
                break;
            }
            let wanted = |&register: &Register| lives.wanted.has(flow.index(register));
            let aside = computes(i) && !effects::effects(program, i).writes.iter().any(wanted);
            self.p.under(i, pc, mask, aside);
        }
        match branch {
            None => self.wait(waiting, block.end, lanes),
            Some(i) if i.guard == Pred::ALWAYS => self.wait(waiting, i.x as u32, lanes),
            Some(i) => {
                let taken = if self.p.classes.pred(i.guard.0).differs() {
                    let masks = self.p.masks(i.guard.0);
                    let bits = self.p.bits(masks);
                    self.p.e.v.b.ins().band(bits, lanes)
                } else {
                    let truth = self.p.e.v.truth(i.guard.0);
                    let zero = self.p.e.v.int(types::I32, 0);
                    self.p.e.v.b.ins().select(truth, lanes, zero)
                };
                self.wait(waiting, i.x as u32, taken);
                let others = self.p.e.v.b.ins().band_not(lanes, taken);
                self.wait(waiting, block.end, others);
            }
        }
        // Lanes that have jumped back go on there.
        let position = |pc: &u32| between.blocks.iter().position(|one| flow.at.get(pc) == Some(one));
        let mut back: Vec<usize> = block.next.iter().filter_map(position).filter(|&to| to <= number).collect();
        back.sort_unstable();
        back.dedup();
        for to in back {
            let [turn, on, spent] = [0; 3].map(|_| self.p.e.v.b.create_block());
            let b = &mut self.p.e.v.b;
            let lanes = b.use_var(waiting.variables[&between.blocks[to]]);
            b.ins().brif(lanes, turn, &[], on, &[]);
            b.switch_to_block(turn);
            let fuel = b.use_var(self.fuel);
            let fuel = b.ins().iadd_imm_s(fuel, -1);
            b.def_var(self.fuel, fuel);
            b.set_cold_block(spent);
            b.ins().brif(fuel, waiting.heads[to], &[], spent, &[]);
            b.switch_to_block(spent);
            let kept = (self.p.classes.clone(), self.p.e.v.at_hand());
            self.leave_parted(between, lives, waiting);
            self.p.classes = kept.0;
            self.p.e.v.restore(kept.1);
            self.p.e.v.b.switch_to_block(on);
        }
        self.p.e.v.b.ins().jump(waiting.heads[number + 1], &[]);
    }

    /// Leaves the region, each lane in front of the block that it waits for.
    fn leave_parted(&mut self, between: &Between, lives: &Lives, waiting: &Waiting) {
        let flow = self.flow;
        for index in self.changed.clone().iter().filter(|&index| lives.wanted.has(index)) {
            if index < flow.registers() {
                self.p.leave(flow.register(index));
            }
        }
        let join = self.p.word_everywhere(between.join);
        let mut exits: Narrow = each(self.p.width, |_| join);
        for &one in &between.blocks {
            let lanes = self.p.e.v.b.use_var(waiting.variables[&one]);
            let mask = self.p.mask_of_bits(lanes);
            let start = self.p.word_everywhere(flow.blocks[one].start);
            exits = each(self.p.width, |at| self.p.chosen(mask[at], start, exits[at]));
        }
        let v = &mut self.p.e.v;
        let context = v.context;
        let (one, few) = (v.int(types::I64, 1), v.int(types::I64, FEW));
        v.b.ins().store(plain(), one, context, at!(spent));
        v.b.ins().store(plain(), few, context, at!(fuel));
        let place = v.b.ins().ishl_imm_u(v.lane, 2);
        let place = v.b.ins().iadd(context, place);
        for (part, value) in exits.into_iter().enumerate() {
            v.b.ins().store(plain(), value, place, at!(exits) + 16 * part as i32);
        }
        // So the host looks where each lane is.
        let exit = v.int(types::I32, u64::from(between.join | ONE_BY_ONE));
        v.b.ins().jump(self.next_pack, &[exit.into()]);
    }
}
