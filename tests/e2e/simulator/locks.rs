//! Critical sections of two kernels: by each kind of lock they are possible only, with the reason,
//! and a NOTE counts them, unless the addresses show that the locks are two. A side without the
//! lock is a race as ever.

use serde_json::Value;
use tests::{build, run};

const LOCKS: [&str; 6] = ["swap", "exchange", "retry", "ticket", "object", "semaphore"];

fn judge(code: &str, options: &[&str]) {
    let program = build::cuda_program_if_possible("sim/locks.cu", "static", &["-w"]);
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
    let program = build::cuda_program_if_possible("sim/locks.cu", "static", &["-w"]);
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

/// Every form of a lock, its word found in every way, taken by both kernels or next to another one.
fn judge_words(code: &str, options: &[&str]) {
    let program = build::cuda_program_if_possible("sim/lock_words.cu", "static", &["-w"]);
    let Some(program) = program else { return };
    let json = build::scratch(&format!("lock-words-{code}{}", options.concat())).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--pedantic"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(&program);
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("code={code}")));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let mut cases = 0;
    for line in ended.out.lines().filter(|line| *line != "done") {
        let (size, rest) = line.split_once(' ').expect("a size");
        let size: u64 = size.parse().expect("a size");
        let data = |f: &&Value| f["allocation"]["size"] == size;
        let found: Vec<_> = findings.iter().filter(data).map(|f| (&f["confidence"], &f["weakness"])).collect();
        assert!(!found.is_empty(), "{line}");
        if rest.starts_with("locks ") {
            assert!(found.iter().all(|f| *f == (&"possible".into(), &"locks".into())), "{line}: {found:?}");
        } else {
            assert!(found.iter().any(|f| f.0 != "possible"), "{line}: {found:?}");
        }
        cases += 1;
    }
    assert_eq!(cases, 124, "{}{}", ended.out, ended.err);
}

/// Mailboxes between kernels, by each kind of flag, look and mistake, and locks for which a
/// parameter asks.
fn judge_handovers(code: &str, options: &[&str]) {
    let program = build::cuda_program_if_possible("sim/handovers.cu", "static", &["-w"]);
    let Some(program) = program else { return };
    let name = format!("handovers-{code}{}", options.concat());
    let json = build::scratch(&name).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--pedantic"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(&program);
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("code={code}")));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let (mut cases, mut wrong) = (0, Vec::new());
    for line in ended.out.lines().filter(|line| *line != "done") {
        let mut words = line.splitn(3, ' ');
        let size: u64 = words.next().and_then(|size| size.parse().ok()).expect("a size");
        let excuse = words.next().expect("an excuse");
        let data = |f: &&Value| f["allocation"]["size"] == size;
        let found: Vec<_> = findings.iter().filter(data).map(|f| (&f["confidence"], &f["weakness"])).collect();
        let is_right = match excuse {
            "race" => found.iter().any(|f| f.0 != "possible"),
            excuse => !found.is_empty() && found.iter().all(|f| *f == (&"possible".into(), &excuse.into())),
        };
        if !is_right {
            wrong.push(format!("{line}: {found:?}"));
        }
        cases += 1;
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    assert_eq!(cases, 63, "{}{}", ended.out, ended.err);
}

#[test]
fn what_a_kernel_hands_over_is_possible_in_ptx() {
    judge_handovers("ptx", &[]);
}

#[test]
fn what_a_kernel_hands_over_is_possible_in_machine_code() {
    judge_handovers("sass", &["--sim-predict"]);
}

#[test]
fn what_a_kernel_hands_over_is_possible_by_measured_accesses() {
    judge_handovers("sass", &["--exact"]);
}

#[test]
fn two_locks_are_told_from_one_in_ptx() {
    judge_words("ptx", &[]);
}

#[test]
fn two_locks_are_told_from_one_in_machine_code() {
    judge_words("sass", &[]);
}

#[test]
fn two_locks_are_told_from_one_by_measured_accesses() {
    judge_words("sass", &["--exact"]);
}

/// One lock of an array and several that nest, by each way of taking and giving back them.
fn judge_nested(code: &str, compiler: &[&str], options: &[&str]) {
    let debug = compiler.iter().any(|flag| flag.contains("-G") || flag.contains("-O0"));
    let flags = [&["-w"], compiler].concat();
    let Some(program) = build::cuda_program_if_possible("sim/lock_nesting.cu", "static", &flags) else { return };
    let name = format!("lock-nesting-{code}{}{}", compiler.concat(), options.concat());
    let json = build::scratch(&name).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--pedantic"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(&program);
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("code={code}")));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let mut cases = 0;
    for line in ended.out.lines().filter(|line| *line != "done") {
        let (size, rest) = line.split_once(' ').expect("a size");
        let size: u64 = size.parse().expect("a size");
        let data = |f: &&Value| f["allocation"]["size"] == size;
        let found: Vec<_> = findings.iter().filter(data).map(|f| (&f["confidence"], &f["weakness"])).collect();
        assert!(!found.is_empty(), "{line}");
        let excused = found.iter().all(|f| *f == (&"possible".into(), &"locks".into()));
        match rest.split_once(' ').expect("what excuses it").0 {
            "locks" => assert!(excused, "{name}: {line}: {found:?}"),
            // Of code without optimisation less is known of which lock is which.
            "race" if !debug || !rest.contains("other") => {
                assert!(found.iter().any(|f| f.0 != "possible"), "{name}: {line}: {found:?}");
            }
            _ => assert!(excused || found.iter().any(|f| f.0 != "possible"), "{name}: {line}: {found:?}"),
        }
        cases += 1;
    }
    assert_eq!(cases, 196, "{}{}", ended.out, ended.err);
}

#[test]
fn nested_locks_are_recognised_in_ptx() {
    judge_nested("ptx", &[], &[]);
}

#[test]
fn nested_locks_are_recognised_in_machine_code() {
    judge_nested("sass", &[], &["--sim-predict"]);
}

#[test]
fn nested_locks_are_recognised_by_measured_accesses() {
    judge_nested("sass", &[], &["--exact"]);
}

#[test]
fn nested_locks_are_recognised_without_optimisation() {
    judge_nested("ptx", &["-G"], &[]);
}

#[test]
fn nested_locks_are_recognised_without_optimisation_in_machine_code() {
    judge_nested("sass", &["-G"], &["--sim-predict"]);
    judge_nested("sass", &["-Xptxas=-O0"], &["--sim-predict"]);
}
