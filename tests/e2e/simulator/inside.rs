//! Races inside kernels (`--inside`): each kind with its mended twin, in PTX and in machine code,
//! and kernels that must stay silent; the lines, threads, memory and advice of findings; what
//! decides on findings; traces; and what is refused.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tests::{build, run};

const SOURCE: &str = "sim/inside.cu";

fn compiled() -> Option<PathBuf> {
    build::cuda_program_if_possible(SOURCE, "static", &["-w", "-lineinfo"])
}

/// The line whose comment says that it is this side of a kernel's race; from 1.
fn line(kernel: &str, side: &str) -> u64 {
    let source = std::fs::read_to_string(build::programs().join(SOURCE)).expect("the source");
    let is_it = |line: &str| {
        let note = line.split_once(&format!("// {kernel}: ")).map_or("", |(_, note)| note);
        note.split(' ').any(|word| word == side)
    };
    source.lines().position(is_it).unwrap_or_else(|| panic!("no {side} line of {kernel}")) as u64 + 1
}

/// A kernel, the grade of its racy form, the kind of its memory (a word of the allocation, or
/// `shared`), and a word of what would order it.
struct Case(&'static str, &'static str, &'static str, &'static str);

/// Of `copied` only the reading side has a line of the program: the copy is a header's.
const CASES: [Case; 14] = [
    Case("exchange", "certain", "shared", "__syncthreads();"),
    Case("dynamic", "certain", "shared", "__syncthreads();"),
    Case("lanes", "certain", "shared", "__syncwarp();"),
    Case("blocks", "certain", "device memory", "__threadfence();"),
    Case("scope", "certain", "device memory", "not ..._block"),
    Case("last_block", "certain", "device memory", "__threadfence();"),
    Case("named", "certain", "shared", "__syncthreads();"),
    Case("counter", "certain", "variable total", "atomicAdd"),
    Case("bins", "certain", "shared", "atomicAdd"),
    Case("loop", "certain", "shared", "__syncthreads();"),
    Case("copied", "certain", "shared", "__pipeline_wait_prior"),
    Case("flag", "certain", "device memory", "__threadfence();"),
    Case("helper", "certain", "shared", "__syncthreads();"),
    Case("whole", "certain", "device memory", "this_grid().sync()"),
];

/// A command that runs the program as this code.
fn command(name: &str, program: &PathBuf, code: &str, options: &[&str], words: &[&str]) -> (Command, PathBuf) {
    let json = build::scratch(&format!("inside-{name}-{code}")).join("report.json");
    let mut command = run::streamsan(["run", "--sim"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(program).args(words);
    command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("code={code}"));
    (command, json)
}

fn report(json: &PathBuf) -> Value {
    let text = std::fs::read_to_string(json).unwrap_or_else(|e| panic!("{}: {e}", json.display()));
    serde_json::from_str(&text).expect("JSON")
}

fn findings(report: &Value) -> &[Value] {
    report["findings"].as_array().expect("findings")
}

/// The lines of a side, outwards.
fn lines(side: &Value) -> Vec<u64> {
    side["stack"].as_array().expect("a stack").iter().filter_map(|frame| frame["line"].as_u64()).collect()
}

fn races_are_found(code: &str) {
    let Some(program) = compiled() else { return };
    let (mut streamsan, json) = command("racy", &program, code, &["--inside"], &["racy"]);
    let ended = run::end(&mut streamsan);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let report = report(&json);
    let mut wrong = Vec::new();
    for Case(name, grade, memory, advice) in CASES {
        // In machine code, lanes of one warp are not judged.
        if code == "sass" && name == "lanes" {
            continue;
        }
        let (one, other) = (if name == "copied" { 0 } else { line(name, "one") }, line(name, "other"));
        let is_it = |f: &&Value| {
            let [access, previous] = ["access", "previous"].map(|side| lines(&f[side]));
            let both = |a: &[u64], b: &[u64]| (one == 0 || a.contains(&one)) && b.contains(&other);
            both(&access, &previous) || both(&previous, &access)
        };
        let found: Vec<&Value> = findings(&report).iter().filter(is_it).collect();
        let [f] = found[..] else {
            wrong.push(format!("{name}: {} findings with lines {one} and {other}", found.len()));
            continue;
        };
        let inside = &f["in_kernel"];
        let of = match (&inside["shared"], &inside["variable"]) {
            (Value::Null, Value::Null) => f["allocation"]["kind"].clone(),
            (Value::Null, variable) => format!("variable {}", variable["name"].as_str().unwrap_or_default()).into(),
            _ => Value::from("shared"),
        };
        let lines = f["synchronisation"]["cuda"].as_array().expect("lines");
        let advised = lines.iter().any(|line| line.as_str().is_some_and(|line| line.contains(advice)));
        let kernel = f["access"]["kernel"].as_str().unwrap_or_default();
        let launched = f["access"]["launched"].as_array().expect("a stack");
        let main = launched.iter().any(|frame| frame["function"] == "main");
        let [one, other] = ["access", "previous"].map(|side| &inside[side]);
        let right = (&f["kind"], &inside["grade"], &of)
            == (&"race-inside-kernel".into(), &grade.into(), &memory.into())
            && advised
            && kernel.contains(name)
            && (one["block"] != other["block"] || one["thread"] != other["thread"] || name == "copied")
            && (one["asynchronous"] == true || other["asynchronous"] == true) == (name == "copied")
            && f["established"] == "exact"
            && inside["code"] == if code == "ptx" { "PTX" } else { "machine code" }
            && main;
        if !right {
            wrong.push(format!("{name}: {f:#}"));
        }
    }
    let known = |f: &&Value| CASES.iter().all(|case| !f["access"]["kernel"].to_string().contains(case.0));
    wrong.extend(findings(&report).iter().filter(known).map(|f| format!("one more: {f:#}")));
    assert!(wrong.is_empty(), "{} wrong:\n{}\n{}", wrong.len(), wrong.join("\n"), ended.err);
    assert!(ended.err.contains("14 launches checked inside"), "{}", ended.err);
}

#[test]
fn races_are_found_in_ptx() {
    races_are_found("ptx");
}

#[test]
fn races_are_found_in_machine_code() {
    races_are_found("sass");
}

fn nothing_is_found(code: &str) {
    let Some(program) = compiled() else { return };
    for (form, least) in [("mended", 14), ("silent", 21)] {
        let (mut streamsan, json) =
            command(form, &program, code, &["--inside", "--pedantic", "--fail-on=likely"], &[form]);
        let ended = run::end(&mut streamsan);
        assert_eq!(ended.code(), Some(0), "{form}: {}", ended.err);
        let report = report(&json);
        assert!(report["coverage"]["inside"]["launches"].as_u64() >= Some(least), "{form}: {}", ended.err);
        // A plain read that a compare-and-swap checks is graded, not hidden.
        let possible: Vec<&Value> = findings(&report).iter().collect();
        let of = |f: &&Value| f["access"]["kernel"].as_str().is_some_and(|kernel| kernel.contains("maxima"));
        assert!(possible.iter().all(of), "{form}: nothing possible either: {possible:#?}");
    }
}

#[test]
fn twins_and_others_are_silent_in_ptx() {
    nothing_is_found("ptx");
}

#[test]
fn twins_and_others_are_silent_in_machine_code() {
    nothing_is_found("sass");
}

#[test]
fn the_report_names_threads_memory_lines_and_order() {
    let Some(program) = compiled() else { return };
    let (mut streamsan, _) = command("text", &program, "ptx", &["--inside"], &["racy", "exchange", "helper"]);
    let ended = run::end(&mut streamsan);
    let (one, other) = (line("exchange", "one"), line("exchange", "other"));
    for said in [
        "DATA RACE INSIDE A KERNEL: read-after-write (certain)".to_owned(),
        "Two threads of one block of kernel exchange<false>(int*, int*) race for a byte of shared array tile"
            .to_owned(),
        "The kernel ran as PTX on the simulated GPU.".to_owned(),
        "Previous access: thread (".to_owned(),
        format!("inside.cu:{one}\n          tile[T] = d[G]; // exchange: one"),
        format!("inside.cu:{other}\n          d[G] = tile[N - 1 - T]; // exchange: other"),
        "1024 bytes from byte 0 on of the block's shared memory".to_owned(),
        "Launch: kernel void exchange<false>(int*, int*), grid (2,1,1), block (64,1,1)".to_owned(),
        format!("__syncthreads();  // between inside.cu:{one} and inside.cu:{other}, by all threads of the block"),
        "[inlined]".to_owned(),
        "2 launches checked inside".to_owned(),
    ] {
        assert!(ended.err.contains(&said), "{said}\n{}", ended.err);
    }
}

#[test]
fn kernels_are_chosen_by_name() {
    let Some(program) = compiled() else { return };
    for (pattern, launches, code) in [("exchange,lo*op", 1, 66), ("*counter*", 1, 66), ("nothing", 0, 0)] {
        let inside = format!("--inside={pattern}");
        let (mut streamsan, json) =
            command("chosen", &program, "ptx", &[&inside], &["racy", "exchange", "counter", "flag"]);
        let ended = run::end(&mut streamsan);
        assert_eq!(ended.code(), Some(code), "{pattern}: {}", ended.err);
        let coverage = &report(&json)["coverage"];
        assert_eq!(coverage["inside"]["launches"], launches, "{pattern}: {}", ended.err);
        let unmet: Vec<&str> =
            coverage["names_unmet"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        // As for `--exact`, a pattern with a star is one of the whole name.
        let wanted = match pattern {
            "*counter*" => vec![],
            "nothing" => vec!["--inside=nothing: the program launched no kernel of such a name"],
            _ => vec!["--inside=lo*op: the program launched no kernel of such a name"],
        };
        assert_eq!(unmet, wanted, "{pattern}");
        assert!(unmet.iter().all(|line| ended.err.contains(line)), "{pattern}: {}", ended.err);
    }
}

/// Which release a block meets hangs on the turns of blocks, which a seed changes.
#[test]
fn seeds_find_what_another_order_of_turns_shows() {
    let flags = ["-w", "-lineinfo"];
    let Some(program) = build::cuda_program_if_possible("sim/inside_turns.cu", "static", &flags) else { return };
    for code in ["ptx", "sass"] {
        let end = |form: &str, seed: Option<u32>| {
            let seed = seed.map(|seed| format!("--sim-seed={seed}"));
            let options: Vec<&str> = ["--inside"].into_iter().chain(seed.as_deref()).collect();
            let (mut streamsan, json) = command("turns", &program, code, &options, &[form]);
            let ended = run::end(&mut streamsan);
            (ended.code(), findings(&report(&json)).len(), ended.out)
        };
        // In turn, each block has ended before the next one begins.
        assert_eq!(end("racy", None), (Some(0), 0, "28\n".into()), "{code}");
        let found = (1..=6).filter(|&seed| end("racy", Some(seed)).0 == Some(66)).count();
        assert!(found >= 3, "{code}: {found} of 6 seeds");
        for seed in 1..=6 {
            assert_eq!(end("mended", Some(seed)), (Some(0), 0, "28\n".into()), "{code}, seed {seed}");
        }
    }
}

#[test]
fn suppressions_and_baselines_hold_inside_kernels() {
    let Some(program) = compiled() else { return };
    let folder = build::scratch("inside-gate");
    let [suppressions, baseline] = ["suppressions", "baseline.json"].map(|name| folder.join(name));
    let words = ["racy", "exchange"];
    std::fs::write(&suppressions, "kernel:exchange\n").expect("a file");
    let option = format!("--suppressions={}", suppressions.display());
    let (mut streamsan, _) = command("suppressed", &program, "ptx", &["--inside", &option], &words);
    let ended = run::end(&mut streamsan);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.err.contains("1 suppressed"), "{}", ended.err);
    let option = format!("--write-baseline={}", baseline.display());
    let (mut streamsan, _) = command("written", &program, "ptx", &["--inside", &option], &words);
    assert_eq!(run::end(&mut streamsan).code(), Some(66));
    let option = format!("--baseline={}", baseline.display());
    let (mut streamsan, _) = command("known", &program, "ptx", &["--inside", &option], &words);
    let ended = run::end(&mut streamsan);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.err.contains("1 known"), "{}", ended.err);
}

#[test]
fn every_format_has_the_finding() {
    let Some(program) = compiled() else { return };
    let folder = build::scratch("inside-formats");
    let files = ["sarif", "html", "junit", "code-quality", "markdown"];
    let options: Vec<String> = files.iter().map(|name| format!("--{name}={}", folder.join(name).display())).collect();
    let options: Vec<&str> = ["--inside"].into_iter().chain(options.iter().map(String::as_str)).collect();
    let (mut streamsan, _) = command("formats", &program, "ptx", &options, &["racy", "exchange"]);
    assert_eq!(run::end(&mut streamsan).code(), Some(66));
    for name in files {
        let text = std::fs::read_to_string(folder.join(name)).expect("written");
        assert!(text.contains("race-inside-kernel"), "{name}: {text}");
    }
    let sarif: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("sarif")).expect("read")).expect("JSON");
    let run_of = &sarif["runs"][0];
    let result = &run_of["results"][0];
    let rule = &run_of["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().expect("a rule") as usize];
    assert_eq!((&rule["id"], &result["ruleId"]), (&"race-inside-kernel".into(), &"race-inside-kernel".into()));
    let at = &result["locations"][0]["physicalLocation"]["region"]["startLine"];
    assert_eq!(*at, line("exchange", "other"));
    for format in ["short", "github", "csan"] {
        let option = format!("--format={format}");
        let (mut streamsan, _) = command("format", &program, "ptx", &["--inside", &option], &["racy", "exchange"]);
        let ended = run::end(&mut streamsan);
        assert_eq!(ended.code(), Some(66), "{format}: {}", ended.err);
        assert!(ended.err.contains("inside.cu"), "{format}: {}", ended.err);
    }
}

#[test]
fn a_recorded_run_has_the_same_findings() {
    let Some(program) = compiled() else { return };
    let folder = build::scratch("inside-recorded");
    let (trace, json) = (folder.join("trace"), folder.join("report.json"));
    let mut record = run::streamsan(["record", "--sim", "--inside", "-o"]);
    record.arg(&trace).arg("--").arg(&program).args(["racy", "exchange", "counter"]).env_remove("LD_LIBRARY_PATH");
    let ended = run::end(&mut record);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let ended = run::end(run::streamsan(["check", "--json"]).arg(&json).arg(&trace));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let recorded = report(&json);
    let (mut streamsan, live) = command("live", &program, "auto", &["--inside"], &["racy", "exchange", "counter"]);
    run::end(&mut streamsan);
    let fingerprints = |report: &Value| -> Vec<String> {
        let mut all: Vec<String> = findings(report).iter().map(|f| f["fingerprint"].to_string()).collect();
        all.sort();
        all
    };
    assert_eq!(fingerprints(&recorded), fingerprints(&report(&live)));
    assert!(findings(&recorded).iter().all(|f| f["kind"] == "race-inside-kernel"));
}

#[test]
fn a_kernel_that_fails_is_not_checked_to_its_end() {
    let Some(program) = compiled() else { return };
    let (mut streamsan, _) = command("broken", &program, "ptx", &["--inside"], &["broken"]);
    let ended = run::end(&mut streamsan);
    assert_eq!(ended.code(), Some(70), "{}", ended.err);
    let said = "ERROR: not checked: the inside of kernel broken(int*, int*) behind the fault that ended it";
    assert!(ended.err.contains(said), "{}", ended.err);
}

#[test]
fn without_the_simulated_gpu_it_is_refused() {
    for words in [&["run", "--inside", "--", "true"][..], &["record", "--inside", "-o", "x", "--", "true"]] {
        let ended = run::end(&mut run::streamsan(words));
        assert_eq!(ended.code(), Some(2), "{}", ended.err);
        assert_eq!(ended.ours(), ["streamsan: --inside needs the simulated GPU: add --sim"], "{}", ended.err);
    }
    let ended = run::end(&mut run::streamsan(["run", "--sim", "--inside=a:b", "--", "true"]));
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
}

#[test]
fn without_the_option_nothing_is_looked_for() {
    let Some(program) = compiled() else { return };
    let (mut streamsan, json) = command("off", &program, "ptx", &[], &["racy"]);
    let ended = run::end(&mut streamsan);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert_eq!(report(&json)["coverage"]["inside"]["launches"], 0);
    assert!(!ended.err.contains("inside"), "{}", ended.err);
}
