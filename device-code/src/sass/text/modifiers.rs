//! Text of mnemonics and modifiers.

use super::arithmetic;
use super::names::*;
use crate::sass::inst::MachineInst;
use crate::sass::opcode::*;
use crate::sass::operand::*;

/// Comparisons of floating point numbers, by code.
pub(super) const FLOAT_CMP: [&str; 16] =
    ["F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T"];

impl MachineInst {
    /// The name of the operation without modifiers, e.g. `IADD3`, `ULEA`, `LDG`; `?` followed by
    /// the opcode when unknown.
    #[must_use]
    pub fn mnemonic(&self) -> String {
        let u = if self.uniform { "U" } else { "" };
        let space = self.mem.first().map(|m| m.space);
        let name = match self.op {
            Opcode::Mov { .. } => "MOV",
            Opcode::Sel { .. } => "SEL",
            Opcode::Iadd3 { .. } => "IADD3",
            Opcode::Iadd { .. } => "IADD",
            Opcode::Viadd { .. } => "VIADD",
            Opcode::Lea { .. } => "LEA",
            Opcode::Imad { .. } => "IMAD",
            Opcode::Iabs => "IABS",
            Opcode::Brev => "BREV",
            Opcode::Popc => "POPC",
            Opcode::Flo { .. } => "FLO",
            Opcode::Imnmx { .. } => "IMNMX",
            Opcode::Vimnmx { .. } => "VIMNMX",
            Opcode::Vimnmx3 { .. } => "VIMNMX3",
            Opcode::Viaddmnmx { .. } => "VIADDMNMX",
            Opcode::Lop3 { .. } => "LOP3",
            Opcode::Shf { .. } => "SHF",
            Opcode::Prmt { .. } => "PRMT",
            Opcode::Sgxt { .. } => "SGXT",
            Opcode::Bmsk { .. } => "BMSK",
            Opcode::Isetp { .. } => "ISETP",
            Opcode::Fsetp { wide, .. } => ["FSETP", "DSETP"][usize::from(wide)],
            Opcode::Plop3 { .. } => "PLOP3",
            Opcode::P2r { .. } => return if self.uniform { "UP2UR" } else { "P2R" }.into(),
            Opcode::R2p { .. } => "R2P",
            Opcode::Vote { .. } => return if self.uniform { "VOTEU" } else { "VOTE" }.into(),
            Opcode::Shfl { .. } => "SHFL",
            Opcode::Match { .. } => "MATCH",
            Opcode::Redux { .. } => "REDUX",
            Opcode::Elect => "ELECT",
            Opcode::R2ur { .. } => "R2UR",
            Opcode::S2r { .. } => {
                return match self.opcode {
                    0x919 => "S2R",
                    0x9c3 => "S2UR",
                    0x805 => "CS2R",
                    _ => "CS2UR",
                }
                .into();
            }
            Opcode::Lepc => "LEPC",
            Opcode::I2f { .. } => "I2F",
            Opcode::F2i { .. } => "F2I",
            Opcode::Mufu { .. } => "MUFU",
            Opcode::LoadConst { .. } => {
                return match self.opcode {
                    0xb82 => "LDC",
                    0xab9 | 0xabb => "ULDC",
                    _ => "LDCU",
                }
                .into();
            }
            Opcode::Load { .. } => match space {
                Some(AddressSpace::Global) => "LDG",
                Some(AddressSpace::Shared) => "LDS",
                Some(AddressSpace::Local) => "LDL",
                _ => "LD",
            },
            Opcode::Store { .. } => match space {
                Some(AddressSpace::Global) => "STG",
                Some(AddressSpace::Shared) => "STS",
                Some(AddressSpace::Local) => "STL",
                Some(AddressSpace::RemoteShared) => "STAS",
                _ => "ST",
            },
            Opcode::Atom { .. } | Opcode::AtomCas { .. } => match space {
                Some(AddressSpace::Global) => "ATOMG",
                Some(AddressSpace::Shared) => "ATOMS",
                _ => "ATOM",
            },
            Opcode::Red { .. } => {
                if space == Some(AddressSpace::RemoteShared) {
                    "REDAS"
                } else {
                    "RED"
                }
            }
            Opcode::LoadMulticast => "LDGMC",
            Opcode::Matrix { store, .. } => {
                if store {
                    "STSM"
                } else {
                    "LDSM"
                }
            }
            Opcode::CopyAsync { .. } => "LDGSTS",
            Opcode::Bulk if self.opcode == 0x3bb => return "UBLKRED".into(),
            Opcode::Bulk => return "UBLKCP".into(),
            Opcode::BulkPrefetch => return "UBLKPF".into(),
            Opcode::TensorCopy { .. } => {
                return match self.opcode {
                    0x3b4 | 0x5b4 => "UTMALDG",
                    0x3b5 => "UTMASTG",
                    0x3b6 => "UTMAREDG",
                    0x5b8 => "UTMAPF",
                    _ => "UTMACCTL",
                }
                .into();
            }
            Opcode::Mbarrier => return if self.opcode == 0x9b0 { "ARRIVES" } else { "SYNCS" }.into(),
            Opcode::Texture => {
                return match self.opcode & 0x1ff {
                    0x160 | 0x161 => "TEX",
                    0x163 | 0x164 => "TLD4",
                    0x166 | 0x167 => "TLD",
                    0x16c | 0x16d => "TXD",
                    _ => "TXQ",
                }
                .into();
            }
            Opcode::Surface => {
                return match self.opcode & 0x1ff {
                    0x199 | 0x19a => "SULD",
                    0x19b..=0x19e => "SUST",
                    _ => "SURED",
                }
                .into();
            }
            Opcode::CacheCtl => return "CCTL".into(),
            Opcode::Qspc { .. } => "QSPC",
            Opcode::Bra { .. } => "BRA",
            Opcode::Brx => return if self.opcode == 0x958 { "BRXU" } else { "BRX" }.into(),
            Opcode::Jmp => "JMP",
            Opcode::Jmx => "JMX",
            Opcode::Call { .. } => "CALL",
            Opcode::Ret { .. } => "RET",
            Opcode::Exit => "EXIT",
            Opcode::Bssy { .. } => "BSSY",
            Opcode::Bsync { .. } => "BSYNC",
            Opcode::Break { .. } => "BREAK",
            Opcode::Warpsync { .. } => "WARPSYNC",
            Opcode::Bmov => "BMOV",
            Opcode::AcqBulk => "ACQBULK",
            Opcode::PreExit => "PREEXIT",
            Opcode::Arithmetic(op) => return arithmetic::mnemonic(op).into(),
            Opcode::Other(kind) => {
                return other_name(self.opcode, kind).map_or_else(|| format!("?{:03x}", self.opcode), Into::into);
            }
            Opcode::Unknown => return format!("?{:03x}", self.opcode),
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
            Opcode::Mov { wide } | Opcode::Sel { wide } => add(wide, "64"),
            Opcode::Iadd3 { x, wide } | Opcode::Iadd { x, wide } => {
                add(wide, "64");
                add(x, "X");
            }
            Opcode::Viadd { lanes } => {
                add(lanes == Lanes::Two, "16x2");
                add(lanes == Lanes::Four, "U8x4");
            }
            Opcode::Lea { hi, x, sx32, .. } => {
                add(hi, "HI");
                add(x, "X");
                add(sx32, "SX32");
            }
            Opcode::Imad { kind, signed, x } => {
                add(kind == MulKind::Wide, "WIDE");
                add(kind == MulKind::High, "HI");
                add(!signed, "U32");
                add(x, "X");
            }
            Opcode::Flo { signed, sh } => {
                add(!signed, "U32");
                add(sh, "SH");
            }
            Opcode::Imnmx { ty } => add(ty != IntTy::S32, int_name(ty)),
            Opcode::Vimnmx { ty, relu } | Opcode::Vimnmx3 { ty, relu } | Opcode::Viaddmnmx { ty, relu } => {
                add(true, vec_name(ty));
                add(relu, "RELU");
            }
            Opcode::Lop3 { pand, .. } => {
                add(true, "LUT");
                add(pand, "PAND");
            }
            Opcode::Shf { right, wrap, ty, hi } => {
                add(true, if right { "R" } else { "L" });
                add(wrap, "W");
                add(true, int_name(ty));
                add(hi, "HI");
            }
            Opcode::Prmt { mode } => {
                add(true, ["", "F4E", "B4E", "RC8", "ECL", "ECR", "RC16", ""][usize::from(mode & 7)])
            }
            Opcode::Sgxt { signed, wrap } => {
                add(!signed, "U32");
                add(wrap, "W");
            }
            Opcode::Bmsk { wrap } => add(wrap, "W"),
            Opcode::Isetp { cmp, bop, ty, ex } => {
                add(true, ["F", "LT", "EQ", "LE", "GT", "NE", "GE", "T"][cmp as usize]);
                add(ty != IntTy::S32, int_name(ty));
                add(true, ["AND", "OR", "XOR"][bop as usize]);
                add(ex, "EX");
            }
            Opcode::Fsetp { cmp, bop, wide, ftz } => {
                let name = match (wide, cmp) {
                    (true, 0) => "MIN",
                    (true, 15) => "MAX",
                    _ => FLOAT_CMP[usize::from(cmp & 15)],
                };
                add(true, name);
                add(ftz, "FTZ");
                add(true, ["AND", "OR", "XOR"][bop as usize]);
            }
            Opcode::Plop3 { .. } => add(true, "LUT"),
            Opcode::P2r { byte } => add(true, ["", "B1", "B2", "B3"][usize::from(byte & 3)]),
            Opcode::Vote { mode } => add(true, ["ALL", "ANY", "EQ"][mode as usize]),
            Opcode::Shfl { mode } => add(true, ["IDX", "UP", "DOWN", "BFLY"][mode as usize]),
            Opcode::Match { any, wide } => {
                add(true, if any { "ANY" } else { "ALL" });
                add(wide, "U64");
            }
            Opcode::Redux { op, signed } => {
                add(true, ["", "OR", "XOR", "SUM", "MIN", "MAX"][op as usize]);
                add(signed, "S32");
            }
            Opcode::R2ur { or } => add(or, "OR"),
            Opcode::I2f { signed, round, from, to, .. } => {
                add(true, float_name(to));
                add(true, integer_name(signed, from));
                add(true, ["", "RM", "RP", "RZ"][usize::from(round & 3)]);
            }
            Opcode::F2i { signed, round, ftz, from, to, nan_zero, .. } => {
                add(ftz, "FTZ");
                add(true, integer_name(signed, to));
                add(true, float_name(from));
                add(true, ["", "FLOOR", "CEIL", "TRUNC"][usize::from(round & 3)]);
                add(nan_zero, "NTZ");
            }
            Opcode::Mufu { func, half, .. } => {
                add(true, MUFU.get(usize::from(func)).copied().unwrap_or(""));
                add(half, "F16");
            }
            Opcode::S2r { wide, .. } => add(matches!(self.opcode, 0x805 | 0x8cb) && !wide, "32"),
            Opcode::LoadConst { ty, mode } => {
                add(true, ["", "IL", "IS", "ISL"][usize::from(mode & 3)]);
                add(true, mem_name(ty));
            }
            Opcode::Load { ty } | Opcode::Store { ty } => {
                add(self.is_extended(), "E");
                add(true, mem_name(ty));
            }
            Opcode::Atom { op, ty } => {
                add(self.is_extended(), "E");
                add(true, atom_op_name(op));
                add(op != AtomOp::PopcInc, atom_ty_name(ty));
            }
            Opcode::Red { op, ty } => {
                add(self.is_extended(), "E");
                add(true, atom_op_name(op));
                add(self.mem.first().is_some_and(|m| m.space != AddressSpace::RemoteShared), atom_ty_name(ty));
            }
            Opcode::AtomCas { ty, cast } => {
                add(self.is_extended(), "E");
                add(true, ["CAS", "CAST", "CAST.SPIN"][cast as usize]);
                add(true, atom_ty_name(ty));
            }
            Opcode::LoadMulticast => add(true, "E"),
            Opcode::CopyAsync { bytes, zfill } => {
                add(true, "E");
                add(bytes == 8, "64");
                add(bytes == 16, "128");
                add(zfill, "ZFILL");
            }
            Opcode::Qspc { .. } | Opcode::CacheCtl => add(self.is_extended(), "E"),
            Opcode::Bra { mode } => add(true, ["", "U", "DIV", "CONV"][mode as usize]),
            Opcode::Call { abs } | Opcode::Ret { abs } => add(true, if abs { "ABS" } else { "REL" }),
            Opcode::Warpsync { collective, exclusive } => {
                add(collective, "COLLECTIVE");
                add(exclusive, "EXCLUSIVE");
                add(self.src.is_empty(), "ALL");
            }
            Opcode::Arithmetic(op) => m = arithmetic::modifiers(op),
            _ => {}
        }
        m
    }

    /// 64-bit addressing of global or generic memory.
    fn is_extended(&self) -> bool {
        self.mem.first().is_some_and(|m| m.reaches_global() && (m.base64 || m.ubase.is_some() || m.desc.is_some()))
    }
}
