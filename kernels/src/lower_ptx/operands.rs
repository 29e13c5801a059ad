//! Operands: registers, constants, special registers, addresses of parameters and symbols.

use crate::ir::{Class, Op, Reason, Special, Src, SrcOperand, Var, Window};
use device_code::ptx::{self, Instruction, Local, Name, OpcodeInfo, Space, Type};

use super::Lower;

impl Lower<'_> {
    /// The class of a register operand.
    pub(super) fn operand_type(&self, operand: Option<&ptx::Operand>) -> Option<Type> {
        match operand {
            Some(ptx::Operand::Register(register) | ptx::Operand::Not(register)) => {
                Some(self.here().body.registers[register.index()].ty)
            }
            _ => None,
        }
    }

    /// The variable of a result; [`Var::NONE`] when the result is dropped.
    pub(super) fn dst(&self, operand: Option<&ptx::Operand>) -> Var {
        match operand {
            Some(ptx::Operand::Register(register)) => self.here().registers[register.index()],
            _ => Var::NONE,
        }
    }

    /// A value, as an instruction reads it whose operands have that class.
    pub(super) fn src(&mut self, operand: Option<&ptx::Operand>, class: Class) -> SrcOperand {
        match operand {
            Some(ptx::Operand::Register(register)) => {
                let var = self.here().registers[register.index()];
                match (self.f.class(var), class) {
                    (found, wanted) if found == wanted => SrcOperand::var(var),
                    (Class::W32, Class::W64) => SrcOperand::new(Src::Zext(var)),
                    (Class::W64, Class::W32) => {
                        self.temporary(Class::W32, Op::Ext { bits: 32, signed: false }, &[SrcOperand::var(var)])
                    }
                    _ => self.unknown(class, Reason::Instruction),
                }
            }
            Some(ptx::Operand::Not(register)) => SrcOperand::pred(self.here().registers[register.index()], true),
            Some(&ptx::Operand::Int(value)) => match class {
                Class::W32 => SrcOperand::imm(value & 0xffff_ffff),
                Class::W64 => SrcOperand::imm(value),
                Class::Pred => SrcOperand::imm(u64::from(value != 0)),
            },
            Some(&ptx::Operand::F32(bits)) => SrcOperand::imm(u64::from(bits)),
            Some(&ptx::Operand::F64(bits)) if class == Class::W64 => SrcOperand::imm(bits),
            Some(&ptx::Operand::Special(name)) => self.special(name, class),
            Some(&ptx::Operand::Local(local, offset)) => self.variable_address(local, offset, class),
            Some(&ptx::Operand::Symbol(name, offset)) => self.symbol_address(name, offset, class),
            _ => self.unknown(class, Reason::Instruction),
        }
    }

    fn special(&mut self, name: Name, class: Class) -> SrcOperand {
        let text = self.module.name(name);
        let axis = match text.rsplit_once('.') {
            Some((_, "x")) => Some(0u8),
            Some((_, "y")) => Some(1),
            Some((_, "z")) => Some(2),
            _ => None,
        };
        let special = match (text.split('.').next().unwrap_or(""), axis) {
            ("%tid", Some(axis)) => Special::Tid(axis),
            ("%ntid", Some(axis)) => Special::Ntid(axis),
            ("%ctaid", Some(axis)) => Special::Ctaid(axis),
            ("%nctaid", Some(axis)) => Special::Nctaid(axis),
            ("%cluster_ctaid", Some(axis)) => Special::ClusterCtaid(axis),
            ("%cluster_nctaid", Some(axis)) => Special::ClusterNctaid(axis),
            ("%clusterid", Some(axis)) => Special::ClusterId(axis),
            ("%nclusterid", Some(axis)) => Special::NCluster(axis),
            ("%cluster_ctarank", _) => Special::ClusterRank,
            ("%cluster_nctarank", _) => Special::ClusterSize,
            ("%laneid", _) => Special::Lane,
            ("%dynamic_smem_size", _) => Special::DynamicShared,
            ("WARP_SZ", _) => return SrcOperand::imm(32),
            // The driver's: where the blocks of a cooperative launch meet. No memory of the
            // program's.
            ("%envreg1" | "%envreg2", _) => return self.unknown(class, Reason::Window),
            _ => return self.unknown(class, Reason::Special),
        };
        let value = SrcOperand::new(Src::Special(special));
        if class == Class::W64 { self.temporary(class, Op::Ext { bits: 32, signed: false }, &[value]) } else { value }
    }

    /// The address of a symbol of the module.
    pub(super) fn symbol_address(&mut self, name: Name, offset: i64, class: Class) -> SrcOperand {
        let variable = self.module.globals.iter().rev().find(|variable| variable.name == name);
        if class != Class::W64 || variable.is_some_and(|v| !matches!(v.space, Space::Global | Space::Const)) {
            return self.unknown(class, Reason::Window);
        }
        if variable.is_none() {
            // A function, or a symbol of another module: its bytes are whatever that says.
            let known = self.module.functions.iter().any(|function| function.name == name);
            if known {
                return self.unknown(class, Reason::Call);
            }
        }
        let id = self.f.symbol(self.module.name(name));
        let base = SrcOperand::new(Src::Symbol(id));
        self.plus(base, offset)
    }

    /// The address of a variable of the function in its own space.
    pub(super) fn variable_address(&mut self, local: Local, offset: i64, class: Class) -> SrcOperand {
        let here = self.here();
        let body = here.body;
        let variable = &body.variables[local.index()];
        match variable.space {
            Space::Param => match self.params.get(&local) {
                Some(&at) if here.caller.is_none() && class == Class::W64 => {
                    let at = i64::from(at) + offset;
                    match u16::try_from(at) {
                        Ok(at) => SrcOperand::new(Src::ParamAddress(at)),
                        Err(_) => self.unknown(class, Reason::Constant),
                    }
                }
                _ => self.unknown(class, Reason::Call),
            },
            Space::Local => {
                let at = here.frame + here.locals.get(&local).copied().unwrap_or(0);
                let at = at.wrapping_add(offset as u64) & 0xffff_ffff;
                let base = SrcOperand::new(Src::Special(Special::LocalBase));
                let low = self.temporary(Class::W32, Op::Add, &[base, SrcOperand::imm(at)]);
                if class == Class::W64 { self.temporary(class, Op::Pack, &[low, SrcOperand::imm(0)]) } else { low }
            }
            Space::Global | Space::Const => self.symbol_address(variable.name, offset, class),
            Space::Shared => self.unknown(class, Reason::Window),
        }
    }

    /// A 64-bit value plus a constant.
    pub(super) fn plus(&mut self, base: SrcOperand, offset: i64) -> SrcOperand {
        if offset == 0 {
            return base;
        }
        self.temporary(Class::W64, Op::Add, &[base, SrcOperand::imm(offset as u64)])
    }

    /// A value of 16 bits, extended by its sign or with zeros to 32.
    pub(super) fn narrow(&mut self, operand: Option<&ptx::Operand>, signed: bool) -> SrcOperand {
        let value = self.src(operand, Class::W32);
        match value.src {
            Src::Imm(bits) if signed => SrcOperand::imm((bits as u16 as i16) as u32 as u64),
            Src::Imm(bits) => SrcOperand::imm(bits & 0xffff),
            _ => self.temporary(Class::W32, Op::Ext { bits: 16, signed }, &[value]),
        }
    }

    /// `isspacep`. Constant memory counts as global, as everywhere.
    pub(super) fn lies_in(&mut self, op: &OpcodeInfo, i: &Instruction) {
        let window = match op.parts.get(1).map_or("", String::as_str) {
            "shared" | "shared::cta" | "shared::cluster" => Window::Shared,
            "local" => Window::Local,
            "global" => Window::Neither,
            _ => return self.give_up(i, Reason::Window),
        };
        let d = self.dst(i.operands.first());
        let address = self.src(i.operands.get(1), Class::W64);
        self.emit(Op::LiesIn { window, off: 0 }, &[address], &[d]);
    }
}
