//! Levels of mipmapped arrays are memory of their own: a race is one of a level that both sides
//! touch, and the report names it.

use std::collections::BTreeSet;

use serde_json::Value;
use tests::{build, run};

/// One case that the program prints.
struct Case<'a> {
    size: u64,
    predicted: [&'a str; 2],
    measured: &'a str,
    level: u64,
    line: &'a str,
}

impl<'a> Case<'a> {
    fn of(line: &'a str) -> Self {
        let words: Vec<&str> = line.splitn(6, ' ').collect();
        let number = |at: usize| words[at].parse().unwrap_or_else(|_| panic!("{line}"));
        Self { size: number(0), predicted: [words[1], words[2]], measured: words[3], level: number(4), line }
    }
}

fn judged(options: &[&str], form: &str) -> Option<(Value, run::Ended)> {
    let program = build::cuda_program_if_possible("sim/mip_levels.cu", "static", &["-w"])?;
    let json = build::scratch("mip-levels").join(format!("report{}{form}.json", options.concat()));
    let mut command = run::streamsan(["run", "--sim", "--pedantic", "--json"]);
    command.arg(&json).args(options).arg("--").arg(&program).arg(form).env_remove("LD_LIBRARY_PATH");
    let ended = run::end(&mut command);
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}\n{}", ended.out, ended.err));
    assert!(ended.out.ends_with("done\n"), "{}{}", ended.out, ended.err);
    Some((serde_json::from_str(&text).expect("JSON"), ended))
}

#[test]
fn a_race_is_one_of_a_level_that_both_sides_touch() {
    for option in ["--sim-predict", "--exact"] {
        let Some((report, ended)) = judged(&[option], "unordered") else { return };
        let findings = report["findings"].as_array().expect("findings");
        let cases: Vec<Case<'_>> = ended.out.lines().filter(|line| *line != "done").map(Case::of).collect();
        for case in &cases {
            let found = findings.iter().filter(|f| f["allocation"]["size"] == case.size);
            let found: Vec<_> = found.collect();
            let [confidence, why] = if option == "--exact" { [case.measured, "null"] } else { case.predicted };
            let got: Vec<_> = found.iter().map(|f| [&f["confidence"], &f["weakness"]].map(|v| v.as_str())).collect();
            let mut want = vec![[Some(confidence), Some(if why == "null" { "" } else { why })]];
            want.retain(|[confidence, _]| *confidence != Some("none"));
            assert_eq!(got, want, "{option}, {}", case.line);
            for f in found {
                let ends: Vec<u64> =
                    f["allocation"]["levels"].as_array().expect("levels").iter().filter_map(Value::as_u64).collect();
                assert_eq!((ends.len(), ends.last()), (3, Some(&case.size)), "{}", case.line);
                let [from, to] = ["from", "to"].map(|end| f["bytes"][end].as_u64().expect("a byte"));
                let level = |byte: u64| ends.iter().position(|end| byte < *end).map(|level| level as u64);
                let levels = (level(from), level(to - 1));
                assert_eq!(levels, (Some(case.level), Some(case.level)), "{option}, {}", case.line);
            }
        }
        let sizes: BTreeSet<u64> = cases.iter().map(|case| case.size).collect();
        assert_eq!((cases.len(), sizes.len()), (180, 180), "{}", ended.out);
        assert!(ended.err.contains(", level 1"), "{}", ended.err);
        assert!(ended.err.contains("bytes of mipmapped array at"), "{}", ended.err);
    }
}

#[test]
fn levels_that_are_read_in_order_are_no_race() {
    for option in ["--sim-predict", "--exact"] {
        let Some((report, ended)) = judged(&[option], "ordered") else { return };
        assert_eq!(report["findings"].as_array().map(Vec::len), Some(0), "{option}: {}", ended.err);
        assert_eq!(ended.out.lines().count(), 181);
    }
}
