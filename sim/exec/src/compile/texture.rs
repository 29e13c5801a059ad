//! Instruction families of textures and surfaces. The device executes them.
//!
//! A direction into a cube is scaled first, by the approximate reciprocal of its largest part, as
//! the compiler does it in machine code: both forms see the same bits.

use device_code::ptx::{AddressBase, Operand, Type};

use super::Op;
use crate::compile::function::{Result, Scope};
use crate::exec::per_lane::op2;
use crate::float::approximate::{self, SpecialFunction};
use crate::operations::build;
use crate::program::Slot;

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
        let layered = op.has("acube");
        if (layered || op.has("cube"))
            && let Some(direction) = coordinates.get_mut(usize::from(layered)..usize::from(layered) + 3)
        {
            self.scale(direction);
        }
        if results.len() > 4 || coordinates.len() > 16 || values.len() > 8 {
            return self.misfit();
        }
        let text = self.text(op.text);
        self.emit(build::Texture { object, coordinates, values, results, text });
        Ok(true)
    }

    /// Makes the largest part of a direction one.
    fn scale(&mut self, direction: &mut [Slot]) {
        let float = |bits: u32| f32::from_bits(bits);
        let larger = op2(move |a: u32, b: u32| float(a).abs().max(float(b).abs()).to_bits());
        let scaled = op2(move |a: u32, largest: u32| {
            (float(a) * approximate::special(SpecialFunction::Rcp, float(largest))).to_bits()
        });
        let largest = self.temporary();
        self.emit(larger.of([direction[0], direction[1]]).to(largest));
        self.emit(larger.of([direction[2], largest]).to(largest));
        for part in direction {
            let d = self.temporary();
            self.emit(scaled.of([*part, largest]).to(d));
            *part = d;
        }
    }
}
