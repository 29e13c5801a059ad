//! `pytest --streamsan`: findings belong to the test that ran. Runs against the fake driver.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tests::run::{Ended, command, end};
use tests::{build, fake, product};

/// Tests that fill the same memory on two streams: one without a wait between them, one with, two
/// that share memory between them.
pub const TESTS: &str = r#"
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")


def make(function, *arguments):
    handle = ctypes.c_void_p()
    assert function(ctypes.byref(handle), *arguments) == 0
    return handle


def setup_module(module):
    assert cuda.cuInit(0) == 0
    assert cuda.cuCtxSetCurrent(make(cuda.cuDevicePrimaryCtxRetain, 0)) == 0
    module.first, module.second = make(cuda.cuStreamCreate, 1), make(cuda.cuStreamCreate, 1)
    module.shared = make(cuda.cuMemAlloc_v2, ctypes.c_size_t(4096))


def fill(memory, stream):
    assert cuda.cuMemsetD8Async(memory, ctypes.c_ubyte(1), ctypes.c_size_t(4096), stream) == 0


def test_ordered():
    memory = make(cuda.cuMemAlloc_v2, ctypes.c_size_t(4096))
    fill(memory, first)
    assert cuda.cuStreamSynchronize(first) == 0
    fill(memory, second)


def test_nothing():
    pass
"#;

pub const RACY: &str = r#"

def test_racy():
    memory = make(cuda.cuMemAlloc_v2, ctypes.c_size_t(4096))
    fill(memory, first)
    fill(memory, second)
    assert cuda.cuCtxSynchronize() == 0


def test_leaves_work_behind():
    fill(shared, first)


def test_meets_it():
    fill(shared, second)
"#;

/// A Python with pytest, made once.
pub fn python() -> Option<PathBuf> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let make = || {
        if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
            return None;
        }
        let validators = product::xtask("validators").unwrap_or_else(|error| panic!("{error}"));
        Some(validators.join("venv/bin/python"))
    };
    MADE.get_or_init(make).clone()
}

pub(super) fn pytest(python: &Path, folder: &Path, text: &str, words: &[&str]) -> Ended {
    end(&mut prepared(python, folder, text, words))
}

pub(super) fn prepared(python: &Path, folder: &Path, text: &str, words: &[&str]) -> Command {
    std::fs::write(folder.join("test_streams.py"), text).expect("write");
    let mut pytest = command(python);
    let path = std::env::var("PATH").unwrap_or_default();
    pytest.args(["-m", "pytest", "-q", "-p", "streamsan.pytest_plugin", "-p", "no:cacheprovider"]).args(words);
    pytest.env("PYTHONPATH", product::root().join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    pytest.env("PATH", format!("{}:{path}", product::bin().display())).arg("test_streams.py").current_dir(folder);
    pytest
}

#[test]
fn a_race_fails_the_test_that_it_belongs_to() {
    let Some(python) = python() else { return };
    let folder = build::scratch("pytest");
    // The two reports that others read count the races too.
    let words = ["--streamsan", "--junitxml=junit.xml", "--streamsan-args=--json report.json"];
    let ended = pytest(&python, &folder, &format!("{TESTS}{RACY}"), &words);
    assert_eq!(ended.code(), Some(1), "{}\n{}", ended.out, ended.err);
    let mut failed: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("FAILED")).collect();
    failed.sort_unstable();
    let race = "streamsan: write-after-write by cuMemsetD8Async (certain)";
    let expected = [
        format!("FAILED test_streams.py::test_meets_it - {race}, after test_streams.py::test_leaves_work_behind"),
        format!("FAILED test_streams.py::test_racy - {race}"),
    ];
    assert_eq!(failed, expected, "{}\n{}", ended.out, ended.err);
    assert!(ended.out.contains("5 passed"), "{}", ended.out);
    // The last lines count again what pytest counted before.
    let ending = "streamsan: 2 data races between CUDA streams\nstreamsan: 2 failed by races, 3 passed\n";
    assert!(ended.out.ends_with(ending), "{}", ended.out);
    let junit = std::fs::read_to_string(folder.join("junit.xml")).expect("a file");
    assert!(junit.contains(r#"failures="2""#) && junit.contains(r#"tests="5""#), "{junit}");
    let (_, racy) = junit.split_once(r#"name="test_racy""#).expect("the case");
    let case = racy.split("</testcase>").next().unwrap_or_default();
    assert!(case.contains("<failure") && case.contains(race), "{junit}");
    let report = std::fs::read(folder.join("report.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(2));
    // Options reach streamsan; without --streamsan nothing is checked.
    std::fs::write(folder.join("supp"), "race:fill\n").expect("write");
    let ended =
        pytest(&python, &folder, &format!("{TESTS}{RACY}"), &["--streamsan", "--streamsan-args=--suppressions supp"]);
    assert_eq!(ended.code(), Some(0), "{}\n{}", ended.out, ended.err);
    assert_eq!(pytest(&python, &folder, &format!("{TESTS}{RACY}"), &[]).code(), Some(0));
}

/// One race in three tests fails the three of them; a test that is ordered passes.
#[test]
fn each_test_that_shows_a_race_fails() {
    let Some(python) = python() else { return };
    let folder = build::scratch("pytest-each");
    let again = r#"

import pytest

@pytest.mark.parametrize("ordered", [0, 1, 0, 0])
def test_again(ordered):
    memory = make(cuda.cuMemAlloc_v2, ctypes.c_size_t(4096))
    fill(memory, first)
    if ordered:
        assert cuda.cuStreamSynchronize(first) == 0
    fill(memory, second)
    assert cuda.cuCtxSynchronize() == 0
"#;
    let ended = pytest(&python, &folder, &format!("{TESTS}{again}"), &["--streamsan", "--junitxml=junit.xml"]);
    assert_eq!(ended.code(), Some(1), "{}\n{}", ended.out, ended.err);
    let failed =
        ended.out.lines().filter_map(|line| line.strip_prefix("FAILED test_streams.py::test_again")?.split(' ').next());
    let failed: Vec<&str> = failed.collect();
    assert_eq!(failed, ["[0_0]", "[0_1]", "[0_2]"], "{}", ended.out);
    let junit = std::fs::read_to_string(folder.join("junit.xml")).expect("a file");
    assert!(junit.contains(r#"failures="3""#), "{junit}");
}

/// What a test starts is a part of the test.
#[test]
fn a_race_of_a_program_that_a_test_starts_fails_the_test() {
    let Some(python) = python() else { return };
    let folder = build::scratch("pytest-programs");
    let racy = build::c_program("racy.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let text = format!(
        r#"
import subprocess


def run(*words):
    subprocess.run([{racy:?}, "0", *words], check=True, stdin=subprocess.DEVNULL)


def test_ordered():
    run("ordered")


def test_racy():
    run()


def test_again():
    subprocess.run(["sh", "-c", {racy:?} + " 0 </dev/null"], check=True)


def test_nothing():
    pass
"#
    );
    let ended = pytest(&python, &folder, &text, &["--streamsan"]);
    assert_eq!(ended.code(), Some(1), "{}\n{}", ended.out, ended.err);
    let mut failed: Vec<&str> = ended.out.lines().filter_map(|line| line.strip_prefix("FAILED ")).collect();
    failed.sort_unstable();
    let race = "streamsan: write-after-write by cuMemsetD8Async (certain)";
    let expected = ["test_again", "test_racy"].map(|test| format!("test_streams.py::{test} - {race}"));
    assert_eq!(failed, expected, "{}\n{}", ended.out, ended.err);
}

/// A run without CUDA passes unless the user has asked for a report, or CI runs it. Pytest's lists
/// run no test.
#[test]
fn tests_without_cuda_pass() {
    let Some(python) = python() else { return };
    let folder = build::scratch("pytest-plain");
    let plain = "def test_plain():\n    pass\n";
    let run = |words: &[&str]| pytest(&python, &folder, plain, words);
    let passed = run(&["--streamsan"]);
    assert_eq!(passed.code(), Some(0), "{}\n{}", passed.out, passed.err);
    for words in
        [&["--streamsan-args=--require-cuda"][..], &["--streamsan-args=--sarif s"], &["--streamsan-args=--json j"]]
    {
        let ended = run(&[&["--streamsan"], words].concat());
        assert_eq!(ended.code(), Some(4), "{words:?}: {}\n{}", ended.out, ended.err);
    }
    assert_eq!(run(&["--streamsan", "--streamsan-args=--no-require-cuda"]).code(), Some(0));
    assert_eq!(run(&["--streamsan", "--collect-only"]).code(), Some(0));
    for (option, code) in [("--streamsan", 4), ("--streamsan-args=--no-require-cuda", 0), ("--collect-only", 0)] {
        let ended = end(prepared(&python, &folder, plain, &["--streamsan", option]).env("CI", "true"));
        assert_eq!(ended.code(), Some(code), "{option}: {}\n{}", ended.out, ended.err);
    }
}

#[test]
fn clean_tests_pass_and_other_failures_stay_what_they_are() {
    let Some(python) = python() else { return };
    let folder = build::scratch("pytest-clean");
    let ended = pytest(&python, &folder, TESTS, &["--streamsan"]);
    assert_eq!(ended.code(), Some(0), "{}\n{}", ended.out, ended.err);
    assert!(!ended.out.contains("FAILED") && ended.out.contains("2 passed"), "{}", ended.out);
    let ended =
        pytest(&python, &folder, &format!("{TESTS}\n\ndef test_wrong():\n    assert 1 == 2\n"), &["--streamsan"]);
    assert_eq!(ended.code(), Some(1), "{}", ended.out);
    assert!(ended.out.contains("1 failed") && !ended.out.contains("data race"), "{}", ended.out);
    // ... and is counted apart from races.
    let mixed = format!("{TESTS}{RACY}\n\ndef test_wrong():\n    assert 1 == 2\n");
    let ended = pytest(&python, &folder, &mixed, &["--streamsan"]);
    let ending = "\nstreamsan: 2 failed by races, 1 failed otherwise, 3 passed\n";
    assert!(ended.code() == Some(1) && ended.out.ends_with(ending), "{}", ended.out);
}
