//! Calls that the analysis of kernels does not follow, and the pointers that they are given: a race
//! on one is reported, with its reason, and no pointer that the kernel keeps to itself is blamed.

use std::path::Path;

use serde_json::Value;
use tests::{build, run};

/// Runs a case of `tests/programs/sim/passed_pointer.cu`: how it ended, and its report.
fn report(program: &Path, code: &str, case: [&str; 2], options: &[&str]) -> (run::Ended, Value) {
    let json = build::scratch(&format!("passed-{code}-{}{}", case.concat(), options.concat())).join("report.json");
    let mut command = run::streamsan(["run", "--sim-predict", "--error-exitcode", "66", "--json"]);
    command.arg(&json).args(options).arg("--").arg(program).args(case);
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("code={code}")));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    (ended, serde_json::from_str(&text).expect("JSON"))
}

fn each_code(check: impl Fn(&Path, &str)) {
    let program = build::cuda_program_if_possible("sim/passed_pointer.cu", "static", &["-w"]);
    let Some(program) = program else { return };
    ["ptx", "sass"].into_iter().for_each(|code| check(&program, code));
}

#[test]
fn a_write_to_what_a_call_was_given_races() {
    each_code(|program, code| {
        let (ended, report) = report(program, code, ["write", "race"], &[]);
        assert_eq!(ended.code(), Some(66), "{code}: {}", ended.err);
        let [finding] = &report["findings"].as_array().expect("findings")[..] else { panic!("{}", ended.err) };
        // The other side writes, so the direction that is not known does not matter.
        assert_eq!((&finding["confidence"], &finding["allocation"]["size"]), (&"likely".into(), &(4 << 12).into()));
        let reason =
            "the previous access, nothing: neither directions nor bytes: a call that was not followed is given";
        assert!(ended.err.contains(reason), "{}", ended.err);
        let (ended, _) = self::report(program, code, ["write", "clean"], &[]);
        assert_eq!(ended.code(), Some(0), "{code}: {}", ended.err);
    });
}

#[test]
fn a_read_of_what_a_call_was_given_is_a_race_only_if_it_writes() {
    each_code(|program, code| {
        let (ended, report) = report(program, code, ["read", "race"], &["--pedantic"]);
        let confidence: Vec<_> =
            report["findings"].as_array().expect("findings").iter().map(|f| &f["confidence"]).collect();
        assert_eq!(confidence, ["possible"], "{code}: {}", ended.err);
        let (ended, _) = self::report(program, code, ["read", "race"], &[]);
        assert_eq!(ended.code(), Some(0), "{code}: {}", ended.err);
        assert!(ended.err.contains("NOTE: 1 finding only if kernels"), "{code}: {}", ended.err);
        let (_, report) = self::report(program, code, ["read", "clean"], &["--pedantic"]);
        assert_eq!(report["findings"], Value::Array(Vec::new()), "{code}");
    });
}

#[test]
fn what_the_kernel_keeps_to_itself_is_not_blamed_and_the_launch_is_not_known() {
    each_code(|program, code| {
        let (ended, report) = report(program, code, ["other", "race"], &["--pedantic"]);
        assert_eq!(report["findings"], Value::Array(Vec::new()), "{code}: {}", ended.err);
        let launches = &report["coverage"]["launches"];
        assert_eq!((&launches["ranges"], &launches["kinds_only"]), (&0.into(), &1.into()), "{code}: {launches}");
        let gaps = &report["coverage"]["kernels"][0]["gaps"];
        assert!(gaps.to_string().contains("a call that was not followed"), "{code}: {gaps}");
    });
}
