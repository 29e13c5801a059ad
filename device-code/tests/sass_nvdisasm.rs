//! The SASS decoder against `nvdisasm`, instruction by instruction, on kernels of our own
//! (`tests/sass/*.cu`) compiled for every supported architecture. With `SASS_FILES=file:file` the
//! ignored test does the same on any cubin, fatbin or library.

use crate::support::nvdisasm::{Number, Parts, disassemble, number_to_bits, parts};
use device_code::arch::Arch;
use device_code::image::{CodeRef, Cubin, Image, find_in_host};
use device_code::sass::{Arithmetic, Bank, File, MachineInst, Opcode, OtherKind, Reg, UReg, Value, decode};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use tests::build::nvcc;

#[derive(Default)]
struct Score {
    total: u64,
    full: u64,
    effects: u64,
    unknown: BTreeMap<(u16, String), u64>,
    names: HashSet<String>,
    wrong: BTreeMap<String, (u64, String)>,
    seen: HashSet<u128>,
    compared: u64,
    /// Code that waits for nvdisasm: to start it takes longer than to read what it says.
    waiting: Vec<u8>,
}

/// Bytes of code that nvdisasm gets at once.
const BATCH: usize = 1 << 16;

/// What of an instruction's word decides its text: all but scheduling.
fn identity(word: u128) -> u128 {
    word & !(0x1f_ffff << 105) | word & (1 << 101)
}

/// Takes up the code of one section. [`compare`] must follow the last one.
fn take(arch: Arch, code: &[u8], score: &mut Score) {
    let generation = arch.generation().expect("supported");
    // Only encodings not seen before are given to nvdisasm: libraries repeat themselves.
    for chunk in code.chunks_exact(16) {
        let word = u128::from_le_bytes(chunk.try_into().expect("16 bytes"));
        let inst = decode(generation, word, 0);
        score.total += 1;
        match inst.op {
            Opcode::Unknown => {}
            Opcode::Other(_) => score.effects += 1,
            _ => score.full += 1,
        }
        if score.seen.insert(identity(word)) {
            score.waiting.extend_from_slice(chunk);
        } else if inst.op == Opcode::Unknown {
            *score.unknown.entry((inst.opcode, String::new())).or_default() += 1;
        }
    }
    if score.waiting.len() >= BATCH {
        compare(arch, score);
    }
}

/// Compares what waits with what nvdisasm says of it.
fn compare(arch: Arch, score: &mut Score) {
    let generation = arch.generation().expect("supported");
    let fresh = std::mem::take(&mut score.waiting);
    if fresh.is_empty() {
        return;
    }
    let text = disassemble(arch.sm, &fresh).expect("nvdisasm reads compiled code");
    for (n, chunk) in fresh.chunks_exact(16).enumerate() {
        let pc = n as u32 * 16;
        let word = u128::from_le_bytes(chunk.try_into().expect("16 bytes"));
        let inst = decode(generation, word, pc);
        let Some(theirs) = text.get(&pc) else { panic!("nvdisasm skips {pc:#x} of {arch}") };
        if inst.op == Opcode::Unknown {
            *score.unknown.entry((inst.opcode, parts(theirs).name)).or_default() += 1;
            continue;
        }
        score.compared += 1;
        score.names.insert(inst.mnemonic());
        if let Err(why) = agree(&inst, theirs) {
            let entry = score.wrong.entry(format!("{arch} {:03x} {}", inst.opcode, parts(theirs).name)).or_default();
            entry.0 += 1;
            if entry.1.is_empty() {
                entry.1 = format!("{why}\n      word   {word:#034x}\n      ours   {inst}\n      theirs {theirs}");
            }
        }
    }
}

/// Tells in which respect two readings of an instruction differ.
fn agree(inst: &MachineInst, theirs: &str) -> Result<(), String> {
    let ours_text = inst.to_string();
    let mut ours = parts(&ours_text);
    let mut theirs = parts(theirs);
    if let (Opcode::Mov { .. }, Some("NAN")) = (inst.op, theirs.ops.get(1).map(String::as_str)) {
        // The text of a NaN hides its payload: only the destination can be compared.
        ours.ops.truncate(1);
        theirs.ops.truncate(1);
    }
    if let Some((number, at)) = float_immediate(inst, &ours)
        && theirs.ops.get(at).is_some_and(|o| is_float(o))
        && number_to_bits(&mut theirs.ops, at, number)
    {
        // A NaN: its bits are not told.
        ours.ops.truncate(at);
        theirs.ops.truncate(at);
    }
    // sm_80 and sm_86 have a descriptor in the encoding that the text mostly hides.
    for (o, t) in ours.ops.iter_mut().zip(&theirs.ops) {
        if o.starts_with("desc[")
            && t.starts_with('[')
            && let Some(end) = o.find("][")
        {
            *o = o[end + 1..].to_string();
        }
    }
    for o in ours.ops.iter_mut().chain(&mut theirs.ops) {
        *o = o.replace("[RZ.U32+UR", "[UR").replace("[RZ.U32+", "[");
    }
    let same = |what: &str, a: &dyn std::fmt::Debug, b: &dyn std::fmt::Debug, ok: bool| {
        if ok { Ok(()) } else { Err(format!("{what}: {a:?} and {b:?}")) }
    };
    same("guard", &ours.guard, &theirs.guard, ours.guard == theirs.guard)?;
    same("name", &ours.name, &theirs.name, ours.name == theirs.name)?;
    match inst.op {
        Opcode::Other(kind) => return effects_agree(inst, kind, &theirs),
        Opcode::Texture | Opcode::Surface => return handles_agree(inst, &theirs),
        _ => {}
    }
    same("modifiers", &ours.mods, &theirs.mods, ours.mods == theirs.mods)?;
    if partly(inst) {
        let n = ours.ops.len().min(theirs.ops.len());
        return same("operands", &ours.ops, &theirs.ops, ours.ops[..n] == theirs.ops[..n]);
    }
    same("operands", &ours.ops, &theirs.ops, ours.ops == theirs.ops)
}

/// The operand that is an immediate of a floating point type, and its format.
fn float_immediate(inst: &MachineInst, ours: &Parts) -> Option<(Number, usize)> {
    let number = match inst.op {
        Opcode::Fsetp { wide: true, .. } | Opcode::Mufu { func: 6 | 7, .. } => Number::Double,
        Opcode::F2i { from: 8, .. } => Number::Double,
        Opcode::Fsetp { .. } | Opcode::Mufu { .. } | Opcode::F2i { .. } => Number::Single,
        Opcode::Arithmetic(op) => match op {
            Arithmetic::Dadd(_) | Arithmetic::Dmul(_) | Arithmetic::Dfma(_) => Number::Double,
            Arithmetic::Hadd2(m, _)
            | Arithmetic::Hmul2(m, _)
            | Arithmetic::Hfma2 { mode: m, .. }
            | Arithmetic::Hmnmx2 { mode: m, .. }
            | Arithmetic::Hset2 { mode: m, .. }
            | Arithmetic::Hsetp2 { mode: m, .. } => {
                if m.bf16 {
                    Number::Brains
                } else {
                    Number::Halves
                }
            }
            _ if op.kind() == OtherKind::Float => Number::Single,
            _ => return None,
        },
        _ => return None,
    };
    ours.ops.iter().position(|o| o.starts_with("0x")).map(|at| (number, at))
}

fn is_float(o: &str) -> bool {
    !o.starts_with("0x")
        && (o.contains("NAN")
            || o.contains("INF")
            || o.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()))
}

/// Instructions whose last operands are not decoded.
fn partly(inst: &MachineInst) -> bool {
    matches!(
        inst.op,
        Opcode::LoadMulticast
            | Opcode::TensorCopy { .. }
            | Opcode::Bulk
            | Opcode::Bmov
            | Opcode::CacheCtl
            | Opcode::Mbarrier
    )
}

/// Instructions of which only the effects are decoded: the registers and predicates written come
/// first in the text.
fn effects_agree(inst: &MachineInst, kind: OtherKind, theirs: &Parts) -> Result<(), String> {
    let mut want: Vec<String> = Vec::new();
    let preds: Vec<String> = inst.pdst.iter().map(ToString::to_string).collect();
    let has_preds = theirs.ops.first().is_some_and(|o| o.trim_start_matches('U').starts_with('P') && o.len() <= 3);
    if let Some(d) = inst.dst {
        if has_preds && !inst.pdst[0].is_true() {
            want.push(preds[0].clone());
        }
        want.push(match d.file {
            File::R => Reg(d.first).to_string(),
            File::UR => UReg(d.first).to_string(),
        });
    } else if has_preds {
        want.push(preds[0].clone());
        if theirs.ops.get(1).is_some_and(|o| o.trim_start_matches('U').starts_with('P')) {
            want.push(preds[1].clone());
        }
    }
    let n = want.len();
    // Instructions without a result must not have one in the text.
    if n == 0 && matches!(kind, OtherKind::Float | OtherKind::Integer) {
        return Err(format!("no effect decoded, text {theirs:?}"));
    }
    if theirs.ops.len() < n || theirs.ops[..n] != want[..] {
        return Err(format!("effects: {want:?} and {theirs:?}"));
    }
    Ok(())
}

/// Texture and surface instructions: the destination must be among the first operands, and the
/// handle where it is decoded (its uniform register, or bank and offset in words).
fn handles_agree(inst: &MachineInst, theirs: &Parts) -> Result<(), String> {
    if let Some(u) = inst.mem.first().and_then(|m| m.ubase)
        && !theirs.ops.contains(&u.to_string())
    {
        return Err(format!("{u} not in {theirs:?}"));
    }
    if let Some(Value::Const(c)) = inst.src.first().map(|s| s.value) {
        let Bank::Number(bank) = c.bank else { return Err(format!("bank {:?}", c.bank)) };
        let want = [format!("{bank:#x}"), format!("{:#x}", c.offset / 4)];
        if !theirs.ops.windows(2).any(|o| o == want) {
            return Err(format!("{want:?} not in {theirs:?}"));
        }
    }
    let Some(d) = inst.dst else { return Ok(()) };
    let name = Reg(d.first).to_string();
    if theirs.ops.iter().take(3).any(|o| *o == name) { Ok(()) } else { Err(format!("{name} not in {theirs:?}")) }
}

fn report(title: &str, s: &Score) {
    let share = |n: u64| 100.0 * n as f64 / s.total.max(1) as f64;
    let unknown: u64 = s.unknown.values().sum();
    println!(
        "{title}: {} instructions, {} distinct compared, {} names; operands {:.2} %, effects only {:.2} %, unknown {:.4} %; {} kinds disagree",
        s.total,
        s.compared,
        s.names.len(),
        share(s.full),
        share(s.effects),
        share(unknown),
        s.wrong.len()
    );
    for ((opcode, name), n) in &s.unknown {
        println!("    unknown {opcode:03x} {name}: {n}");
    }
    for (what, (n, example)) in &s.wrong {
        println!("    {what}: {n} times, e.g. {example}");
    }
}

fn sources() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sass");
    let mut list: Vec<PathBuf> = std::fs::read_dir(dir)
        .expect("tests/sass")
        .map(|e| e.expect("entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "cu"))
        .collect();
    list.sort();
    list
}

fn check_arch(name: &str) {
    let arch: Arch = name.parse().expect("architecture");
    let mut score = Score::default();
    for source in sources() {
        let cubin = nvcc(&source, &["-cubin", &format!("-arch={name}")]);
        let bytes = std::fs::read(cubin).expect("cubin");
        let cubin = Cubin::parse(&bytes).expect("a cubin");
        assert_eq!(cubin.arch.sm, arch.sm);
        for s in cubin.sections().iter().filter(|s| s.executable) {
            take(arch, s.data, &mut score);
        }
    }
    compare(arch, &mut score);
    report(name, &score);
    assert!(score.total > 9_000, "the kernels of tests/sass give enough code: {}", score.total);
    assert!(score.wrong.is_empty(), "{name}: decoder and nvdisasm disagree, see above");
    let unknown: u64 = score.unknown.values().sum();
    assert!(unknown * 1000 < score.total, "{name}: {unknown} of {} instructions unknown", score.total);
}

#[test]
fn agrees_on_sm_75() {
    check_arch("sm_75");
}

#[test]
fn agrees_on_sm_80() {
    check_arch("sm_80");
}

#[test]
fn agrees_on_sm_86() {
    check_arch("sm_86");
}

#[test]
fn agrees_on_sm_90() {
    check_arch("sm_90a");
}

#[test]
fn agrees_on_sm_100() {
    check_arch("sm_100a");
}

#[test]
fn agrees_on_sm_120() {
    check_arch("sm_120a");
}

/// Compares instructions for 9.0 with nvdisasm: of each of these words, the `variants` of it.
fn agrees_on_words(what: &str, words: &[u128], variants: impl Fn(u128, &MachineInst) -> Vec<u128>) -> Score {
    let arch = Arch::new(90);
    let generation = arch.generation().expect("sm_90");
    let mut score = Score::default();
    for &word in words {
        for variant in variants(word, &decode(generation, word, 0)) {
            take(arch, &variant.to_le_bytes(), &mut score);
        }
    }
    compare(arch, &mut score);
    report(what, &score);
    assert!(score.wrong.is_empty(), "decoder and nvdisasm disagree, see above");
    score
}

/// Products of warp groups, as ptxas makes them of `wgmma`: dense and sparse, with the first factor
/// in shared memory and in registers. Any single bit that is another one is another form, which is
/// read as nvdisasm reads it or is left.
#[test]
fn agrees_on_products_of_warp_groups() {
    const WORDS: [u128; 14] = [
        0x000f_e600_0b80_0818_0000_0000_0818_79f0,
        0x000f_e600_0b80_0818_0000_0004_1c18_7df0,
        0x000f_e600_0b80_0018_0000_0000_0818_79f0,
        0x000f_e600_0b80_2818_0400_0000_0818_79f0,
        0x000f_e600_0b80_0a18_0801_1c00_0818_79f0,
        0x000f_e600_0b80_0a18_0801_2004_1c18_7df0,
        0x000f_e600_0b80_2a18_0001_1c00_0818_79f0,
        0x000f_e600_0b84_1018_0000_0000_0818_79f1,
        0x000f_e600_0b84_1218_0020_1c00_0818_79f1,
        0x000f_e600_0b84_1018_0000_0004_1c18_7df1,
        0x000f_e600_0b81_4018_0000_0000_0818_79f2,
        0x000f_e600_0b80_0818_0000_0000_0818_79f3,
        0x000f_e600_0b80_0a18_0400_1c00_0818_79f3,
        0x000f_e600_0b80_0918_0000_0004_1c18_7df3,
    ];
    let score = agrees_on_words("products of warp groups", &WORDS, |word, inst| {
        assert!(matches!(inst.op, Opcode::Arithmetic(Arithmetic::GroupMma { .. })), "{inst}");
        // nvdisasm has no text for other scoreboards, nor for a fourth type of HGMMA.
        let others = (16..90).filter(|bit| !(84..87).contains(bit)).map(|bit| word ^ 1 << bit);
        let codes = (0..64).map(|code| word & !(0x3f << 53) | code << 53);
        // Beside no scoreboard: a predicate that is true, whose number is stored as its complement.
        let (open, plain) = (word | 7 << 84, word & !(7 << 87));
        let types = |word: &u128| word & 0x1ff != 0x1f0 || word >> 76 & 3 != 3;
        [word, open, plain].into_iter().chain(others).chain(codes).filter(types).collect()
    });
    assert!(score.full > 1000, "{} of {} are read in full", score.full, score.total);
}

/// Conversions to and from numbers of eight bits, as ptxas makes them, and each with another bit.
#[test]
fn agrees_on_numbers_of_eight_bits() {
    const WORDS: [u128; 7] = [
        0x004f_c400_0480_60ff_0000_0005_0008_723e,
        0x000f_e400_0480_7004_0000_0005_0005_723e,
        0x000f_e400_0480_78ff_0000_0005_0000_723e,
        0x080f_e400_0480_32ff_0000_0004_ff05_723e,
        0x000f_e200_0480_2aff_0000_0004_ff04_723e,
        0x008f_e400_0300_06ff_0000_0004_ff0b_723e,
        0x001f_e200_0200_0cff_0000_0006_ff09_723e,
    ];
    let generation = Arch::new(90).generation().expect("sm_90");
    agrees_on_words("numbers of eight bits", &WORDS, |word, inst| {
        let eight =
            matches!(inst.op, Opcode::Arithmetic(Arithmetic::PackEight { .. } | Arithmetic::UnpackEight { .. }));
        assert!(eight, "{inst}");
        // Registers, the clamp of what is negative, and the half that is unpacked.
        let half = matches!(inst.op, Opcode::Arithmetic(Arithmetic::UnpackEight { .. })).then_some(88);
        let bits = (16..24).chain(32..40).chain([75]).chain(half);
        let words: Vec<u128> = [word].into_iter().chain(bits.map(|bit| word ^ 1 << bit)).collect();
        assert!(words.iter().all(|word| decode(generation, *word, 0).is_full()), "{inst}");
        words
    });
}

/// The comparison itself must be able to fail: one flipped bit in any decoded field must be
/// noticed.
#[test]
fn comparison_notices_differences() {
    let g = Arch::new(90).generation().expect("sm_90");
    let word: u128 = 0x000f_c800_0fb5_e0ff_8000_0004_0800_7c10;
    let text = "IADD3 R0, P2, P3, R8, -UR4, RZ";
    let base = decode(g, word, 0);
    assert_eq!(agree(&base, text), Ok(()), "{base}");
    for bit in [9, 12, 15, 16, 24, 32, 63, 64, 72, 74, 75, 81, 84] {
        let other = decode(g, word ^ 1 << bit, 0);
        assert!(agree(&other, text).is_err(), "bit {bit}: {other}");
    }
}

/// Any libraries: `SASS_FILES=a.so:b.cubin cargo test --release -p device-code --test it
/// sass_nvdisasm:: -- --ignored --nocapture`; `SASS_LIMIT=n` takes `n` cubins of each
/// file, `SASS_ARCH=80` those of one architecture.
#[test]
#[ignore = "needs SASS_FILES"]
fn agrees_on_files() {
    let files = std::env::var("SASS_FILES").expect("SASS_FILES");
    let limit: usize = std::env::var("SASS_LIMIT").ok().and_then(|v| v.parse().ok()).unwrap_or(usize::MAX);
    let only: Option<u16> = std::env::var("SASS_ARCH").ok().and_then(|v| v.parse().ok());
    let mut scores: BTreeMap<Arch, Score> = BTreeMap::new();
    for file in files.split(':') {
        let bytes = std::fs::read(file).expect("readable");
        let images = match Image::parse(&bytes) {
            Ok(i) => vec![i],
            Err(_) => find_in_host(&bytes).expect("host ELF").into_iter().filter_map(|h| h.image.ok()).collect(),
        };
        let mut done = 0;
        for image in &images {
            for entry in image.entries().iter().filter(|e| only.is_none_or(|sm| e.arch.sm == sm)) {
                let Ok(CodeRef::Cubin(code)) = entry.unpack() else { continue };
                let cubin = Cubin::parse(&code).expect("a cubin");
                let score = scores.entry(Arch::new(entry.arch.sm)).or_default();
                if done >= limit {
                    continue;
                }
                done += 1;
                let all: Vec<u8> =
                    cubin.sections().iter().filter(|s| s.executable).flat_map(|s| s.data).copied().collect();
                take(Arch::new(entry.arch.sm), &all, score);
            }
        }
    }
    for (arch, score) in &mut scores {
        compare(*arch, score);
        report(&arch.to_string(), score);
    }
    assert!(scores.values().all(|s| s.wrong.is_empty()));
}
