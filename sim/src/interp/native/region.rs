//! One region as one function of the host: what control reaches from an entry until it comes to an
//! instruction that stops native code. The function runs the region for one lane of a warp after
//! the other. A lane leaves at an instruction; what is still wanted of its registers is in the
//! warp's rows and predicates then, so the interpreter can go on there.

use std::collections::{BTreeMap, HashMap, HashSet};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, InstBuilder, Value, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};

use super::context::{RegionContext, at, execute};
use super::decode::{self, Kind, Register};
use super::flow::{Flow, Registers};
use super::memory::Access;
use super::values::{Held, Values, fixed, plain};
use crate::interp::exec::control::Special;
use crate::interp::exec::load_store::SHARED;
use crate::interp::exec_sass::floats::BOP;
use crate::interp::exec_sass::{integer, predicates};
use crate::interp::program::{Inst, Pred, Program, Slot};

/// Instructions that one region may have.
const MOST: usize = 6000;

/// Jumps back that the lanes behind one which has used up all of them may make.
const FEW: u64 = 64;

/// What a region returns where its lanes have not all left at the same instruction.
pub(super) const APART: u64 = 1 << 32;
/// What it returns for a fault.
pub(super) const FAULT: u64 = 2 << 32;

/// What the caller has to know of a compiled region.
pub(super) struct Built {
    pub sites: u32,
    pub local: bool,
}

/// What a region has to know of those before it.
pub(super) struct Place {
    /// Address of the function that finds memory.
    pub finder: u64,
    /// Address of the function that calls one of a lane's values; both keep all registers.
    pub caller: u64,
    pub first_site: u32,
    /// How functions of the host are called.
    pub convention: CallConv,
}

/// The blocks of a region in the order of the code, and the instructions in front of which it ends
/// although native code could go on.
struct Plan {
    blocks: Vec<usize>,
    inside: HashSet<usize>,
    /// Of each block: an instruction that is not executed any more.
    cuts: HashMap<usize, u32>,
    /// Blocks from which the region is left instead of going back to its entry.
    no_return: HashSet<usize>,
    entry: usize,
}

/// Loads from shared memory that may follow a store of another lane in the same region: they have
/// to wait for that lane. (Where code is right, a barrier stands between.)
fn stores_shared(inst: &Inst, kind: Kind) -> bool {
    matches!(kind, Kind::Store { .. }) && inst.z & 15 == SHARED
}

fn loads_shared(inst: &Inst, kind: Kind) -> bool {
    matches!(kind, Kind::Load { .. }) && inst.z & 15 == SHARED
}

fn plan(program: &Program, flow: &Flow, entry: usize) -> Plan {
    let mut inside = HashSet::new();
    let mut todo = std::collections::VecDeque::from([entry]);
    let mut size = 0;
    while let Some(at) = todo.pop_front() {
        let block = &flow.blocks[at];
        let length = (block.end - block.start) as usize;
        if block.stop || size + length > MOST && at != entry || !inside.insert(at) {
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
    while changed {
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
    Plan { blocks, inside, cuts, no_return: if waits { stored_behind } else { HashSet::new() }, entry }
}

struct Builder<'p, 'b> {
    v: Values<'p, 'b>,
    access: Access,
    plan: Plan,
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

/// Compiles the region that begins at `pc` into `function`.
pub(super) fn build(
    program: &Program,
    flow: &Flow,
    pc: u32,
    function: &mut Function,
    context: &mut cranelift_frontend::FunctionBuilderContext,
    place: Place,
    config: cranelift_codegen::isa::TargetFrontendConfig,
) -> Option<Built> {
    let Place { finder, caller, first_site, convention } = place;
    let entry = *flow.at.get(&pc)?;
    if flow.blocks[entry].stop {
        return None;
    }
    let plan = plan(program, flow, entry);
    let mut b = FunctionBuilder::new(function, context);
    let first = b.create_block();
    b.append_block_params_for_function_params(first);
    b.switch_to_block(first);
    let (argument, mask) = (b.block_params(first)[0], b.block_params(first)[1]);
    let (loop_head, next_lane, fault) = (b.create_block(), b.create_block(), b.create_block());
    let left = b.append_block_param(loop_head, types::I32);
    // Bits that all exits of the lanes so far have, and that some have.
    let (every, some) = (b.append_block_param(loop_head, types::I32), b.append_block_param(loop_head, types::I32));
    let exit = b.append_block_param(next_lane, types::I32);
    let fuel = b.declare_var(types::I64);
    let mut v = Values::new(program, flow, b, argument, convention, caller);
    let frame = v.field(types::I64, std::mem::offset_of!(RegionContext, frame));
    let (ones, none) = (v.int(types::I32, u64::MAX), v.int(types::I32, 0));
    v.b.ins().jump(loop_head, &[mask.into(), ones.into(), none.into()]);
    v.b.switch_to_block(loop_head);
    let lane = v.b.ins().ctz(left);
    v.lane = v.b.ins().uextend(types::I64, lane);
    let offset = v.b.ins().ishl_imm_u(v.lane, 3);
    v.row = v.b.ins().iadd(frame, offset);
    let full = v.b.ins().load(types::I64, plain(), argument, at!(fuel));
    v.b.def_var(fuel, full);
    let mut builder = Builder {
        v,
        access: Access::new(fault, finder, first_site),
        plan,
        heads: HashMap::new(),
        exits: BTreeMap::new(),
        backs: Vec::new(),
        fuel,
        spent: HashSet::new(),
        next_lane,
    };
    builder.enter(flow, entry);
    builder.blocks(flow);
    builder.jumps_back();
    builder.leave(flow);
    // The next lane, or the end.
    let v = &mut builder.v;
    v.b.switch_to_block(next_lane);
    let less = v.b.ins().iadd_imm_s(left, -1);
    let left = v.b.ins().band(left, less);
    let (every, some) = (v.b.ins().band(every, exit), v.b.ins().bor(some, exit));
    let end = v.b.create_block();
    v.b.ins().brif(left, loop_head, &[left.into(), every.into(), some.into()], end, &[]);
    v.b.switch_to_block(end);
    let same = v.b.ins().icmp(IntCC::Equal, every, some);
    let (place, apart) = (v.b.ins().uextend(types::I64, every), v.int(types::I64, APART));
    let result = v.b.ins().select(same, place, apart);
    v.b.ins().return_(&[result]);
    v.b.switch_to_block(fault);
    v.b.set_cold_block(fault);
    let bad = v.int(types::I64, FAULT);
    v.b.ins().return_(&[bad]);
    v.b.seal_all_blocks();
    let shape = Built { sites: builder.access.sites.len() as u32, local: builder.access.local };
    builder.v.b.finalize(config);
    Some(shape)
}

impl Builder<'_, '_> {
    /// Takes the values that the region uses from the frame.
    fn enter(&mut self, flow: &Flow, entry: usize) {
        let mut used = HashSet::new();
        for &at in &self.plan.blocks {
            let block = &flow.blocks[at];
            for pc in block.start..block.end {
                let effects = decode::effects(self.v.program, &self.v.program.code[pc as usize]);
                used.extend(effects.reads.iter().chain(&effects.writes).map(|&register| flow.index(register)));
            }
        }
        if let Some(live) = flow.live_at(flow.blocks[entry].start) {
            for index in live.iter().filter(|index| used.contains(index)) {
                self.v.enter(flow.register(index));
            }
        }
        let head = self.head(entry);
        self.v.b.ins().jump(head, &[]);
    }

    fn head(&mut self, at: usize) -> Block {
        match self.heads.get(&at) {
            Some(&known) => known,
            None => {
                let new = self.v.b.create_block();
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
        let new = self.v.b.create_block();
        self.exits.insert(pc, (new, changed.clone()));
        new
    }

    /// Where an edge leads.
    fn edge(&mut self, flow: &Flow, from: usize, to: u32, changed: &Registers) -> Block {
        match flow.at.get(&to).copied().filter(|at| self.plan.inside.contains(at)) {
            Some(at) if at == self.plan.entry && self.plan.no_return.contains(&from) => self.exit(to, changed),
            Some(at) if flow.blocks[at].start > flow.blocks[from].start => self.head(at),
            Some(at) => {
                let between = self.v.b.create_block();
                self.backs.push((between, at, changed.clone()));
                between
            }
            None => self.exit(to, changed),
        }
    }

    fn blocks(&mut self, flow: &Flow) {
        // What may have changed before each block.
        let mut before: HashMap<usize, Registers> = HashMap::new();
        let program = self.v.program;
        let order = self.plan.blocks.clone();
        let mut changing = true;
        let none = || flow.none();
        while changing {
            changing = false;
            for &at in &order {
                let mut now = before.get(&at).cloned().unwrap_or_else(none);
                let block = &flow.blocks[at];
                for pc in block.start..block.end {
                    let effects = decode::effects(program, &program.code[pc as usize]);
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
            self.v.b.switch_to_block(head);
            self.v.forget();
            let mut now = before.remove(&at).unwrap_or_else(none);
            self.block(flow, at, &mut now);
        }
    }

    fn block(&mut self, flow: &Flow, at: usize, now: &mut Registers) {
        let block = &flow.blocks[at];
        let program = self.v.program;
        for pc in block.start..block.end {
            if self.plan.cuts.get(&at) == Some(&pc) {
                let exit = self.exit(pc, now);
                self.v.b.ins().jump(exit, &[]);
                return;
            }
            let inst = &program.code[pc as usize];
            if matches!(decode::kind(inst), Kind::Branch) {
                let target = self.edge(flow, at, inst.x as u32, now);
                if inst.guard == Pred::ALWAYS {
                    self.v.b.ins().jump(target, &[]);
                } else {
                    let other = self.edge(flow, at, pc + 1, now);
                    let truth = self.v.truth(inst.guard.0);
                    self.v.b.ins().brif(truth, target, &[], other, &[]);
                }
                return;
            }
            self.instruction(flow, inst, pc);
            let effects = decode::effects(program, inst);
            effects.writes.iter().for_each(|&register| now.add(flow.index(register)));
        }
        let next = self.edge(flow, at, block.end, now);
        self.v.b.ins().jump(next, &[]);
    }

    fn jumps_back(&mut self) {
        for (block, to, changed) in std::mem::take(&mut self.backs) {
            self.v.b.switch_to_block(block);
            let fuel = self.v.b.use_var(self.fuel);
            let fuel = self.v.b.ins().iadd_imm_s(fuel, -1);
            self.v.b.def_var(self.fuel, fuel);
            let start = self.v.flow.blocks[to].start;
            let exit = self.exit(start, &changed);
            self.spent.insert(start);
            let head = self.head(to);
            self.v.b.ins().brif(fuel, head, &[], exit, &[]);
        }
    }

    /// The places where lanes leave: what has changed and is wanted goes to the frame.
    fn leave(&mut self, flow: &Flow) {
        for (pc, (block, changed)) in std::mem::take(&mut self.exits) {
            self.v.b.switch_to_block(block);
            self.v.forget();
            let live = flow.live_before(self.v.program, pc);
            for index in changed.iter().filter(|&index| live.as_ref().is_none_or(|live| live.has(index))) {
                if index < flow.registers() {
                    self.v.leave(flow.register(index));
                }
            }
            let place = self.v.b.ins().ishl_imm_u(self.v.lane, 2);
            let place = self.v.b.ins().iadd(self.v.context, place);
            if self.spent.contains(&pc) {
                let (one, context) = (self.v.int(types::I64, 1), self.v.context);
                self.v.b.ins().store(plain(), one, context, at!(spent));
                // The next lanes may wait for something as well: they find out sooner.
                let few = self.v.int(types::I64, FEW);
                self.v.b.ins().store(plain(), few, context, at!(fuel));
            }
            let pc = self.v.int(types::I32, u64::from(pc));
            self.v.b.ins().store(plain(), pc, place, at!(exits));
            self.v.b.ins().jump(self.next_lane, &[pc.into()]);
        }
    }

    fn instruction(&mut self, flow: &Flow, i: &Inst, pc: u32) {
        let kind = decode::kind(i);
        self.v.guard = None;
        let apart = matches!(kind, Kind::Load { .. } | Kind::Store { .. } | Kind::Atom { .. } | Kind::Foreign)
            || matches!(kind, Kind::Special if !simple_special(i.y));
        if i.guard == Pred::ALWAYS {
            self.unguarded(flow, i, pc, kind);
            return;
        }
        let guard = self.v.truth(i.guard.0);
        if !apart {
            self.v.guard = Some(guard);
            self.unguarded(flow, i, pc, kind);
            self.v.guard = None;
            return;
        }
        let (run, skip) = (self.v.b.create_block(), self.v.b.create_block());
        self.v.b.ins().brif(guard, run, &[], skip, &[]);
        self.v.b.switch_to_block(run);
        // Forms made inside are not at hand behind.
        self.v.forget();
        self.unguarded(flow, i, pc, kind);
        self.v.b.ins().jump(skip, &[]);
        self.v.b.switch_to_block(skip);
        self.v.forget();
    }

    fn unguarded(&mut self, flow: &Flow, i: &Inst, pc: u32, kind: Kind) {
        let (v, access) = (&mut self.v, &mut self.access);
        match kind {
            Kind::Nothing | Kind::Branch | Kind::Stop => {}
            Kind::Lane(op) => v.operation(i, &op),
            Kind::Select => v.selected(i),
            Kind::Predicate => {
                let (a, b) = (v.truth(i.a.0), v.truth(i.b.0));
                let value = match i.y {
                    0 => v.b.ins().band(a, b),
                    1 => v.b.ins().bor(a, b),
                    2 => v.b.ins().bxor(a, b),
                    _ => a,
                };
                v.set(i.d.0, value);
            }
            Kind::Repack => v.repacked(i),
            Kind::Special if simple_special(i.y) => v.special(i),
            Kind::LoadParam { size, signed } => v.load_param(i, size, signed),
            Kind::ParamAddress => {
                let base = v.field(types::I64, std::mem::offset_of!(RegionContext, params));
                let value = v.b.ins().iadd_imm_s(base, i.x as i64);
                v.define(i.d, Held::long(value));
            }
            Kind::FrameAddress => {
                let base = v.field(types::I64, std::mem::offset_of!(RegionContext, local_base));
                let value = v.b.ins().iadd_imm_s(base, i.x as i64);
                v.define(i.d, Held::long(value));
            }
            Kind::DynamicShared => {
                let base = v.field(types::I64, std::mem::offset_of!(RegionContext, dynamic));
                let value = v.b.ins().iadd_imm_s(base, i.x as i64);
                v.define(i.d, Held::long(value));
            }
            Kind::ConvertAddress => {
                let base = match i.z {
                    SHARED => v.field(types::I64, std::mem::offset_of!(RegionContext, shared)),
                    crate::interp::exec::load_store::LOCAL => {
                        access.local = true;
                        let local = v.field(types::I64, std::mem::offset_of!(RegionContext, local));
                        let stride = v.field(types::I64, std::mem::offset_of!(RegionContext, stride));
                        let mine = v.b.ins().imul(stride, v.lane);
                        v.b.ins().iadd(local, mine)
                    }
                    _ => v.int(types::I64, 0),
                };
                let a = v.long(i.a);
                let value = if i.y == 1 { v.b.ins().isub(a, base) } else { v.b.ins().iadd(a, base) };
                v.define(i.d, Held::long(value));
            }
            Kind::Load { size, signed } => v.load(access, i, pc, size, signed),
            Kind::Store { size } => v.store(access, i, pc, size),
            Kind::Atom { kind, size } => v.atom(access, i, pc, kind, size),
            Kind::IntCompare => v.compared_words(i),
            Kind::FloatCompare { double } => v.compared_floats(i, double),
            Kind::Table => {
                let [a, b, c] = [i.a, i.b, i.c].map(|pred| v.truth(pred.0));
                let first = v.table(i.y & 0xff, [a, b, c], types::I8);
                let second = v.table(i.y >> 8 & 0xff, [a, b, c], types::I8);
                v.set(i.d.0, first);
                v.set(i.z, second);
            }
            Kind::NotZero => {
                let a = v.word(i.a);
                let is = v.b.ins().icmp_imm_u(IntCC::NotEqual, a, 0);
                let third = v.truth(i.c.0);
                let value = if i.y == 1 { v.b.ins().band(is, third) } else { v.b.ins().bor(is, third) };
                v.set(i.d.0, value);
            }
            Kind::Add3 => v.added(i),
            Kind::AddWide => v.added_wide(i),
            Kind::WithCarry => v.carried(i),
            Kind::Foreign | Kind::Special => self.foreign(flow, i, pc),
        }
    }

    /// An instruction that the interpreter executes for the lane.
    fn foreign(&mut self, flow: &Flow, i: &Inst, pc: u32) {
        let effects = decode::effects(self.v.program, i);
        let guard = i.guard.0 & !Pred::NEGATED;
        for &register in &effects.reads {
            if register != Register::Pred(guard) || i.guard == Pred::ALWAYS {
                self.v.leave(register);
            }
        }
        let v = &mut self.v;
        let (place, context, lane) = (v.int(types::I64, u64::from(pc)), v.context, v.lane);
        let bad = v.call(execute as *const () as usize, &[context, place, lane]);
        let good = v.b.create_block();
        v.b.ins().brif(bad, self.access.fault, &[], good, &[]);
        v.b.switch_to_block(good);
        for register in effects.writes {
            if flow.index(register) < flow.registers() {
                v.enter(register);
            }
        }
    }
}

/// Whether a special register is a field of the context.
fn simple_special(y: u32) -> bool {
    y <= Special::NctaidZ as u32
        || y == Special::Laneid as u32
        || y == Special::Warpid as u32
        || (Special::MaskEq as u32..=Special::MaskGe as u32).contains(&y)
}

impl Values<'_, '_> {
    fn special(&mut self, i: &Inst) {
        let y = i.y;
        let value = if y < Special::NtidX as u32 {
            let base = self.field(types::I64, std::mem::offset_of!(RegionContext, tid));
            let offset = self.b.ins().ishl_imm_u(self.lane, 2);
            let at = self.b.ins().iadd(base, offset);
            self.b.ins().load(types::I32, fixed(), at, y as i32 * 128)
        } else if y <= Special::NctaidZ as u32 {
            let index = (y - Special::NtidX as u32) as usize;
            self.field(types::I32, std::mem::offset_of!(RegionContext, special) + 4 * index)
        } else if y == Special::Warpid as u32 {
            self.field(types::I32, std::mem::offset_of!(RegionContext, special) + 36)
        } else if y == Special::Laneid as u32 {
            let lane = self.lane;
            self.b.ins().ireduce(types::I32, lane)
        } else {
            let one = self.int(types::I32, 1);
            let lane = self.lane;
            let eq = self.b.ins().ishl(one, lane);
            let less = self.b.ins().iadd_imm_s(eq, -1);
            match y - Special::MaskEq as u32 {
                0 => eq,
                1 => less,
                2 => self.b.ins().bor(eq, less),
                3 => {
                    let both = self.b.ins().bor(eq, less);
                    self.b.ins().bnot(both)
                }
                _ => self.b.ins().bnot(less),
            }
        };
        self.define(i.d, Held::word(value));
    }

    fn selected(&mut self, i: &Inst) {
        let by = self.truth(i.c.0);
        let form = if i.d.0 & Slot::CONSTANT == 0 { self.flow.form(i.d.0) } else { super::flow::ValueForm::Double };
        use super::flow::ValueForm;
        let value = match form {
            ValueForm::Word => {
                let (a, b) = (self.word(i.a), self.word(i.b));
                Held::word(self.b.ins().select(by, a, b))
            }
            ValueForm::Single => {
                let (a, b) = (self.single(i.a, true), self.single(i.b, true));
                let loose = [(a, self.is_loose(i.a)), (b, self.is_loose(i.b))];
                self.either(by, loose, self.flow.loose.has(i.d.0 as usize))
            }
            ValueForm::LongFloat => {
                let (a, b) = (self.double(i.a), self.double(i.b));
                Held::double(self.b.ins().select(by, a, b))
            }
            ValueForm::Double => {
                let (a, b) = (self.long(i.a), self.long(i.b));
                Held::long(self.b.ins().select(by, a, b))
            }
        };
        self.define(i.d, value);
    }

    fn is_loose(&mut self, slot: Slot) -> bool {
        slot.0 & Slot::CONSTANT == 0 && self.held(slot).loose
    }

    fn repacked(&mut self, i: &Inst) {
        let (first, into, from) = (i.y as usize, i.z as usize, i.x as usize);
        let (from_width, into_width) = (i.a.0, i.b.0);
        let slots = self.program.slots[first..first + into + from].to_vec();
        // All bits in words of 64.
        let total = (from as u32 * from_width).max(into as u32 * into_width);
        let mut words: Vec<Option<Value>> = vec![None; total.div_ceil(64) as usize];
        for (at, &slot) in slots[into..].iter().enumerate() {
            let bit = at as u32 * from_width;
            let value = self.long(slot);
            let value = if from_width >= 64 {
                value
            } else {
                let mask = self.int(types::I64, (1 << from_width) - 1);
                self.b.ins().band(value, mask)
            };
            let value =
                if bit.is_multiple_of(64) { value } else { self.b.ins().ishl_imm_u(value, i64::from(bit % 64)) };
            let word = &mut words[bit as usize / 64];
            *word = Some(match *word {
                Some(word) => self.b.ins().bor(word, value),
                None => value,
            });
        }
        let mut results = Vec::new();
        for at in 0..into as u32 {
            let bit = at * into_width;
            let word = match words[bit as usize / 64] {
                Some(word) => word,
                None => self.int(types::I64, 0),
            };
            let value = if bit.is_multiple_of(64) { word } else { self.b.ins().ushr_imm_u(word, i64::from(bit % 64)) };
            results.push(match into_width {
                64.. => Held::long(value),
                32 => Held::word(self.b.ins().ireduce(types::I32, value)),
                width => {
                    let value = self.b.ins().ireduce(types::I32, value);
                    Held::word(self.b.ins().band_imm_u(value, (1 << width) - 1))
                }
            });
        }
        for (&slot, value) in slots[..into].iter().zip(results) {
            self.define(slot, value);
        }
    }

    fn combined(&mut self, how: u32, value: Value, third: Value) -> Value {
        match how & 3 {
            0 => self.b.ins().band(value, third),
            1 => self.b.ins().bor(value, third),
            _ => self.b.ins().bxor(value, third),
        }
    }

    fn compared_words(&mut self, i: &Inst) {
        let signed = i.y & predicates::SIGNED != 0;
        let (a, b) = (self.word(i.a), self.word(i.b));
        let less = if signed { IntCC::SignedLessThan } else { IntCC::UnsignedLessThan };
        let greater = if signed { IntCC::SignedGreaterThan } else { IntCC::UnsignedGreaterThan };
        let outcomes = i.y & 7;
        let holds = if i.y & predicates::EXTENDED != 0 {
            let low = self.truth(i.x as u32);
            let equal = self.b.ins().icmp(IntCC::Equal, a, b);
            let mut holds = self.b.ins().band(equal, low);
            for (bit, code) in [(predicates::LESS, less), (predicates::GREATER, greater)] {
                if outcomes & bit != 0 {
                    let is = self.b.ins().icmp(code, a, b);
                    holds = self.b.ins().bor(holds, is);
                }
            }
            holds
        } else {
            let code = match outcomes {
                0 => None,
                1 => Some(less),
                2 => Some(IntCC::Equal),
                3 => Some(if signed { IntCC::SignedLessThanOrEqual } else { IntCC::UnsignedLessThanOrEqual }),
                4 => Some(greater),
                5 => Some(IntCC::NotEqual),
                6 => Some(if signed { IntCC::SignedGreaterThanOrEqual } else { IntCC::UnsignedGreaterThanOrEqual }),
                _ => None,
            };
            match code {
                Some(code) => self.b.ins().icmp(code, a, b),
                None => self.int(types::I8, u64::from(outcomes == 7)),
            }
        };
        let third = self.truth(i.c.0);
        let how = i.y >> predicates::COMBINE;
        let opposite = self.not(holds);
        let (first, second) = (self.combined(how, holds, third), self.combined(how, opposite, third));
        self.set(i.d.0, first);
        self.set(i.z, second);
    }

    fn compared_floats(&mut self, i: &Inst, double: bool) {
        use cranelift_codegen::ir::condcodes::FloatCC::*;
        let (a, b) = if double {
            (self.double(i.a), self.double(i.b))
        } else {
            let (a, b) = (self.single(i.a, true), self.single(i.b, true));
            (self.flush_if(a, i.x), self.flush_if(b, i.x))
        };
        let codes = [
            LessThan,
            Equal,
            LessThanOrEqual,
            GreaterThan,
            OrderedNotEqual,
            GreaterThanOrEqual,
            Ordered,
            Unordered,
            UnorderedOrLessThan,
            UnorderedOrEqual,
            UnorderedOrLessThanOrEqual,
            UnorderedOrGreaterThan,
            NotEqual,
            UnorderedOrGreaterThanOrEqual,
        ];
        let holds = match i.y & 15 {
            0 => self.int(types::I8, 0),
            15 => self.int(types::I8, 1),
            wanted => self.b.ins().fcmp(codes[wanted as usize - 1], a, b),
        };
        let third = self.truth(i.c.0);
        let how = i.y >> BOP;
        let opposite = self.not(holds);
        let (first, second) = (self.combined(how, holds, third), self.combined(how, opposite, third));
        self.set(i.d.0, first);
        self.set(i.z, second);
    }

    fn term(&mut self, slot: Slot, flags: u32, negate: u32, invert: u32) -> Value {
        if flags & (negate | invert) == 0 {
            return self.long(slot);
        }
        let word = self.word(slot);
        let not = self.b.ins().bnot(word);
        let long = self.b.ins().uextend(types::I64, not);
        if flags & negate != 0 { self.b.ins().iadd_imm_s(long, 1) } else { long }
    }

    fn added(&mut self, i: &Inst) {
        let a = self.term(i.a, i.y, integer::NEGATE_A, integer::INVERT_A);
        let b = self.term(i.b, i.y, integer::NEGATE_B, integer::INVERT_B);
        let c = self.term(i.c, i.y, integer::NEGATE_C, integer::INVERT_C);
        let mut sum = self.b.ins().iadd(a, b);
        sum = self.b.ins().iadd(sum, c);
        for carry in [decode::unpacked(i.x), decode::unpacked(i.x >> 16)] {
            if carry != Pred::NEVER {
                let truth = self.truth(carry.0);
                let truth = self.b.ins().uextend(types::I64, truth);
                sum = self.b.ins().iadd(sum, truth);
            }
        }
        let low = self.b.ins().ireduce(types::I32, sum);
        let high = self.b.ins().ushr_imm_u(sum, 32);
        self.define(i.d, Held::word(low));
        for (pred, least) in [(decode::unpacked(i.x >> 32), 1), (decode::unpacked(i.x >> 48), 2)] {
            if pred != Pred::ALWAYS {
                let is = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, high, least);
                self.set(pred.0, is);
            }
        }
    }

    fn added_wide(&mut self, i: &Inst) {
        let (a, b) = (self.long(i.a), self.long(i.b));
        let carry = self.truth(decode::unpacked(i.x).0);
        let carry = self.b.ins().uextend(types::I64, carry);
        let first = self.b.ins().iadd(a, b);
        let over = self.b.ins().icmp(IntCC::UnsignedLessThan, first, a);
        let sum = self.b.ins().iadd(first, carry);
        let again = self.b.ins().icmp(IntCC::UnsignedLessThan, sum, first);
        let out = self.b.ins().bor(over, again);
        self.define(i.d, Held::long(sum));
        self.set(decode::unpacked(i.x >> 32).0, out);
    }

    /// Additions with the carry in a row.
    fn carried(&mut self, i: &Inst) {
        let is = |bit: u32| i.y >> bit & 1 != 0;
        let (reads, writes, subtract, multiply, high, signed, double) =
            (is(0), is(1), is(2), is(3), is(4), is(5), is(6));
        let flag = Slot(i.x as u32);
        let ty = if double { types::I64 } else { types::I32 };
        let operand = |v: &mut Self, slot: Slot| if double { v.long(slot) } else { v.word(slot) };
        let (a, b) = (operand(self, i.a), operand(self, i.b));
        let (x, y) = if multiply {
            let product = match (high, double) {
                (false, _) => self.b.ins().imul(a, b),
                (true, true) if signed => self.b.ins().smulhi(a, b),
                (true, true) => self.b.ins().umulhi(a, b),
                (true, false) => {
                    let (a, b) = if signed {
                        (self.b.ins().sextend(types::I64, a), self.b.ins().sextend(types::I64, b))
                    } else {
                        (self.b.ins().uextend(types::I64, a), self.b.ins().uextend(types::I64, b))
                    };
                    let product = self.b.ins().imul(a, b);
                    let product = self.b.ins().ushr_imm_u(product, 32);
                    self.b.ins().ireduce(types::I32, product)
                }
            };
            (product, operand(self, i.c))
        } else {
            (a, b)
        };
        let carry = if reads {
            let word = operand(self, flag);
            Some(self.b.ins().band_imm_u(word, 1))
        } else {
            None
        };
        let less = IntCC::UnsignedLessThan;
        let (result, out) = if subtract {
            let first = self.b.ins().isub(x, y);
            let borrow = self.b.ins().icmp(less, x, y);
            match carry {
                Some(carry) => {
                    let result = self.b.ins().isub(first, carry);
                    let again = self.b.ins().icmp(less, first, carry);
                    (result, self.b.ins().bor(borrow, again))
                }
                None => (first, borrow),
            }
        } else {
            let first = self.b.ins().iadd(x, y);
            let over = self.b.ins().icmp(less, first, x);
            match carry {
                Some(carry) => {
                    let result = self.b.ins().iadd(first, carry);
                    let again = self.b.ins().icmp(less, result, first);
                    (result, self.b.ins().bor(over, again))
                }
                None => (first, over),
            }
        };
        self.define(i.d, if ty == types::I64 { Held::long(result) } else { Held::word(result) });
        if writes {
            let out = self.b.ins().uextend(types::I32, out);
            self.define(flag, Held::word(out));
        }
    }
}
