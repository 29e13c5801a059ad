//! Bytes that data or coordinates pick: without measurements what races there is possible, unless
//! the other side surely touches all of them, and measurements tell. Elements that words in memory
//! select, and elements that threads claim by compare-and-swap, are told from those that both sides
//! may touch.

use serde_json::Value;
use tests::{build, run};

#[test]
fn what_data_or_coordinates_pick_is_possible_until_it_is_measured() {
    let program = build::cuda_program_if_possible("sim/picked_bytes.cu", "static", &["-w"]);
    let Some(program) = program else { return };
    for option in ["--sim-predict", "--exact"] {
        let json = build::scratch("picked-bytes").join(format!("report{option}.json"));
        let mut command = run::streamsan(["run", "--sim", option, "--pedantic", "--json"]);
        let ended = run::end(command.arg(&json).arg("--").arg(&program).env_remove("LD_LIBRARY_PATH"));
        let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let findings = report["findings"].as_array().expect("findings");
        let mut cases = 0;
        for line in ended.out.lines().filter(|line| *line != "done") {
            let words: Vec<&str> = line.splitn(5, ' ').collect();
            let size: u64 = words[0].parse().unwrap_or_else(|_| panic!("{line}"));
            let found = findings.iter().filter(|f| f["allocation"]["size"] == size);
            let found: Vec<_> = found.map(|f| (f["confidence"].as_str(), f["weakness"].as_str())).collect();
            let (confidence, why) = if option == "--exact" { (words[3], "null") } else { (words[1], words[2]) };
            let mut want = vec![(Some(confidence), Some(if why == "null" { "" } else { why }))];
            want.retain(|(confidence, _)| *confidence != Some("none"));
            assert_eq!(found, want, "{option}, {line}");
            cases += 1;
        }
        assert_eq!(cases, 68, "{}{}", ended.out, ended.err);
    }
}

/// Runs a program that prints the size, the verdict and the name of each case. `is_right`: whether
/// the confidence and the weakness of the findings in memory of that size fit the verdict.
fn judge(source: &str, code: &str, cases: usize, is_right: impl Fn(&str, &[(&str, &str)]) -> bool) {
    let program = build::cuda_program_if_possible(source, "static", &["-w"]);
    let Some(program) = program else { return };
    let json = build::scratch(&format!("picked-{}-{code}", source.replace('/', "-"))).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--sim-predict", "--pedantic", "--json"]);
    command.arg(&json).arg("--").arg(&program);
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("code={code}")));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let (mut judged, mut wrong) = (0, Vec::new());
    for line in ended.out.lines().filter(|line| *line != "done") {
        let mut words = line.splitn(3, ' ');
        let size: u64 = words.next().and_then(|size| size.parse().ok()).expect("a size");
        let verdict = words.next().expect("a verdict");
        let own = findings.iter().filter(|f| f["allocation"]["size"] == size);
        let said = |f: &'_ Value, key: &str| f[key].as_str().unwrap_or_default().to_owned();
        let found: Vec<_> = own.map(|f| (said(f, "confidence"), said(f, "weakness"))).collect();
        let found: Vec<_> = found.iter().map(|f| (f.0.as_str(), f.1.as_str())).collect();
        if !is_right(verdict, &found) {
            wrong.push(format!("{line}: {found:?}"));
        }
        judged += 1;
    }
    assert!(wrong.is_empty(), "{code}:\n{}", wrong.join("\n"));
    assert_eq!(judged, cases, "{}{}", ended.out, ended.err);
}

#[test]
fn words_that_select_for_one_side_exclude_the_other() {
    for code in ["ptx", "sass"] {
        judge("sim/selections.cu", code, 180, |verdict, found| match verdict {
            "silent" => found.is_empty(),
            _ => found.iter().any(|f| f.0 != "possible"),
        });
    }
}

#[test]
fn elements_that_one_thread_claims_are_possible() {
    for code in ["ptx", "sass"] {
        judge("sim/claims.cu", code, 162, |verdict, found| match verdict {
            "claims" | "locks" => !found.is_empty() && found.iter().all(|f| *f == ("possible", verdict)),
            _ => found.iter().any(|f| f.0 != "possible"),
        });
    }
}
