//! Text of instructions, close to what `nvdisasm` prints, for `explain`, tests and messages. Nothing parses it.
//!
//! Left out: scheduling, cache hints, memory order; operands of instructions of which only the effects are decoded.

use super::inst::Inst;
use super::op::*;
use super::operand::*;
use std::fmt::{self, Display, Formatter, Write as _};

impl Inst {
    /// The name of the operation without modifiers, e.g. `IADD3`, `ULEA`, `LDG`; `?` followed by the opcode when unknown.
    #[must_use]
    pub fn mnemonic(&self) -> String {
        let u = if self.uniform { "U" } else { "" };
        let space = self.mem.first().map(|m| m.space);
        let name = match self.op {
            Op::Mov { .. } => "MOV",
            Op::Sel { .. } => "SEL",
            Op::Iadd3 { .. } => "IADD3",
            Op::Iadd { .. } => "IADD",
            Op::Viadd { .. } => "VIADD",
            Op::Lea { .. } => "LEA",
            Op::Imad { .. } => "IMAD",
            Op::Iabs => "IABS",
            Op::Brev => "BREV",
            Op::Popc => "POPC",
            Op::Flo { .. } => "FLO",
            Op::Imnmx { .. } => "IMNMX",
            Op::Vimnmx { .. } => "VIMNMX",
            Op::Vimnmx3 { .. } => "VIMNMX3",
            Op::Viaddmnmx { .. } => "VIADDMNMX",
            Op::Lop3 { .. } => "LOP3",
            Op::Shf { .. } => "SHF",
            Op::Prmt { .. } => "PRMT",
            Op::Sgxt { .. } => "SGXT",
            Op::Bmsk { .. } => "BMSK",
            Op::Isetp { .. } => "ISETP",
            Op::Plop3 { .. } => "PLOP3",
            Op::P2r { .. } => return if self.uniform { "UP2UR" } else { "P2R" }.into(),
            Op::R2p { .. } => "R2P",
            Op::Vote { .. } => return if self.uniform { "VOTEU" } else { "VOTE" }.into(),
            Op::Shfl { .. } => "SHFL",
            Op::Match { .. } => "MATCH",
            Op::Redux { .. } => "REDUX",
            Op::Elect => "ELECT",
            Op::R2ur { .. } => "R2UR",
            Op::S2r { .. } => {
                return match self.opcode {
                    0x919 => "S2R",
                    0x9c3 => "S2UR",
                    0x805 => "CS2R",
                    _ => "CS2UR",
                }
                .into();
            }
            Op::Lepc => "LEPC",
            Op::I2f { .. } => "I2F",
            Op::F2i { .. } => "F2I",
            Op::Mufu { .. } => "MUFU",
            Op::LoadConst { .. } => {
                return match self.opcode {
                    0xb82 => "LDC",
                    0xab9 | 0xabb => "ULDC",
                    _ => "LDCU",
                }
                .into();
            }
            Op::Load { .. } => match space {
                Some(Space::Global) => "LDG",
                Some(Space::Shared) => "LDS",
                Some(Space::Local) => "LDL",
                _ => "LD",
            },
            Op::Store { .. } => match space {
                Some(Space::Global) => "STG",
                Some(Space::Shared) => "STS",
                Some(Space::Local) => "STL",
                Some(Space::RemoteShared) => "STAS",
                _ => "ST",
            },
            Op::Atom { .. } | Op::AtomCas { .. } => match space {
                Some(Space::Global) => "ATOMG",
                Some(Space::Shared) => "ATOMS",
                _ => "ATOM",
            },
            Op::Red { .. } => {
                if space == Some(Space::RemoteShared) {
                    "REDAS"
                } else {
                    "RED"
                }
            }
            Op::LoadMulticast => "LDGMC",
            Op::Matrix { store, .. } => {
                if store {
                    "STSM"
                } else {
                    "LDSM"
                }
            }
            Op::CopyAsync { .. } => "LDGSTS",
            Op::Bulk if self.opcode == 0x3bb => return "UBLKRED".into(),
            Op::Bulk => return "UBLKCP".into(),
            Op::BulkPrefetch => return "UBLKPF".into(),
            Op::TensorCopy { .. } => {
                return match self.opcode {
                    0x3b4 | 0x5b4 => "UTMALDG",
                    0x3b5 => "UTMASTG",
                    0x3b6 => "UTMAREDG",
                    0x5b8 => "UTMAPF",
                    _ => "UTMACCTL",
                }
                .into();
            }
            Op::Mbarrier => return if self.opcode == 0x9b0 { "ARRIVES" } else { "SYNCS" }.into(),
            Op::Texture => {
                return match self.opcode & 0x1ff {
                    0x160 => "TEX",
                    0x163 => "TLD4",
                    0x166 => "TLD",
                    0x16c => "TXD",
                    _ => "TXQ",
                }
                .into();
            }
            Op::Surface => {
                return match self.opcode & 0x1ff {
                    0x199 => "SULD",
                    0x19d => "SUST",
                    _ => "SURED",
                }
                .into();
            }
            Op::CacheCtl => return "CCTL".into(),
            Op::Qspc => "QSPC",
            Op::Bra { .. } => "BRA",
            Op::Brx => return if self.opcode == 0x958 { "BRXU" } else { "BRX" }.into(),
            Op::Jmp => "JMP",
            Op::Jmx => "JMX",
            Op::Call { .. } => "CALL",
            Op::Ret { .. } => "RET",
            Op::Exit => "EXIT",
            Op::Bssy { .. } => "BSSY",
            Op::Bsync { .. } => "BSYNC",
            Op::Break { .. } => "BREAK",
            Op::Warpsync { .. } => "WARPSYNC",
            Op::Bmov => "BMOV",
            Op::AcqBulk => "ACQBULK",
            Op::PreExit => "PREEXIT",
            Op::Other(kind) => {
                return other_name(self.opcode, kind).map_or_else(|| format!("?{:03x}", self.opcode), Into::into);
            }
            Op::Unknown => return format!("?{:03x}", self.opcode),
        };
        format!("{u}{name}")
    }

    fn modifiers(&self) -> Vec<&'static str> {
        let mut m: Vec<&'static str> = Vec::new();
        let mut add = |on: bool, name: &'static str| {
            if on && !name.is_empty() {
                m.push(name);
            }
        };
        match self.op {
            Op::Mov { wide } | Op::Sel { wide } => add(wide, "64"),
            Op::Iadd3 { x, wide } | Op::Iadd { x, wide } => {
                add(wide, "64");
                add(x, "X");
            }
            Op::Viadd { lanes } => {
                add(lanes == Lanes::Two, "16x2");
                add(lanes == Lanes::Four, "U8x4");
            }
            Op::Lea { hi, x, sx32, .. } => {
                add(hi, "HI");
                add(x, "X");
                add(sx32, "SX32");
            }
            Op::Imad { kind, signed, x } => {
                add(kind == MulKind::Wide, "WIDE");
                add(kind == MulKind::High, "HI");
                add(!signed, "U32");
                add(x, "X");
            }
            Op::Flo { signed, sh } => {
                add(!signed, "U32");
                add(sh, "SH");
            }
            Op::Imnmx { ty } => add(ty != IntTy::S32, int_name(ty)),
            Op::Vimnmx { ty, relu } | Op::Vimnmx3 { ty, relu } | Op::Viaddmnmx { ty, relu } => {
                add(true, vec_name(ty));
                add(relu, "RELU");
            }
            Op::Lop3 { pand, .. } => {
                add(true, "LUT");
                add(pand, "PAND");
            }
            Op::Shf { right, wrap, ty, hi } => {
                add(true, if right { "R" } else { "L" });
                add(wrap, "W");
                add(true, int_name(ty));
                add(hi, "HI");
            }
            Op::Prmt { mode } => add(true, ["", "F4E", "B4E", "RC8", "ECL", "ECR", "RC16", ""][usize::from(mode & 7)]),
            Op::Sgxt { signed, wrap } => {
                add(!signed, "U32");
                add(wrap, "W");
            }
            Op::Bmsk { wrap } => add(wrap, "W"),
            Op::Isetp { cmp, bop, ty, ex } => {
                add(true, ["F", "LT", "EQ", "LE", "GT", "NE", "GE", "T"][cmp as usize]);
                add(ty != IntTy::S32, int_name(ty));
                add(true, ["AND", "OR", "XOR"][bop as usize]);
                add(ex, "EX");
            }
            Op::Plop3 { .. } => add(true, "LUT"),
            Op::P2r { byte } => add(true, ["", "B1", "B2", "B3"][usize::from(byte & 3)]),
            Op::Vote { mode } => add(true, ["ALL", "ANY", "EQ"][mode as usize]),
            Op::Shfl { mode } => add(true, ["IDX", "UP", "DOWN", "BFLY"][mode as usize]),
            Op::Match { any, wide } => {
                add(true, if any { "ANY" } else { "ALL" });
                add(wide, "U64");
            }
            Op::Redux { op, signed } => {
                add(true, ["", "OR", "XOR", "SUM", "MIN", "MAX"][op as usize]);
                add(signed, "S32");
            }
            Op::R2ur { or } => add(or, "OR"),
            Op::I2f { signed, round, from, to } => {
                add(true, float_name(to));
                add(true, integer_name(signed, from));
                add(true, ["", "RM", "RP", "RZ"][usize::from(round & 3)]);
            }
            Op::F2i { signed, round, ftz, from, to } => {
                add(ftz, "FTZ");
                add(true, integer_name(signed, to));
                add(true, float_name(from));
                add(true, ["", "FLOOR", "CEIL", "TRUNC"][usize::from(round & 3)]);
            }
            Op::Mufu { func } => add(true, MUFU.get(usize::from(func)).copied().unwrap_or("")),
            Op::S2r { wide, .. } => add(matches!(self.opcode, 0x805 | 0x8cb) && !wide, "32"),
            Op::LoadConst { ty, mode } => {
                add(true, ["", "IL", "IS", "ISL"][usize::from(mode & 3)]);
                add(true, mem_name(ty));
            }
            Op::Load { ty } | Op::Store { ty } => {
                add(self.is_extended(), "E");
                add(true, mem_name(ty));
            }
            Op::Atom { op, ty } => {
                add(self.is_extended(), "E");
                add(true, atom_op_name(op));
                add(op != AtomOp::PopcInc, atom_ty_name(ty));
            }
            Op::Red { op, ty } => {
                add(self.is_extended(), "E");
                add(true, atom_op_name(op));
                add(self.mem.first().is_some_and(|m| m.space != Space::RemoteShared), atom_ty_name(ty));
            }
            Op::AtomCas { ty, cast } => {
                add(self.is_extended(), "E");
                add(true, ["CAS", "CAST", "CAST.SPIN"][cast as usize]);
                add(true, atom_ty_name(ty));
            }
            Op::LoadMulticast => add(true, "E"),
            Op::CopyAsync { bytes, zfill } => {
                add(true, "E");
                add(bytes == 8, "64");
                add(bytes == 16, "128");
                add(zfill, "ZFILL");
            }
            Op::Qspc | Op::CacheCtl => add(self.is_extended(), "E"),
            Op::Bra { mode } => add(true, ["", "U", "DIV", "CONV"][mode as usize]),
            Op::Call { abs } | Op::Ret { abs } => add(true, if abs { "ABS" } else { "REL" }),
            Op::Warpsync { collective } => {
                add(collective, "COLLECTIVE");
                add(self.src.is_empty(), "ALL");
            }
            _ => {}
        }
        m
    }

    /// 64-bit addressing of global or generic memory.
    fn is_extended(&self) -> bool {
        self.mem.first().is_some_and(|m| m.reaches_global() && (m.base64 || m.ubase.is_some() || m.desc.is_some()))
    }

    /// Operands in the order of `nvdisasm`.
    fn operands(&self) -> Vec<String> {
        let mut o: Vec<String> = Vec::new();
        let dst = |o: &mut Vec<String>| {
            if let Some(d) = self.dst {
                o.push(run_name(d));
            }
        };
        let sources = |o: &mut Vec<String>| o.extend(self.src.iter().map(ToString::to_string));
        match self.op {
            Op::Mov { .. }
            | Op::Iabs
            | Op::Brev
            | Op::Popc
            | Op::I2f { .. }
            | Op::F2i { .. }
            | Op::Mufu { .. }
            | Op::Redux { .. }
            | Op::LoadConst { .. } => {
                dst(&mut o);
                sources(&mut o);
            }
            Op::Flo { .. } | Op::R2ur { .. } => {
                dst(&mut o);
                if !self.pdst[0].is_true() || matches!(self.op, Op::R2ur { or: true }) {
                    let at = if matches!(self.op, Op::R2ur { .. }) { 0 } else { 1 };
                    o.insert(at, self.pdst[0].to_string());
                }
                sources(&mut o);
            }
            Op::Sel { .. }
            | Op::Viadd { .. }
            | Op::Shf { .. }
            | Op::Prmt { .. }
            | Op::Sgxt { .. }
            | Op::Bmsk { .. }
            | Op::Vimnmx { .. }
            | Op::Vimnmx3 { .. }
            | Op::Viaddmnmx { .. } => {
                dst(&mut o);
                if matches!(self.op, Op::Vimnmx { .. }) && !(self.pdst[0].is_true() && self.pdst[1].is_true()) {
                    o.extend(self.pdst.iter().map(ToString::to_string));
                }
                sources(&mut o);
                if !matches!(
                    self.op,
                    Op::Viadd { .. } | Op::Shf { .. } | Op::Prmt { .. } | Op::Sgxt { .. } | Op::Bmsk { .. }
                ) {
                    o.push(self.psrc[0].to_string());
                }
            }
            Op::Iadd3 { x, .. } | Op::Iadd { x, .. } | Op::Imad { x, .. } => {
                dst(&mut o);
                let outs = match self.op {
                    Op::Iadd3 { .. } => 2,
                    Op::Imad { kind: MulKind::Low, .. } => 0,
                    _ => 1,
                };
                o.extend(self.pdst[..outs].iter().map(ToString::to_string));
                sources(&mut o);
                if x {
                    let ins = if matches!(self.op, Op::Iadd3 { .. }) { 2 } else { 1 };
                    o.extend(self.psrc[..ins].iter().map(ToString::to_string));
                }
            }
            Op::Lea { x, shift, .. } => {
                dst(&mut o);
                o.push(self.pdst[0].to_string());
                sources(&mut o);
                o.push(hex(i64::from(shift)));
                if x {
                    o.push(self.psrc[0].to_string());
                }
            }
            Op::Imnmx { .. } => {
                if matches!(self.opcode, 0x217 | 0x817 | 0xa17 | 0xc17 | 0x285 | 0x885) {
                    o.extend(self.pdst.iter().filter(|p| !p.is_true()).map(ToString::to_string));
                }
                dst(&mut o);
                sources(&mut o);
                o.push(self.psrc[0].to_string());
                if !self.psrc[1].always() {
                    o.push(self.psrc[1].to_string());
                }
            }
            Op::Lop3 { lut, .. } => {
                if !self.pdst[0].is_true() {
                    o.push(self.pdst[0].to_string());
                }
                dst(&mut o);
                sources(&mut o);
                o.push(hex(i64::from(lut)));
                o.push(self.psrc[0].to_string());
            }
            Op::Isetp { ex, .. } => {
                o.extend(self.pdst.iter().map(ToString::to_string));
                sources(&mut o);
                o.push(self.psrc[0].to_string());
                if ex {
                    o.push(self.psrc[1].to_string());
                }
            }
            Op::Plop3 { lut0, lut1 } => {
                o.extend(self.pdst.iter().map(ToString::to_string));
                o.extend(self.psrc.iter().map(ToString::to_string));
                o.push(hex(i64::from(lut0)));
                o.push(hex(i64::from(lut1)));
            }
            Op::P2r { .. } => {
                dst(&mut o);
                o.push(if self.uniform { "UPR" } else { "PR" }.into());
                sources(&mut o);
            }
            Op::R2p { byte } => {
                o.push("PR".into());
                sources(&mut o);
                o[1] += ["", ".B1", ".B2", ".B3"][usize::from(byte & 3)];
            }
            Op::Vote { .. } => {
                if self.dst.is_some_and(|d| !d.is_dropped()) {
                    dst(&mut o);
                }
                o.push(self.pdst[0].to_string());
                o.push(self.psrc[0].to_string());
            }
            Op::Shfl { .. } => {
                o.push(self.pdst[0].to_string());
                dst(&mut o);
                sources(&mut o);
            }
            Op::Match { any, .. } => {
                if !any {
                    o.push(self.pdst[0].to_string());
                }
                dst(&mut o);
                sources(&mut o);
            }
            Op::Elect => {
                o.push(self.pdst[0].to_string());
                dst(&mut o);
                o.push(self.psrc[0].to_string());
            }
            Op::S2r { sr, .. } => {
                dst(&mut o);
                o.push(sr.to_string());
            }
            Op::Lepc => {
                dst(&mut o);
                if self.opcode == 0x94e {
                    o.push(hex(self.target.unwrap_or(0)));
                }
            }
            Op::Load { ty } => {
                if !self.pdst[0].is_true() {
                    o.push(self.pdst[0].to_string());
                }
                if ty == MemTy::B256
                    && let Some(d) = self.dst2
                {
                    o.push(run_name(d));
                }
                dst(&mut o);
                o.extend(self.mem.iter().map(ToString::to_string));
                if !self.psrc[0].always() {
                    o.push(self.psrc[0].to_string());
                }
            }
            Op::Atom { .. } | Op::AtomCas { .. } => {
                if self.mem.first().is_some_and(|m| m.space != Space::Shared) || self.dst.is_none() {
                    o.push(self.pdst[0].to_string());
                }
                dst(&mut o);
                o.extend(self.mem.iter().map(ToString::to_string));
                sources(&mut o);
            }
            Op::Qspc => {
                o.push(self.pdst[0].to_string());
                dst(&mut o);
                o.extend(self.mem.iter().map(ToString::to_string));
            }
            Op::CopyAsync { .. } => {
                o.extend(self.mem.iter().map(ToString::to_string));
                if let Some(from) = self.mem.get(1).filter(|m| m.ubase.is_none() && m.desc.is_none()) {
                    // The text shows that the register is a pair even where there is nothing to tell it from.
                    let name = from.base.to_string();
                    o[1] = o[1].replacen(&name, &format!("{name}.64"), 1);
                }
                if !self.psrc[0].always() {
                    o.push(self.psrc[0].to_string());
                }
            }
            Op::Store { .. } | Op::Red { .. } | Op::LoadMulticast | Op::Matrix { .. } | Op::CacheCtl => {
                dst(&mut o);
                o.extend(self.mem.iter().map(ToString::to_string));
                sources(&mut o);
            }
            Op::Bulk | Op::BulkPrefetch | Op::TensorCopy { .. } => {
                // Printed in the order of the encoding: `[UR32], [UR24], UR64, desc`.
                if self.opcode == 0x5b8 {
                    let map = self.mem.first().and_then(|m| m.ubase).unwrap_or(UReg::URZ);
                    o.extend(self.src.iter().map(|s| format!("[{s}]")));
                    o.push(format!("[{map}]"));
                    return o;
                }
                let mut parts: Vec<&Mem> = self.mem.iter().collect();
                if matches!(self.opcode, 0x3b5 | 0x3b6) {
                    parts.reverse();
                }
                o.extend(parts.iter().map(|m| format!("[{}]", m.ubase.unwrap_or(UReg::URZ))));
                sources(&mut o);
                if let Some(d) = self.mem.iter().find_map(|m| m.desc) {
                    o.push(format!("desc[{d}]"));
                }
            }
            Op::Mbarrier => {
                if !self.pdst[0].is_true() || self.opcode == 0x5a7 {
                    o.push(self.pdst[0].to_string());
                }
                dst(&mut o);
                o.extend(self.mem.iter().map(ToString::to_string));
                sources(&mut o);
            }
            Op::Bra { .. } => {
                if !self.psrc[0].always() {
                    o.push(self.psrc[0].to_string());
                }
                if self.opcode == 0x547 {
                    o.push(self.psrc[1].to_string());
                }
                sources(&mut o);
                o.push(hex(self.target.unwrap_or(0)));
            }
            Op::Brx | Op::Jmx | Op::Ret { .. } | Op::Call { .. } | Op::Jmp => {
                if !self.psrc[0].always() {
                    o.push(self.psrc[0].to_string());
                }
                let t = self.target.unwrap_or(0);
                match self.src.first() {
                    Some(s) if t == 0 && !matches!(self.op, Op::Ret { .. }) => o.push(s.to_string()),
                    Some(s) => o.push(format!("{s} {}", hex(t))),
                    None => o.push(hex(t)),
                }
            }
            Op::Exit => {
                if !self.psrc[0].always() {
                    o.push(self.psrc[0].to_string());
                }
            }
            Op::Bssy { barrier } | Op::Bsync { barrier } | Op::Break { barrier } => {
                if !self.psrc[0].always() {
                    o.push(self.psrc[0].to_string());
                }
                o.push(format!("B{barrier}"));
                if let Some(t) = self.target {
                    o.push(hex(t));
                }
            }
            Op::Warpsync { .. } => {
                if !self.psrc[0].always() {
                    o.push(self.psrc[0].to_string());
                }
                sources(&mut o);
                if let Some(t) = self.target {
                    o.push(hex(t));
                }
            }
            _ => {
                o.extend(self.pdst.iter().filter(|p| !p.is_true()).map(ToString::to_string));
                dst(&mut o);
            }
        }
        o
    }
}

impl Display for Inst {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.guard.always() {
            write!(f, "@{} ", self.guard)?;
        }
        f.write_str(&self.mnemonic())?;
        for m in self.modifiers() {
            write!(f, ".{m}")?;
        }
        for (n, operand) in self.operands().iter().enumerate() {
            f.write_str(if n == 0 { " " } else { ", " })?;
            f.write_str(operand)?;
        }
        Ok(())
    }
}

fn hex(v: i64) -> String {
    if v < 0 { format!("-{:#x}", v.unsigned_abs()) } else { format!("{v:#x}") }
}

fn run_name(r: Run) -> String {
    match r.file {
        File::R => Reg(r.first).to_string(),
        File::UR => UReg(r.first).to_string(),
    }
}

impl Display for ConstRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.bank {
            Bank::Number(n) => write!(f, "c[{n:#x}][")?,
            Bank::Bindless(u) => write!(f, "cx[{u}][")?,
        }
        match self.index {
            Index::None => write!(f, "{}]", hex(i64::from(self.offset))),
            Index::Reg(_) | Index::UReg(_) => {
                match self.index {
                    Index::Reg(r) => write!(f, "{r}")?,
                    Index::UReg(r) => write!(f, "{r}")?,
                    Index::None => {}
                }
                if self.offset != 0 {
                    write!(f, "+{}", hex(i64::from(self.offset)))?;
                }
                f.write_char(']')
            }
        }
    }
}

impl Display for Src {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.neg {
            f.write_char('-')?;
        }
        if self.inv {
            f.write_char('~')?;
        }
        let bar = if self.abs { "|" } else { "" };
        match self.value {
            Value::Reg(r) => write!(f, "{bar}{r}{bar}"),
            Value::UReg(r) => write!(f, "{bar}{r}{bar}"),
            Value::Imm(v) => f.write_str(&hex(v)),
            Value::Const(c) => write!(f, "{bar}{c}{bar}"),
        }
    }
}

impl Display for Mem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if matches!(self.space, Space::Handle | Space::Tensor) {
            return f.write_str("[handle]");
        }
        if let Some(d) = self.desc {
            write!(f, "desc[{d}]")?;
        }
        f.write_char('[')?;
        let mut plus = false;
        let shown = match (self.ubase, self.desc) {
            (None, None) => !self.base.is_zero() || self.offset == 0,
            (Some(_), _) => !self.base.is_zero() || (self.reaches_global() && !self.base64),
            (None, Some(_)) => true,
        };
        if shown {
            write!(f, "{}", self.base)?;
            let suffix = match self.space {
                Space::RemoteShared => self.ubase.is_some() || self.base64,
                _ => self.reaches_global() && (self.ubase.is_some() || self.desc.is_some()),
            };
            if suffix {
                f.write_str(if self.base64 { ".64" } else { ".U32" })?;
            }
            if self.scale > 1 {
                write!(f, ".X{}", self.scale)?;
            }
            plus = true;
        }
        if let Some(u) = self.ubase {
            write!(f, "{}{u}", if plus { "+" } else { "" })?;
            plus = true;
        }
        if self.offset != 0 {
            write!(f, "{}{}", if plus { "+" } else { "" }, hex(self.offset))?;
        }
        f.write_char(']')
    }
}

impl Display for SpecialReg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match SPECIAL.iter().find(|(n, _)| *n == self.0) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "SR{}", self.0),
        }
    }
}

/// Names of the functions of MUFU.
const MUFU: [&str; 10] = ["COS", "SIN", "EX2", "LG2", "RCP", "RSQ", "RCP64H", "RSQ64H", "SQRT", "TANH"];

/// The float type of a conversion; single precision is not spelt out.
fn float_name(bytes: u8) -> &'static str {
    match bytes {
        2 => "F16",
        8 => "F64",
        _ => "",
    }
}

/// The integer type of a conversion; `S32` is not spelt out.
fn integer_name(signed: bool, bytes: u8) -> &'static str {
    match (signed, bytes) {
        (true, 1) => "S8",
        (true, 2) => "S16",
        (true, 8) => "S64",
        (true, _) => "",
        (false, 1) => "U8",
        (false, 2) => "U16",
        (false, 8) => "U64",
        (false, _) => "U32",
    }
}

/// Names of the special registers that compilers read.
const SPECIAL: &[(u8, &str)] = &[
    (0, "SR_LANEID"),
    (1, "SR_CLOCK"),
    (2, "SR_VIRTCFG"),
    (3, "SR_VIRTID"),
    (32, "SR_TID"),
    (33, "SR_TID.X"),
    (34, "SR_TID.Y"),
    (35, "SR_TID.Z"),
    (37, "SR_CTAID.X"),
    (38, "SR_CTAID.Y"),
    (39, "SR_CTAID.Z"),
    (40, "SR_NTID"),
    (46, "SR_LWINHI"),
    (47, "SR_SWINHI"),
    (48, "SR_SWINLO"),
    (49, "SR_SWINSZ"),
    (50, "SR_SMEMSZ"),
    (52, "SR_LWINLO"),
    (53, "SR_LWINSZ"),
    (56, "SR_EQMASK"),
    (57, "SR_LTMASK"),
    (58, "SR_LEMASK"),
    (59, "SR_GTMASK"),
    (60, "SR_GEMASK"),
    (67, "SR_VIRTUALSMID"),
    (68, "SR_VIRTUALENGINEID"),
    (80, "SR_CLOCKLO"),
    (81, "SR_CLOCKHI"),
    (82, "SR_GLOBALTIMERLO"),
    (83, "SR_GLOBALTIMERHI"),
    (134, "SR_WARPGROUP_INFO"),
    (135, "SR_WARPGROUPID"),
    (136, "SR_CgaCtaId"),
    (137, "SR_GpcLocalCgaId"),
    (138, "SR_CgaSize"),
    (139, "SR_CTARegPoolSz"),
    (141, "SR_TMemSz"),
    (255, "SRZ"),
];

fn int_name(ty: IntTy) -> &'static str {
    match ty {
        IntTy::S32 => "S32",
        IntTy::U32 => "U32",
        IntTy::S64 => "S64",
        IntTy::U64 => "U64",
    }
}

fn vec_name(ty: VecTy) -> &'static str {
    match ty {
        VecTy::U32 => "U32",
        VecTy::S32 => "S32",
        VecTy::U16x2 => "U16x2",
        VecTy::S16x2 => "S16x2",
        VecTy::U8x4 => "U8x4",
        VecTy::S8x4 => "S8x4",
    }
}

fn mem_name(ty: MemTy) -> &'static str {
    match ty {
        MemTy::U8 => "U8",
        MemTy::S8 => "S8",
        MemTy::U16 => "U16",
        MemTy::S16 => "S16",
        MemTy::B32 => "",
        MemTy::B64 => "64",
        MemTy::B128 => "128",
        MemTy::B256 => "256",
    }
}

fn atom_op_name(op: AtomOp) -> &'static str {
    match op {
        AtomOp::Add => "ADD",
        AtomOp::Min => "MIN",
        AtomOp::Max => "MAX",
        AtomOp::Inc => "INC",
        AtomOp::Dec => "DEC",
        AtomOp::And => "AND",
        AtomOp::Or => "OR",
        AtomOp::Xor => "XOR",
        AtomOp::Exch => "EXCH",
        AtomOp::SafeAdd => "SAFEADD",
        AtomOp::PopcInc => "POPC.INC.32",
        AtomOp::Arrive => "ARRIVE",
    }
}

fn atom_ty_name(ty: AtomTy) -> &'static str {
    match ty {
        AtomTy::U32 => "",
        AtomTy::S32 => "S32",
        AtomTy::U64 => "64",
        AtomTy::S64 => "S64",
        AtomTy::B128 => "128",
        AtomTy::F32Ftz => "F32.FTZ.RN",
        AtomTy::F32 => "F32.RN",
        AtomTy::F64 => "F64.RN",
        AtomTy::F16x2 => "F16x2.RN",
        AtomTy::F16x4 => "F16x4.RN",
        AtomTy::F16x8 => "F16x8.RN",
        AtomTy::Bf16x2 => "BF16x2.RN",
        AtomTy::Bf16x4 => "BF16x4.RN",
        AtomTy::Bf16x8 => "BF16x8.RN",
        AtomTy::F32x2Ftz => "F32x2.FTZ.RN",
        AtomTy::F32x4Ftz => "F32x4.FTZ.RN",
        AtomTy::F32x2 => "F32x2.RN",
        AtomTy::F32x4 => "F32x4.RN",
    }
}

/// Names of the instructions of which only the effects are decoded.
fn other_name(opcode: u16, kind: OtherKind) -> Option<&'static str> {
    Some(match (opcode & 0x1ff, kind) {
        (0x008, _) => "FSEL",
        (0x009, _) => "FMNMX",
        (0x00a, _) => "FSET",
        (0x00b, _) => "FSETP",
        (0x020, _) => "FMUL",
        (0x021, _) => "FADD",
        (0x022, _) => "FSWZADD",
        (0x023, _) => "FFMA",
        (0x030, _) => "HADD2",
        (0x031 | 0x035, _) => "HFMA2",
        (0x032, _) => "HMUL2",
        (0x033, _) => "HSET2",
        (0x034, _) => "HSETP2",
        (0x040, _) => "HMNMX2",
        (0x03e, _) => "F2FP",
        (0x043, _) => "F2IP",
        (0x045, _) => "I2FP",
        (0x076, _) => "FMNMX3",
        (0x028, _) => "DMUL",
        (0x029, _) => "DADD",
        (0x02a, _) => "DSETP",
        (0x02b, _) => "DFMA",
        (0x049, _) => "FFMA2",
        (0x04a, _) => "FMUL2",
        (0x04b, _) => "FADD2",
        (0x102, _) => "FCHK",
        (0x104 | 0x110, _) => "F2F",
        (0x107 | 0x113, _) => "FRND",
        (0x014, _) => "VABSDIFF",
        (0x015, _) => "VABSDIFF4",
        (0x026, _) => "IDP",
        (0x039, _) => "I2IP",
        (0x051, _) => "UFSEL",
        (0x053, _) => "UFSETP",
        (0x054, _) => "UFADD",
        (0x055, _) => "UFFMA",
        (0x056, _) => "UFMUL",
        (0x05a, _) => "UI2F",
        (0x05c, _) => "UF2I",
        (0x05e, _) => "UI2FP",
        (0x0ba, _) => "UF2FP",
        (0x0cc, _) => "CREDUX",
        (0x036 | 0x03c, _) => "HMMA",
        (0x037, _) => "IMMA",
        (0x03a, _) => "MOVM",
        (0x152 | 0x153, _) => "RPCMOV",
        (0x03d, _) => "BMMA",
        (0x03f, _) => "DMMA",
        (0x07a, _) => "QMMA",
        (0x07b | 0x07c, _) => "OMMA",
        (0x1f0, _) => "HGMMA",
        (0x1f1, _) => "IGMMA",
        (0x1f2, _) => "BGMMA",
        (0x1f3, _) => "QGMMA",
        (0x1ee, _) => "LDTM",
        (0x1ed, _) => "STTM",
        (0x11c, _) => "B2R",
        (0x001, _) => "PMTRIG",
        (0x1c8, _) => "USETMAXREG",
        (0x1e3, _) => "UTCATOMSWS",
        (0x1e9, _) => "UTCBAR",
        (0x1ea, _) => "UTCMMA",
        (0x1e7, _) => "UTCCP",
        (0x04c, _) => "UVIRTCOUNT",
        (0x1ca, _) => "UGETNEXTWORKID",
        (0x118, _) => "NOP",
        (0x11a, _) => "DEPBAR",
        (0x11d, _) => "BAR",
        (0x15d, _) => "NANOSLEEP",
        (0x15c, _) => "BPT",
        (0x15b, _) => "KILL",
        (0x146, _) => "YIELD",
        (0x192, _) => "MEMBAR",
        (0x1ab, _) if opcode == 0x5ab => "CGAERRBAR",
        (0x1ab, _) => "ERRBAR",
        (0x1af, _) => "LDGDEPBAR",
        (0x11b, _) => "ENDCOLLECTIVE",
        (0x1c6, _) => "FENCE",
        (0x1c5, _) => "WARPGROUP",
        (0x1c7, _) => {
            if opcode == 0x9c7 {
                "UCGABAR_ARV"
            } else {
                "UCGABAR_WAIT"
            }
        }
        (0x1b7, _) => "UTMACMDFLUSH",
        (0x1c9, _) => "USETSHMSZ",
        _ => return None,
    })
}
