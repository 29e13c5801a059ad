//! Kernels that launch kernels on the simulated GPU: what they compute, and whose accesses those of
//! the launched kernels are. As PTX and as machine code.

use std::path::PathBuf;

use serde_json::Value;
use tests::{build, run};

const CASES: [&str; 11] = [
    "recursion",
    "quicksort",
    "quadtree",
    "streams",
    "tail",
    "again",
    "memory",
    "errors",
    "limits",
    "template",
    "old_style",
];

/// A program with relocatable device code; nothing without CUDA's compiler.
fn compiled(file: &str, extra: &[&str]) -> Option<PathBuf> {
    let options = [&["-rdc=true", "-w"], extra].concat();
    build::cuda_program_if_possible(file, "static", &options)
}

/// Runs a program; its end and the report.
fn simulated(options: &[&str], simulator: &str, program: &PathBuf, words: &[&str]) -> (run::Ended, Value) {
    let name = format!("device-launches-{}-{simulator}-{}", options.concat(), words.concat());
    let json = build::scratch(&name.replace(['=', ':', '/'], "-")).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--no-stacks"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(program).args(words);
    let ended = run::end(command.env("STREAMSAN_SIM", simulator).env_remove("LD_LIBRARY_PATH"));
    let text = std::fs::read(&json).unwrap_or_else(|e| panic!("{}: {e}\n{}", json.display(), ended.err));
    (ended, serde_json::from_slice(&text).expect("JSON"))
}

/// What kernels launch belongs to the launch by the host: its measured bytes have theirs.
fn measured(simulator: &str, cases: &[&str]) {
    let Some(program) = compiled("exact/device_launch.cu", &[]) else { return };
    for case in cases {
        for (way, code) in [("race", 66), ("clean", 0)] {
            let (ended, report) = simulated(&["--exact"], simulator, &program, &[case, way]);
            let what = format!("{case} {way}, {simulator}: {}\n{}", ended.out, ended.err);
            assert_eq!(ended.code(), Some(code), "{what}");
            assert!(ended.out.ends_with(&format!("{case} right\n")), "{what}");
            let launches = &report["coverage"]["launches"];
            assert_eq!((&launches["total"], &launches["measured"]), (&1.into(), &1.into()), "{what}");
            let findings = report["findings"].as_array().expect("findings");
            assert_eq!(findings.len(), usize::from(way == "race"), "{what}");
            assert!(findings.iter().all(|finding| finding["confidence"] == "certain"), "{what}");
        }
    }
}

#[test]
fn what_kernels_launch_runs_and_is_measured_in_ptx() {
    measured("code=ptx", &CASES);
}

#[test]
fn what_kernels_launch_runs_and_is_measured_in_machine_code() {
    measured("code=sass", &CASES);
}

#[test]
fn what_kernels_launch_keeps_its_order_in_every_schedule() {
    for schedule in ["in-order", "late-first", "random:seed=5"] {
        measured(&format!("schedule={schedule}"), &["quicksort", "streams", "tail"]);
    }
}

#[test]
fn unmeasured_launches_of_such_kernels_count_as_unknown() {
    let Some(program) = compiled("exact/device_launch.cu", &[]) else { return };
    for (way, findings) in [("race", 1), ("clean", 0)] {
        let (ended, report) = simulated(&["--sim-predict", "--pedantic"], "code=auto", &program, &["streams", way]);
        let what = format!("{way}: {}\n{}", ended.out, ended.err);
        assert_eq!(report["coverage"]["launches"]["unknown"], 1, "{what}");
        assert!(ended.err.contains("unknown launches: it launches kernels itself: 1"), "{what}");
        let found = report["findings"].as_array().expect("findings");
        assert_eq!(found.len(), findings, "{what}");
        assert!(found.iter().all(|finding| finding["confidence"] == "possible"), "{what}");
    }
}

#[test]
fn what_is_not_simulated_is_refused_by_its_name() {
    let Some(program) = compiled("sim/device_graph.cu", &[]) else { return };
    for code in ["ptx", "sass"] {
        let (ended, _) = simulated(&[], &format!("code={code}"), &program, &[]);
        assert_eq!(ended.code(), Some(70), "{code}: {}", ended.err);
        assert!(ended.err.contains("`_Z8launcher") && ended.err.contains("cudaGraphLaunch"), "{code}: {}", ended.err);
    }
}

#[test]
fn memory_of_the_heap_is_refused_in_calls_for_copies_and_fills() {
    let Some(program) = compiled("exact/device_launch.cu", &[]) else { return };
    for code in ["ptx", "sass"] {
        for (case, call) in [("heap_fill", "cudaMemsetAsync"), ("heap_copy", "cudaMemcpyAsync")] {
            let (ended, _) = simulated(&[], &format!("code={code}"), &program, &[case, "clean"]);
            assert_eq!(ended.code(), Some(70), "{case}, {code}: {}", ended.err);
            let named = format!("gave {call} memory of the device's heap");
            assert!(
                ended.err.contains("kernel `_Z4heap") && ended.err.contains(&named),
                "{case}, {code}: {}",
                ended.err
            );
        }
    }
}

#[test]
fn memory_of_the_heap_is_no_memory_to_the_host() {
    let Some(program) = compiled("exact/device_launch.cu", &[]) else { return };
    let (ended, _) = simulated(&[], "code=auto", &program, &["heap_host", "clean"]);
    assert_eq!(ended.code(), Some(0), "{}\n{}", ended.out, ended.err);
    assert!(ended.out.ends_with("heap_host right\n"), "{}", ended.out);
}
