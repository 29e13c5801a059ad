//! Host code that is compiled with `-fsanitize=thread`: each load and store of memory that devices
//! use is seen, on the simulated GPU.

use std::path::{Path, PathBuf};
use std::process::Command;

use tests::run::{Ended, end, streamsan};
use tests::{build, product};

const SANITIZED: &str = "-Xcompiler=-fsanitize=thread";

/// The program of all cases, linked with the library itself. `None`: CUDA's compiler is missing,
/// and that was said.
fn linked() -> Option<PathBuf> {
    linked_with(&[])
}

/// The same, with code that asks in line.
fn linked_inline() -> Option<PathBuf> {
    linked_with(&[&format!("-Xcompiler=-Xassembler,{}", build::asked_inline().display())])
}

fn linked_with(extra: &[&str]) -> Option<PathBuf> {
    let folder = format!("-L{}", product::bin().display());
    let usual = [SANITIZED, "-lstreamsan_host", &folder, "-Xlinker=--no-as-needed"];
    compiled(&[&usual[..], extra].concat())
}

fn compiled(extra: &[&str]) -> Option<PathBuf> {
    match build::toolkit() {
        // Linking is a step of its own: with the option the compiler would add the real runtime.
        Ok(_) => {
            let file = build::programs().join("instrumented.cu");
            Some(build::sanitized_program(&file, extra).unwrap_or_else(|error| panic!("{error}")))
        }
        Err(reason) => {
            eprintln!("not run: {reason}");
            None
        }
    }
}

fn run(program: &PathBuf, options: &[&str], words: &[&str]) -> Ended {
    let mut command = streamsan(["run", "--sim"]);
    end(command.args(options).arg("--").arg(program).args(words).env_remove("LD_LIBRARY_PATH"))
}

/// The names that the program lists.
fn cases(program: &PathBuf) -> Vec<String> {
    let ended = run(program, &[], &[]);
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
    ended.out.lines().map(str::to_owned).collect()
}

fn options(case: &str) -> &'static [&'static str] {
    if case.starts_with("handed_over") { &["--host-order", "threads"] } else { &[] }
}

#[test]
fn every_case_is_found_and_its_mended_form_is_silent() {
    let Some(program) = linked() else { return };
    judge_all(&program);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn every_case_ends_the_same_where_code_asks_in_line() {
    // There is no such form for aarch64.
    if product::is_aarch64() {
        return;
    }
    let Some(program) = linked_inline() else { return };
    // Not green by chance: functions' entries are not told any more, and the bytes are asked.
    let symbols = Command::new("nm").arg("-u").arg(&program).output().expect("nm");
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    assert!(symbols.contains("__streamsan_granules") && !symbols.contains("__tsan_func_entry"), "{symbols}");
    judge_all(&program);
}

fn judge_all(program: &PathBuf) {
    let cases = cases(program);
    assert!(cases.len() >= 32, "{cases:?}");
    for case in &cases {
        let mended = run(program, options(case), &[case]);
        assert_eq!(mended.code(), Some(0), "{case}: {}", mended.err);
        if case.starts_with("silent_") {
            continue;
        }
        let racy = run(program, options(case), &[case, "racy"]);
        assert_eq!(racy.code(), Some(66), "{case}: {}", racy.err);
        assert!(racy.err.contains("(certain)") && racy.err.contains("1 finding "), "{case}: {}", racy.err);
    }
}

#[test]
fn a_report_names_both_lines_and_the_bytes() {
    let Some(program) = linked() else { return };
    judge_report(&program, "called");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_report_of_code_that_asks_in_line_names_the_same() {
    let Some(program) = linked_inline() else { return };
    judge_report(&program, "inline");
}

fn judge_report(program: &PathBuf, name: &str) {
    let json = build::scratch("instrumented").join(name);
    let ended = run(program, &["--json", json.to_str().expect("a path")], &["struct_member", "racy"]);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(json).expect("written")).expect("JSON");
    let finding = &report["findings"][0];
    assert_eq!(finding["host"], true, "{finding:#}");
    assert_eq!(report["coverage"]["host_touches"], 1, "a loop is one run: {:#}", report["coverage"]);
    let (access, previous) = (finding["access"]["stack"].to_string(), finding["previous"]["stack"].to_string());
    assert!(access.contains("struct_member") && !access.contains("streamsan"), "{access}");
    assert!(previous.contains("struct_member"), "{previous}");
}

#[test]
fn code_that_is_not_instrumented_is_not_seen() {
    let Some(program) = compiled(&[]) else { return };
    assert_eq!(run(&program, &[], &["managed_read", "racy"]).code(), Some(0));
}

#[test]
fn a_program_that_is_linked_with_the_shared_runtime_gets_the_stand_in() {
    let Some(program) = compiled(&[SANITIZED, "-ltsan"]) else { return };
    for (words, code) in [(&["copy_out", "racy"][..], 66), (&["copy_out"], 0), (&["host_atomic", "racy"], 66)] {
        let ended = run(&program, &[], words);
        assert_eq!(ended.code(), Some(code), "{words:?}: {}", ended.err);
        assert!(!ended.err.contains("ThreadSanitizer"), "{}", ended.err);
    }
}

fn gcc(source: &str, extra: &[&str]) -> PathBuf {
    build::c_program(source, extra)
}

#[test]
fn the_real_runtime_inside_a_program_is_refused_in_one_line() {
    let program = gcc("sanitized.c", &["-fsanitize=thread", "-static-libtsan", "-mcx16"]);
    let ended = end(streamsan(["run", "--"]).arg(&program));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(126), ""), "{}", ended.err);
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    assert!(ended.err.contains("holds ThreadSanitizer's own runtime"), "{}", ended.err);
}

/// Atomic operations of all sizes, memory functions and the rest of the interface do what they
/// should: the program compares with what it computes by itself.
#[test]
fn the_library_performs_what_it_stands_for() {
    perform("sanitized", &[]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_library_performs_the_same_where_code_asks_in_line() {
    // There is no such form for aarch64.
    if product::is_aarch64() {
        return;
    }
    let inline = build::asked_inline();
    perform("sanitized_inline", &["-Xassembler", inline.to_str().expect("a path")]);
    perform("sanitized_fixed", &["-fno-pie", "-Xassembler", inline.to_str().expect("a path")]);
}

fn perform(name: &str, extra: &[&str]) {
    let folder = product::bin().display().to_string();
    let sanitized = build::scratch(name).join("sanitized.o");
    let source = build::programs().join("sanitized.c");
    let mut compile = Command::new("gcc");
    compile.args(["-O2", "-g", "-fsanitize=thread", "-c", "-o"]).arg(&sanitized).args(extra).arg(source);
    // Atomic operations of 16 bytes, which every aarch64 has.
    compile.args((!product::is_aarch64()).then_some("-mcx16"));
    assert!(compile.status().expect("gcc").success());
    let program = sanitized.with_file_name("sanitized");
    let mut link = Command::new("gcc");
    link.arg(&sanitized)
        .arg("-o")
        .arg(&program)
        .args(["-L", &folder, "-lstreamsan_host", "-pthread"])
        .args(extra.first().filter(|first| **first == "-fno-pie").map(|_| "-no-pie"));
    assert!(link.status().expect("gcc").success());
    // Alone, without StreamSan and without CUDA.
    let alone = end(Command::new(&program).env("LD_LIBRARY_PATH", &folder));
    assert_eq!((alone.code(), alone.out.as_str()), (Some(0), "right\n"), "{}", alone.err);
    assert_eq!(alone.err, "");
    // Beside the shim, still without CUDA; the launcher finds the library.
    let beside = end(streamsan(["run", "--"]).arg(&program));
    assert_eq!((beside.code(), beside.out.as_str()), (Some(0), "right\n"), "{}", beside.err);
    // With CUDA: the gate is open while the loops run.
    let with_cuda = end(streamsan(["run", "--sim", "--"]).arg(&program).arg("cuda"));
    assert_eq!((with_cuda.code(), with_cuda.out.as_str()), (Some(0), "right\n"), "{}", with_cuda.err);
}

/// Compilers differ in what they announce and how. Those that are not installed are left out.
#[test]
fn compilers_of_c_and_fortran_announce_their_accesses() {
    let Ok(toolkit) = build::toolkit() else { return };
    let include = format!("-I{}", toolkit.join("include").display());
    let folders = [product::bin().to_path_buf(), product::root().join(".toolkit/lib")];
    let folders: String = folders.iter().map(|folder| format!(" -L'{}'", folder.display())).collect();
    let inline = build::asked_inline();
    let inline = inline.display();
    let (gnu, llvm) =
        (format!("-Xassembler '{inline}'"), format!("-no-integrated-as -Wa,--defsym,.Lcallq=1,'{inline}'"));
    let mut ways =
        vec![("gcc", "announced.c", 3, ""), ("clang", "announced.c", 3, ""), ("gfortran", "announced.f90", 2, "")];
    if cfg!(target_arch = "x86_64") {
        ways.extend([
            ("gcc", "announced.c", 3, &*gnu),
            ("clang", "announced.c", 3, &llvm),
            ("gfortran", "announced.f90", 2, &gnu),
        ]);
    }
    for (compiler, file, findings, asked) in ways {
        if Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("not run: {compiler} is not installed");
            continue;
        }
        let file = build::programs().join(file);
        // gcc moves small structures without a call, and does not announce that.
        let calls = if compiler == "gcc" { "-fno-builtin-memcpy" } else { "" };
        let script = format!(
            "{compiler} -O1 -g -fsanitize=thread {asked} {calls} {include} -c '{}' -o '{{out}}'.o; \
             {compiler} '{{out}}'.o -o '{{out}}' {folders} -lstreamsan_host -lcudart",
            file.display(),
        );
        let program =
            build::cached("announced", Path::new("sh"), &["-ec".into(), script], &[&file, &build::asked_inline()])
                .unwrap_or_else(|error| panic!("{error}"));
        let racy = run(&program, &[], &["racy"]);
        assert_eq!(racy.code(), Some(66), "{compiler} {asked}: {}", racy.err);
        let count = format!("SUMMARY: {findings} findings ({findings} certain");
        assert!(racy.err.contains(&count) && racy.out.starts_with("done"), "{compiler} {asked}: {}", racy.err);
        let fixed = run(&program, &[], &["fixed"]);
        assert_eq!(fixed.code(), Some(0), "{compiler} {asked}: {}", fixed.err);
    }
}
