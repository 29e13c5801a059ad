//! What a lock, a flag for another kernel or a flag for the host excuses rests on the fences that a
//! launch executes, wherever its code has a choice: measured launches tell.

use serde_json::Value;
use tests::{build, run};

fn judge(part: &str, code: &str, options: &[&str], cases: usize) {
    let program = build::cuda_program_if_possible("sim/fences.cu", "static", &["-w"]);
    let Some(program) = program else { return };
    let name = format!("fences-{part}-{code}{}", options.concat());
    let json = build::scratch(&name).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--pedantic"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(&program).arg(part);
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("code={code}")));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let mut wrong = Vec::new();
    let lines: Vec<&str> = ended.out.lines().filter(|line| *line != "done").collect();
    for line in &lines {
        let mut words = line.splitn(3, ' ');
        let size: u64 = words.next().and_then(|size| size.parse().ok()).expect("a size");
        let excuse = words.next().expect("an excuse");
        let data = |f: &&Value| f["allocation"]["size"] == size;
        let found: Vec<_> = findings.iter().filter(data).map(|f| (&f["confidence"], &f["weakness"])).collect();
        let is_right = match excuse {
            "race" => found.iter().any(|f| f.0 == "certain"),
            excuse => !found.is_empty() && found.iter().all(|f| *f == (&"possible".into(), &excuse.into())),
        };
        if !is_right {
            wrong.push(format!("{line}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    assert_eq!(lines.len(), cases, "{}{}", ended.out, ended.err);
}

#[test]
fn kernels_are_judged_by_their_fences_in_ptx() {
    judge("kernels", "ptx", &[], 63);
}

#[test]
fn kernels_are_judged_by_their_fences_in_machine_code() {
    judge("kernels", "sass", &[], 63);
    judge("kernels", "sass", &["--exact"], 63);
}

#[test]
fn the_host_is_told_by_fences_of_its_scope() {
    judge("host", "ptx", &["--host-accesses"], 30);
    judge("host", "sass", &["--host-accesses"], 30);
}
