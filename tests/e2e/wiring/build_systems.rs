//! CMake, CTest and Meson start tests under StreamSan. Runs against the fake driver.

use std::fs;
use std::path::{Path, PathBuf};

use tests::run::{Ended, command, end_within};
use tests::{build, product};

use super::{racy, tools};

/// A project of CMake whose tests are the racy program and its twin.
const PROJECT: &str = r#"
cmake_minimum_required(VERSION 3.20)
project(app LANGUAGES C)
find_package(StreamSan REQUIRED)
streamsan_as_memcheck(NO_SIM OPTIONS --color=never)
include(CTest)
add_executable(app IMPORTED)
set_target_properties(app PROPERTIES IMPORTED_LOCATION "${APP}")
streamsan_add_test(NAME racy COMMAND app NO_SIM OPTIONS --quiet REPORT_FOLDER "${CMAKE_BINARY_DIR}/reports")
streamsan_add_test(NAME "ordered twin" COMMAND "${APP}" 0 ordered NO_SIM WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
streamsan_add_test(NAME nothing COMMAND "${CMAKE_COMMAND}" -E true NO_SIM)
add_test(NAME plain COMMAND app)
add_test(NAME "plain twin" COMMAND app 0 ordered)
add_executable(cases cases.c)
streamsan_discover_tests(cases NO_SIM OPTIONS --quiet TEST_PREFIX cases.)
"#;

/// What a program of GoogleTest answers to CTest: its list of cases, and one of them.
const CASES: &str = r#"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--gtest_list_tests")) {
        puts("Pair.");
        puts("  Racy");
        puts("  Ordered");
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--gtest_filter=Pair.Racy")) return execl(APP, APP, (char *)0);
        if (!strcmp(argv[i], "--gtest_filter=Pair.Ordered")) return execl(APP, APP, "0", "ordered", (char *)0);
    }
    return 3;
}
"#;

struct Tree {
    bin: PathBuf,
    source: PathBuf,
    build: PathBuf,
}

impl Tree {
    fn new(bin: &Path, name: &str, project: &str) -> Self {
        let folder = build::scratch(name);
        let tree = Self { bin: bin.to_path_buf(), source: folder.join("source"), build: folder.join("build") };
        fs::create_dir_all(&tree.source).expect("a folder");
        fs::write(tree.source.join("CMakeLists.txt"), project).expect("written");
        fs::write(tree.source.join("cases.c"), format!("#define APP \"{}\"\n{CASES}", racy().display()))
            .expect("written");
        tree
    }

    /// One of the tools, with the product in `PATH`.
    fn run(&self, tool: &str, words: &[&str]) -> Ended {
        let mut run = command(self.bin.join(tool));
        let path = std::env::var("PATH").unwrap_or_default();
        run.env("PATH", format!("{}:{}:{path}", product::bin().display(), self.bin.display()));
        run.env("STREAMSAN_BIN", product::bin()).args(words).current_dir(&self.source);
        end_within(&mut run, 2 * tests::run::PATIENCE)
    }

    fn configure(&self, more: &[&str]) -> Ended {
        let (build, app) = (self.build.to_string_lossy(), format!("-DAPP={}", racy().display()));
        let package = format!("-DStreamSan_DIR={}", product::root().join("cmake").display());
        self.run("cmake", &[&["-S", ".", "-B", &*build, "-G", "Ninja", &app, &package], more].concat())
    }

    fn ctest(&self, words: &[&str]) -> Ended {
        self.run("ctest", &[&["--test-dir", &*self.build.to_string_lossy()], words].concat())
    }
}

#[test]
fn tests_of_cmake_fail_on_races() {
    let Some(bin) = tools() else { return };
    let tree = Tree::new(&bin, "cmake", PROJECT);
    let made = tree.configure(&[]);
    assert_eq!(made.code(), Some(0), "{}{}", made.out, made.err);
    let built = tree.run("cmake", &["--build", &tree.build.to_string_lossy()]);
    assert_eq!(built.code(), Some(0), "{}{}", built.out, built.err);
    let ended = tree.ctest(&["-L", "streamsan"]);
    let failed: Vec<&str> = ended.out.lines().filter(|line| line.contains("***Failed")).collect();
    assert_eq!(failed.len(), 3, "{}", ended.out);
    for name in [": racy ", ": nothing ", ": cases.Pair.Racy "] {
        assert!(failed.iter().any(|line| line.contains(name)), "{name}: {}", ended.out);
    }
    assert!(ended.out.contains("40% tests passed, 3 tests failed out of 5"), "{}", ended.out);
    let report = fs::read_to_string(tree.build.join("reports/racy.json")).expect("a report");
    assert!(report.contains("write-after-write"), "{report}");
    assert!(tree.build.join("reports/racy.html").exists());
}

#[test]
fn ctest_counts_races_as_defects() {
    let Some(bin) = tools() else { return };
    let tree = Tree::new(&bin, "memcheck", PROJECT);
    assert_eq!(tree.configure(&[]).code(), Some(0));
    let built = tree.run("cmake", &["--build", &tree.build.to_string_lossy()]);
    assert_eq!(built.code(), Some(0), "{}{}", built.out, built.err);
    let ended = tree.ctest(&["-T", "memcheck", "-R", "^(racy|ordered twin|plain|plain twin)$"]);
    assert_ne!(ended.code(), Some(0), "{}", ended.out);
    // A test that runs under StreamSan anyway is watched once, and counted as any other.
    let defects = ended.out.lines().filter(|line| line.contains("Defects: 1")).count();
    assert_eq!(defects, 2, "{}", ended.out);
    assert!(ended.out.contains("Race reported - 2"), "{}", ended.out);
    let passed = ended.out.lines().filter(|line| line.contains("   Passed ")).count();
    assert_eq!(passed, 2, "{}", ended.out);
    // The log names both places.
    let logs = fs::read_dir(tree.build.join("Testing/Temporary")).expect("logs").flatten();
    let logs = logs.filter(|entry| entry.file_name().to_string_lossy().starts_with("MemoryChecker."));
    let logs: Vec<String> = logs.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect();
    let told = |log: &&String| log.contains("write-after-write (certain)") && log.matches("racy.c:").count() == 2;
    assert_eq!((logs.len(), logs.iter().filter(told).count()), (4, 2), "{logs:#?}");
    assert!(logs.iter().all(|log| log.lines().all(|line| line.starts_with("========="))), "{logs:#?}");
}

#[test]
fn the_package_of_cmake_has_the_program_s_version() {
    let Some(bin) = tools() else { return };
    let project = |version: &str| {
        format!(
            "cmake_minimum_required(VERSION 3.20)\nproject(app LANGUAGES NONE)\nfind_package(StreamSan {version})\nmessage(\"found <${{StreamSan_FOUND}}> <${{StreamSan_VERSION}}>\")\n"
        )
    };
    let version = env!("CARGO_PKG_VERSION");
    let minor = version.rsplit_once('.').expect("three numbers").0;
    for (asked, is_found) in [(version, true), (minor, true), ("99", false), ("0.0.1", false), ("", true)] {
        let name = format!("cmake_version_{}", asked.replace('.', "_"));
        let made = Tree::new(&bin, &name, &project(asked)).configure(&[]);
        let found = if is_found { format!("found <1> <{version}>") } else { "found <0>".to_owned() };
        let said = made.err.replace("TRUE", "1").replace("FALSE", "0");
        assert!(said.contains(&found), "{asked}: {}{}", made.out, made.err);
    }
    let missing = Tree::new(&bin, "cmake_missing", &project("REQUIRED")).configure(&["-DSTREAMSAN_EXECUTABLE="]);
    assert!(missing.code() == Some(1) && missing.err.contains("streamsan was not found"), "{}", missing.err);
    for wrong in ["streamsan_add_test(COMMAND true)", "streamsan_add_test(NAME a)"] {
        let made = Tree::new(&bin, "cmake_wrong", &format!("{}{wrong}\n", project("REQUIRED"))).configure(&[]);
        assert!(made.code() == Some(1) && made.err.contains("needs NAME and COMMAND"), "{wrong}: {}", made.err);
    }
}

#[test]
fn the_wrapper_of_meson() {
    let Some(bin) = tools() else { return };
    let tree = Tree::new(&bin, "meson", "");
    let project = format!(
        "project('app')\nprogram = find_program('{}')\ntest('racy', program)\ntest('twin', program, args: ['0', 'ordered'])\n",
        racy().display()
    );
    fs::write(tree.source.join("meson.build"), project).expect("written");
    let folder = tree.build.to_string_lossy();
    let made = tree.run("meson", &["setup", &folder]);
    assert_eq!(made.code(), Some(0), "{}{}", made.out, made.err);
    let ended = tree.run("meson", &["test", "-C", &folder, "--wrapper", "streamsan run --require-cuda --"]);
    assert_eq!(ended.code(), Some(1), "{}{}", ended.out, ended.err);
    for line in ["exit status 66", "Ok:                1", "Fail:              1"] {
        assert!(ended.out.contains(line), "{line}: {}", ended.out);
    }
}
