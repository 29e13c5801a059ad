//! Bytes that data or coordinates pick: without measurements what races there is possible, unless
//! the other side surely touches all of them, and measurements tell.

use serde_json::Value;
use tests::{build, run};

#[test]
fn what_data_or_coordinates_pick_is_possible_until_it_is_measured() {
    let program = build::cuda_program_if_possible("sim/picked_bytes.cu", "static", &["-w", "-std=c++17"]);
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
