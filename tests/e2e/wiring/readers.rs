//! Other programs that read what StreamSan writes: problem matchers of editors and of GitHub, and
//! `junitparser`, which joins files of JUnit XML. Runs against the fake driver.
//!
//! The pages of the guide hold what is tried: it is taken from there.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tests::run::{Ended, command, end, end_within, streamsan};
use tests::{build, fake, product};

use super::{racy, tools};

/// The blocks of JSON of a page of the guide.
fn blocks(page: &str) -> Vec<Value> {
    let text = fs::read_to_string(product::root().join("docs/guide").join(page)).expect("the page");
    let blocks = text.split("```json\n").skip(1).map(|rest| rest.split("\n```").next().unwrap_or_default());
    blocks.map(|text| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))).collect()
}

/// What a pattern of a matcher takes from each line: file, line and message. Python's expressions
/// mean what JavaScript's do where these pages use them.
fn matched(bin: &Path, pattern: &Value, text: &str) -> Vec<Value> {
    let script = "import json, re, sys\n\
        pattern, text = json.loads(sys.argv[1]), sys.argv[2]\n\
        found = [re.search(pattern['regexp'], line) for line in text.splitlines()]\n\
        print(json.dumps([[m[pattern[key]] for key in ('file', 'line', 'message')] for m in found if m]))";
    let ended = end(command(bin.join("python")).args(["-c", script, &pattern.to_string(), text]));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    serde_json::from_str(&ended.out).expect("a list")
}

#[test]
fn the_matchers_of_the_guide_find_each_finding_and_nothing_else() {
    let Some(bin) = tools() else { return };
    let blocks = blocks("editors.md");
    let [tasks, github] = blocks.as_slice() else { panic!("{blocks:#?}") };
    let task = &tasks["tasks"][0];
    assert!(task["command"].as_str().is_some_and(|command| command.contains("--format short")), "{task:#}");
    let patterns = [&task["problemMatcher"]["pattern"], &github["problemMatcher"][0]["pattern"][0]];
    let run = |words: &[&str]| -> Ended {
        let mut run = streamsan(["--format", "short"]);
        end(run.args(words).env("LD_LIBRARY_PATH", fake::folder()))
    };
    let program = racy();
    let program = program.to_str().expect("text");
    let told = run(&["--hints", "--forbid", "unnamed-stream", program]);
    assert_eq!(told.code(), Some(66), "{}", told.err);
    let clean = run(&[program, "0", "ordered"]);
    assert_eq!(clean.code(), Some(0), "{}", clean.err);
    assert!(clean.err.contains("SUMMARY"), "{}", clean.err);
    for pattern in patterns {
        let found = matched(&bin, pattern, &told.err);
        let races: Vec<&Value> = found
            .iter()
            .filter(|each| each[2].as_str().is_some_and(|text| text.contains("write-after-write")))
            .collect();
        assert_eq!(races.len(), 1, "{found:?}\n{}", told.err);
        let forbidden =
            found.iter().filter(|each| each[2].as_str().is_some_and(|text| text.contains("unnamed-stream")));
        assert!(forbidden.count() > 0, "{found:?}\n{}", told.err);
        for place in &found {
            assert!(place[0].as_str().is_some_and(|file| file.ends_with("racy.c")), "{found:?}");
            let line: usize = place[1].as_str().and_then(|line| line.parse().ok()).expect("a number");
            assert!(line > 1 && place[2].as_str().is_some_and(|text| !text.is_empty()), "{found:?}");
        }
        assert_eq!(matched(&bin, pattern, &clean.err), Vec::<Value>::new(), "{}", clean.err);
    }
}

/// Lets nextest write its file about a good test and a bad one; not where nextest is missing.
fn nextest(folder: &Path) -> bool {
    if end(command("cargo").args(["nextest", "--version"])).code() != Some(0) {
        eprintln!("skipped: the file of nextest. It needs cargo-nextest");
        return false;
    }
    let project = folder.join("crate");
    let junit = folder.join("nextest.xml");
    for (file, text) in [
        (
            "Cargo.toml",
            "[package]\nname = \"crated\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n".to_owned(),
        ),
        ("src/lib.rs", "#[test]\nfn good() {}\n#[test]\nfn bad() {\n    panic!(\"bad\");\n}\n".to_owned()),
        (".config/nextest.toml", format!("[profile.default.junit]\npath = '{}'\n", junit.display())),
    ] {
        let path = project.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    let mut run = command("cargo");
    // What this run of the tests is told by cargo and nextest is not for that one.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("NEXTEST")
            || name.starts_with("CARGO_") && name != "CARGO_HOME"
            || name.starts_with("RUSTC_")
        {
            run.env_remove(name);
        }
    }
    run.args(["nextest", "run", "--offline", "--no-fail-fast"]).current_dir(&project);
    let ended = end_within(&mut run, 3 * tests::run::PATIENCE);
    // Nextest's code for tests that failed.
    assert_eq!(ended.code(), Some(100), "{}{}", ended.out, ended.err);
    true
}

#[test]
fn files_of_junit_are_joined() {
    let Some(bin) = tools() else { return };
    let folder = build::scratch("junit_joined");
    let program = racy();
    // A run with a race, one without, a folder of programs, tests of pytest, CTest and nextest.
    let junit = |name: &str, words: &[&str]| {
        let mut run = streamsan(["--junit", name]);
        run.arg(&program).args(words).current_dir(&folder).env("LD_LIBRARY_PATH", fake::folder());
        end(&mut run).code()
    };
    assert_eq!((junit("racy.xml", &[]), junit("clean.xml", &["0", "ordered"])), (Some(66), Some(0)));
    fs::create_dir(folder.join("programs")).expect("a folder");
    fs::copy(&program, folder.join("programs/racy")).expect("a copy");
    let mut hunt = streamsan(["hunt", "--junit", "hunt.xml", "programs"]);
    let ended = end_within(hunt.current_dir(&folder).env("LD_LIBRARY_PATH", fake::folder()), 2 * tests::run::PATIENCE);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    fs::write(folder.join("test_it.py"), "def test_it():\n    pass\n").expect("written");
    let mut pytest = command(bin.join("python"));
    pytest.args(["-m", "pytest", "-q", "--streamsan", "-p", "streamsan", "--junitxml=pytest.xml"]).current_dir(&folder);
    pytest.env("PYTHONPATH", product::root().join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    let ended = end(pytest.env("STREAMSAN_BIN", product::bin()));
    assert_eq!(ended.code(), Some(0), "{}{}", ended.out, ended.err);
    let project = "cmake_minimum_required(VERSION 3.20)\nproject(a NONE)\nenable_testing()\n\
        add_test(NAME good COMMAND ${CMAKE_COMMAND} -E true)\nadd_test(NAME bad COMMAND ${CMAKE_COMMAND} -E false)\n";
    fs::write(folder.join("CMakeLists.txt"), project).expect("written");
    let tool = |name: &str, words: &[&str]| end(command(bin.join(name)).args(words).current_dir(&folder));
    assert_eq!(tool("cmake", &["-S", ".", "-B", "build"]).code(), Some(0));
    let ended = tool("ctest", &["--test-dir", "build", "--output-junit", "../ctest.xml"]);
    assert_eq!(ended.code(), Some(8), "{}", ended.out);
    let mut parts = vec!["racy.xml", "clean.xml", "hunt.xml", "pytest.xml", "ctest.xml"];
    if nextest(&folder) {
        parts.push("nextest.xml");
    }
    let joined = tool("junitparser", &[&["merge"], &parts[..], &["all.xml"]].concat());
    assert_eq!(joined.code(), Some(0), "{}{}", joined.out, joined.err);
    // Nothing is lost and nothing is counted twice.
    let count = |name: &str| {
        let script = "import sys, xml.etree.ElementTree as E\n\
            cases = list(E.parse(sys.argv[1]).iter('testcase'))\n\
            print(len(cases), sum(c.find('failure') is not None for c in cases))";
        let ended = end(command(bin.join("python")).args(["-c", script, name]).current_dir(&folder));
        let numbers: Vec<usize> = ended.out.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let [cases, failures] = numbers[..] else { panic!("{name}: {}{}", ended.out, ended.err) };
        (cases, failures)
    };
    let all: Vec<(usize, usize)> = parts.iter().map(|name| count(name)).collect();
    let failures: Vec<usize> = all.iter().map(|(_, failures)| *failures).collect();
    assert_eq!(failures, [1, 0, 1, 0, 1, 1][..parts.len()], "{all:?}");
    let sum = all.iter().fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
    assert_eq!(count("all.xml"), sum, "{all:?}");
    // Whoever reads it sees that it is red.
    assert_eq!(tool("junitparser", &["verify", "all.xml"]).code(), Some(1));
    assert_eq!(tool("junitparser", &["verify", "clean.xml"]).code(), Some(0));
}
