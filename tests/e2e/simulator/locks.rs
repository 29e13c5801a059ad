//! Critical sections of two kernels: by each kind of lock they are possible only, with the reason,
//! and a NOTE counts them. A side without the lock is a race as ever.

use serde_json::Value;
use tests::{build, run};

const LOCKS: [&str; 6] = ["swap", "exchange", "retry", "ticket", "object", "semaphore"];

fn judge(code: &str, options: &[&str]) {
    let program = build::cuda_program_if_possible("sim/locks.cu", "static", &["-w", "-std=c++17"]);
    let Some(program) = program else { return };
    for lock in LOCKS {
        for how in ["both", "one", "other", "late"] {
            let name = format!("locks-{code}-{lock}-{how}{}", options.concat());
            let json = build::scratch(&name).join("report.json");
            let mut command = run::streamsan(["run", "--sim", "--no-stacks", "--pedantic"]);
            command.args(options).arg("--json").arg(&json).arg("--").arg(&program).args([lock, how]);
            let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("code={code}")));
            let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
            let report: Value = serde_json::from_str(&text).expect("JSON");
            let findings = report["findings"].as_array().expect("findings");
            let counter = |f: &&Value| f["allocation"]["size"] == 4;
            let found: Vec<_> = findings.iter().filter(counter).map(|f| (&f["confidence"], &f["weakness"])).collect();
            assert!(!found.is_empty(), "{name}: {}", ended.err);
            if how == "both" {
                assert!(found.iter().all(|f| (f.0, f.1) == (&"possible".into(), &"locks".into())), "{name}: {found:?}");
                assert!(ended.err.contains("both kernels hold a lock"), "{name}: {}", ended.err);
            } else {
                assert!(found.iter().any(|f| f.0 != "possible"), "{name}: {found:?}\n{}", ended.err);
            }
        }
    }
}

#[test]
fn sections_of_one_lock_are_possible_in_ptx() {
    judge("ptx", &[]);
}

#[test]
fn sections_of_one_lock_are_possible_in_machine_code() {
    judge("sass", &[]);
}

#[test]
fn measured_sections_are_judged_alike() {
    judge("sass", &["--exact"]);
}

#[test]
fn a_note_counts_what_a_lock_excuses() {
    let program = build::cuda_program_if_possible("sim/locks.cu", "static", &["-w", "-std=c++17"]);
    let Some(program) = program else { return };
    let mut command = run::streamsan(["run", "--sim", "--no-stacks", "--"]);
    let ended = run::end(command.arg(&program).args(["swap", "both"]).env_remove("LD_LIBRARY_PATH"));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(
        ended.err.contains("NOTE: 1 pair set aside as possible only (see --pedantic): 1 of critical sections"),
        "{}",
        ended.err
    );
}
