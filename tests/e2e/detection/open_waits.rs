//! `--sim --host-accesses`: copies behind waits for words that the host writes, and a host that
//! touches their memory before or after it has written the words.

use std::collections::BTreeSet;

use serde_json::Value;
use tests::{build, run};

#[test]
fn a_host_that_ends_the_wait_before_it_touches_the_bytes_races() {
    let Some(program) = build::cuda_program_if_possible("sim/open_waits.cu", "static", &["-w"]) else {
        return;
    };
    let json = build::scratch("open-waits").join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--host-accesses", "--pedantic", "--json"]);
    let ended = run::end(command.arg(&json).arg("--").arg(&program).env_remove("LD_LIBRARY_PATH"));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}\n{}", ended.out, ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let mut sizes = BTreeSet::new();
    for line in ended.out.lines().filter(|line| *line != "done") {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let size: u64 = words[0].parse().unwrap_or_else(|_| panic!("{line}"));
        let found = findings.iter().filter(|f| f["allocation"]["size"] == size);
        let found: BTreeSet<_> = found.map(|f| (f["confidence"].as_str(), f["weakness"].as_str())).collect();
        let why = words[2].trim_end_matches(',');
        let mut want = BTreeSet::from([(Some(words[1]), Some(if why == "null" { "" } else { why }))]);
        want.retain(|(confidence, _)| *confidence != Some("none"));
        assert_eq!(found, want, "{line}");
        sizes.insert(size);
    }
    assert_eq!(sizes.len(), 216, "{}{}", ended.out, ended.err);
}
