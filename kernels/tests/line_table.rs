//! Source lines of memory instructions, from the line tables that nvcc leaves in cubins and from
//! the `.loc` of PTX.

use device_code::arch::Arch;
use device_code::line_table::{LineTable, user_line};
use kernels::{AccessKind, CodeImage, explain, explain_json};
use std::path::{Path, PathBuf};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda/lines.cu")
}

fn made(options: &[&str]) -> Vec<u8> {
    std::fs::read(tests::build::nvcc(&source(), options)).expect("compiled")
}

/// The number of the line with this comment.
fn marked(mark: &str) -> u32 {
    let text = std::fs::read_to_string(source()).expect("the source");
    let at = text.lines().position(|l| l.ends_with(&format!("// {mark}"))).expect("a marked line");
    at as u32 + 1
}

/// Kind, words and line (in our file) of the accesses of each kernel.
fn accesses(bytes: &[u8], kernel: &str) -> Vec<(AccessKind, Vec<u16>, u32)> {
    let all = explain(bytes, Some(kernel), None).expect("explained");
    let mut out: Vec<_> =
        all.iter().flat_map(|k| &k.accesses).map(|a| (a.kind, a.words.clone(), a.line.line)).collect();
    assert!(all.iter().flat_map(|k| &k.accesses).all(|a| a.line.file.ends_with("/lines.cu")), "{all:?}");
    out.sort();
    out.dedup();
    out
}

#[test]
fn machine_code_and_ptx_know_their_lines() {
    use AccessKind::{Atomic, Read, Write};
    for options in [
        &["-cubin", "-lineinfo", "-arch=sm_75"][..],
        &["-cubin", "-lineinfo", "-arch=sm_90"],
        &["-cubin", "-lineinfo", "-arch=sm_120"],
        &["-ptx", "-lineinfo", "-arch=compute_90"],
    ] {
        let bytes = made(options);
        let copy = [(Read, vec![0], marked("load")), (Write, vec![8], marked("store"))];
        assert_eq!(accesses(&bytes, "doubled"), copy, "{options:?}");
        // The atomic is inlined from a header of CUDA's in machine code.
        let count = [(Write, vec![0], marked("plain")), (Atomic, vec![0], marked("atomic"))];
        let mut have = accesses(&bytes, "counted");
        have.sort_by_key(|a| a.2);
        assert_eq!(have, count, "{options:?}");
    }
}

#[test]
fn unoptimised_code_has_lines_of_each_function() {
    let bytes = made(&["-cubin", "-G", "-arch=sm_90"]);
    let lines: Vec<u32> = accesses(&bytes, "counted").iter().map(|a| a.2).collect();
    assert!(lines.contains(&marked("plain")), "{lines:?}");
}

#[test]
fn code_without_a_table_has_no_lines() {
    let bytes = made(&["-cubin", "-arch=sm_90"]);
    let all = explain(&bytes, None, None).expect("explained");
    assert!(all.len() >= 2 && all.iter().all(|k| k.accesses.is_empty()));
    assert!(explain_json(&all)["kernels"][0].get("accesses").is_none());
    let code = CodeImage::load(&bytes, Arch::new(90)).expect("loads");
    assert!(code.lines("no such kernel", 0).is_empty());
}

/// Inlined functions: the innermost line first, then the calls.
#[test]
fn calls_that_were_inlined_are_followed_outwards() {
    let bytes = made(&["-cubin", "-lineinfo", "-arch=sm_90"]);
    let code = CodeImage::load(&bytes, Arch::new(90)).expect("loads");
    let name = code.kernel_names().find(|n| n.contains("doubled")).expect("there").to_owned();
    let summary = code.summary(&name).expect("summarised");
    let (_, at, _) = summary.instructions().find(|i| i.0 == AccessKind::Write).expect("a store");
    let lines: Vec<u32> = code.lines(&name, at).iter().map(|l| l.line).collect();
    assert_eq!(lines, [marked("store"), marked("call")]);
}

#[test]
fn damaged_tables_end_in_an_answer() {
    let bytes = made(&["-cubin", "-lineinfo", "-arch=sm_90"]);
    let cubin = device_code::image::Cubin::parse(&bytes).expect("a cubin");
    let section = cubin.sections().iter().find(|s| s.name == ".debug_line").expect("a table").data;
    let start = section.as_ptr() as usize - bytes.as_ptr() as usize;
    let (mut seed, mut answers) = (0x9e37_79b9_7f4a_7c15u64, 0);
    for _ in 0..3000 {
        let mut damaged = bytes.clone();
        for _ in 0..3 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            damaged[start + (seed >> 8) as usize % section.len()] = seed as u8;
        }
        let cubin = device_code::image::Cubin::parse(&damaged).expect("only the table is damaged");
        let table = LineTable::of(&cubin);
        for k in cubin.kernels() {
            for at in (0..k.code.len() as u32).step_by(16) {
                answers += user_line(&table.lines(k.section, at)).map_or(0, |_| 1);
            }
        }
    }
    assert!(answers > 0);
}
