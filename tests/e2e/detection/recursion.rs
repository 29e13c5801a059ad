//! Kernels that recurse into parts of an array: measured, and predicted as on a GPU.

use serde_json::Value;
use tests::{build, run};

const WAYS: [&str; 3] = ["tree", "range", "thread"];

/// Hazards, confidence and weakness of all findings, shown or not.
fn findings(program: &std::path::Path, options: &[&str], words: [&str; 2]) -> Vec<(String, String)> {
    let json = build::scratch("recursion").join(format!("{}-{}-{}.json", words[0], words[1], options.len()));
    let mut command = run::streamsan(["run", "--sim", "--pedantic", "--json"]);
    let ended =
        run::end(command.arg(&json).args(options).arg("--").arg(program).args(words).env_remove("LD_LIBRARY_PATH"));
    assert_eq!(ended.out, "done\n", "{}", ended.err);
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let said = |f: &Value, key: &str| f[key].as_str().unwrap_or_default().to_owned();
    let all = report["findings"].as_array().expect("findings");
    all.iter().map(|f| (said(f, "confidence"), said(f, "weakness"))).collect()
}

#[test]
fn recursion_into_parts_is_possible_until_it_is_measured() {
    let Some(program) = build::cuda_program_if_possible("sim/recursion.cu", "static", &["-w"]) else {
        return;
    };
    for way in WAYS {
        for words in [[way, "apart"], [way, "common"]] {
            let measured = findings(&program, &[], words);
            match words[1] {
                "common" => assert!(measured.iter().any(|f| f.0 == "certain"), "{words:?}: {measured:?}"),
                _ => assert!(measured.is_empty(), "{words:?}: {measured:?}"),
            }
            // A compiler may make a loop of it, which is predicted.
            let predicted = findings(&program, &["--sim-predict"], words);
            match words[1] {
                "common" => assert!(!predicted.is_empty(), "{words:?}"),
                _ => assert!(predicted.iter().all(|f| f.0 == "possible"), "{words:?}: {predicted:?}"),
            }
        }
    }
}
