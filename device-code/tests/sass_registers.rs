//! Which registers and predicates an instruction reads and writes, against the life ranges that
//! `nvdisasm` prints for our kernels. This is what the text does not show: pairs, quads, 64-bit
//! address terms, and what is written by instructions that are decoded for their effects only.

use device_code::arch::Arch;
use device_code::image::Cubin;
use device_code::sass::{File, MachineInst, Opcode, decode};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;
use tests::build::{installed_toolkit, nvcc};

/// What one instruction does to registers: (file, number) sets. Files: GPR, PRED, UGPR, UPRED.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Marks {
    reads: BTreeSet<(&'static str, u16)>,
    writes: BTreeSet<(&'static str, u16)>,
}

/// The life ranges of a cubin: section name, then offset, then marks.
fn life_ranges(cubin: &Path) -> HashMap<String, HashMap<u32, Marks>> {
    let out = Command::new(installed_toolkit().join("bin/nvdisasm"))
        .args(["-c", "-plr", "-lrm", "narrow"])
        .arg(cubin)
        .output()
        .expect("nvdisasm runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let mut all: HashMap<String, HashMap<u32, Marks>> = HashMap::new();
    let mut section = String::new();
    let mut names: Vec<(usize, &'static str)> = Vec::new();
    let mut columns: Vec<(usize, &'static str, u16)> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("//---------------------") {
            section = rest.trim().trim_end_matches('-').trim().to_string();
            continue;
        }
        let Some(at) = line.find("// |") else { continue };
        let table: Vec<char> = line[at..].chars().collect();
        if line[at..].contains("GPR") {
            // A header: which file each column group is. The groups end at bars.
            names.clear();
            let mut start = 3;
            for (n, c) in table.iter().enumerate().skip(4) {
                if *c == '|' {
                    let label: String = table[start..n].iter().collect();
                    for f in ["UGPR", "UPRED", "GPR", "PRED"] {
                        if label.contains(f) {
                            names.push((start, f));
                            break;
                        }
                    }
                    start = n;
                }
            }
            continue;
        }
        if line[at..].contains('#') {
            columns.clear();
            for (n, c) in table.iter().enumerate() {
                if *c != '#' {
                    continue;
                }
                let file = names.iter().rev().find(|(s, _)| *s < n).expect("a group").1;
                let digits = table[n + 1..].iter().position(char::is_ascii_digit).map_or(0, |d| n + 1 + d);
                let count = table[digits..].iter().take_while(|c| c.is_ascii_digit()).count();
                columns.extend((0..count).map(|k| (digits + k, file, k as u16)));
            }
            continue;
        }
        let Some(rest) = line.trim_start().strip_prefix("/*") else { continue };
        let Some(pc) = rest.split("*/").next().and_then(|p| u32::from_str_radix(p, 16).ok()) else { continue };
        let mut marks = Marks::default();
        for (n, file, number) in &columns {
            match table.get(*n) {
                Some('^') => drop(marks.writes.insert((*file, *number))),
                Some('v') => drop(marks.reads.insert((*file, *number))),
                Some('x') => {
                    marks.reads.insert((*file, *number));
                    marks.writes.insert((*file, *number));
                }
                _ => {}
            }
        }
        all.entry(section.clone()).or_default().insert(pc, marks);
    }
    all
}

fn ours(i: &MachineInst) -> Marks {
    let file = |f| if f == File::R { "GPR" } else { "UGPR" };
    let mut m = Marks::default();
    for r in i.defs() {
        m.writes.extend(r.numbers().map(|n| (file(r.file), u16::from(n))));
    }
    for r in i.uses() {
        m.reads.extend(r.numbers().map(|n| (file(r.file), u16::from(n))));
    }
    let preds = |(p, up): (u8, u8), set: &mut BTreeSet<(&'static str, u16)>| {
        for n in 0..7 {
            if p >> n & 1 != 0 {
                set.insert(("PRED", n));
            }
            if up >> n & 1 != 0 {
                set.insert(("UPRED", n));
            }
        }
    };
    preds(i.pred_writes(), &mut m.writes);
    if let Opcode::CopyAsync { .. } = i.op {
        // The life ranges count LDGSTS's predicate as written too. Compilers use it again
        // unchanged: it is a source.
        preds((1 << i.psrc[0].pred.num & 0x7f, 0), &mut m.writes);
    }
    preds(i.pred_reads(), &mut m.reads);
    m
}

/// Instructions whose life ranges say something else than the hardware does, or that are decoded
/// loosely on purpose.
fn loosely(i: &MachineInst) -> bool {
    matches!(
        i.op,
        Opcode::Call { .. }
            | Opcode::Texture
            | Opcode::Surface
            | Opcode::LoadMulticast
            | Opcode::Mbarrier
            | Opcode::TensorCopy { .. }
            | Opcode::Bulk
            | Opcode::BulkPrefetch
            | Opcode::P2r { .. }
            | Opcode::R2p { .. }
            | Opcode::CacheCtl
            | Opcode::Qspc { .. }
            | Opcode::Bmov
            | Opcode::Unknown
    )
}

fn check(name: &str) {
    let arch: Arch = name.parse().expect("name");
    let generation = arch.generation().expect("known");
    let mut wrong: BTreeMap<String, (u32, String)> = BTreeMap::new();
    let (mut exact, mut covered) = (0u32, 0u32);
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sass");
    let mut sources: Vec<_> = std::fs::read_dir(dir).expect("tests/sass").map(|e| e.expect("entry").path()).collect();
    sources.sort();
    for source in sources {
        let path = nvcc(&source, &["-cubin", &format!("-arch={name}")]);
        let bytes = std::fs::read(&path).expect("cubin");
        let cubin = Cubin::parse(&bytes).expect("parses");
        let ranges = life_ranges(&path);
        for s in cubin.sections().iter().filter(|s| s.executable) {
            let Some(ranges) = ranges.get(s.name) else { continue };
            for (n, chunk) in s.data.chunks_exact(16).enumerate() {
                let pc = n as u32 * 16;
                let Some(theirs) = ranges.get(&pc) else { continue };
                let i = decode(generation, u128::from_le_bytes(chunk.try_into().expect("16")), pc);
                let ours = ours(&i);
                if theirs == &Marks::default() && i.guard.always() {
                    // Unreachable code has no life ranges.
                    continue;
                }
                let full = i.is_full() && !loosely(&i);
                let ok = if full {
                    exact += 1;
                    ours == *theirs
                } else {
                    // Nothing may be written that we do not know of.
                    covered += 1;
                    i.clobbers_all() || theirs.writes.is_subset(&ours.writes)
                };
                if !ok {
                    let key = format!("{:03x} {}", i.opcode, i.mnemonic());
                    let e = wrong.entry(key).or_default();
                    e.0 += 1;
                    if e.1.is_empty() {
                        let diff = |a: &BTreeSet<(&'static str, u16)>, b: &BTreeSet<(&'static str, u16)>| {
                            format!(
                                "only ours {:?}, only theirs {:?}",
                                a.difference(b).collect::<Vec<_>>(),
                                b.difference(a).collect::<Vec<_>>()
                            )
                        };
                        e.1 = format!(
                            "{pc:#x} of {} in {}: {i}\n      writes {}\n      reads {}",
                            s.name,
                            source.display(),
                            diff(&ours.writes, &theirs.writes),
                            diff(&ours.reads, &theirs.reads)
                        );
                    }
                }
            }
        }
    }
    println!(
        "{name}: {exact} instructions read and write the same registers, {covered} write no more than we say; {} kinds differ",
        wrong.len()
    );
    for (what, (n, example)) in &wrong {
        println!("    {what}: {n} times, e.g. {example}");
    }
    assert!(exact > 5000, "life ranges were found");
    assert!(wrong.is_empty(), "{name}: see above");
}

#[test]
fn registers_of_sm_75() {
    check("sm_75");
}

#[test]
fn registers_of_sm_80() {
    check("sm_80");
}

#[test]
fn registers_of_sm_90() {
    check("sm_90a");
}

#[test]
fn registers_of_sm_100() {
    check("sm_100a");
}

#[test]
fn registers_of_sm_120() {
    check("sm_120a");
}
