//! Names of types, special registers, and instructions that are decoded for their effects only.

use crate::sass::opcode::*;

/// Names of the functions of MUFU.
pub(super) const MUFU: [&str; 10] = ["COS", "SIN", "EX2", "LG2", "RCP", "RSQ", "RCP64H", "RSQ64H", "SQRT", "TANH"];

/// The float type of a conversion; single precision is not spelt out.
pub(super) fn float_name(bytes: u8) -> &'static str {
    match bytes {
        2 => "F16",
        8 => "F64",
        _ => "",
    }
}

/// The integer type of a conversion; `S32` is not spelt out.
pub(super) fn integer_name(signed: bool, bytes: u8) -> &'static str {
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
pub(super) const SPECIAL: &[(u8, &str)] = &[
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

pub(super) fn int_name(ty: IntTy) -> &'static str {
    match ty {
        IntTy::S32 => "S32",
        IntTy::U32 => "U32",
        IntTy::S64 => "S64",
        IntTy::U64 => "U64",
    }
}

pub(super) fn vec_name(ty: VecTy) -> &'static str {
    match ty {
        VecTy::U32 => "U32",
        VecTy::S32 => "S32",
        VecTy::U16x2 => "U16x2",
        VecTy::S16x2 => "S16x2",
        VecTy::U8x4 => "U8x4",
        VecTy::S8x4 => "S8x4",
    }
}

pub(super) fn mem_name(ty: MemTy) -> &'static str {
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

pub(super) fn atom_op_name(op: AtomOp) -> &'static str {
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

pub(super) fn atom_ty_name(ty: AtomTy) -> &'static str {
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
pub(super) fn other_name(opcode: u16, kind: OtherKind) -> Option<&'static str> {
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
        (0x038, _) => "I2I",
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
