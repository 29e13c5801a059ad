//! Hints about flags that kernels poll in memory which other processes may open: `flag_polls.cu`.

use serde_json::Value;
use tests::{build, run};

/// The kinds of hints of a run, with the kernel and the text of each.
fn hints(memory: &str) -> Option<Vec<(String, String)>> {
    let program = build::cuda_program_if_possible("sim/flag_polls.cu", "static", &["-w", "-lineinfo"])?;
    let json = build::scratch("flag-polls").join(format!("{memory}.json"));
    let mut command = run::streamsan(["run", "--sim", "--hints", "--json"]);
    command.arg(&json).arg("--").arg(&program).arg(memory).env_remove("LD_LIBRARY_PATH");
    let ended = run::end(&mut command);
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
    let text = std::fs::read_to_string(&json).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let text = |hint: &Value, field: &str| hint[field].as_str().expect("text").to_owned();
    let all = report["hints"].as_array().expect("a list").iter().map(|hint| (text(hint, "kind"), text(hint, "text")));
    Some(all.filter(|(kind, _)| kind.starts_with("flag-")).collect())
}

#[test]
fn a_flag_of_another_process_that_is_polled_too_weakly_is_a_hint_with_its_line() {
    let Some(found) = hints("exported") else { return };
    let kinds: Vec<&str> = found.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["flag-without-acquire", "flag-scope"], "{found:#?}");
    let source = std::fs::read_to_string(build::programs().join("sim/flag_polls.cu")).expect("the source");
    for ((_, text), (kernel, mark)) in
        found.iter().zip([("relaxed(", "// the flag"), ("narrow(", "// the narrow flag")])
    {
        let line = 1 + source.lines().position(|line| line.ends_with(mark)).expect("its line");
        assert!(text.contains(kernel) && text.contains(&format!("flag_polls.cu:{line} ")), "{text}");
    }
}

#[test]
fn a_flag_of_the_process_itself_is_none() {
    let Some(found) = hints("private") else { return };
    assert!(found.is_empty(), "{found:#?}");
}
