//! Mnemonics and modifiers.

use super::names::*;
use crate::sass::inst::Inst;
use crate::sass::op::*;
use crate::sass::operand::*;

/// Comparisons of floating point numbers, by code.
const FLOAT_CMP: [&str; 16] =
    ["F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T"];

impl Inst {
    /// The name of the operation without modifiers, e.g. `IADD3`, `ULEA`, `LDG`; `?` followed by
    /// the opcode when unknown.
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
            Op::Fsetp { wide, .. } => ["FSETP", "DSETP"][usize::from(wide)],
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

    pub(super) fn modifiers(&self) -> Vec<&'static str> {
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
            Op::Fsetp { cmp, bop, wide, ftz } => {
                let name = match (wide, cmp) {
                    (true, 0) => "MIN",
                    (true, 15) => "MAX",
                    _ => FLOAT_CMP[usize::from(cmp & 15)],
                };
                add(true, name);
                add(ftz, "FTZ");
                add(true, ["AND", "OR", "XOR"][bop as usize]);
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
}
