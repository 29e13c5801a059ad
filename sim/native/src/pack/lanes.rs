//! The values of a pack's lanes as vectors of the host, in the forms that are asked for.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::Variable;

use super::uniformity::{Class, Classes};
pub(super) use super::width::{Narrow, Wide, each};
use super::width::{Vectors, Width, all};
use crate::effects::Register;
use crate::flow::{ValueForm, constant};
use crate::instruction::Emitter;
use sim_exec::program::{Pred, Slot};

/// A result of each lane.
#[derive(Clone, Copy)]
pub(super) enum Lanes {
    Words(Narrow),
    /// And whether a NaN may be any.
    Singles(Narrow, bool),
    Longs(Wide),
    Doubles(Wide),
}

/// What makes native code for a pack of lanes.
pub(super) struct Pack<'p, 'b> {
    /// Does what is done once for a pack, or lane by lane. Its lane is the pack's first.
    pub(crate) e: Emitter<'p, 'b>,
    pub(crate) classes: Classes<'p>,
    /// The lanes that execute the instruction, if these are not all: 0 or -1 in each.
    pub(crate) mask: Option<Narrow>,
    pub(crate) width: Width,
    narrow: HashMap<usize, Vec<Variable>>,
    wide: HashMap<usize, Vec<Variable>>,
}

impl<'p, 'b> Pack<'p, 'b> {
    pub(super) fn new(e: Emitter<'p, 'b>, classes: Classes<'p>, width: Width) -> Self {
        Pack { e, classes, mask: None, width, narrow: HashMap::new(), wide: HashMap::new() }
    }

    pub(super) fn cast(&mut self, ty: Type, value: Value) -> Value {
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.e.v.b.ins().bitcast(ty, flags, value)
    }

    pub(super) fn cast_all<const N: usize>(&mut self, ty: Type, values: Vectors<N>) -> Vectors<N> {
        values.map(|value| self.cast(ty, value))
    }

    /// A vector of constants.
    pub(super) fn vector(&mut self, ty: Type, bytes: Vec<u8>) -> Value {
        let constant = self.e.v.b.func.dfg.constants.insert(bytes.into());
        self.e.v.b.ins().vconst(ty, constant)
    }

    /// The same word in all lanes.
    pub(super) fn word_everywhere(&mut self, value: u32) -> Value {
        self.vector(types::I32X4, value.to_le_bytes().repeat(4))
    }

    pub(super) fn long_everywhere(&mut self, value: u64) -> Value {
        self.vector(types::I64X2, value.to_le_bytes().repeat(2))
    }

    pub(super) fn single_everywhere(&mut self, value: f32) -> Value {
        self.vector(types::F32X4, value.to_le_bytes().repeat(4))
    }

    /// Lanes of 32 bits picked from two vectors: 0 to 3 of the first, 4 to 7 of the second.
    pub(super) fn picked(&mut self, ty: Type, a: Value, b: Value, lanes: [u8; 4]) -> Value {
        let bytes: Vec<u8> = lanes.iter().flat_map(|&lane| (0..4).map(move |byte| lane * 4 + byte)).collect();
        let picks = self.e.v.b.func.dfg.immediates.push(bytes.into());
        let (a, b) = (self.cast(types::I8X16, a), self.cast(types::I8X16, b));
        let value = self.e.v.b.ins().shuffle(a, b, picks);
        self.cast(ty, value)
    }

    /// The lower halves of longs.
    pub(super) fn narrowed(&mut self, longs: Wide) -> Narrow {
        each(self.width, |at| self.picked(types::I32X4, longs[2 * at], longs[2 * at + 1], [0, 2, 4, 6]))
    }

    pub(super) fn upper_halves(&mut self, longs: Wide) -> Narrow {
        each(self.width, |at| self.picked(types::I32X4, longs[2 * at], longs[2 * at + 1], [1, 3, 5, 7]))
    }

    /// Words extended to 64 bits.
    pub(super) fn extended(&mut self, words: Narrow, signed: bool) -> Wide {
        each(self.width, |at| {
            let (word, ins) = (words[at / 2], self.e.v.b.ins());
            match (signed, at % 2) {
                (false, 0) => ins.uwiden_low(word),
                (false, _) => ins.uwiden_high(word),
                (true, 0) => ins.swiden_low(word),
                (true, _) => ins.swiden_high(word),
            }
        })
    }

    pub(super) fn form(&self, row: u32) -> ValueForm {
        self.e.v.flow.form(row)
    }

    fn narrow_variables(&mut self, register: Register, ty: Type) -> Vec<Variable> {
        let index = self.e.v.flow.index(register);
        let (parts, b) = (self.width.parts(), &mut self.e.v.b);
        self.narrow.entry(index).or_insert_with(|| (0..parts).map(|_| b.declare_var(ty)).collect()).clone()
    }

    fn wide_variables(&mut self, register: Register, ty: Type) -> Vec<Variable> {
        let index = self.e.v.flow.index(register);
        let (parts, b) = (2 * self.width.parts(), &mut self.e.v.b);
        self.wide.entry(index).or_insert_with(|| (0..parts).map(|_| b.declare_var(ty)).collect()).clone()
    }

    /// The vectors of a register that differs from lane to lane.
    pub(super) fn vectors(&mut self, row: u32) -> Lanes {
        let register = Register::Row(row);
        match self.form(row) {
            ValueForm::Word => {
                let known = self.narrow_variables(register, types::I32X4);
                Lanes::Words(each(self.width, |at| self.e.v.b.use_var(known[at])))
            }
            ValueForm::Single => {
                let known = self.narrow_variables(register, types::F32X4);
                let loose = self.e.v.flow.loose.has(row as usize);
                Lanes::Singles(each(self.width, |at| self.e.v.b.use_var(known[at])), loose)
            }
            ValueForm::Double => {
                let known = self.wide_variables(register, types::I64X2);
                Lanes::Longs(each(self.width, |at| self.e.v.b.use_var(known[at])))
            }
            ValueForm::LongFloat => {
                let known = self.wide_variables(register, types::F64X2);
                Lanes::Doubles(each(self.width, |at| self.e.v.b.use_var(known[at])))
            }
        }
    }

    /// Whether an operand is the same in all lanes, or nearly so: then the step.
    fn step(&self, slot: Slot) -> Option<i64> {
        match self.classes.slot(slot) {
            Class::Uniform | Class::Unknown => Some(0),
            Class::Affine(step) => Some(step),
            Class::Halves(_) | Class::Varying => None,
        }
    }

    /// How much further than the first each lane of a part is.
    pub(super) fn steps(&mut self, step: i32, part: usize) -> Value {
        let steps = (0..4).flat_map(|lane| step.wrapping_mul(part as i32 * 4 + lane).to_le_bytes());
        self.vector(types::I32X4, steps.collect())
    }

    /// The low 32 bits of an operand.
    pub(super) fn words(&mut self, slot: Slot) -> Narrow {
        if let Some(value) = constant(self.e.v.program, slot) {
            let value = self.word_everywhere(value as u32);
            return all(self.width, value);
        }
        if let Some(step) = self.step(slot) {
            let first = self.e.v.word(slot);
            let first = self.e.v.b.ins().splat(types::I32X4, first);
            return each(self.width, |at| {
                if step == 0 {
                    return first;
                }
                let steps = self.steps(step as i32, at);
                self.e.v.b.ins().iadd(first, steps)
            });
        }
        if let Some(step) = self.half_step(slot) {
            let firsts = [self.e.v.word(slot), self.second_half(|v| v.word(slot))];
            let firsts = firsts.map(|first| self.e.v.b.ins().splat(types::I32X4, first));
            let half = self.width.parts() / 2;
            return each(self.width, |at| {
                if step == 0 {
                    return firsts[at / half];
                }
                let steps = self.steps(step as i32, at % half);
                self.e.v.b.ins().iadd(firsts[at / half], steps)
            });
        }
        let lanes = self.vectors(slot.0);
        self.as_words(lanes)
    }

    pub(super) fn as_words(&mut self, lanes: Lanes) -> Narrow {
        match lanes {
            Lanes::Words(words) => words,
            Lanes::Singles(singles, loose) => {
                let singles = if loose { self.strict(singles) } else { singles };
                self.cast_all(types::I32X4, singles)
            }
            Lanes::Longs(longs) => self.narrowed(longs),
            Lanes::Doubles(doubles) => {
                let longs = self.cast_all(types::I64X2, doubles);
                self.narrowed(longs)
            }
        }
    }

    /// All 64 bits of an operand.
    pub(super) fn longs(&mut self, slot: Slot) -> Wide {
        if let Some(value) = constant(self.e.v.program, slot) {
            let value = self.long_everywhere(value);
            return all(self.width, value);
        }
        match self.step(slot) {
            Some(step) if step == 0 || self.form(slot.0) == ValueForm::Double => {
                let first = self.e.v.long(slot);
                let first = self.e.v.b.ins().splat(types::I64X2, first);
                return each(self.width, |at| {
                    if step == 0 {
                        return first;
                    }
                    let steps = (0..2).flat_map(|lane| step.wrapping_mul(at as i64 * 2 + lane).to_le_bytes());
                    let steps = self.vector(types::I64X2, steps.collect());
                    self.e.v.b.ins().iadd(first, steps)
                });
            }
            Some(_) => {
                let words = self.words(slot);
                return self.extended(words, false);
            }
            None => {}
        }
        let wide = !matches!(self.form(slot.0), ValueForm::Word | ValueForm::Single);
        match self.half_step(slot) {
            Some(step) if wide => {
                let firsts = [self.e.v.long(slot), self.second_half(|v| v.long(slot))];
                let firsts = firsts.map(|first| self.e.v.b.ins().splat(types::I64X2, first));
                let half = self.width.parts();
                return each(self.width, |at| {
                    if step == 0 {
                        return firsts[at / half];
                    }
                    let own = (at % half) as i64 * 2;
                    let steps = (0..2).flat_map(|lane| step.wrapping_mul(own + lane).to_le_bytes());
                    let steps = self.vector(types::I64X2, steps.collect());
                    self.e.v.b.ins().iadd(firsts[at / half], steps)
                });
            }
            Some(_) => {
                let words = self.words(slot);
                return self.extended(words, false);
            }
            None => {}
        }
        let lanes = self.vectors(slot.0);
        self.as_longs(lanes)
    }

    pub(super) fn as_longs(&mut self, lanes: Lanes) -> Wide {
        match lanes {
            Lanes::Longs(longs) => longs,
            Lanes::Doubles(doubles) => self.cast_all(types::I64X2, doubles),
            narrow => {
                let words = self.as_words(narrow);
                self.extended(words, false)
            }
        }
    }

    /// An operand as singles; whether a NaN may be any, the answer says where that is allowed.
    pub(super) fn singles(&mut self, slot: Slot, loose: bool) -> (Narrow, bool) {
        if let Some(value) = constant(self.e.v.program, slot) {
            let value = self.single_everywhere(f32::from_bits(value as u32));
            return (all(self.width, value), false);
        }
        if self.step(slot) == Some(0) {
            let value = self.e.v.single(slot, loose);
            let value = self.e.v.b.ins().splat(types::F32X4, value);
            return (all(self.width, value), loose);
        }
        if self.half_step(slot) == Some(0) {
            let values = [self.e.v.single(slot, loose), self.second_half(|v| v.single(slot, loose))];
            let values = values.map(|value| self.e.v.b.ins().splat(types::F32X4, value));
            let half = self.width.parts() / 2;
            return (each(self.width, |at| values[at / half]), loose);
        }
        if self.classes.slot(slot) == Class::Varying
            && let Lanes::Singles(singles, may) = self.vectors(slot.0)
        {
            let singles = if may && !loose { self.strict(singles) } else { singles };
            return (singles, may && loose);
        }
        let words = self.words(slot);
        (self.cast_all(types::F32X4, words), false)
    }

    pub(super) fn doubles(&mut self, slot: Slot) -> Wide {
        let longs = self.longs(slot);
        self.cast_all(types::F64X2, longs)
    }

    /// Makes NaNs the one of the hardware.
    pub(super) fn strict(&mut self, singles: Narrow) -> Narrow {
        let nan = self.single_everywhere(f32::from_bits(0x7fff_ffff));
        each(self.width, |at| {
            let is = self.e.v.b.ins().fcmp(FloatCC::Unordered, singles[at], singles[at]);
            self.chosen(is, nan, singles[at])
        })
    }

    /// `a` where the mask's bits are set, else `b`. Chosen as integers: then the code generator
    /// sees that a comparison's lanes are all ones or zeros, and one instruction does it.
    pub(super) fn chosen(&mut self, mask: Value, a: Value, b: Value) -> Value {
        let (ty, mask_ty) = (self.e.v.b.func.dfg.value_type(a), self.e.v.b.func.dfg.value_type(mask));
        let (a, b) = (self.cast(mask_ty, a), self.cast(mask_ty, b));
        let value = self.e.v.b.ins().bitselect(mask, a, b);
        self.cast(ty, value)
    }

    /// A mask of narrow lanes for wide ones.
    pub(super) fn mask_of_wide(&mut self, mask: Narrow) -> Wide {
        self.extended(mask, true)
    }

    pub(super) fn merged_narrow(&mut self, mask: Narrow, new: Narrow, old: Narrow) -> Narrow {
        each(self.width, |at| self.chosen(mask[at], new[at], old[at]))
    }

    fn merged_wide(&mut self, mask: Narrow, new: Wide, old: Wide) -> Wide {
        let mask = self.mask_of_wide(mask);
        each(self.width, |at| self.chosen(mask[at], new[at], old[at]))
    }

    /// Gives a row a value in each lane, where the mask says so.
    pub(super) fn define(&mut self, slot: Slot, lanes: Lanes) {
        if slot == Slot::NONE || slot.0 & Slot::CONSTANT != 0 {
            return;
        }
        let lanes = match self.mask {
            None => lanes,
            Some(mask) => match (self.form(slot.0), lanes) {
                (ValueForm::Single, lanes) => {
                    let may = self.e.v.flow.loose.has(slot.0 as usize);
                    let (new, new_loose) = self.as_singles(lanes, may);
                    let (old, old_loose) = self.singles(slot, may);
                    Lanes::Singles(self.merged_narrow(mask, new, old), new_loose || old_loose)
                }
                (ValueForm::Word, lanes) => {
                    let (new, old) = (self.as_words(lanes), self.words(slot));
                    Lanes::Words(self.merged_narrow(mask, new, old))
                }
                (_, lanes) => {
                    let (new, old) = (self.as_longs(lanes), self.longs(slot));
                    Lanes::Longs(self.merged_wide(mask, new, old))
                }
            },
        };
        self.put(slot.0, lanes);
        self.classes.set(Register::Row(slot.0), Class::Varying);
    }

    fn as_singles(&mut self, lanes: Lanes, loose: bool) -> (Narrow, bool) {
        match lanes {
            Lanes::Singles(singles, true) if !loose => (self.strict(singles), false),
            Lanes::Singles(singles, is) => (singles, is),
            other => {
                let words = self.as_words(other);
                (self.cast_all(types::F32X4, words), false)
            }
        }
    }

    /// Puts a row's vectors into its variables.
    fn put(&mut self, row: u32, lanes: Lanes) {
        let register = Register::Row(row);
        match self.form(row) {
            ValueForm::Word => {
                let words = self.as_words(lanes);
                let known = self.narrow_variables(register, types::I32X4);
                known.iter().zip(words.iter()).for_each(|(&known, &part)| self.e.v.b.def_var(known, part));
            }
            ValueForm::Single => {
                let loose = self.e.v.flow.loose.has(row as usize);
                let (singles, _) = self.as_singles(lanes, loose);
                let known = self.narrow_variables(register, types::F32X4);
                known.iter().zip(singles.iter()).for_each(|(&known, &part)| self.e.v.b.def_var(known, part));
            }
            ValueForm::Double => {
                let longs = self.as_longs(lanes);
                let known = self.wide_variables(register, types::I64X2);
                known.iter().zip(longs.iter()).for_each(|(&known, &part)| self.e.v.b.def_var(known, part));
            }
            ValueForm::LongFloat => {
                let longs = self.as_longs(lanes);
                let doubles = self.cast_all(types::F64X2, longs);
                let known = self.wide_variables(register, types::F64X2);
                known.iter().zip(doubles.iter()).for_each(|(&known, &part)| self.e.v.b.def_var(known, part));
            }
        }
    }

    /// The lanes where a predicate holds.
    pub(super) fn masks(&mut self, pred: u32) -> Narrow {
        let negated = pred & Pred::NEGATED != 0;
        let number = pred & !Pred::NEGATED;
        if number == Pred::ALWAYS.0 {
            let value = self.word_everywhere(if negated { 0 } else { u32::MAX });
            return all(self.width, value);
        }
        match self.classes.pred(pred) {
            Class::Varying => {}
            Class::Halves(_) => {
                let truths = [self.e.v.truth(pred), self.second_half(|v| v.truth(pred))];
                let masks = truths.map(|truth| self.spread(truth)[0]);
                let half = self.width.parts() / 2;
                return each(self.width, |at| masks[at / half]);
            }
            _ => {
                let truth = self.e.v.truth(pred);
                return self.spread(truth);
            }
        }
        let known = self.narrow_variables(Register::Pred(number), types::I32X4);
        each(self.width, |at| {
            let value = self.e.v.b.use_var(known[at]);
            if negated { self.e.v.b.ins().bnot(value) } else { value }
        })
    }

    /// A truth (0 or 1) as a mask of all lanes.
    pub(super) fn spread(&mut self, truth: Value) -> Narrow {
        let word = self.e.v.b.ins().uextend(types::I32, truth);
        let word = self.e.v.b.ins().ineg(word);
        let value = self.e.v.b.ins().splat(types::I32X4, word);
        all(self.width, value)
    }

    /// Gives a predicate a truth in each lane, where the mask says so.
    pub(super) fn set(&mut self, pred: u32, value: Narrow) {
        if pred == Pred::ALWAYS.0 {
            return;
        }
        let value = match self.mask {
            Some(mask) => {
                let old = self.masks(pred);
                self.merged_narrow(mask, value, old)
            }
            None => value,
        };
        let known = self.narrow_variables(Register::Pred(pred), types::I32X4);
        known.iter().zip(value.iter()).for_each(|(&known, &part)| self.e.v.b.def_var(known, part));
        self.classes.set(Register::Pred(pred), Class::Varying);
    }

    /// The mask as bits, the first lane's the lowest.
    pub(super) fn bits(&mut self, mask: Narrow) -> Value {
        let mut bits = self.e.v.b.ins().vhigh_bits(types::I32, mask[0]);
        for (at, &part) in mask.iter().enumerate().skip(1) {
            let more = self.e.v.b.ins().vhigh_bits(types::I32, part);
            let more = self.e.v.b.ins().ishl_imm_u(more, 4 * at as i64);
            bits = self.e.v.b.ins().bor(bits, more);
        }
        bits
    }

    /// Makes a register one that differs from lane to lane.
    pub(super) fn vary(&mut self, register: Register) {
        let mask = self.mask.take();
        match register {
            Register::Row(row) => {
                let slot = Slot(row);
                let lanes = match self.form(row) {
                    ValueForm::Word => Lanes::Words(self.words(slot)),
                    ValueForm::Single => {
                        let loose = self.e.v.flow.loose.has(row as usize);
                        let (singles, is) = self.singles(slot, loose);
                        Lanes::Singles(singles, is)
                    }
                    _ => Lanes::Longs(self.longs(slot)),
                };
                self.define(slot, lanes);
            }
            Register::Pred(pred) => {
                let value = self.masks(pred);
                self.set(pred, value);
            }
        }
        self.mask = mask;
    }
}
