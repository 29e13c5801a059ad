//! Family of predicates: integer comparisons, tables, moves to and from registers.

use kernels::sass::{BoolOp, Comparison, MachineInst, Opcode};

use super::{Result, Translation};
use crate::interp::compile::blank;
use crate::interp::exec_sass::predicates::{self, COMBINE, EQUAL, EXTENDED, GREATER, LESS, SIGNED};
use crate::interp::program::{Inst, Slot};

impl Translation<'_> {
    /// Returns false when the instruction is of another family.
    pub(super) fn predicates(&mut self, i: &MachineInst) -> Result<bool> {
        match i.op {
            Opcode::Isetp { cmp, bop, ty, ex } if !ty.wide() => {
                let outcomes = match cmp {
                    Comparison::F => 0,
                    Comparison::Lt => LESS,
                    Comparison::Eq => EQUAL,
                    Comparison::Le => LESS | EQUAL,
                    Comparison::Gt => GREATER,
                    Comparison::Ne => LESS | GREATER,
                    Comparison::Ge => EQUAL | GREATER,
                    Comparison::T => LESS | EQUAL | GREATER,
                };
                let combine = match bop {
                    BoolOp::And => 0,
                    BoolOp::Or => 1,
                    BoolOp::Xor => 2,
                };
                let y = outcomes
                    | if ty.signed() { SIGNED } else { 0 }
                    | if ex { EXTENDED } else { 0 }
                    | combine << COMBINE;
                let (a, b, c) = (self.source(i, 0)?, self.source(i, 1)?, self.psrc(i.psrc[0]));
                let (d, z) = (self.pdst(i, 0), self.pdst(i, 1));
                let x = u64::from(self.psrc(i.psrc[1]).0);
                self.emit(Inst { d: Slot(d.0), a, b, c: Slot(c.0), x, y, z: z.0, ..blank(predicates::compare) });
            }
            Opcode::Plop3 { lut0, lut1 } => {
                let [a, b, c] = i.psrc.map(|source| Slot(self.psrc(source).0));
                let (d, z) = (self.pdst(i, 0), self.pdst(i, 1));
                let y = u32::from(lut0) | u32::from(lut1) << 8;
                self.emit(Inst { d: Slot(d.0), a, b, c, y, z: z.0, ..blank(predicates::logic) });
            }
            Opcode::P2r { byte } => {
                let (a, b, d) = (self.source(i, 0)?, self.source(i, 1)?, self.dst(i, 0));
                let z = self.first_pred(i.uniform);
                self.emit(Inst { d, a, b, y: u32::from(byte), z, ..blank(predicates::to_register) });
            }
            Opcode::R2p { byte } => {
                let (a, b, z) = (self.source(i, 0)?, self.source(i, 1)?, self.first_pred(i.uniform));
                self.emit(Inst { a, b, y: u32::from(byte), z, ..blank(predicates::from_register) });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
