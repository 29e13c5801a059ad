//! `streamsan hunt` over a build folder with tests of CTest, as a stand-in for CTest and the real
//! one list them.

use std::path::{Path, PathBuf};
use std::process::Command;

use tests::build;
use tests::run::end;

use super::hunt::{hunt, hunted, put, read, row, script};

/// What CTest 4 answers for the tests of [`ctest_folder`], shortened.
fn answer(folder: &Path) -> String {
    let at = folder.display();
    let directory = format!(r#"{{ "name": "WORKING_DIRECTORY", "value": "{at}" }}"#);
    let test = |name: &str, command: &str, more: &str| {
        format!(r#"{{ "name": "{name}", {command} "properties": [{more} {directory}] }}"#)
    };
    let command = |words: &str| format!(r#""command": [{words}],"#);
    let tests = [
        test("racy", &command(&format!(r#""{at}/racy""#)), r#"{ "name": "ENVIRONMENT", "value": ["HUNTED=x y"] },"#),
        test("ordered", &command(&format!(r#""{at}/ordered", "an argument""#)), ""),
        test("hangs", &command(&format!(r#""{at}/hangs""#)), r#"{ "name": "TIMEOUT", "value": 1.0 },"#),
        test("skips", &command(&format!(r#""{at}/skips""#)), r#"{ "name": "SKIP_RETURN_CODE", "value": 77 },"#),
        test("off", &command(&format!(r#""{at}/racy""#)), r#"{ "name": "DISABLED", "value": true },"#),
        test("unbuilt", "", ""),
    ];
    format!(r#"{{ "kind": "ctestInfo", "tests": [{}], "version": {{ "major": 1, "minor": 0 }} }}"#, tests.join(", "))
}

/// A build folder with tests, and helpers that are none.
fn ctest_folder(name: &str) -> PathBuf {
    let root = build::scratch(name);
    let folder = root.join("build");
    for (name, ways) in [("racy", "RACY"), ("ordered", "ORDERED"), ("skips", "SKIPS"), ("helper", "RACY")] {
        put(&hunted(&[ways]), &folder.join(name));
    }
    put(&hunted(&["ORDERED", "HANGS"]), &folder.join("hangs"));
    let at = folder.display();
    let text = format!(
        "add_test([=[racy]=] \"{at}/racy\")\n\
         set_tests_properties([=[racy]=] PROPERTIES ENVIRONMENT \"HUNTED=x y\")\n\
         add_test([=[ordered]=] \"{at}/ordered\" \"an argument\")\n\
         add_test([=[hangs]=] \"{at}/hangs\")\n\
         set_tests_properties([=[hangs]=] PROPERTIES TIMEOUT \"1\")\n\
         subdirs(\"inner\")\n\
         add_test([=[unbuilt]=] \"{at}/nowhere\")\n"
    );
    std::fs::write(folder.join("CTestTestfile.cmake"), text).expect("written");
    let inner = format!(
        "add_test([=[skips]=] \"{at}/skips\")\n\
         set_tests_properties([=[skips]=] PROPERTIES SKIP_RETURN_CODE \"77\")\n\
         add_test([=[off]=] \"{at}/racy\")\n\
         set_tests_properties([=[off]=] PROPERTIES DISABLED \"TRUE\")\n"
    );
    std::fs::create_dir_all(folder.join("inner")).expect("a folder");
    std::fs::write(folder.join("inner/CTestTestfile.cmake"), inner).expect("written");
    root
}

/// Hunts for the tests of CTest; `path`: what stands before the search path.
fn ctest_hunt(root: &Path, path: &Path) {
    let json = root.join("report.json");
    let mut command = hunt(&["--json", json.to_str().expect("text")], root);
    let old = std::env::var("PATH").unwrap_or_default();
    let ended = end(command.env("PATH", format!("{}:{old}", path.display())));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    for (name, outcome) in [
        ("racy", "findings"),
        ("ordered", "clean"),
        ("hangs", "timed out"),
        ("skips", "skipped"),
        ("off", "skipped"),
        ("unbuilt", "not checked"),
    ] {
        assert_eq!(row(&ended, name), outcome, "{}", ended.err);
    }
    assert!(ended.err.contains("streamsan: HUNT: 6 programs: "), "the helper is no test: {}", ended.err);
    let report = read(&json);
    let of = |name: &str| {
        let programs = report["programs"].as_array().expect("programs");
        programs.iter().find(|p| p["name"] == name).expect("it").clone()
    };
    assert_eq!(of("ordered")["command"][1], "an argument");
    let said = Path::new(of("racy")["output"].as_str().expect("a folder")).join("stdout");
    assert_eq!(std::fs::read_to_string(said).expect("kept"), "done: x y\n");
}

#[test]
fn tests_are_run_as_ctest_lists_them() {
    let root = ctest_folder("hunt-ctest");
    let tools = build::scratch("hunt-ctest-tools");
    std::fs::write(tools.join("answer"), answer(&root.canonicalize().expect("there").join("build"))).expect("written");
    let text = "#!/bin/sh\n[ \"$*\" = --show-only=json-v1 ] && [ -e CTestTestfile.cmake ] && exec cat \"$(dirname \"$0\")/answer\"\nexit 1\n";
    script(&tools.join("ctest"), text);
    ctest_hunt(&root, &tools);
    // Its answer is of no use: what can be seen is taken, with a note.
    script(&tools.join("ctest"), "#!/bin/sh\necho 'cannot find it' >&2\nexit 1\n");
    let old = std::env::var("PATH").unwrap_or_default();
    let ended = end(hunt(&["--list"], &root).env("PATH", format!("{}:{old}", tools.display())));
    assert!(
        ended.err.contains("NOTE: ctest in ") && ended.err.contains("cannot find it; executables"),
        "{}",
        ended.err
    );
    assert_eq!(ended.out.lines().filter(|line| line.starts_with("executable  build/")).count(), 5, "{}", ended.out);
}

#[test]
fn tests_are_run_as_the_real_ctest_lists_them() {
    if Command::new("ctest").arg("--version").output().is_ok_and(|said| said.status.success()) {
        ctest_hunt(&ctest_folder("hunt-ctest-real"), Path::new("/usr/bin"));
    }
}
