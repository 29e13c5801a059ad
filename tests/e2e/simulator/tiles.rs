//! Copies of tiles by tensor maps on two streams, racy and mended, with the bytes that are
//! predicted and with those that the simulated GPU measures.

use serde_json::Value;
use tests::{build, run};

/// What the launches do. (`freed`: one is `cudaFreeAsync`, which counts as a write.)
const PAIRS: [&str; 10] =
    ["output", "ordered", "halves", "columns", "loops", "clipped", "added", "constant", "global", "freed"];

#[test]
fn tiles_of_two_streams_race_where_they_overlap() {
    judge("ptx", &["-arch=compute_90a", "-code=compute_90a"]);
}

/// The simulated GPU runs the PTX, and the machine code is analysed, which has the parameters
/// elsewhere: a map has a larger alignment than the place where they begin.
#[test]
fn tiles_of_machine_code_are_those_of_its_ptx() {
    judge("both", &["-arch=sm_90a"]);
}

fn judge(form: &str, code: &[&str]) {
    let Some(program) = build::cuda_program_if_possible("sim/tiles.cu", "shared", code) else { return };
    for pair in PAIRS {
        for how in ["--sim-predict", "--sim"] {
            for (variant, code) in [("racy", 66), ("mended", 0)] {
                let case = format!("{form}: {pair} {variant} {how}");
                let json = build::scratch(&format!("tiles-{form}-{pair}-{variant}-{}", &how[2..])).join("report.json");
                let mut command = run::streamsan(["run", "--sim", how, "--json"]);
                let command = command.arg(&json).arg("--").arg(&program).args([pair, variant]);
                // (Maps are read on devices of compute capability 9.x.)
                let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", "arch=90"));
                assert_eq!(ended.code(), Some(code), "{case}: {}", ended.err);
                let text = std::fs::read_to_string(&json).expect("written");
                let report: Value = serde_json::from_str(&text).expect("valid JSON");
                let launches = &report["coverage"]["launches"];
                assert_eq!(launches["kinds_only"].as_u64(), Some(0), "{case}: {launches}");
                if variant == "racy" {
                    let finding = &report["findings"][0];
                    assert_eq!(
                        (&finding["hazard"], &finding["confidence"]),
                        (&"write-after-write".into(), &"certain".into()),
                        "{case}"
                    );
                }
            }
        }
    }
}
