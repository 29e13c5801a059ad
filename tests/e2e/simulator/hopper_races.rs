//! Races of what compute capability 9.0a adds, as PTX, with `--inside`: reductions by direction,
//! operation and end; tensor maps, registers of products, blocks of clusters, and the protocol of
//! barrier objects. Each has a mended twin, which is silent and right.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tests::{build, run};

const REDUCTIONS: &str = "sim/reductions.cu";
const RACES: &str = "sim/hopper_races.cu";
const PRODUCTS: &str = "sim/group_products.cu";

/// A kernel of [`RACES`], the grade, and a word of what would order it.
const CASES: [(&str, &str, &str); 20] = [
    ("map_released", "certain", "fence_proxy_tensormap_generic"),
    ("map_acquired", "certain", "fence_proxy_tensormap_generic"),
    ("map_replaced", "certain", "fence_proxy_tensormap_generic"),
    ("map_reused", "certain", "mbarrier_try_wait_parity"),
    ("image_column", "certain", "mbarrier_try_wait_parity"),
    ("sums_unfenced", "likely", "wgmma.fence"),
    ("sums_early", "likely", "wgmma.wait_group"),
    ("factor_overwritten", "likely", "wgmma.wait_group"),
    ("second_group", "certain", "wait_group"),
    ("sparse_factor", "certain", "wait_group"),
    ("left", "certain", "this_cluster().sync()"),
    ("init_unmet", "certain", "this_cluster().sync()"),
    ("narrow_wait", "likely", "acquire.cluster"),
    ("relaxed_meeting", "certain", "this_cluster().sync()"),
    ("relaxed_arrival", "certain", "__syncthreads();"),
    ("relaxed_wait", "certain", "__syncthreads();"),
    ("few_arrivals", "certain", "__syncthreads();"),
    ("few_bytes", "certain", "mbarrier_try_wait_parity"),
    ("wrong_parity", "certain", "mbarrier_try_wait_parity"),
    ("made_again", "certain", "mbarrier_try_wait_parity"),
];

fn compiled(source: &str) -> Option<PathBuf> {
    let options = ["-w", "-lineinfo", "-arch=compute_90a", "-code=compute_90a"];
    build::cuda_program_if_possible(source, "static", &options)
}

fn marked(source: &str, name: &str, side: &str) -> Option<u64> {
    let text = std::fs::read_to_string(build::programs().join(source)).expect("the source");
    let marker = format!("// {name}: {side}");
    Some(text.lines().position(|line| line.ends_with(&marker))? as u64 + 1)
}

fn line(source: &str, name: &str, side: &str) -> u64 {
    marked(source, name, side).unwrap_or_else(|| panic!("no {name}: {side}"))
}

fn command(program: &Path, options: &[&str], words: &[&str]) -> (Command, PathBuf) {
    let name = program.file_name().expect("a name").to_string_lossy().into_owned();
    let json = build::scratch(&format!("{name}-{}-{}", words.join("-"), options.join(""))).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--inside"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(program).args(words);
    command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", "code=ptx");
    (command, json)
}

fn findings(json: &Path) -> Vec<Value> {
    let report: Value = serde_json::from_str(&std::fs::read_to_string(json).expect("a report")).expect("JSON");
    report["findings"].as_array().expect("findings").clone()
}

fn has_line(finding: &Value, side: &str, line: u64) -> bool {
    finding[side]["stack"].as_array().expect("a stack").iter().any(|frame| frame["line"].as_u64() == Some(line))
}

fn is_between(finding: &Value, one: u64, other: u64) -> bool {
    let is = |access, previous| has_line(finding, "access", access) && has_line(finding, "previous", previous);
    is(one, other) || is(other, one)
}

#[test]
fn each_form_of_a_reduction_is_found_and_its_twin_is_silent_and_right() {
    let Some(program) = compiled(REDUCTIONS) else { return };
    let (mut streamsan, json) = command(&program, &[], &["racy"]);
    let ended = run::end(&mut streamsan);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    // Ten operations, each on a line of its own. The target is read unawaited by the same lines
    // where nothing is awaited and where only the reads are; and in both blocks of the cluster.
    let at = |name, side| line(REDUCTIONS, name, side);
    let want = [
        (at("target", "one"), at("target", "other"), 2),
        (at("target", "one"), at("source", "other"), 1),
        (at("zeroed", "one"), at("target", "one"), 1),
        (at("across", "one"), at("across", "other"), 2),
    ];
    let found = findings(&json);
    for (one, other, launches) in want {
        let of: Vec<&Value> = found.iter().filter(|finding| is_between(finding, one, other)).collect();
        assert_eq!(of.len(), 10, "{one} {other}: {}", ended.err);
        for finding in of {
            assert_eq!(finding["in_kernel"]["grade"], "certain", "{finding:#}");
            assert_eq!(finding["in_kernel"]["launches"].as_u64(), Some(launches), "{finding:#}");
        }
    }
    assert_eq!(found.len(), 40, "{}", ended.err);
    for options in [&[][..], &["--sim-schedule=late-first"], &["--sim-seed=1"]] {
        let options = [options, &["--pedantic"]].concat();
        let (mut streamsan, _) = command(&program, &options, &["mended"]);
        let ended = run::end(&mut streamsan);
        assert_eq!((ended.code(), &*ended.out), (Some(0), "60 forms, 60 right\n"), "{options:?}: {}", ended.err);
        assert!(ended.err.contains("60 launches checked inside"), "{}", ended.err);
    }
}

#[test]
fn each_kind_is_found_with_its_lines_and_its_twin_is_silent() {
    let Some(program) = compiled(RACES) else { return };
    let (mut streamsan, json) = command(&program, &[], &["racy"]);
    let ended = run::end(&mut streamsan);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let found = findings(&json);
    let mut wrong = Vec::new();
    for (name, grade, advice) in CASES {
        let one = line(RACES, name, "one");
        // Both may be in one statement.
        let other = marked(RACES, name, "other").unwrap_or(one);
        let of: Vec<&Value> = found.iter().filter(|finding| is_between(finding, one, other)).collect();
        let [f] = of[..] else {
            wrong.push(format!("{name}: {} findings with lines {one} and {other}", of.len()));
            continue;
        };
        let advised = f["synchronisation"]["cuda"].to_string().contains(advice);
        if f["in_kernel"]["grade"] != grade || !advised {
            wrong.push(format!("{name}: {f:#}"));
        }
    }
    if found.len() != CASES.len() {
        wrong.push(format!("{} findings", found.len()));
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}\n{}", wrong.len(), wrong.join("\n"), ended.err);
    let mut sums: Option<String> = None;
    for options in [&[][..], &["--sim-schedule=late-first"], &["--sim-seed=2"]] {
        let options = [options, &["--pedantic"]].concat();
        let (mut streamsan, _) = command(&program, &options, &["mended"]);
        let ended = run::end(&mut streamsan);
        assert_eq!(ended.code(), Some(0), "{options:?}: {}{}", ended.out, ended.err);
        assert!(ended.err.contains("20 launches checked inside"), "{}", ended.err);
        assert_eq!(*sums.get_or_insert_with(|| ended.out.clone()), ended.out, "{options:?}");
    }
}

#[test]
fn the_text_names_registers_and_the_end_of_a_block() {
    let Some(program) = compiled(RACES) else { return };
    let (mut streamsan, _) = command(&program, &[], &["racy", "sums_early", "left"]);
    let err = run::end(&mut streamsan).err;
    for said in [
        "reads a register of a product",
        "Memory: registers of a product of a warp group (wgmma)",
        "ends, and byte ",
        "A block of a cluster may end while another one accesses its shared memory",
    ] {
        assert!(err.contains(said), "no {said:?}: {err}");
    }
}

#[test]
fn counts_of_registers_that_part_a_warp_group_end_the_launch_by_name() {
    let Some(program) = compiled(RACES) else { return };
    let (mut streamsan, _) = command(&program, &[], &["racy", "counts_apart"]);
    let ended = run::end(&mut streamsan);
    assert!(ended.out.starts_with("counts_apart: cudaError"), "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("warps of one warp group ask for different counts"), "{}", ended.err);
    let (mut streamsan, _) = command(&program, &[], &["mended", "counts_apart"]);
    let ended = run::end(&mut streamsan);
    let sum: i64 = (0..128).map(|t| (t * 13 + 5) * (t + 1)).sum();
    assert_eq!((ended.code(), ended.out), (Some(0), format!("counts_apart: {sum}\n")), "{}", ended.err);
}

#[test]
fn products_of_warp_groups_have_one_verdict_as_ptx_and_as_machine_code() {
    let options = ["-w", "-lineinfo", "-arch=compute_90a", "-code=compute_90a,sm_90a"];
    let Some(program) = build::cuda_program_if_possible(PRODUCTS, "static", &options) else { return };
    let mut sums: Option<String> = None;
    for code in ["ptx", "sass"] {
        // Each hands a stage of a ring back whose product is under way, or is another warp group's.
        for name in ["ring_2", "ring_3"] {
            let (mut streamsan, json) = command(&program, &[], &[name, code]);
            streamsan.env("STREAMSAN_SIM", format!("arch=90:code={code}"));
            let ended = run::end(&mut streamsan);
            assert_eq!(ended.code(), Some(66), "{code} {name}: {}", ended.err);
            let found = findings(&json);
            assert!(found.iter().all(|f| f["in_kernel"]["grade"] == "certain"), "{code} {name}: {}", ended.err);
        }
        for schedule in [&[][..], &["--sim-schedule=late-first"], &["--sim-seed=2"]] {
            let (mut streamsan, _) = command(&program, &[schedule, &["--pedantic"]].concat(), &[]);
            streamsan.env("STREAMSAN_SIM", format!("arch=90:code={code}"));
            let ended = run::end(&mut streamsan);
            assert_eq!(ended.code(), Some(0), "{code} {schedule:?}: {}{}", ended.out, ended.err);
            assert!(ended.err.contains("14 launches checked inside"), "{}", ended.err);
            assert_eq!(*sums.get_or_insert_with(|| ended.out.clone()), ended.out, "{code} {schedule:?}");
        }
    }
}
