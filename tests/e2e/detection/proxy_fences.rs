//! Hints about bulk stores without a fence between the proxies, from machine code for 9.0 alone: no
//! kernel is looked into while it runs. `pipelines.cu`, racy and mended.

use serde_json::Value;
use tests::{build, run};

const SOURCE: &str = "sim/pipelines.cu";

/// The texts of the hints of a run.
fn hints(option: &str, form: &str) -> Option<Vec<String>> {
    let options = ["-w", "-lineinfo", "-arch=sm_90"];
    let program = build::cuda_program_if_possible(SOURCE, "static", &options)?;
    let json = build::scratch(&format!("proxy-fences-{form}{option}")).join("report.json");
    let mut command = run::streamsan(["run", "--sim", option, "--json"]);
    command.arg(&json).arg("--").arg(&program).arg(form);
    command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", "arch=90:code=sass");
    let ended = run::end(&mut command);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("a report")).expect("JSON");
    let all = report["hints"].as_array().expect("a list").iter();
    let ours = all.filter(|hint| hint["kind"] == "copy-without-proxy-fence");
    Some(ours.map(|hint| hint["text"].as_str().expect("text").to_owned()).collect())
}

#[test]
fn a_bulk_store_without_a_fence_is_a_hint_with_both_lines() {
    let source = std::fs::read_to_string(build::programs().join(SOURCE)).expect("the source");
    let line = |marker: &str| 1 + source.lines().position(|line| line.ends_with(marker)).expect("its line");
    let lines = [line("// epilogue: one"), line("// epilogue: other")];
    for option in ["--hints", "--pedantic"] {
        let Some(found) = hints(option, "racy") else { return };
        let [text] = &found[..] else { panic!("{option}: {found:#?}") };
        // The operation is in a function that was inlined.
        let store = format!("shared memory at pipelines.cu:{} and", lines[0]);
        let copy = format!("(called at pipelines.cu:{}),", lines[1]);
        assert!(text.contains("epilogue<") && text.contains(&store) && text.contains(&copy), "{lines:?}: {text}");
    }
}

#[test]
fn without_an_option_there_is_none_and_with_the_fence_neither() {
    for (option, form) in [("--no-hints", "racy"), ("--hints", "mended"), ("--pedantic", "mended")] {
        let Some(found) = hints(option, form) else { return };
        assert!(found.is_empty(), "{option} {form}: {found:#?}");
    }
}
