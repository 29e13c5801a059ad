//! `--sim`: values that a kernel stores before it is done, and streams that wait for them
//! (`cuStreamWaitValue`).

use serde_json::Value;
use tests::{build, run};

/// The value says nothing of the results: it comes before them, before half of them, or from a
/// block that does not know of the others.
const EARLY: [&str; 8] = [
    "early",
    "early copied",
    "half",
    "half copied",
    "blocks",
    "blocks copied",
    // What the kernel waits for comes from a stream that has not read.
    "told unread",
    "told unread copied",
];

/// The value comes behind what is read, or another one does, or the order has another reason.
const MENDED: [&str; 17] = [
    "late",
    "late copied",
    "half front",
    "blocks last",
    "blocks last copied",
    "early event",
    "early next",
    "early later",
    "half later",
    "blocks next",
    "blocks later copied",
    "late later",
    // The kernel waits in turn for the stream that has read, also where the host knows that first.
    "told read",
    "told read copied",
    "told read seen",
    "told read copied seen",
    // The host can write there, and it is not seen.
    "early host",
];

fn found(form: &str, code: &str) -> Option<(Vec<String>, String)> {
    let program = build::cuda_program_if_possible("sim/early_values.cu", "static", &["-w"])?;
    let name = format!("early-values-{}-{code}", form.replace(' ', "-"));
    let json = build::scratch(&name).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--error-exitcode", "0", "--json"]);
    command.arg(&json).arg("--").arg(&program).arg(form).env_remove("LD_LIBRARY_PATH");
    let ended = run::end(command.env("STREAMSAN_SIM", format!("code={code}")));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{form} {code}: {}", ended.err);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("a report")).expect("JSON");
    let findings = report["findings"].as_array().expect("a list");
    let confidence = |finding: &Value| finding["confidence"].as_str().unwrap_or_default().to_owned();
    Some((findings.iter().map(confidence).collect(), ended.err))
}

fn judge(code: &str) {
    for form in EARLY {
        let Some((found, said)) = found(form, code) else { return };
        assert_eq!(found, ["likely"], "{form} {code}: {said}");
    }
    for form in MENDED {
        let Some((found, said)) = found(form, code) else { return };
        assert!(found.is_empty(), "{form} {code}: {said}");
    }
}

#[test]
fn a_value_that_comes_too_early_orders_nothing_in_ptx() {
    judge("ptx");
}

#[test]
fn a_value_that_comes_too_early_orders_nothing_in_machine_code() {
    judge("sass");
}
