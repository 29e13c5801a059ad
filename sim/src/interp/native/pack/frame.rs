//! The lanes' values between vectors, the warp's frame, and scalars for what is done lane by lane.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};

use super::class::Class;
use super::lanes::{Lanes, Narrow, Pack, Wide, each};
use crate::interp::native::context::at;
use crate::interp::native::effects::Register;
use crate::interp::native::flow::ValueForm;
use crate::interp::native::values::{fixed, plain};
use crate::interp::program::Slot;

impl Pack<'_, '_> {
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
                let bits = self.e.v.b.ins().splat(types::I32X4, bits);
                let value = each(self.width, |at| {
                    let own = (0..4).flat_map(|lane| (1u32 << (4 * at + lane)).to_le_bytes()).collect();
                    let own = self.vector(types::I32X4, own);
                    let is = self.e.v.b.ins().band(bits, own);
                    self.e.v.b.ins().icmp(IntCC::Equal, is, own)
                });
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
