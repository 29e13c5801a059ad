//! How near a run was to the program on a device, in each format for machines: the code that was
//! read and that ran, the stand-ins for libraries, what was refused.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tests::{build, product, run};

use super::libraries::built;

/// The line, and all of it from the JSON; each other format must have the same line.
fn told(name: &str, program: &Path, words: &[&str], simulator: &str) -> (String, Value) {
    let folder = build::scratch(&format!("fidelity-{name}"));
    let path = |file: &str| folder.join(file);
    let mut command = run::streamsan(["run", "--sim"]);
    for (option, file) in [
        ("--json", "r.json"),
        ("--sarif", "r.sarif"),
        ("--junit", "r.xml"),
        ("--markdown", "r.md"),
        ("--html", "r.html"),
    ] {
        command.arg(option).arg(path(file));
    }
    command.arg("--").arg(program).args(words).env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", simulator);
    let ended = run::end(&mut command);
    let text = |file: &str| fs::read_to_string(path(file)).unwrap_or_else(|e| panic!("{file}: {e}\n{}", ended.err));
    let json: Value = serde_json::from_str(&text("r.json")).expect("JSON");
    let fidelity = json["coverage"]["fidelity"].clone();
    let line = fidelity["line"].as_str().expect("a line").to_owned();
    let sarif: Value = serde_json::from_str(&text("r.sarif")).expect("SARIF");
    assert_eq!(sarif["runs"][0]["properties"]["fidelity"], fidelity, "{name}");
    assert!(text("r.xml").contains(&format!("<property name=\"fidelity\" value=\"{line}\"/>")), "{name}: {line}");
    assert!(text("r.md").contains(&format!("\nFidelity: {line}\n")), "{name}: {line}");
    assert!(text("r.html").contains(&format!("FIDELITY: {line}\n")), "{name}: {line}");
    (line, fidelity)
}

fn cuda(source: &str) -> PathBuf {
    build::cuda_program(&product::root().join("tests").join(source), "shared", &[]).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn each_machine_format_says_what_ran_and_what_was_refused() {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let pair = cuda("corpus/cuda/stream_pair_unordered.cu");
    for (code, ran) in [("ptx", "PTX"), ("sass", "machine code")] {
        let (line, fidelity) = told(code, &pair, &[], &format!("code={code}"));
        assert_eq!(fidelity["simulated_as"], json!([ran]), "{line}");
        assert_eq!((&fidelity["refused"], &fidelity["stand_ins"]), (&json!([]), &json!({})), "{line}");
        let read = &fidelity["code"];
        assert_eq!(read["ptx"].as_u64().zip(read["machine_code"].as_u64()).map(|(p, m)| p + m), Some(2), "{line}");
        assert!(line.contains(&format!("; simulated as {ran}; stand-ins: none; refused: none; ")), "{line}");
    }
    let (line, fidelity) = told("refused", &cuda("programs/sim/refused.cu"), &["call"], "");
    let refused = fidelity["refused"][0].as_str().expect("a reason");
    assert!(refused.contains("cudaImportExternalMemory is not simulated"), "{fidelity:#}");
    assert!(line.contains("; refused: 1; "), "{line}");
    let (line, fidelity) = told("stand-ins", &built("products"), &[], "");
    let calls = fidelity["stand_ins"]["cuBLAS"].as_u64().expect("a number");
    assert!(calls > 300 && line.contains(&format!("; stand-ins: {calls} cuBLAS; refused: none; ")), "{line}");
    // What stands in for a library is no code of the program's.
    let code = &fidelity["code"];
    assert!(code["ptx"].as_u64().is_some_and(|launches| launches < calls), "{fidelity:#}");
}
