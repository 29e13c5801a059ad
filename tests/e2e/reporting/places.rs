//! The places that reports name: not those of a start-up, of a helper or of a launch stub alone.

use std::path::{Path, PathBuf};

use tests::{build, run};

/// What a program with these words makes StreamSan print on the simulated GPU, and the exit code.
fn report(program: &Path, words: &[&str]) -> (Option<i32>, String) {
    let mut command = run::streamsan(["run", "--sim", "--"]);
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").arg(program).args(words));
    (ended.code(), ended.err)
}

fn is_there(text: &str, wanted: &[&str], unwanted: &[&str]) {
    for part in wanted {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in unwanted {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

/// `tests/programs/report/start_up.rs`, compiled with these options.
fn rust_program(options: &[&str]) -> PathBuf {
    let file = build::programs().join("report/start_up.rs");
    let mut args: Vec<String> = ["--edition", "2024", "-o", "{out}"].map(String::from).into();
    args.extend(options.iter().map(|option| (*option).to_owned()));
    args.push(file.display().to_string());
    build::cached("start_up", Path::new("rustc"), &args, &[&file]).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_start_up_of_rust_is_folded() {
    const START_UP: [&str; 6] =
        ["lang_start", "__rust_begin_short_backtrace", "call_once", "catch_unwind", "thread_start", "/library/"];
    for (options, has_lines) in [(&["-g"][..], true), (&["-O"], false), (&["-O", "-g"], true)] {
        let program = rust_program(options);
        for thread in [&[][..], &["thread"]] {
            let (code, text) = report(&program, thread);
            assert_eq!(code, Some(66), "{text}");
            let own = if has_lines { "created at start_up.rs:" } else { "created at start_up::two_fills" };
            is_there(&text, &["of Rust's start-up]", own, "start_up::two_fills"], &START_UP);
            assert_eq!(text.contains("NOTE: the program's calls are named by functions"), !has_lines, "{text}");
        }
        let (code, text) = report(&program, &["thread", "waits"]);
        assert!(code == Some(0) && text.contains("SUMMARY: 0 findings"), "{text}");
    }
}

/// `tests/programs/report/helpers.cu`, compiled with these options.
fn helpers(options: &[&str]) -> Option<PathBuf> {
    build::cuda_program_if_possible("report/helpers.cu", "static", options)
}

#[test]
fn a_helper_does_not_hide_its_caller() {
    for optimised in ["-O2", "-O0"] {
        let Some(program) = helpers(&["-Xcompiler", optimised]) else { return };
        let (code, text) = report(&program, &[]);
        assert_eq!(code, Some(66), "{text}");
        is_there(
            &text,
            &[
                "// after the previous access, helpers.cu:16, called at helpers.cu:25\n",
                "// before this access, helpers.cu:16, called at helpers.cu:30\n",
                "stream 1 waited for stream 2 at helpers.h:13, called at helpers.cu:29.",
                "created at helpers.cu:11, called at helpers.cu:23)",
                "created at helpers.cu:11, called at helpers.cu:24)",
            ],
            &["NOTE: the program's calls are named by functions"],
        );
        let (code, text) = report(&program, &["waits"]);
        assert!(code == Some(0) && text.contains("SUMMARY: 0 findings"), "{text}");
    }
}

#[test]
fn a_launch_stub_is_not_a_line_of_the_program() {
    for options in [
        &["-Xcompiler", "-O0", "-Xlinker", "--strip-debug"][..],
        &["-Xcompiler", "-O2", "-Xlinker", "--strip-debug"],
        &["-lineinfo", "-Xcompiler", "-O0", "-Xlinker", "--strip-debug"],
    ] {
        let Some(program) = helpers(options) else { return };
        let (code, text) = report(&program, &[]);
        assert_eq!(code, Some(66), "{text}");
        let stubs = ["__cudaLaunchKernel", "__device_stub__"];
        is_there(&text, &["filled(float*, float", "compile with -g to see their lines"], &stubs);
    }
}
