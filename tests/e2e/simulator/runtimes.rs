//! Programs that bring NVIDIA's runtime: inside, in their libraries, or by a path past
//! `LD_LIBRARY_PATH`. The simulator's takes its place, in all versions. Where it cannot, the run is
//! not clean and says what to do.
//!
//! That each program of the corpus gets its verdict with the static runtime is in
//! `cases/corpus.rs`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tests::{build, product, run};

fn no_toolkit() -> bool {
    std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1")
}

fn compiled(source: &str, cudart: &str, extra: &[&str]) -> PathBuf {
    build::cuda_program(&product::root().join("tests").join(source), cudart, extra).unwrap_or_else(|e| panic!("{e}"))
}

fn sim(verb: &[&str], program: &Path, words: &[&str]) -> run::Ended {
    let mut command = run::streamsan(verb);
    run::end(command.arg("--").arg(program).args(words).env_remove("LD_LIBRARY_PATH"))
}

fn errors(ended: &run::Ended) -> Vec<&str> {
    ended.err.lines().filter(|line| line.starts_with("streamsan: ERROR: not run on the simulated GPU")).collect()
}

/// A race is found in a program, and none when an argument makes it wait.
fn racy_and_fixed(program: &Path, words: &[&str], says: &str) {
    for (more, code) in [(&[][..], 66), (&["waits"][..], 0)] {
        let ended = sim(&["run", "--sim"], program, &[words, more].concat());
        assert_eq!(ended.code(), Some(code), "{} {words:?}: {}\n{}", program.display(), ended.out, ended.err);
        assert!(ended.out == says && errors(&ended).is_empty(), "{} {words:?}: {}", program.display(), ended.err);
    }
}

#[test]
fn programs_and_the_libraries_that_they_open_may_have_a_runtime_each() {
    if no_toolkit() {
        return;
    }
    let library = |cudart| {
        let file = "programs/sim/parts.cu";
        compiled(file, cudart, &["-DLIBRARY", "-shared", "-Xcompiler", "-fPIC"]).display().to_string()
    };
    for (program, opened) in [("static", "static"), ("static", "shared"), ("shared", "static")] {
        racy_and_fixed(&compiled("programs/sim/parts.cu", program, &[]), &[&library(opened)], "done\n");
    }
    // A program that is not of CUDA at all.
    let script = "import ctypes, sys\n\
                  library = ctypes.CDLL(sys.argv[1])\n\
                  sys.exit(20 + library.launch(None, 0, 1, None))\n";
    let ended = sim(&["run", "--sim", "--require-cuda"], Path::new("python3"), &["-c", script, &library("static")]);
    assert_eq!(ended.code(), Some(21), "a launch of no blocks is an error: {}", ended.err);
    assert!(errors(&ended).is_empty(), "{}", ended.err);
}

#[test]
fn programs_behind_others_are_diverted_as_well() {
    if no_toolkit() {
        return;
    }
    for (more, code) in [(&[][..], 66), (&["-DFIXED"][..], 0)] {
        let program = compiled("programs/demo/racy.cu", "static", more);
        let shell = format!("(env '{}'; exit $?)", program.display());
        let ended = sim(&["run", "--sim"], Path::new("sh"), &["-c", &shell]);
        assert_eq!(ended.code(), Some(code), "{}", ended.err);
        assert!(ended.out.starts_with("total ") && errors(&ended).is_empty(), "{}", ended.err);
        // The dynamic linker loads a program too when it is started by hand.
        let ended = sim(&["run", "--sim"], Path::new("/lib64/ld-linux-x86-64.so.2"), &[&program.display().to_string()]);
        assert!(ended.out.starts_with("total ") && errors(&ended).is_empty(), "{}", ended.err);
    }
    // Without the launcher: both libraries are preloaded by hand.
    let program = compiled("programs/demo/racy.cu", "static", &[]);
    let folder = product::bin().join("sim");
    let preload = format!("{}:{}", product::shim().display(), folder.join("libstreamsan_divert.so").display());
    let mut command = run::command(&program);
    let ended = run::end(command.env("LD_LIBRARY_PATH", &folder).env("LD_PRELOAD", preload));
    assert!(ended.err.contains("DATA RACE") && ended.out.starts_with("total "), "{}", ended.err);
    // And without the second one it says which is missing.
    let mut command = run::command(&program);
    let ended = run::end(command.env("LD_LIBRARY_PATH", &folder));
    assert!(ended.err.contains("libstreamsan_divert.so of the folder `sim` in LD_PRELOAD"), "{}", ended.err);
}

#[test]
fn a_program_without_symbols_is_told_what_to_do() {
    if no_toolkit() {
        return;
    }
    let stripped = |source| compiled(source, "static", &["-Xlinker", "-s"]);
    let program = stripped("programs/entry_point.cu");
    let ended = sim(&["run", "--sim"], &program, &[]);
    assert_eq!(ended.code(), Some(70), "a run that checked nothing is not clean: {}", ended.err);
    let why = errors(&ended)[0];
    assert!(why.contains("/entry_point: its CUDA runtime") && why.contains("symbols are stripped"), "{}", ended.err);

    // A program that swallows the error, or makes it its own, and a recording of it.
    let swallows = stripped("programs/sim/swallows.cu");
    assert_eq!(sim(&["run", "--sim"], &swallows, &[]).code(), Some(70));
    let json = build::scratch("sim-static").join("j");
    let ended = sim(&["run", "--sim", "--json", &json.display().to_string()], &swallows, &["3"]);
    assert_eq!(ended.code(), Some(70), "its 3 means nothing: {}", ended.err);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("JSON");
    assert!(report["coverage"]["not_simulated"][0].as_str().is_some_and(|why| why.contains("-cudart shared")));
    let trace = json.with_file_name("t").display().to_string();
    assert_eq!(sim(&["record", "--sim", "-o", &trace], &swallows, &[]).code(), Some(70));

    // With its symbols, or the shared runtime, the same program is simply clean; and so it is when
    // only what debuggers want is stripped.
    for (cudart, extra) in
        [("static", &[][..]), ("static", &["-Xlinker", "-S"][..]), ("shared", &["-Xlinker", "-s"][..])]
    {
        let program = compiled("programs/sim/swallows.cu", cudart, extra);
        let ended = sim(&["run", "--sim"], &program, &[]);
        assert_eq!((ended.code(), ended.ours().len()), (Some(0), 2), "{cudart} {extra:?}: {}", ended.err);
    }
    assert_eq!(
        sim(&["record", "--sim", "-o", &trace], &compiled("programs/sim/swallows.cu", "static", &[]), &[]).code(),
        Some(0)
    );
}

#[test]
fn a_program_that_may_not_be_read_is_told_what_to_do() {
    if no_toolkit() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("streamsan-unreadable-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("swallows");
    std::fs::copy(compiled("programs/sim/swallows.cu", "static", &[]), &program).expect("copied");
    std::fs::set_permissions(&program, Permissions::from_mode(0o111)).expect("ours");
    // SAFETY: geteuid has no preconditions.
    let is_root = unsafe { libc::geteuid() } == 0;
    let as_user = |mut command: Command| {
        if is_root {
            command.uid(65534).gid(65534);
        }
        command.env("HOME", "/nonexistent").env_remove("XDG_RUNTIME_DIR").env_remove("XDG_CACHE_HOME");
        command.env("TMPDIR", "/tmp").current_dir("/");
        run::end(&mut command)
    };
    // That user may not get to where this was built.
    if as_user(run::streamsan(["--version"])).code() == Some(0) {
        let mut command = run::streamsan(["run", "--sim", "--"]);
        command.arg(&program);
        let ended = as_user(command);
        assert_eq!(ended.code(), Some(70), "{}", ended.err);
        let why = errors(&ended)[0];
        assert!(why.contains("the file cannot be read") && !why.contains("stripped"), "{}", ended.err);
    }
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn a_path_to_another_runtime_is_overruled() {
    if no_toolkit() {
        return;
    }
    let toolkit = build::toolkit().unwrap_or_else(|e| panic!("{e}"));
    let lib = [toolkit.join("lib"), toolkit.join("lib64")];
    let lib = lib.iter().find(|lib| lib.join("libcudart.so.13").exists()).expect("a shared runtime");
    let path = format!("-rpath={}", lib.display());
    for tags in ["--disable-new-dtags", "--enable-new-dtags"] {
        let extra = ["-Xlinker", tags, "-Xlinker", path.as_str()];
        for (more, code) in [(&[][..], 66), (&["-DFIXED"][..], 0)] {
            let program = compiled("programs/demo/racy.cu", "shared", &[&extra[..], more].concat());
            // Behind a shell too.
            let shell = format!("{}; exit $?", program.display());
            for (start, words) in [(program.as_path(), &[][..]), (Path::new("sh"), &["-c", shell.as_str()][..])] {
                let ended = sim(&["run", "--sim"], start, words);
                assert_eq!(ended.code(), Some(code), "{tags}: {}", ended.err);
                assert!(errors(&ended).is_empty() && ended.out.starts_with("total "), "{tags}: {}", ended.err);
            }
        }
    }
    // A full path, as Python packages open it.
    let script = "import ctypes, sys\n\
                  runtime = ctypes.CDLL(sys.argv[1])\n\
                  a, b, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()\n\
                  assert runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096)) == 0\n\
                  assert runtime.cudaStreamCreateWithFlags(ctypes.byref(a), 1) == 0\n\
                  assert runtime.cudaStreamCreateWithFlags(ctypes.byref(b), 1) == 0\n\
                  fill = lambda on: runtime.cudaMemsetAsync(memory, 1, ctypes.c_size_t(4096), on)\n\
                  assert fill(a) == 0\n\
                  assert len(sys.argv) == 2 or runtime.cudaStreamSynchronize(a) == 0\n\
                  assert fill(b) == 0\n\
                  print('done')\n";
    racy_and_fixed(Path::new("python3"), &["-c", script, &lib.join("libcudart.so.13").display().to_string()], "done\n");
}

/// `versions.cpp` with the headers and a runtime of `cargo xtask cuda-headers`. `None` when it has
/// not run.
fn of_version(version: &str, library: &str) -> Option<PathBuf> {
    let headers = product::root().join(".cache/cuda-headers");
    let lib = headers.join(version).join("lib");
    if !lib.join(library).exists() {
        println!("SKIPPED: no runtime of {version} (cargo xtask cuda-headers fetches it)");
        return None;
    }
    let source = build::programs().join("sim/versions.cpp");
    let mut args: Vec<String> = ["-O1", "-g", "-pthread", "-o", "{out}"].map(String::from).into();
    // Some headers of 11 are in no package: those of 12 serve.
    args.extend([version, "12.9.79"].map(|version| format!("-I{}", headers.join(version).display())));
    args.extend([source.display().to_string(), lib.join(library).display().to_string()]);
    args.extend(["-ldl", "-lrt", "-Wl,--disable-new-dtags"].map(String::from));
    args.push(format!("-Wl,-rpath,{}", lib.display()));
    let made = build::cached("versions", Path::new("g++"), &args, &[&source]);
    Some(made.unwrap_or_else(|e| panic!("{e}")))
}

#[test]
fn each_version_of_the_runtime_keeps_its_structs_and_arguments() {
    if no_toolkit() || Command::new("g++").arg("--version").output().is_err() {
        return;
    }
    for (version, library) in [
        ("11.8.89", "libcudart.so.11.0"),
        ("12.9.79", "libcudart.so.12"),
        ("12.9.79", "libcudart_static.a"),
        ("13.5.37", "libcudart.so.13"),
        ("13.5.37", "libcudart_static.a"),
    ] {
        let Some(program) = of_version(version, library) else { continue };
        racy_and_fixed(&program, &[], &format!("version {}\n", &version[..2]));
    }
}
