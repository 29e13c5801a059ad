//! Switches over parameters, which are jump tables in machine code: a launch is predicted to take
//! the way that it takes, to the byte.

use serde_json::Value;
use tests::{build, oracle, run};

const CODES: [&[&str]; 3] = [
    &["-arch=compute_80", "-code=sm_80"],
    &["-arch=compute_90", "-code=sm_90"],
    &["-arch=compute_80", "-code=compute_80"],
];

/// Kernels of the program.
const KERNELS: usize = 30;

fn program(code: &[&str]) -> Option<std::path::PathBuf> {
    build::cuda_program_if_possible("sim/jump_tables.cu", "static", &[&["-w"], code].concat())
}

#[test]
fn every_way_is_predicted_to_the_byte() {
    for code in CODES {
        let Some(program) = program(code) else { return };
        let file = build::scratch(&format!("jump-tables{}", code.concat())).join("compared.json");
        let mut command = run::streamsan(["run", "--sim", "--exact=all", "--no-stacks", "--error-exitcode", "0"]);
        command.arg("--exact-compare").arg(&file).arg("--").arg(program);
        let ended = run::end(command.env_remove("LD_LIBRARY_PATH"));
        assert_eq!(ended.out, "done\n", "{}", ended.err);
        let kernels = oracle::read(&file).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
        assert_eq!(kernels.len(), KERNELS, "{code:?}");
        let launches = |kernel: &oracle::JudgedKernel| kernel.counts.values().sum::<u64>();
        assert!(kernels.iter().all(|kernel| launches(kernel) >= 17), "{code:?}");
        let open = |kernel: &&oracle::JudgedKernel| kernel.counts.keys().any(|verdict| verdict != "tight");
        let open: Vec<_> = kernels.iter().filter(open).map(|kernel| format!("{kernel:?}")).collect();
        assert!(open.is_empty(), "{code:?}:\n{}", open.join("\n"));
    }
}

#[test]
fn two_ways_race_where_they_meet() {
    for code in CODES {
        let Some(program) = program(code) else { return };
        for how in ["racy", "clean"] {
            let json = build::scratch(&format!("jump-tables-{how}{}", code.concat())).join("report.json");
            let mut command = run::streamsan(["run", "--sim", "--sim-predict", "--json"]);
            let ended = run::end(command.arg(&json).arg("--").arg(&program).arg(how).env_remove("LD_LIBRARY_PATH"));
            let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
            let report: Value = serde_json::from_str(&text).expect("JSON");
            let findings = report["findings"].as_array().expect("findings");
            let (mut pairs, mut wrong) = (0, Vec::new());
            for line in ended.out.lines().filter(|line| *line != "done") {
                let size: u64 = line.split(' ').next().and_then(|size| size.parse().ok()).expect("a size");
                let found: Vec<_> = findings.iter().filter(|f| f["allocation"]["size"] == size).collect();
                let is_right =
                    if how == "racy" { found.iter().any(|f| f["confidence"] == "certain") } else { found.is_empty() };
                if !is_right {
                    wrong.push(format!("{line}: {found:?}"));
                }
                pairs += 1;
            }
            assert!(wrong.is_empty(), "{how} {code:?}:\n{}", wrong.join("\n"));
            assert_eq!(pairs, KERNELS, "{}{}", ended.out, ended.err);
        }
    }
}
