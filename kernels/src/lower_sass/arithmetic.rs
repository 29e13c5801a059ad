//! What SASS integer, logic, move and predicate instructions compute.
//!
//! Owns results in registers. Predicates as bits of a word are in `predicate_words`, memory is in
//! `memory_access`, jumps are in `control_flow`.

use super::Lower;
use crate::ir::{Class, Cmp, Combine, Op, Prefix, Pure, Reason, Special, Src, SrcOperand, Var};
use device_code::arch::Generation;
use device_code::sass::{self, BoolOp, Lanes, MachineInst, MemTy, MulKind, OtherKind, SpecialReg, VecTy};

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

impl Lower<'_> {
    /// Lowers one instruction that is neither memory nor control flow.
    pub(super) fn alu(&mut self, i: &MachineInst) {
        use sass::Opcode as S;
        let d0 = self.dst(i, 0);
        let [p0, p1] = i.pdst.map(Self::pred_var);
        match i.op {
            _ if self.pure(i) => {}
            S::Mov { wide } => {
                if wide {
                    let s = i.src[0];
                    let w = [self.word(i, &s, 0), self.word(i, &s, 1)];
                    let d = [d0, self.dst(i, 1)];
                    self.parallel_move(i, &w, &d);
                } else {
                    let s = self.arg(i, 0);
                    self.emit(i, Op::Mov, &[s], &[d0]);
                }
            }
            S::R2ur { or: false } => {
                let s = self.arg(i, 0);
                self.emit(i, Op::Mov, &[s], &[d0]);
                self.preds_unknown(i);
            }
            S::Sel { wide } => {
                let p = Self::pred(i.psrc[0]);
                if wide {
                    let (a, b) = (self.arg64(i, 0), self.arg64(i, 1));
                    self.emit64(i, Op::Sel, &[a, b, p]);
                } else {
                    let (a, b) = (self.arg(i, 0), self.arg(i, 1));
                    self.emit(i, Op::Sel, &[a, b, p], &[d0]);
                }
            }
            S::Iadd3 { x: false, wide: true } => {
                let s = [self.arg64(i, 0), self.arg64(i, 1), self.arg64(i, 2)];
                self.emit64(i, Op::Add, &s);
                self.preds_unknown(i);
            }
            S::Iadd { x: false, wide: true } => {
                let s = [self.arg64(i, 0), self.arg64(i, 1)];
                self.emit64(i, Op::Add, &s);
                self.preds_unknown(i);
            }
            S::Iadd3 { x: false, .. } => {
                let s = [self.arg(i, 0), self.arg(i, 1), self.arg(i, 2)];
                self.emit(i, Op::Add, &s, &[d0, p0, p1]);
            }
            S::Iadd { x: false, .. } => {
                let s = [self.arg(i, 0), self.arg(i, 1)];
                self.emit(i, Op::Add, &s, &[d0, p0]);
            }
            S::Iadd3 { x: true, wide: false } => {
                let s = [self.arg(i, 0), self.arg(i, 1), self.arg(i, 2), Self::pred(i.psrc[0]), Self::pred(i.psrc[1])];
                self.emit(i, Op::AddX, &s, &[d0]);
                self.preds_unknown(i);
            }
            S::Iadd { x: true, wide: false } => {
                let s = [self.arg(i, 0), self.arg(i, 1), SrcOperand::imm(0), Self::pred(i.psrc[0])];
                self.emit(i, Op::AddX, &s, &[d0]);
                self.preds_unknown(i);
            }
            S::Viadd { lanes: Lanes::One } => {
                let s = [self.arg(i, 0), self.arg(i, 1)];
                self.emit(i, Op::Add, &s, &[d0]);
            }
            S::Lea { hi: false, x: false, shift, .. } => {
                let s = [self.arg(i, 0), self.arg(i, 1)];
                self.emit(i, Op::Lea { shift }, &s, &[d0, p0]);
            }
            S::Lea { hi: true, x: false, sx32, shift } if !i.pdst[0].is_true() => {
                // The carry is that of the addition.
                let c = if sx32 { SrcOperand::imm(0) } else { self.arg(i, 2) };
                let (s, addend) = ([self.arg(i, 0), SrcOperand::imm(0), c], self.arg(i, 1));
                let high = self.f.var(Class::W32);
                self.emit_always(i, Op::LeaHi { shift, sx: sx32, x: false }, &s, &[high]);
                self.emit(i, Op::Add, &[SrcOperand::var(high), addend], &[d0, p0]);
            }
            S::Lea { hi: true, x, sx32, shift } => {
                let c = if sx32 { SrcOperand::imm(0) } else { self.arg(i, 2) };
                let s = [self.arg(i, 0), self.arg(i, 1), c, Self::pred(i.psrc[0])];
                self.emit(i, Op::LeaHi { shift, sx: sx32, x }, &s, &[d0]);
                self.preds_unknown(i);
            }
            S::Imad { kind: MulKind::Low, x, .. } => self.imad(i, x, d0, p0),
            S::Imad { kind: MulKind::Wide, signed, x: false } => {
                let s = [self.arg(i, 0), self.arg(i, 1), self.arg64(i, 2)];
                self.emit64(i, Op::MadWide { signed }, &s);
                self.preds_unknown(i);
            }
            S::Imad { kind: MulKind::High, signed, x: false } => {
                let s = [self.arg(i, 0), self.arg(i, 1), self.arg64(i, 2)];
                self.emit(i, Op::MulHi { signed }, &s, &[d0]);
                self.preds_unknown(i);
            }
            S::Iabs => {
                let s = self.arg(i, 0);
                self.emit(i, Op::Abs, &[s], &[d0]);
            }
            S::Imnmx { ty } if !ty.wide() => {
                let s = [self.arg(i, 0), self.arg(i, 1), Self::pred(i.psrc[0])];
                self.emit(i, Op::MinMax { signed: ty.signed() }, &s, &[d0]);
                self.preds_unknown(i);
            }
            S::Imnmx { ty } => {
                let s = [self.arg64(i, 0), self.arg64(i, 1), Self::pred(i.psrc[0])];
                self.emit64(i, Op::MinMax { signed: ty.signed() }, &s);
                self.preds_unknown(i);
            }
            S::Vimnmx { ty, relu: false } if scalar(ty).is_some() => {
                let signed = scalar(ty) == Some(true);
                let s = [self.arg(i, 0), self.arg(i, 1), Self::pred(i.psrc[0])];
                self.emit(i, Op::MinMax { signed }, &s, &[d0]);
                self.preds_unknown(i);
            }
            S::Vimnmx3 { ty, relu: false } if scalar(ty).is_some() => {
                let signed = scalar(ty) == Some(true);
                let p = Self::pred(i.psrc[0]);
                let s = [self.arg(i, 0), self.arg(i, 1), self.arg(i, 2)];
                let t = self.f.var(Class::W32);
                self.emit_always(i, Op::MinMax { signed }, &[s[0], s[1], p], &[t]);
                self.emit(i, Op::MinMax { signed }, &[SrcOperand::var(t), s[2], p], &[d0]);
                self.preds_unknown(i);
            }
            S::Viaddmnmx { ty, relu: false } if scalar(ty).is_some() => {
                let signed = scalar(ty) == Some(true);
                let p = Self::pred(i.psrc[0]);
                let s = [self.arg(i, 0), self.arg(i, 1), self.arg(i, 2)];
                let t = self.f.var(Class::W32);
                self.emit_always(i, Op::Add, &s[..2], &[t]);
                self.emit(i, Op::MinMax { signed }, &[SrcOperand::var(t), s[2], p], &[d0]);
                self.preds_unknown(i);
            }
            S::Lop3 { lut, pand } => self.lop3(i, lut, pand, d0, p0),
            S::Shf { right, ty, hi, wrap } => {
                let s = [self.arg(i, 0), self.arg(i, 1), self.arg(i, 2)];
                self.emit(i, Op::Funnel { right, hi, signed: ty.signed(), wide: ty.wide(), wraps: wrap }, &s, &[d0]);
            }
            S::Prmt { mode: 0 } => {
                let s = [self.arg(i, 0), self.arg(i, 1), self.arg(i, 2)];
                self.emit(i, Op::Prmt, &s, &[d0]);
            }
            S::Sgxt { signed, wrap } => match i.src.get(1).and_then(sass::InstOperand::as_imm) {
                Some(bits @ 1..=32) => {
                    let s = self.arg(i, 0);
                    self.emit(i, Op::Ext { bits: bits as u8, signed }, &[s], &[d0]);
                }
                None if !wrap => {
                    let (value, count) = (self.arg(i, 0), self.arg(i, 1));
                    let most = self.f.var(Class::W32);
                    let least = [count, SrcOperand::imm(32), SrcOperand::imm(1)];
                    self.emit_always(i, Op::MinMax { signed: false }, &least, &[most]);
                    let of = [value, SrcOperand::imm(0), SrcOperand::var(most)];
                    self.emit(i, Op::Pure(Pure::Extract { wide: false, signed }), &of, &[d0]);
                }
                _ => self.give_up(i, Reason::Bits),
            },
            S::Isetp { cmp, bop, ty, ex } => self.isetp(i, cmp, bop, ty, ex, p0, p1),
            S::Fsetp { cmp: 0 | 15, wide: true, .. } => self.give_up(i, Reason::Float),
            S::Fsetp { cmp, bop, wide, ftz } => {
                let [a, b] = [0, 1].map(|k| self.float(i, k, wide));
                let combine = combination(bop);
                let op = Op::FloatCmp { cmp, wide, flush: ftz, combine };
                self.emit(i, op, &[a, b, Self::pred(i.psrc[0])], &[p0, p1]);
            }
            S::Plop3 { lut0, lut1 } => {
                let s = i.psrc.map(Self::pred);
                self.emit(i, Op::PLut { lut0, lut1 }, &s, &[p0, p1]);
            }
            S::S2r { sr, wide } => self.special(i, sr, wide),
            S::I2f { round, .. } => {
                let s = self.arg(i, 0);
                if i.dst.is_some_and(|r| r.count == 1) {
                    self.emit(i, Op::IntToFloat { up: round == 2 }, &[s], &[d0]);
                } else {
                    self.give_up(i, Reason::Float);
                }
            }
            // A choice between numbers.
            S::Arithmetic(sass::Arithmetic::Fsel { ftz: false }) => {
                let s = [self.float(i, 0, false), self.float(i, 1, false), Self::pred(i.psrc[0])];
                self.emit(i, Op::Sel, &s, &[d0]);
            }
            S::Mufu { func: 4, .. } if i.dst.is_some_and(|r| r.count == 1) => {
                let s = self.arg(i, 0);
                self.emit(i, Op::Rcp, &[s], &[d0]);
            }
            S::LoadConst { ty, mode } => self.load_const(i, ty, mode),
            S::Shfl { mode } if i.pdst[0].is_true() => {
                let s = [self.arg(i, 0), self.arg(i, 1), self.arg(i, 2)];
                self.emit(i, Op::Shuffle { mode: mode as u8 }, &s, &[d0]);
            }
            S::Vote { .. } | S::Shfl { .. } | S::Match { .. } | S::Redux { .. } | S::Elect | S::R2ur { .. } => {
                self.give_up(i, Reason::CrossLane);
            }
            S::F2i { .. } | S::Mufu { .. } | S::Other(OtherKind::Float | OtherKind::Tensor) => {
                self.give_up(i, Reason::Float);
            }
            S::Arithmetic(op) if op.kind() != OtherKind::Integer => self.give_up(i, Reason::Float),
            // One predicate put by, as a rule for a comparison with zero that takes it back.
            S::P2r { byte: 0 } if let Some((bit, p)) = Self::put_by(i) => {
                self.emit(i, Op::Sel, &[SrcOperand::imm(bit), SrcOperand::imm(0), p], &[d0]);
            }
            S::P2r { byte } => self.predicates_to_word(i, byte, d0),
            S::R2p { byte } => self.word_to_predicates(i, byte),
            S::Bmsk { .. } | S::Prmt { .. } => {
                self.give_up(i, Reason::Bits);
            }
            _ => self.give_up(i, Reason::Instruction),
        }
    }

    /// A call of the compiler's own function for divisions of 64 bits. Code of `nvcc -G` calls them
    /// as it calls any function: the operands are in R4 to R7, the result in R4 and R5 (seen in
    /// code of nvcc 13.0 for sm_75 to sm_120). What else a function leaves behind is not read.
    pub(super) fn division(&mut self, i: &MachineInst) -> bool {
        let op = match self.code.links.calls.get(&i.pc).map(String::as_str) {
            Some("__cuda_sm20_div_s64") => Op::Div { signed: true },
            Some("__cuda_sm20_div_u64") => Op::Div { signed: false },
            Some("__cuda_sm20_rem_s64") => Op::Rem { signed: true },
            Some("__cuda_sm20_rem_u64") => Op::Rem { signed: false },
            _ => return false,
        };
        let pair = |low: u32| SrcOperand::new(Src::Pair(Var(low), Var(low + 1)));
        let result = self.f.var(Class::W64);
        self.emit_always(i, op, &[pair(4), pair(6)], &[result]);
        self.emit_always(i, Op::Unpack, &[SrcOperand::var(result)], &[Var(4), Var(5)]);
        true
    }

    /// Several words moved at once: through temporaries, since a destination may be a source.
    pub(super) fn parallel_move(&mut self, i: &MachineInst, srcs: &[SrcOperand], dsts: &[Var]) {
        self.emit(i, Op::Mov, srcs, dsts);
    }

    /// Predicate destinations that no rule covers; after the instruction itself, which may read
    /// them.
    pub(super) fn preds_unknown(&mut self, i: &MachineInst) {
        let d: Vec<Var> = i.pdst.map(Self::pred_var).into_iter().filter(|p| *p != Var::NONE).collect();
        if !d.is_empty() {
            self.emit(i, Op::Unknown(Reason::Instruction), &[], &d);
        }
    }

    fn imad(&mut self, i: &MachineInst, x: bool, d0: Var, p0: Var) {
        let s = [self.arg(i, 0), self.arg(i, 1), self.arg(i, 2)];
        let carry = Self::pred(i.psrc[0]);
        let zero = s[0].src == Src::Imm(0) || s[1].src == Src::Imm(0);
        let one = s[1].is_imm(1);
        match (x, zero, one) {
            (false, true, _) if s[2].prefix == Prefix::None && p0 == Var::NONE => self.emit(i, Op::Mov, &s[2..], &[d0]),
            (false, true, _) => self.emit(i, Op::Add, &[s[2]], &[d0, p0]),
            (false, _, true) => self.emit(i, Op::Add, &[s[0], s[2]], &[d0, p0]),
            (false, ..) => self.emit(i, Op::Mad, &s, &[d0, p0]),
            (true, true, _) => {
                self.emit(i, Op::AddX, &[s[2], SrcOperand::imm(0), SrcOperand::imm(0), carry], &[d0]);
                self.preds_unknown(i);
            }
            (true, _, true) => {
                self.emit(i, Op::AddX, &[s[0], s[2], SrcOperand::imm(0), carry], &[d0]);
                self.preds_unknown(i);
            }
            (true, ..) => {
                self.emit(i, Op::MadX, &[s[0], s[1], s[2], carry], &[d0]);
                self.preds_unknown(i);
            }
        }
    }

    fn lop3(&mut self, i: &MachineInst, lut: u8, pand: bool, d0: Var, p0: Var) {
        let s = [self.arg(i, 0), self.arg(i, 1), self.arg(i, 2)];
        if p0 == Var::NONE {
            self.emit(i, Op::Lop3 { lut }, &s, &[d0]);
            return;
        }
        let neutral = if pand { i.psrc[0].always() } else { i.psrc[0].never() };
        if neutral {
            // The result register is needed as a destination for the predicate's sake.
            let d = if d0 == Var::NONE { self.f.var(Class::W32) } else { d0 };
            self.emit(i, Op::Lop3 { lut }, &s, &[d, p0]);
            return;
        }
        let d = if d0 == Var::NONE { self.f.var(Class::W32) } else { d0 };
        let t = self.f.var(Class::Pred);
        self.emit(i, Op::Lop3 { lut }, &s, &[d, t]);
        let tables = if pand { AND } else { OR };
        let q = [SrcOperand::var(t), Self::pred(i.psrc[0]), SrcOperand::imm(0)];
        self.emit(i, Op::PLut { lut0: tables, lut1: tables }, &q, &[p0]);
    }

    #[allow(clippy::too_many_arguments)]
    fn isetp(
        &mut self,
        i: &MachineInst,
        cmp: sass::Comparison,
        bop: BoolOp,
        ty: sass::IntTy,
        ex: bool,
        p0: Var,
        p1: Var,
    ) {
        let combine = combination(bop);
        let with = Self::pred(i.psrc[0]);
        let (a, b) = if ty.wide() { (self.arg64(i, 0), self.arg64(i, 1)) } else { (self.arg(i, 0), self.arg(i, 1)) };
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
            let low = Self::pred(i.psrc[1]);
            self.emit(i, Op::CmpX { cmp, signed, combine }, &[a, b, with, low], &[p0, p1]);
        } else {
            self.emit(i, Op::Cmp { cmp, signed, wide: ty.wide(), combine }, &[a, b, with], &[p0, p1]);
        }
    }

    /// The bits of a floating point source.
    pub(super) fn float(&mut self, i: &MachineInst, k: usize, wide: bool) -> SrcOperand {
        let bare = sass::InstOperand { neg: false, abs: false, ..i.src[k] };
        let o = if wide { self.src(i, &sass::InstOperand { regs: 2, ..bare }) } else { self.src(i, &bare) };
        let (neg, abs) = (i.src[k].neg, i.src[k].abs);
        let sign = match (neg, abs) {
            (false, false) => return o,
            // Table of `a & ~b`, `a ^ b`, `a | b`.
            (false, true) => 0x30,
            (true, false) => 0x3c,
            (true, true) => OR,
        };
        let t = self.f.var(if wide { Class::W64 } else { Class::W32 });
        let bit = SrcOperand::imm(if wide { 1 << 63 } else { 1 << 31 });
        self.emit_always(i, Op::Lop3 { lut: sign }, &[o, bit, SrcOperand::imm(0)], &[t]);
        SrcOperand::var(t)
    }

    fn special(&mut self, i: &MachineInst, sr: SpecialReg, wide: bool) {
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
                let d: Vec<Var> = (0..n).map(|k| self.dst(i, k as u8)).collect();
                self.emit(i, Op::Mov, &vec![SrcOperand::imm(0); n], &d);
                return;
            }
            SpecialReg::LOCAL_WINDOW_HI | SpecialReg::SHARED_WINDOW_HI => {
                self.give_up(i, Reason::Window);
                return;
            }
            _ => {
                self.give_up(i, Reason::Special);
                return;
            }
        };
        if wide {
            self.give_up(i, Reason::Special);
        } else {
            let d = self.dst(i, 0);
            self.emit(i, Op::Mov, &[SrcOperand::new(Src::Special(s))], &[d]);
        }
    }

    /// The word of bank 0 whose lowest bytes these are, when it is a size of the grid or of a
    /// block. (Programs that cast such a size to a narrow type read only as much of it.)
    fn part_of_size(&mut self, c: sass::ConstRef, bytes: u8) -> Option<SrcOperand> {
        match self.constant(c, 4) {
            Some(s @ Src::Special(Special::Ntid(_) | Special::Nctaid(_))) if bytes < 4 => Some(SrcOperand::new(s)),
            _ => None,
        }
    }

    fn load_const(&mut self, i: &MachineInst, ty: MemTy, mode: u8) {
        let Some(sass::Value::Const(c)) = i.src.first().map(|s| s.value) else {
            self.give_up(i, Reason::Constant);
            return;
        };
        let words = ty.regs();
        let d: Vec<Var> = (0..words).map(|k| self.dst(i, k)).collect();
        let bytes = ty.bytes() as u8;
        let signed = matches!(ty, MemTy::S8 | MemTy::S16);
        let index = match c.index {
            sass::Index::None => None,
            sass::Index::Reg(r) => Self::reg(r.0),
            sass::Index::UReg(r) => Self::ureg(r.0),
        };
        let bank0 = c.bank == sass::Bank::Number(0);
        if c.bank == sass::Bank::Number(3) && bytes >= 8 && self.loaded_constant(i, c.offset, index, &d) {
            return;
        }
        match index {
            None => {
                let c = sass::ConstRef { index: sass::Index::None, ..c };
                if bytes >= 4 {
                    let s: Option<Vec<SrcOperand>> = (0..words)
                        .map(|k| {
                            let c = sass::ConstRef { offset: c.offset + 4 * i32::from(k), ..c };
                            self.constant(c, 4).map(SrcOperand::new)
                        })
                        .collect();
                    match s {
                        Some(s) => self.parallel_move(i, &s, &d),
                        None => self.give_up(i, Reason::Constant),
                    }
                    return;
                }
                match self.constant(c, bytes) {
                    Some(s @ Src::Param { .. }) => {
                        self.emit(i, Op::Ext { bits: 8 * bytes, signed }, &[SrcOperand::new(s)], &d);
                    }
                    _ => match self.part_of_size(c, bytes) {
                        Some(size) => self.emit(i, Op::Ext { bits: 8 * bytes, signed }, &[size], &d),
                        None => self.give_up(i, Reason::Constant),
                    },
                }
            }
            // The driver's words for a cooperative launch, from sm_100 on one pair for each block
            // of a cluster (`SR_CgaSize * -0xa0`), far below the parameters: the same as without an
            // index.
            Some(_) if bank0 && self.code.generation >= Generation::Blackwell && (0x250..0x260).contains(&c.offset) => {
                self.give_up(i, Reason::Window);
            }
            Some(v) if bank0 && mode == 0 => {
                let off = c.offset - self.code.param_base as i32;
                self.emit(i, Op::ParamIndexed { off, bytes, signed }, &[SrcOperand::var(v)], &d);
            }
            Some(_) => self.give_up(i, Reason::Constant),
        }
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
