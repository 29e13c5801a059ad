//! What tests say of findings to the pytest plugin, and who runs them: the marker and the fixture,
//! workers of xdist, the simulated GPU. What a finding is called.
//!
//! Does not own which test a finding belongs to: that is `pytest_plugin`.

use std::path::Path;

use tests::run::{command, end};
use tests::{build, product};

use super::pytest_plugin::{RACY, TESTS, prepared, pytest, python};

/// A test that races, with lines in front of it.
fn racy(name: &str, before: &str) -> String {
    format!(
        "\n\n{before}\ndef {name}:\n    memory = make(cuda.cuMemAlloc_v2, ctypes.c_size_t(4096))\n    \
         fill(memory, first)\n    fill(memory, second)\n    assert cuda.cuCtxSynchronize() == 0\n"
    )
}

fn failed(out: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("FAILED test_streams.py::")).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_marked_test_fails_without_its_finding() {
    let Some(python) = python() else { return };
    let folder = build::scratch("pytest-marked");
    let text = format!("{TESTS}\nimport pytest\n");
    let marked = |arguments: &str, name: &str| racy(name, &format!("@pytest.mark.streamsan_expects{arguments}"));
    let good = format!("{text}{}{}", marked("(\"write-after-write\")", "test_kind()"), marked("", "test_any()"));
    let run = |text: &str, words: &[&str]| pytest(&python, &folder, text, &[&["--strict-markers"], words].concat());
    let ended = run(&good, &["--streamsan", "--junitxml=junit.xml"]);
    assert_eq!(ended.code(), Some(0), "{}\n{}", ended.out, ended.err);
    assert!(
        failed(&ended.out).is_empty() && ended.out.ends_with("streamsan: 2 findings as expected\n"),
        "{}",
        ended.out
    );
    let junit = std::fs::read_to_string(folder.join("junit.xml")).expect("a file");
    assert!(junit.contains(r#"failures="0""#), "{junit}");
    // Without StreamSan the mark means nothing.
    assert_eq!(run(&good, &[]).code(), Some(0));
    let quiet = "\n\n@pytest.mark.streamsan_expects\ndef test_quiet():\n    pass\n";
    let skipped = "\n\n@pytest.mark.streamsan_expects\ndef test_skipped():\n    pytest.skip('not here')\n";
    // Of two kinds one is not there; a plain test with the same race still fails.
    let other = marked("(\"write-after-write\", \"read-after-write\")", "test_other()");
    let bad = format!("{good}{quiet}{skipped}{other}{}", racy("test_plain()", ""));
    let ended = run(&bad, &["--streamsan", "--junitxml=junit.xml"]);
    assert_eq!(ended.code(), Some(1), "{}\n{}", ended.out, ended.err);
    let race = "streamsan: write-after-write by cuMemsetD8Async (certain)";
    let expected = [
        "test_other - streamsan: expected read-after-write, which was not found".to_owned(),
        format!("test_plain - {race}"),
        "test_quiet - streamsan: expected a finding, which was not found".to_owned(),
    ];
    assert_eq!(failed(&ended.out), expected, "{}", ended.out);
    let ending = "1 failed by races, 2 failed without the expected finding, 4 passed, 1 skipped\n";
    assert!(ended.out.ends_with(ending), "{}", ended.out);
    let junit = std::fs::read_to_string(folder.join("junit.xml")).expect("a file");
    assert!(junit.contains(r#"failures="3""#), "{junit}");
}

#[test]
fn the_strict_fixture_forgives_nothing() {
    let Some(python) = python() else { return };
    let folder = build::scratch("pytest-strict");
    let text = format!("{TESTS}{}{}", racy("test_strict(streamsan_no_findings)", ""), racy("test_plain()", ""));
    std::fs::write(folder.join("supp"), "race:fill\n").expect("write");
    let suppressed = ["--streamsan", "--streamsan-args=--suppressions supp"];
    let ended = pytest(&python, &folder, &text, &suppressed);
    assert_eq!(ended.code(), Some(1), "{}\n{}", ended.out, ended.err);
    let lines = failed(&ended.out);
    assert!(lines.len() == 1 && lines[0].starts_with("test_strict - streamsan: write-after-write"), "{}", ended.out);
    // Its twin is ordered.
    let ordered = "\n\ndef test_strict(streamsan_no_findings):\n    test_ordered()\n";
    let ended = pytest(&python, &folder, &format!("{TESTS}{ordered}"), &suppressed);
    assert_eq!(ended.code(), Some(0), "{}\n{}", ended.out, ended.err);
    assert!(ended.out.contains("3 passed"), "{}", ended.out);
    // Nothing is checked without StreamSan, and that is not a pass.
    let ended = pytest(&python, &folder, &format!("{TESTS}{ordered}"), &[]);
    assert!(ended.code() == Some(0) && ended.out.contains("2 passed, 1 skipped"), "{}", ended.out);
    // No finding, and one that is expected, cannot both be asked for.
    let both = "\n\nimport pytest\n\n@pytest.mark.streamsan_expects\ndef test_both(streamsan_no_findings):\n    pass\n";
    let ended = pytest(&python, &folder, &format!("{TESTS}{both}"), &["--streamsan"]);
    assert!(ended.code() == Some(1) && ended.out.contains("cannot use streamsan_no_findings"), "{}", ended.out);
}

#[test]
fn workers_of_xdist_are_checked_and_each_test_by_itself() {
    let Some(python) = python() else { return };
    let folder = build::scratch("pytest-xdist");
    let marked = racy("test_marked()", "import pytest\n@pytest.mark.streamsan_expects(\"write-after-write\")");
    std::fs::write(folder.join("test_more.py"), format!("{TESTS}{marked}")).expect("write");
    let words = ["--streamsan", "-n", "2", "--dist", "loadfile", "--junitxml=junit.xml", "test_more.py"];
    let ended = pytest(&python, &folder, &format!("{TESTS}{RACY}"), &words);
    assert_eq!(ended.code(), Some(1), "{}\n{}", ended.out, ended.err);
    let names: Vec<&str> = failed(&ended.out).iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["test_meets_it", "test_racy"], "{}", ended.out);
    assert!(ended.out.contains("8 passed"), "{}", ended.out);
    assert!(ended.out.ends_with("streamsan: 2 failed by races, 6 passed\n"), "{}", ended.out);
    let junit = std::fs::read_to_string(folder.join("junit.xml")).expect("a file");
    assert!(junit.contains(r#"failures="2""#) && junit.contains(r#"tests="8""#), "{junit}");
    // Both workers used CUDA, and both are in the report.
    let report = |text: &str| {
        let words = ["--streamsan", "-n", "2", "--dist", "loadfile", "--streamsan-args=--json j.json", "test_more.py"];
        let ended = pytest(&python, &folder, text, &words);
        let report = std::fs::read(folder.join("j.json")).expect("a report");
        let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
        (ended.code(), report["processes"].as_array().map_or(0, Vec::len))
    };
    let (code, processes) = report(TESTS);
    assert!(code == Some(0) && processes >= 2, "{code:?}: {processes} processes");
}

/// On the simulated GPU, without a driver to be found.
#[test]
fn an_option_takes_the_simulated_gpu() {
    let Some(python) = python() else { return };
    let folder = build::scratch("pytest-sim");
    for (text, code) in [(format!("{TESTS}{RACY}"), 1), (TESTS.to_owned(), 0)] {
        let mut run = prepared(&python, &folder, &text, &["--streamsan-sim"]);
        let ended = end(run.env_remove("LD_LIBRARY_PATH"));
        assert_eq!(ended.code(), Some(code), "{}\n{}", ended.out, ended.err);
        assert_eq!(failed(&ended.out).len(), usize::from(code == 1) * 2, "{}", ended.out);
    }
}

/// A line names the operator that the user wrote, where the kernel is a template inside PyTorch.
#[test]
fn a_line_names_the_operator() {
    let Some(python) = python() else { return };
    let line = |operator: &str| {
        let text = format!(
            "from streamsan.pytest_plugin import _lines\n\
             kernel = 'void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char *, 1>>(int)'\n\
             side = {{'regions': ['t.py::test_a'], 'kernel': kernel, 'call': 'cuLaunchKernel', 'operator': {operator}}}\n\
             finding = {{'hazard': 'read-after-write', 'confidence': 'likely', 'access': side, 'previous': side}}\n\
             print(*next(_lines(finding)))\n"
        );
        said(&python, &text)
    };
    assert_eq!(line("'aten::fill_'"), "t.py::test_a streamsan: read-after-write by aten::fill_ (likely)");
    let kernel = "at::native::vectorized_elementwise_kernel<...>";
    assert_eq!(line("None"), format!("t.py::test_a streamsan: read-after-write by {kernel} (likely)"));
}

fn said(python: &Path, text: &str) -> String {
    let mut run = command(python);
    let ended = end(run.env("PYTHONPATH", product::root().join("python")).args(["-Bc", text]));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    ended.out.trim_end().to_owned()
}
