//! One architecture beside the other: guarded programs, and traces that are checked elsewhere.
//!
//! `cargo xtask test --target aarch64` runs the second three times: for this machine
//! (`STREAMSAN_TRACES_TO` names a folder), for aarch64 with what the first left behind
//! (`STREAMSAN_TRACES_FROM`), and for this machine with what the second left behind.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::run::{end, streamsan};
use tests::{build, fake, product};

/// A program on the fake driver.
fn program(source: &str, extra: &[&str]) -> PathBuf {
    let link = format!("-L{}", fake::folder().display());
    let mut args = vec![link.as_str(), "-lcuda"];
    args.extend(extra);
    build::c_program(source, &args)
}

/// What `streamsan check` says of a trace, and its exit code.
fn checked(trace: &Path, report: &Path) -> (Option<i32>, Value) {
    let ended = end(streamsan(["check", "--pedantic", "--hints", "--json"]).arg(report).arg(trace));
    let text = std::fs::read_to_string(report).unwrap_or_else(|error| panic!("{error}: {}", ended.err));
    (ended.code(), serde_json::from_str(&text).expect("valid JSON"))
}

/// Both ways in which a frame may be named: `racy.c:13`.
fn lines(part: &Value) -> Vec<String> {
    let stack = part["stack"].as_array().map(Vec::as_slice).unwrap_or_default();
    let place = |frame: &Value| Some(format!("{}:{}", frame["file"].as_str()?.rsplit('/').next()?, frame["line"]));
    stack.iter().filter_map(place).collect()
}

/// Where a text stands in a program of `tests/programs`.
fn line_of(source: &str, text: &str) -> String {
    let code = std::fs::read_to_string(build::programs().join(source)).expect("the program");
    let line = code.lines().position(|line| line.contains(text)).expect("the line") + 1;
    format!("{source}:{line}")
}

#[test]
fn stacks_of_programs_with_guarded_returns_and_jumps() {
    // Landing pads for all indirect jumps, enforced where loader and processor do; on aarch64
    // return addresses are signed, too. In a library, because what C libraries add to a program has
    // none.
    let guard = if product::is_aarch64() { "-mbranch-protection=standard" } else { "-fcf-protection=full" };
    let mut guards = vec![guard, "-O2", "-fomit-frame-pointer", "-shared", "-nostartfiles", "-Dmain=guarded"];
    if product::is_aarch64() {
        guards.push("-Wl,-z,force-bti");
    }
    let library = program("racy.c", &guards);
    let start = "int guarded(int, char **); int main(int count, char **words) { return guarded(count, words); }\n";
    let start = build::generated("start.c", start).display().to_string();
    let folder = format!("-Wl,-rpath,{}", library.parent().expect("a folder").display());
    let program = program(&start, &[&library.display().to_string(), &folder]);
    let report = build::scratch("guarded").join("report.json");
    let ended = end(streamsan(["run", "--json"]).arg(&report).arg("--").arg(&program));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let text = std::fs::read_to_string(&report).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("valid JSON");
    let finding = &report["findings"][0];
    for (side, text) in [("previous", "cuMemsetD8Async(x, 1"), ("access", "cuMemsetD8Async(x, 2")] {
        let found = lines(&finding[side]);
        assert!(found.contains(&line_of("racy.c", text)), "{side}: {found:?}\n{}", ended.err);
    }
    let ended = end(streamsan(["run", "--"]).arg(&program).args(["0", "ordered"]));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
}

#[test]
fn traces_of_the_other_architecture_are_checked_alike() {
    let own = build::scratch("traces");
    let to = std::env::var_os("STREAMSAN_TRACES_TO").map_or(own.clone(), PathBuf::from);
    std::fs::create_dir_all(&to).expect("the folder for traces");
    let racy = program("racy.c", &[]);
    for (name, words, code) in [("racy", &["0"][..], 66), ("ordered", &["0", "ordered"], 0)] {
        let trace = to.join(format!("{name}.trace"));
        let _ = std::fs::remove_file(&trace);
        let ended = end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(&racy).args(words));
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        assert_eq!(checked(&trace, &to.join(format!("{name}.json"))).0, Some(code), "{name}");
    }
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_none_or(|value| value != "1") {
        for (name, code) in [("stream_pair_unordered", 66), ("stream_pair_event", 0)] {
            let source = product::root().join(format!("tests/corpus/cuda/{name}.cu"));
            let program = build::cuda_program(&source, "static", &[]).unwrap_or_else(|error| panic!("{error}"));
            let trace = to.join(format!("{name}.trace"));
            let _ = std::fs::remove_file(&trace);
            let mut record = streamsan(["record", "--sim", "-o"]);
            let ended = end(record.arg(&trace).arg("--").arg(program).env_remove("LD_LIBRARY_PATH"));
            assert_eq!(ended.code(), Some(0), "{}", ended.err);
            assert_eq!(checked(&trace, &to.join(format!("{name}.json"))).0, Some(code), "{name}");
        }
    }
    // Recorded on a GPU, by x86-64: what this architecture says of them goes with its own.
    for name in ["doc_mul_out", "triton_step", "triton_step_waited"] {
        let trace = product::root().join(format!("tests/recorded/{name}.trace"));
        std::fs::copy(&trace, to.join(format!("{name}.trace"))).expect("copy");
        checked(&trace, &to.join(format!("{name}.json")));
    }
    let from = std::env::var_os("STREAMSAN_TRACES_FROM").map_or(to, PathBuf::from);
    let mut count = 0;
    for entry in std::fs::read_dir(&from).expect("the folder of traces") {
        let trace = entry.expect("an entry").path();
        if trace.extension().is_none_or(|extension| extension != "trace") {
            continue;
        }
        let other = std::fs::read_to_string(trace.with_extension("json")).expect("what the other said");
        let other: Value = serde_json::from_str(&other).expect("valid JSON");
        let (_, here) = checked(&trace, &own.join("here.json"));
        for part in ["findings", "summary", "coverage", "causes"] {
            assert_eq!(here[part], other[part], "{part} of {}", trace.display());
        }
        count += 1;
    }
    assert!(count >= 5, "{count} traces in {}", from.display());
}

/// What stays the same of a report whatever its words become.
fn gist(report: &Value) -> Vec<(String, Vec<String>, Vec<String>)> {
    let findings = report["findings"].as_array().expect("findings");
    let words = |f: &Value| ["hazard", "confidence", "fingerprint", "count"].map(|key| f[key].to_string()).join(" ");
    findings.iter().map(|f| (words(f), lines(&f["access"]), lines(&f["previous"]))).collect()
}

/// Kept in `tests/recorded/aarch64`, with what aarch64 said of them, so that no emulation is
/// needed.
#[test]
fn traces_kept_from_aarch64_are_checked_alike() {
    let own = build::scratch("kept");
    let kept = product::root().join("tests/recorded/aarch64");
    for (name, code, last) in [
        ("racy", 66, line_of("racy.c", "cuMemsetD8Async(x, 2")),
        ("ctypes", 66, line_of("ctypes_race.py", "fill(second, 2)")),
        ("ordered", 0, String::new()),
    ] {
        let there = std::fs::read_to_string(kept.join(format!("{name}.json"))).expect("what aarch64 said");
        let there = gist(&serde_json::from_str(&there).expect("valid JSON"));
        let (ended, here) = checked(&kept.join(format!("{name}.trace")), &own.join(format!("{name}.json")));
        assert_eq!((ended, gist(&here)), (Some(code), there.clone()), "{name}");
        assert_eq!(there.first().map(|finding| finding.1.contains(&last)), (code != 0).then_some(true), "{name}");
    }
}
