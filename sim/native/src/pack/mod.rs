//! One region for a pack of lanes at once: as `region`, but with the lanes' values in the host's
//! vectors. All lanes of a pack go the same way. Where they would part, short code is executed for
//! both kinds of lanes under masks. Else the pack leaves at that instruction, and `region` goes on
//! lane by lane, in a whole warp up to where the ways meet again. A pack may be a whole warp: then
//! its region goes on behind what warps do together.
//!
//! `uniformity` says which values are one for the whole pack, `halves` has those that are one for
//! each half of it, `lanes` keeps those that are not. `arithmetic`, `predicates`, `access`,
//! `address_checks` and `gather_scatter` make code for them, `collective` for what warps do
//! together, `frame` takes and leaves them. `instruction` chooses, `if_conversion` knows the short
//! code. This file has the flow of control.

mod access;
mod address_checks;
mod arithmetic;
mod collective;
mod frame;
mod gather_scatter;
#[cfg(target_arch = "x86_64")]
mod gather_scatter_avx2;
mod halves;
mod if_conversion;
mod instruction;
mod lanes;
mod predicates;
pub(super) mod uniformity;
pub(super) mod width;

use crate::pack::collective::together;
use crate::pack::if_conversion::under;
use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, InstBuilder, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::Variable;

use if_conversion::{Short, mark};
use lanes::Pack;
use uniformity::{Class, Classes, Way};
use width::{Narrow, Width};

use super::context::at;
use super::decode::{self, Kind};
use super::effects::Register;
use super::flow::{Flow, Registers};
use super::instruction::Emitter;
use super::memory::Access;
use super::plan::{RegionPlan, plan};
use super::region::{Built, FEW, Turns};
use super::relocations::Outside;
use super::values::plain;
use sim_exec::operations::operands;
use sim_exec::program::{LANES, Pred, Program};

/// Instructions that a region of packs may have, each for as many vectors as they have.
const MOST: usize = 4000;

/// Marks where lanes have left to be gone on with one by one.
pub(super) const ONE_BY_ONE: u32 = 1 << 31;

/// What is supposed of the values that a region finds.
pub(super) struct Supposed {
    /// Lanes of a pack.
    pub(crate) width: Width,
    pub(crate) registers: HashMap<usize, Class>,
    pub(crate) tid: [Class; 3],
}

/// What is known at the head of a block.
#[derive(Clone)]
struct Known<'p> {
    classes: Classes<'p>,
    /// What may have changed since the entry.
    changed: Registers,
}

struct Builder<'p, 'b> {
    p: Pack<'p, 'b>,
    flow: &'p Flow,
    plan: RegionPlan,
    known: HashMap<usize, Known<'p>>,
    changed: Registers,
    heads: HashMap<usize, Block>,
    short: HashMap<usize, Short>,
    fuel: Variable,
    next_pack: Block,
    /// Packs are whole warps.
    whole: bool,
    exits: Vec<HashMap<usize, Class>>,
    /// What is checked of registers at the entry.
    checked: Vec<(usize, Class)>,
}

/// Compiles the region that begins at `pc` into `function`, for packs.
pub(super) fn build(
    program: &Program,
    flow: &Flow,
    pc: u32,
    lent: (&mut Function, &mut cranelift_frontend::FunctionBuilderContext),
    convention: CallConv,
    config: cranelift_codegen::isa::TargetFrontendConfig,
    supposed: &Supposed,
) -> Option<Built> {
    let entry = *flow.at.get(&pc)?;
    let whole = supposed.width.lanes() == LANES;
    if flow.blocks[entry].stop && !(whole && collective::goes_on(&program.code[pc as usize])) {
        return None;
    }
    let most = MOST / supposed.width.parts();
    let plan = plan(program, flow, entry, most, whole.then_some(collective::goes_on), None);
    let (v, turns) = Turns::begin(program, flow, lent, convention);
    let (fuel, next_pack) = (turns.fuel, turns.next);
    let access = Access::new(turns.fault);
    let pack = Pack::new(Emitter { v, access }, Classes::new(program, flow, supposed.tid), supposed.width);
    let short = if_conversion::candidates(program, flow, &plan);
    let changed = flow.none();
    let mut builder = Builder {
        p: pack,
        flow,
        plan,
        known: HashMap::new(),
        changed,
        heads: HashMap::new(),
        short,
        fuel,
        next_pack,
        whole,
        exits: Vec::new(),
        checked: Vec::new(),
    };
    builder.enter(program, entry, supposed);
    for at in builder.plan.blocks.clone() {
        builder.block(program, at);
    }
    if whole {
        turns.end_at_once(&mut builder.p.e.v);
    } else {
        turns.end(&mut builder.p.e.v, |v, left, lane| {
            let done = v.int(types::I32, u64::from(supposed.width.full()));
            let done = v.b.ins().ishl(done, lane);
            v.b.ins().band_not(left, done)
        });
    }
    let access = &builder.p.e.access;
    let (exits, supposed) = (std::mem::take(&mut builder.exits), std::mem::take(&mut builder.checked));
    let shape = Built { sites: access.sites.len() as u32, local: access.local, exits, supposed };
    builder.p.e.v.b.finalize(config);
    Some(shape)
}

impl<'p> Builder<'p, '_> {
    fn block_now(&mut self) -> Block {
        self.p.e.v.b.create_block()
    }

    /// Where an edge leads inside the region.
    fn inside(&self, from: Option<usize>, to: u32) -> Option<usize> {
        let at = self.flow.at.get(&to).copied().filter(|at| self.plan.inside.contains(at))?;
        let leaves = from.is_some_and(|from| at == self.plan.entry && self.plan.no_return.contains(&from));
        (!leaves).then_some(at)
    }

    /// Finds out what is known at the head of each block.
    fn analyse(&mut self, program: &'p Program) {
        let mut changing = true;
        while changing {
            changing = false;
            for at in self.plan.blocks.clone() {
                let Some(mut now) = self.known.get(&at).cloned() else { continue };
                let block = &self.flow.blocks[at];
                let mut next: Vec<(u32, Known<'p>)> = Vec::new();
                let mut ended = false;
                for pc in block.start..block.end {
                    if self.plan.cuts.get(&at) == Some(&pc) {
                        ended = true;
                        break;
                    }
                    let i = &program.code[pc as usize];
                    if matches!(decode::kind(i), Kind::Branch) {
                        next.push((operands::Branch::of(i).target(), now.clone()));
                        if i.guard != Pred::ALWAYS {
                            next.push((pc + 1, now.clone()));
                            if now.classes.pred(i.guard.0).differs() {
                                let mut both = now.clone();
                                if let Some(short) = self.short.get(&at) {
                                    short.run(program, self.flow, &mut both.classes, &mut both.changed);
                                    next.push((short.join, both));
                                }
                            }
                        }
                        ended = true;
                        break;
                    }
                    if matches!(decode::kind_of_warp(i), Kind::Stop) {
                        now.classes.together(i);
                    } else {
                        now.classes.step(i, Way::Plain);
                    }
                    mark(program, self.flow, pc, &mut now.changed);
                }
                if !ended {
                    next.push((block.end, now));
                }
                for (to, state) in next {
                    let Some(target) = self.inside(Some(at), to) else { continue };
                    match self.known.get_mut(&target) {
                        Some(known) => {
                            changing |= known.classes.join(&state.classes);
                            changing |= known.changed.join(&state.changed);
                        }
                        None => {
                            self.known.insert(target, state);
                            changing = true;
                        }
                    }
                }
            }
        }
    }

    fn head(&mut self, at: usize) -> Block {
        match self.heads.get(&at) {
            Some(&known) => known,
            None => {
                let new = self.block_now();
                self.heads.insert(at, new);
                new
            }
        }
    }

    /// Goes on at an instruction, from where code is made now.
    fn go(&mut self, program: &'p Program, from: Option<usize>, to: u32) {
        let Some(target) = self.inside(from, to) else {
            let changed = self.changed.clone();
            self.leave(program, to, &changed, false, false);
            return;
        };
        let start = |at: usize| self.flow.blocks[at].start;
        if let Some(from) = from
            && start(target) <= start(from)
        {
            let (on, spent) = (self.block_now(), self.block_now());
            let b = &mut self.p.e.v.b;
            b.set_cold_block(spent);
            let fuel = b.use_var(self.fuel);
            let fuel = b.ins().iadd_imm_s(fuel, -1);
            b.def_var(self.fuel, fuel);
            b.ins().brif(fuel, on, &[], spent, &[]);
            b.switch_to_block(spent);
            let changed = self.changed.clone();
            let kept = (self.p.classes.clone(), self.p.e.v.at_hand());
            self.leave(program, to, &changed, false, true);
            self.p.classes = kept.0;
            self.p.e.v.restore(kept.1);
            self.p.e.v.b.switch_to_block(on);
        }
        let wanted = &self.known[&target].classes;
        let live = self.flow.live_at(to).cloned().unwrap_or_else(|| self.flow.none());
        let differ: Vec<Register> = live
            .iter()
            .filter(|&index| index < self.flow.registers())
            .map(|index| self.flow.register(index))
            .filter(|&register| wanted.of(register) != self.p.classes.of(register))
            .collect();
        for register in differ {
            match self.known[&target].classes.of(register) {
                Class::Varying => self.p.vary(register),
                Class::Halves(_) => halves::halve(register, &mut self.p),
                _ => {}
            }
        }
        let head = self.head(target);
        self.p.e.v.b.ins().jump(head, &[]);
    }

    /// Leaves the region in front of an instruction: what has changed and is wanted goes to the
    /// frame.
    fn leave(&mut self, program: &Program, pc: u32, changed: &Registers, one_by_one: bool, spent: bool) {
        let live = self.flow.live_before(program, pc);
        for index in changed.iter().filter(|&index| live.as_ref().is_none_or(|live| live.has(index))) {
            if index < self.flow.registers() {
                self.p.leave(self.flow.register(index));
            }
        }
        if self.whole && !one_by_one {
            let regular = |index: usize| {
                let class = self.p.classes.of(self.flow.register(index));
                matches!(class, Class::Uniform | Class::Affine(_) | Class::Halves(_)).then_some((index, class))
            };
            let wanted = |&index: &usize| live.as_ref().is_none_or(|live| live.has(index));
            let classes = (0..self.flow.registers()).filter(wanted).filter_map(regular).collect();
            let v = &mut self.p.e.v;
            let address = v.address_of(Outside::Exit(self.exits.len() as u32));
            v.b.ins().store(plain(), address, v.context, at!(left));
            self.exits.push(classes);
        }
        let parts = self.p.width.parts();
        let v = &mut self.p.e.v;
        let context = v.context;
        if spent {
            let one = v.int(types::I64, 1);
            v.b.ins().store(plain(), one, context, at!(spent));
            // The next lanes may wait for something as well: they find out sooner.
            let few = v.int(types::I64, FEW);
            v.b.ins().store(plain(), few, context, at!(fuel));
        }
        let exit = v.int(types::I32, u64::from(if one_by_one { pc | ONE_BY_ONE } else { pc }));
        // Where a whole warp goes on together, what is answered says enough.
        if !self.whole || one_by_one {
            let place = v.b.ins().ishl_imm_u(v.lane, 2);
            let place = v.b.ins().iadd(context, place);
            let all = v.b.ins().splat(types::I32X4, exit);
            for part in 0..parts as i32 {
                v.b.ins().store(plain(), all, place, at!(exits) + 16 * part);
            }
        }
        v.b.ins().jump(self.next_pack, &[exit.into()]);
    }

    fn block(&mut self, program: &'p Program, at: usize) {
        let Some(known) = self.known.get(&at).cloned() else { return };
        let head = self.head(at);
        self.p.e.v.b.switch_to_block(head);
        self.p.e.v.forget();
        self.p.classes = known.classes;
        self.changed = known.changed;
        let block = &self.flow.blocks[at];
        let (start, end) = (block.start, block.end);
        for pc in start..end {
            if self.plan.cuts.get(&at) == Some(&pc) {
                self.go_out(program, pc);
                return;
            }
            let i = &program.code[pc as usize];
            if matches!(decode::kind(i), Kind::Branch) {
                self.branch(program, at, pc);
                return;
            }
            if matches!(decode::kind_of_warp(i), Kind::Stop) {
                self.together(program, pc);
                continue;
            }
            self.checked(program, pc);
            self.p.instruction(i, pc, Way::Plain);
            mark(program, self.flow, pc, &mut self.changed);
        }
        self.go(program, Some(at), end);
    }

    /// An instruction of the whole warp. Where not all lanes execute it, the region ends.
    fn together(&mut self, program: &Program, pc: u32) {
        let i = &program.code[pc as usize];
        if i.guard != Pred::ALWAYS {
            let (out, on) = (self.block_now(), self.block_now());
            let all = if self.p.classes.pred(i.guard.0).differs() {
                let masks = self.p.masks(i.guard.0);
                let bits = self.p.bits(masks);
                self.p.e.v.b.ins().icmp_imm_s(IntCC::Equal, bits, -1)
            } else {
                self.p.e.v.truth(i.guard.0)
            };
            self.p.e.v.b.ins().brif(all, on, &[], out, &[]);
            self.p.e.v.b.switch_to_block(out);
            let known = self.p.e.v.at_hand();
            self.go_out(program, pc);
            self.p.e.v.restore(known);
            self.p.e.v.b.switch_to_block(on);
        }
        together(i, pc, &mut self.p);
        mark(program, self.flow, pc, &mut self.changed);
    }

    fn go_out(&mut self, program: &Program, pc: u32) {
        let changed = self.changed.clone();
        self.leave(program, pc, &changed, false, false);
    }

    /// Leaves in front of an instruction that is executed once for all lanes, if an operand would
    /// wrap among them.
    fn checked(&mut self, program: &Program, pc: u32) {
        let Some(bad) = self.p.wraps(&program.code[pc as usize]) else { return };
        let (out, on) = (self.block_now(), self.block_now());
        let b = &mut self.p.e.v.b;
        b.set_cold_block(out);
        b.ins().brif(bad, out, &[], on, &[]);
        b.switch_to_block(out);
        let known = self.p.e.v.at_hand();
        let changed = self.changed.clone();
        self.leave(program, pc, &changed, true, false);
        self.p.e.v.restore(known);
        self.p.e.v.b.switch_to_block(on);
    }

    /// One way of a branch: a block that goes on at an instruction.
    fn way(&mut self, program: &'p Program, at: usize, block: Block, to: u32) {
        let kept = (self.p.classes.clone(), self.changed.clone(), self.p.e.v.at_hand());
        self.p.e.v.b.switch_to_block(block);
        self.go(program, Some(at), to);
        (self.p.classes, self.changed) = (kept.0, kept.1);
        self.p.e.v.restore(kept.2);
    }

    fn branch(&mut self, program: &'p Program, at: usize, pc: u32) {
        let i = &program.code[pc as usize];
        let target = operands::Branch::of(i).target();
        if i.guard == Pred::ALWAYS {
            self.go(program, Some(at), target);
            return;
        }
        let (taken, other) = (self.block_now(), self.block_now());
        if !self.p.classes.pred(i.guard.0).differs() {
            let truth = self.p.e.v.truth(i.guard.0);
            self.p.e.v.b.ins().brif(truth, taken, &[], other, &[]);
            self.way(program, at, taken, target);
            self.way(program, at, other, pc + 1);
            return;
        }
        let masks = self.p.masks(i.guard.0);
        let bits = self.p.bits(masks);
        let (not_all, mixed) = (self.block_now(), self.block_now());
        let b = &mut self.p.e.v.b;
        let all = b.ins().icmp_imm_u(IntCC::Equal, bits, i64::from(self.p.width.full()));
        b.ins().brif(all, taken, &[], not_all, &[]);
        b.switch_to_block(not_all);
        b.ins().brif(bits, mixed, &[], other, &[]);
        self.way(program, at, taken, target);
        self.way(program, at, other, pc + 1);
        self.p.e.v.b.switch_to_block(mixed);
        match self.short.get(&at).cloned() {
            Some(short) => {
                self.masked(program, &short, masks);
                self.go(program, Some(at), short.join);
            }
            None => {
                let changed = self.changed.clone();
                self.p.e.v.b.set_cold_block(mixed);
                self.leave(program, pc, &changed, true, false);
            }
        }
    }

    /// Executes short code for the lanes that take a branch, and for those that do not.
    fn masked(&mut self, program: &'p Program, short: &Short, taken: Narrow) {
        for (side, mask) in [(&short.untaken, false), (&short.taken, true)] {
            let Some((start, end)) = *side else { continue };
            let mask = if mask { taken } else { taken.map(|part| self.p.e.v.b.ins().bnot(part)) };
            for pc in start..end {
                let i = &program.code[pc as usize];
                if matches!(decode::kind(i), Kind::Branch) {
                    continue;
                }
                let aside = short.way(program, self.flow, i) == Way::Aside;
                under(i, pc, mask, aside, &mut self.p);
                mark(program, self.flow, pc, &mut self.changed);
            }
        }
    }
}
