//! Launches on two streams whose blocks run in clusters, meet, or are many: what they write has
//! ranges, and what blocks put into each other's shared memory is nobody else's.

use serde_json::Value;
use tests::{build, run};

/// Shared memory of others, one copy for two blocks, a barrier of the grid.
const SHARED: [&str; 6] = ["by_pointer", "by_address", "by_async", "by_bulk", "multicast", "together"];

/// Addresses made of the place in a cluster.
const PLACES: [&str; 6] = ["rank", "reversed", "leader", "places", "fixed", "many"];

#[test]
fn clusters_of_ptx() {
    judge("ptx", &["-arch=compute_90", "-code=compute_90"], &[SHARED, PLACES].concat());
}

#[test]
fn clusters_of_machine_code() {
    judge("sass", &["-arch=sm_90"], &[SHARED, PLACES].concat());
}

fn judge(form: &str, code: &[&str], pairs: &[&str]) {
    let code = [&["-w"][..], code].concat();
    let Some(program) = build::cuda_program_if_possible("sim/clustered.cu", "shared", &code) else { return };
    for pair in pairs {
        for how in ["--sim-predict", "--sim"] {
            for (variant, racy) in [("racy", true), ("mended", false)] {
                let case = format!("{form}: {pair} {variant} {how}");
                let json =
                    build::scratch(&format!("clustered-{form}-{pair}-{variant}-{}", &how[2..])).join("report.json");
                let mut command = run::streamsan(["run", "--sim", how, "--json"]);
                let command = command.arg(&json).arg("--").arg(&program).args([pair, variant]);
                let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", "arch=90"));
                assert_eq!(ended.code(), Some(if racy { 66 } else { 0 }), "{case}: {}", ended.err);
                let text = std::fs::read_to_string(&json).expect("written");
                let report: Value = serde_json::from_str(&text).expect("valid JSON");
                let launches = &report["coverage"]["launches"];
                for unknown in ["kinds_only", "unknown"] {
                    assert_eq!(launches[unknown].as_u64(), Some(0), "{case}: {launches}");
                }
                let confidence = &report["findings"][0]["confidence"];
                // Where it is predicted, and for tiles, the bytes may be a bound.
                assert!(!racy || confidence == "certain" || confidence == "likely", "{case}: {confidence}");
            }
        }
    }
}
