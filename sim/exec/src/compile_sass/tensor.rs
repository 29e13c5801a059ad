//! Family of the tensor cores and of the dot products of small integers.

use device_code::sass::{Arithmetic, InstOperand, MachineInst, MatrixTy, Opcode, SassRound};

use super::translation::Translation;
use crate::compile::function::Result;
use crate::exec::matrix::narrow::NarrowForm;
use crate::exec::matrix::sparse::{Factor, SparseForm};
use crate::exec::matrix::{Element, Form};
use crate::exec::per_lane::{LaneFn, op2x, op3};
use crate::exec_sass::tensor::{self, dot_bytes, dot_words};
use crate::operations::build;
use crate::program::Slot;

pub(super) fn element(ty: MatrixTy) -> Option<Element> {
    Some(match ty {
        MatrixTy::F16 => Element::F16,
        MatrixTy::Bf16 => Element::Bf16,
        MatrixTy::Tf32 => Element::Tf32,
        MatrixTy::F64 => Element::F64,
        MatrixTy::S8 => Element::S8,
        MatrixTy::U8 => Element::U8,
        MatrixTy::S4 | MatrixTy::U4 | MatrixTy::B1 | MatrixTy::E4m3 | MatrixTy::E5m2 => return None,
    })
}

/// Returns false when the instruction is of another family.
pub(super) fn tensor(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    let Opcode::Arithmetic(op) = i.op else { return Ok(false) };
    match op {
        Arithmetic::Mma { .. } => multiply_matrices(i, op, t)?,
        Arithmetic::Movm => {
            let (d, a) = (t.dst(i, 0), t.raw_word(&i.src[0], 0)?);
            t.emit(build::Transpose { a, d });
        }
        Arithmetic::Idp { four, high, a_signed, b_signed } => {
            let (a, b, c) = (t.source(i, 0)?, t.source(i, 1)?, t.source(i, 2)?);
            let run: LaneFn = match (four, a_signed, b_signed) {
                (true, true, true) => op3(dot_bytes::<true, true>),
                (true, true, false) => op3(dot_bytes::<true, false>),
                (true, false, true) => op3(dot_bytes::<false, true>),
                (true, false, false) => op3(dot_bytes::<false, false>),
                (false, true, true) => op3(dot_words::<true, true>),
                (false, true, false) => op3(dot_words::<true, false>),
                (false, false, true) => op3(dot_words::<false, true>),
                (false, false, false) => op3(dot_words::<false, false>),
            };
            let b = if high {
                let d = t.temporary();
                t.emit(crate::exec::per_lane::op1(|a: u32| a >> 16).of([b]).to(d));
                d
            } else {
                b
            };
            let d = t.dst(i, 0);
            t.emit(run.of([a, b, c]).to(d));
        }
        Arithmetic::Vabsdiff { signed } => {
            let run: LaneFn = match signed {
                true => op3(|a: i32, b: i32, c: u32| a.abs_diff(b).wrapping_add(c)),
                false => op3(|a: u32, b: u32, c: u32| a.abs_diff(b).wrapping_add(c)),
            };
            of_three(i, run, t)?;
        }
        Arithmetic::Vabsdiff4 { signed, acc } => {
            let run: LaneFn = match (signed, acc) {
                (true, true) => op3(|a: u32, b: u32, c: u32| tensor::differences::<true>(a, b).1.wrapping_add(c)),
                (false, true) => op3(|a: u32, b: u32, c: u32| tensor::differences::<false>(a, b).1.wrapping_add(c)),
                // The third source would fill bytes that are left out, and none is.
                (true, false) => op3(|a: u32, b: u32, _: u32| tensor::differences::<true>(a, b).0),
                (false, false) => op3(|a: u32, b: u32, _: u32| tensor::differences::<false>(a, b).0),
            };
            of_three(i, run, t)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn of_three(i: &MachineInst, run: LaneFn, t: &mut Translation<'_>) -> Result<()> {
    let (a, b, c) = (t.source(i, 0)?, t.source(i, 1)?, t.source(i, 2)?);
    let d = t.dst(i, 0);
    t.emit(run.of([a, b, c]).to(d));
    Ok(())
}

/// The rows of an operand: registers, or pairs of them joined.
fn matrix_rows(operand: &InstOperand, ty: MatrixTy, t: &mut Translation<'_>) -> Result<Vec<Slot>> {
    let wide = ty == MatrixTy::F64;
    let mut rows = Vec::new();
    for at in (0..operand.regs).step_by(if wide { 2 } else { 1 }) {
        let low = t.raw_word(operand, at)?;
        let value = if wide {
            let high = t.raw_word(operand, at + 1)?;
            t.joined(low, high)
        } else {
            low
        };
        let x = match ty {
            _ if !operand.neg => 0,
            MatrixTy::F64 => 1 << 63,
            MatrixTy::F16 | MatrixTy::Bf16 => 0x8000_8000,
            _ => 0x8000_0000,
        };
        rows.push(if x == 0 {
            value
        } else {
            let d = t.temporary();
            t.emit(op2x(|a: u64, _: u64, x| a ^ x).of([value, value]).with(x).to(d));
            d
        });
    }
    Ok(rows)
}

fn multiply_matrices(i: &MachineInst, op: Arithmetic, t: &mut Translation<'_>) -> Result<()> {
    let Arithmetic::Mma { m, k, a, b, single, sat, and, round, sparse } = op else { return Ok(()) };
    let integers = !matches!(a, MatrixTy::F16 | MatrixTy::Bf16 | MatrixTy::Tf32 | MatrixTy::F64);
    if i.src.iter().any(|s| s.abs || s.neg && integers)
        || (i.src[2].neg && a != MatrixTy::F64)
        || round != SassRound::Nearest
    {
        return t.unsupported(i);
    }
    let wide = a == MatrixTy::F64;
    let Some(run) = i.dst else { return t.unsupported(i) };
    let (sa, sb, sc) = (matrix_rows(&i.src[0], a, t)?, matrix_rows(&i.src[1], b, t)?, matrix_rows(&i.src[2], a, t)?);
    let to: Vec<Slot> = match wide {
        true => (0..run.count / 2).map(|_| t.temporary()).collect(),
        false => (0..run.count).map(|at| t.dst(i, at)).collect(),
    };
    let sum = match a {
        MatrixTy::F64 => Element::F64,
        MatrixTy::F16 if !single => Element::F16,
        MatrixTy::F16 | MatrixTy::Bf16 | MatrixTy::Tf32 => Element::F32,
        _ => Element::S32,
    };
    if let Some(selector) = sparse {
        let factor = |ty| element(ty).map_or(Factor::Nibble { signed: ty == MatrixTy::S4 }, Factor::Whole);
        let form = SparseForm::new([factor(a), factor(b)], sum, sat, k.into(), selector.into());
        let Some(form) = form else { return t.unsupported(i) };
        let metadata = t.raw_word(&i.src[3], 0)?;
        let y = t.list(&[to, sc, sa, sb, vec![metadata]].concat());
        t.emit(build::MultiplySparse { slots: y, form: form.pack() });
        return Ok(());
    }
    let (Some(ea), Some(eb)) = (element(a), element(b)) else {
        let form = NarrowForm {
            m: m.into(),
            k: k.into(),
            bits: a.bits(),
            a_signed: a == MatrixTy::S4,
            b_signed: b == MatrixTy::S4,
            and,
            sat,
        };
        let y = t.list(&[to, sc, sa, sb].concat());
        t.emit(build::MultiplyNarrow { slots: y, form: form.pack() });
        return Ok(());
    };
    let (m, k) = (usize::from(m), usize::from(k));
    let form = Form { a: ea, b: eb, c: sum, d: sum, saturate: sat, m, n: 8, k }.pack();
    t.emit(build::Multiply { c: sc, a: sa, b: sb, d: to.clone(), form, opaque: 0 });
    if wide {
        for (at, value) in to.into_iter().enumerate() {
            let (low, high) = (t.dst(i, 2 * at as u8), t.dst(i, 2 * at as u8 + 1));
            t.halved(value, low, high);
        }
    }
    Ok(())
}
