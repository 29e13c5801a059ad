//! Families of textures (TEX, TLD, TLD4, TXD, TXQ) and surfaces (SULD, SUST, SURED). Each becomes
//! the instruction of PTX that the device answers; its fields were read off code of nvcc for sm_80
//! and words that nvdisasm was asked about.
//!
//! The handle is a word of a constant bank, or (`.B`, and numbers of its own) in a register. The
//! coordinates come with the layer first, then the handle, then the level: together in one run of
//! registers, what follows them in the other; or scattered (`.SCR`), half of all in each run. What
//! is not of the plain forms (offsets, depth, half precision, residency) is not executed.

use crate::compile_sass::control::bits;
use device_code::sass::{MachineInst, Opcode, Reg};

use crate::compile::function::Result;
use crate::compile_sass::operands::SCRATCH;
use crate::compile_sass::translation::Translation;
use crate::operations::build;
use crate::program::Slot;

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

/// Returns false when the instruction is of another family.
pub(in crate::compile_sass) fn texture(i: &MachineInst, t: &mut Translation<'_>) -> Result<bool> {
    let base = i.opcode & 0x1ff;
    match i.op {
        Opcode::Texture if matches!(base, 0x16f | 0x170) => query(i, base == 0x170, t)?,
        Opcode::Texture => sample(i, base, t)?,
        Opcode::Surface => surface(i, base, t)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// The handle: in the register, or in the constant whose place counts in words.
fn handle_of(i: &MachineInst, register: Option<u32>, t: &mut Translation<'_>) -> Result<Slot> {
    match register {
        Some(register) => Ok(row_of(register, t)),
        None if matches!(i.opcode >> 9, 2 | 5) => t.bank_word(bits(54, 59, t) as u8, bits(40, 54, t) * 4, 4),
        None => t.unsupported(i),
    }
}

fn row_of(number: u32, t: &mut Translation<'_>) -> Slot {
    t.reg(Reg(number.min(255) as u8))
}

/// TEX, TLD, TLD4, TXD.
fn sample(i: &MachineInst, base: u16, t: &mut Translation<'_>) -> Result<()> {
    let bindless = matches!(base, 0x161 | 0x164 | 0x167 | 0x16d);
    let kind = base - if bindless { BINDLESS } else { 0 };
    let (geometry, count, layered) = TEXTURES[bits(61, 64, t) as usize];
    let (gathers, fetches, gradients) = (kind == 0x163, kind == 0x166, kind == 0x16c);
    // Of a fetch 77 is a clamped level.
    let odd = bits(76, 81, t) & if fetches { !2 } else { !0 };
    let mode = bits(87, 90, t);
    // The level is given by a register (LB adds to one that is zero here).
    let level = match (gathers || gradients, mode) {
        (true, _) => false,
        (false, 1) => false,
        (false, 3) => true,
        (false, 2) if !fetches => true,
        // The derivative of the neighbours' coordinates.
        _ => return t.unsupported(i),
    };
    let known = !geometry.is_empty() && odd == 0 && bits(81, 84, t) == NO_PREDICATE && bits(91, 92, t) == 0;
    if !known || bits(59, 60, t) != u32::from(bindless) || fetches && geometry.contains("cube") {
        return t.unsupported(i);
    }
    let (first, second) = (bits(24, 32, t), bits(32, 40, t));
    let value = |at: u8, split: u8| {
        if at < split { first + u32::from(at) } else { second + u32::from(at - split) }
    };
    let after = count + u8::from(bindless) + u8::from(level);
    let (mut coordinates, handle, behind);
    if gradients {
        // Handle, coordinates and at last the layer. The gradients take turns in the other run: by
        // x and by y, along each axis (compared with PTX in `mip_levels.cu`).
        let start = u8::from(bindless);
        let places = (0..count).map(|at| if layered { (at + count - 1) % count } else { at });
        coordinates = places.map(|at| row_of(value(at + start, u8::MAX), t)).collect::<Vec<_>>();
        handle = bindless.then_some(first);
        let axes = count - u8::from(layered);
        let turns = [0, 1].into_iter().flat_map(|by| (0..axes).map(move |axis| axis * 2 + by));
        behind = match geometry {
            "1d" | "a1d" | "2d" | "a2d" => turns.map(|at| row_of(second + u32::from(at), t)).collect(),
            // A direction's change is not given so.
            _ => Vec::new(),
        };
    } else {
        let scattered = bits(60, 61, t) == 1;
        if scattered && after > 4 {
            return t.unsupported(i);
        }
        let split = if scattered { after.div_ceil(2) } else { count };
        coordinates = (0..count).map(|at| row_of(value(at, split), t)).collect();
        handle = bindless.then(|| value(count, split));
        let at = count + u8::from(bindless);
        behind = if level { vec![row_of(value(at, split), t)] } else { Vec::new() };
    }
    let object = handle_of(i, handle, t)?;
    if coordinates.len() == 3 {
        coordinates.push(t.constant(0));
    }
    coordinates.extend(behind);
    let ty = if fetches { "s32" } else { "f32" };
    let name = match kind {
        0x163 => format!("tld4.{}.{geometry}.v4.f32.f32", ["r", "g", "b", "a"][bits(87, 89, t) as usize]),
        0x16c => format!("tex.grad.{geometry}.v4.f32.f32"),
        _ if level => format!("tex.level.{geometry}.v4.f32.{ty}"),
        _ => format!("tex.{geometry}.v4.f32.{ty}"),
    };
    let results = components(t);
    ask(&name, object, &results, &coordinates, &[], t);
    Ok(())
}

/// The rows of the four components: those of the mask at 72..76 go to two pairs of registers.
fn components(t: &mut Translation<'_>) -> [Slot; 4] {
    let pairs = [bits(16, 24, t), bits(64, 72, t)];
    let mut next = 0;
    let mut results = [SCRATCH; 4];
    for (component, result) in results.iter_mut().enumerate() {
        if bits(72, 76, t) >> component & 1 == 0 {
            continue;
        }
        let first = pairs[next / 2];
        if first != 255 {
            *result = row_of(first + next as u32 % 2, t);
        }
        next += 1;
    }
    results
}

/// TXQ of the extents; each is a component.
fn query(i: &MachineInst, bindless: bool, t: &mut Translation<'_>) -> Result<()> {
    if bits(60, 64, t) != 0 || bits(59, 60, t) != u32::from(bindless) || bits(91, 92, t) != 0 {
        return t.unsupported(i);
    }
    // With the handle before the level, both in one run.
    let register = bindless.then(|| bits(24, 32, t));
    let object = handle_of(i, register, t)?;
    let results = components(t);
    let wanted = bits(72, 76, t);
    if wanted >> 3 != 0 {
        return t.unsupported(i);
    }
    for (component, name) in ["txq.width.b32", "txq.height.b32", "txq.depth.b32"].iter().enumerate() {
        if wanted >> component & 1 != 0 {
            ask(name, object, &results[component..=component], &[], &[], t);
        }
    }
    Ok(())
}

/// SULD, SUST, SURED.
fn surface(i: &MachineInst, base: u16, t: &mut Translation<'_>) -> Result<()> {
    let bindless = matches!(base, 0x19a | 0x19c | 0x19e | 0x1a0);
    let kind = base - if bindless { BINDLESS } else { 0 };
    let Some(&(geometry, count, layered)) =
        SURFACES.get(bits(61, 64, t) as usize).filter(|(name, ..)| !name.is_empty())
    else {
        return t.unsupported(i);
    };
    let clamp = match bits(59, 61, t) {
        0 => "zero",
        1 => "clamp",
        2 => "trap",
        _ => return t.unsupported(i),
    };
    // `.BA`: the first coordinate counts bytes.
    let (formatted, ty) = (kind == 0x19b || bits(72, 73, t) == 0, bits(73, 76, t));
    let (width, words) = match ty {
        0 => ("b8", 1),
        2 => ("b16", 1),
        4 => ("b32", 1),
        5 => ("v2.b32", 2),
        6 => ("v4.b32", 4),
        _ => ("", 0),
    };
    let first = bits(24, 32, t);
    let mut coordinates: Vec<Slot> = (0..count).map(|at| row_of(first + u32::from(at), t)).collect();
    if layered {
        coordinates.rotate_right(1);
    }
    if coordinates.len() == 3 {
        coordinates.push(t.constant(0));
    }
    let register = bindless.then(|| bits(64, 72, t));
    let object = handle_of(i, register, t)?;
    match kind {
        0x199 if !formatted && words > 0 && bits(81, 84, t) == NO_PREDICATE => {
            let results: Vec<Slot> = (0..words).map(|word| row_of(bits(16, 24, t) + word, t)).collect();
            ask(&format!("suld.b.{geometry}.{width}.{clamp}"), object, &results, &coordinates, &[], t);
        }
        0x19d if !formatted && words > 0 => {
            let values: Vec<Slot> = (0..words).map(|word| value(word, t)).collect();
            ask(&format!("sust.b.{geometry}.{width}.{clamp}"), object, &[], &coordinates, &values, t);
        }
        0x19b if bits(72, 76, t) == 0xf => {
            let values: Vec<Slot> = (0..4).map(|word| value(word, t)).collect();
            ask(&format!("sust.p.{geometry}.v4.b32.{clamp}"), object, &[], &coordinates, &values, t);
        }
        0x19f => {
            let op = ["add", "min", "max", "", "", "and", "or", "xor"][bits(87, 90, t) as usize];
            let (ty, wide) = match ty {
                0 => ("u32", false),
                1 => ("s32", false),
                2 => ("u64", true),
                _ => return t.unsupported(i),
            };
            if op.is_empty() || bits(90, 91, t) != 0 {
                return t.unsupported(i);
            }
            let (low, high) = (value(0, t), value(1, t));
            let value = if wide { t.joined(low, high) } else { low };
            let form = if formatted { "p" } else { "b" };
            ask(&format!("sured.{form}.{op}.{geometry}.{ty}.{clamp}"), object, &[], &coordinates, &[value], t);
        }
        _ => return t.unsupported(i),
    }
    Ok(())
}

/// A word of what is stored.
fn value(word: u32, t: &mut Translation<'_>) -> Slot {
    let first = bits(32, 40, t);
    if first == 255 { t.constant(0) } else { row_of(first + word, t) }
}

/// Emits the instruction of that name.
fn ask(name: &str, object: Slot, results: &[Slot], coordinates: &[Slot], values: &[Slot], t: &mut Translation<'_>) {
    let text = text(name, t);
    let [results, coordinates, values] = [results, coordinates, values].map(<[Slot]>::to_vec);
    t.emit(build::Texture { object, coordinates, values, results, text });
}

/// A text that an instruction refers to by number.
fn text(text: &str, t: &mut Translation<'_>) -> u32 {
    let texts = &mut t.program.texts;
    let known = texts.iter().position(|known| known == text);
    known.unwrap_or_else(|| {
        texts.push(text.to_owned());
        texts.len() - 1
    }) as u32
}
