//! Copies of tiles by tensor maps on two streams, racy and mended, with the bytes that are
//! predicted and with those that the simulated GPU measures.

use serde_json::Value;
use tests::{build, run};

/// What the launches do. (`freed`: one is `cudaFreeAsync`, which counts as a write.)
const PAIRS: [&str; 11] =
    ["output", "ordered", "halves", "columns", "loops", "clipped", "added", "constant", "global", "freed", "replaced"];

#[test]
fn tiles_of_two_streams_race_where_they_overlap() {
    judge("ptx", &["-arch=compute_90a", "-code=compute_90a"], &PAIRS, 90);
}

/// How the bytes of a map have to be read is known of one generation of devices. Elsewhere maps are
/// known by the calls that make them; `patched` is one that no call makes.
#[test]
fn maps_of_any_device_are_known_by_their_calls() {
    let code = ["-arch=compute_90", "-code=compute_90"];
    judge("calls", &code, &PAIRS, 100);
    for (arch, kinds_only) in [(90, 0), (100, 1)] {
        for (variant, racy) in [("racy", true), ("mended", false)] {
            let Some(report) = report("patched", &code, arch, ("patched", variant, "--sim-predict"), racy) else {
                return;
            };
            assert_eq!(report["coverage"]["launches"]["kinds_only"], kinds_only, "{arch} {variant}");
            let confidence = if arch == 90 { "certain" } else { "likely" };
            assert!(!racy || report["findings"][0]["confidence"] == confidence, "{arch}: {report}");
        }
    }
}

/// Of maps that kernels make, only where their tensors begin is known.
#[test]
fn maps_that_kernels_make_have_the_tensors_that_are_put_in() {
    for (form, code) in [("ptx", &["-arch=compute_90a", "-code=compute_90a"][..]), ("both", &["-arch=sm_90a"][..])] {
        for pair in ["made", "made_table"] {
            for how in ["--sim-predict", "--sim"] {
                for (variant, racy) in [("racy", true), ("mended", false)] {
                    let Some(report) = report(form, code, 90, (pair, variant, how), racy) else { return };
                    let case = format!("{form}: {pair} {variant} {how}");
                    if how == "--sim-predict" {
                        assert_eq!(report["coverage"]["launches"]["kinds_only"], 1, "{case}");
                    }
                    let finding = &report["findings"][0];
                    assert!(!racy || finding["access"]["encoded"] == serde_json::json!([]), "{case}: {finding}");
                    // What is measured of the PTX that runs is no proof for machine code beside it.
                    let confidence = if (form, how) == ("ptx", "--sim") { "certain" } else { "likely" };
                    let wanted = ("write-after-write".into(), confidence.into());
                    assert!(
                        !racy || (&finding["hazard"], &finding["confidence"]) == (&wanted.0, &wanted.1),
                        "{case}: {finding}"
                    );
                }
            }
        }
    }
}

/// Columns of images are any bytes of their tensor.
#[test]
fn images_of_two_streams_race_in_one_tensor() {
    let code = ["-arch=compute_90", "-code=compute_90"];
    for arch in [90, 100] {
        for (variant, racy) in [("racy", true), ("mended", false)] {
            let Some(report) = report("images", &code, arch, ("images", variant, "--sim-predict"), racy) else {
                return;
            };
            assert_eq!(report["coverage"]["launches"]["kinds_only"], 0, "{arch} {variant}");
            assert!(!racy || report["findings"][0]["confidence"] == "likely", "{arch}: {report}");
        }
    }
}

/// `streamsan dump` shows what a call made.
#[test]
fn the_trace_has_the_maps() {
    let Some(program) = build::cuda_program_if_possible("sim/tiles.cu", "shared", &["-arch=compute_90"]) else {
        return;
    };
    let trace = build::scratch("tiles-trace").join("t.trace");
    let mut record = run::streamsan(["record", "--sim", "-o"]);
    record.arg(&trace).arg("--").arg(&program).args(["replaced", "racy"]).env("STREAMSAN_SIM", "arch=90");
    assert_eq!(run::end(record.env_remove("LD_LIBRARY_PATH")).code(), Some(0));
    let dumped = run::end(run::streamsan(["dump"]).arg(&trace));
    let maps: Vec<&str> = dumped.out.lines().filter(|line| line.contains(" TensorMap {")).collect();
    // Two maps of one tensor are one. The third one gets its address: nothing new either.
    assert_eq!(maps.len(), 2, "{}", dumped.out);
    assert!(maps[0].contains("sizes: [256, 128]") && maps[0].contains("extent: [32, 16]"), "{}", maps[0]);
}

/// The simulated GPU runs the PTX, and the machine code is analysed, which has the parameters
/// elsewhere: a map has a larger alignment than the place where they begin.
#[test]
fn tiles_of_machine_code_are_those_of_its_ptx() {
    judge("both", &["-arch=sm_90a"], &PAIRS, 90);
}

/// The report of one run, which ends as it should; `None`: there is no compiler.
fn report(form: &str, code: &[&str], arch: u32, (pair, variant, how): (&str, &str, &str), racy: bool) -> Option<Value> {
    let program = build::cuda_program_if_possible("sim/tiles.cu", "shared", code)?;
    let case = format!("{form}: {pair} {variant} {how}");
    let json = build::scratch(&format!("tiles-{form}-{arch}-{pair}-{variant}-{}", &how[2..])).join("report.json");
    let mut command = run::streamsan(["run", "--sim", how, "--json"]);
    let command = command.arg(&json).arg("--").arg(&program).args([pair, variant]);
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("arch={arch}")));
    assert_eq!(ended.code(), Some(if racy { 66 } else { 0 }), "{case}: {}", ended.err);
    let text = std::fs::read_to_string(&json).expect("written");
    Some(serde_json::from_str(&text).expect("valid JSON"))
}

fn judge(form: &str, code: &[&str], pairs: &[&str], arch: u32) {
    for pair in pairs {
        for how in ["--sim-predict", "--sim"] {
            for (variant, racy) in [("racy", true), ("mended", false)] {
                let case = format!("{form}: {pair} {variant} {how}");
                let Some(report) = report(form, code, arch, (pair, variant, how), racy) else { return };
                let launches = &report["coverage"]["launches"];
                assert_eq!(launches["kinds_only"].as_u64(), Some(0), "{case}: {launches}");
                if racy {
                    let finding = &report["findings"][0];
                    assert_eq!(
                        (&finding["hazard"], &finding["confidence"]),
                        (&"write-after-write".into(), &"certain".into()),
                        "{case}"
                    );
                    // Each kernel's side names the call that made its map.
                    let kernels = ["access", "previous"].map(|side| &finding[side]);
                    for side in kernels.into_iter().filter(|side| side["operation"] == "kernel") {
                        let places: Vec<&str> =
                            side["encoded"].as_array().into_iter().flatten().flat_map(Value::as_str).collect();
                        assert!(!places.is_empty(), "{case}: {side}");
                        assert!(places.iter().all(|place| place.contains("tiles.cu:")), "{case}: {places:?}");
                    }
                }
            }
        }
    }
}
