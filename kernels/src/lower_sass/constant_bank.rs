//! Reads of `__constant__` variables. Any instruction can make them, as an operand in constant bank
//! 3.
//!
//! Owns these accesses. They matter for order alone (`cudaMemcpyToSymbolAsync` under a running
//! kernel); what is read stays unknown. The other banks hold what a program can not write:
//! parameters (0), literals (2), addresses (4).

use super::Lower;
use crate::ir::{AccessKind, Addr, Mem, MemSpace, Op, Src, SrcOperand};
use crate::sass::{self, Bank, Index, MachineInst, Value};
use smallvec::SmallVec;

impl Lower<'_> {
    /// The reads that an instruction makes of `__constant__` variables.
    pub(super) fn constant_reads(&mut self, i: &MachineInst) {
        if self.code.links.bank3.is_empty() {
            return;
        }
        let operands = i.src.iter().filter_map(|s| match s.value {
            Value::Const(c) => Some((c, s.regs)),
            _ => None,
        });
        // Results of two registers are doubles and pairs of floats, and so are the operands.
        let wide = i.dst.is_some_and(|run| run.count == 2);
        for (c, regs) in operands.chain(i.constant.map(|c| (c, if wide { 2 } else { 1 }))) {
            if c.bank != Bank::Number(3) {
                continue;
            }
            // Up to 4 bytes before the first variable, an index that counts from 1 may begin.
            let variables = &self.code.links.bank3;
            let found = variables.iter().rev().find(|v| i64::from(v.0) <= i64::from(c.offset)).or(variables.first());
            let Some((start, _, name)) = found else { continue };
            let (name, start) = (name.clone(), i64::from(*start));
            let bytes = match i.op {
                sass::Opcode::LoadConst { ty, .. } => ty.bytes() as u32,
                _ => 4 * u32::from(regs.max(1)),
            };
            let mut parts: SmallVec<[SrcOperand; 2]> = SmallVec::new();
            let symbol = self.f.symbol(&name);
            if !self.f.constants.contains(&symbol) {
                self.f.constants.push(symbol);
            }
            parts.push(SrcOperand::new(Src::Symbol(symbol)));
            let index = match c.index {
                Index::None => None,
                Index::Reg(r) => Self::reg(r.0),
                Index::UReg(r) => Self::ureg(r.0),
            };
            parts.extend(index.map(|v| SrcOperand::new(Src::Zext(v))));
            let addr = Addr::Sum(parts, i64::from(c.offset) - start);
            let read = Mem { space: MemSpace::Global, kind: AccessKind::Read, bytes, addr };
            self.emit(i, Op::Mem(read), &[], &[]);
        }
    }
}
