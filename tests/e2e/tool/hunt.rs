//! `streamsan hunt`: what it finds in a folder, how each kind of program comes out, what the merged
//! report says, and what the hunt ends with.
//!
//! The programs are `hunted.c`, which fills memory on two streams and ends in one way or another,
//! against the fake driver; the same on the simulated GPU. CTest is asked where it is installed,
//! and everywhere through a script that answers as it does.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tests::run::{Ended, end, end_of, streamsan};
use tests::{build, fake};

use crate::python::pytest_plugin;

/// `hunted.c`, made to end in a way.
pub(super) fn hunted(ways: &[&str]) -> PathBuf {
    let ways: Vec<String> = ways.iter().map(|way| format!("-D{way}")).collect();
    let folder = fake::folder().to_string_lossy();
    let mut args: Vec<&str> = ways.iter().map(String::as_str).collect();
    args.extend(["-Wl,--no-as-needed", "-L", &folder, "-lcuda"]);
    build::c_program("hunted.c", &args)
}

/// Puts a program into a folder.
pub(super) fn put(program: &Path, into: &Path) -> PathBuf {
    std::fs::create_dir_all(into.parent().expect("a folder")).expect("a folder");
    std::fs::copy(program, into).expect("copied");
    into.to_path_buf()
}

pub(super) fn script(into: &Path, text: &str) {
    std::fs::create_dir_all(into.parent().expect("a folder")).expect("a folder");
    std::fs::write(into, text).expect("written");
    std::fs::set_permissions(into, std::fs::Permissions::from_mode(0o755)).expect("ours");
}

/// `streamsan hunt OPTIONS FOLDER`, with temporary files in a folder of its own.
pub(super) fn hunt(options: &[&str], folder: &Path) -> Command {
    let mut command = streamsan(["hunt"]);
    let temporary = folder.with_extension("tmp");
    std::fs::create_dir_all(&temporary).expect("a folder");
    command.args(options).arg(folder).env("TMPDIR", temporary);
    command
}

pub(super) fn read(file: &Path) -> Value {
    let text = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// The outcome in the row of a program.
pub(super) fn row<'a>(ended: &'a Ended, name: &str) -> &'a str {
    let line = ended.err.lines().find(|line| line.split_whitespace().next() == Some(name));
    let line = line.unwrap_or_else(|| panic!("no row for {name}: {}", ended.err));
    let rest = line[name.len()..].trim_start();
    &rest[..rest.find("  ").unwrap_or(rest.len())]
}

/// Whether a program of this path runs.
fn runs(program: &Path) -> bool {
    let links = std::fs::read_dir("/proc").expect("proc").flatten();
    links.filter_map(|entry| std::fs::read_link(entry.path().join("exe")).ok()).any(|exe| exe == program)
}

/// What two runs of one program have in common: no thread ids, no names of the program's file.
fn without_runs(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|name, _| !["tid", "module", "thread", "address"].contains(&name.as_str()));
            fields.values_mut().for_each(|field| *field = without_runs(field.take()));
        }
        Value::Array(list) => list.iter_mut().for_each(|item| *item = without_runs(item.take())),
        _ => {}
    }
    value
}

#[test]
fn a_folder_of_programs_becomes_one_table_and_one_report() {
    let folder = build::scratch("hunt");
    let of = |name: &str| folder.join(name);
    put(&hunted(&["RACY"]), &of("bin/racy"));
    put(&hunted(&["RACY"]), &of("more/racy"));
    put(&hunted(&["ORDERED"]), &of("bin/ordered"));
    put(&hunted(&["ORDERED", "FAILS"]), &of("bin/fails"));
    put(&hunted(&["ORDERED", "DIES"]), &of("bin/dies"));
    put(&hunted(&["ORDERED", "READS"]), &of("bin/reads"));
    put(&hunted(&["RACY", "FAILS"]), &of("bin/racy_fails"));
    let hangs = put(&hunted(&["ORDERED", "HANGS"]), &of("bin/hangs"));
    // What is no program that uses CUDA, or not the project's.
    put(Path::new("/bin/true"), &of("bin/true"));
    script(&of("bin/script"), "#!/bin/sh\necho libcuda.so.1\n");
    std::fs::write(of("bin/notes"), "libcudart").expect("written");
    put(&hunted(&["RACY"]), &of("CMakeFiles/3.0/a.out"));
    put(&hunted(&["RACY"]), &of(".hidden/racy"));
    std::os::unix::fs::symlink(of("bin/ordered"), of("bin/zlink")).expect("a link");
    let (json, junit, out) = (of("report.json"), of("report.xml"), build::scratch("hunt-out").join("kept"));
    let words = ["--timeout=2", "--jobs=3", "--output", out.to_str().expect("text")];
    let files = ["--json", json.to_str().expect("text"), "--junit", junit.to_str().expect("text")];
    // Options for another run are no options for each program.
    let stray = of("stray.json");
    let mut command = hunt(&[&words[..], &files[..]].concat(), &folder);
    command.env("STREAMSAN_OPTIONS", format!("html={}", stray.display())).env("HUNTED", "variable");
    let ended = end(command.stdin(Stdio::piped()));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(66), ""), "{}", ended.err);
    for (name, outcome) in [
        ("bin/racy", "findings"),
        ("more/racy", "findings"),
        ("bin/racy_fails", "findings"),
        ("bin/ordered", "clean"),
        ("bin/reads", "clean"),
        ("bin/fails", "failed"),
        ("bin/dies", "failed"),
        ("bin/hangs", "timed out"),
    ] {
        assert_eq!(row(&ended, name), outcome, "{}", ended.err);
        assert!(ended.err.contains(&format!("/8] {name}: ")), "no line when it has ended: {}", ended.err);
    }
    for part in [
        "streamsan: HUNT: 8 programs: 2 clean, 3 with findings, 2 failed, 1 timed out\n",
        "streamsan: ERROR: bin/fails, bin/racy_fails: failed: exit code 3: expected 3, got 4\n",
        "streamsan: ERROR: bin/dies: failed: signal 6",
        "streamsan: ERROR: bin/hangs: timed out, and checked up to there: 2 s were not enough\n",
        "\nIn bin/racy, bin/racy_fails, more/racy.\n",
    ] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    assert_eq!(ended.err.matches("DATA RACE").count(), 1, "{}", ended.err);
    assert!(!runs(&hangs), "it was not ended");
    let report = read(&json);
    let findings = report["findings"].as_array().expect("findings");
    let names: Vec<&str> =
        findings[0]["programs"].as_array().expect("programs").iter().flat_map(Value::as_str).collect();
    assert_eq!((findings.len(), names), (1, vec!["bin/racy", "bin/racy_fails", "more/racy"]));
    assert_eq!(findings[0]["count"], 3);
    let processes: Vec<&Value> = findings[0]["processes"].as_array().expect("processes").iter().collect();
    let program_of = |index: &&Value| &report["processes"][index.as_u64().expect("a number") as usize]["program"];
    assert_eq!(processes.iter().map(program_of).collect::<Vec<_>>(), ["bin/racy", "bin/racy_fails", "more/racy"]);
    let programs = report["programs"].as_array().expect("programs");
    let racy = programs.iter().find(|p| p["name"] == "more/racy").expect("it");
    assert_eq!((&racy["findings"], &racy["kind"]), (&Value::from(1), &Value::from("executable")));
    // What each run said is kept, and its own report names the finding as the merged one does.
    let kept = Path::new(racy["output"].as_str().expect("a folder"));
    assert!(kept.starts_with(out.canonicalize().expect("there")), "{}", kept.display());
    assert_eq!(std::fs::read_to_string(kept.join("stdout")).expect("kept"), "done: variable\n");
    assert_eq!(read(&kept.join("report.json"))["findings"][0]["fingerprint"], findings[0]["fingerprint"]);
    for field in ["access", "previous", "allocation", "synchronisation", "around", "hazard", "bytes"] {
        let own = &read(&kept.join("report.json"))["findings"][0][field];
        let bare = |value: &Value| without_runs(value.clone());
        assert_eq!(bare(own), bare(&findings[0][field]), "{field}");
    }
    assert!(std::fs::read_to_string(kept.join("report.txt")).expect("kept").contains("DATA RACE"));
    assert!(ended.err.contains(&format!("is in {}\n", out.canonicalize().expect("there").display())), "{}", ended.err);
    let junit = std::fs::read_to_string(junit).expect("written");
    assert!(
        junit.contains("tests=\"9\"") && junit.contains("errors=\"4\"") && junit.contains("failures=\"1\""),
        "{junit}"
    );
    let page = std::fs::read_to_string(stray).expect("of the hunt itself");
    assert!(page.contains("\"bin/racy_fails\""));
}

#[test]
fn a_clean_hunt_is_green_and_leaves_nothing_behind() {
    let folder = build::scratch("hunt-clean");
    put(&hunted(&["ORDERED"]), &folder.join("ordered"));
    put(&hunted(&["ORDERED", "READS"]), &folder.join("reads"));
    let ended = end(&mut hunt(&[], &folder));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(
        ended.err.contains("streamsan: HUNT: 2 programs: 2 clean\n") && !ended.err.contains("is in"),
        "{}",
        ended.err
    );
    assert_eq!(std::fs::read_dir(folder.with_extension("tmp")).expect("there").count(), 0);
    let ended = end(&mut hunt(&["--quiet"], &folder));
    assert_eq!((ended.code(), ended.err.as_str()), (Some(0), ""));
    // The same programs, one without its wait.
    put(&hunted(&["RACY"]), &folder.join("racy"));
    let ended = end(&mut hunt(&["--quiet"], &folder));
    assert!(ended.code() == Some(66) && ended.err.contains("In racy.\n"), "{}", ended.err);
    assert_eq!(std::fs::read_dir(folder.with_extension("tmp")).expect("there").count(), 1);
    let ended = end(&mut hunt(&["--format=short", "--error-exitcode=9"], &folder));
    assert!(ended.code() == Some(9) && ended.err.contains("hunted.c:") && row(&ended, "racy") == "findings");
    let ended = end(&mut hunt(&["--error-exitcode=0"], &folder));
    assert_eq!(ended.code(), Some(0), "nothing else is wrong: {}", ended.err);
}

#[test]
fn what_was_not_checked_is_never_green() {
    let folder = build::scratch("hunt-unchecked");
    let program = folder.join("it");
    let only = |ways: &[&str], options: &[&str]| {
        put(&hunted(ways), &program);
        end(&mut hunt(options, &folder))
    };
    assert_eq!(only(&["ORDERED", "FAILS"], &[]).code(), Some(1));
    assert_eq!(only(&["ORDERED", "DIES"], &[]).code(), Some(1));
    assert_eq!(only(&["ORDERED", "HANGS"], &["--timeout=1"]).code(), Some(70));
    // A finding goes first, unless findings are not to count; then the other trouble does.
    assert_eq!(only(&["RACY", "HANGS"], &["--timeout=1"]).code(), Some(66), "found before its time was over");
    assert_eq!(only(&["RACY", "FAILS"], &["--error-exitcode=0"]).code(), Some(1));
    // It ends well, but nothing of CUDA was seen.
    let ended = only(&["SKIPS", "WELL"], &[]);
    assert_eq!((ended.code(), row(&ended, "it")), (Some(4), "no CUDA"), "{}", ended.err);
    put(&hunted(&["ORDERED"]), &folder.join("other"));
    assert_eq!(end(&mut hunt(&[], &folder)).code(), Some(0), "one of them has used CUDA");
    assert_eq!(end(&mut hunt(&["--require-cuda"], &folder)).code(), Some(4));
    // Nothing can be preloaded into it.
    let text = "#include <stdio.h>\nint main(void) { return puts(\"libcuda.so.1\") < 0; }\n";
    let source = build::generated("closed.c", text);
    let built = Command::new("gcc").args(["-static", "-o"]).arg(&program).arg(source).status();
    assert!(built.expect("gcc").success());
    let ended = end(&mut hunt(&[], &folder));
    assert_eq!((ended.code(), row(&ended, "it")), (Some(70), "not checked"), "{}", ended.err);
    assert!(ended.err.contains("ERROR: it: not checked: it is linked statically"), "{}", ended.err);
    // The simulated GPU refuses what it cannot run, and the program makes nothing of it.
    put(&hunted(&["REFUSED"]), &program);
    let ended = end(hunt(&["--sim", "--only=it"], &folder).env_remove("LD_LIBRARY_PATH"));
    assert_eq!((ended.code(), row(&ended, "it")), (Some(70), "not checked"), "{}", ended.err);
    assert!(ended.err.contains("ERROR: it: not checked: cuMemBatchDecompressAsync is not simulated"), "{}", ended.err);
}

#[test]
fn the_gate_judges_the_merged_report() {
    let folder = build::scratch("hunt-gate");
    put(&hunted(&["RACY"]), &folder.join("one"));
    put(&hunted(&["RACY"]), &folder.join("two"));
    let base = folder.join("base.json");
    let base = base.to_str().expect("text");
    let ended = end(&mut hunt(&["--write-baseline", base], &folder));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let ended = end(&mut hunt(&["--baseline", base], &folder));
    assert_eq!((ended.code(), row(&ended, "one")), (Some(0), "clean"), "{}", ended.err);
    assert!(ended.err.contains("1 known"), "{}", ended.err);
    let supp = folder.join("supp");
    std::fs::write(&supp, "race:hunted.c\n").expect("written");
    let ended = end(&mut hunt(&["--suppressions", supp.to_str().expect("text")], &folder));
    assert_eq!((ended.code(), row(&ended, "two")), (Some(0), "clean"), "{}", ended.err);
    // The configuration file of the working folder is the hunt's, with a table of its own.
    std::fs::write(folder.join("streamsan.toml"), "[run]\nstacks = false\n[hunt]\nerror-exitcode = 5\n")
        .expect("written");
    let ended = end(hunt(&[], &folder).current_dir(&folder));
    assert!(ended.code() == Some(5) && ended.err.contains("hunted.c:"), "{}", ended.err);
    // Without stacks one place cannot be told from another, but that was asked for.
    let ended = end(&mut hunt(&["--no-stacks"], &folder));
    assert!(ended.code() == Some(66) && ended.err.contains("(no stack recorded)"), "{}", ended.err);
}

#[test]
fn the_list_runs_nothing_and_mistakes_are_named() {
    let folder = build::scratch("hunt-list");
    put(&hunted(&["RACY"]), &folder.join("a b"));
    put(&hunted(&["RACY"]), &folder.join("other"));
    let ended = end(&mut hunt(&["--list"], &folder));
    let root = folder.canonicalize().expect("there");
    let lines = [
        format!("executable  a b    '{}/a b'", root.display()),
        format!("executable  other  {}/other", root.display()),
    ];
    assert_eq!(
        (ended.code(), ended.out.lines().collect::<Vec<_>>()),
        (Some(0), lines.iter().map(String::as_str).collect()),
        "{}",
        ended.err
    );
    let ended = end(&mut hunt(&["--list", "--only", "the", "--only", "a "], &folder));
    assert_eq!(ended.out.lines().count(), 2);
    let wrong = |options: &[&str], folder: &Path, why: &str| {
        let ended = end(streamsan(["hunt"]).args(options).arg(folder));
        assert_eq!(ended.code(), Some(2), "{}", ended.err);
        assert!(ended.err.contains(why) && ended.err.lines().count() == 1, "{}", ended.err);
    };
    wrong(&["--only", "nowhere"], &folder, "--only leaves none of 2");
    wrong(&["--only", "a ", "--shard", "2/2"], &folder, "--only and --shard leave none of 2");
    wrong(&["--shard", "3/2"], &folder, "such as 1/4");
    wrong(&["--rerun-failed", "/nowhere.json"], &folder, "/nowhere.json: No such file");
    wrong(&[], &build::scratch("hunt-empty"), "no programs in ");
    wrong(&[], Path::new("/nowhere"), "/nowhere: No such file");
    wrong(&[], Path::new("/bin/true"), "is no folder");
    wrong(&["--sim-addresses", "x"], &folder, "hunt does not take '--sim-addresses'; run and record do");
    wrong(&["--timeout", "0"], &folder, "timeout");
    wrong(&["--json", "/nowhere/x"], &folder, "can not be written");
}

#[test]
fn a_hunt_may_end_with_the_first_finding() {
    let folder = build::scratch("hunt-fail-fast");
    put(&hunted(&["ORDERED"]), &folder.join("a"));
    put(&hunted(&["RACY"]), &folder.join("b"));
    put(&hunted(&["ORDERED"]), &folder.join("c"));
    let ended = end(&mut hunt(&["--fail-fast"], &folder));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert_eq!((row(&ended, "a"), row(&ended, "c")), ("clean", "not run"), "{}", ended.err);
    assert!(ended.err.contains("behind a finding (--fail-fast)"), "{}", ended.err);
    let ended = end(&mut hunt(&["--fail-fast", "--only", "a", "--only", "c"], &folder));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
}

#[test]
fn an_interruption_ends_the_programs_and_leaves_the_table_so_far() {
    let folder = build::scratch("hunt-interrupted");
    put(&hunted(&["RACY"]), &folder.join("a"));
    let hangs = put(&hunted(&["ORDERED", "HANGS"]), &folder.join("b"));
    put(&hunted(&["ORDERED"]), &folder.join("c"));
    let mut command = hunt(&[], &folder);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let began = Instant::now();
    while !runs(&hangs) {
        assert!(began.elapsed() < Duration::from_secs(50), "it does not come to b");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Twice, as `timeout` signals its child and the child's group.
    for _ in 0..2 {
        // SAFETY: the child is not waited for yet, so the number is its own.
        unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = end_of(child);
    assert_eq!(ended.signal(), Some(libc::SIGINT), "{}", ended.err);
    assert_eq!((row(&ended, "a"), row(&ended, "b"), row(&ended, "c")), ("findings", "not checked", "not run"));
    assert!(ended.err.contains("ERROR: c: not run: interrupted") && ended.err.contains("DATA RACE"), "{}", ended.err);
    assert!(!runs(&hangs), "it was not ended");
}

#[test]
fn jobs_share_a_hunt_and_what_was_not_clean_runs_again() {
    let folder = build::scratch("hunt-selection");
    let ways = [("a", "ORDERED"), ("b", "RACY"), ("c", "ORDERED"), ("d", "RACY"), ("e", "ORDERED")];
    for (name, way) in ways {
        put(&hunted(&[way]), &folder.join(name));
    }
    let listed = |options: &[&str]| -> Vec<String> {
        let ended = end(&mut hunt(&[&["--list"], options].concat(), &folder));
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        let names = ended.out.lines().filter_map(|line| line.split_whitespace().nth(1)).map(str::to_owned);
        names.collect()
    };
    for count in 1..=5 {
        let mut all: Vec<String> = Vec::new();
        for index in 1..=count {
            let part = listed(&["--shard", &format!("{index}/{count}")]);
            assert!(part.len().abs_diff(5 / count) <= 1, "{index}/{count}: {part:?}");
            all.extend(part);
        }
        all.sort_unstable();
        assert_eq!(all, ["a", "b", "c", "d", "e"], "each program belongs to one part of {count}");
    }
    let report = folder.with_extension("json");
    let report = report.to_str().expect("text");
    assert_eq!(end(&mut hunt(&["--json", report], &folder)).code(), Some(66));
    assert_eq!(listed(&["--rerun-failed", report]), ["b", "d"]);
    // Once they are mended, nothing is left to run again.
    for name in ["b", "d"] {
        put(&hunted(&["ORDERED"]), &folder.join(name));
    }
    assert_eq!(end(&mut hunt(&["--rerun-failed", report, "--json", report], &folder)).code(), Some(0));
    let ended = end(&mut hunt(&["--rerun-failed", report], &folder));
    assert!(ended.code() == Some(2) && ended.err.contains("--rerun-failed leaves none of 5"), "{}", ended.err);
    // A report of one run has no programs.
    std::fs::write(report, "{}").expect("written");
    let ended = end(&mut hunt(&["--rerun-failed", report], &folder));
    assert!(ended.code() == Some(2) && ended.err.contains("is no report of a hunt"), "{}", ended.err);
}

#[test]
fn files_of_tests_are_run_by_pytest() {
    let Some(python) = pytest_plugin::python() else { return };
    let folder = build::scratch("hunt-pytest");
    let write = |name: &str, text: &str| {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, text).expect("written");
    };
    write("tests/test_racy.py", &format!("{}{}", pytest_plugin::TESTS, pytest_plugin::RACY));
    write("tests/ordered_test.py", pytest_plugin::TESTS);
    write("tests/test_wrong.py", "cuda = None\n\ndef test_it():\n    assert 1 == 2\n");
    write("tests/test_empty.py", "import os  # cuda\n");
    write("tests/test_other.py", "def test_it():\n    pass\n");
    write("tests/tool.py", "import torch\n");
    write("venv/pyvenv.cfg", "");
    write("venv/lib/test_cuda.py", "import torch\n");
    let old = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{old}", python.parent().expect("a folder").display());
    let ended = end(hunt(&[], &folder).env("PATH", path).env("PYTHONDONTWRITEBYTECODE", "1"));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    for (name, outcome) in [
        ("tests/test_racy.py", "findings"),
        ("tests/ordered_test.py", "clean"),
        ("tests/test_wrong.py", "failed"),
        ("tests/test_empty.py", "skipped"),
    ] {
        assert_eq!(row(&ended, name), outcome, "{}", ended.err);
    }
    assert!(ended.err.contains("HUNT: 4 programs: ") && ended.err.contains("exit code 1: "), "{}", ended.err);
}

#[test]
fn the_simulated_gpu_finds_the_same() {
    let folder = build::scratch("hunt-sim");
    put(&hunted(&["RACY"]), &folder.join("racy"));
    put(&hunted(&["ORDERED"]), &folder.join("ordered"));
    let mut command = hunt(&["--sim-seed=3"], &folder);
    let ended = end(command.env_remove("LD_LIBRARY_PATH"));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert_eq!((row(&ended, "racy"), row(&ended, "ordered")), ("findings", "clean"), "{}", ended.err);
    let ended = end(hunt(&["--only=racy"], &folder).env_remove("LD_LIBRARY_PATH"));
    assert!(ended.code() == Some(1) && ended.err.contains("streamsan hunt --sim'"), "no driver: {}", ended.err);
}
