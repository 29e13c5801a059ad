//! PTX that nvcc makes of the project's own programs and of CUB's device-wide algorithms:
//! everything parses, and what is parsed is complete (every kernel of the text, a body for each,
//! every branch with its target).

use std::path::Path;

use tests::build::installed_toolkit;

use device_code::ptx::{Module, Operand, parse};

fn compile(source: &Path, arch: &str, extra: &[String]) -> String {
    let mut args: Vec<String> = ["-ptx", "-lineinfo", "--extended-lambda"].map(String::from).into();
    args.push(format!("-arch={arch}"));
    args.extend(extra.iter().cloned());
    args.extend(["-o".to_owned(), "{out}".to_owned(), source.display().to_string()]);
    let compiled = tests::build::cached("code.ptx", &installed_toolkit().join("bin/nvcc"), &args, &[source]);
    std::fs::read_to_string(compiled.unwrap_or_else(|said| panic!("{said}"))).unwrap()
}

fn check(what: &str, text: &str) -> Module {
    let module = parse(text).unwrap_or_else(|error| panic!("{what}: {error}"));
    let entries = text.lines().filter(|line| line.contains(".entry ")).count();
    assert_eq!(module.functions.iter().filter(|f| f.kernel).count(), entries, "{what}");
    // Every line with a semicolon inside a body is an instruction or a declaration: none may be
    // lost.
    let branches = text.lines().map(str::trim_start).filter(|l| l.contains("bra ") || l.contains("bra.uni ")).count();
    let mut found = 0;
    for function in &module.functions {
        let Some(body) = &function.body else { continue };
        for instruction in &body.code {
            if let Some(Operand::Label(label)) = instruction.operands.first() {
                found += 1;
                assert!((body.labels[label.index()].at as usize) <= body.code.len());
            }
        }
    }
    assert_eq!(found, branches, "{what}: branches");
    module
}

#[test]
fn programs_of_the_corpus_parse() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/tests/cuda");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "cu") {
            // Maps are made by instructions of 9.0a.
            let arch = if path.ends_with("made_maps.cu") { "compute_90a" } else { "compute_90" };
            check(&path.display().to_string(), &compile(&path, arch, &[]));
            count += 1;
        }
    }
    assert!(count > 0);
}

#[test]
fn device_wide_algorithms_parse() {
    let source = "#include <cub/cub.cuh>
        int main() {
            int *k = 0, *v = 0, *n = 0; float* f = 0; void* t = 0; size_t s = 0;
            cub::DeviceRadixSort::SortPairs(t, s, k, v, k, v, 1000);
            cub::DeviceScan::ExclusiveSum(t, s, k, v, 1000);
            cub::DeviceReduce::Sum(t, s, f, f, 1000);
            cub::DeviceSelect::Flagged(t, s, k, v, k, n, 1000);
        }";
    // (A path that stays the same, so that what is compiled from it is found again.)
    let path = tests::build::generated("cub.cu", source);
    let include = format!("-I{}", installed_toolkit().join("include/cccl").display());
    for arch in ["compute_75", "compute_90"] {
        let module = check(arch, &compile(&path, arch, std::slice::from_ref(&include)));
        assert!(module.functions.iter().filter(|f| f.kernel).count() > 8);
    }
}
