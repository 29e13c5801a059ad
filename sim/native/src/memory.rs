//! Native code for accesses to memory: the check of an address, then the access itself.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, Block, InstBuilder, MemFlagsData, Value, types};

use super::context::{NO_SITE, RegionContext, Site, add_double, add_single, at, pack};
use super::decode::AtomKind;
use super::flow::ValueForm;
use super::relocations::Keeper;
use super::values::{Held, Values, fixed, plain};
use sim_exec::exec::load_store::{FRAME, GENERIC, GLOBAL, LOCAL, SHARED};
use sim_exec::interface::AccessKind;
use sim_exec::operations::operands::{self, Location};
use sim_exec::program::{Inst, LaneTy, Program, Slot};

/// What accesses need beside values.
pub(super) struct Access {
    /// Where control goes when an access faults.
    pub(crate) fault: Block,
    /// The sites of this region: row, bytes, kind.
    pub(crate) sites: Vec<(Slot, u32, u8)>,
    /// Whether it uses local memory.
    pub(crate) local: bool,
}

impl Access {
    pub(super) fn new(fault: Block) -> Self {
        Access { fault, sites: Vec::new(), local: false }
    }

    /// The number of a site in this region.
    pub(super) fn site(&mut self, slot: Slot, shift: u32, kind: AccessKind) -> u32 {
        let key = (slot, shift, kind as u8);
        let known = self.sites.iter().position(|known| *known == key);
        let at = known.unwrap_or_else(|| {
            self.sites.push(key);
            self.sites.len() - 1
        });
        at as u32
    }
}

/// The rows that a load fills, one for each element.
pub(super) fn loaded(i: operands::Load<'_>, program: &Program) -> Vec<Slot> {
    if i.count() == 1 { vec![i.d()] } else { i.all(program).to_vec() }
}

/// The rows that a store stores.
pub(super) fn stored(i: operands::Store<'_>, program: &Program) -> Vec<Slot> {
    if i.count() == 1 { vec![i.value()] } else { i.all(program).to_vec() }
}

impl Values<'_, '_> {
    /// The address in the host's memory of `1 << shift` bytes.
    pub(super) fn address(
        &mut self,
        access: &mut Access,
        to: Location,
        pc: u32,
        shift: u32,
        kind: AccessKind,
    ) -> Value {
        let space = to.space;
        let done = self.b.create_block();
        let found = self.b.append_block_param(done, types::I64);
        let slow = self.b.create_block();
        self.b.set_cold_block(slow);
        let (address, site) = match space {
            SHARED | LOCAL | FRAME => {
                let base = self.word(to.row);
                let offset = self.int(types::I32, to.offset);
                let near = self.b.ins().iadd(base, offset);
                let mut address = self.b.ins().uextend(types::I64, near);
                if space == FRAME {
                    let frame = self.field(types::I64, std::mem::offset_of!(RegionContext, local_base));
                    address = self.b.ins().iadd(address, frame);
                }
                let field = if space == SHARED {
                    std::mem::offset_of!(RegionContext, shared_counts)
                } else {
                    access.local = true;
                    std::mem::offset_of!(RegionContext, local_counts)
                };
                let count = self.field(types::I64, field + 8 * shift as usize);
                let index = if shift == 0 { address } else { self.b.ins().rotr_imm_u(address, i64::from(shift)) };
                let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, index, count);
                let start = if space == SHARED {
                    self.field(types::I64, std::mem::offset_of!(RegionContext, shared))
                } else {
                    let local = self.field(types::I64, std::mem::offset_of!(RegionContext, local));
                    let stride = self.field(types::I64, std::mem::offset_of!(RegionContext, stride));
                    let lane = self.lane;
                    let mine = self.b.ins().imul(stride, lane);
                    self.b.ins().iadd(local, mine)
                };
                let host = self.b.ins().iadd(start, address);
                self.b.ins().brif(inside, done, &[host.into()], slow, &[]);
                (address, NO_SITE)
            }
            GLOBAL | GENERIC => {
                let base = self.long(to.row);
                let address = if to.offset == 0 { base } else { self.b.ins().iadd_imm_s(base, to.offset as i64) };
                let site = access.site(to.row, shift, kind);
                let sites = self.field(types::I64, std::mem::offset_of!(RegionContext, sites));
                let offset = site as i32 * size_of::<Site>() as i32;
                let start = self.b.ins().load(types::I64, plain(), sites, offset);
                let count = self.b.ins().load(types::I64, plain(), sites, offset + 8);
                let host = self.b.ins().load(types::I64, plain(), sites, offset + 16);
                let within = self.b.ins().isub(address, start);
                let index = if shift == 0 { within } else { self.b.ins().rotr_imm_u(within, i64::from(shift)) };
                let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, index, count);
                let host = self.b.ins().iadd(host, within);
                self.b.ins().brif(inside, done, &[host.into()], slow, &[]);
                (address, site)
            }
            _ => {
                let base = self.long(to.row);
                let address = self.b.ins().iadd_imm_s(base, to.offset as i64);
                self.b.ins().jump(slow, &[]);
                (address, NO_SITE)
            }
        };
        self.b.switch_to_block(slow);
        let what = self.int(types::I64, pack(site, shift, kind, space));
        let pc = self.int(types::I64, u64::from(pc));
        let (context, lane) = (self.context, self.lane);
        self.call_keeper(Keeper::Find, [context, address, what, lane, pc]);
        let result = self.b.ins().load(types::I64, plain(), context, at!(found));
        self.b.ins().brif(result, done, &[result.into()], access.fault, &[]);
        self.b.switch_to_block(done);
        found
    }

    /// One element as it is in a register: cut to `keep` bits.
    fn element(
        &mut self,
        flags: MemFlagsData,
        (from, offset): (Value, i32),
        (size, signed): (u32, bool),
        keep: u32,
        to: Slot,
    ) -> Held {
        let form = if to.0 & Slot::CONSTANT == 0 { self.flow.form(to.0) } else { ValueForm::Double };
        match (size, signed) {
            (8, _) if form == ValueForm::LongFloat => Held::double(self.b.ins().load(types::F64, flags, from, offset)),
            (8, _) => Held::long(self.b.ins().load(types::I64, flags, from, offset)),
            (4, false) if form == ValueForm::Single => {
                Held::single(self.b.ins().load(types::F32, flags, from, offset), false)
            }
            (4, _) if keep > 32 && signed => Held::long(self.b.ins().sload32(flags, from, offset)),
            (4, _) => Held::word(self.b.ins().load(types::I32, flags, from, offset)),
            (_, true) if keep > 32 => Held::long(match size {
                1 => self.b.ins().sload8(types::I64, flags, from, offset),
                _ => self.b.ins().sload16(types::I64, flags, from, offset),
            }),
            (_, true) => {
                let value = match size {
                    1 => self.b.ins().sload8(types::I32, flags, from, offset),
                    _ => self.b.ins().sload16(types::I32, flags, from, offset),
                };
                let mask = u32::MAX >> (32 - keep);
                Held::word(if mask == u32::MAX { value } else { self.b.ins().band_imm_u(value, i64::from(mask)) })
            }
            (1, false) => Held::word(self.b.ins().uload8(types::I32, flags, from, offset)),
            (_, false) => Held::word(self.b.ins().uload16(types::I32, flags, from, offset)),
        }
    }

    /// `ld.param` of a kernel.
    pub(super) fn load_param(&mut self, i: &Inst, size: u32, signed: bool) {
        let i = operands::LoadParam::of(i);
        let start = self.field(types::I64, std::mem::offset_of!(RegionContext, params));
        let slots = if i.count() == 1 { vec![i.d()] } else { i.all(self.program).to_vec() };
        for (at, slot) in slots.into_iter().enumerate() {
            let offset = i.offset() as i32 + at as i32 * size as i32;
            let value = self.element(fixed(), (start, offset), (size, signed), i.bits(), slot);
            self.define(slot, value);
        }
    }

    /// `ld`
    pub(super) fn load(&mut self, access: &mut Access, i: &Inst, pc: u32, size: u32, signed: bool) {
        let i = operands::Load::of(i);
        let slots = loaded(i, self.program);
        let total = size * slots.len() as u32;
        let from = self.address(access, i.location(), pc, total.trailing_zeros(), AccessKind::Read);
        if slots.len() == 1 {
            let value = self.element(plain(), (from, 0), (size, signed), i.bits(), slots[0]);
            self.define(slots[0], value);
            return;
        }
        // At once, as the interpreter reads it.
        let mut pieces = Vec::new();
        if total < 16 {
            let whole = match total {
                2 => self.b.ins().uload16(types::I64, plain(), from, 0),
                4 => self.b.ins().uload32(plain(), from, 0),
                _ => self.b.ins().load(types::I64, plain(), from, 0),
            };
            for at in 0..slots.len() as u32 {
                let piece = if at == 0 { whole } else { self.b.ins().ushr_imm_u(whole, i64::from(8 * size * at)) };
                pieces.push(self.piece(piece, size, signed, i.bits()));
            }
        } else {
            for part in 0..total / 16 {
                let offset = part as i32 * 16;
                if size == 4 && !signed {
                    let whole = self.b.ins().load(types::I32X4, plain(), from, offset);
                    for at in 0..4u8 {
                        pieces.push(Held::word(self.b.ins().extractlane(whole, at)));
                    }
                    continue;
                }
                let whole = self.b.ins().load(types::I64X2, plain(), from, offset);
                for half in 0..2u8 {
                    let long = self.b.ins().extractlane(whole, half);
                    for at in 0..8 / size {
                        let piece =
                            if at == 0 { long } else { self.b.ins().ushr_imm_u(long, i64::from(8 * size * at)) };
                        pieces.push(self.piece(piece, size, signed, i.bits()));
                    }
                }
            }
        }
        for (slot, piece) in slots.into_iter().zip(pieces) {
            self.define(slot, piece);
        }
    }

    /// An element in the low bits of a word of 64 bits.
    fn piece(&mut self, long: Value, size: u32, signed: bool, keep: u32) -> Held {
        if size == 8 {
            return Held::long(long);
        }
        let word = self.b.ins().ireduce(types::I32, long);
        let ty = match (size, signed) {
            (1, false) => LaneTy::U8,
            (1, true) => LaneTy::I8,
            (2, false) => LaneTy::U16,
            (2, true) => LaneTy::I16,
            _ => LaneTy::U32,
        };
        let word = self.extended(word, ty);
        if signed && keep > 32 {
            return Held::long(self.b.ins().sextend(types::I64, word));
        }
        let mask = u32::MAX >> (32 - keep.min(32));
        Held::word(if mask == u32::MAX { word } else { self.b.ins().band_imm_u(word, i64::from(mask)) })
    }

    /// `st`
    pub(super) fn store(&mut self, access: &mut Access, i: &Inst, pc: u32, size: u32) {
        let i = operands::Store::of(i);
        let slots = stored(i, self.program);
        let total = size * slots.len() as u32;
        let to = self.address(access, i.location(), pc, total.trailing_zeros(), AccessKind::Write);
        if slots.len() == 1 {
            self.store_value(to, slots[0], size);
            return;
        }
        let mut longs = Vec::new();
        for group in slots.chunks((8 / size) as usize) {
            let mut long: Option<Value> = None;
            for (at, &slot) in group.iter().enumerate() {
                let value = match size {
                    8 => self.long(slot),
                    4 => {
                        let word = self.word(slot);
                        self.b.ins().uextend(types::I64, word)
                    }
                    _ => {
                        let word = self.word(slot);
                        let word = self.extended(word, if size == 1 { LaneTy::U8 } else { LaneTy::U16 });
                        self.b.ins().uextend(types::I64, word)
                    }
                };
                let value =
                    if at == 0 { value } else { self.b.ins().ishl_imm_u(value, i64::from(8 * size) * at as i64) };
                long = Some(match long {
                    Some(long) => self.b.ins().bor(long, value),
                    None => value,
                });
            }
            longs.extend(long);
        }
        if total < 16 {
            let long = longs[0];
            match total {
                2 => self.b.ins().istore16(plain(), long, to, 0),
                4 => self.b.ins().istore32(plain(), long, to, 0),
                _ => self.b.ins().store(plain(), long, to, 0),
            };
            return;
        }
        for (part, pair) in longs.chunks(2).enumerate() {
            let low = self.b.ins().scalar_to_vector(types::I64X2, pair[0]);
            let whole = self.b.ins().insertlane(low, pair[1], 1u8);
            self.b.ins().store(plain(), whole, to, part as i32 * 16);
        }
    }

    fn store_value(&mut self, to: Value, slot: Slot, size: u32) {
        let held = self.held(slot);
        match size {
            1 => {
                let word = self.word(slot);
                self.b.ins().istore8(plain(), word, to, 0);
            }
            2 => {
                let word = self.word(slot);
                self.b.ins().istore16(plain(), word, to, 0);
            }
            4 => {
                let value = if held.single.is_some() && held.word.is_none() {
                    self.single(slot, false)
                } else {
                    self.word(slot)
                };
                self.b.ins().store(plain(), value, to, 0);
            }
            _ => {
                let value =
                    if held.double.is_some() && held.long.is_none() { self.double(slot) } else { self.long(slot) };
                self.b.ins().store(plain(), value, to, 0);
            }
        }
    }

    /// `atom` and `red`. One thread runs all that can see shared memory: no atomic access is needed
    /// there.
    pub(super) fn atom(&mut self, access: &mut Access, i: &Inst, pc: u32, kind: AtomKind, size: u32) {
        let i = operands::Atomic::of(i);
        let at = self.address(access, i.location(), pc, size.trailing_zeros(), AccessKind::Atomic);
        let ty = if size == 8 { types::I64 } else { types::I32 };
        let alone = i.space() == SHARED;
        let held = |value: Value| if size == 8 { Held::long(value) } else { Held::word(value) };
        if kind == AtomKind::AddSingle {
            if alone {
                let old = self.b.ins().load(types::F32, plain(), at, 0);
                let b = self.single(i.b(), true);
                let sum = self.b.ins().fadd(old, b);
                let sum = self.strict(sum);
                self.b.ins().store(plain(), sum, at, 0);
                self.define(i.d(), Held::single(old, false));
            } else {
                let b = self.long(i.b());
                let old = self.call(add_single as *const () as usize, &[self.context, at, b]);
                let old = self.b.ins().ireduce(types::I32, old);
                self.define(i.d(), Held::word(old));
            }
            return;
        }
        let b = if size == 8 { self.long(i.b()) } else { self.word(i.b()) };
        if kind == AtomKind::AddDouble {
            let old = self.call(add_double as *const () as usize, &[self.context, at, b]);
            self.define(i.d(), Held::long(old));
            return;
        }
        if kind == AtomKind::Compare {
            let c = if size == 8 { self.long(i.c()) } else { self.word(i.c()) };
            let old = if alone {
                let old = self.b.ins().load(ty, plain(), at, 0);
                let same = self.b.ins().icmp(IntCC::Equal, old, b);
                let new = self.b.ins().select(same, c, old);
                self.b.ins().store(plain(), new, at, 0);
                old
            } else {
                self.b.ins().atomic_cas(plain(), at, b, c)
            };
            self.define(i.d(), held(old));
            return;
        }
        let old = if alone {
            let old = self.b.ins().load(ty, plain(), at, 0);
            let pick = |values: &mut Self, code: IntCC| {
                let first = values.b.ins().icmp(code, old, b);
                values.b.ins().select(first, old, b)
            };
            let new = match kind {
                AtomKind::Add => self.b.ins().iadd(old, b),
                AtomKind::And => self.b.ins().band(old, b),
                AtomKind::Or => self.b.ins().bor(old, b),
                AtomKind::Xor => self.b.ins().bxor(old, b),
                AtomKind::Min { signed: true } => pick(self, IntCC::SignedLessThan),
                AtomKind::Min { signed: false } => pick(self, IntCC::UnsignedLessThan),
                AtomKind::Max { signed: true } => pick(self, IntCC::SignedGreaterThan),
                AtomKind::Max { signed: false } => pick(self, IntCC::UnsignedGreaterThan),
                _ => b,
            };
            self.b.ins().store(plain(), new, at, 0);
            old
        } else {
            let op = match kind {
                AtomKind::Add => AtomicRmwOp::Add,
                AtomKind::And => AtomicRmwOp::And,
                AtomKind::Or => AtomicRmwOp::Or,
                AtomKind::Xor => AtomicRmwOp::Xor,
                AtomKind::Min { signed: true } => AtomicRmwOp::Smin,
                AtomKind::Min { signed: false } => AtomicRmwOp::Umin,
                AtomKind::Max { signed: true } => AtomicRmwOp::Smax,
                AtomKind::Max { signed: false } => AtomicRmwOp::Umax,
                _ => AtomicRmwOp::Xchg,
            };
            self.b.ins().atomic_rmw(ty, plain(), op, at, b)
        };
        self.define(i.d(), held(old));
    }
}
