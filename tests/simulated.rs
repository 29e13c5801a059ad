//! The simulated GPU as a user meets it: `streamsan --sim`. (The verdicts are `corpus.rs`'s.)

use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::{build, product, run};

fn compiled(source: &str, cudart: &str, extra: &[&str]) -> Option<PathBuf> {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return None;
    }
    let file = product::root().join("tests").join(source);
    Some(build::cuda_program(&file, cudart, extra).unwrap_or_else(|e| panic!("{e}")))
}

fn sim(options: &[&str], program: &Path) -> run::Ended {
    let mut command = run::streamsan(["run", "--sim"]);
    run::end(command.args(options).arg("--").arg(program).env_remove("LD_LIBRARY_PATH"))
}

#[test]
fn the_runtimes_entry_points_are_ours() {
    let Some(program) = compiled("programs/entry_point.cu", "shared", &[]) else { return };
    let ended = sim(&[], &program);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines.len(), 8, "{}", ended.out);
    assert!(lines[..6].iter().all(|line| line.ends_with("in libstreamsan.so")), "{}", ended.out);
    assert!(lines[6..].iter().all(|line| line.ends_with("status 1, in nowhere")), "{}", ended.out);
}

#[test]
fn a_static_runtime_is_told_what_to_do() {
    let Some(program) = compiled("programs/entry_point.cu", "static", &[]) else { return };
    let ended = sim(&["--require-cuda"], &program);
    assert_eq!(ended.code(), Some(4), "a run that checked nothing is not clean: {}", ended.err);
    assert!(ended.err.contains("-cudart shared"), "{}", ended.err);
}

#[test]
fn the_demo_computes_right_and_races_without_its_event() {
    let Some(racy) = compiled("programs/demo/racy.cu", "shared", &[]) else { return };
    let Some(fixed) = compiled("programs/demo/racy.cu", "shared", &["-DFIXED"]) else { return };
    assert_eq!(sim(&[], &racy).code(), Some(66));
    let ended = sim(&[], &fixed);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    // 4094 elements of 0x3f3f3f3f, averaged over three, summed up in some order.
    let total: f64 = ended.out.trim().strip_prefix("total ").and_then(|n| n.parse().ok()).expect("a number");
    let wanted = 4094.0 * f64::from(f32::from_bits(0x3f3f_3f3f));
    assert!((total - wanted).abs() < 1.0, "{total} instead of {wanted}");
}

#[test]
fn a_trace_of_the_simulated_gpu_is_checked_later() {
    let Some(program) = compiled("programs/demo/racy.cu", "shared", &[]) else { return };
    let folder = build::scratch("sim-trace");
    let (trace, json) = (folder.join("t"), folder.join("j"));
    let mut command = run::streamsan(["record", "--sim", "-o"]);
    let ended = run::end(command.arg(&trace).arg("--").arg(&program).env_remove("LD_LIBRARY_PATH"));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let ended = run::end(run::streamsan(["check", "--json"]).arg(&json).arg(&trace));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("JSON");
    assert_eq!(report["findings"][0]["confidence"], "certain");
    assert_eq!(report["coverage"]["launches"]["ranges"], 2);
    let lines = |side: &str| report["findings"][0][side]["stack"].to_string();
    assert!(["access", "previous", "allocation"].iter().all(|side| lines(side).contains("racy.cu")), "{report:#}");
}

#[test]
fn it_works_without_the_launcher_too() {
    let Some(program) = compiled("programs/demo/racy.cu", "shared", &[]) else { return };
    let folder = product::bin().join("sim");
    if !folder.exists() {
        panic!("no {}: scripts/place_sim makes it", folder.display());
    }
    let mut command = run::preloaded(&program, "error-exitcode=66");
    let ended = run::end(command.env("LD_LIBRARY_PATH", &folder));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert!(ended.err.contains("kernel total(float const*, float*, int)"), "{}", ended.err);
}

#[test]
fn stream_zero_follows_how_the_program_was_compiled() {
    // The same source: with per-thread default streams stream 0 is another stream in each thread.
    let Some(program) = compiled("corpus/cuda/legacy_fences_blocking.cu", "shared", &[]) else { return };
    let Some(per_thread) =
        compiled("corpus/cuda/legacy_fences_blocking.cu", "shared", &["-default-stream", "per-thread"])
    else {
        return;
    };
    let kinds = |program: &Path| {
        let trace = build::scratch("sim-zero").join("t");
        let mut command = run::streamsan(["record", "--sim", "-o"]);
        let ended = run::end(command.arg(&trace).arg("--").arg(program).env_remove("LD_LIBRARY_PATH"));
        assert!(!ended.hung, "{}", ended.err);
        let dump = run::end(run::streamsan(["dump"]).arg(&trace));
        (dump.out.contains("kind: Legacy"), dump.out.contains("kind: PerThread"))
    };
    assert_eq!(kinds(&program), (true, false));
    assert!(kinds(&per_thread).1);
}

#[test]
fn protected_pages_are_invisible_to_the_program() {
    let Some(program) = compiled("programs/touches.cu", "shared", &[]) else { return };
    let plain = sim(&["--error-exitcode", "0"], &program);
    assert_eq!(plain.code(), Some(0), "{}{}", plain.out, plain.err);
    let folder = build::scratch("touches");
    let json = folder.join("j");
    let json = json.to_str().expect("a path");
    let watched = sim(&["--error-exitcode", "0", "--host-accesses", "--json", json], &program);
    assert_eq!((watched.code(), watched.out.as_str()), (Some(0), plain.out.as_str()), "{}", watched.err);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(json).expect("written")).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let lines: Vec<String> = findings.iter().map(|f| f["access"]["stack"].to_string()).collect();
    // Loads, four ways into the kernel and back, fread, threads, a signal handler, memmove: each is seen where it happens.
    assert!(findings.iter().all(|f| f["host"] == true), "{report:#}");
    for function in ["worker", "on_user"] {
        assert!(lines.iter().any(|l| l.contains(function)), "{function}: {lines:#?}");
    }
    assert!(findings.len() >= 8, "{lines:#?}");
}

#[test]
fn a_program_that_faults_still_dies_of_it_beside_protected_pages() {
    let Some(program) = compiled("programs/touches.cu", "shared", &["-DDIES"]) else { return };
    let ended = sim(&["--host-accesses"], &program);
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(ended.status.signal(), Some(11), "{}{}", ended.out, ended.err);
}
