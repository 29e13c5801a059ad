//! Stand-ins for machine code: a PTX text with the kernels' names and parameters, whose bodies
//! return at once.
//!
//! Owns `STREAMSAN_SIM=sass=skip`. With it, programs whose libraries carry machine code only
//! (PyTorch) run on the simulator as far as they do not depend on results, and their streams,
//! events, memory and launches can be checked. The analyzer works out from the machine code what a
//! kernel touches; a stand-in does not change that.

use std::fmt::Write as _;

use device_code::image::Cubin;
use device_code::image::cubin::{KernelCode, SymbolKind};

use crate::loader::machine_code;

/// How the text of a stand-in begins.
pub(crate) const MARK: &str = "// stands in for machine code";

/// The stand-in for what the image holds for compute capability `arch` (times ten); `None` when
/// there is no machine code for it.
pub(crate) fn text(image: &[u8], arch: u32) -> Option<String> {
    let bytes = machine_code::cubin_in(image, arch).ok()??;
    let cubin = Cubin::parse(&bytes).ok()?;
    let mut text = format!("{MARK}\n.version 8.0\n.target sm_{arch}\n.address_size 64\n");
    for symbol in cubin.symbols().iter().filter(|s| s.kind == SymbolKind::Object && s.size > 0) {
        let place = symbol.section.and_then(|index| cubin.sections().get(index)).map_or("", |section| section.name);
        if place.starts_with(".nv.global") && is_name(&symbol.name) {
            let _ = writeln!(text, ".visible .global .align 16 .b8 {}[{}];", symbol.name, symbol.size);
        }
    }
    for kernel in cubin.kernels().iter().filter(|kernel| is_name(&kernel.name)) {
        entry(&mut text, kernel);
    }
    Some(text)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$')
}

fn entry(text: &mut String, kernel: &KernelCode<'_>) {
    let mut params: Vec<_> = kernel.params.iter().collect();
    params.sort_by_key(|param| param.ordinal);
    let mut end = 0_u32;
    let _ = write!(text, ".visible .entry {}(", kernel.name);
    for (index, param) in params.iter().enumerate() {
        // The alignment that puts the parameter where the compiler put it.
        let align =
            [1, 2, 4, 8, 16, 32, 64, 128].into_iter().find(|&align| end.next_multiple_of(align) == param.offset);
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}.param .align {} .b8 p{index}[{}]", align.unwrap_or(1), param.size.max(1));
        end = param.offset + param.size;
    }
    let _ = writeln!(text, ")\n{{\n\tret;\n}}");
}
