//! Instruction families of textures and surfaces. The device executes them.

use kernels::ptx::{AddressBase, Operand, Type};

use super::{Op, blank};
use crate::interp::compile::function::{Result, Scope};
use crate::interp::exec::texture;
use crate::interp::program::{Inst, Slot};

impl<'m> Scope<'_, 'm> {
    /// Returns false when the instruction is of another family.
    pub(super) fn texture(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        let stores = matches!(op.name(), "sust" | "sured");
        if !stores && !matches!(op.name(), "tex" | "tld4" | "txq" | "suld" | "suq") {
            return Ok(false);
        }
        let mut results = Vec::new();
        let address = usize::from(!stores);
        if !stores {
            let target = match operands.first() {
                // With a predicate that says whether the texel is resident: always.
                Some(Operand::Pair(_)) => return self.unsupported(op),
                target => target,
            };
            for element in self.elements(target) {
                results.push(self.dst(Some(element))?);
            }
        }
        let mut coordinates = Vec::new();
        let mut values = Vec::new();
        let base = match operands.get(address) {
            Some(&Operand::Memory(base, 0)) => base,
            Some(Operand::MemoryList(list)) if list.1 == 0 => {
                for (at, operand) in list.2.iter().enumerate() {
                    // A sampler of its own stands before the coordinates.
                    let into = if at + 1 < list.2.len() { &mut values } else { &mut coordinates };
                    for element in self.elements(Some(operand)) {
                        into.push(self.src(Some(element), Type::B32)?);
                    }
                }
                list.0
            }
            _ => return self.misfit(),
        };
        let object = match base {
            AddressBase::Register(register) => self.src(Some(&Operand::Register(register)), Type::B64)?,
            AddressBase::Symbol(name) => self.src(Some(&Operand::Symbol(name, 0)), Type::B64)?,
            _ => return self.misfit(),
        };
        for operand in operands.iter().skip(address + 1) {
            for element in self.elements(Some(operand)) {
                // Level, gradients and offsets belong to the coordinates of a load, the rest is
                // what is stored.
                let slot = self.src(Some(element), Type::B32)?;
                if stores { values.push(slot) } else { coordinates.push(slot) }
            }
        }
        if results.len() > 4 || coordinates.len() > 16 || values.len() > 8 {
            return self.misfit();
        }
        let y = self.list(&[results.clone(), coordinates.clone(), values.clone()].concat());
        let x = u64::from(self.text(op.text));
        let z = results.len() as u32 | (coordinates.len() as u32) << 8 | (values.len() as u32) << 16;
        self.emit(Inst { a: object, d: Slot::NONE, x, y, z, ..blank(texture::access) });
        Ok(true)
    }
}
