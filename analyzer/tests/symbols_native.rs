//! Native stacks of real programs: functions, lines and inlined frames, and the result when files
//! are missing or wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

use symbols::Symbolizer;
use symbols::frame::{Frame, FrameKind};
use trace::StackId;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/symbols_programs/frames.cc");

fn scratch(test: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("streamsan-symbols-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("create");
    directory
}

fn command(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().expect("start");
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn build(out: &Path, flags: &[&str]) {
    let out = out.to_str().expect("UTF-8");
    command("c++", &[&["-std=c++17", SOURCE, "-o", out], flags].concat());
}

/// Runs the program and defines the stack that it printed.
fn record(program: &Path) -> (Symbolizer, Vec<u64>) {
    let output = Command::new(program).output().expect("start");
    assert!(output.status.success());
    let mut symbolizer = Symbolizer::new();
    let mut frames = Vec::new();
    let hex = |text: &str| u64::from_str_radix(text, 16).expect("a number");
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["module", start, end, bias, path, id] => {
                let id: Vec<u8> = (0..id.len() / 2).map(|i| hex(&id[2 * i..2 * i + 2]) as u8).collect();
                symbolizer.module(hex(start), hex(end), hex(bias), path, &id);
            }
            ["frame", address] => frames.push(hex(address)),
            _ => {}
        }
    }
    assert!(frames.len() > 5);
    symbolizer.stack(StackId(1), frames.iter().copied(), []);
    (symbolizer, frames)
}

fn resolve(program: &Path) -> Vec<Frame> {
    record(program).0.resolve(StackId(1))
}

fn line_of(mark: &str) -> u32 {
    let source = std::fs::read_to_string(SOURCE).expect("source");
    let at = source.lines().position(|line| line.ends_with(&format!("// mark: {mark}"))).expect("a mark");
    at as u32 + 1
}

/// Function and mark, innermost first; `true`: inlined. Inlined functions of internal linkage have
/// no mangled name, so GCC gives their plain one.
const EXPECTED: [(&str, &str, bool); 6] = [
    ("innermost", "innermost", true),
    ("middle", "middle", true),
    ("shop::Cart::add(shop::Item const&)", "add", false),
    ("double shop::Cart::sum<double>(double, std::pair<int, double>)", "sum", false),
    ("plain_c", "plain", false),
    ("main", "main", false),
];

fn check_lines(frames: &[Frame], what: &str) {
    let first = frames.iter().position(|frame| frame.function == EXPECTED[0].0);
    let first = first.unwrap_or_else(|| panic!("{what}: {frames:#?}"));
    for (frame, (function, mark, inlined)) in frames[first..].iter().zip(EXPECTED) {
        assert_eq!(frame.function, function, "{what}");
        assert_eq!((frame.line, frame.inlined), (Some(line_of(mark)), inlined), "{what}: {function}");
        assert!(frame.file.as_deref().is_some_and(|file| file.ends_with("symbols_programs/frames.cc")), "{what}");
        assert!(frame.source.as_deref().is_some_and(|text| text.ends_with(&format!("mark: {mark}"))), "{what}");
        assert_eq!(frame.kind, FrameKind::Native);
    }
    let last = frames.last().expect("frames");
    assert_eq!(last.kind, FrameKind::Folded, "{what}");
    assert!(last.function.ends_with("frames of the C library's start-up]"), "{what}: {}", last.function);
}

#[test]
fn lines_and_inlined_functions() {
    let directory = scratch("lines");
    for (name, flags) in [
        ("dwarf5", &["-g", "-O2"][..]),
        ("dwarf4", &["-gdwarf-4", "-O2", "-fomit-frame-pointer"]),
        ("no-pie", &["-g", "-O1", "-no-pie"]),
        ("compressed", &["-g", "-O2", "-gz=zlib"]),
        ("split", &["-g", "-O2", "-gsplit-dwarf"]),
    ] {
        let program = directory.join(name);
        build(&program, flags);
        check_lines(&resolve(&program), name);
    }
}

#[test]
fn names_without_debug_information() {
    let program = scratch("plain").join("plain");
    build(&program, &["-O2"]);
    let frames = resolve(&program);
    let names: Vec<_> = frames.iter().map(|frame| frame.function.as_str()).collect();
    let expected: Vec<_> = EXPECTED.iter().filter(|(_, _, inlined)| !inlined).map(|(name, ..)| *name).collect();
    let first = names.iter().position(|name| *name == expected[0]).expect("add");
    assert_eq!(names[first..first + expected.len()], expected);
    assert!(frames[..first + expected.len()].iter().all(|frame| frame.file.is_none() && !frame.inlined));
}

#[test]
fn separate_debug_information() {
    let directory = scratch("separate");
    let program = directory.join("program");
    build(&program, &["-g", "-O2"]);
    let path = program.to_str().expect("UTF-8");
    std::fs::create_dir_all(directory.join(".debug")).expect("create");
    let debug = directory.join(".debug/program.debug");
    let debug = debug.to_str().expect("UTF-8");
    command("objcopy", &["--only-keep-debug", path, debug]);
    command("strip", &[path]);
    command("objcopy", &[&format!("--add-gnu-debuglink={debug}"), path]);
    check_lines(&resolve(&program), "debug link");
    // Debug information of another build must not be believed.
    let (mut symbolizer, _) = record(&program);
    build(Path::new(debug), &["-g", "-O1", "-DOTHER"]);
    let frames = symbolizer.resolve(StackId(1));
    assert!(frames.iter().all(|frame| !frame.function.contains("shop::")), "{frames:#?}");
}

/// All frames of the program are `NAME+0xoffset`, and say which module.
fn check_offsets(frames: &[Frame], name: &str, what: &str) {
    let own: Vec<_> = frames.iter().filter(|frame| frame.function.starts_with(&format!("{name}+0x"))).collect();
    assert!(own.len() >= 5, "{what}: {frames:#?}");
    assert!(own.iter().all(|frame| frame.file.is_none() && frame.module.is_some() && frame.address != 0), "{what}");
}

#[test]
fn stripped_missing_and_wrong_files() {
    let directory = scratch("wrong");
    let program = directory.join("stripped");
    build(&program, &["-O2", "-s"]);
    check_offsets(&resolve(&program), "stripped", "stripped");

    let program = directory.join("gone");
    build(&program, &["-g", "-O2"]);
    let (mut symbolizer, _) = record(&program);
    let bytes = std::fs::read(&program).expect("read");
    std::fs::remove_file(&program).expect("remove");
    check_offsets(&symbolizer.resolve(StackId(1)), "gone", "missing");

    let program = directory.join("replaced");
    build(&program, &["-g", "-O2"]);
    let (mut symbolizer, _) = record(&program);
    std::fs::remove_file(&program).expect("remove");
    build(&program, &["-g", "-O0", "-DOTHER"]);
    check_offsets(&symbolizer.resolve(StackId(1)), "replaced", "another build");

    // Damage of every kind: no panic, and at worst no names.
    let program = directory.join("damaged");
    std::fs::write(&program, &bytes).expect("write");
    command("chmod", &["+x", program.to_str().expect("UTF-8")]);
    let (_, frames) = record(&program);
    let bias = frames[0] & !0xf_ffff;
    for step in 0..60 {
        let mut damaged = bytes.clone();
        if step < 20 {
            damaged.truncate(bytes.len() * step / 20);
        } else {
            for i in (step * 7..damaged.len()).step_by(97 + step * 31) {
                damaged[i] ^= 0xff;
            }
        }
        std::fs::write(&program, &damaged).expect("write");
        let mut symbolizer = Symbolizer::new();
        symbolizer.module(bias, bias + (1 << 20), bias, program.to_str().expect("UTF-8"), &[]);
        symbolizer.stack(StackId(1), frames.iter().copied(), []);
        assert!(!symbolizer.resolve(StackId(1)).is_empty());
    }
    for odd in ["/", "/dev/zero", "", "relative", "/proc/self/mem"] {
        let mut symbolizer = Symbolizer::new();
        symbolizer.module(0, 1 << 20, 0, odd, &[]);
        symbolizer.stack(StackId(1), [0, 1, 0x1234, u64::MAX], []);
        assert_eq!(symbolizer.resolve(StackId(1)).len(), 4);
    }
}

#[test]
fn a_module_replaces_another_for_later_stacks_only() {
    let directory = scratch("takeover");
    let (first, second) = (directory.join("first"), directory.join("second"));
    build(&first, &["-O2", "-no-pie"]);
    let (mut symbolizer, frames) = record(&first);
    let end = 1 << 32;
    symbolizer.module(0, end, 0, second.to_str().expect("UTF-8"), &[]);
    symbolizer.stack(StackId(2), frames, []);
    let later = symbolizer.resolve(StackId(2));
    assert!(later.iter().any(|frame| frame.function.starts_with("second+0x")), "{later:#?}");
    assert!(symbolizer.resolve(StackId(1)).iter().any(|frame| frame.function == "plain_c"));
}

#[test]
fn uninteresting_frames_are_folded() {
    let mut symbolizer = Symbolizer::new();
    let names = ["libcuda.so.1", "libcudart.so.12", "libstreamsan.so", "ld-linux-x86-64.so.2", "libmine.so"];
    for (i, name) in names.iter().enumerate() {
        let start = 0x10000 * (i as u64 + 1);
        symbolizer.module(start, start + 0x10000, start, format!("/nowhere/{name}"), &[]);
    }
    let stack = [0x10001, 0x10002, 0x20001, 0x50011, 0x30001, 0x30002, 0x30003, 0x50021, 0x40001];
    symbolizer.stack(StackId(1), stack, []);
    let frames = symbolizer.resolve(StackId(1));
    let shown: Vec<_> = frames.iter().map(|frame| frame.function.as_str()).collect();
    let expected = [
        "[2 frames of libcuda.so.1]",
        "[1 frame of libcudart.so.12]",
        "libmine.so+0x11",
        "[3 frames of libstreamsan.so]",
        "libmine.so+0x21",
        "[1 frame of ld-linux-x86-64.so.2]",
    ];
    assert_eq!(shown, expected);
    assert_eq!(frames[0].module.as_deref(), Some("/nowhere/libcuda.so.1"));
}

#[test]
fn programs_of_nvcc() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let output = Command::new(root.join("scripts/toolkit")).output().expect("scripts/toolkit");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let toolkit = String::from_utf8_lossy(&output.stdout).trim().to_string();
    let directory = scratch("nvcc");
    let source = directory.join("frames.cu");
    std::fs::write(&source, format!("#include \"{SOURCE}\"\n")).expect("write");
    for (name, flags) in [("g", &["-g"][..]), ("lineinfo", &["-lineinfo"]), ("bare", &[])] {
        let program = directory.join(name);
        let mut nvcc = Command::new(format!("{toolkit}/bin/nvcc"));
        nvcc.args(["-O2", "-arch=sm_90", "-std=c++17", "-Wno-deprecated-gpu-targets"]).arg(format!("-L{toolkit}/lib"));
        let output = nvcc.args(flags).arg(&source).arg("-o").arg(&program).output().expect("nvcc");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (mut symbolizer, frames) = record(&program);
        let resolved = symbolizer.resolve(StackId(1));
        if name == "g" {
            check_lines(&resolved, name);
        } else {
            assert!(
                resolved.iter().any(|frame| frame.function == "shop::Cart::add(shop::Item const&)"),
                "{resolved:#?}"
            );
        }
        // A frame in the runtime that the program carries within itself.
        let symbols = Command::new("nm").arg(&program).output().expect("nm");
        let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
        let at = |name: &str| {
            let line = symbols.lines().find(|line| line.ends_with(name)).unwrap_or_else(|| panic!("{name}"));
            u64::from_str_radix(&line[..16], 16).expect("an address")
        };
        let inside = frames.iter().find(|frame| **frame & 0xfff == (at(" main") & 0xfff)).copied();
        let bias = inside.unwrap_or(0) & !0xfff;
        let mut own = Symbolizer::new();
        own.module(bias, bias + (1 << 30), bias, program.to_str().expect("UTF-8"), &[]);
        own.stack(StackId(1), [bias + at(" cudaMemcpyAsync") + 5, bias + at(" main") + 5], []);
        let frames = own.resolve(StackId(1));
        assert_eq!(frames[0].kind, FrameKind::Folded);
        assert!(frames[0].function.starts_with("[1 frame of cudart"), "{frames:#?}");
        assert_eq!(frames[1].function, "main");
    }
}

#[test]
fn programs_of_rustc() {
    let directory = scratch("rust");
    let source = directory.join("shop.rs");
    let program = directory.join("shop");
    let text = "mod shop { pub struct Cart<T>(pub T);\n impl<T: Copy> Cart<T> { #[inline(never)] pub fn total(&self) -> T { std::hint::black_box(self.0) } } }\n\
                fn main() { let c = shop::Cart(std::env::args().count()); std::process::exit((c.total() == 77) as i32) }\n";
    std::fs::write(&source, text).expect("write");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let (source, path) = (source.to_str().expect("UTF-8"), program.to_str().expect("UTF-8"));
    for (mangling, name) in [("legacy", "shop::shop::Cart<T>::total"), ("v0", "<shop::shop::Cart<usize>>::total")] {
        let mangling_flag = format!("-Csymbol-mangling-version={mangling}");
        let mut compile = Command::new(&rustc);
        compile
            .args(["-g", "-O", "-Zunstable-options", &mangling_flag, source, "-o", path])
            .env("RUSTC_BOOTSTRAP", "1");
        assert!(compile.status().expect("rustc").success());
        let symbols = Command::new("nm").arg(&program).output().expect("nm");
        let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
        let line = symbols.lines().find(|line| line.contains("total")).unwrap_or_else(|| panic!("total: {symbols}"));
        let at = u64::from_str_radix(&line[..16], 16).expect("an address");
        let mut symbolizer = Symbolizer::new();
        symbolizer.module(0, 1 << 32, 0, path, &[]);
        symbolizer.stack(StackId(1), [at + 2], []);
        let frames = symbolizer.resolve(StackId(1));
        let outer = frames.last().expect("a frame");
        assert_eq!((outer.function.as_str(), outer.line), (name, Some(2)), "{frames:#?}");
    }
}
