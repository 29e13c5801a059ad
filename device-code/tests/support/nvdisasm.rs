//! Runs the disassembler of the toolkit, and brings their text and ours to one form.
//! Two instructions then compare equal exactly if opcode, memory space, widths, registers,
//! predicates, immediates and constants are equal.
//!
//! Both sides lose cache hints, memory order, scheduling, and operands that say nothing (PT as
//! carry).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::build::installed_toolkit;

/// Disassembles raw code; text by byte offset. `None` when the tool rejects the code.
pub fn disassemble(sm: u16, code: &[u8]) -> Option<HashMap<u32, String>> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static N: AtomicU32 = AtomicU32::new(0);
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = dir.join(format!("raw-{}-{}.bin", std::process::id(), N.fetch_add(1, Ordering::Relaxed)));
    std::fs::write(&file, code).expect("temporary file");
    let arch = format!("SM{sm}{}", if sm >= 90 { "a" } else { "" });
    // A newer disassembler knows newer architectures.
    let tool =
        std::env::var_os("SASS_NVDISASM").map_or_else(|| installed_toolkit().join("bin/nvdisasm"), PathBuf::from);
    let out = Command::new(tool).args(["-b", &arch, "-ndf"]).arg(&file).output().expect("nvdisasm runs");
    let _ = std::fs::remove_file(&file);
    if !out.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&out.stdout);
    let mut map = HashMap::new();
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix("/*") else { continue };
        let Some((pc, rest)) = rest.split_once("*/") else { continue };
        let (Ok(pc), Some((inst, _))) = (u32::from_str_radix(pc, 16), rest.split_once(';')) else { continue };
        map.insert(pc, inst.trim().to_string());
    }
    Some(map)
}

/// An instruction's text in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    pub guard: String,
    pub name: String,
    pub mods: Vec<String>,
    pub ops: Vec<String>,
}

const CACHE: &str =
    "STRONG WEAK CONSTANT CTA SM GPU SYS VC PRIVATE MMIO EF EL LU NA EU LTC64B LTC128B LTC256B ENL2 EFL2 RML2";

/// Modifiers that are not decoded, by operation.
fn dropped(name: &str) -> &'static str {
    match name {
        "LDG" => {
            "U STRONG WEAK CONSTANT CTA SM GPU SYS VC PRIVATE MMIO EF EL LU NA EU LTC64B LTC128B LTC256B ENL2 EFL2 RML2"
        }
        "LD" | "STG" | "ST" | "ATOM" | "ATOMG" | "RED" | "LDL" | "STL" => CACHE,
        "LDGSTS" => {
            "STRONG WEAK CONSTANT CTA SM GPU SYS VC PRIVATE MMIO EF EL LU NA EU LTC64B LTC128B LTC256B ENL2 EFL2 RML2 BYPASS ACCESS"
        }
        "BMOV" => "32 PQUAD CLEAR",
        "BRA" => "INC DEC ANY",
        "BRX" | "BRXU" => "INC DEC U DIV CONV",
        "CALL" | "RET" => "NOINC NODEC INC DEC",
        "MOV" => "SPILL",
        "LDCU" => "TEXUNPACK HDRUNPACK",
        "BSSY" | "BSYNC" | "BREAK" => "RELIABLE RECONVERGENT",
        "WARPSYNC" => "EXCLUSIVE",
        "IMAD" | "UIMAD" => "MOV IADD SHL",
        "R2UR" => "BROADCAST",
        "LDSM" | "STSM" => "16 M88 MT88 M832 M816 2 4 T",
        "VIMNMX" | "VIMNMX3" | "VIADDMNMX" | "UVIMNMX" => "S32",
        // Named from sm_90 only.
        "F2FP" => "F16 F32",
        "LDS" => "U",
        "EXIT" => "KEEPREFCOUNT PREEMPTED NO_ATEXIT",
        "ELECT" => "IGNOREKILL",
        "QSPC" => "S G L D",
        "LDGMC" => "F16x8 F32x4 ADD MIN MAX ACC BF16_V2 F16 F16x2 BF16x8 BF16x2 STRONG SYS GPU RN F32",
        "STAS" => "STRONG CTA SM GPU",
        "REDAS" => "S32 64 STRONG",
        _ => "",
    }
}

/// Names whose modifiers are not decoded at all.
const NO_MODS: &[&str] = &[
    "SYNCS", "ARRIVES", "UBLKCP", "UBLKRED", "UBLKPF", "UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UTMACCTL", "TEX",
    "TLD", "TLD4", "TXD", "TXQ", "SULD", "SUST", "SURED", "CCTL", "LDGMC", "BMOV", "ACQBULK", "PREEXIT",
];

/// Names where PT as an operand only means "no carry".
const CARRY: &[&str] = &["IADD3", "UIADD3", "IADD", "LEA", "ULEA", "IMAD", "UIMAD"];

fn hex_u64(v: i64) -> String {
    // Immediates are compared modulo 2^32, or 2^64 when wider.
    if (i64::from(i32::MIN)..0).contains(&v) { format!("{:#x}", v as u32) } else { format!("{:#x}", v as u64) }
}

fn parse_hex(o: &str) -> Option<i64> {
    let (neg, digits) = match o.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, o),
    };
    let v = u64::from_str_radix(digits.strip_prefix("0x")?, 16).ok()? as i64;
    Some(if neg { v.wrapping_neg() } else { v })
}

/// Splits at commas outside of brackets.
fn split_operands(text: &str) -> Vec<String> {
    let (mut list, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (n, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                list.push(text[start..n].trim().to_string());
                start = n + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        list.push(text[start..].trim().to_string());
    }
    list
}

/// The bits of a half-precision number as nvdisasm prints it; `None` for NaN, whose payload the
/// text does not show.
pub fn half_bits(text: &str) -> Option<u16> {
    let neg = text.starts_with('-');
    let t = text.trim_start_matches(['-', '+']);
    let sign = u16::from(neg) << 15;
    if t.contains("NAN") {
        return None;
    }
    if t.contains("INF") {
        return Some(sign | 0x7c00);
    }
    let v: f64 = t.parse().ok()?;
    if v == 0.0 {
        return Some(sign);
    }
    let exponent = (v.log2().floor() as i32).max(-14);
    let mantissa = (v / 2f64.powi(exponent) * 1024.0).round() as u32;
    let bits = if mantissa >= 1024 { ((exponent + 15) as u32) << 10 | (mantissa - 1024) } else { mantissa };
    Some(sign | bits as u16)
}

/// Brings either tool's text into the common form.
pub fn parts(text: &str) -> Parts {
    // One shape has two names, by the device.
    let text = text.replace(".reuse", "").replace("DMMA.8x8x4", "DMMA.884");
    let mut text = text.trim();
    let mut guard = String::new();
    if text.starts_with('@')
        && let Some((g, rest)) = text.split_once(' ')
    {
        guard = g.trim_start_matches('@').to_string();
        text = rest.trim();
    }
    let (head, rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut words = head.split('.');
    let mut name = words.next().unwrap_or("").to_string();
    let mut mods: Vec<String> = words.map(str::to_string).collect();
    let mut ops = split_operands(rest);
    for o in &mut ops {
        *o = o.replace(" + ", "+").replace("] [", "][").replace("[RZ]", "[0x0]").replace("[URZ]", "[0x0]");
    }
    // Two names of one operation.
    if name == "REDG" {
        name = "RED".into();
    }
    // The kind of numbers is no part of the decoded name.
    if name.starts_with("UTC") && name.ends_with("MMA") {
        name = "UTCMMA".into();
    }
    // `HFMA2 R, -RZ, RZ, hi, lo` is a move of a constant.
    if name == "HFMA2"
        && ops.len() == 5
        && ops[1] == "-RZ"
        && ops[2] == "RZ"
        && half_operand(&ops[3])
        && half_operand(&ops[4])
    {
        let value = match (half_bits(&ops[3]), half_bits(&ops[4])) {
            (Some(hi), Some(lo)) => format!("{:#x}", u32::from(hi) << 16 | u32::from(lo)),
            _ => "NAN".into(),
        };
        name = "MOV".into();
        mods.clear();
        ops = vec![ops[0].clone(), value];
    }
    let drop: Vec<&str> = dropped(&name).split(' ').collect();
    mods.retain(|m| !drop.contains(&m.as_str()));
    if NO_MODS.contains(&name.as_str()) {
        mods.clear();
    }
    mods.sort();
    let code_address =
        matches!(name.as_str(), "BRA" | "CALL" | "RET" | "BSSY" | "LEPC" | "WARPSYNC" | "BRX" | "BRXU" | "JMP");
    if !code_address {
        for o in &mut ops {
            if let Some(v) = parse_hex(o) {
                *o = hex_u64(v);
            }
        }
    }
    if CARRY.contains(&name.as_str()) {
        ops.retain(|o| !matches!(o.as_str(), "PT" | "!PT" | "UPT" | "!UPT"));
    }
    if name.ends_with("MNMX") {
        // Predicate results before the sources and the second predicate source, where they say
        // nothing.
        let selector = ops.iter().rposition(|o| !o.contains("PT") && !is_predicate(o)).map_or(0, |n| n + 1);
        ops = ops
            .into_iter()
            .enumerate()
            .filter(|(n, o)| *n == selector || !matches!(o.as_str(), "PT" | "!PT" | "UPT" | "!UPT"))
            .map(|(_, o)| o)
            .collect();
    }
    Parts { guard, name, mods, ops }
}

/// Number formats of immediates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    Single,
    Double,
    Halves,
    Brains,
}

/// Puts the bits of a number in place of its text at operand `at`; true when a NaN was there, whose
/// bits the text does not tell.
pub fn number_to_bits(ops: &mut Vec<String>, at: usize, kind: Number) -> bool {
    let float = |t: &str| -> Option<f64> {
        let t = t.trim().trim_start_matches('+');
        match t.trim_start_matches('-') {
            "INF" => Some(if t.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }),
            _ => t.parse().ok(),
        }
    };
    let Some(text) = ops.get(at).cloned() else { return false };
    if text.contains("NAN") || ops.get(at + 1).is_some_and(|t| t.contains("NAN")) {
        return true;
    }
    let bits = match kind {
        Number::Single => float(&text).map(|v| u64::from((v as f32).to_bits())),
        Number::Double => float(&text).map(f64::to_bits),
        Number::Halves | Number::Brains => {
            let high = ops.get(at + 1).cloned().unwrap_or_default();
            let half = |t: &str| match kind {
                Number::Halves => half_bits(t),
                _ => float(t).map(|v| ((v as f32).to_bits() >> 16) as u16),
            };
            let both = half(&text).zip(half(&high)).map(|(h, l)| u64::from(h) << 16 | u64::from(l));
            if both.is_some() {
                ops.remove(at + 1);
            }
            both
        }
    };
    if let Some(bits) = bits {
        ops[at] = format!("{bits:#x}");
    }
    false
}

fn is_predicate(o: &str) -> bool {
    let t = o.trim_start_matches('!').trim_start_matches('U');
    t.len() == 2 && t.starts_with('P')
}

fn half_operand(o: &str) -> bool {
    let t = o.trim_start_matches(['-', '+']);
    t.contains("INF") || t.contains("NAN") || t.starts_with(|c: char| c.is_ascii_digit())
}
