//! What the simulated GPU refuses, whatever the program makes of the error: no such run looks
//! clean, and what was refused is named. What a program only asks about makes no difference.

use std::path::{Path, PathBuf};
use std::process::Command;

use tests::{build, product, run};

fn no_toolkit() -> bool {
    std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1")
}

fn compiled(source: &str, extra: &[&str]) -> PathBuf {
    build::cuda_program(&product::root().join("tests").join(source), "shared", extra).unwrap_or_else(|e| panic!("{e}"))
}

fn sim(options: &[&str], program: &Path, words: &[&str]) -> run::Ended {
    let mut command = run::streamsan(["run", "--sim"]);
    run::end(command.args(options).arg("--").arg(program).args(words).env_remove("LD_LIBRARY_PATH"))
}

fn errors(ended: &run::Ended) -> Vec<&str> {
    ended.err.lines().filter(|line| line.starts_with("streamsan: ERROR: not run on the simulated GPU")).collect()
}

#[test]
fn a_refusal_ends_with_70_and_its_name() {
    if no_toolkit() {
        return;
    }
    let program = compiled("programs/sim/refused.cu", &[]);
    for (how, named) in [
        ("call", "cudaImportExternalMemory is not simulated"),
        ("environment", "cudaImportExternalMemory is not simulated"),
        ("child", "cudaImportExternalMemory is not simulated"),
        ("user", "cudaImportExternalMemory is not simulated"),
        ("root", "cudaImportExternalMemory is not simulated"),
        ("user alone", "cudaImportExternalMemory is not simulated"),
        ("root alone", ""),
        ("kernel", "kernel `strange` was refused: Unsupported(frobnicate.u32)"),
        ("function", "symbol `nowhere` used by `calls` is defined nowhere"),
        ("texture", "a view of a texture's resource is not simulated"),
        ("form", "cuGraphInstantiateWithFlags was called in a way that is not simulated"),
    ] {
        for options in [&[][..], &["--require-cuda"]] {
            let ended = sim(options, &program, &[how]);
            if ended.code() == Some(77) {
                // Only root may become another user, or have another root.
                continue;
            }
            assert_eq!((ended.code(), ended.out.as_str()), (Some(70), "done\n"), "{how}: {}", ended.err);
            let errors = errors(&ended);
            // Where nothing reaches the launcher, the exit code is the program's.
            let is_named = errors.len() == 1 && !named.is_empty() && errors[0].contains(named);
            assert!(is_named || (named.is_empty() && errors.is_empty()), "{how}: {}", ended.err);
            // In a loop too it is said once by the simulator.
            assert_eq!(ended.err.matches("streamsan-sim: ").count(), 1, "{how}: {}", ended.err);
        }
    }
    // A program that the error has killed, and one with a race.
    let ended = sim(&[], &program, &["abort"]);
    assert_eq!((ended.code(), errors(&ended).len()), (Some(70), 1), "{}", ended.err);
    // A refusal decides where a race is found, too: behind a refused kernel one run finds it and
    // the next does not.
    for how in ["race", "racing kernel"] {
        for options in [&[][..], &["--error-exitcode", "5"], &["--error-exitcode", "0"]] {
            let ended = sim(options, &program, &[how]);
            assert_eq!((ended.code(), errors(&ended).len()), (Some(70), 1), "{how}: {}", ended.err);
            assert!(how != "race" || ended.err.contains("SUMMARY: 1 finding"), "{}", ended.err);
        }
    }
    let mut command = run::streamsan(["record", "--sim", "-o"]);
    command.arg(build::scratch("sim-refused").join("t")).arg("--").arg(&program).arg("call");
    assert_eq!(run::end(command.env_remove("LD_LIBRARY_PATH")).code(), Some(70));
}

#[test]
fn what_a_program_only_asks_about_is_no_refusal() {
    if no_toolkit() {
        return;
    }
    let program = compiled("programs/sim/refused.cu", &[]);
    for how in ["nothing", "probe"] {
        let ended = sim(&["--require-cuda"], &program, &[how]);
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{how}: {}", ended.err);
        assert!(errors(&ended).is_empty(), "{how}: {}", ended.err);
    }
}

#[test]
fn a_function_that_the_simulated_runtime_has_not_got_is_named() {
    if no_toolkit() {
        return;
    }
    // A runtime of the same name with one function more.
    let folder = build::scratch("sim-lacks");
    let (source, program) = (folder.join("more.c"), folder.join("more"));
    std::fs::write(&source, "int cudaOfTomorrow(void) { return 0; }\nint cudaFree(void *p) { return p != 0; }\n")
        .unwrap();
    let library = folder.join("libcudart.so.13");
    let gcc = |args: &[&str]| assert!(Command::new("gcc").current_dir(&folder).args(args).status().unwrap().success());
    gcc(&["-shared", "-fPIC", "-Wl,-soname,libcudart.so.13", "-o", library.to_str().unwrap(), "more.c"]);
    std::fs::write(
        &source,
        "int cudaOfTomorrow(void), cudaFree(void *);\nint main(void) { return cudaFree(0) + cudaOfTomorrow(); }\n",
    )
    .unwrap();
    gcc(&["-o", "more", "more.c", library.to_str().unwrap(), "-Wl,--no-as-needed", "-Wl,-rpath,/nowhere"]);
    let ended = sim(&[], &program, &[]);
    assert_eq!(ended.code(), Some(70), "{}", ended.err);
    let errors = errors(&ended);
    assert!(errors.len() == 1 && errors[0].contains("cudaOfTomorrow is needed"), "{}", ended.err);
}

#[test]
fn a_static_program_with_device_code_is_no_clean_run() {
    let folder = build::scratch("sim-closed");
    // A fat binary without entries, and none.
    let code = "__attribute__((section(\".nv_fatbin\"), used)) const unsigned code[] = {0xba55ed50, 0x00100001, 0, 0};";
    for (name, code, expected) in [("with", code, 70), ("without", "", 0)] {
        let source = folder.join(name).with_extension("c");
        std::fs::write(&source, format!("{code}\nint main(void) {{ return 0; }}\n")).expect("writable");
        let program = folder.join(name);
        if Command::new("gcc").args(["-static", "-o"]).arg(&program).arg(&source).status().expect("gcc").success() {
            let ended = sim(&[], &program, &[]);
            assert_eq!(ended.code(), Some(expected), "{name}: {}", ended.err);
            assert_eq!(errors(&ended).len(), usize::from(expected == 70), "{name}: {}", ended.err);
        }
    }
}

#[test]
fn separate_compilation_without_machine_code_has_ranges() {
    if no_toolkit() {
        return;
    }
    let folder = product::root().join("tests/corpus/separate");
    let parts = [folder.join("parts/scaled.cu")];
    for (name, code) in [("two_files_unordered", 66), ("two_files_event", 0)] {
        let file = folder.join(name).with_extension("cu");
        let program =
            build::separate_program(&file, &parts, false, "-arch=compute_80").unwrap_or_else(|e| panic!("{e}"));
        let ended = sim(&[], &program, &[]);
        assert_eq!(ended.code(), Some(code), "{}", ended.err);
        assert_eq!(ended.out, "524288\n", "{}", ended.err);
        assert!(ended.err.contains("2 launches (2 with ranges"), "{}", ended.err);
    }
}
