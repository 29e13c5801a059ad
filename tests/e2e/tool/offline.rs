//! Recorded runs: what is found live is found later, elsewhere, and in the traces of many processes
//! together.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tests::run::{Ended, end, streamsan};
use tests::{build, fake};

/// The racy program, compiled into a folder of its own, so that it can be taken away.
fn racy(folder: &Path, extra: &[&str]) -> PathBuf {
    let source = folder.join("racy.c");
    std::fs::copy(build::programs().join("racy.c"), &source).expect("copy");
    compiled(&source, extra)
}

/// A program on the fake driver, beside its source.
fn compiled(source: &Path, extra: &[&str]) -> PathBuf {
    let program = source.with_extension("");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-pthread", "-fno-omit-frame-pointer", "-fPIC", "-o"]).arg(&program).arg(source);
    gcc.arg("-I").arg(build::programs()).arg("-I").arg(build::programs().join("fake")).args(extra);
    gcc.arg("-L").arg(fake::folder()).args(["-lcuda", "-ldl"]);
    assert!(gcc.status().expect("gcc").success());
    program
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

fn json(file: &Path) -> Value {
    serde_json::from_str(&read(file)).expect("valid JSON")
}

/// `streamsan check WORDS`, and its report as JSON.
fn checked(folder: &Path, words: &[&str]) -> (Ended, Value) {
    let file = folder.join("checked.json");
    let ended = end(streamsan(["check", "--json"]).arg(&file).args(words));
    let report = if file.exists() { json(&file) } else { Value::Null };
    (ended, report)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

#[test]
fn live_and_recorded_analysis_say_the_same_byte_for_byte() {
    let folder = build::scratch("same");
    let program = racy(&folder, &[]);
    let (live, later, trace) = (folder.join("live.json"), folder.join("later.json"), folder.join("t"));
    for options in [
        &[][..],
        &["--pedantic", "--latent", "--hints"],
        &["--policy", "documented", "--suppressions", "supp"],
        &["--only-kernel", "x"],
    ] {
        std::fs::write(folder.join("supp"), "race:main\n").expect("write");
        let mut run = streamsan(["run", "-o"]);
        run.arg(&trace).arg("--json").arg(&live).args(options).arg("--").arg(&program).current_dir(&folder);
        let ran = end(&mut run);
        let checked = end(streamsan(["check", "--json"]).arg(&later).args(options).arg(&trace).current_dir(&folder));
        assert_eq!(ran.code(), checked.code(), "{options:?}\n{}\n{}", ran.err, checked.err);
        assert_eq!(ran.err, checked.err, "the printed reports differ");
        assert!(read(&live) == read(&later), "{options:?}: the JSON differs:\n{}\n{}", read(&live), read(&later));
        assert!(!options.is_empty() || ran.code() == Some(66), "{}", ran.err);
    }
    // Without the program and its source it still says the same.
    end(streamsan(["run", "-o"]).arg(&trace).arg("--json").arg(&live).arg("--").arg(&program).current_dir(&folder));
    std::fs::remove_file(&program).expect("remove");
    std::fs::remove_file(folder.join("racy.c")).expect("remove");
    end(streamsan(["check", "--json"]).arg(&later).arg(&trace));
    assert!(read(&live) == read(&later), "{}\n{}", read(&live), read(&later));
    assert!(read(&later).contains("cuMemsetD8Async(x, 2, 4096, b)"), "the source line came with the trace");
}

#[test]
fn filters_and_policy_are_applied_to_what_was_recorded() {
    let folder = build::scratch("reapplied");
    let program = racy(&folder, &[]);
    let trace = folder.join("t");
    let mut record = streamsan(["record", "-o"]);
    record.env("STREAMSAN_OPTIONS", "ignore-module=racy").arg(&trace).arg("--").arg(&program);
    let ended = end(&mut record);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert_eq!(checked(&folder, &[text(&trace)]).0.code(), Some(66), "a recording leaves nothing out");
    assert_eq!(checked(&folder, &["--ignore-module", "racy.c", text(&trace)]).0.code(), Some(0));
    assert_eq!(checked(&folder, &["--only-stream", "legacy", text(&trace)]).0.code(), Some(0));
    assert_eq!(checked(&folder, &["--policy", "documented", text(&trace)]).0.code(), Some(66));
}

#[test]
fn a_folder_of_ranks_is_one_report_that_names_each() {
    let folder = build::scratch("ranks");
    let program = racy(&folder, &[]);
    let ranks = folder.join("ranks");
    std::fs::create_dir(&ranks).expect("a folder");
    for rank in 0..11 {
        let trace = ranks.join(format!("rank{rank}.trace"));
        let words: &[&str] = if rank == 3 { &["0", "ordered"] } else { &["0"] };
        let ended = end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(&program).args(words));
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
    }
    std::fs::write(ranks.join("notes.txt"), "no trace\n").expect("write");
    let (ended, report) = checked(&folder, &[text(&ranks)]);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert_eq!((&report["summary"]["findings"], &report["summary"]["processes"]), (&1.into(), &11.into()));
    let names: Vec<&str> =
        report["processes"].as_array().expect("a list").iter().map(|p| p["trace"].as_str().expect("a name")).collect();
    assert!(names[3].ends_with("/rank3.trace") && names[10].ends_with("/rank10.trace"), "{names:?}");
    let seen: Vec<u64> = report["findings"][0]["processes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|n| n.as_u64().expect("a number"))
        .collect();
    assert_eq!(seen, [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(report["findings"][0]["count"], 10);
    assert!(ended.err.contains("of rank0.trace and 9 others"), "{}", ended.err);
    // Files and folders together; a folder without traces is a mistake.
    let one = ranks.join("rank3.trace");
    let (ended, report) = checked(&folder, &[text(&one), text(&ranks)]);
    assert_eq!(report["summary"]["processes"], 11);
    assert!(ended.err.contains("rank3.trace was named before; it is read once"), "{}", ended.err);
    let empty = folder.join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    let (ended, _) = checked(&folder, &[text(&empty)]);
    assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{}", ended.err);
}

#[test]
fn a_trace_of_a_folder_that_can_not_be_read_is_named() {
    use std::os::unix::fs::symlink;
    let folder = build::scratch("ranks-unread");
    let program = racy(&folder, &[]);
    let record = |file: &Path, words: &[&str]| {
        let ended = end(streamsan(["record", "-o"]).arg(file).arg("--").arg(&program).args(words));
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
    };
    let (clean, racy) = (folder.join("clean"), folder.join("found"));
    record(&clean, &["0", "ordered"]);
    record(&racy, &["0"]);
    let bytes = std::fs::read(&racy).expect("the trace");
    let mut first_byte = bytes.clone();
    first_byte[0] ^= 1;
    let damaged: [&dyn Fn(&Path); 7] = [
        &|file| std::fs::write(file, []).expect("written"),
        &|file| std::fs::write(file, [0; 4096]).expect("written"),
        &|file| std::fs::write(file, &first_byte).expect("written"),
        &|file| std::fs::write(file, &bytes[..9]).expect("written"),
        &|file| symlink("/nonexistent/rank", file).expect("a link"),
        &|file| symlink(file, file).expect("a link"),
        // A recording in segments, none of which can be read.
        &|file| {
            std::fs::create_dir(file).expect("a folder");
            std::fs::write(file.join("000000.trace"), []).expect("written");
        },
    ];
    for (which, damage) in damaged.iter().enumerate() {
        for (whole, name) in
            [("rank0.trace", "rank1.trace"), ("0", "10"), ("a.rank9.x", "a.rank10.x"), ("a", "b.trace")]
        {
            let ranks = folder.join("ranks");
            std::fs::create_dir(&ranks).expect("a folder");
            std::fs::write(ranks.join("notes.txt"), "no trace\n").expect("written");
            std::fs::create_dir(ranks.join("logs")).expect("a folder");
            damage(&ranks.join(name));
            std::fs::copy(&clean, ranks.join(whole)).expect("copied");
            let (ended, report) = checked(&folder, &[text(&ranks)]);
            assert_eq!(ended.code(), Some(70), "{which} {name}: {}", ended.err);
            let unread = report["coverage"]["unread"].as_array().expect("a list");
            assert_eq!(unread.len(), 1, "{which} {name}: {unread:?}");
            assert!(unread[0].as_str().expect("text").contains(&format!("/{name}")), "{which} {name}: {unread:?}");
            // What the other trace holds is found.
            std::fs::copy(&racy, ranks.join(whole)).expect("copied");
            assert_eq!(checked(&folder, &[text(&ranks)]).0.code(), Some(66), "{which} {name}");
            std::fs::remove_dir_all(&ranks).expect("ours");
        }
    }
    // Files that are named in another way are no traces, whatever they hold.
    let ranks = folder.join("others");
    std::fs::create_dir(&ranks).expect("a folder");
    std::fs::copy(&clean, ranks.join("rank0.trace")).expect("copied");
    for name in ["rank.log", "trace", "rank1.trace.txt", "core.12", "rank0.json", "traces"] {
        std::fs::write(ranks.join(name), []).expect("written");
    }
    std::fs::create_dir(ranks.join("rank1.trace")).expect("a folder");
    assert_eq!(checked(&folder, &[text(&ranks)]).0.code(), Some(0));
}

#[test]
fn what_is_readable_of_a_torn_trace_is_analysed() {
    let folder = build::scratch("torn");
    let program = racy(&folder, &[]);
    let (trace, cut) = (folder.join("t"), folder.join("cut"));
    end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(&program));
    let whole = std::fs::read(&trace).expect("the trace");
    // The symbols at the end are torn: the findings are all there, the files tell the lines.
    std::fs::write(&cut, &whole[..whole.len() - 9]).expect("write");
    let (ended, report) = checked(&folder, &[text(&cut)]);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert!(ended.err.contains("ends in the middle of a frame") && ended.err.contains("/cut"), "{}", ended.err);
    assert_eq!(report["coverage"]["unread"].as_array().map(Vec::len), Some(1), "{report:#}");
    assert!(ended.err.contains("racy.c:"), "{}", ended.err);
    // A clean trace that is torn is no clean run.
    end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(&program).args(["0", "ordered"]));
    let whole = std::fs::read(&trace).expect("the trace");
    std::fs::write(&cut, &whole[..whole.len() - 9]).expect("write");
    assert_eq!(checked(&folder, &[text(&cut)]).0.code(), Some(70));
    let mut newer = whole.clone();
    newer[8] = 200;
    std::fs::write(&cut, &newer).expect("write");
    let (ended, _) = checked(&folder, &[text(&cut)]);
    assert_eq!((ended.code(), ended.ours().len()), (Some(70), 1), "{}", ended.err);
    assert!(ended.err.contains("format 200"), "{}", ended.err);
}

#[test]
fn debug_information_is_found_by_build_id() {
    if Command::new("objcopy").arg("--version").output().is_err() {
        return;
    }
    let folder = build::scratch("build-id");
    let program = racy(&folder, &["-Wl,--build-id=sha1"]);
    let ran = |command: &mut Command| assert!(command.status().expect("binutils").success());
    // The line tables go elsewhere, under the name of the build; the program is stripped.
    let notes = Command::new("readelf").arg("-n").arg(&program).output().expect("readelf");
    let notes = String::from_utf8_lossy(&notes.stdout).into_owned();
    let id = notes.split("Build ID: ").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("a build id");
    let place = folder.join("symbols/.build-id").join(&id[..2]);
    std::fs::create_dir_all(&place).expect("a folder");
    ran(Command::new("objcopy").arg("--only-keep-debug").arg(&program).arg(place.join(format!("{}.debug", &id[2..]))));
    ran(Command::new("strip").arg(&program));
    let trace = folder.join("t");
    end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(&program));
    let (without, _) = checked(&folder, &[text(&trace)]);
    assert!(!without.err.contains("racy.c:"), "{}", without.err);
    let symbols = folder.join("symbols");
    let (with, _) = checked(&folder, &["--symbol-path", text(&symbols), text(&trace)]);
    assert!(with.err.contains("#0  main  ") && with.err.contains("racy.c:"), "{}", with.err);
    // Another build's are not taken.
    std::fs::rename(&place, folder.join("symbols/.build-id/zz")).expect("rename");
    let (wrong, _) = checked(&folder, &["--symbol-path", text(&symbols), text(&trace)]);
    assert!(!wrong.err.contains("racy.c:"), "{}", wrong.err);
}

/// The slices of a time line, and the categories of its arrows. Checks the rules of Chrome's trace
/// event format.
fn drawn(file: &Path) -> (Vec<Value>, Vec<String>) {
    let value = json(file);
    let events = value["traceEvents"].as_array().expect("traceEvents").clone();
    let number = |e: &Value, key: &str| e[key].as_u64().unwrap_or_else(|| panic!("no {key} in {e}"));
    let (mut slices, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for e in &events {
        number(e, "pid");
        number(e, "tid");
        assert!(e["name"].as_str().is_some_and(|name| !name.is_empty()), "{e}");
        match e["ph"].as_str().expect("a phase") {
            "X" => slices.push(e.clone()),
            "s" => starts.push((number(e, "id"), number(e, "ts"), e.clone())),
            "f" => ends.push((number(e, "id"), number(e, "ts"), e.clone())),
            "M" => assert!(e["args"].is_object(), "{e}"),
            other => panic!("phase {other}"),
        }
    }
    // Slices of one track do not overlap.
    let mut places: Vec<_> =
        slices.iter().map(|e| (number(e, "pid"), number(e, "tid"), number(e, "ts"), number(e, "dur"))).collect();
    places.sort_unstable();
    for pair in places.windows(2) {
        let [a, b] = pair else { unreachable!() };
        assert!((a.0, a.1) != (b.0, b.1) || a.2 + a.3 < b.2, "{a:?} and {b:?} overlap");
    }
    // Arrows go forward in time, and each end lies in a slice of its track.
    assert_eq!(starts.len(), ends.len());
    for ((id, from, start), (other, to, end)) in starts.iter().zip(&ends) {
        assert!(id == other && from < to, "{start} {end}");
        for (e, ts) in [(start, from), (end, to)] {
            let (pid, tid) = (number(e, "pid"), number(e, "tid"));
            assert!(
                places.iter().any(|p| p.0 == pid && p.1 == tid && p.2 <= *ts && *ts <= p.2 + p.3),
                "{e} hangs in the air"
            );
        }
    }
    let category = |e: &Value| e["cat"].as_str().unwrap_or_default().to_owned();
    (slices, starts.iter().map(|(_, _, e)| category(e)).collect())
}

#[test]
fn a_time_line_follows_the_rules_of_its_format() {
    let folder = build::scratch("timeline");
    let program = racy(&folder, &[]);
    let (trace, file) = (folder.join("t"), folder.join("t.json"));
    let draw = |words: &[&str]| {
        end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(&program).args(words));
        let ended = end(streamsan(["timeline"]).arg(&trace).arg("-o").arg(&file));
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        drawn(&file)
    };
    let (slices, racy) = draw(&["0"]);
    let fills: Vec<&Value> = slices.iter().filter(|e| e["cat"] == "fill").collect();
    assert_eq!(fills.len(), 2, "{slices:#?}");
    assert_ne!(fills[0]["tid"], fills[1]["tid"]);
    assert!(fills[0]["args"]["at"].as_str().is_some_and(|at| at.starts_with("racy.c:")), "{}", fills[0]);
    assert_eq!(fills[0]["name"], "cuMemsetD8Async", "the call, as reports name it");
    // Both sides of the race name it, and nothing else does.
    let of_race = |e: &&Value| e["args"]["races"].is_string();
    let named = |e: &Value| e["args"]["races"].as_str().unwrap_or_default().to_owned();
    assert!(named(fills[0]).starts_with("write-after-write ") && named(fills[0]) == named(fills[1]), "{fills:#?}");
    assert_eq!(slices.iter().filter(of_race).count(), 2, "{slices:#?}");
    assert_eq!(racy.iter().filter(|category| *category == "race").count(), 1);
    // The ordered twin has no race, but an event: its second fill comes after the first.
    let (slices, ordered) = draw(&["0", "ordered"]);
    assert!(slices.iter().filter(of_race).count() == 0 && !ordered.contains(&"race".to_owned()), "{slices:#?}");
    assert_eq!(ordered.len(), racy.len());
    assert!(slices.iter().any(|e| e["name"] == "wait for event"));
    // A trace from a GPU; a damaged one is drawn as far as it goes.
    let recorded = tests::product::root().join("tests/recorded/doc_mul_out.trace");
    let ended = end(streamsan(["timeline"]).arg(&recorded).arg("-o").arg(&file));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(drawn(&file).0.iter().any(|e| e["cat"] == "kernel"));
    let whole = std::fs::read(&trace).expect("the trace");
    std::fs::write(&trace, &whole[..whole.len() - 9]).expect("write");
    let ended = end(streamsan(["timeline"]).arg(&trace).arg("-o").arg(&file));
    assert_eq!(ended.code(), Some(70), "{}", ended.err);
    assert!(!drawn(&file).0.is_empty());
    assert_eq!(end(streamsan(["timeline"]).arg(&trace)).code(), Some(2), "without -o");
}

/// Calls of CUDA's runtime go by the names that the program wrote, in the picture and in the
/// diagram of a report.
#[test]
fn a_time_line_marks_the_fills_and_copies_of_a_program_of_the_runtime() {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let source = build::programs().join("report/fill_kernel_copy.cu");
    let program = build::cuda_program(&source, "shared", &[]).unwrap_or_else(|e| panic!("{e}"));
    let folder = build::scratch("timeline-runtime");
    let (trace, file, report) = (folder.join("t"), folder.join("t.json"), folder.join("report.json"));
    let draw = |words: &[&str], code: i32| {
        let mut run = streamsan(["run", "--sim", "--json"]);
        run.arg(&report).arg("-o").arg(&trace).arg("--").arg(&program).args(words);
        let ended = end(run.env_remove("LD_LIBRARY_PATH"));
        assert_eq!(ended.code(), Some(code), "{}", ended.err);
        let ended = end(streamsan(["timeline"]).arg(&trace).arg("-o").arg(&file));
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        drawn(&file)
    };
    let named = |slices: &[Value], only: fn(&Value) -> bool| -> Vec<String> {
        slices.iter().filter(|e| only(e)).map(|e| e["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let (slices, arrows) = draw(&[], 66);
    let racing = named(&slices, |e| e["args"]["races"].is_string());
    assert_eq!(racing, ["cudaMemsetAsync", "add(int*, int)", "cudaMemcpyAsync"], "{slices:#?}");
    let told = json(&report);
    let findings = told["findings"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(findings.len() > 1 && arrows.iter().filter(|kind| *kind == "race").count() == findings.len(), "{arrows:?}");
    // The host's wait has its line.
    let waits: Vec<&Value> = slices.iter().filter(|e| e["name"] == "cudaDeviceSynchronize").collect();
    assert_eq!(waits.len(), 1, "{slices:#?}");
    assert!(waits[0]["args"]["at"].as_str().is_some_and(|at| at.starts_with("fill_kernel_copy.cu:")), "{}", waits[0]);
    let steps = findings.iter().flat_map(|f| f["around"]["steps"].as_array());
    let labels: Vec<&str> = steps.flatten().filter_map(|step| step["label"].as_str()).collect();
    assert!(labels.contains(&"cudaMemsetAsync") && labels.contains(&"cudaMemcpyAsync"), "{labels:?}");
    assert!(!labels.iter().any(|label| label.starts_with("cu") && !label.starts_with("cuda")), "{labels:?}");
    // On one stream nothing races, and the names are the same.
    let (slices, arrows) = draw(&["ordered"], 0);
    assert!(!arrows.contains(&"race".to_owned()) && named(&slices, |e| e["args"]["races"].is_string()).is_empty());
    let works = named(&slices, |e| ["fill", "kernel", "copy"].iter().any(|kind| e["cat"] == *kind));
    assert_eq!(works, racing, "{slices:#?}");
}

#[test]
fn memory_over_a_run() {
    let folder = build::scratch("memory");
    let program = racy(&folder, &[]);
    let (trace, file, pickle) = (folder.join("t"), folder.join("m.json"), folder.join("m.pickle"));
    end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(&program));
    let mut command = streamsan(["memory", "--json"]);
    let ended = end(command.arg(&file).arg("--snapshot").arg(&pickle).arg(&trace));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(
        ended.out.contains("device memory: peak 4.0 KiB (4096 bytes)") && ended.out.contains("never freed"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("racy.c:") && ended.out.contains(" bytes), device memory\n"), "{}", ended.out);
    let class = json(&file)["processes"][0]["classes"][0].clone();
    assert_eq!((&class["peak"]["bytes"], &class["end"]["bytes"]), (&4096.into(), &4096.into()), "{class:#}");
    let process = json(&file)["processes"][0].clone();
    let place = process["events"][0][5].as_u64().expect("a place") as usize;
    let names = process["places"][place].to_string();
    assert!(process["events"][0][1] == "alloc" && names.contains("racy.c"), "{process:#}");
    assert!(!ended.out.contains("for lack of memory"), "{}", ended.out);
    assert_eq!(json(&file)["processes"][0]["failed"].as_array().map(Vec::len), Some(0));
    // A call that fails for lack of memory is listed with its place, and the report is the same as
    // without.
    let source = std::fs::read_to_string(folder.join("racy.c")).expect("source");
    let greedy = "    CUdeviceptr more;\n    if (cuMemAlloc_v2(&more, (size_t)1 << 60) != 2) return 9;\n    CHECK(cuMemsetD8Async(x, 2, 4096, b));\n";
    let with = source.replacen("    CHECK(cuMemsetD8Async(x, 2, 4096, b));\n", greedy, 1);
    assert_ne!(with, source);
    let poor = folder.join("poor.c");
    std::fs::write(&poor, with).expect("write");
    let program = compiled(&poor, &[]);
    end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(&program));
    let ended = end(streamsan(["memory", "--json"]).arg(&file).arg(&trace));
    let said = "cuMemAlloc_v2 failed once for lack of memory, with 4.0 KiB (4096 bytes) of device memory allocated";
    assert!(ended.out.contains(said) && ended.out.contains("poor.c:"), "{}", ended.out);
    let failed = json(&file)["processes"][0]["failed"].clone();
    assert_eq!((&failed[0]["count"], &failed[0]["device_bytes"]), (&1.into(), &4096.into()), "{failed:#}");
    assert_eq!(checked(&folder, &[text(&trace)]).1["summary"]["findings"], 1);
    // PyTorch's blocks lie in its segments.
    let recorded = tests::product::root().join("tests/recorded/freed_block_reused.trace");
    let ended = end(streamsan(["memory", "--json"]).arg(&file).arg("--snapshot").arg(&pickle).arg(&recorded));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.out.contains("blocks of the program's own pools"), "{}", ended.out);
    let script = "import pickle, sys\n\
        s = pickle.load(open(sys.argv[1], 'rb'))\n\
        for g in s['segments']:\n\
        \x20   at = g['address']\n\
        \x20   for b in g['blocks']:\n\
        \x20       assert b['address'] == at, (g, b)\n\
        \x20       at += b['size']\n\
        \x20   assert at == g['address'] + g['total_size'], g\n\
        live = {}\n\
        for e in s['device_traces'][0]:\n\
        \x20   if e['action'] == 'alloc': assert e['addr'] not in live; live[e['addr']] = e['size']\n\
        \x20   if e['action'] == 'free_completed': assert live.pop(e['addr']) == e['size']\n\
        blocks = {b['address']: b['size'] for g in s['segments'] for b in g['blocks'] if b['state'] == 'active_allocated'}\n\
        assert blocks == live, (blocks, live)\n\
        assert all(isinstance(f['line'], int) for e in s['device_traces'][0] for f in e['frames'])\n\
        print(len(s['segments']), len(s['device_traces'][0]))\n";
    let out = Command::new("python3").args(["-c", script]).arg(&pickle).output().expect("python3");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(!out.stdout.starts_with(b"0 "), "{}", String::from_utf8_lossy(&out.stdout));
}

/// What `excess` says of the waits of a captured step is what happens without them.
#[test]
fn waits_inside_a_captured_graph_are_judged_as_leaving_them_out_does() {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let source = build::programs().join("report/captured_waits.cu");
    let program = build::cuda_program(&source, "shared", &["-lineinfo"]).unwrap_or_else(|e| panic!("{e}"));
    let folder = build::scratch("captured-waits");
    let run = |words: &[&str]| {
        let trace = folder.join("t");
        let mut recorded = streamsan(["run", "--sim", "-o"]);
        let ended = end(recorded.arg(&trace).arg("--").arg(&program).args(words).env_remove("LD_LIBRARY_PATH"));
        (ended.code(), trace)
    };
    let (code, trace) = run(&[]);
    assert_eq!(code, Some(0));
    let listed = folder.join("excess.json");
    let ended = end(streamsan(["excess", "--json"]).arg(&listed).arg(&trace));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let sites = json(&listed)["processes"][0]["sites"].as_array().expect("sites").clone();
    let of = |text: &str| -> Value {
        let line = 1 + read(&source).lines().position(|line| line.contains(text)).expect("a line");
        let at = format!("captured_waits.cu:{line}");
        sites.iter().find(|site| site["at"] == at.as_str()).unwrap_or_else(|| panic!("{at}: {sites:#?}")).clone()
    };
    let verdict = |text: &str| {
        let site = of(text);
        assert_eq!((site["kind"].as_str(), site["count"].as_u64()), (Some("captured-wait"), Some(10)), "{site}");
        (site["verdict"].as_str().expect("a word").to_owned(), site["can_go"] == true)
    };
    let is = |word: &str, goes| (word.to_owned(), goes);
    assert_eq!(verdict("(left, begun, 0)"), is("nothing", true));
    assert_eq!(verdict("(right, begun, 0)"), is("together", true));
    assert_eq!(verdict("(left, filled, 0)"), is("needed", false));
    assert_eq!(verdict("(right, added, 0)"), is("together", false));
    assert_eq!(verdict("(main, done, 0)"), is("capture", false));
    assert_eq!(verdict("(main, added, 0)"), is("together", true));
    let pair = &of("(left, filled, 0)")["pair"];
    assert_eq!(
        (pair["why"].as_str(), pair["first"]["what"].as_str()),
        (Some("read-after-write"), Some("kernel fill(float*, float)"))
    );

    // The same by hand.
    for (words, code) in [(&["twin"][..], 0), (&["needless"], 0), (&["needless", "twin"], 1), (&["needed"], 66)] {
        assert_eq!(run(words).0, Some(code), "{words:?}");
    }
    let (_, trace) = run(&[]);
    let line = of("(left, filled, 0)")["at"].as_str().expect("a place").to_owned();
    let without = end(streamsan(["check", "--without", &line]).arg(&trace));
    assert_eq!(without.code(), Some(66), "{}", without.err);
    assert!(without.err.contains("10 synchronisations left out"), "{}", without.err);
    let needless = of("(right, added, 0)")["at"].as_str().expect("a place").to_owned();
    let without = end(streamsan(["check", "--without", &needless]).arg(&trace));
    assert_eq!(without.code(), Some(0), "{}", without.err);
}
