//! Programs whose language has a runtime with signal handlers of its own: Go (nil pointers, stacks
//! that grow, preemption), the JVM (null checks, safepoints, stacks that overflow) and Python with
//! its faulthandler, on the simulated GPU. With and without protected pages they say the same, and
//! each touch is seen where it happens. Skipped, with a line, where `go`, or `javac` and `java`,
//! are not installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tests::{build, product, run};

fn guests() -> PathBuf {
    build::programs().join("guests")
}

fn sim_folder() -> PathBuf {
    let folder = product::bin().join("sim");
    assert!(folder.exists(), "no {}: scripts/build --place makes it", folder.display());
    folder
}

/// Where a tool answers; `None`, and a line, where it is not installed.
fn has(tool: &str, asked: &str) -> bool {
    let answers = Command::new(tool).arg(asked).output().is_ok_and(|ran| ran.status.success());
    if !answers {
        eprintln!("skipped: no '{tool}' is installed");
    }
    answers
}

/// The library of `landing.c`, with more sources, linked with the simulator's driver. It is found
/// beside the program.
fn library(name: &str, sources: &[&str], extra: &[String]) -> PathBuf {
    let files: Vec<PathBuf> = sources.iter().map(|s| guests().join(s)).collect();
    let header = guests().join("landing.h");
    let mini = build::programs().join("fake/cuda_mini.h");
    let mut args: Vec<String> =
        ["-O1", "-g", "-Wall", "-fPIC", "-shared", "-fno-omit-frame-pointer", "-o", "{out}"].map(String::from).into();
    args.extend(files.iter().map(|f| f.display().to_string()));
    args.extend([format!("-Wl,-soname,{name}"), format!("-L{}", sim_folder().display()), "-l:libcuda.so.1".into()]);
    args.extend_from_slice(extra);
    let mut inputs: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    inputs.extend([header.as_path(), mini.as_path()]);
    build::cached(name, Path::new("gcc"), &args, &inputs).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a command bare on the simulated GPU, and under every mode: output and exit code must be the
/// same. Answers the findings with `--host-accesses`.
fn same_everywhere(name: &str, command: &[String]) -> Vec<Value> {
    let mut bare = run::command(&command[0]);
    let bare = run::end(bare.args(&command[1..]).env("LD_LIBRARY_PATH", sim_folder()));
    let json = build::scratch(name).join("j");
    let more = ["--host-accesses", "--host-order", "threads"];
    for (options, watched) in [(&more[..0], false), (&more[..], true), (&more[..1], true)] {
        let mut checked = run::streamsan(["run", "--sim", "--error-exitcode", "0", "--json"]);
        checked.arg(&json).args(options).arg("--").args(command).env_remove("LD_LIBRARY_PATH");
        let checked = run::end(&mut checked);
        assert_eq!(checked.code(), bare.code(), "{options:?}: {}{}", checked.out, checked.err);
        assert_eq!(checked.out, bare.out, "{options:?}: {}", checked.err);
        assert_eq!(checked.err.contains("SUMMARY: 0 findings"), !watched, "{options:?}: {}", checked.err);
    }
    let report: Value = serde_json::from_str(&std::fs::read_to_string(json).expect("written")).expect("JSON");
    let findings = report["findings"].as_array().expect("findings").clone();
    assert!(findings.iter().all(|f| f["host"] == true && f["confidence"] == "certain"), "{findings:#?}");
    findings
}

/// The functions of the stacks of what the host did.
fn functions(findings: &[Value]) -> Vec<String> {
    let frames = findings.iter().flat_map(|f| f["access"]["stack"].as_array().expect("a stack").iter());
    frames.filter_map(|frame| frame["function"].as_str().map(str::to_owned)).collect()
}

#[test]
fn go_keeps_its_panics_its_stacks_and_its_preemption() {
    if !has("go", "version") {
        return;
    }
    let library = library("liblanding.so", &["landing.c"], &[]);
    let folder = library.parent().expect("a folder").display().to_string();
    let source = guests().join("main.go");
    let args = ["build", "-o", "{out}", "main.go"].map(String::from);
    let flags = format!("-L{folder} -Wl,-rpath,{folder} -Wl,--unresolved-symbols=ignore-in-shared-libs");
    // `go` is told where things are by its environment: a shell sets it.
    let script = format!(
        "cd '{}' && CGO_LDFLAGS='{flags}' GO111MODULE=off GOCACHE='{}' GOFLAGS= go \"$@\"",
        guests().display(),
        build::cache().join("go").display()
    );
    let mut shell = vec!["-c".to_owned(), script, "sh".to_owned()];
    shell.extend(args);
    let header = guests().join("landing.h");
    let program =
        build::cached("guest", Path::new("sh"), &shell, &[&source, &header]).unwrap_or_else(|e| panic!("{e}"));
    let program = program.display().to_string();
    let found = functions(&same_everywhere("guest-go", std::slice::from_ref(&program)));
    for function in ["main.sum", "main.deep", "main.main"] {
        assert!(found.iter().any(|f| f == function), "{function}: {found:#?}");
    }
    let mut dies = run::streamsan(["run", "--sim", "--error-exitcode", "0", "--host-accesses", "--"]);
    let dies = run::end(dies.args([&program, "dies"]).env_remove("LD_LIBRARY_PATH"));
    assert_eq!(dies.code(), Some(2), "{}", dies.err);
    assert!(dies.err.contains("panic: runtime error: invalid memory address"), "{}", dies.err);
}

#[test]
fn the_jvm_keeps_its_null_checks_its_safepoints_and_its_stack_guards() {
    if !has("javac", "-version") || !has("java", "-version") {
        return;
    }
    let Some(home) = jdk() else {
        eprintln!("skipped: no jni.h beside javac");
        return;
    };
    let include = home.join("include");
    let extra = [format!("-I{}", include.display()), format!("-I{}", include.join("linux").display())];
    let library = library("libguests.so", &["landing.c", "jni.c"], &extra).display().to_string();
    let source = guests().join("Guest.java");
    let args = ["-d", "{out}", &source.display().to_string()].map(String::from);
    let classes = build::cached("classes", Path::new("javac"), &args, &[&source]).unwrap_or_else(|e| panic!("{e}"));
    let folder = build::scratch("guest-jvm-report");
    let errors = format!("-XX:ErrorFile={}", folder.join("hs").display());
    // It looks at its handlers from time to time: nobody may have changed them.
    let options = ["java", "-Xcheck:jni", "-XX:-CreateCoredumpOnCrash", &errors, "-cp", &classes.display().to_string()];
    let mut command: Vec<String> = options.map(String::from).into();
    command.extend(["Guest".to_owned(), library]);
    let found = functions(&same_everywhere("guest-jvm", &command));
    assert!(found.iter().any(|f| f == "Java_Guest_fromC"), "{found:#?}");
    command.push("dies".into());
    let mut dies = run::streamsan(["run", "--sim", "--error-exitcode", "0", "--host-accesses", "--"]);
    let dies = run::end(dies.args(&command).env_remove("LD_LIBRARY_PATH"));
    assert!(dies.status.code() != Some(0), "{}", dies.out);
    assert!(dies.out.contains("SIGSEGV (0xb)") && dies.out.contains("Java_Guest_fromNowhere"), "{}", dies.out);
}

#[test]
fn python_keeps_its_faulthandler() {
    let library = library("liblanding.so", &["landing.c"], &[]).display().to_string();
    let script = guests().join("faults.py").display().to_string();
    let mut command: Vec<String> = vec!["python3".into(), script, library];
    let found = functions(&same_everywhere("guest-python", &command));
    for function in ["reads_all", "part", "handles", "<module>"] {
        assert!(found.iter().any(|f| f.ends_with(function)), "{function}: {found:#?}");
    }
    command.push("dies".into());
    let mut dies = run::streamsan(["run", "--sim", "--error-exitcode", "0", "--host-accesses", "--"]);
    let dies = run::end(dies.args(&command).env_remove("LD_LIBRARY_PATH"));
    assert_eq!(dies.signal(), Some(libc::SIGSEGV), "{}", dies.err);
    assert!(dies.err.contains("Fatal Python error: Segmentation fault"), "{}", dies.err);
}

/// The folder of the JDK that `javac` belongs to.
fn jdk() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let javac = std::env::split_paths(&path).map(|folder| folder.join("javac")).find(|file| file.exists())?;
    let home = std::fs::canonicalize(javac).ok()?.ancestors().nth(2)?.to_path_buf();
    home.join("include/jni.h").exists().then_some(home)
}
