//! Every door through which a program can get at the driver: the same work must leave the same ops
//! in the trace.
//!
//! Runs against the fake driver, so it needs neither a GPU nor the simulator.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tests::recorded::Trace;
use tests::run::{self, command, end, record_with};
use tests::{build, fake};

fn doors() -> PathBuf {
    build::c_program("doors.c", &[])
}

/// What the work of `direct.c` and `doors.c` must leave, in this order, definitions of contexts
/// aside.
const WORK: &[&str] = &[
    "StreamCreate",
    "StreamCreate",
    "EventCreate",
    "Alloc",
    "Alloc",
    "Copy",
    "Launch",
    "EventRecord",
    "StreamWait",
    "Launch",
    "Set",
    "Copy",
];

/// The ops of the work, those that begin the story left out.
fn assert_work(trace: &Trace, door: &str) {
    assert_eq!(trace.error, None, "{door}");
    assert_eq!(trace.unreadable, 0, "{door}");
    let mut wanted = WORK.iter();
    let mut next = wanted.next();
    for op in &trace.ops {
        if next.is_some_and(|name| *name == op.op) {
            next = wanted.next();
        }
    }
    let names: Vec<_> = trace.ops.iter().map(|op| op.op.as_str()).collect();
    assert!(next.is_none(), "{door}: no {next:?} in its place among {names:?}");
    let launches: Vec<_> = trace.launches().filter_map(|op| op.launch.as_ref()).collect();
    let names: Vec<_> = launches.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["add_8_8_4", "scale_8_4"], "{door}");
    // Two pointers and a word; a pointer and a word.
    assert_eq!((launches[0].1.len(), launches[1].1.len()), (20, 12), "{door}");
    assert_eq!(launches[0].1[16..20], 64_u32.to_le_bytes(), "{door}");
    assert_eq!(launches[0].1[8..16], launches[1].1[0..8], "{door}: both kernels got y");
    for (op, at_least) in [("Free", 2), ("HostSync", 0), ("EventDestroy", 1), ("StreamDestroy", 1)] {
        assert!(trace.count(op) >= at_least, "{door}: {op} in {:?}", trace.calls());
    }
}

/// Calls that left ops, by symbol.
fn through(door: &str) -> BTreeMap<String, usize> {
    let driver = if door == "dlvsym" { fake::versioned_folder() } else { fake::folder() };
    let folder = build::scratch(&format!("door-{door}"));
    let log = folder.join("calls");
    let (ended, trace) = record_with(&folder, &doors(), &[door], |command| {
        command.env("FAKE_CUDA_LOG", &log).env("LD_LIBRARY_PATH", driver);
    });
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{door}: {}", ended.err);
    assert_work(&trace, door);
    let reached = fake::calls(&log);
    let seen: BTreeMap<String, usize> = trace.calls().into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
    for name in seen.keys() {
        assert!(reached.contains_key(name.as_str()), "{door}: {name} was logged but never reached the driver");
    }
    seen
}

#[test]
fn the_bare_work_reaches_the_driver() {
    // What the other tests of this file compare with must itself be right.
    let log = build::scratch("door-bare").join("calls");
    for door in ["dlsym", "dlvsym", "default", "getproc", "getproc_v2", "itself", "per_thread"] {
        let _ = std::fs::remove_file(&log);
        let driver = if door == "dlvsym" { fake::versioned_folder() } else { fake::folder() };
        let ended = end(command(doors()).arg(door).env("FAKE_CUDA_LOG", &log).env("LD_LIBRARY_PATH", driver));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{door}: {}", ended.err);
        let calls = fake::calls(&log);
        let launches: u64 = ["cuLaunchKernel", "cuLaunchKernel_ptsz"].iter().filter_map(|n| calls.get(n)).sum();
        assert_eq!(launches, 2, "{door}: {calls:?}");
    }
}

#[test]
fn direct_link() {
    let folder = build::scratch("door-direct");
    let program = build::c_program("direct.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let (ended, trace) = record_with(&folder, &program, &[], |_| {});
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
    assert_work(&trace, "direct");
    assert_eq!(trace.calls()["cuLaunchKernel"], 2);
    assert!(trace.launches().all(|op| op.has_stack), "launches have stacks");
}

#[test]
fn dlopen_and_dlsym() {
    assert_eq!(through("dlsym")["cuLaunchKernel"], 2);
}

#[test]
fn dlsym_in_the_global_scope() {
    assert_eq!(through("default")["cuLaunchKernel"], 2);
}

#[test]
fn dlvsym() {
    assert_eq!(through("dlvsym")["cuLaunchKernel"], 2);
}

#[test]
fn get_proc_address_of_cuda_11() {
    assert_eq!(through("getproc")["cuLaunchKernel"], 2);
}

#[test]
fn get_proc_address_of_cuda_12() {
    assert_eq!(through("getproc_v2")["cuLaunchKernel"], 2);
}

#[test]
fn get_proc_address_asked_through_itself() {
    assert_eq!(through("itself")["cuLaunchKernel"], 2);
}

#[test]
fn per_thread_names_mean_another_default_stream() {
    let calls = through("per_thread");
    assert_eq!(calls.get("cuLaunchKernel"), None, "{calls:?}");
    assert_eq!(calls["cuLaunchKernel_ptsz"], 2, "{calls:?}");
    assert!(calls.contains_key("cuMemsetD8Async_ptsz"), "{calls:?}");
    let folder = build::scratch("door-streams");
    for (door, kind) in [("dlsym", "Legacy"), ("per_thread", "PerThread")] {
        let (_, _) = record_with(&folder, &doors(), &[door], |_| {});
        let dump = end(run::streamsan(["dump"]).arg(folder.join("run.trace")));
        assert_eq!(dump.code(), Some(0), "{}", dump.err);
        let others = if kind == "Legacy" { "PerThread" } else { "Legacy" };
        assert!(dump.out.contains(&format!("kind: {kind}")), "{door}: {}", dump.out);
        assert!(!dump.out.contains(&format!("kind: {others}")), "{door}: {}", dump.out);
    }
}

/// The driver without a GPU says of its device that it reaches what `malloc` gave. The report tells
/// launches with such memory by that.
#[test]
fn devices_that_reach_memory_of_the_system_are_recorded() {
    let folder = build::scratch("door-system");
    let (_, _) = record_with(&folder, &doors(), &["dlsym"], |_| {});
    let dump = end(run::streamsan(["dump"]).arg(folder.join("run.trace")));
    assert!(dump.code() == Some(0) && dump.out.contains("devices reach system-allocated memory"), "{}", dump.out);
}

/// Runs `lookups.c` bare and under the shim: it checks by itself what look-ups answer, and prints
/// what must not change.
fn lookups(mode: &str) {
    let folder = fake::folder().to_string_lossy().into_owned();
    let other = build::c_program("lookups_other.c", &["-shared"]);
    let place = other.parent().expect("a folder").to_string_lossy().into_owned();
    let program = build::c_program(
        "lookups.c",
        &["-L", &place, "-Wl,--no-as-needed", "-llookups_other", "-Wl,-rpath", &place, "-rdynamic"],
    );
    let path = format!("{folder}:{place}");
    let bare = end(command(&program).arg(mode).env("LD_LIBRARY_PATH", &path));
    assert_eq!(bare.code(), Some(0), "bare: {}", bare.err);
    let under = end(run::streamsan(["run", "--"]).arg(&program).arg(mode).env("LD_LIBRARY_PATH", &path));
    assert_eq!(under.code(), Some(0), "under the shim: {}", under.err);
    assert_eq!(bare.out, under.out);
    assert!(!bare.out.is_empty());
}

#[test]
fn next_look_ups_of_others_stay_right() {
    lookups("next");
}

#[test]
fn unknown_names_stay_unknown_and_dlerror_says_so() {
    lookups("unknown");
}

#[test]
fn foreign_functions_that_begin_with_cu_are_left_alone() {
    lookups("foreign");
}

#[test]
fn export_tables_pass_through() {
    lookups("tables");
}

/// The names by which programs open the driver.
const DRIVER_NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

#[test]
fn deep_bound_libraries_are_missed_as_documented() {
    // A library opened with RTLD_DEEPBIND finds the C library's dlsym before ours: a known blind
    // spot, and nothing breaks.
    let folder = build::scratch("door-deepbind");
    let library = build::c_program("deepbound.c", &["-shared"]);
    let program = build::c_program("deepbind.c", &[]);
    for name in DRIVER_NAMES {
        let bare = end(command(&program).arg(&library).arg(name));
        assert_eq!((bare.code(), bare.out.as_str()), (Some(0), "launched\n"), "{}", bare.err);
        let (ended, trace) = record_with(&folder, &program, &[&library.to_string_lossy(), name], |_| {});
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "launched\n"), "{}", ended.err);
        assert_eq!(trace.launches().count(), 0, "{name}: it is caught now: change what the documents say");
    }
}

#[test]
fn deep_bound_libraries_are_caught_under_the_drivers_soname() {
    let folder = build::scratch("door-soname");
    let library = build::c_program("deepbound.c", &["-shared"]);
    let program = build::c_program("deepbind.c", &[]);
    for name in DRIVER_NAMES {
        let (ended, trace) = record_with(&folder, &program, &[&library.to_string_lossy(), name], |command| {
            command.env("STREAMSAN_OPTIONS", "soname=1");
        });
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "launched\n"), "{name}: {}", ended.err);
        assert_eq!(trace.launches().count(), 1, "{name}: {}", ended.err);
    }
}

#[test]
fn dlopen_and_dlclose_storms() {
    let program = build::c_program("dlstorm.c", &[]);
    let library = build::c_program("lookups_other.c", &["-shared"]);
    let folder = build::scratch("dlstorm");
    let (ended, trace) = record_with(&folder, &program, &[&library.to_string_lossy()], |_| {});
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
    assert_eq!(trace.launches().count(), 4 * 200);
}

#[test]
fn ctypes_with_the_lines_of_the_python_program() {
    let script = build::programs().join("ctypes_race.py");
    let json = build::scratch("ctypes").join("report.json");
    let mut command = run::streamsan(["run", "--error-exitcode", "0", "--json"]);
    let ended = end(command.arg(&json).args(["--", "python3"]).arg(&script).arg("x"));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(3), "python 2\n"), "{}", ended.err);
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("valid JSON");
    assert_eq!(report["summary"]["findings"], 1, "{report:#}");
    let finding = &report["findings"][0];
    let lines = |part: &str| {
        let stack = finding[part]["stack"].as_array().expect("a stack");
        let python = stack.iter().filter(|frame| frame["kind"] == "python");
        python
            .map(|f| (f["function"].clone(), f["source"].as_str().unwrap_or_default().trim().to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(lines("access")[0].0, "fill", "{finding:#}");
    assert_eq!(lines("access").last().expect("frames").1, "fill(second, 2)", "{finding:#}");
    assert_eq!(lines("previous").last().expect("frames").1, "fill(first, 1)", "{finding:#}");
    let allocated = lines("allocation");
    assert_eq!(allocated.last().expect("frames").1, "memory = make(cuda.cuMemAlloc_v2, ctypes.c_size_t(4096))");
    assert_eq!(allocated[0].0, "make");
}

/// Launchers of Python hand the environment on, so what they start is part of the run; a notebook's
/// cells have lines, if no source. One that clears the environment loses us, and nothing else.
#[test]
fn processes_that_python_starts() {
    let script = build::programs().join("started.py");
    let json = build::scratch("started").join("report.json");
    for how in ["spawn", "forkserver", "fork", "cell", "cleared"] {
        let mut command = run::streamsan(["run", "--error-exitcode", "0", "--json"]);
        let ended = end(command.arg(&json).args(["--", "python3"]).arg(&script).arg(how));
        assert_eq!(ended.code(), Some(3), "{how}: {}", ended.err);
        let report: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("valid JSON");
        if how == "cleared" {
            assert_eq!(report["summary"]["findings"], 0);
            assert!(ended.err.contains("no CUDA work was seen"), "{}", ended.err);
            continue;
        }
        assert_eq!(report["summary"]["findings"], 1, "{how}: {report:#}");
        let stack = report["findings"][0]["access"]["stack"].as_array().expect("a stack");
        let fill = stack.iter().find(|frame| frame["kind"] == "python").expect("a Python frame");
        let file = fill["file"].as_str().expect("a file");
        assert!(file.ends_with(if how == "cell" { "/ipykernel_1/2.py" } else { "ctypes_race.py" }), "{how}: {file}");
        assert_eq!((&fill["function"], &fill["line"]), (&"fill".into(), &19.into()), "{how}");
    }
}
