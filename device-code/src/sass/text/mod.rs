//! Instructions as text, close to the output of `nvdisasm`, for `explain`, tests and messages.
//!
//! Owns the text. No code parses it. Leaves out scheduling, cache hints and memory order, and the
//! operands of instructions of which only the effects are decoded.

mod arithmetic;
mod modifiers;
mod names;
mod operands;
mod warp_group;

use self::names::SPECIAL;
use super::inst::MachineInst;
use super::opcode::*;
use super::operand::*;
use std::fmt::{self, Display, Formatter, Write as _};

impl Display for MachineInst {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.guard.always() {
            write!(f, "@{} ", self.guard)?;
        }
        f.write_str(&self.mnemonic())?;
        if let Some(shape) = warp_group::shape(self.op) {
            write!(f, ".{shape}")?;
        }
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

impl Display for InstOperand {
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

impl Display for MemOperand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if matches!(self.space, AddressSpace::Handle | AddressSpace::Tensor) {
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
                AddressSpace::RemoteShared => self.ubase.is_some() || self.base64,
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
