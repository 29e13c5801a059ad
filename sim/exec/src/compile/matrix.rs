//! Instruction families of matrices (`mma`, `wmma`, `ldmatrix`).

use device_code::ptx::{Operand, Type};

use super::Op;
use crate::compile::function::{Result, Scope};
use crate::compile::load_store::space_of;
use crate::exec::load_store::SHARED;
use crate::exec::matrix::group_product::{GroupFactor, GroupForm};
use crate::exec::matrix::narrow::NarrowForm;
use crate::exec::matrix::sparse::{Factor, SparseForm};
use crate::exec::matrix::{Element, Form};
use crate::operations::build;
use crate::program::Slot;

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
            "wgmma" => self.group_product(op, operands)?,
            "movmatrix" => {
                let (a, d) = (self.src(operands.get(1), Type::B32)?, self.dst(operands.first())?);
                self.emit(build::Transpose { a, d });
            }
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

    /// `wgmma`.
    fn group_product(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        match op.part(1) {
            "fence" => self.emit(build::FenceProducts {}),
            "commit_group" => self.emit(build::CommitProducts {}),
            "wait_group" => {
                let Some(&Operand::Int(groups)) = operands.first() else { return self.misfit() };
                self.emit(build::AwaitProducts { pending: groups as u32 });
            }
            "mma_async" => return self.product_of_group(op, operands),
            _ => return self.unsupported(op),
        }
        Ok(())
    }

    /// `wgmma.mma_async`.
    fn product_of_group(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let of_group = |part: &String| match part.as_str() {
            "e4m3" => Some(GroupFactor::Eight(3)),
            "e5m2" => Some(GroupFactor::Eight(2)),
            "b1" => Some(GroupFactor::Bits),
            name => element(name).map(GroupFactor::Whole),
        };
        let types: Vec<GroupFactor> = op.parts.iter().filter_map(of_group).collect();
        let (Some([64, n, k]), &[GroupFactor::Whole(sum), a, b]) = (shape(op), &types[..]) else {
            return self.unsupported(op);
        };
        let whole = |element| GroupFactor::Whole(element);
        let is_eight = |factor| matches!(factor, GroupFactor::Eight(_));
        let is_int = |factor| factor == whole(Element::S8) || factor == whole(Element::U8);
        let fits = match sum {
            Element::F32 if a == b => {
                [Element::F16, Element::Bf16, Element::Tf32].map(whole).contains(&a) || is_eight(a)
            }
            Element::F16 if a == b => a == whole(Element::F16) || is_eight(a),
            Element::F32 | Element::F16 => is_eight(a) && is_eight(b),
            Element::S32 if a == GroupFactor::Bits => b == a && op.has("and") && op.has("popc"),
            Element::S32 => is_int(a) && is_int(b),
            _ => false,
        };
        let sparse = op.has("sp");
        let bytes = if a == GroupFactor::Bits { k / 8 } else { k * a.size() };
        if !fits || bytes != if sparse { 64 } else { 32 } || !n.is_multiple_of(8) || !(8..=256).contains(&n) {
            return self.unsupported(op);
        }
        let registers = matches!(operands.get(1), Some(Operand::Vector(_)));
        // Metadata and the selector stand in front of what is said after the factors.
        let behind = if sparse { 2 } else { 0 };
        let number = |at: usize| match operands.get(at + behind) {
            Some(&Operand::Int(value)) => Some(value),
            _ => None,
        };
        let selector = match operands.get(4) {
            _ if !sparse => None,
            Some(&Operand::Int(selector)) => Some(selector as usize & 7),
            _ => return self.misfit(),
        };
        // Sums, factors, whether the sums of before are added; then signs, then transpositions: of
        // the factors in shared memory.
        let signs = if sum == Element::S32 { [Some(1), Some(1)] } else { [number(4), number(5)] };
        let halves = a.size() == 2;
        let transposed = match (halves, registers) {
            (false, _) => [Some(0), Some(0)],
            (true, true) => [Some(0), number(6)],
            (true, false) => [number(6), number(7)],
        };
        let ([Some(sign_a), Some(sign_b)], [Some(trans_a), Some(trans_b)]) = (signs, transposed) else {
            return self.misfit();
        };
        let form = GroupForm {
            factors: [a, b],
            sum,
            n,
            registers,
            negate: [(sign_a as i64) < 0, (sign_b as i64) < 0],
            transpose: [trans_a != 0, trans_b != 0],
            saturate: op.has("satfinite"),
            sparse: selector,
        };
        let mut slots = self.slots(operands.first(), Type::B32, true)?;
        if slots.len() != form.sums() || sparse && form.metadata().is_none() {
            return self.misfit();
        }
        let first = self.slots(operands.get(1), if registers { Type::B32 } else { Type::B64 }, false)?;
        if first.len() != if registers { 4 } else { 1 } {
            return self.misfit();
        }
        slots.extend(first);
        slots.push(self.src(operands.get(2), Type::B64)?);
        if sparse {
            slots.push(self.src(operands.get(3), Type::B32)?);
        }
        let keep = self.src_pred(operands.get(3 + behind))?;
        let slots = self.list(&slots);
        self.emit(build::MultiplyGroup { keep, slots, form: form.pack() });
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
}
