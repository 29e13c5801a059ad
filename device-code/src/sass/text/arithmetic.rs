//! Text of the operations of the floating point, packed and tensor units.

use std::fmt::Write as _;

use super::modifiers::FLOAT_CMP;
use super::names::float_name;
use super::{run_name, warp_group};
use crate::sass::arithmetic::*;
use crate::sass::inst::MachineInst;
use crate::sass::operand::Value;

pub(super) fn mnemonic(op: Arithmetic) -> &'static str {
    match op {
        Arithmetic::Fadd(_) => "FADD",
        Arithmetic::Fmul { .. } => "FMUL",
        Arithmetic::Ffma { .. } => "FFMA",
        Arithmetic::Fmnmx { .. } => "FMNMX",
        Arithmetic::Fsel { .. } => "FSEL",
        Arithmetic::Fset { .. } => "FSET",
        Arithmetic::Fchk => "FCHK",
        Arithmetic::Frnd { .. } => "FRND",
        Arithmetic::F2f { .. } => "F2F",
        Arithmetic::F2fp { .. } | Arithmetic::PackEight { .. } | Arithmetic::UnpackEight { .. } => "F2FP",
        Arithmetic::I2fp { .. } => "I2FP",
        Arithmetic::F2ip { .. } => "F2IP",
        Arithmetic::Hadd2(..) => "HADD2",
        Arithmetic::Hmul2(..) => "HMUL2",
        Arithmetic::Hfma2 { .. } => "HFMA2",
        Arithmetic::Hmnmx2 { .. } => "HMNMX2",
        Arithmetic::Hset2 { .. } => "HSET2",
        Arithmetic::Hsetp2 { .. } => "HSETP2",
        Arithmetic::Dadd(_) => "DADD",
        Arithmetic::Dmul(_) => "DMUL",
        Arithmetic::Dfma(_) => "DFMA",
        Arithmetic::Idp { .. } => "IDP",
        Arithmetic::Vabsdiff { .. } => "VABSDIFF",
        Arithmetic::Vabsdiff4 { .. } => "VABSDIFF4",
        Arithmetic::I2ip { .. } => "I2IP",
        Arithmetic::I2i { .. } => "I2I",
        Arithmetic::Signs { .. } => "PLOP3",
        Arithmetic::Mma { a, .. } => match a {
            MatrixTy::F16 | MatrixTy::Bf16 | MatrixTy::Tf32 => "HMMA",
            MatrixTy::F64 => "DMMA",
            MatrixTy::B1 => "BMMA",
            _ => "IMMA",
        },
        Arithmetic::GroupMma { a, .. } => match a {
            MatrixTy::F16 | MatrixTy::Bf16 | MatrixTy::Tf32 => "HGMMA",
            MatrixTy::B1 => "BGMMA",
            MatrixTy::E4m3 | MatrixTy::E5m2 => "QGMMA",
            _ => "IGMMA",
        },
        Arithmetic::Movm => "MOVM",
    }
}

/// Rounding to an integer.
fn towards(round: SassRound) -> &'static str {
    ["", "FLOOR", "CEIL", "TRUNC"][round as usize]
}

fn round_name(round: SassRound) -> &'static str {
    match round {
        SassRound::Nearest => "",
        SassRound::Minus => "RM",
        SassRound::Plus => "RP",
        SassRound::Zero => "RZ",
    }
}

/// The parts that say something.
pub(super) fn list<const N: usize>(parts: [(bool, &'static str); N]) -> Vec<&'static str> {
    parts.into_iter().filter(|(on, name)| *on && !name.is_empty()).map(|(_, name)| name).collect()
}

fn half_mode(m: HalfMode) -> Vec<&'static str> {
    list([(m.bf16, "BF16_V2"), (m.single, "F32"), (m.ftz, "FTZ"), (m.relu, "RELU"), (m.sat, "SAT")])
}

pub(super) fn matrix_name(ty: MatrixTy) -> &'static str {
    match ty {
        MatrixTy::F16 | MatrixTy::F64 | MatrixTy::B1 => "",
        MatrixTy::Bf16 => "BF16",
        MatrixTy::Tf32 => "TF32",
        MatrixTy::S8 => "S8",
        MatrixTy::U8 => "U8",
        MatrixTy::S4 => "S4",
        MatrixTy::U4 => "U4",
        MatrixTy::E4m3 => "E4M3",
        MatrixTy::E5m2 => "E5M2",
    }
}

fn shape_name(m: u8, k: u16) -> &'static str {
    match (m, k) {
        (8, 4) => "884",
        (8, 16) => "8816",
        (8, 32) => "8832",
        (8, 128) => "88128",
        (16, 4) => "1684",
        (16, 8) => "1688",
        (16, 16) => "16816",
        (16, 32) => "16832",
        (16, 64) => "16864",
        (16, 128) => "168128",
        (16, 256) => "168256",
        _ => "?",
    }
}

/// Shapes of sm_90 have names of another kind.
fn double_shape_name(k: u16) -> &'static str {
    match k {
        4 => "16x8x4",
        8 => "16x8x8",
        _ => "16x8x16",
    }
}

pub(super) fn modifiers(op: Arithmetic) -> Vec<&'static str> {
    let single = |m: FloatMode, fmz| list([(fmz, "FMZ"), (m.ftz, "FTZ"), (true, round_name(m.round)), (m.sat, "SAT")]);
    match op {
        Arithmetic::Fadd(m) => single(m, false),
        Arithmetic::Ffma { mode, fmz } => single(mode, fmz),
        Arithmetic::Fmul { mode, fmz, scale } => {
            let mut names = single(mode, fmz);
            names.extend(list([(true, ["D8", "D4", "D2", "", "M2", "M4", "M8", ""][(scale + 3) as usize & 7])]));
            names
        }
        Arithmetic::Fmnmx { ftz, nan, xorsign } => list([(ftz, "FTZ"), (nan, "NAN"), (xorsign, "XORSIGN")]),
        Arithmetic::Fsel { ftz } => list([(ftz, "FTZ")]),
        Arithmetic::Fset { cmp, bop, ftz } => list([
            (true, "BF"),
            (true, FLOAT_CMP[usize::from(cmp & 15)]),
            (ftz, "FTZ"),
            (true, ["AND", "OR", "XOR"][bop as usize]),
        ]),
        Arithmetic::Frnd { round, ftz, bytes, .. } => {
            list([(ftz, "FTZ"), (true, float_name(bytes)), (true, towards(round))])
        }
        Arithmetic::F2f { round, ftz, from, to, bf16, .. } => {
            let name = |bytes| if bytes == 4 { "F32" } else { float_name(bytes) };
            list([
                (ftz, "FTZ"),
                (true, if bf16 { "BF16" } else { name(to) }),
                (true, name(from)),
                (true, round_name(round)),
            ])
        }
        Arithmetic::I2fp { signed, round } => {
            list([(true, "F32"), (true, if signed { "S32" } else { "U32" }), (true, round_name(round))])
        }
        Arithmetic::F2ip { round } => list([(true, "U8"), (true, "F32"), (true, towards(round)), (true, "NTZ")]),
        Arithmetic::F2fp { bf16, relu, round, merge } => {
            let kind = if merge { "MERGE_C" } else { "PACK_AB" };
            list([(relu, "RELU"), (bf16, "BF16"), (true, kind), (true, round_name(round))])
        }
        Arithmetic::PackEight { e5m2, relu, halves } => list([
            (true, "SATFINITE"),
            (relu, "RELU"),
            (true, if e5m2 { "E5M2" } else { "E4M3" }),
            (true, if halves { "F16" } else { "F32" }),
            (true, if halves { "UNPACK_B_MERGE_C" } else { "PACK_AB_MERGE_C" }),
        ]),
        Arithmetic::UnpackEight { e5m2, relu, .. } => {
            list([(relu, "RELU"), (true, "F16"), (true, if e5m2 { "E5M2" } else { "E4M3" }), (true, "UNPACK_B")])
        }
        Arithmetic::Hadd2(m, _) | Arithmetic::Hmul2(m, _) => half_mode(m),
        Arithmetic::Hfma2 { mode, tensor, .. } => {
            let mut names = list([(tensor, "MMA")]);
            names.extend(half_mode(mode));
            names
        }
        Arithmetic::Hmnmx2 { mode, nan, .. } => {
            let mut names = half_mode(mode);
            names.extend(list([(nan, "NAN")]));
            names
        }
        Arithmetic::Hset2 { cmp, bop, mode, float: mark, .. }
        | Arithmetic::Hsetp2 { cmp, bop, mode, both: mark, .. } => {
            let predicate = matches!(op, Arithmetic::Hsetp2 { .. });
            let mut names = list([
                (mark && !predicate, "BF"),
                (true, FLOAT_CMP[usize::from(cmp & 15)]),
                (mark && predicate, "H_AND"),
                (true, ["AND", "OR", "XOR"][bop as usize]),
            ]);
            names.extend(half_mode(mode));
            names
        }
        Arithmetic::Dadd(round) | Arithmetic::Dmul(round) | Arithmetic::Dfma(round) => {
            list([(true, round_name(round))])
        }
        Arithmetic::Idp { four, high, a_signed, b_signed } => list([
            (true, if four { "4A" } else { "2A" }),
            (!four, if high { "HI" } else { "LO" }),
            (
                true,
                match (four, a_signed) {
                    (true, true) => "S8",
                    (true, false) => "U8",
                    (false, true) => "S16",
                    (false, false) => "U16",
                },
            ),
            (true, if b_signed { "S8" } else { "U8" }),
        ]),
        Arithmetic::Vabsdiff { signed } => list([(!signed, "U32")]),
        Arithmetic::Vabsdiff4 { signed, acc } => list([(!signed, "U8"), (acc, "ACC")]),
        Arithmetic::I2ip { bits, signed } => {
            let name = match (bits, signed) {
                (16, true) => "S16",
                (16, false) => "U16",
                (8, true) => "S8",
                (8, false) => "U8",
                (4, true) => "S4",
                (4, false) => "U4",
                (_, true) => "S2",
                (_, false) => "U2",
            };
            list([(true, name), (true, "S32"), (true, "SAT")])
        }
        Arithmetic::Signs { .. } => vec!["LUT"],
        Arithmetic::I2i { bits, signed } => {
            let name = match (bits, signed) {
                (16, true) => "S16",
                (16, false) => "U16",
                (_, true) => "S8",
                (_, false) => "U8",
            };
            list([(true, name), (true, "S32"), (true, "SAT")])
        }
        Arithmetic::Mma { m, k, a, b, single, sat, and, round, sparse } => {
            let float = mnemonic(op) == "HMMA";
            list([
                (sparse.is_some(), "SP"),
                (true, if m == 16 && a == MatrixTy::F64 { double_shape_name(k) } else { shape_name(m, k) }),
                (float, if single { "F32" } else { "F16" }),
                (true, matrix_name(a)),
                (!float, matrix_name(b)),
                (a == MatrixTy::B1, if and { "AND" } else { "XOR" }),
                (a == MatrixTy::B1, "POPC"),
                (sat, "SAT"),
                (true, round_name(round)),
            ])
        }
        Arithmetic::GroupMma { .. } => warp_group::modifiers(op),
        Arithmetic::Movm => vec!["16", "MT88"],
        Arithmetic::Fchk => Vec::new(),
    }
}

fn halves_of(op: Arithmetic) -> [Halves; 3] {
    match op {
        Arithmetic::Hadd2(_, [a, b])
        | Arithmetic::Hmul2(_, [a, b])
        | Arithmetic::Hmnmx2 { halves: [a, b], .. }
        | Arithmetic::Hset2 { halves: [a, b], .. }
        | Arithmetic::Hsetp2 { halves: [a, b], .. } => [a, b, Halves::Both],
        Arithmetic::Hfma2 { halves, .. } => halves,
        Arithmetic::F2f { half: 1, .. }
        | Arithmetic::Frnd { half: 1, .. }
        | Arithmetic::UnpackEight { high: true, .. } => [Halves::High, Halves::Both, Halves::Both],
        _ => [Halves::Both; 3],
    }
}

pub(super) fn operands(i: &MachineInst, op: Arithmetic) -> Vec<String> {
    if let Arithmetic::GroupMma { .. } = op {
        return warp_group::operands(i, op);
    }
    let mut o: Vec<String> = Vec::new();
    if let Arithmetic::Signs { lut } = op {
        o.extend(i.pdst.iter().map(ToString::to_string));
        o.extend(i.src.iter().map(|source| format!("{source}.SIGN")));
        o.extend([format!("{lut:#x}"), "0x0".into()]);
        return o;
    }
    if matches!(op, Arithmetic::Hsetp2 { .. }) {
        o.extend(i.pdst.iter().map(ToString::to_string));
    } else if op == Arithmetic::Fchk {
        o.push(i.pdst[0].to_string());
    }
    o.extend(i.dst.map(run_name));
    if matches!(op, Arithmetic::F2ip { .. }) {
        return vec![o.concat(), "RZ".into(), i.src[0].to_string(), "RZ".into()];
    }
    let one_half = matches!(op, Arithmetic::F2f { .. } | Arithmetic::Frnd { .. } | Arithmetic::UnpackEight { .. });
    let halves = halves_of(op).into_iter().chain([Halves::Both]);
    for (n, (s, halves)) in i.src.iter().zip(halves).enumerate() {
        let mut text = if let Value::Imm(v) = s.value { format!("{v:#x}") } else { s.to_string() };
        text += match halves {
            Halves::Both => "",
            Halves::Single => ".F32",
            Halves::Low => ".H0_H0",
            Halves::High if one_half => ".H1",
            Halves::High => ".H1_H1",
        };
        if matches!(mnemonic(op), "IMMA" | "BMMA") {
            text += ["", ".ROW", ".COL", ""][if n < 2 { n + 1 } else { 0 }];
        }
        if n == 2
            && let Arithmetic::I2ip { bits: bits @ (2 | 4), .. } = op
        {
            let _ = write!(text, ".{}", 32 - 2 * bits);
        }
        o.push(text);
    }
    if let Arithmetic::Mma { sparse: Some(selector), .. } = op {
        o.push(format!("{selector:#x}"));
    }
    let chooses = matches!(
        op,
        Arithmetic::Fmnmx { .. }
            | Arithmetic::Fsel { .. }
            | Arithmetic::Fset { .. }
            | Arithmetic::Hmnmx2 { .. }
            | Arithmetic::Hset2 { .. }
            | Arithmetic::Hsetp2 { .. }
    );
    if chooses {
        o.push(i.psrc[0].to_string());
    }
    o
}
