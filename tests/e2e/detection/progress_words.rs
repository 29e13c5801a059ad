//! `--sim --host-accesses`: words by which kernels say how far they are, and hosts that look at
//! them. Atomic accesses with the scope of the system reach the host, so the word itself is no
//! race; what it tells of is ordered behind a fence only.

use serde_json::Value;
use tests::{build, run};

/// The scope of the system, and a fence of it.
const ORDERED: [&str; 6] = ["release", "fenced", "membar", "membar_red", "exchange", "release_beside_device"];

/// The scope of the system, and no such fence.
const UNORDERED: [&str; 6] = ["relaxed", "volatile_", "red", "atom", "device_fence", "system_beside_device"];

/// A narrower scope, or none: no order with the host. Some store another word for it.
const NARROW: [&str; 7] =
    ["device", "device_release", "device_red", "plain", "beside", "device_beside", "device_beside_release"];

/// The confidence of each finding, by the bytes that it is about: the words, or the results.
fn found(kind: &str, store: &str, form: &str, code: &str) -> Option<(Vec<String>, String)> {
    let program = build::cuda_program_if_possible("sim/progress_words.cu", "static", &["-w"])?;
    let json = build::scratch(&format!("progress-words-{kind}-{store}-{form}-{code}")).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--host-accesses", "--pedantic", "--error-exitcode", "0"]);
    command.arg("--json").arg(&json).arg("--").arg(&program).args([kind, store, form]);
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("code={code}")));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{store} {form} {code}: {}", ended.err);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("a report")).expect("JSON");
    let findings = report["findings"].as_array().expect("a list");
    let confidence = |finding: &Value| finding["confidence"].as_str().unwrap_or_default().to_owned();
    Some((findings.iter().map(confidence).collect(), ended.err))
}

/// The findings of a form, sorted, are these.
fn expect(kind: &str, store: &str, form: &str, code: &str, wanted: &[&str]) {
    let Some((mut found, said)) = found(kind, store, form, code) else { return };
    found.sort();
    assert_eq!(found, wanted, "{kind} {store} {form} {code}: {said}");
}

fn judge(code: &str) {
    for store in ORDERED {
        expect("mapped", store, "polled", code, &["possible"]);
        expect("mapped", store, "told", code, &["possible", "possible"]);
        // Nobody has looked at the word.
        let wanted = if ["membar_red", "exchange"].contains(&store) { "possible" } else { "certain" };
        expect("mapped", store, "untold", code, &[wanted]);
    }
    for store in UNORDERED {
        expect("mapped", store, "polled", code, &["possible"]);
        expect("mapped", store, "told", code, &["certain", "possible"]);
        expect("mapped", store, "untold", code, &["certain"]);
    }
    for store in NARROW {
        expect("mapped", store, "polled", code, &["certain"]);
        expect("mapped", store, "told", code, &["certain", "certain"]);
    }
}

#[test]
fn a_progress_word_is_for_the_host_to_look_at_in_ptx() {
    judge("ptx");
}

#[test]
fn a_progress_word_is_for_the_host_to_look_at_in_machine_code() {
    judge("sass");
}

#[test]
fn words_in_memory_of_other_kinds_and_of_several_blocks() {
    for kind in ["registered", "managed"] {
        expect(kind, "volatile_", "polled", "sass", &["possible"]);
        expect(kind, "plain", "polled", "sass", &["certain"]);
    }
    for form in ["blocks", "dense"] {
        expect("mapped", "volatile_", form, "sass", &["possible"]);
        expect("mapped", "plain", form, "sass", &["certain"]);
    }
    expect("mapped", "volatile_", "cleared", "sass", &["possible"]);
    expect("mapped", "volatile_", "wiped", "sass", &["certain"]);
    // An update may be lost.
    expect("mapped", "count", "cleared", "sass", &["certain"]);
    // Results that are volatile.
    expect("mapped", "results", "early", "sass", &["certain"]);
}

/// A kernel of its own stores the word behind the one that stores the results.
#[test]
fn a_word_behind_a_kernel_tells_of_that_kernel() {
    expect("mapped", "after", "told", "sass", &["possible", "possible"]);
    expect("mapped", "before", "told", "sass", &["certain", "possible"]);
    expect("mapped", "after_plain", "told", "sass", &["certain", "certain"]);
}
