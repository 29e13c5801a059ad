//! What SASS integer, logic, move and predicate instructions compute.
//!
//! Owns results in registers. Predicates as bits of a word are in `predicate_words`, memory is in
//! `memory_access`, jumps are in `control_flow`.

use super::Lower;
use crate::ir::{Class, Cmp, Combine, Op, Prefix, Pure, Reason, Special, Src, SrcOperand, Var};
use crate::lower_sass::constant_bank::load_const;
use crate::lower_sass::predicate_words::{predicates_to_word, put_by, word_to_predicates};
use crate::lower_sass::pure::pure;
use device_code::sass::{self, BoolOp, Lanes, MachineInst, MulKind, OtherKind, SpecialReg, VecTy};

/// Truth table of `a & b` over predicates.
pub(super) const AND: u8 = 0xc0;
/// Truth table of `a | b`.
const OR: u8 = 0xfc;

fn combination(bop: BoolOp) -> Combine {
    match bop {
        BoolOp::And => Combine::And,
        BoolOp::Or => Combine::Or,
        BoolOp::Xor => Combine::Xor,
    }
}

/// Lowers one instruction that is neither memory nor control flow.
pub(super) fn alu(lower: &mut Lower<'_>, i: &MachineInst) {
    use sass::Opcode as S;
    let d0 = lower.dst(i, 0);
    let [p0, p1] = i.pdst.map(Lower::pred_var);
    match i.op {
        _ if pure(lower, i) || sum(lower, i) || product(lower, i) || extreme(lower, i) => {}
        S::Mov { wide } => {
            if wide {
                let s = i.src[0];
                let w = [lower.word(i, &s, 0), lower.word(i, &s, 1)];
                let d = [d0, lower.dst(i, 1)];
                parallel_move(lower, i, &w, &d);
            } else {
                let s = lower.arg(i, 0);
                lower.emit(i, Op::Mov, &[s], &[d0]);
            }
        }
        S::R2ur { or: false } => {
            let s = lower.arg(i, 0);
            lower.emit(i, Op::Mov, &[s], &[d0]);
            preds_unknown(lower, i);
        }
        S::Sel { wide } => {
            let p = Lower::pred(i.psrc[0]);
            if wide {
                let (a, b) = (lower.arg64(i, 0), lower.arg64(i, 1));
                lower.emit64(i, Op::Sel, &[a, b, p]);
            } else {
                let (a, b) = (lower.arg(i, 0), lower.arg(i, 1));
                lower.emit(i, Op::Sel, &[a, b, p], &[d0]);
            }
        }
        S::Iabs => {
            let s = lower.arg(i, 0);
            lower.emit(i, Op::Abs, &[s], &[d0]);
        }
        S::Lop3 { lut, pand } => lop3(lower, i, lut, pand, d0, p0),
        S::Shf { right, ty, hi, wrap } => {
            let s = [lower.arg(i, 0), lower.arg(i, 1), lower.arg(i, 2)];
            lower.emit(i, Op::Funnel { right, hi, signed: ty.signed(), wide: ty.wide(), wraps: wrap }, &s, &[d0]);
        }
        S::Prmt { mode: 0 } => {
            let s = [lower.arg(i, 0), lower.arg(i, 1), lower.arg(i, 2)];
            lower.emit(i, Op::Prmt, &s, &[d0]);
        }
        S::Sgxt { signed, wrap } => match i.src.get(1).and_then(sass::InstOperand::as_imm) {
            Some(bits @ 1..=32) => {
                let s = lower.arg(i, 0);
                lower.emit(i, Op::Ext { bits: bits as u8, signed }, &[s], &[d0]);
            }
            None if !wrap => {
                let (value, count) = (lower.arg(i, 0), lower.arg(i, 1));
                let most = lower.f.var(Class::W32);
                let least = [count, SrcOperand::imm(32), SrcOperand::imm(1)];
                lower.emit_always(i, Op::MinMax { signed: false }, &least, &[most]);
                let of = [value, SrcOperand::imm(0), SrcOperand::var(most)];
                lower.emit(i, Op::Pure(Pure::Extract { wide: false, signed }), &of, &[d0]);
            }
            _ => lower.give_up(i, Reason::Bits),
        },
        S::Isetp { cmp, bop, ty, ex } => isetp(lower, i, cmp, bop, ty, ex, p0, p1),
        S::Fsetp { cmp: 0 | 15, wide: true, .. } => lower.give_up(i, Reason::Float),
        S::Fsetp { cmp, bop, wide, ftz } => {
            let [a, b] = [0, 1].map(|k| float(lower, i, k, wide));
            let combine = combination(bop);
            let op = Op::FloatCmp { cmp, wide, flush: ftz, combine };
            lower.emit(i, op, &[a, b, Lower::pred(i.psrc[0])], &[p0, p1]);
        }
        S::Plop3 { lut0, lut1 } => {
            let s = i.psrc.map(Lower::pred);
            lower.emit(i, Op::PLut { lut0, lut1 }, &s, &[p0, p1]);
        }
        S::S2r { sr, wide } => special(lower, i, sr, wide),
        S::I2f { round, .. } => {
            let s = lower.arg(i, 0);
            if i.dst.is_some_and(|r| r.count == 1) {
                lower.emit(i, Op::IntToFloat { up: round == 2 }, &[s], &[d0]);
            } else {
                lower.give_up(i, Reason::Float);
            }
        }
        // A choice between numbers.
        S::Arithmetic(sass::Arithmetic::Fsel { ftz: false }) => {
            let s = [float(lower, i, 0, false), float(lower, i, 1, false), Lower::pred(i.psrc[0])];
            lower.emit(i, Op::Sel, &s, &[d0]);
        }
        S::Mufu { func: 4, .. } if i.dst.is_some_and(|r| r.count == 1) => {
            let s = lower.arg(i, 0);
            lower.emit(i, Op::Rcp, &[s], &[d0]);
        }
        S::LoadConst { ty, mode } => load_const(lower, i, ty, mode),
        // (The masks are not followed.)
        S::Elect | S::Vote { mode: sass::VoteMode::Any | sass::VoteMode::All } => {
            let decided = lower.f.var(Class::Pred);
            match i.op {
                S::Vote { mode } => {
                    let all = mode == sass::VoteMode::All;
                    lower.emit(i, Op::Vote { all }, &[Lower::pred(i.psrc[0])], &[decided]);
                }
                _ => lower.emit(i, Op::Elect, &[], &[decided]),
            }
            lower.give_up(i, Reason::CrossLane);
            if p0 != Var::NONE {
                lower.emit(i, Op::Mov, &[SrcOperand::var(decided)], &[p0]);
            }
        }
        S::Shfl { mode } if i.pdst[0].is_true() => {
            let s = [lower.arg(i, 0), lower.arg(i, 1), lower.arg(i, 2)];
            lower.emit(i, Op::Shuffle { mode: mode as u8 }, &s, &[d0]);
        }
        // One predicate put by, as a rule for a comparison with zero that takes it back.
        S::P2r { byte: 0 } if let Some((bit, p)) = put_by(i) => {
            lower.emit(i, Op::Sel, &[SrcOperand::imm(bit), SrcOperand::imm(0), p], &[d0]);
        }
        S::P2r { byte } => predicates_to_word(lower, i, byte, d0),
        S::R2p { byte } => word_to_predicates(lower, i, byte),
        _ => lower.give_up(i, unfollowed(i)),
    }
}

/// Additions and shifted additions. False, and nothing is lowered: it is another instruction.
fn sum(lower: &mut Lower<'_>, i: &MachineInst) -> bool {
    use sass::Opcode as S;
    let d0 = lower.dst(i, 0);
    let [p0, p1] = i.pdst.map(Lower::pred_var);
    match i.op {
        S::Iadd3 { x: false, wide: true } => {
            let s = [lower.arg64(i, 0), lower.arg64(i, 1), lower.arg64(i, 2)];
            lower.emit64(i, Op::Add, &s);
            preds_unknown(lower, i);
        }
        S::Iadd { x: false, wide: true } => {
            let s = [lower.arg64(i, 0), lower.arg64(i, 1)];
            lower.emit64(i, Op::Add, &s);
            preds_unknown(lower, i);
        }
        S::Iadd3 { x: false, .. } => {
            let s = [lower.arg(i, 0), lower.arg(i, 1), lower.arg(i, 2)];
            lower.emit(i, Op::Add, &s, &[d0, p0, p1]);
        }
        S::Iadd { x: false, .. } => {
            let s = [lower.arg(i, 0), lower.arg(i, 1)];
            lower.emit(i, Op::Add, &s, &[d0, p0]);
        }
        S::Iadd3 { x: true, wide: false } => {
            let s = [lower.arg(i, 0), lower.arg(i, 1), lower.arg(i, 2), Lower::pred(i.psrc[0]), Lower::pred(i.psrc[1])];
            lower.emit(i, Op::AddX, &s, &[d0]);
            preds_unknown(lower, i);
        }
        S::Iadd { x: true, wide: false } => {
            let s = [lower.arg(i, 0), lower.arg(i, 1), SrcOperand::imm(0), Lower::pred(i.psrc[0])];
            lower.emit(i, Op::AddX, &s, &[d0]);
            preds_unknown(lower, i);
        }
        S::Viadd { lanes: Lanes::One } => {
            let s = [lower.arg(i, 0), lower.arg(i, 1)];
            lower.emit(i, Op::Add, &s, &[d0]);
        }
        S::Lea { hi: false, x: false, shift, .. } => {
            let s = [lower.arg(i, 0), lower.arg(i, 1)];
            lower.emit(i, Op::Lea { shift }, &s, &[d0, p0]);
        }
        S::Lea { hi: true, x: false, sx32, shift } if !i.pdst[0].is_true() => {
            // The carry is that of the addition.
            let c = if sx32 { SrcOperand::imm(0) } else { lower.arg(i, 2) };
            let (s, addend) = ([lower.arg(i, 0), SrcOperand::imm(0), c], lower.arg(i, 1));
            let high = lower.f.var(Class::W32);
            lower.emit_always(i, Op::LeaHi { shift, sx: sx32, x: false }, &s, &[high]);
            lower.emit(i, Op::Add, &[SrcOperand::var(high), addend], &[d0, p0]);
        }
        S::Lea { hi: true, x, sx32, shift } => {
            let c = if sx32 { SrcOperand::imm(0) } else { lower.arg(i, 2) };
            let s = [lower.arg(i, 0), lower.arg(i, 1), c, Lower::pred(i.psrc[0])];
            lower.emit(i, Op::LeaHi { shift, sx: sx32, x }, &s, &[d0]);
            preds_unknown(lower, i);
        }
        _ => return false,
    }
    true
}

/// Products, with what is added to them. See [`sum`].
fn product(lower: &mut Lower<'_>, i: &MachineInst) -> bool {
    use sass::Opcode as S;
    let d0 = lower.dst(i, 0);
    match i.op {
        S::Imad { kind: MulKind::Low, x, .. } => imad(lower, i, x, d0, Lower::pred_var(i.pdst[0])),
        S::Imad { kind: MulKind::Wide, signed, x: false } => {
            let s = [lower.arg(i, 0), lower.arg(i, 1), lower.arg64(i, 2)];
            let p0 = Lower::pred_var(i.pdst[0]);
            if p0 == Var::NONE {
                lower.emit64(i, Op::MadWide { signed }, &s);
            } else {
                let (whole, carry) = (lower.f.var(Class::W64), lower.f.var(Class::Pred));
                lower.emit_always(i, Op::MadWide { signed }, &s, &[whole, carry]);
                let d = [d0, lower.dst(i, 1)];
                lower.emit(i, Op::Unpack, &[SrcOperand::var(whole)], &d);
                lower.emit(i, Op::Mov, &[SrcOperand::var(carry)], &[p0]);
            }
        }
        S::Imad { kind: MulKind::Wide, signed: false, x: true } => {
            let s = [lower.arg(i, 0), lower.arg(i, 1), lower.arg64(i, 2), Lower::pred(i.psrc[0])];
            lower.emit64(i, Op::MadWideX, &s);
            preds_unknown(lower, i);
        }
        S::Imad { kind: MulKind::High, signed, x: false } => {
            let s = [lower.arg(i, 0), lower.arg(i, 1), lower.arg64(i, 2)];
            lower.emit(i, Op::MulHi { signed }, &s, &[d0]);
            preds_unknown(lower, i);
        }
        _ => return false,
    }
    true
}

/// The smaller or the larger of some numbers. See [`sum`].
fn extreme(lower: &mut Lower<'_>, i: &MachineInst) -> bool {
    use sass::Opcode as S;
    let d0 = lower.dst(i, 0);
    match i.op {
        S::Imnmx { ty } if !ty.wide() => {
            let s = [lower.arg(i, 0), lower.arg(i, 1), Lower::pred(i.psrc[0])];
            lower.emit(i, Op::MinMax { signed: ty.signed() }, &s, &[d0]);
            preds_unknown(lower, i);
        }
        S::Imnmx { ty } => {
            let s = [lower.arg64(i, 0), lower.arg64(i, 1), Lower::pred(i.psrc[0])];
            lower.emit64(i, Op::MinMax { signed: ty.signed() }, &s);
            preds_unknown(lower, i);
        }
        S::Vimnmx { ty, relu: false } if scalar(ty).is_some() => {
            let signed = scalar(ty) == Some(true);
            let s = [lower.arg(i, 0), lower.arg(i, 1), Lower::pred(i.psrc[0])];
            lower.emit(i, Op::MinMax { signed }, &s, &[d0]);
            preds_unknown(lower, i);
        }
        S::Vimnmx3 { ty, relu: false } if scalar(ty).is_some() => {
            let signed = scalar(ty) == Some(true);
            let p = Lower::pred(i.psrc[0]);
            let s = [lower.arg(i, 0), lower.arg(i, 1), lower.arg(i, 2)];
            let t = lower.f.var(Class::W32);
            lower.emit_always(i, Op::MinMax { signed }, &[s[0], s[1], p], &[t]);
            lower.emit(i, Op::MinMax { signed }, &[SrcOperand::var(t), s[2], p], &[d0]);
            preds_unknown(lower, i);
        }
        S::Viaddmnmx { ty, relu: false } if scalar(ty).is_some() => {
            let signed = scalar(ty) == Some(true);
            let p = Lower::pred(i.psrc[0]);
            let s = [lower.arg(i, 0), lower.arg(i, 1), lower.arg(i, 2)];
            let t = lower.f.var(Class::W32);
            lower.emit_always(i, Op::Add, &s[..2], &[t]);
            lower.emit(i, Op::MinMax { signed }, &[SrcOperand::var(t), s[2], p], &[d0]);
            preds_unknown(lower, i);
        }
        _ => return false,
    }
    true
}

/// Why the result of an instruction is not followed.
fn unfollowed(i: &MachineInst) -> Reason {
    use sass::Opcode as S;
    match i.op {
        S::Vote { .. } | S::Shfl { .. } | S::Match { .. } | S::Redux { .. } | S::Elect | S::R2ur { .. } => {
            Reason::CrossLane
        }
        // B2R: the result of a barrier (`__syncthreads_or`).
        S::Other(OtherKind::Control) if i.opcode == 0x31c => Reason::CrossLane,
        S::F2i { .. } | S::Mufu { .. } | S::Other(OtherKind::Float | OtherKind::Tensor) => Reason::Float,
        S::Arithmetic(op) if op.kind() != OtherKind::Integer => Reason::Float,
        S::Bmsk { .. } | S::Prmt { .. } => Reason::Bits,
        _ => Reason::Instruction,
    }
}

/// A call of the compiler's own function for divisions of 64 bits. Code of `nvcc -G` calls them
/// as it calls any function: the operands are in R4 to R7, the result in R4 and R5 (seen in
/// code of nvcc 13.0 for sm_75 to sm_120). What else a function leaves behind is not read.
pub(super) fn division(lower: &mut Lower<'_>, i: &MachineInst) -> bool {
    let op = match lower.code.links.calls.get(&i.pc).map(String::as_str) {
        Some("__cuda_sm20_div_s64") => Op::Div { signed: true },
        Some("__cuda_sm20_div_u64") => Op::Div { signed: false },
        Some("__cuda_sm20_rem_s64") => Op::Rem { signed: true },
        Some("__cuda_sm20_rem_u64") => Op::Rem { signed: false },
        _ => return false,
    };
    let pair = |low: u32| SrcOperand::new(Src::Pair(Var(low), Var(low + 1)));
    let result = lower.f.var(Class::W64);
    lower.emit_always(i, op, &[pair(4), pair(6)], &[result]);
    lower.emit_always(i, Op::Unpack, &[SrcOperand::var(result)], &[Var(4), Var(5)]);
    true
}

/// Several words moved at once: through temporaries, since a destination may be a source.
pub(super) fn parallel_move(lower: &mut Lower<'_>, i: &MachineInst, srcs: &[SrcOperand], dsts: &[Var]) {
    lower.emit(i, Op::Mov, srcs, dsts);
}

/// Predicate destinations that no rule covers; after the instruction itself, which may read
/// them.
pub(super) fn preds_unknown(lower: &mut Lower<'_>, i: &MachineInst) {
    let d: Vec<Var> = i.pdst.map(Lower::pred_var).into_iter().filter(|p| *p != Var::NONE).collect();
    if !d.is_empty() {
        lower.emit(i, Op::Unknown(Reason::Instruction), &[], &d);
    }
}

fn imad(lower: &mut Lower<'_>, i: &MachineInst, x: bool, d0: Var, p0: Var) {
    let s = [lower.arg(i, 0), lower.arg(i, 1), lower.arg(i, 2)];
    let carry = Lower::pred(i.psrc[0]);
    let zero = s[0].src == Src::Imm(0) || s[1].src == Src::Imm(0);
    let one = s[1].is_imm(1);
    match (x, zero, one) {
        (false, true, _) if s[2].prefix == Prefix::None && p0 == Var::NONE => lower.emit(i, Op::Mov, &s[2..], &[d0]),
        (false, true, _) => lower.emit(i, Op::Add, &[s[2]], &[d0, p0]),
        (false, _, true) => lower.emit(i, Op::Add, &[s[0], s[2]], &[d0, p0]),
        (false, ..) => lower.emit(i, Op::Mad, &s, &[d0, p0]),
        (true, true, _) => {
            lower.emit(i, Op::AddX, &[s[2], SrcOperand::imm(0), SrcOperand::imm(0), carry], &[d0]);
            preds_unknown(lower, i);
        }
        (true, _, true) => {
            lower.emit(i, Op::AddX, &[s[0], s[2], SrcOperand::imm(0), carry], &[d0]);
            preds_unknown(lower, i);
        }
        (true, ..) => {
            lower.emit(i, Op::MadX, &[s[0], s[1], s[2], carry], &[d0]);
            preds_unknown(lower, i);
        }
    }
}

fn lop3(lower: &mut Lower<'_>, i: &MachineInst, lut: u8, pand: bool, d0: Var, p0: Var) {
    let s = [lower.arg(i, 0), lower.arg(i, 1), lower.arg(i, 2)];
    if p0 == Var::NONE {
        lower.emit(i, Op::Lop3 { lut }, &s, &[d0]);
        return;
    }
    let neutral = if pand { i.psrc[0].always() } else { i.psrc[0].never() };
    if neutral {
        // The result register is needed as a destination for the predicate's sake.
        let d = if d0 == Var::NONE { lower.f.var(Class::W32) } else { d0 };
        lower.emit(i, Op::Lop3 { lut }, &s, &[d, p0]);
        return;
    }
    let d = if d0 == Var::NONE { lower.f.var(Class::W32) } else { d0 };
    let t = lower.f.var(Class::Pred);
    lower.emit(i, Op::Lop3 { lut }, &s, &[d, t]);
    let tables = if pand { AND } else { OR };
    let q = [SrcOperand::var(t), Lower::pred(i.psrc[0]), SrcOperand::imm(0)];
    lower.emit(i, Op::PLut { lut0: tables, lut1: tables }, &q, &[p0]);
}

#[allow(clippy::too_many_arguments)]
fn isetp(
    lower: &mut Lower<'_>,
    i: &MachineInst,
    cmp: sass::Comparison,
    bop: BoolOp,
    ty: sass::IntTy,
    ex: bool,
    p0: Var,
    p1: Var,
) {
    let combine = combination(bop);
    let with = Lower::pred(i.psrc[0]);
    let (a, b) = if ty.wide() { (lower.arg64(i, 0), lower.arg64(i, 1)) } else { (lower.arg(i, 0), lower.arg(i, 1)) };
    let zero = SrcOperand::imm(0);
    let (cmp, a, b) = match cmp {
        sass::Comparison::F => (Cmp::Ne, zero, zero),
        sass::Comparison::T => (Cmp::Eq, zero, zero),
        sass::Comparison::Lt => (Cmp::Lt, a, b),
        sass::Comparison::Le => (Cmp::Le, a, b),
        sass::Comparison::Gt => (Cmp::Gt, a, b),
        sass::Comparison::Ge => (Cmp::Ge, a, b),
        sass::Comparison::Eq => (Cmp::Eq, a, b),
        sass::Comparison::Ne => (Cmp::Ne, a, b),
    };
    let signed = ty.signed();
    if ex {
        let low = Lower::pred(i.psrc[1]);
        lower.emit(i, Op::CmpX { cmp, signed, combine }, &[a, b, with, low], &[p0, p1]);
    } else {
        lower.emit(i, Op::Cmp { cmp, signed, wide: ty.wide(), combine }, &[a, b, with], &[p0, p1]);
    }
}

/// The bits of a floating point source.
pub(super) fn float(lower: &mut Lower<'_>, i: &MachineInst, k: usize, wide: bool) -> SrcOperand {
    let bare = sass::InstOperand { neg: false, abs: false, ..i.src[k] };
    let o = if wide { lower.src(i, &sass::InstOperand { regs: 2, ..bare }) } else { lower.src(i, &bare) };
    let (neg, abs) = (i.src[k].neg, i.src[k].abs);
    let sign = match (neg, abs) {
        (false, false) => return o,
        // Table of `a & ~b`, `a ^ b`, `a | b`.
        (false, true) => 0x30,
        (true, false) => 0x3c,
        (true, true) => OR,
    };
    let t = lower.f.var(if wide { Class::W64 } else { Class::W32 });
    let bit = SrcOperand::imm(if wide { 1 << 63 } else { 1 << 31 });
    lower.emit_always(i, Op::Lop3 { lut: sign }, &[o, bit, SrcOperand::imm(0)], &[t]);
    SrcOperand::var(t)
}

fn special(lower: &mut Lower<'_>, i: &MachineInst, sr: SpecialReg, wide: bool) {
    let s = match sr {
        SpecialReg::TID_X => Special::Tid(0),
        SpecialReg::TID_Y => Special::Tid(1),
        SpecialReg::TID_Z => Special::Tid(2),
        SpecialReg::CTAID_X => Special::Ctaid(0),
        SpecialReg::CTAID_Y => Special::Ctaid(1),
        SpecialReg::CTAID_Z => Special::Ctaid(2),
        SpecialReg::LANE_ID => Special::Lane,
        SpecialReg::CGA_CTA_ID => Special::ClusterRank,
        SpecialReg::ZERO => {
            let n = i.dst.map_or(0, |r| usize::from(r.count)).max(1);
            let d: Vec<Var> = (0..n).map(|k| lower.dst(i, k as u8)).collect();
            lower.emit(i, Op::Mov, &vec![SrcOperand::imm(0); n], &d);
            return;
        }
        SpecialReg::LOCAL_WINDOW_HI | SpecialReg::SHARED_WINDOW_HI => {
            lower.give_up(i, Reason::Window);
            return;
        }
        _ => {
            lower.give_up(i, Reason::Special);
            return;
        }
    };
    if wide {
        lower.give_up(i, Reason::Special);
    } else {
        let d = lower.dst(i, 0);
        lower.emit(i, Op::Mov, &[SrcOperand::new(Src::Special(s))], &[d]);
    }
}

/// Signedness of a packed type that is one 32-bit lane.
fn scalar(ty: VecTy) -> Option<bool> {
    match ty {
        VecTy::U32 => Some(false),
        VecTy::S32 => Some(true),
        _ => None,
    }
}
