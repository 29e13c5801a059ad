//! Families of textures (TEX, TLD, TLD4, TXD, TXQ) and surfaces (SULD, SUST, SURED). Each becomes
//! the instruction of PTX that the device answers; its fields were read off code of nvcc for sm_80
//! and words that nvdisasm was asked about.
//!
//! The handle is a word of a constant bank, or (`.B`, and numbers of its own) in a register. The
//! coordinates come with the layer first, then the handle, then the level: together in one run of
//! registers, what follows them in the other; or scattered (`.SCR`), half of all in each run. What
//! is not of the plain forms (offsets, depth, half precision, residency) is not executed.

use device_code::sass::{MachineInst, Opcode, Reg};

use crate::compile::blank;
use crate::compile_sass::operands::SCRATCH;
use crate::compile_sass::{Result, Translation};
use crate::program::{Inst, Operation, Slot};

/// What is added to an opcode where the handle is in a register: TEX 0x160, TEX.B 0x161.
const BINDLESS: u16 = 1;
/// No result that is wanted says whether a texel was resident: predicate 7 at 81..84.
const NO_PREDICATE: u32 = 7;

/// Coordinates by number of the geometry: PTX's name, how many, and whether the first is a layer.
const TEXTURES: [(&str, u8, bool); 8] = [
    ("1d", 1, false),
    ("2d", 2, false),
    ("3d", 3, false),
    ("cube", 3, false),
    ("a1d", 2, true),
    ("a2d", 3, true),
    ("", 0, false),
    ("acube", 4, true),
];

/// The same of surfaces, where the layer comes last. 1 is a buffer.
const SURFACES: [(&str, u8, bool); 6] =
    [("1d", 1, false), ("", 0, false), ("a1d", 2, true), ("2d", 2, false), ("a2d", 3, true), ("3d", 3, false)];

impl Translation<'_> {
    /// Returns false when the instruction is of another family.
    pub(in crate::compile_sass) fn texture(&mut self, i: &MachineInst) -> Result<bool> {
        let base = i.opcode & 0x1ff;
        match i.op {
            Opcode::Texture if matches!(base, 0x16f | 0x170) => self.query(i, base == 0x170)?,
            Opcode::Texture => self.sample(i, base)?,
            Opcode::Surface => self.surface(i, base)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The handle: in the register, or in the constant whose place counts in words.
    fn handle(&mut self, i: &MachineInst, register: Option<u32>) -> Result<Slot> {
        match register {
            Some(register) => Ok(self.register(register)),
            None if matches!(i.opcode >> 9, 2 | 5) => self.bank_word(self.bits(54, 59) as u8, self.bits(40, 54) * 4, 4),
            None => self.unsupported(i),
        }
    }

    fn register(&mut self, number: u32) -> Slot {
        self.reg(Reg(number.min(255) as u8))
    }

    /// TEX, TLD, TLD4, TXD.
    fn sample(&mut self, i: &MachineInst, base: u16) -> Result<()> {
        let bindless = matches!(base, 0x161 | 0x164 | 0x167 | 0x16d);
        let kind = base - if bindless { BINDLESS } else { 0 };
        let (geometry, count, layered) = TEXTURES[self.bits(61, 64) as usize];
        let (gathers, fetches, gradients) = (kind == 0x163, kind == 0x166, kind == 0x16c);
        // Of a fetch 77 is a clamped level.
        let odd = self.bits(76, 81) & if fetches { !2 } else { !0 };
        let mode = self.bits(87, 90);
        // The level is given by a register (LB adds to one that is zero here).
        let level = match (gathers || gradients, mode) {
            (true, _) => false,
            (false, 1) => false,
            (false, 3) => true,
            (false, 2) if !fetches => true,
            // The derivative of the neighbours' coordinates.
            _ => return self.unsupported(i),
        };
        let known = !geometry.is_empty() && odd == 0 && self.bits(81, 84) == NO_PREDICATE && self.bits(91, 92) == 0;
        if !known || self.bits(59, 60) != u32::from(bindless) || fetches && geometry.contains("cube") {
            return self.unsupported(i);
        }
        let (first, second) = (self.bits(24, 32), self.bits(32, 40));
        let value = |at: u8, split: u8| {
            if at < split { first + u32::from(at) } else { second + u32::from(at - split) }
        };
        let after = count + u8::from(bindless) + u8::from(level);
        let (mut coordinates, handle, behind);
        if gradients {
            // Handle, coordinates and at last the layer; the gradients change nothing.
            let start = u8::from(bindless);
            let places = (0..count).map(|at| if layered { (at + count - 1) % count } else { at });
            coordinates = places.map(|at| self.register(value(at + start, u8::MAX))).collect::<Vec<_>>();
            (handle, behind) = (bindless.then_some(first), Vec::new());
        } else {
            let scattered = self.bits(60, 61) == 1;
            if scattered && after > 4 {
                return self.unsupported(i);
            }
            let split = if scattered { after.div_ceil(2) } else { count };
            coordinates = (0..count).map(|at| self.register(value(at, split))).collect();
            handle = bindless.then(|| value(count, split));
            let at = count + u8::from(bindless);
            behind = if level { vec![self.register(value(at, split))] } else { Vec::new() };
        }
        let object = self.handle(i, handle)?;
        if coordinates.len() == 3 {
            coordinates.push(self.constant(0));
        }
        coordinates.extend(behind);
        let ty = if fetches { "s32" } else { "f32" };
        let name = match kind {
            0x163 => format!("tld4.{}.{geometry}.v4.f32.f32", ["r", "g", "b", "a"][self.bits(87, 89) as usize]),
            0x16c => format!("tex.grad.{geometry}.v4.f32.f32"),
            _ if level => format!("tex.level.{geometry}.v4.f32.{ty}"),
            _ => format!("tex.{geometry}.v4.f32.{ty}"),
        };
        let results = self.components();
        self.ask(&name, object, &results, &coordinates, &[]);
        Ok(())
    }

    /// The rows of the four components: those of the mask at 72..76 go to two pairs of registers.
    fn components(&mut self) -> [Slot; 4] {
        let pairs = [self.bits(16, 24), self.bits(64, 72)];
        let mut next = 0;
        let mut results = [SCRATCH; 4];
        for (component, result) in results.iter_mut().enumerate() {
            if self.bits(72, 76) >> component & 1 == 0 {
                continue;
            }
            let first = pairs[next / 2];
            if first != 255 {
                *result = self.register(first + next as u32 % 2);
            }
            next += 1;
        }
        results
    }

    /// TXQ of the extents; each is a component.
    fn query(&mut self, i: &MachineInst, bindless: bool) -> Result<()> {
        if self.bits(60, 64) != 0 || self.bits(59, 60) != u32::from(bindless) || self.bits(91, 92) != 0 {
            return self.unsupported(i);
        }
        // With the handle before the level, both in one run.
        let register = bindless.then(|| self.bits(24, 32));
        let object = self.handle(i, register)?;
        let results = self.components();
        let wanted = self.bits(72, 76);
        if wanted >> 3 != 0 {
            return self.unsupported(i);
        }
        for (component, name) in ["txq.width.b32", "txq.height.b32", "txq.depth.b32"].iter().enumerate() {
            if wanted >> component & 1 != 0 {
                self.ask(name, object, &results[component..=component], &[], &[]);
            }
        }
        Ok(())
    }

    /// SULD, SUST, SURED.
    fn surface(&mut self, i: &MachineInst, base: u16) -> Result<()> {
        let bindless = matches!(base, 0x19a | 0x19c | 0x19e | 0x1a0);
        let kind = base - if bindless { BINDLESS } else { 0 };
        let Some(&(geometry, count, layered)) =
            SURFACES.get(self.bits(61, 64) as usize).filter(|(name, ..)| !name.is_empty())
        else {
            return self.unsupported(i);
        };
        let clamp = match self.bits(59, 61) {
            0 => "zero",
            1 => "clamp",
            2 => "trap",
            _ => return self.unsupported(i),
        };
        // `.BA`: the first coordinate counts bytes.
        let (formatted, ty) = (kind == 0x19b || self.bits(72, 73) == 0, self.bits(73, 76));
        let (width, words) = match ty {
            0 => ("b8", 1),
            2 => ("b16", 1),
            4 => ("b32", 1),
            5 => ("v2.b32", 2),
            6 => ("v4.b32", 4),
            _ => ("", 0),
        };
        let first = self.bits(24, 32);
        let mut coordinates: Vec<Slot> = (0..count).map(|at| self.register(first + u32::from(at))).collect();
        if layered {
            coordinates.rotate_right(1);
        }
        if coordinates.len() == 3 {
            coordinates.push(self.constant(0));
        }
        let register = bindless.then(|| self.bits(64, 72));
        let object = self.handle(i, register)?;
        match kind {
            0x199 if !formatted && words > 0 && self.bits(81, 84) == NO_PREDICATE => {
                let results: Vec<Slot> = (0..words).map(|word| self.register(self.bits(16, 24) + word)).collect();
                self.ask(&format!("suld.b.{geometry}.{width}.{clamp}"), object, &results, &coordinates, &[]);
            }
            0x19d if !formatted && words > 0 => {
                let values: Vec<Slot> = (0..words).map(|word| self.value(word)).collect();
                self.ask(&format!("sust.b.{geometry}.{width}.{clamp}"), object, &[], &coordinates, &values);
            }
            0x19b if self.bits(72, 76) == 0xf => {
                let values: Vec<Slot> = (0..4).map(|word| self.value(word)).collect();
                self.ask(&format!("sust.p.{geometry}.v4.b32.{clamp}"), object, &[], &coordinates, &values);
            }
            0x19f => {
                let op = ["add", "min", "max", "", "", "and", "or", "xor"][self.bits(87, 90) as usize];
                let (ty, wide) = match ty {
                    0 => ("u32", false),
                    1 => ("s32", false),
                    2 => ("u64", true),
                    _ => return self.unsupported(i),
                };
                if op.is_empty() || self.bits(90, 91) != 0 {
                    return self.unsupported(i);
                }
                let (low, high) = (self.value(0), self.value(1));
                let value = if wide { self.joined(low, high) } else { low };
                let form = if formatted { "p" } else { "b" };
                self.ask(&format!("sured.{form}.{op}.{geometry}.{ty}.{clamp}"), object, &[], &coordinates, &[value]);
            }
            _ => return self.unsupported(i),
        }
        Ok(())
    }

    /// A word of what is stored.
    fn value(&mut self, word: u32) -> Slot {
        let first = self.bits(32, 40);
        if first == 255 { self.constant(0) } else { self.register(first + word) }
    }

    /// Emits the instruction of that name.
    fn ask(&mut self, name: &str, object: Slot, results: &[Slot], coordinates: &[Slot], values: &[Slot]) {
        let y = self.list(&[results, coordinates, values].concat());
        let x = self.text(name);
        let z = results.len() as u32 | (coordinates.len() as u32) << 8 | (values.len() as u32) << 16;
        self.emit(Inst { a: object, d: Slot::NONE, x, y, z, ..blank(Operation::Texture) });
    }

    /// A text that an instruction refers to by number.
    fn text(&mut self, text: &str) -> u64 {
        let texts = &mut self.program.texts;
        let known = texts.iter().position(|known| known == text);
        known.unwrap_or_else(|| {
            texts.push(text.to_owned());
            texts.len() - 1
        }) as u64
    }
}
