//! Loads and stores of a pack: one check for all lanes, then vectors where addresses follow each
//! other. What that check does not answer for, a function of the host finds lane by lane.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};

use super::class::Class;
use super::lanes::{Lanes, Narrow, Pack, Wide, each};
use super::{FULL, PARTS, WIDTH};
use crate::interp::exec::load_store::{FRAME, GENERIC, GLOBAL, LOCAL, SHARED};
use crate::interp::interface::AccessKind;
use crate::interp::native::context::{NO_SITE, RegionContext, Site, at, pack};
use crate::interp::native::flow::ValueForm;
use crate::interp::native::values::plain;
use crate::interp::program::{Inst, Slot};

/// Where the lanes' bytes are in the host's memory.
pub(super) enum Reach {
    /// The first lane's, and the step to the next.
    Steady(Value, i64),
    Scattered(Box<[Value; WIDTH]>),
}

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
            Moved::Columns(columns) => columns.concat(),
        }
    }

    fn of(total: u32, values: &[Value]) -> Moved {
        match total {
            ..=4 => Moved::Words(each(|at| values[at])),
            8 => Moved::Longs(each(|at| values[at])),
            _ => Moved::Columns(values.chunks(PARTS).map(|part| each(|at| part[at])).collect()),
        }
    }
}

/// An access as its parts need it.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub pc: u32,
    /// Bytes of each lane, and their logarithm.
    pub total: u32,
    pub shift: u32,
    pub kind: AccessKind,
}

impl Pack<'_, '_> {
    /// Whether there is code for accesses to that space.
    pub(super) fn can_access(i: &Inst) -> bool {
        matches!(i.z & 15, GENERIC | GLOBAL | SHARED | LOCAL | FRAME)
    }

    fn context_address(&mut self, offset: i32) -> Value {
        let context = self.e.v.context;
        self.e.v.b.ins().iadd_imm_s(context, i64::from(offset))
    }

    /// By how much the address grows from lane to lane, if that is known and keeps the alignment.
    fn steady(&self, i: &Inst, total: u32) -> Option<i64> {
        let wide = !matches!(i.z & 15, SHARED | LOCAL | FRAME);
        let step = match self.classes.slot(i.a) {
            Class::Uniform | Class::Unknown => 0,
            Class::Affine(step) if !wide || self.e.v.flow.form(i.a.0) == ValueForm::Double => step,
            _ => return None,
        };
        (step % i64::from(total) == 0).then_some(step)
    }

    /// Checks the addresses of all lanes. Goes on where they are known to be good; `slow` is where
    /// control goes when they are not, with the addresses to ask for.
    fn reach(&mut self, i: &Inst, shape: Shape, slow: Block) -> (Reach, u32) {
        let (fast, space) = (self.e.v.b.create_block(), i.z & 15);
        let Shape { total, shift, kind, .. } = shape;
        let last = (WIDTH as i64 - 1) * self.steady(i, total).unwrap_or(0);
        let index = |pack: &mut Self, address: Value| match shift {
            0 => address,
            shift => pack.e.v.b.ins().rotr_imm_u(address, i64::from(shift)),
        };
        let below = |pack: &mut Self, address: Value, count: Value| {
            let index = index(pack, address);
            pack.e.v.b.ins().icmp(IntCC::UnsignedLessThan, index, count)
        };
        if !matches!(space, SHARED | LOCAL | FRAME) {
            let site = self.e.access.site(i.a, shift, kind);
            let sites = self.e.v.field(types::I64, std::mem::offset_of!(RegionContext, sites));
            let offset = site as i32 * size_of::<Site>() as i32;
            let [start, count, host] =
                [0, 8, 16].map(|field| self.e.v.b.ins().load(types::I64, plain(), sites, offset + field));
            if let Some(step) = self.steady(i, total) {
                let base = self.e.v.long(i.a);
                let address = self.e.v.b.ins().iadd_imm_s(base, i.x as i64);
                let within = self.e.v.b.ins().isub(address, start);
                let mut good = below(self, within, count);
                if last != 0 {
                    let end = self.e.v.b.ins().iadd_imm_s(within, last);
                    let end = below(self, end, count);
                    good = self.e.v.b.ins().band(good, end);
                }
                self.e.v.b.ins().brif(good, fast, &[], slow, &[]);
                self.e.v.b.switch_to_block(fast);
                let host = self.e.v.b.ins().iadd(host, within);
                return (Reach::Steady(host, step), site);
            }
            let mut longs = self.longs(i.a);
            if i.x != 0 {
                let offset = self.long_everywhere(i.x);
                longs = each(|at| self.e.v.b.ins().iadd(longs[at], offset));
            }
            let first = self.e.v.b.ins().splat(types::I64X2, start);
            let mut within: Wide = each(|at| self.e.v.b.ins().isub(longs[at], first));
            if let Some(mask) = self.mask {
                let mask = self.mask_of_wide(mask);
                within = each(|at| self.e.v.b.ins().band(within[at], mask[at]));
            }
            let mut pointers = [host; WIDTH];
            for (lane, pointer) in pointers.iter_mut().enumerate() {
                let own = self.e.v.b.ins().extractlane(within[lane / 2], (lane % 2) as u8);
                let good = below(self, own, count);
                let next = self.e.v.b.create_block();
                self.e.v.b.ins().brif(good, next, &[], slow, &[]);
                self.e.v.b.switch_to_block(next);
                *pointer = self.e.v.b.ins().iadd(host, own);
            }
            self.e.v.b.ins().jump(fast, &[]);
            self.e.v.b.switch_to_block(fast);
            return (Reach::Scattered(Box::new(pointers)), site);
        }
        let counts = match space {
            SHARED => std::mem::offset_of!(RegionContext, shared_counts),
            _ => {
                self.e.access.local = true;
                std::mem::offset_of!(RegionContext, local_counts)
            }
        };
        let count = self.e.v.field(types::I64, counts + 8 * shift as usize);
        let start = match space {
            SHARED => self.e.v.field(types::I64, std::mem::offset_of!(RegionContext, shared)),
            _ => self.e.v.field(types::I64, std::mem::offset_of!(RegionContext, local)),
        };
        if let (SHARED, Some(step)) = (space, self.steady(i, total)) {
            let base = self.e.v.word(i.a);
            let offset = self.e.v.int(types::I32, i.x);
            let near = self.e.v.b.ins().iadd(base, offset);
            let address = self.e.v.b.ins().uextend(types::I64, near);
            let mut good = below(self, address, count);
            if last != 0 {
                let end = self.e.v.b.ins().iadd_imm_s(address, last);
                let end = below(self, end, count);
                good = self.e.v.b.ins().band(good, end);
            }
            self.e.v.b.ins().brif(good, fast, &[], slow, &[]);
            self.e.v.b.switch_to_block(fast);
            let host = self.e.v.b.ins().iadd(start, address);
            return (Reach::Steady(host, step), NO_SITE);
        }
        let mut near = self.near(i);
        if let Some(mask) = self.mask {
            near = each(|at| self.e.v.b.ins().band(near[at], mask[at]));
        }
        if space == SHARED {
            let bits = self.word_everywhere(total - 1);
            let count = self.e.v.b.ins().ireduce(types::I32, count);
            let count = self.e.v.b.ins().splat(types::I32X4, count);
            let amount = self.e.v.int(types::I32, u64::from(shift));
            let zero = self.word_everywhere(0);
            let mut bad = zero;
            for &part in &near {
                let index = self.e.v.b.ins().ushr(part, amount);
                let over = self.e.v.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, count);
                bad = self.e.v.b.ins().bor(bad, over);
                if total > 1 {
                    let odd = self.e.v.b.ins().band(part, bits);
                    let odd = self.e.v.b.ins().icmp(IntCC::NotEqual, odd, zero);
                    bad = self.e.v.b.ins().bor(bad, odd);
                }
            }
            let any = self.e.v.b.ins().vhigh_bits(types::I32, bad);
            self.e.v.b.ins().brif(any, slow, &[], fast, &[]);
            self.e.v.b.switch_to_block(fast);
            let pointers = std::array::from_fn(|lane| {
                let own = self.e.v.b.ins().extractlane(near[lane / 4], (lane % 4) as u8);
                let own = self.e.v.b.ins().uextend(types::I64, own);
                self.e.v.b.ins().iadd(start, own)
            });
            return (Reach::Scattered(Box::new(pointers)), NO_SITE);
        }
        // Each lane has local memory of its own.
        let stride = self.e.v.field(types::I64, std::mem::offset_of!(RegionContext, stride));
        let lane = self.e.v.lane;
        let before = self.e.v.b.ins().imul(stride, lane);
        let mut mine = self.e.v.b.ins().iadd(start, before);
        let frame = self.frame_of(space);
        let mut pointers = [start; WIDTH];
        for (lane, pointer) in pointers.iter_mut().enumerate() {
            let own = self.e.v.b.ins().extractlane(near[lane / 4], (lane % 4) as u8);
            let mut own = self.e.v.b.ins().uextend(types::I64, own);
            if let Some(frame) = frame {
                own = self.e.v.b.ins().iadd(own, frame);
            }
            let good = below(self, own, count);
            let next = self.e.v.b.create_block();
            self.e.v.b.ins().brif(good, next, &[], slow, &[]);
            self.e.v.b.switch_to_block(next);
            *pointer = self.e.v.b.ins().iadd(mine, own);
            mine = self.e.v.b.ins().iadd(mine, stride);
        }
        self.e.v.b.ins().jump(fast, &[]);
        self.e.v.b.switch_to_block(fast);
        (Reach::Scattered(Box::new(pointers)), NO_SITE)
    }

    fn frame_of(&mut self, space: u32) -> Option<Value> {
        (space == FRAME).then(|| self.e.v.field(types::I64, std::mem::offset_of!(RegionContext, local_base)))
    }

    /// Addresses in a space of 32 bits.
    fn near(&mut self, i: &Inst) -> Narrow {
        let words = self.words(i.a);
        if i.x == 0 {
            return words;
        }
        let offset = self.word_everywhere(i.x as u32);
        each(|at| self.e.v.b.ins().iadd(words[at], offset))
    }

    /// Asks the host where each lane's bytes are.
    fn asked(&mut self, i: &Inst, shape: Shape, site: u32) -> [Value; WIDTH] {
        let space = i.z & 15;
        let addresses = if matches!(space, SHARED | LOCAL | FRAME) {
            let near = self.near(i);
            let mut longs = self.extended(near, false);
            if let Some(frame) = self.frame_of(space) {
                let frame = self.e.v.b.ins().splat(types::I64X2, frame);
                longs = each(|at| self.e.v.b.ins().iadd(longs[at], frame));
            }
            longs
        } else {
            let longs = self.longs(i.a);
            let offset = self.long_everywhere(i.x);
            each(|at| self.e.v.b.ins().iadd(longs[at], offset))
        };
        let context = self.e.v.context;
        for (part, value) in addresses.into_iter().enumerate() {
            self.e.v.b.ins().store(plain(), value, context, at!(addresses) + 16 * part as i32);
        }
        let mask = match self.mask {
            Some(mask) => {
                let bits = self.bits(mask);
                self.e.v.b.ins().uextend(types::I64, bits)
            }
            None => self.e.v.int(types::I64, u64::from(FULL)),
        };
        let what = self.e.v.int(types::I64, pack(site, shape.shift, shape.kind, space));
        let pc = self.e.v.int(types::I64, u64::from(shape.pc));
        let lane = self.e.v.lane;
        self.e.v.call_finder_of_packs(&mut self.e.access, [context, mask, what, lane, pc]);
        let result = self.e.v.found();
        let good = self.e.v.b.create_block();
        self.e.v.b.ins().brif(result, good, &[], self.e.access.fault, &[]);
        self.e.v.b.switch_to_block(good);
        std::array::from_fn(|lane| {
            self.e.v.b.ins().load(types::I64, plain(), context, at!(pointers) + 8 * lane as i32)
        })
    }

    fn pointer(&mut self, reach: &Reach, lane: usize) -> (Value, i32) {
        match reach {
            Reach::Steady(host, step) => match i32::try_from(step * lane as i64) {
                Ok(offset) => (*host, offset),
                Err(_) => (self.e.v.b.ins().iadd_imm_s(*host, step * lane as i64), 0),
            },
            Reach::Scattered(pointers) => (pointers[lane], 0),
        }
    }

    /// Reads all lanes' bytes; narrow ones are extended with zeros.
    fn read(&mut self, reach: &Reach, total: u32) -> Moved {
        if let Reach::Steady(host, step) = reach
            && *step == i64::from(total)
        {
            match total {
                2 => return Moved::Words(each(|at| self.e.v.b.ins().uload16x4(plain(), *host, 8 * at as i32))),
                4 => {
                    let ty = types::I32X4;
                    return Moved::Words(each(|at| self.e.v.b.ins().load(ty, plain(), *host, 16 * at as i32)));
                }
                8 => {
                    let ty = types::I64X2;
                    return Moved::Longs(each(|at| self.e.v.b.ins().load(ty, plain(), *host, 16 * at as i32)));
                }
                _ => {}
            }
        }
        let same = matches!(reach, Reach::Steady(_, 0));
        let mut scalars = Vec::new();
        for lane in 0..if same { 1 } else { WIDTH } {
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
        if same {
            scalars = scalars.iter().copied().cycle().take(scalars.len() * WIDTH).collect();
        }
        match total {
            ..=4 => Moved::Words(each(|at| self.joined(&scalars[4 * at..4 * at + 4]))),
            8 => Moved::Longs(each(|at| self.joined(&scalars[2 * at..2 * at + 2]))),
            _ => {
                let rows = total as usize / 16;
                let mut columns = Vec::new();
                for row in 0..rows {
                    let own: Vec<Value> = scalars.iter().skip(row).step_by(rows).copied().collect();
                    let parts: Vec<[Value; 4]> = own.chunks(4).map(|four| self.transposed(four)).collect();
                    columns.extend((0..4).map(|column| each(|at| parts[at][column])));
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
                each(|at| pack.e.v.b.ins().ushr(words[at], count))
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
        each(|at| {
            let picks = if at % 2 == 0 { [0, 4, 1, 5] } else { [2, 6, 3, 7] };
            self.picked(types::I64X2, low[at / 2], high[at / 2], picks)
        })
    }

    /// `ld`
    pub(super) fn load(&mut self, i: &Inst, pc: u32, size: u32, signed: bool) {
        let slots = self.e.v.elements(i, i.d);
        let total = size * slots.len() as u32;
        let shape = Shape { pc, total, shift: total.trailing_zeros(), kind: AccessKind::Read };
        let (slow, done) = (self.e.v.b.create_block(), self.e.v.b.create_block());
        self.e.v.b.set_cold_block(slow);
        let (reach, site) = self.reach(i, shape, slow);
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
        let pointers = self.asked(i, shape, site);
        let found = self.read(&Reach::Scattered(Box::new(pointers)), total).values();
        let arguments: Vec<_> = found.into_iter().map(Into::into).collect();
        self.e.v.b.ins().jump(done, &arguments);
        self.e.v.restore(known);
        self.e.v.b.switch_to_block(done);
        let moved = Moved::of(total, &results);
        let lanes: Vec<Lanes> = (0..slots.len()).map(|at| self.element(&moved, at, size)).collect();
        for (&slot, lanes) in slots.iter().zip(lanes) {
            let kept = self.kept(lanes, size, signed, i.c.0);
            self.define(slot, kept);
        }
    }

    /// An element as it is in a register: extended, and cut to `keep` bits.
    fn kept(&mut self, lanes: Lanes, size: u32, signed: bool, keep: u32) -> Lanes {
        let Lanes::Words(mut words) = lanes else { return lanes };
        if size < 4 {
            let count = self.e.v.int(types::I32, u64::from(32 - 8 * size));
            words = each(|at| {
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
                Lanes::Words(each(|at| self.e.v.b.ins().band(words[at], mask)))
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
                let own: Narrow = each(|at| {
                    let low = self.e.v.b.ins().band(words[at], mask);
                    self.e.v.b.ins().ishl(low, count)
                });
                if bit != 0 {
                    let column = columns.len() - 1;
                    columns[column] = each(|at| self.e.v.b.ins().bor(columns[column][at], own[at]));
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
        if let Reach::Steady(host, step) = reach
            && *step == i64::from(total)
            && matches!(total, 4 | 8)
        {
            for (at, value) in moved.values().into_iter().enumerate() {
                self.e.v.b.ins().store(plain(), value, *host, 16 * at as i32);
            }
            return;
        }
        let rows: Vec<Vec<[Value; 4]>> = match moved {
            Moved::Columns(columns) => columns
                .chunks(4)
                .map(|four| (0..PARTS).map(|at| self.transposed(&[0, 1, 2, 3].map(|n| four[n][at]))).collect())
                .collect(),
            _ => Vec::new(),
        };
        for lane in 0..WIDTH {
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
        let slots = self.e.v.elements(i, i.b);
        let total = size * slots.len() as u32;
        let shape = Shape { pc, total, shift: total.trailing_zeros(), kind: AccessKind::Write };
        let moved = self.stored(&slots, size);
        let (slow, done) = (self.e.v.b.create_block(), self.e.v.b.create_block());
        self.e.v.b.set_cold_block(slow);
        let (reach, site) = self.reach(i, shape, slow);
        match self.mask {
            None => self.write(&reach, &moved, total),
            Some(mask) => {
                // Lanes that do not store do it to bytes that nobody reads.
                let nowhere = self.context_address(at!(nowhere));
                let pointers = std::array::from_fn(|lane| {
                    let (to, offset) = self.pointer(&reach, lane);
                    let to = self.e.v.b.ins().iadd_imm_s(to, i64::from(offset));
                    let is = self.lane_truth(mask, lane);
                    self.e.v.b.ins().select(is, to, nowhere)
                });
                self.write(&Reach::Scattered(Box::new(pointers)), &moved, total);
            }
        }
        self.e.v.b.ins().jump(done, &[]);
        self.e.v.b.switch_to_block(slow);
        let known = self.e.v.at_hand();
        let pointers = self.asked(i, shape, site);
        self.write(&Reach::Scattered(Box::new(pointers)), &moved, total);
        self.e.v.b.ins().jump(done, &[]);
        self.e.v.restore(known);
        self.e.v.b.switch_to_block(done);
    }
}
