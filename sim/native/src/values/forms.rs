//! The forms that a value is at hand in: integer or float, of 32 or 64 bits. Each is made once.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};

use super::{Held, Values};
use crate::flow::constant;
use sim_exec::program::Slot;

impl Values<'_, '_> {
    pub(crate) fn bits(&mut self, ty: Type, value: Value) -> Value {
        self.b.ins().bitcast(ty, MemFlagsData::new(), value)
    }

    /// Makes a NaN the one of the hardware.
    pub(crate) fn strict(&mut self, value: Value) -> Value {
        let nan = self.b.ins().f32const(f32::from_bits(0x7fff_ffff));
        let is = self.b.ins().fcmp(FloatCC::Unordered, value, value);
        self.b.ins().select(is, nan, value)
    }

    /// The low 32 bits of a value.
    pub(crate) fn word_of(&mut self, held: &mut Held) -> Value {
        if let Some(value) = held.word {
            return value;
        }
        let value = if let Some(long) = held.long {
            self.b.ins().ireduce(types::I32, long)
        } else if let Some(single) = held.single {
            let single = if held.loose { self.strict(single) } else { single };
            (held.single, held.loose) = (Some(single), false);
            self.bits(types::I32, single)
        } else {
            let long = self.long_of(held);
            self.b.ins().ireduce(types::I32, long)
        };
        held.word = Some(value);
        value
    }

    /// All 64 bits of a value.
    pub(crate) fn long_of(&mut self, held: &mut Held) -> Value {
        if let Some(value) = held.long {
            return value;
        }
        let value = if let Some(double) = held.double {
            self.bits(types::I64, double)
        } else {
            let word = self.word_of(held);
            self.b.ins().uextend(types::I64, word)
        };
        held.long = Some(value);
        value
    }

    /// The value as a single; its NaN may be any, if `loose`.
    pub(crate) fn single_of(&mut self, held: &mut Held, loose: bool) -> Value {
        if let Some(value) = held.single {
            if held.loose && !loose {
                let value = self.strict(value);
                (held.single, held.loose) = (Some(value), false);
                return value;
            }
            return value;
        }
        let word = self.word_of(held);
        let value = self.bits(types::F32, word);
        held.single = Some(value);
        value
    }

    pub(crate) fn double_of(&mut self, held: &mut Held) -> Value {
        if let Some(value) = held.double {
            return value;
        }
        let long = self.long_of(held);
        let value = self.bits(types::F64, long);
        held.double = Some(value);
        value
    }

    pub(crate) fn word(&mut self, slot: Slot) -> Value {
        let mut held = self.held(slot);
        let value = self.word_of(&mut held);
        self.keep(slot, held);
        value
    }

    pub(crate) fn long(&mut self, slot: Slot) -> Value {
        let mut held = self.held(slot);
        let value = self.long_of(&mut held);
        self.keep(slot, held);
        value
    }

    pub(crate) fn single(&mut self, slot: Slot, loose: bool) -> Value {
        if let Some(value) = constant(self.program, slot) {
            return self.b.ins().f32const(f32::from_bits(value as u32));
        }
        let mut held = self.held(slot);
        let value = self.single_of(&mut held, loose);
        self.keep(slot, held);
        value
    }

    pub(crate) fn double(&mut self, slot: Slot) -> Value {
        if let Some(value) = constant(self.program, slot) {
            return self.b.ins().f64const(f64::from_bits(value));
        }
        let mut held = self.held(slot);
        let value = self.double_of(&mut held);
        self.keep(slot, held);
        value
    }
}
