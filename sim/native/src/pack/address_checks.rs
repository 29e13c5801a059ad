//! Where the bytes are that the lanes of a pack access: one check for all of them, or what a
//! function of the host finds lane by lane.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};

use super::lanes::{Narrow, Pack, Wide, each};
use super::uniformity::Class;
use crate::context::{NO_SITE, RegionContext, Site, at, pack};
use crate::flow::ValueForm;
use crate::relocations::Keeper;
use crate::values::plain;
use sim_exec::exec::load_store::{FRAME, LOCAL, SHARED};
use sim_exec::interface::AccessKind;
use sim_exec::operations::operands::Location;

/// Where the lanes' bytes are in the host's memory.
pub(super) enum Reach {
    /// The first lane's, and the step to the next.
    Steady(Value, i64),
    /// The same for each half of a whole warp.
    Halves([Value; 2], i64),
    Scattered(Vec<Value>),
}

impl Reach {
    /// The step from lane to lane, if there is one.
    pub(super) fn step(&self) -> Option<i64> {
        match self {
            Reach::Steady(_, step) | Reach::Halves(_, step) => Some(*step),
            Reach::Scattered(_) => None,
        }
    }

    /// Where a vector of several is: the row that it belongs to, and its number there.
    pub(super) fn row(&self, at: usize, count: usize) -> (Value, i32) {
        match self {
            Reach::Steady(host, _) => (*host, at as i32),
            Reach::Halves(hosts, _) => (hosts[at / (count / 2)], (at % (count / 2)) as i32),
            Reach::Scattered(pointers) => (pointers[at], 0),
        }
    }
}

/// An access as its parts need it.
#[derive(Clone, Copy)]
pub(super) struct AccessShape {
    pub(crate) pc: u32,
    /// Bytes of each lane, and their logarithm.
    pub(crate) total: u32,
    pub(crate) shift: u32,
    pub(crate) kind: AccessKind,
}

impl Pack<'_, '_> {
    /// By how much the address grows from lane to lane, if that is known and keeps the alignment.
    pub(super) fn steady(&self, to: Location, total: u32) -> Option<i64> {
        let wide = !matches!(to.space, SHARED | LOCAL | FRAME);
        let step = match self.classes.slot(to.row) {
            Class::Uniform | Class::Unknown => 0,
            Class::Affine(step) if !wide || self.e.v.flow.form(to.row.0) == ValueForm::Double => step,
            _ => return None,
        };
        (step % i64::from(total) == 0).then_some(step)
    }

    /// The same within each half of a whole warp.
    pub(super) fn halved(&self, to: Location, total: u32) -> Option<i64> {
        let wide = match to.space {
            SHARED => false,
            LOCAL | FRAME => return None,
            _ => true,
        };
        let step = self.half_step(to.row)?;
        let fits = !wide || step == 0 || self.e.v.flow.form(to.row.0) == ValueForm::Double;
        (fits && step % i64::from(total) == 0).then_some(step)
    }

    /// Checks the addresses of all lanes. Goes on where they are known to be good; `slow` is where
    /// control goes when they are not, with the addresses to ask for.
    pub(super) fn reach(&mut self, to: Location, shape: AccessShape, slow: Block) -> (Reach, u32) {
        let (fast, space) = (self.e.v.b.create_block(), to.space);
        let AccessShape { total, shift, kind, .. } = shape;
        let last = (self.width.lanes() as i64 - 1) * self.steady(to, total).unwrap_or(0);
        let half_last = (self.width.lanes() as i64 / 2 - 1) * self.halved(to, total).unwrap_or(0);
        let index = |pack: &mut Self, address: Value| match shift {
            0 => address,
            shift => pack.e.v.b.ins().rotr_imm_u(address, i64::from(shift)),
        };
        let below = |pack: &mut Self, address: Value, count: Value| {
            let index = index(pack, address);
            pack.e.v.b.ins().icmp(IntCC::UnsignedLessThan, index, count)
        };
        // Of addresses that grow evenly the first and the last one, `span` behind it.
        let all_below = |pack: &mut Self, first: Value, span: i64, count: Value| {
            let good = below(pack, first, count);
            if span == 0 {
                return good;
            }
            let end = pack.e.v.b.ins().iadd_imm_s(first, span);
            let end = below(pack, end, count);
            pack.e.v.b.ins().band(good, end)
        };
        if !matches!(space, SHARED | LOCAL | FRAME) {
            let site = self.e.access.site(to.row, shift, kind);
            let sites = self.e.v.field(types::I64, std::mem::offset_of!(RegionContext, sites));
            let offset = site as i32 * size_of::<Site>() as i32;
            let [start, count, host] =
                [0, 8, 16].map(|field| self.e.v.b.ins().load(types::I64, plain(), sites, offset + field));
            if let Some(step) = self.steady(to, total) {
                let base = self.e.v.long(to.row);
                let address = self.e.v.b.ins().iadd_imm_s(base, to.offset as i64);
                let within = self.e.v.b.ins().isub(address, start);
                let good = all_below(self, within, last, count);
                self.e.v.b.ins().brif(good, fast, &[], slow, &[]);
                self.e.v.b.switch_to_block(fast);
                let host = self.e.v.b.ins().iadd(host, within);
                return (Reach::Steady(host, step), site);
            }
            if let Some(step) = self.halved(to, total) {
                let bases = [self.e.v.long(to.row), self.second_half(|v| v.long(to.row))];
                let [(first, low), (second, high)] = bases.map(|base| {
                    let address = self.e.v.b.ins().iadd_imm_s(base, to.offset as i64);
                    let within = self.e.v.b.ins().isub(address, start);
                    (all_below(self, within, half_last, count), self.e.v.b.ins().iadd(host, within))
                });
                let good = self.e.v.b.ins().band(first, second);
                self.e.v.b.ins().brif(good, fast, &[], slow, &[]);
                self.e.v.b.switch_to_block(fast);
                return (Reach::Halves([low, high], step), site);
            }
            let mut longs = self.longs(to.row);
            if to.offset != 0 {
                let offset = self.long_everywhere(to.offset);
                longs = each(self.width, |at| self.e.v.b.ins().iadd(longs[at], offset));
            }
            let first = self.e.v.b.ins().splat(types::I64X2, start);
            let mut within: Wide = each(self.width, |at| self.e.v.b.ins().isub(longs[at], first));
            if let Some(mask) = self.mask {
                let mask = self.mask_of_wide(mask);
                within = each(self.width, |at| self.e.v.b.ins().band(within[at], mask[at]));
            }
            let mut pointers = vec![host; self.width.lanes()];
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
            return (Reach::Scattered(pointers), site);
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
        if let (SHARED, Some(step)) = (space, self.steady(to, total)) {
            let base = self.e.v.word(to.row);
            let offset = self.e.v.int(types::I32, to.offset);
            let near = self.e.v.b.ins().iadd(base, offset);
            let address = self.e.v.b.ins().uextend(types::I64, near);
            let good = all_below(self, address, last, count);
            self.e.v.b.ins().brif(good, fast, &[], slow, &[]);
            self.e.v.b.switch_to_block(fast);
            let host = self.e.v.b.ins().iadd(start, address);
            return (Reach::Steady(host, step), NO_SITE);
        }
        if let Some(step) = self.halved(to, total) {
            let bases = [self.e.v.word(to.row), self.second_half(|v| v.word(to.row))];
            let offset = self.e.v.int(types::I32, to.offset);
            let [(first, low), (second, high)] = bases.map(|base| {
                let near = self.e.v.b.ins().iadd(base, offset);
                let address = self.e.v.b.ins().uextend(types::I64, near);
                (all_below(self, address, half_last, count), self.e.v.b.ins().iadd(start, address))
            });
            let good = self.e.v.b.ins().band(first, second);
            self.e.v.b.ins().brif(good, fast, &[], slow, &[]);
            self.e.v.b.switch_to_block(fast);
            return (Reach::Halves([low, high], step), NO_SITE);
        }
        let mut near = self.near(to);
        if let Some(mask) = self.mask {
            near = each(self.width, |at| self.e.v.b.ins().band(near[at], mask[at]));
        }
        if space == SHARED {
            let bits = self.word_everywhere(total - 1);
            let count = self.e.v.b.ins().ireduce(types::I32, count);
            let count = self.e.v.b.ins().splat(types::I32X4, count);
            let amount = self.e.v.int(types::I32, u64::from(shift));
            let zero = self.word_everywhere(0);
            let mut bad = zero;
            for part in near {
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
            let pointers = (0..self.width.lanes())
                .map(|lane| {
                    let own = self.e.v.b.ins().extractlane(near[lane / 4], (lane % 4) as u8);
                    let own = self.e.v.b.ins().uextend(types::I64, own);
                    self.e.v.b.ins().iadd(start, own)
                })
                .collect();
            return (Reach::Scattered(pointers), NO_SITE);
        }
        // Each lane has local memory of its own.
        let stride = self.e.v.field(types::I64, std::mem::offset_of!(RegionContext, stride));
        let lane = self.e.v.lane;
        let before = self.e.v.b.ins().imul(stride, lane);
        let mut mine = self.e.v.b.ins().iadd(start, before);
        let frame = self.frame_of(space);
        let mut pointers = vec![start; self.width.lanes()];
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
        (Reach::Scattered(pointers), NO_SITE)
    }

    fn frame_of(&mut self, space: u32) -> Option<Value> {
        (space == FRAME).then(|| self.e.v.field(types::I64, std::mem::offset_of!(RegionContext, local_base)))
    }

    /// Addresses in a space of 32 bits.
    pub(super) fn near(&mut self, to: Location) -> Narrow {
        let words = self.words(to.row);
        if to.offset == 0 {
            return words;
        }
        let offset = self.word_everywhere(to.offset as u32);
        each(self.width, |at| self.e.v.b.ins().iadd(words[at], offset))
    }

    /// Asks the host where each lane's bytes are.
    pub(super) fn asked(&mut self, to: Location, shape: AccessShape, site: u32) -> Vec<Value> {
        let space = to.space;
        self.put_addresses(to);
        let context = self.e.v.context;
        let mask = self.lanes_of_mask();
        let what = self.e.v.int(types::I64, pack(site, shape.shift, shape.kind, space));
        let pc = self.e.v.int(types::I64, u64::from(shape.pc));
        let lane = self.e.v.lane;
        self.e.v.call_keeper(Keeper::FindPack, [context, mask, what, lane, pc]);
        let result = self.e.v.found();
        let good = self.e.v.b.create_block();
        self.e.v.b.ins().brif(result, good, &[], self.e.access.fault, &[]);
        self.e.v.b.switch_to_block(good);
        let load = |lane: usize| self.e.v.b.ins().load(types::I64, plain(), context, at!(pointers) + 8 * lane as i32);
        (0..self.width.lanes()).map(load).collect()
    }

    /// Puts the addresses of an access into the context.
    pub(super) fn put_addresses(&mut self, to: Location) {
        let space = to.space;
        let addresses = if matches!(space, SHARED | LOCAL | FRAME) {
            let near = self.near(to);
            let mut longs = self.extended(near, false);
            if let Some(frame) = self.frame_of(space) {
                let frame = self.e.v.b.ins().splat(types::I64X2, frame);
                longs = each(self.width, |at| self.e.v.b.ins().iadd(longs[at], frame));
            }
            longs
        } else {
            let longs = self.longs(to.row);
            let offset = self.long_everywhere(to.offset);
            each(self.width, |at| self.e.v.b.ins().iadd(longs[at], offset))
        };
        let context = self.e.v.context;
        for (part, value) in addresses.into_iter().enumerate() {
            self.e.v.b.ins().store(plain(), value, context, at!(addresses) + 16 * part as i32);
        }
    }

    /// A bit for each lane that executes the instruction.
    pub(super) fn lanes_of_mask(&mut self) -> Value {
        match self.mask {
            Some(mask) => {
                let bits = self.bits(mask);
                self.e.v.b.ins().uextend(types::I64, bits)
            }
            None => self.e.v.int(types::I64, u64::from(self.width.full())),
        }
    }

    pub(super) fn pointer(&mut self, reach: &Reach, lane: usize) -> (Value, i32) {
        match reach {
            Reach::Steady(host, step) => match i32::try_from(step * lane as i64) {
                Ok(offset) => (*host, offset),
                Err(_) => (self.e.v.b.ins().iadd_imm_s(*host, step * lane as i64), 0),
            },
            Reach::Halves(hosts, step) => {
                let half = self.width.lanes() / 2;
                let (host, offset) = (hosts[lane / half], step * (lane % half) as i64);
                match i32::try_from(offset) {
                    Ok(offset) => (host, offset),
                    Err(_) => (self.e.v.b.ins().iadd_imm_s(host, offset), 0),
                }
            }
            Reach::Scattered(pointers) => (pointers[lane], 0),
        }
    }
}
