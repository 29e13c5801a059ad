//! How a project is built and tested, as its files show it.
//!
//! Owns the guess that `streamsan init` makes where the user gives no commands. Reads file names
//! and one file; runs nothing.

use std::path::Path;

use super::Commands;

/// What the files of a project say. Without any that are known: make, and a program.
pub(crate) fn guess(project: &Path) -> Commands<'static> {
    let has = |name: &str| project.join(name).exists();
    let text = |name: &str| std::fs::read_to_string(project.join(name)).unwrap_or_default();
    let is_python = false;
    if has("CMakeLists.txt") {
        let is_tested = text("CMakeLists.txt").lines().map(str::trim_start).any(|line| {
            let line = line.to_ascii_lowercase();
            line.starts_with("enable_testing") || line.starts_with("include(ctest)")
        });
        return Commands {
            build: "cmake -S . -B build && cmake --build build -j",
            check: if is_tested { "ctest --test-dir build --output-on-failure" } else { "build/app" },
            next: "next   CMake: find_package(StreamSan) and streamsan_add_test check tests one by one\n",
            is_python,
        };
    }
    if has("meson.build") {
        let is_tested = text("meson.build").lines().any(|line| line.trim_start().starts_with("test("));
        return Commands {
            build: "meson setup build && meson compile -C build",
            check: if is_tested { "meson test -C build --print-errorlogs" } else { "build/app" },
            next: "next   Meson: meson test --wrapper 'streamsan --sim' checks tests one by one\n",
            is_python,
        };
    }
    if has("Makefile") || has("makefile") || has("GNUmakefile") {
        let rules = ["Makefile", "makefile", "GNUmakefile"].map(text);
        let rule = |name: &str| rules.iter().any(|text| text.lines().any(|line| line.starts_with(name)));
        let check = match () {
            () if rule("check:") => "make check",
            () if rule("test:") => "make test",
            () => "./app",
        };
        return Commands { build: "make", check, next: "", is_python };
    }
    if ["pyproject.toml", "setup.py", "pytest.ini"].into_iter().any(has) {
        return Commands {
            build: match () {
                () if has("pyproject.toml") || has("setup.py") => "pip install . pytest",
                () if has("requirements.txt") => "pip install -r requirements.txt pytest",
                () => "pip install pytest",
            },
            check: "python -m pytest",
            next: "next   with StreamSan's wheel: pytest --streamsan-sim names the test of each finding\n",
            is_python: true,
        };
    }
    Commands { build: "make", check: "./app", next: "", is_python }
}
