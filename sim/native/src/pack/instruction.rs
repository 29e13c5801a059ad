//! Native code for one instruction of a pack: once, as vectors, lane by lane, or by the interpreter
//! for all lanes.

use super::access::can_access;
use super::halves::by_halves;
use crate::pack::arithmetic::carries::{added, added_wide, not_zero};
use crate::pack::arithmetic::operation;
use crate::pack::predicates::{compared_floats, compared_words, logic, selected, table_of_masks};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::lanes::{Lanes, Narrow, Pack, Wide, each};
use super::uniformity::{Class, Way};
use crate::context::{RegionContext, execute};
use crate::decode::{self, Kind};
use crate::effects::{self, Register};
use crate::instruction::simple_special;
use crate::values::{fixed, plain};
use sim_exec::exec::control::Special;
use sim_exec::operations::operands;
use sim_exec::program::{Inst, Operation, Pred, Sem, Slot};

impl Pack<'_, '_> {
    /// Whether values that are supposed to be regular are not, for some lane.
    pub(super) fn differs(&mut self, registers: &[Register], axes: &[u32]) -> Option<Value> {
        let mut rows: Option<Value> = None;
        let mut truths: Option<Value> = None;
        for &register in registers {
            match register {
                Register::Row(row) => {
                    let expected: Wide = self.longs(Slot(row));
                    let (base, offset) = (self.e.v.row, row as i32 * 256);
                    for (at, expected) in expected.into_iter().enumerate() {
                        let own = self.e.v.b.ins().load(types::I64X2, plain(), base, offset + 16 * at as i32);
                        let own = self.e.v.b.ins().bxor(own, expected);
                        rows = Some(rows.map_or(own, |known| self.e.v.b.ins().bor(known, own)));
                    }
                }
                Register::Pred(pred) if matches!(self.classes.pred(pred), Class::Halves(_)) => {
                    let masks = self.masks(pred);
                    let (own, expected) = (self.pack_bits(pred), self.bits(masks));
                    let mixed = self.e.v.b.ins().icmp(IntCC::NotEqual, own, expected);
                    truths = Some(truths.map_or(mixed, |known| self.e.v.b.ins().bor(known, mixed)));
                }
                Register::Pred(pred) => {
                    let bits = self.pack_bits(pred);
                    let bits = self.e.v.b.ins().band_imm_u(bits, i64::from(self.width.full()));
                    // Neither none nor all.
                    let less = self.e.v.b.ins().iadd_imm_s(bits, -1);
                    let most = i64::from(self.width.full() - 1);
                    let mixed = self.e.v.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, less, most);
                    truths = Some(truths.map_or(mixed, |known| self.e.v.b.ins().bor(known, mixed)));
                }
            }
        }
        for &axis in axes {
            // Whole warps look at them otherwise.
            let step = match self.classes.tid(axis) {
                Class::Uniform => 0,
                Class::Affine(step) => step as i32,
                _ => continue,
            };
            let own = self.tids(axis);
            let first = self.e.v.b.ins().extractlane(own[0], 0u8);
            let first = self.e.v.b.ins().splat(types::I32X4, first);
            for (at, own) in own.into_iter().enumerate() {
                let steps = self.steps(step, at);
                let expected = self.e.v.b.ins().iadd(first, steps);
                let own = self.e.v.b.ins().bxor(own, expected);
                let own = self.cast(types::I64X2, own);
                rows = Some(rows.map_or(own, |known| self.e.v.b.ins().bor(known, own)));
            }
        }
        if let Some(rows) = rows {
            let any = self.e.v.b.ins().vany_true(rows);
            truths = Some(truths.map_or(any, |known| self.e.v.b.ins().bor(known, any)));
        }
        truths
    }

    /// A component of `%tid`.
    fn tids(&mut self, axis: u32) -> Narrow {
        let base = self.e.v.field(types::I64, std::mem::offset_of!(RegionContext, tid));
        let lane = self.e.v.lane;
        let offset = self.e.v.b.ins().ishl_imm_u(lane, 2);
        let base = self.e.v.b.ins().iadd(base, offset);
        each(self.width, |at| self.e.v.b.ins().load(types::I32X4, fixed(), base, axis as i32 * 128 + 16 * at as i32))
    }

    /// Whether an operand of an instruction that is executed once would wrap among the lanes.
    pub(super) fn wraps(&mut self, i: &Inst) -> Option<Value> {
        let Operation::Lane(op) = i.op else { return None };
        let how = self.classes.clone().step(i, Way::Plain);
        if how == Class::Varying {
            return None;
        }
        let mut any: Option<Value> = None;
        let extensions = self.classes.extensions(operands::Lane::of(i), &op);
        let halves = matches!(how, Class::Halves(_));
        for (extension, second) in extensions.iter().flat_map(|extension| [(extension, false), (extension, true)]) {
            let (slot, lanes) = (extension.slot, self.width.lanes() as i64);
            // Of what grows in the whole warp the end is looked at, of halves each one's.
            let in_halves = halves && self.half_step(slot).is_some();
            if second && !in_halves {
                continue;
            }
            let last = extension.step * (if in_halves { lanes / 2 } else { lanes } - 1);
            let base = if second { self.second_half(|v| v.word(slot)) } else { self.e.v.word(slot) };
            let (code, bound) = match (extension.signed, last > 0) {
                (true, true) => (IntCC::SignedGreaterThan, i64::from(i32::MAX) - last),
                (true, false) => (IntCC::SignedLessThan, i64::from(i32::MIN) - last),
                (false, true) => (IntCC::UnsignedGreaterThan, i64::from(u32::MAX) - last),
                (false, false) => (IntCC::UnsignedLessThan, -last),
            };
            let bound = self.e.v.int(types::I32, bound as u64);
            let is = self.e.v.b.ins().icmp(code, base, bound);
            any = Some(any.map_or(is, |known| self.e.v.b.ins().bor(known, is)));
        }
        any
    }

    /// Compiles an instruction that does not branch.
    pub(super) fn instruction(&mut self, i: &Inst, pc: u32, way: Way) {
        let kind = decode::kind_of_warp(i);
        let mut after = self.classes.clone();
        let how = after.step(i, way);
        if how != Class::Varying {
            let flow = self.e.v.flow;
            if matches!(how, Class::Halves(_)) {
                by_halves(i, pc, self);
            } else {
                self.e.instruction(flow, i, pc);
            }
            self.classes = after;
            return;
        }
        let outer = self.mask;
        if i.guard != Pred::ALWAYS {
            let guard = self.masks(i.guard.0);
            self.mask = Some(match outer {
                Some(outer) => each(self.width, |at| self.e.v.b.ins().band(outer[at], guard[at])),
                None => guard,
            });
        }
        self.varying(i, pc, kind);
        self.mask = outer;
        self.classes = after;
    }

    fn varying(&mut self, i: &Inst, pc: u32, kind: Kind) {
        match kind {
            Kind::Nothing | Kind::Branch | Kind::Stop => {}
            Kind::Lane(op) => {
                if !operation(operands::Lane::of(i), &op, self) {
                    if op.sem == Sem::Call { self.foreign(i, pc) } else { self.one_by_one(i, pc, kind) }
                }
            }
            Kind::Select => selected(i, self),
            Kind::Predicate => logic(i, self),
            Kind::Table => table_of_masks(i, self),
            Kind::IntCompare => compared_words(i, self),
            Kind::FloatCompare { double } => compared_floats(i, double, self),
            Kind::Add3 => added(i, self),
            Kind::AddWide => added_wide(i, self),
            Kind::NotZero => not_zero(i, self),
            Kind::Special => {
                let register = operands::Special::of(i);
                match register.number() {
                    axis if axis < Special::NtidX as u32 => {
                        let words = self.tids(axis);
                        self.define(register.d(), Lanes::Words(words));
                    }
                    number if !simple_special(number) => self.foreign(i, pc),
                    _ => self.one_by_one(i, pc, kind),
                }
            }
            Kind::Load { size, signed } if can_access(operands::Load::of(i).space()) => self.load(i, pc, size, signed),
            Kind::Store { size } if can_access(operands::Store::of(i).space()) => self.store(i, pc, size),
            Kind::Foreign => self.foreign(i, pc),
            _ => self.one_by_one(i, pc, kind),
        }
    }

    /// An instruction that the interpreter executes for the lanes.
    pub(super) fn foreign(&mut self, i: &Inst, pc: u32) {
        let effects = effects::effects(self.e.v.program, i);
        let guard = i.guard.0 & !Pred::NEGATED;
        for &register in &effects.reads {
            if register != Register::Pred(guard) || i.guard == Pred::ALWAYS {
                self.leave(register);
            }
        }
        if self.mask.is_some() {
            // What the others keep.
            effects.writes.iter().for_each(|&register| self.leave(register));
        }
        let behind = self.e.v.b.create_block();
        let bits = match self.mask {
            Some(mask) => {
                let bits = self.bits(mask);
                let run = self.e.v.b.create_block();
                self.e.v.b.ins().brif(bits, run, &[], behind, &[]);
                self.e.v.b.switch_to_block(run);
                self.e.v.b.ins().uextend(types::I64, bits)
            }
            None => self.e.v.int(types::I64, u64::from(self.width.full())),
        };
        let (context, lane) = (self.e.v.context, self.e.v.lane);
        let lanes = self.e.v.b.ins().ishl(bits, lane);
        let place = self.e.v.int(types::I64, u64::from(pc));
        let bad = self.e.v.call(execute as *const () as usize, &[context, place, lanes]);
        self.e.v.b.ins().brif(bad, self.e.access.fault, &[], behind, &[]);
        self.e.v.b.switch_to_block(behind);
        for register in effects.writes {
            if self.e.v.flow.index(register) < self.e.v.flow.registers() {
                self.enter(register);
            }
        }
    }

    /// An instruction that is executed for one lane after the other.
    fn one_by_one(&mut self, i: &Inst, pc: u32, kind: Kind) {
        let effects = effects::effects(self.e.v.program, i);
        let mask = self.mask.take();
        let mut registers: Vec<Register> = effects.reads.iter().chain(&effects.writes).copied().collect();
        registers.sort_unstable();
        registers.dedup();
        // What is one for all lanes is put back in front of each.
        let mut regular: Vec<(Register, Class, [Value; 2])> = Vec::new();
        for &register in &registers {
            let class = self.classes.of(register);
            if class != Class::Varying {
                let first = self.e.v.get(register);
                let halves = matches!(class, Class::Halves(_));
                let second = if halves { self.second_half(|v| v.get(register)) } else { first };
                regular.push((register, class, [first, second]));
            }
        }
        let half = self.width.lanes() / 2;
        let (first, row) = (self.e.v.lane, self.e.v.row);
        let mut results: Vec<Vec<Value>> = vec![Vec::new(); effects.writes.len()];
        self.e.v.guard = None;
        for lane in 0..self.width.lanes() {
            self.e.v.lane = self.e.v.b.ins().iadd_imm_s(first, lane as i64);
            self.e.v.row = self.e.v.b.ins().iadd_imm_s(row, 8 * lane as i64);
            for &register in &registers {
                self.pick(register, lane);
            }
            for &(register, class, base) in &regular {
                let value = match class {
                    Class::Affine(step) => self.e.v.b.ins().iadd_imm_s(base[0], step * lane as i64),
                    Class::Halves(step) if step != 0 => {
                        self.e.v.b.ins().iadd_imm_s(base[lane / half], step * (lane % half) as i64)
                    }
                    Class::Halves(_) => base[lane / half],
                    _ => base[0],
                };
                self.e.v.put(register, value);
            }
            self.e.v.forget();
            let skip = mask.map(|mask| {
                let (run, skip) = (self.e.v.b.create_block(), self.e.v.b.create_block());
                let is = self.lane_truth(mask, lane);
                self.e.v.b.ins().brif(is, run, &[], skip, &[]);
                self.e.v.b.switch_to_block(run);
                skip
            });
            let flow = self.e.v.flow;
            self.e.unguarded(flow, i, pc, kind);
            if let Some(skip) = skip {
                self.e.v.b.ins().jump(skip, &[]);
                self.e.v.b.switch_to_block(skip);
            }
            self.e.v.forget();
            for (&register, results) in effects.writes.iter().zip(&mut results) {
                results.push(self.e.v.get(register));
            }
        }
        (self.e.v.lane, self.e.v.row) = (first, row);
        for (register, _, base) in regular {
            self.e.v.put(register, base[0]);
        }
        self.e.v.forget();
        for (&register, results) in effects.writes.iter().zip(&results) {
            match register {
                Register::Row(row) => {
                    let lanes = self.gathered(row, results);
                    self.define(Slot(row), lanes);
                }
                Register::Pred(pred) => {
                    let words: Vec<Value> = results
                        .iter()
                        .map(|&truth| {
                            let word = self.e.v.b.ins().uextend(types::I32, truth);
                            self.e.v.b.ins().ineg(word)
                        })
                        .collect();
                    let value: Narrow = each(self.width, |at| {
                        let mut part = self.e.v.b.ins().scalar_to_vector(types::I32X4, words[4 * at]);
                        for lane in 1..4 {
                            part = self.e.v.b.ins().insertlane(part, words[4 * at + lane], lane as u8);
                        }
                        part
                    });
                    self.set(pred, value);
                }
            }
        }
    }
}
