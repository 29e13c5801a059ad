//! Instruction families of matrices (`mma`, `wmma`, `ldmatrix`) and of `mbarrier` with its copies.

use device_code::ptx::{Operand, Type};

use super::Op;
use crate::compile::function::{Result, SCRATCH, Scope};
use crate::compile::load_store::{atomic, space_of};
use crate::exec::load_store::{GLOBAL, SHARED};
use crate::exec::matrix::narrow::NarrowForm;
use crate::exec::matrix::sparse::{Factor, SparseForm};
use crate::exec::matrix::{Element, Form};
use crate::exec::mbarrier;
use crate::exec::tensor;
use crate::operations::build;
use crate::program::Slot;

/// The types of elements, by their numbers in tensor maps.
const TILE_TYPES: [Type; 11] = [
    Type::U8,
    Type::U16,
    Type::U32,
    Type::S32,
    Type::U64,
    Type::S64,
    Type::F16,
    Type::F32,
    Type::F32,
    Type::F64,
    Type::Bf16,
];

fn element(name: &str) -> Option<Element> {
    Some(match name {
        "f16" => Element::F16,
        "bf16" => Element::Bf16,
        "tf32" => Element::Tf32,
        "f32" => Element::F32,
        "f64" => Element::F64,
        "s8" => Element::S8,
        "u8" => Element::U8,
        "s32" => Element::S32,
        _ => return None,
    })
}

/// Types of a product with a sparse factor.
fn factor(name: &str) -> Option<Factor> {
    match name {
        "s4" | "u4" => Some(Factor::Nibble { signed: name == "s4" }),
        _ => element(name).map(Factor::Whole),
    }
}

/// `m16n8k16`
fn shape(op: Op<'_>) -> Option<[usize; 3]> {
    op.parts.iter().find_map(|part| {
        let (m, rest) = part.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
    })
}

/// The form of an `mma` of four bits or one.
fn narrow(op: Op<'_>, [m, n, k]: [usize; 3]) -> Option<NarrowForm> {
    let mut factors = op.parts.iter().filter(|part| matches!(part.as_str(), "s4" | "u4" | "b1"));
    let (a, b) = (factors.next()?, factors.next()?);
    let bits = if a == "b1" { 1 } else { 4 };
    let known = match bits {
        1 => matches!([m, n, k], [8, 8, 128] | [16, 8, 128] | [16, 8, 256]),
        _ => matches!([m, n, k], [8, 8, 32] | [16, 8, 32] | [16, 8, 64]),
    };
    let (a_signed, b_signed) = (a == "s4", b == "s4");
    let (and, sat) = (op.has("and"), op.has("satfinite"));
    (known && op.name() == "mma").then_some(NarrowForm { m, k, bits, a_signed, b_signed, and, sat })
}

impl<'m> Scope<'_, 'm> {
    /// Returns false when the instruction is of another family.
    pub(super) fn matrix(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        match op.name() {
            "mma" if op.parts.iter().any(|part| part == "sp" || part.starts_with("sp::")) => {
                self.sparse_mma(op, operands)?;
            }
            "mma" => self.mma(op, operands, false)?,
            "wmma" if op.has("mma") => self.mma(op, operands, true)?,
            "wmma" => self.fragment(op, operands)?,
            "ldmatrix" | "stmatrix" => self.matrix_rows(op, operands)?,
            "movmatrix" => {
                let (a, d) = (self.src(operands.get(1), Type::B32)?, self.dst(operands.first())?);
                self.emit(build::Transpose { a, d });
            }
            "mbarrier" => self.mbarrier(op, operands)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn slots(&mut self, operand: Option<&'m Operand>, ty: Type, result: bool) -> Result<Vec<Slot>> {
        let mut out = Vec::new();
        for element in self.elements(operand) {
            out.push(if result { self.dst(Some(element))? } else { self.src(Some(element), ty)? });
        }
        Ok(out)
    }

    fn mma(&mut self, op: Op<'m>, operands: &'m [Operand], opaque: bool) -> Result<()> {
        let Some([m, n, k]) = shape(op) else { return self.unsupported(op) };
        if let Some(form) = narrow(op, [m, n, k]) {
            return self.narrow_mma(operands, form);
        }
        let types: Vec<Element> = op.parts.iter().filter_map(|part| element(part)).collect();
        let [d, a, b, c] = match types[..] {
            [d, a, b, c] => [d, a, b, c],
            // wmma on halves names the sums only.
            [d, c] if opaque => [d, Element::F16, Element::F16, c],
            _ => return self.unsupported(op),
        };
        let sizes = if opaque {
            matches!([m, n, k], [16, 16, 16] | [32, 8, 16] | [8, 32, 16] | [16, 16, 8] | [8, 8, 4])
        } else {
            matches!([m, n], [16, 8]) && matches!(k, 4 | 8 | 16 | 32)
                || matches!([m, n, k], [8, 8, 4] if a == Element::F64)
                || matches!([m, n, k], [8, 8, 16] if a.size() == 1)
        };
        if !sizes || op.parts.iter().any(|p| p == "xor" || p == "and" || p.starts_with("block_scale")) {
            return self.unsupported(op);
        }
        let wide = if d == Element::F64 { Type::B64 } else { Type::B32 };
        let to = self.slots(operands.first(), wide, true)?;
        let sa = self.slots(operands.get(1), wide, false)?;
        let sb = self.slots(operands.get(2), wide, false)?;
        let sc = self.slots(operands.get(3), wide, false)?;
        let room = |slots: &[Slot], element: Element, entries: usize| {
            slots.len() * (if element == Element::F64 { 1 } else { 4 / element.size() as usize }) * 32 >= entries
        };
        if !room(&to, d, m * n) || !room(&sc, c, m * n) || !room(&sa, a, m * k) || !room(&sb, b, k * n) {
            return self.misfit();
        }
        // `row.col` is the only layout of mma; that of fragments is settled when they are loaded.
        let form = Form { a, b, c, d, saturate: op.has("satfinite"), m, n, k }.pack();
        if [&to, &sc, &sa, &sb].iter().any(|slots| slots.len() > 63) {
            return self.misfit();
        }
        self.emit(build::Multiply { c: sc, a: sa, b: sb, d: to, form, opaque: u32::from(opaque) });
        Ok(())
    }

    /// `mma` of numbers of four bits and of one.
    fn narrow_mma(&mut self, operands: &'m [Operand], form: NarrowForm) -> Result<()> {
        let mut slots = Vec::new();
        let factors = [form.m * form.k, 8 * form.k].map(|entries| entries * form.bits as usize / 1024);
        let counts = [(0, form.m / 4), (3, form.m / 4), (1, factors[0]), (2, factors[1])];
        for (at, count) in counts {
            let list = self.slots(operands.get(at), Type::B32, at == 0)?;
            if list.len() != count {
                return self.misfit();
            }
            slots.extend(list);
        }
        let y = self.list(&slots);
        self.emit(build::MultiplyNarrow { slots: y, form: form.pack() });
        Ok(())
    }

    /// `mma.sp`: the first factor is sparse.
    fn sparse_mma(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let types: Vec<Factor> = op.parts.iter().filter_map(|part| factor(part)).collect();
        let (Some([16, 8, k]), &[Factor::Whole(d), a, b, Factor::Whole(c)]) = (shape(op), &types[..]) else {
            return self.unsupported(op);
        };
        let Some(&Operand::Int(selector)) = operands.get(5) else { return self.misfit() };
        let form = SparseForm::new([a, b], d, op.has("satfinite"), k, selector as usize).filter(|_| c == d);
        let Some(form) = form else { return self.unsupported(op) };
        let [sums, first, second] = form.registers();
        let mut slots = Vec::new();
        for (at, count) in [(0, sums), (3, sums), (1, first), (2, second)] {
            let list = self.slots(operands.get(at), Type::B32, at == 0)?;
            if list.len() != count {
                return self.misfit();
            }
            slots.extend(list);
        }
        slots.push(self.src(operands.get(4), Type::B32)?);
        let y = self.list(&slots);
        self.emit(build::MultiplySparse { slots: y, form: form.pack() });
        Ok(())
    }

    /// `wmma.load` and `wmma.store`.
    fn fragment(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let Some([m, n, k]) = shape(op) else { return self.unsupported(op) };
        let store = op.part(1) == "store";
        let Some(found) = op.parts.iter().rev().find_map(|part| element(part)) else { return self.unsupported(op) };
        let (rows, columns) = match op.part(2) {
            "a" => (m, k),
            "b" => (k, n),
            _ => (m, n),
        };
        let (fragment, address) =
            if store { (operands.get(1), operands.first()) } else { (operands.first(), operands.get(1)) };
        let wide = if found == Element::F64 { Type::B64 } else { Type::B32 };
        let slots = self.slots(fragment, wide, !store)?;
        let (address, offset, space) = self.address(address, space_of(op))?;
        let column_major = op.has("col");
        let stride = match operands.get(2) {
            Some(stride) => self.src(Some(stride), Type::B32)?,
            None => self.c.constant(if column_major { rows } else { columns } as u64),
        };
        let Ok(offset) = u32::try_from(offset) else { return self.unsupported(op) };
        let register = if found == Element::F64 { 8 } else { 4 };
        if slots.len() > 63 || slots.len() * 32 * register < rows * columns * found.size() as usize {
            return self.misfit();
        }
        let form = Form {
            a: found,
            b: found,
            c: found,
            d: found,
            saturate: false,
            m: rows,
            n: columns,
            k: usize::from(column_major),
        };
        let (from, into) = if store { (Some(slots), None) } else { (None, Some(slots)) };
        let (store, form) = (u32::from(store), form.pack());
        self.emit(build::Transfer { address, stride, from, into, offset, space, store, form });
        Ok(())
    }

    fn matrix_rows(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let store = op.name() == "stmatrix";
        if !op.has("m8n8") || !op.has("b16") {
            return self.unsupported(op);
        }
        let (list, address) =
            if store { (operands.get(1), operands.first()) } else { (operands.first(), operands.get(1)) };
        let slots = self.slots(list, Type::B32, !store)?;
        let (address, offset, _) = self.address(address, SHARED)?;
        if !matches!(slots.len(), 1 | 2 | 4) {
            return self.misfit();
        }
        let (from, into) = if store { (Some(slots), None) } else { (None, Some(slots)) };
        let (offset, store, transposed) = (offset as u32, u32::from(store), u32::from(op.has("trans")));
        self.emit(build::MatrixRows { address, from, into, offset, store, transposed });
        Ok(())
    }

    fn mbarrier(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let one = self.c.constant(1);
        let what = op.part(1);
        match what {
            "inval" => self.emit(build::Nothing {}),
            "pending_count" => {
                let d = self.dst(operands.first())?;
                let a = self.src(operands.get(1), Type::B64)?;
                self.emit(build::MbarrierPending { state: a, d });
            }
            "test_wait" | "try_wait" => {
                let p = self.dst_pred(operands.first())?;
                let parity = op.has("parity");
                let (address, offset, space) = self.address(operands.get(1), SHARED)?;
                let phase = self.src(operands.get(2), if parity { Type::B32 } else { Type::B64 })?;
                let space = space_for(op, space);
                let parity = u32::from(parity);
                self.emit(build::MbarrierTest { address, phase, p, offset, space, parity });
            }
            "init" | "arrive" | "arrive_drop" | "expect_tx" | "complete_tx" => {
                let returns = what.starts_with("arrive") && !matches!(operands.first(), Some(Operand::Memory(..)));
                let d = if returns { self.dst(operands.first())? } else { SCRATCH };
                let rest = &operands[usize::from(returns)..];
                let (address, offset, space) = self.address(rest.first(), SHARED)?;
                let number = match rest.get(1) {
                    Some(operand) => self.src(Some(operand), Type::B32)?,
                    None => one,
                };
                let what = match what {
                    "init" => mbarrier::INIT,
                    "arrive" if op.has("expect_tx") => mbarrier::ARRIVE_EXPECT,
                    "arrive" => mbarrier::ARRIVE,
                    "arrive_drop" if op.has("expect_tx") => return self.unsupported(op),
                    "arrive_drop" => mbarrier::ARRIVE_DROP,
                    "expect_tx" => mbarrier::EXPECT,
                    _ => mbarrier::COMPLETE,
                };
                let space = space_for(op, space);
                self.emit(build::MbarrierOperate { address, number, d, offset, space, what });
            }
            _ => return self.unsupported(op),
        }
        Ok(())
    }

    /// `cp.async.bulk` without tensors, and `cp.async.mbarrier.arrive`.
    pub(super) fn bulk(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        if op.has("mbarrier") {
            // What was copied is there already: with its own arrival counted in, nothing changes.
            let (address, offset, space) = self.address(operands.first(), SHARED)?;
            let number = self.c.constant(u64::from(op.has("noinc")));
            let what = mbarrier::COPIES_ARRIVE;
            self.emit(build::MbarrierOperate { address, number, d: SCRATCH, offset, space, what });
            return Ok(());
        }
        if op.has("commit_group") || op.has("wait_group") || op.has("prefetch") {
            self.emit(build::Nothing {});
            return Ok(());
        }
        if op.has("tensor") {
            return self.tile(op, operands);
        }
        if op.part(1) == "reduce" {
            return self.bulk_reduce(op, operands);
        }
        // Both ways arrive at a barrier; the way out is waited for by groups, and what was copied
        // is there at once.
        let way = match (op.part(3), op.part(4)) {
            ("shared" | "shared::cta" | "shared::cluster", "global") => mbarrier::INWARD,
            ("shared::cluster", "shared" | "shared::cta") => mbarrier::ACROSS,
            ("global", "shared" | "shared::cta") => mbarrier::OUTWARD,
            _ => return self.unsupported(op),
        };
        let to = self.whole_address(operands.first())?;
        let from = self.whole_address(operands.get(1))?;
        let size = self.src(operands.get(2), Type::B32)?;
        let barrier = if way == mbarrier::OUTWARD { None } else { Some(self.whole_address(operands.get(3))?) };
        let blocks = match op.has("multicast::cluster") {
            true => self.src(operands.get(4), Type::B16)?,
            false => Slot::NONE,
        };
        self.emit(build::BulkCopy { to, from, size, blocks, barrier, direction: way });
        Ok(())
    }

    /// An address with its offset in one row.
    fn whole_address(&mut self, operand: Option<&'m Operand>) -> Result<Slot> {
        let (slot, offset, _) = self.address(operand, SHARED)?;
        if offset == 0 {
            return Ok(slot);
        }
        let constant = self.c.constant(offset);
        let sum = self.temporary();
        self.emit(crate::exec::per_lane::op2(|a: u64, b: u64| a.wrapping_add(b)).of([slot, constant]).to(sum));
        Ok(sum)
    }

    /// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`.
    fn tile(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let other_mode = |part: &String| part.starts_with("im2col") || part.starts_with("tile::");
        if op.parts.iter().any(other_mode) || op.has("multicast::cluster") || op.has("cta_group::2") {
            return self.unsupported(op);
        }
        let Some(at) = op.parts.iter().position(|part| part == "tensor") else { return self.unsupported(op) };
        let is_shared = |part: &str| matches!(part, "shared" | "shared::cta" | "shared::cluster");
        let (to, from) = (op.part(at + 2), op.part(at + 3));
        let reduces = op.part(1) == "reduce";
        let (what, map, shared) = match (is_shared(to), is_shared(from)) {
            (true, false) if !reduces => (tensor::LOAD, operands.get(1), operands.first()),
            (false, true) if reduces => (tensor::REDUCE, operands.first(), operands.get(1)),
            (false, true) => (tensor::STORE, operands.first(), operands.get(1)),
            _ => return self.unsupported(op),
        };
        let Some(Operand::MemoryList(list)) = map else { return self.misfit() };
        let mut coordinates = Vec::new();
        for part in &list.2 {
            for element in self.elements(Some(part)) {
                coordinates.push(self.src(Some(element), Type::S32)?);
            }
        }
        if op.part(at + 1) != format!("{}d", coordinates.len()) {
            return self.misfit();
        }
        // A map says itself how many axes it has: one with more is not read past the list.
        coordinates.resize(5, self.c.constant(0));
        let (map, shared) = (self.whole_address(map)?, self.whole_address(shared)?);
        let barrier = if what == tensor::LOAD { self.whole_address(operands.get(2))? } else { Slot::NONE };
        let mut reduction = 0;
        if reduces {
            // The type of the elements is the map's: an operation for each.
            reduction = self.c.program.reductions.len() as u32;
            self.c.program.reductions.extend(TILE_TYPES.map(|ty| atomic(op, ty)));
        }
        let (element, operand) = (self.temporary(), self.temporary());
        self.emit(build::TensorTile { map, shared, barrier, coordinates, element, operand, what, reduction });
        Ok(())
    }

    /// `cp.reduce.async.bulk`: to global memory in groups, to shared memory with a barrier. Both
    /// are done at once.
    fn bulk_reduce(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let space = match (op.part(4), op.part(5)) {
            ("global", "shared::cta" | "shared") => GLOBAL,
            ("shared::cluster", "shared::cta" | "shared") => SHARED,
            _ => return self.unsupported(op),
        };
        let Some(ty) = op.ty() else { return self.unsupported(op) };
        let Some(update) = atomic(op, ty) else { return self.unsupported(op) };
        let (to, from) = (self.whole_address(operands.first())?, self.whole_address(operands.get(1))?);
        let size = self.src(operands.get(2), Type::B32)?;
        let barrier = if space == SHARED { self.whole_address(operands.get(3))? } else { Slot::NONE };
        let (element, operand) = (self.temporary(), self.temporary());
        let reduction = self.c.program.reductions.len() as u32;
        self.c.program.reductions.push(Some(update));
        let bytes = ty.size();
        self.emit(build::BulkReduce { to, from, size, barrier, element, operand, reduction, space, bytes });
        Ok(())
    }
}

/// An address without a space in the opcode is a generic one.
fn space_for(op: Op<'_>, found: u32) -> u32 {
    if space_of(op) == SHARED { found } else { space_of(op) }
}
