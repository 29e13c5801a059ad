//! Loads and stores of a pack: vectors where addresses follow each other, else lane by lane.

use crate::pack::gather_scatter::{is_apart, load_apart, store_apart};
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::address_checks::{AccessShape, Reach};
use super::lanes::{Lanes, Narrow, Pack, Wide, each};
use super::width::Width;
use crate::context::at;
use crate::memory::{loaded, stored};
use crate::values::plain;
use sim_exec::exec::load_store::{FRAME, GENERIC, GLOBAL, LOCAL, SHARED};
use sim_exec::interface::AccessKind;
use sim_exec::operations::operands;
use sim_exec::program::{Inst, Slot};

/// What an access moves: words or longs of each lane, or columns of words.
pub(super) enum Moved {
    Words(Narrow),
    Longs(Wide),
    Columns(Vec<Narrow>),
}

impl Moved {
    fn values(&self) -> Vec<Value> {
        match self {
            Moved::Words(words) => words.to_vec(),
            Moved::Longs(longs) => longs.to_vec(),
            Moved::Columns(columns) => columns.iter().flat_map(|column| column.to_vec()).collect(),
        }
    }

    fn of(width: Width, total: u32, values: &[Value]) -> Moved {
        match total {
            ..=4 => Moved::Words(each(width, |at| values[at])),
            8 => Moved::Longs(each(width, |at| values[at])),
            _ => Moved::Columns(values.chunks(width.parts()).map(|part| each(width, |at| part[at])).collect()),
        }
    }
}

/// Whether there is code for accesses to a space.
pub(super) fn can_access(space: u32) -> bool {
    matches!(space, GENERIC | GLOBAL | SHARED | LOCAL | FRAME)
}

impl Pack<'_, '_> {
    fn context_address(&mut self, offset: i32) -> Value {
        let context = self.e.v.context;
        self.e.v.b.ins().iadd_imm_s(context, i64::from(offset))
    }

    /// Reads all lanes' bytes; narrow ones are extended with zeros.
    fn read(&mut self, reach: &Reach, total: u32) -> Moved {
        if let Some(step) = reach.step()
            && step == i64::from(total)
        {
            let parts = self.width.parts();
            match total {
                2 => {
                    return Moved::Words(each(self.width, |at| {
                        let (from, at) = reach.row(at, parts);
                        self.e.v.b.ins().uload16x4(plain(), from, 8 * at)
                    }));
                }
                4 => {
                    let ty = types::I32X4;
                    return Moved::Words(each(self.width, |at| {
                        let (from, at) = reach.row(at, parts);
                        self.e.v.b.ins().load(ty, plain(), from, 16 * at)
                    }));
                }
                8 => {
                    let ty = types::I64X2;
                    return Moved::Longs(each(self.width, |at| {
                        let (from, at) = reach.row(at, 2 * parts);
                        self.e.v.b.ins().load(ty, plain(), from, 16 * at)
                    }));
                }
                _ => {}
            }
        }
        // Lanes that read what the one before them does.
        let same = match reach {
            Reach::Steady(_, 0) => self.width.lanes(),
            Reach::Halves(_, 0) => self.width.lanes() / 2,
            _ => 1,
        };
        let mut scalars = Vec::new();
        for lane in (0..self.width.lanes()).step_by(same) {
            let (from, offset) = self.pointer(reach, lane);
            let ins = self.e.v.b.ins();
            match total {
                1 => scalars.push(ins.uload8(types::I32, plain(), from, offset)),
                2 => scalars.push(ins.uload16(types::I32, plain(), from, offset)),
                4 => scalars.push(ins.load(types::I32, plain(), from, offset)),
                8 => scalars.push(ins.load(types::I64, plain(), from, offset)),
                _ => {
                    scalars.push(ins.load(types::I32X4, plain(), from, offset));
                    if total == 32 {
                        scalars.push(self.e.v.b.ins().load(types::I32X4, plain(), from, offset + 16));
                    }
                }
            }
        }
        if same > 1 {
            let rows = if total == 32 { 2 } else { 1 };
            scalars = scalars.chunks(rows).flat_map(|own| own.iter().copied().cycle().take(rows * same)).collect();
        }
        match total {
            ..=4 => Moved::Words(each(self.width, |at| self.joined(&scalars[4 * at..4 * at + 4]))),
            8 => Moved::Longs(each(self.width, |at| self.joined(&scalars[2 * at..2 * at + 2]))),
            _ => {
                let rows = total as usize / 16;
                let mut columns = Vec::new();
                for row in 0..rows {
                    let own: Vec<Value> = scalars.iter().skip(row).step_by(rows).copied().collect();
                    let parts: Vec<[Value; 4]> = own.chunks(4).map(|four| self.transposed(four)).collect();
                    columns.extend((0..4).map(|column| each(self.width, |at| parts[at][column])));
                }
                Moved::Columns(columns)
            }
        }
    }

    fn joined(&mut self, scalars: &[Value]) -> Value {
        let ty = if scalars.len() == 4 { types::I32X4 } else { types::I64X2 };
        if scalars.iter().all(|scalar| *scalar == scalars[0]) {
            return self.e.v.b.ins().splat(ty, scalars[0]);
        }
        let mut vector = self.e.v.b.ins().scalar_to_vector(ty, scalars[0]);
        for (at, &value) in scalars.iter().enumerate().skip(1) {
            vector = self.e.v.b.ins().insertlane(vector, value, at as u8);
        }
        vector
    }

    /// Rows of four words as columns, or the other way round.
    fn transposed(&mut self, rows: &[Value]) -> [Value; 4] {
        let ty = types::I32X4;
        let low = [0, 1].map(|at| self.picked(ty, rows[2 * at], rows[2 * at + 1], [0, 4, 1, 5]));
        let high = [0, 1].map(|at| self.picked(ty, rows[2 * at], rows[2 * at + 1], [2, 6, 3, 7]));
        [
            self.picked(ty, low[0], low[1], [0, 1, 4, 5]),
            self.picked(ty, low[0], low[1], [2, 3, 6, 7]),
            self.picked(ty, high[0], high[1], [0, 1, 4, 5]),
            self.picked(ty, high[0], high[1], [2, 3, 6, 7]),
        ]
    }

    /// The elements of an access.
    fn element(&mut self, moved: &Moved, at: usize, size: u32) -> Lanes {
        let word = |pack: &mut Self, words: Narrow, bit: u32| match bit {
            0 => words,
            bit => {
                let count = pack.e.v.int(types::I32, u64::from(bit));
                each(pack.width, |at| pack.e.v.b.ins().ushr(words[at], count))
            }
        };
        let bit = at as u32 * size * 8;
        match moved {
            Moved::Words(words) => Lanes::Words(word(self, *words, bit)),
            Moved::Longs(longs) if size == 8 => Lanes::Longs(*longs),
            Moved::Longs(longs) => {
                let half = if bit < 32 { self.narrowed(*longs) } else { self.upper_halves(*longs) };
                Lanes::Words(word(self, half, bit % 32))
            }
            Moved::Columns(columns) if size == 8 => {
                let (low, high) = (columns[2 * at], columns[2 * at + 1]);
                Lanes::Longs(self.words_joined(low, high))
            }
            Moved::Columns(columns) => Lanes::Words(word(self, columns[bit as usize / 32], bit % 32)),
        }
    }

    fn words_joined(&mut self, low: Narrow, high: Narrow) -> Wide {
        each(self.width, |at| {
            let picks = if at % 2 == 0 { [0, 4, 1, 5] } else { [2, 6, 3, 7] };
            self.picked(types::I64X2, low[at / 2], high[at / 2], picks)
        })
    }

    /// `ld`
    pub(super) fn load(&mut self, i: &Inst, pc: u32, size: u32, signed: bool) {
        let i = operands::Load::of(i);
        let (location, slots) = (i.location(), loaded(i, self.e.v.program));
        let total = size * slots.len() as u32;
        if is_apart(location, total, self) && slots.len() == 1 {
            let words = load_apart(location, pc, self);
            let kept = self.kept(words, size, signed, i.bits());
            self.define(slots[0], kept);
            return;
        }
        let shape = AccessShape { pc, total, shift: total.trailing_zeros(), kind: AccessKind::Read };
        let (slow, done) = (self.e.v.b.create_block(), self.e.v.b.create_block());
        self.e.v.b.set_cold_block(slow);
        let (reach, site) = self.reach(location, shape, slow);
        let fast = self.read(&reach, total).values();
        let results: Vec<Value> = fast
            .iter()
            .map(|&value| {
                let ty = self.e.v.b.func.dfg.value_type(value);
                self.e.v.b.append_block_param(done, ty)
            })
            .collect();
        let arguments: Vec<_> = fast.into_iter().map(Into::into).collect();
        self.e.v.b.ins().jump(done, &arguments);
        self.e.v.b.switch_to_block(slow);
        let known = self.e.v.at_hand();
        let pointers = self.asked(location, shape, site);
        let found = self.read(&Reach::Scattered(pointers), total).values();
        let arguments: Vec<_> = found.into_iter().map(Into::into).collect();
        self.e.v.b.ins().jump(done, &arguments);
        self.e.v.restore(known);
        self.e.v.b.switch_to_block(done);
        let moved = Moved::of(self.width, total, &results);
        let lanes: Vec<Lanes> = (0..slots.len()).map(|at| self.element(&moved, at, size)).collect();
        for (&slot, lanes) in slots.iter().zip(lanes) {
            let kept = self.kept(lanes, size, signed, i.bits());
            self.define(slot, kept);
        }
    }

    /// An element as it is in a register: extended, and cut to `keep` bits.
    fn kept(&mut self, lanes: Lanes, size: u32, signed: bool, keep: u32) -> Lanes {
        let Lanes::Words(mut words) = lanes else { return lanes };
        if size < 4 {
            let count = self.e.v.int(types::I32, u64::from(32 - 8 * size));
            words = each(self.width, |at| {
                let up = self.e.v.b.ins().ishl(words[at], count);
                if signed { self.e.v.b.ins().sshr(up, count) } else { self.e.v.b.ins().ushr(up, count) }
            });
        }
        if signed && keep > 32 {
            return Lanes::Longs(self.extended(words, true));
        }
        match u32::MAX >> (32 - keep.min(32)) {
            u32::MAX => Lanes::Words(words),
            mask => {
                let mask = self.word_everywhere(mask);
                Lanes::Words(each(self.width, |at| self.e.v.b.ins().band(words[at], mask)))
            }
        }
    }

    /// What a store moves.
    fn stored(&mut self, slots: &[Slot], size: u32) -> Moved {
        if size == 8 && slots.len() == 1 {
            return Moved::Longs(self.longs(slots[0]));
        }
        let mut columns: Vec<Narrow> = Vec::new();
        for (at, &slot) in slots.iter().enumerate() {
            if size == 8 {
                let longs = self.longs(slot);
                let (low, high) = (self.narrowed(longs), self.upper_halves(longs));
                columns.extend([low, high]);
                continue;
            }
            let words = self.words(slot);
            let bit = at as u32 * size * 8 % 32;
            if size < 4 && slots.len() > 1 {
                let mask = self.word_everywhere((1 << (8 * size)) - 1);
                let count = self.e.v.int(types::I32, u64::from(bit));
                let own: Narrow = each(self.width, |at| {
                    let low = self.e.v.b.ins().band(words[at], mask);
                    self.e.v.b.ins().ishl(low, count)
                });
                if bit != 0 {
                    let column = columns.len() - 1;
                    columns[column] = each(self.width, |at| self.e.v.b.ins().bor(columns[column][at], own[at]));
                    continue;
                }
                columns.push(own);
                continue;
            }
            columns.push(words);
        }
        match columns[..] {
            [words] => Moved::Words(words),
            [low, high] => Moved::Longs(self.words_joined(low, high)),
            _ => Moved::Columns(columns),
        }
    }

    fn write(&mut self, reach: &Reach, moved: &Moved, total: u32) {
        if let Some(step) = reach.step()
            && step == i64::from(total)
            && matches!(total, 4 | 8)
        {
            let values = moved.values();
            let count = values.len();
            for (at, value) in values.into_iter().enumerate() {
                let (to, at) = reach.row(at, count);
                self.e.v.b.ins().store(plain(), value, to, 16 * at);
            }
            return;
        }
        let rows: Vec<Vec<[Value; 4]>> = match moved {
            Moved::Columns(columns) => columns
                .chunks(4)
                .map(|four| {
                    (0..self.width.parts()).map(|at| self.transposed(&[0, 1, 2, 3].map(|n| four[n][at]))).collect()
                })
                .collect(),
            _ => Vec::new(),
        };
        for lane in 0..self.width.lanes() {
            let (to, offset) = self.pointer(reach, lane);
            match moved {
                Moved::Words(words) => {
                    let value = self.e.v.b.ins().extractlane(words[lane / 4], (lane % 4) as u8);
                    match total {
                        1 => self.e.v.b.ins().istore8(plain(), value, to, offset),
                        2 => self.e.v.b.ins().istore16(plain(), value, to, offset),
                        _ => self.e.v.b.ins().store(plain(), value, to, offset),
                    };
                }
                Moved::Longs(longs) => {
                    let value = self.e.v.b.ins().extractlane(longs[lane / 2], (lane % 2) as u8);
                    self.e.v.b.ins().store(plain(), value, to, offset);
                }
                Moved::Columns(_) => {
                    for (at, part) in rows.iter().enumerate() {
                        self.e.v.b.ins().store(plain(), part[lane / 4][lane % 4], to, offset + 16 * at as i32);
                    }
                }
            }
        }
    }

    /// `st`
    pub(super) fn store(&mut self, i: &Inst, pc: u32, size: u32) {
        let i = operands::Store::of(i);
        let (location, slots) = (i.location(), stored(i, self.e.v.program));
        let total = size * slots.len() as u32;
        if is_apart(location, total, self) && slots.len() == 1 {
            store_apart(location, slots[0], pc, self);
            return;
        }
        let shape = AccessShape { pc, total, shift: total.trailing_zeros(), kind: AccessKind::Write };
        let moved = self.stored(&slots, size);
        let (slow, done) = (self.e.v.b.create_block(), self.e.v.b.create_block());
        self.e.v.b.set_cold_block(slow);
        let (reach, site) = self.reach(location, shape, slow);
        match self.mask {
            None => self.write(&reach, &moved, total),
            Some(mask) => {
                // Lanes that do not store do it to bytes that nobody reads.
                let nowhere = self.context_address(at!(nowhere));
                let pointers = (0..self.width.lanes())
                    .map(|lane| {
                        let (to, offset) = self.pointer(&reach, lane);
                        let to = self.e.v.b.ins().iadd_imm_s(to, i64::from(offset));
                        let is = self.lane_truth(mask, lane);
                        self.e.v.b.ins().select(is, to, nowhere)
                    })
                    .collect();
                self.write(&Reach::Scattered(pointers), &moved, total);
            }
        }
        self.e.v.b.ins().jump(done, &[]);
        self.e.v.b.switch_to_block(slow);
        let known = self.e.v.at_hand();
        let pointers = self.asked(location, shape, site);
        self.write(&Reach::Scattered(pointers), &moved, total);
        self.e.v.b.ins().jump(done, &[]);
        self.e.v.restore(known);
        self.e.v.b.switch_to_block(done);
    }
}
