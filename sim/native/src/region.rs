//! One region as one function of the host: what control reaches from an entry until it comes to an
//! instruction that stops native code. The function runs the region for one lane of a warp after
//! the other. A lane leaves at an instruction; what is still wanted of its registers is in the
//! warp's rows and predicates then, so the interpreter can go on there.

use std::collections::{BTreeMap, HashMap, HashSet};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, InstBuilder, Value, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};

use super::context::{RegionContext, at};
use super::decode::{self, Kind};
use super::effects;
use super::flow::{Flow, Registers};
use super::instruction::Emitter;
use super::memory::Access;
use super::pack::uniformity::Class;
use super::plan::{MOST, RegionPlan, join, plan};
use super::values::{Values, plain};
use sim_exec::operations::operands;
use sim_exec::program::{Pred, Program};

/// Jumps back that the lanes behind one which has used up all of them may make.
pub(super) const FEW: u64 = 64;

/// What a region returns where its lanes have not all left at the same instruction.
pub(super) const APART: u64 = 1 << 32;
/// What it returns for a fault.
pub(super) const FAULT: u64 = 2 << 32;

/// What the caller has to know of a compiled region.
pub(super) struct Built {
    pub(crate) sites: u32,
    pub(crate) local: bool,
    /// Ways out of it that code names: what is known there of registers.
    pub(crate) exits: Vec<HashMap<usize, Class>>,
    /// What it checks at its entry.
    pub(crate) supposed: Vec<(usize, Class)>,
}

struct Builder<'p, 'b> {
    e: Emitter<'p, 'b>,
    plan: RegionPlan,
    /// The machine's blocks of the region's blocks.
    heads: HashMap<usize, Block>,
    /// Where lanes leave: the block, and which registers may have changed.
    exits: BTreeMap<u32, (Block, Registers)>,
    /// Jumps back: the block in between, where to, and what may have changed.
    backs: Vec<(Block, usize, Registers)>,
    fuel: Variable,
    /// Where lanes leave because they have jumped back often enough.
    spent: HashSet<u32>,
    next_lane: Block,
}

/// The frame of a region's function: turns, each of a lane or of a pack, for the lanes of a mask.
pub(super) struct Turns {
    /// Where a turn begins.
    head: Block,
    /// The lanes that are left, this turn's among them.
    left: Value,
    /// The first lane of this turn.
    lane: Value,
    /// Bits that all exits so far have, and that some have.
    every: Value,
    some: Value,
    /// Jumps back that this turn may make.
    pub(crate) fuel: Variable,
    /// Where a turn ends; it is told at which instruction.
    pub(crate) next: Block,
    exit: Value,
    /// Where the function ends with a fault.
    pub(crate) fault: Block,
}

impl Turns {
    /// Begins the function, and its turn.
    pub(super) fn begin<'p, 'b>(
        program: &'p Program,
        flow: &'p Flow,
        (function, context): (&'b mut Function, &'b mut cranelift_frontend::FunctionBuilderContext),
        convention: CallConv,
    ) -> (Values<'p, 'b>, Turns) {
        let mut b = FunctionBuilder::new(function, context);
        let first = b.create_block();
        b.append_block_params_for_function_params(first);
        b.switch_to_block(first);
        let (argument, mask) = (b.block_params(first)[0], b.block_params(first)[1]);
        let (head, next, fault) = (b.create_block(), b.create_block(), b.create_block());
        let left = b.append_block_param(head, types::I32);
        let (every, some) = (b.append_block_param(head, types::I32), b.append_block_param(head, types::I32));
        let exit = b.append_block_param(next, types::I32);
        let fuel = b.declare_var(types::I64);
        let mut v = Values::new(program, flow, b, argument, convention);
        let frame = v.field(types::I64, std::mem::offset_of!(RegionContext, frame));
        let (ones, none) = (v.int(types::I32, u64::MAX), v.int(types::I32, 0));
        v.b.ins().jump(head, &[mask.into(), ones.into(), none.into()]);
        v.b.switch_to_block(head);
        let lane = v.b.ins().ctz(left);
        v.lane = v.b.ins().uextend(types::I64, lane);
        let offset = v.b.ins().ishl_imm_u(v.lane, 3);
        v.row = v.b.ins().iadd(frame, offset);
        let full = v.b.ins().load(types::I64, plain(), argument, at!(fuel));
        v.b.def_var(fuel, full);
        (v, Turns { head, left, lane, every, some, fuel, next, exit, fault })
    }

    /// Ends the only turn, and the function.
    pub(super) fn end_at_once(self, v: &mut Values<'_, '_>) {
        v.b.switch_to_block(self.next);
        let result = v.b.ins().uextend(types::I64, self.exit);
        v.b.ins().return_(&[result]);
        Self::end_with_fault(v, self.fault);
    }

    fn end_with_fault(v: &mut Values<'_, '_>, fault: Block) {
        v.b.switch_to_block(fault);
        v.b.set_cold_block(fault);
        let bad = v.int(types::I64, FAULT);
        v.b.ins().return_(&[bad]);
        v.b.seal_all_blocks();
    }

    /// Ends the turn and the function. `others`: which lanes are left behind this turn, of those
    /// that were left, and of its first lane.
    pub(super) fn end(self, v: &mut Values<'_, '_>, others: impl FnOnce(&mut Values<'_, '_>, Value, Value) -> Value) {
        let Turns { head, left, lane, every, some, next, exit, fault, .. } = self;
        v.b.switch_to_block(next);
        let left = others(v, left, lane);
        let (every, some) = (v.b.ins().band(every, exit), v.b.ins().bor(some, exit));
        let end = v.b.create_block();
        v.b.ins().brif(left, head, &[left.into(), every.into(), some.into()], end, &[]);
        v.b.switch_to_block(end);
        let same = v.b.ins().icmp(IntCC::Equal, every, some);
        let (place, apart) = (v.b.ins().uextend(types::I64, every), v.int(types::I64, APART));
        let result = v.b.ins().select(same, place, apart);
        v.b.ins().return_(&[result]);
        Self::end_with_fault(v, fault);
    }
}

/// Compiles the region that begins at `pc` into `function`. `joining`: up to where the ways from
/// the branch there meet again; None where they do not.
#[allow(clippy::too_many_arguments, reason = "two of them are the compiler's")]
pub(super) fn build(
    program: &Program,
    flow: &Flow,
    pc: u32,
    function: &mut Function,
    context: &mut cranelift_frontend::FunctionBuilderContext,
    convention: CallConv,
    config: cranelift_codegen::isa::TargetFrontendConfig,
    joining: bool,
) -> Option<Built> {
    let entry = *flow.at.get(&pc)?;
    if flow.blocks[entry].stop {
        return None;
    }
    let bound = if joining { Some(join(flow, entry)?) } else { None };
    let plan = plan(program, flow, entry, MOST, None, bound);
    let (v, turns) = Turns::begin(program, flow, (function, context), convention);
    let access = Access::new(turns.fault);
    let mut builder = Builder {
        e: Emitter { v, access },
        plan,
        heads: HashMap::new(),
        exits: BTreeMap::new(),
        backs: Vec::new(),
        fuel: turns.fuel,
        spent: HashSet::new(),
        next_lane: turns.next,
    };
    builder.enter(flow, entry);
    builder.blocks(flow);
    builder.jumps_back();
    builder.leave(flow);
    turns.end(&mut builder.e.v, |v, left, _| {
        let less = v.b.ins().iadd_imm_s(left, -1);
        v.b.ins().band(left, less)
    });
    let shape = Built {
        sites: builder.e.access.sites.len() as u32,
        local: builder.e.access.local,
        exits: Vec::new(),
        supposed: Vec::new(),
    };
    builder.e.v.b.finalize(config);
    Some(shape)
}

impl Builder<'_, '_> {
    /// Takes the values that the region uses from the frame.
    fn enter(&mut self, flow: &Flow, entry: usize) {
        let mut used = HashSet::new();
        for &at in &self.plan.blocks {
            let block = &flow.blocks[at];
            for pc in block.start..block.end {
                let effects = effects::effects(self.e.v.program, &self.e.v.program.code[pc as usize]);
                used.extend(effects.reads.iter().chain(&effects.writes).map(|&register| flow.index(register)));
            }
        }
        if let Some(live) = flow.live_at(flow.blocks[entry].start) {
            for index in live.iter().filter(|index| used.contains(index)) {
                self.e.v.enter(flow.register(index));
            }
        }
        let head = self.head(entry);
        self.e.v.b.ins().jump(head, &[]);
    }

    fn head(&mut self, at: usize) -> Block {
        match self.heads.get(&at) {
            Some(&known) => known,
            None => {
                let new = self.e.v.b.create_block();
                self.heads.insert(at, new);
                new
            }
        }
    }

    /// The block where lanes leave in front of an instruction.
    fn exit(&mut self, pc: u32, changed: &Registers) -> Block {
        if let Some((block, known)) = self.exits.get_mut(&pc) {
            known.join(changed);
            return *block;
        }
        let new = self.e.v.b.create_block();
        self.exits.insert(pc, (new, changed.clone()));
        new
    }

    /// Where an edge leads.
    fn edge(&mut self, flow: &Flow, from: usize, to: u32, changed: &Registers) -> Block {
        match flow.at.get(&to).copied().filter(|at| self.plan.inside.contains(at)) {
            Some(at) if at == self.plan.entry && self.plan.no_return.contains(&from) => self.exit(to, changed),
            Some(at) if flow.blocks[at].start > flow.blocks[from].start => self.head(at),
            Some(at) => {
                let between = self.e.v.b.create_block();
                self.backs.push((between, at, changed.clone()));
                between
            }
            None => self.exit(to, changed),
        }
    }

    fn blocks(&mut self, flow: &Flow) {
        // What may have changed before each block.
        let mut before: HashMap<usize, Registers> = HashMap::new();
        let program = self.e.v.program;
        let order = self.plan.blocks.clone();
        let mut changing = true;
        let none = || flow.none();
        while changing {
            changing = false;
            for &at in &order {
                let mut now = before.get(&at).cloned().unwrap_or_else(none);
                let block = &flow.blocks[at];
                for pc in block.start..block.end {
                    let effects = effects::effects(program, &program.code[pc as usize]);
                    effects.writes.iter().for_each(|&register| now.add(flow.index(register)));
                }
                for next in block.next.iter().filter_map(|next| flow.at.get(next)) {
                    if self.plan.inside.contains(next) {
                        changing |= before.entry(*next).or_insert_with(none).join(&now);
                    }
                }
            }
        }
        for at in order {
            let head = self.head(at);
            self.e.v.b.switch_to_block(head);
            self.e.v.forget();
            let mut now = before.remove(&at).unwrap_or_else(none);
            self.block(flow, at, &mut now);
        }
    }

    fn block(&mut self, flow: &Flow, at: usize, now: &mut Registers) {
        let block = &flow.blocks[at];
        let program = self.e.v.program;
        for pc in block.start..block.end {
            if self.plan.cuts.get(&at) == Some(&pc) {
                let exit = self.exit(pc, now);
                self.e.v.b.ins().jump(exit, &[]);
                return;
            }
            let inst = &program.code[pc as usize];
            if matches!(decode::kind(inst), Kind::Branch) {
                let target = self.edge(flow, at, operands::Branch::of(inst).target(), now);
                if inst.guard == Pred::ALWAYS {
                    self.e.v.b.ins().jump(target, &[]);
                } else {
                    let other = self.edge(flow, at, pc + 1, now);
                    let truth = self.e.v.truth(inst.guard.0);
                    self.e.v.b.ins().brif(truth, target, &[], other, &[]);
                }
                return;
            }
            self.e.instruction(flow, inst, pc);
            let effects = effects::effects(program, inst);
            effects.writes.iter().for_each(|&register| now.add(flow.index(register)));
        }
        let next = self.edge(flow, at, block.end, now);
        self.e.v.b.ins().jump(next, &[]);
    }

    fn jumps_back(&mut self) {
        for (block, to, changed) in std::mem::take(&mut self.backs) {
            self.e.v.b.switch_to_block(block);
            let fuel = self.e.v.b.use_var(self.fuel);
            let fuel = self.e.v.b.ins().iadd_imm_s(fuel, -1);
            self.e.v.b.def_var(self.fuel, fuel);
            let start = self.e.v.flow.blocks[to].start;
            let exit = self.exit(start, &changed);
            self.spent.insert(start);
            let head = self.head(to);
            self.e.v.b.ins().brif(fuel, head, &[], exit, &[]);
        }
    }

    /// The places where lanes leave: what has changed and is wanted goes to the frame.
    fn leave(&mut self, flow: &Flow) {
        for (pc, (block, changed)) in std::mem::take(&mut self.exits) {
            self.e.v.b.switch_to_block(block);
            self.e.v.forget();
            let live = flow.live_before(self.e.v.program, pc);
            for index in changed.iter().filter(|&index| live.as_ref().is_none_or(|live| live.has(index))) {
                if index < flow.registers() {
                    self.e.v.leave(flow.register(index));
                }
            }
            let place = self.e.v.b.ins().ishl_imm_u(self.e.v.lane, 2);
            let place = self.e.v.b.ins().iadd(self.e.v.context, place);
            if self.spent.contains(&pc) {
                let (one, context) = (self.e.v.int(types::I64, 1), self.e.v.context);
                self.e.v.b.ins().store(plain(), one, context, at!(spent));
                // The next lanes may wait for something as well: they find out sooner.
                let few = self.e.v.int(types::I64, FEW);
                self.e.v.b.ins().store(plain(), few, context, at!(fuel));
            }
            let pc = self.e.v.int(types::I32, u64::from(pc));
            self.e.v.b.ins().store(plain(), pc, place, at!(exits));
            self.e.v.b.ins().jump(self.next_lane, &[pc.into()]);
        }
    }
}
