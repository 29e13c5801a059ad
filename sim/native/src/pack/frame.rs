//! The lanes' values between vectors, the warp's frame, and scalars for what is done lane by lane;
//! what a region takes from the frame, and checks, at its entry.

use std::collections::HashSet;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};

use super::lanes::{Lanes, Narrow, Pack, Wide, each};
use super::uniformity::Class;
use super::{Builder, Known, Supposed};
use crate::context::at;
use crate::decode::{self, Kind};
use crate::effects::{self, Register};
use crate::flow::ValueForm;
use crate::values::{Values, fixed, plain};
use sim_exec::exec::control::Special;
use sim_exec::operations::operands;
use sim_exec::program::{Program, Slot};

impl<'p, 'b> Pack<'p, 'b> {
    /// The same within each half: then the step.
    pub(super) fn half_step(&self, slot: Slot) -> Option<i64> {
        match self.classes.slot(slot) {
            Class::Halves(step) => Some(step),
            _ => None,
        }
    }

    /// Does something with the values of the second half.
    pub(super) fn second_half<R>(&mut self, f: impl FnOnce(&mut Values<'p, 'b>) -> R) -> R {
        let half = self.width.lanes() / 2;
        self.e.v.with_other_half(half, f)
    }

    /// One lane's value of an operand, as the scalar variable of its row: for what is done lane by
    /// lane.
    pub(super) fn pick(&mut self, register: Register, lane: usize) {
        match register {
            Register::Row(row) => {
                let value = match self.classes.slot(Slot(row)) {
                    Class::Varying => match self.vectors(row) {
                        Lanes::Words(v) | Lanes::Singles(v, _) => {
                            self.e.v.b.ins().extractlane(v[lane / 4], (lane % 4) as u8)
                        }
                        Lanes::Longs(v) | Lanes::Doubles(v) => {
                            self.e.v.b.ins().extractlane(v[lane / 2], (lane % 2) as u8)
                        }
                    },
                    _ => return,
                };
                self.e.v.put(register, value);
            }
            Register::Pred(pred) if self.classes.pred(pred) == Class::Varying => {
                let masks = self.masks(pred);
                let value = self.lane_truth(masks, lane);
                self.e.v.put(register, value);
            }
            Register::Pred(_) => {}
        }
    }

    /// A lane of a mask as a truth.
    pub(super) fn lane_truth(&mut self, masks: Narrow, lane: usize) -> Value {
        let word = self.e.v.b.ins().extractlane(masks[lane / 4], (lane % 4) as u8);
        let bit = self.e.v.b.ins().band_imm_u(word, 1);
        self.e.v.b.ins().ireduce(types::I8, bit)
    }

    /// Takes a register's values from the frame, as vectors.
    pub(super) fn enter(&mut self, register: Register) {
        let mask = self.mask.take();
        match register {
            Register::Row(row) => {
                let (base, offset) = (self.e.v.row, row as i32 * 256);
                let longs: Wide =
                    each(self.width, |at| self.e.v.b.ins().load(types::I64X2, plain(), base, offset + 16 * at as i32));
                self.define(Slot(row), Lanes::Longs(longs));
            }
            Register::Pred(pred) => {
                let bits = self.pack_bits(pred);
                let value = mask_of_bits(bits, self);
                self.set(pred, value);
            }
        }
        self.mask = mask;
    }

    /// The bits of a predicate in the warp's frame from the pack's first lane on.
    pub(super) fn pack_bits(&mut self, pred: u32) -> Value {
        let context = self.e.v.context;
        let base = self.e.v.b.ins().load(types::I64, fixed(), context, at!(preds));
        let word = self.e.v.b.ins().load(types::I32, plain(), base, pred as i32 * 4);
        let lane = self.e.v.lane;
        self.e.v.b.ins().ushr(word, lane)
    }

    /// Puts a register's values into the frame.
    pub(super) fn leave(&mut self, register: Register) {
        match register {
            Register::Row(row) => {
                let longs = self.longs(Slot(row));
                let (base, offset) = (self.e.v.row, row as i32 * 256);
                for (at, long) in longs.into_iter().enumerate() {
                    self.e.v.b.ins().store(plain(), long, base, offset + 16 * at as i32);
                }
            }
            Register::Pred(pred) => {
                let masks = self.masks(pred);
                let bits = self.bits(masks);
                let (context, lane) = (self.e.v.context, self.e.v.lane);
                let base = self.e.v.b.ins().load(types::I64, fixed(), context, at!(preds));
                let word = self.e.v.b.ins().load(types::I32, plain(), base, pred as i32 * 4);
                let full = self.e.v.int(types::I32, u64::from(self.width.full()));
                let full = self.e.v.b.ins().ishl(full, lane);
                let rest = self.e.v.b.ins().band_not(word, full);
                let bits = self.e.v.b.ins().ishl(bits, lane);
                let word = self.e.v.b.ins().bor(rest, bits);
                self.e.v.b.ins().store(plain(), word, base, pred as i32 * 4);
            }
        }
    }

    /// One value of each lane, in the form of the row that they are for.
    pub(super) fn gathered(&mut self, row: u32, values: &[Value]) -> Lanes {
        debug_assert_eq!(values.len(), self.width.lanes());
        let join = |pack: &mut Self, ty: Type, values: &[Value]| {
            let mut vector = pack.e.v.b.ins().scalar_to_vector(ty, values[0]);
            for (at, &value) in values.iter().enumerate().skip(1) {
                vector = pack.e.v.b.ins().insertlane(vector, value, at as u8);
            }
            vector
        };
        match self.form(row) {
            ValueForm::Word => {
                Lanes::Words(each(self.width, |at| join(self, types::I32X4, &values[4 * at..4 * at + 4])))
            }
            ValueForm::Single => {
                let loose = self.e.v.flow.loose.has(row as usize);
                Lanes::Singles(each(self.width, |at| join(self, types::F32X4, &values[4 * at..4 * at + 4])), loose)
            }
            ValueForm::Double => {
                Lanes::Longs(each(self.width, |at| join(self, types::I64X2, &values[2 * at..2 * at + 2])))
            }
            ValueForm::LongFloat => {
                Lanes::Doubles(each(self.width, |at| join(self, types::F64X2, &values[2 * at..2 * at + 2])))
            }
        }
    }
}

impl<'p> Builder<'p, '_> {
    /// Takes the values that the region uses from the frame, and checks what is supposed of them.
    pub(super) fn enter(&mut self, program: &'p Program, entry: usize, supposed: &Supposed) {
        let (mut used, mut axes) = (HashSet::new(), HashSet::new());
        for &at in &self.plan.blocks {
            let block = &self.flow.blocks[at];
            for pc in block.start..block.end {
                let i = &program.code[pc as usize];
                let effects = effects::effects(program, i);
                used.extend(effects.reads.iter().chain(&effects.writes).map(|&register| self.flow.index(register)));
                if matches!(decode::kind(i), Kind::Special) {
                    axes.extend(Some(operands::Special::of(i).number()).filter(|&axis| axis < Special::NtidX as u32));
                }
            }
        }
        let start = self.flow.blocks[entry].start;
        let live = self.flow.live_at(start).cloned().unwrap_or_else(|| self.flow.none());
        let mut checked = Vec::new();
        for index in live.iter().filter(|&index| index < self.flow.registers()) {
            let register = self.flow.register(index);
            let is_used = used.contains(&index);
            match supposed.registers.get(&index).copied() {
                // The next region may ask for what this one does not use.
                Some(class @ (Class::Uniform | Class::Affine(_) | Class::Halves(_))) if is_used || self.whole => {
                    self.p.e.v.enter(register);
                    if matches!(class, Class::Halves(_)) {
                        self.p.second_half(|v| v.enter(register));
                    }
                    self.p.classes.set(register, class);
                    checked.push(register);
                    self.checked.push((index, class));
                }
                _ if is_used => self.p.enter(register),
                _ => {}
            }
        }
        let mut axes: Vec<u32> = axes.into_iter().collect();
        axes.sort_unstable();
        let trusted = self.whole.then(|| {
            let (check, trusted) = (self.block_now(), self.block_now());
            let b = &mut self.p.e.v.b;
            let is = b.ins().load(types::I64, plain(), self.p.e.v.context, at!(trusted));
            b.ins().brif(is, trusted, &[], check, &[]);
            b.switch_to_block(check);
            b.set_cold_block(check);
            trusted
        });
        let known = self.p.e.v.at_hand();
        if let Some(bad) = self.p.differs(&checked, if self.whole { &[] } else { &axes }) {
            let (miss, good) = (self.block_now(), self.block_now());
            let b = &mut self.p.e.v.b;
            b.set_cold_block(miss);
            b.ins().brif(bad, miss, &[], good, &[]);
            b.switch_to_block(miss);
            let (context, lane) = (self.p.e.v.context, self.p.e.v.lane);
            let number = self.p.e.v.b.ins().iadd_imm_s(lane, 1);
            self.p.e.v.b.ins().store(plain(), number, context, at!(missed));
            let none = self.flow.none();
            self.leave(program, start, &none, true, false);
            self.p.e.v.b.switch_to_block(good);
        }
        self.p.e.v.restore(known);
        if let Some(trusted) = trusted {
            self.p.e.v.b.ins().jump(trusted, &[]);
            self.p.e.v.b.switch_to_block(trusted);
            self.places(program, start, &axes);
        }
        let known = Known { classes: self.p.classes.clone(), changed: self.changed.clone() };
        self.known.insert(entry, known);
        self.analyse(program);
        self.go(program, None, start);
    }

    /// Checks what is supposed of `%tid` in whole warps.
    fn places(&mut self, program: &'p Program, start: u32, axes: &[u32]) {
        for &axis in axes {
            let (step, steps) = match self.p.classes.tid(axis) {
                Class::Uniform => (0, at!(tid_steps)),
                Class::Affine(step) => (step, at!(tid_steps)),
                Class::Halves(step) => (step, at!(tid_half_steps)),
                _ => continue,
            };
            let (miss, good) = (self.block_now(), self.block_now());
            let context = self.p.e.v.context;
            let b = &mut self.p.e.v.b;
            let own = b.ins().load(types::I64, plain(), context, steps + 8 * axis as i32);
            let is = b.ins().icmp_imm_s(IntCC::Equal, own, step);
            b.ins().brif(is, good, &[], miss, &[]);
            b.set_cold_block(miss);
            b.switch_to_block(miss);
            let one = self.p.e.v.int(types::I64, 1);
            self.p.e.v.b.ins().store(plain(), one, context, at!(missed));
            let none = self.flow.none();
            self.leave(program, start, &none, true, false);
            self.p.e.v.b.switch_to_block(good);
        }
    }
}

/// A mask of the lanes whose bits are set.
fn mask_of_bits(bits: Value, p: &mut Pack<'_, '_>) -> Narrow {
    let bits = p.e.v.b.ins().splat(types::I32X4, bits);
    each(p.width, |at| {
        let own = (0..4).flat_map(|lane| (1u32 << (4 * at + lane)).to_le_bytes()).collect();
        let own = p.vector(types::I32X4, own);
        let is = p.e.v.b.ins().band(bits, own);
        p.e.v.b.ins().icmp(IntCC::Equal, is, own)
    })
}
