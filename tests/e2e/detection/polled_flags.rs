//! Order by flags that kernels poll, between two streams and between two processes, in PTX and in
//! machine code: `polled_flags.cu`. What only a flag may order is possible, and hidden.

use serde_json::Value;
use tests::{build, run};

/// What a run finds: the confidence and the weakness of each finding, and what the report says.
fn found(how: &str, place: &str, code: &str) -> Option<(Vec<(String, String)>, String)> {
    let program = build::cuda_program_if_possible("sim/polled_flags.cu", "static", &["-w", "-lineinfo"])?;
    let json = build::scratch("polled-flags").join(format!("{how}-{place}-{code}.json"));
    let mut command = run::streamsan(["run", "--sim", "--pedantic", "--error-exitcode", "0", "--json"]);
    command.arg(&json).arg("--").arg(&program).args([how, place]).env_remove("LD_LIBRARY_PATH");
    let ended = run::end(command.env("STREAMSAN_SIM", format!("code={code}")));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{how} {place} {code}: {}", ended.err);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("a report")).expect("JSON");
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().expect("a list");
    let all = findings.iter().map(|finding| (text(finding, "confidence"), text(finding, "weakness")));
    Some((all.collect(), ended.err))
}

fn judge(code: &str) {
    for place in ["stream", "process"] {
        for how in ["none", "late", "within", "relaxed", "over"] {
            let Some((found, said)) = found(how, place, code) else { return };
            assert!(
                !found.is_empty() && found.iter().all(|f| f.0 == "certain"),
                "{how} {place} {code}: {found:?}\n{said}"
            );
        }
        for how in ["right", "fenced", "ahead", "inside"] {
            let Some((found, said)) = found(how, place, code) else { return };
            let weakness = if how == "inside" && place == "stream" { "handover" } else { "flag" };
            assert_eq!(found, [("possible".to_owned(), weakness.to_owned())], "{how} {place} {code}: {said}");
        }
    }
}

#[test]
fn what_a_polled_flag_may_order_is_possible_in_ptx() {
    judge("ptx");
}

#[test]
fn what_a_polled_flag_may_order_is_possible_in_machine_code() {
    judge("sass");
}

#[test]
fn the_report_names_the_kernel_that_polls_and_its_line() {
    let Some((_, said)) = found("right", "stream", "ptx") else { return };
    let source = std::fs::read_to_string(build::programs().join("sim/polled_flags.cu")).expect("the source");
    let line = 1 + source.lines().position(|line| line.contains("ld.acquire.sys")).expect("its line");
    assert!(said.contains("await polls a flag in memory before one of the two"), "{said}");
    assert!(said.contains(&format!("polled_flags.cu:{line}")), "{said}");
}
