//! Text of operands, in the order of `nvdisasm`.

use super::{arithmetic, hex, run_name};
use crate::sass::inst::MachineInst;
use crate::sass::opcode::*;
use crate::sass::operand::*;

impl MachineInst {
    /// Operands in the order of `nvdisasm`.
    pub(super) fn operands(&self) -> Vec<String> {
        let mut o: Vec<String> = Vec::new();
        let dst = |o: &mut Vec<String>| {
            if let Some(d) = self.dst {
                o.push(run_name(d));
            }
        };
        let sources = |o: &mut Vec<String>| o.extend(self.src.iter().map(ToString::to_string));
        match self.op {
            Opcode::Mov { .. }
            | Opcode::Iabs
            | Opcode::Brev
            | Opcode::Popc
            | Opcode::Redux { .. }
            | Opcode::LoadConst { .. } => {
                dst(&mut o);
                sources(&mut o);
            }
            Opcode::I2f { part, from, .. } => {
                dst(&mut o);
                sources(&mut o);
                o[1] += if from == 2 { ["", ".H1", "", ""] } else { ["", ".B1", ".B2", ".B3"] }[usize::from(part & 3)];
            }
            Opcode::F2i { part, .. } | Opcode::Mufu { part, .. } => {
                dst(&mut o);
                sources(&mut o);
                o[1] += ["", ".H1", "", ""][usize::from(part & 3)];
            }
            Opcode::Arithmetic(op) => return arithmetic::operands(self, op),
            Opcode::Flo { .. } | Opcode::R2ur { .. } => {
                dst(&mut o);
                if !self.pdst[0].is_true() || matches!(self.op, Opcode::R2ur { or: true }) {
                    let at = if matches!(self.op, Opcode::R2ur { .. }) { 0 } else { 1 };
                    o.insert(at, self.pdst[0].to_string());
                }
                sources(&mut o);
            }
            Opcode::Sel { .. }
            | Opcode::Viadd { .. }
            | Opcode::Shf { .. }
            | Opcode::Prmt { .. }
            | Opcode::Sgxt { .. }
            | Opcode::Bmsk { .. }
            | Opcode::Vimnmx { .. }
            | Opcode::Vimnmx3 { .. }
            | Opcode::Viaddmnmx { .. } => {
                dst(&mut o);
                if matches!(self.op, Opcode::Vimnmx { .. }) && !(self.pdst[0].is_true() && self.pdst[1].is_true()) {
                    o.extend(self.pdst.iter().map(ToString::to_string));
                }
                sources(&mut o);
                if !matches!(
                    self.op,
                    Opcode::Viadd { .. }
                        | Opcode::Shf { .. }
                        | Opcode::Prmt { .. }
                        | Opcode::Sgxt { .. }
                        | Opcode::Bmsk { .. }
                ) {
                    o.push(self.psrc[0].to_string());
                }
            }
            Opcode::Iadd3 { x, .. } | Opcode::Iadd { x, .. } | Opcode::Imad { x, .. } => {
                dst(&mut o);
                let outs = match self.op {
                    Opcode::Iadd3 { .. } => 2,
                    Opcode::Imad { kind: MulKind::Low, .. } => 0,
                    _ => 1,
                };
                o.extend(self.pdst[..outs].iter().map(ToString::to_string));
                sources(&mut o);
                if x {
                    let ins = if matches!(self.op, Opcode::Iadd3 { .. }) { 2 } else { 1 };
                    o.extend(self.psrc[..ins].iter().map(ToString::to_string));
                }
            }
            Opcode::Lea { x, shift, .. } => {
                dst(&mut o);
                o.push(self.pdst[0].to_string());
                sources(&mut o);
                o.push(hex(i64::from(shift)));
                if x {
                    o.push(self.psrc[0].to_string());
                }
            }
            Opcode::Imnmx { .. } => {
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
            Opcode::Lop3 { lut, .. } => {
                if !self.pdst[0].is_true() {
                    o.push(self.pdst[0].to_string());
                }
                dst(&mut o);
                sources(&mut o);
                o.push(hex(i64::from(lut)));
                o.push(self.psrc[0].to_string());
            }
            Opcode::Fsetp { .. } => {
                o.extend(self.pdst.iter().map(ToString::to_string));
                sources(&mut o);
                o.push(self.psrc[0].to_string());
            }
            Opcode::Isetp { ex, .. } => {
                o.extend(self.pdst.iter().map(ToString::to_string));
                sources(&mut o);
                o.push(self.psrc[0].to_string());
                if ex {
                    o.push(self.psrc[1].to_string());
                }
            }
            Opcode::Plop3 { lut0, lut1 } => {
                o.extend(self.pdst.iter().map(ToString::to_string));
                o.extend(self.psrc.iter().map(ToString::to_string));
                o.push(hex(i64::from(lut0)));
                o.push(hex(i64::from(lut1)));
            }
            Opcode::P2r { .. } => {
                dst(&mut o);
                o.push(if self.uniform { "UPR" } else { "PR" }.into());
                sources(&mut o);
            }
            Opcode::R2p { byte } => {
                o.push("PR".into());
                sources(&mut o);
                o[1] += ["", ".B1", ".B2", ".B3"][usize::from(byte & 3)];
            }
            Opcode::Vote { .. } => {
                if self.dst.is_some_and(|d| !d.is_dropped()) {
                    dst(&mut o);
                }
                o.push(self.pdst[0].to_string());
                o.push(self.psrc[0].to_string());
            }
            Opcode::Shfl { .. } => {
                o.push(self.pdst[0].to_string());
                dst(&mut o);
                sources(&mut o);
            }
            Opcode::Match { any, .. } => {
                if !any {
                    o.push(self.pdst[0].to_string());
                }
                dst(&mut o);
                sources(&mut o);
            }
            Opcode::Elect => {
                o.push(self.pdst[0].to_string());
                dst(&mut o);
                o.push(self.psrc[0].to_string());
            }
            Opcode::S2r { sr, .. } => {
                dst(&mut o);
                o.push(sr.to_string());
            }
            Opcode::Lepc => {
                dst(&mut o);
                if self.opcode == 0x94e {
                    o.push(hex(self.target.unwrap_or(0)));
                }
            }
            Opcode::Load { ty } => {
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
            Opcode::Atom { .. } | Opcode::AtomCas { .. } => {
                if self.mem.first().is_some_and(|m| m.space != AddressSpace::Shared) || self.dst.is_none() {
                    o.push(self.pdst[0].to_string());
                }
                dst(&mut o);
                o.extend(self.mem.iter().map(ToString::to_string));
                sources(&mut o);
            }
            Opcode::Qspc { .. } => {
                o.push(self.pdst[0].to_string());
                dst(&mut o);
                o.extend(self.mem.iter().map(ToString::to_string));
            }
            Opcode::CopyAsync { .. } => {
                o.extend(self.mem.iter().map(ToString::to_string));
                if let Some(from) = self.mem.get(1).filter(|m| m.ubase.is_none() && m.desc.is_none()) {
                    // The text shows that the register is a pair even where it could be nothing
                    // else.
                    let name = from.base.to_string();
                    o[1] = o[1].replacen(&name, &format!("{name}.64"), 1);
                }
                if !self.psrc[0].always() {
                    o.push(self.psrc[0].to_string());
                }
            }
            Opcode::Store { .. }
            | Opcode::Red { .. }
            | Opcode::LoadMulticast
            | Opcode::Matrix { .. }
            | Opcode::CacheCtl => {
                dst(&mut o);
                o.extend(self.mem.iter().map(ToString::to_string));
                sources(&mut o);
            }
            Opcode::Bulk | Opcode::BulkPrefetch | Opcode::TensorCopy { .. } => {
                // Printed in the order of the encoding: `[UR32], [UR24], UR64, desc`.
                if self.opcode == 0x5b8 {
                    let map = self.mem.first().and_then(|m| m.ubase).unwrap_or(UReg::URZ);
                    o.extend(self.src.iter().map(|s| format!("[{s}]")));
                    o.push(format!("[{map}]"));
                    return o;
                }
                let mut parts: Vec<&MemOperand> = self.mem.iter().collect();
                if matches!(self.opcode, 0x3b5 | 0x3b6) {
                    parts.reverse();
                }
                o.extend(parts.iter().map(|m| format!("[{}]", m.ubase.unwrap_or(UReg::URZ))));
                sources(&mut o);
                if let Some(d) = self.mem.iter().find_map(|m| m.desc) {
                    o.push(format!("desc[{d}]"));
                }
            }
            Opcode::Mbarrier => {
                if !self.pdst[0].is_true() || self.opcode == 0x5a7 {
                    o.push(self.pdst[0].to_string());
                }
                dst(&mut o);
                o.extend(self.mem.iter().map(ToString::to_string));
                sources(&mut o);
            }
            Opcode::Bra { .. } => {
                if !self.psrc[0].always() {
                    o.push(self.psrc[0].to_string());
                }
                if self.opcode == 0x547 {
                    o.push(self.psrc[1].to_string());
                }
                sources(&mut o);
                o.push(hex(self.target.unwrap_or(0)));
            }
            Opcode::Brx | Opcode::Jmx | Opcode::Ret { .. } | Opcode::Call { .. } | Opcode::Jmp => {
                if !self.psrc[0].always() {
                    o.push(self.psrc[0].to_string());
                }
                let t = self.target.unwrap_or(0);
                match self.src.first() {
                    Some(s) if t == 0 && !matches!(self.op, Opcode::Ret { .. }) => o.push(s.to_string()),
                    Some(s) => o.push(format!("{s} {}", hex(t))),
                    None => o.push(hex(t)),
                }
            }
            Opcode::Exit => {
                if !self.psrc[0].always() {
                    o.push(self.psrc[0].to_string());
                }
            }
            Opcode::Bssy { barrier } | Opcode::Bsync { barrier } | Opcode::Break { barrier } => {
                if !self.psrc[0].always() {
                    o.push(self.psrc[0].to_string());
                }
                o.push(format!("B{barrier}"));
                if let Some(t) = self.target {
                    o.push(hex(t));
                }
            }
            Opcode::Warpsync { .. } => {
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
