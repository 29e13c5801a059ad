//! Text of the products of warp groups.

use std::fmt::Write as _;

use super::arithmetic::{list, matrix_name, mnemonic};
use super::run_name;
use crate::sass::arithmetic::{Arithmetic, MatrixTy};
use crate::sass::inst::MachineInst;
use crate::sass::opcode::Opcode;
use crate::sass::operand::{UReg, Value};

/// What stands between the name and the modifiers.
pub(super) fn shape(op: Opcode) -> Option<String> {
    let Opcode::Arithmetic(Arithmetic::GroupMma { n, a, sparse, .. }) = op else { return None };
    let terms = 256 / a.bits() * if sparse.is_some() { 2 } else { 1 };
    Some(format!("{}64x{n}x{terms}", if sparse.is_some() { "SP." } else { "" }))
}

pub(super) fn modifiers(op: Arithmetic) -> Vec<&'static str> {
    let Arithmetic::GroupMma { a, b, single, sat, .. } = op else { return Vec::new() };
    let bits = a == MatrixTy::B1;
    let floats = matches!(mnemonic(op), "HGMMA" | "QGMMA");
    list([
        (floats, if single { "F32" } else { "F16" }),
        (true, matrix_name(a)),
        (mnemonic(op) != "HGMMA", matrix_name(b)),
        (bits, "AND"),
        (bits, "POPC"),
        (sat, "SAT"),
    ])
}

pub(super) fn operands(i: &MachineInst, op: Arithmetic) -> Vec<String> {
    let Arithmetic::GroupMma { transposed, sparse, ends_group, .. } = op else { return Vec::new() };
    let mut out: Vec<String> = i.dst.map(run_name).into_iter().collect();
    let [a, b, c] = [&i.src[0], &i.src[1], &i.src[2]];
    // Both descriptors have the name of four registers, of which the second one is the upper two.
    let registers = matches!(a.value, Value::Reg(_));
    if registers {
        out.push(a.to_string());
    }
    let mut descriptors = match b.value {
        Value::UReg(upper) => format!("gdesc[{}]", UReg(upper.0 - 2)),
        _ => String::new(),
    };
    let flags =
        [(a.neg && !registers, ".negA"), (b.neg, ".negB"), (transposed[0], ".tnspA"), (transposed[1], ".tnspB")];
    for (_, name) in flags.iter().filter(|(on, _)| *on) {
        let _ = write!(descriptors, "{name}");
    }
    out.extend([descriptors, c.to_string()]);
    if !i.psrc[0].always() {
        out.push(i.psrc[0].to_string());
    }
    if let (Some(selector), Some(metadata)) = (sparse, i.src.get(3)) {
        out.push(metadata.to_string());
        if selector != 0 || mnemonic(op) == "HGMMA" {
            out.push(format!("{selector:#x}"));
        }
    }
    if ends_group {
        out.push("gsb0".to_owned());
    }
    out
}
