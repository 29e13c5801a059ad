//! The simulated GPU as a user meets it: `streamsan --sim`. (The verdicts are those of
//! `cases/corpus.rs`.)

use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::{build, product, run};

fn compiled(source: &str, cudart: &str, extra: &[&str]) -> Option<PathBuf> {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return None;
    }
    let file = product::root().join("tests").join(source);
    Some(build::cuda_program(&file, cudart, extra).unwrap_or_else(|e| panic!("{e}")))
}

fn sim(options: &[&str], program: &Path) -> run::Ended {
    let mut command = run::streamsan(["run", "--sim"]);
    run::end(command.args(options).arg("--").arg(program).env_remove("LD_LIBRARY_PATH"))
}

#[test]
fn the_runtimes_entry_points_are_ours() {
    let Some(program) = compiled("programs/entry_point.cu", "shared", &[]) else { return };
    let ended = sim(&[], &program);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines.len(), 8, "{}", ended.out);
    assert!(lines[..6].iter().all(|line| line.ends_with("in libstreamsan.so")), "{}", ended.out);
    assert!(lines[6..].iter().all(|line| line.ends_with("status 1, in nowhere")), "{}", ended.out);
}

#[test]
fn the_patch_of_exact_mode_notes_what_warps_touch() {
    // The program includes the patch: compiled again when that changes.
    let patch = std::fs::read(product::root().join("shim/patch/exact.cu")).expect("the patch");
    let content = patch.iter().fold(0_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    let content = format!("-DCONTENT={content}");
    let extra = ["-diag-suppress=177", &content];
    let Some(program) = compiled("programs/exact/marks.cu", "shared", &extra) else { return };
    let ended = sim(&["--no-stacks"], &program);
    assert_eq!(ended.code(), Some(0), "{}\n{}", ended.out, ended.err);
    assert!(ended.out.matches("right ").count() > 80 && ended.out.ends_with("OK\n"), "{}", ended.out);
}

#[test]
fn machine_code_that_does_not_run_is_no_clean_run_even_if_the_program_swallows_it() {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let ended = sim(&[], &swallowing(100));
    assert_eq!(ended.code(), Some(70), "{}", ended.err);
    assert!(ended.ours().iter().any(|line| line.contains("ERROR") && line.contains("no PTX inside")), "{}", ended.err);
}

#[test]
fn machine_code_that_runs_is_a_clean_run() {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let ended = sim(&[], &swallowing(80));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.err.contains("1 launch (1 with ranges"), "{}", ended.err);
}

/// A program that ignores errors, with machine code for that device and no PTX.
fn swallowing(arch: u32) -> PathBuf {
    let toolkit = build::toolkit().unwrap_or_else(|e| panic!("{e}"));
    let file = build::programs().join("sim/swallows.cu");
    let mut args: Vec<String> = ["-cudart", "shared", "-o", "{out}", "-gencode"].map(String::from).into();
    args.push(format!("arch=compute_{arch},code=sm_{arch}"));
    args.extend([toolkit.join("lib"), product::root().join(".toolkit/lib")].map(|lib| format!("-L{}", lib.display())));
    args.push(file.display().to_string());
    build::cached("swallows", &toolkit.join("bin/nvcc"), &args, &[&file]).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_program_without_cuda_keeps_its_exit_code() {
    for code in [0, 3] {
        let mut command = run::streamsan(["--sim", "sh", "-c", &format!("exit {code}")]);
        let ended = run::end(command.env_remove("LD_LIBRARY_PATH"));
        assert_eq!(ended.code(), Some(code), "{}", ended.err);
    }
}

#[test]
fn a_wrong_option_of_the_simulator_runs_nothing() {
    for (option, said) in [
        ("--sim-schedule=fast", "option 'sim-schedule' takes eager or random or late-first or in-order, not 'fast'"),
        ("--sim-seed=-1", "option 'sim-seed' takes a number"),
        ("--sim-addresses=/nonexistent/a", "/nonexistent/a can not be written"),
    ] {
        let ended = run::end(&mut run::streamsan([option, "sh", "-c", "echo ran"]));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(2), ""), "{option}: {}", ended.err);
        assert!(ended.err.contains(said), "{option}: {}", ended.err);
    }
}

#[test]
fn schedules_and_seeds_come_from_the_command_line() {
    let Some(program) = compiled("corpus/cuda/even_odd_streams.cu", "shared", &[]) else { return };
    let Some(many) = compiled("corpus/cuda/many_streams_missing_edge.cu", "shared", &[]) else { return };
    let folder = build::scratch("sim-schedules");
    let launches = |program: &Path, options: &[&str]| {
        let file = folder.join("addresses");
        let mut all = options.to_vec();
        let option = format!("--sim-addresses={}", file.display());
        all.extend([option.as_str(), "--error-exitcode=0"]);
        let ended = sim(&all, program);
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        let text = std::fs::read_to_string(&file).expect("written");
        let lines = text.lines().map(|line| {
            let mut value: Value = serde_json::from_str(line).expect("a line of JSON");
            value["pid"] = Value::Null;
            value.to_string()
        });
        lines.collect::<Vec<_>>()
    };
    let mut orders = std::collections::BTreeSet::new();
    for seed in ["0", "1", "2", "3", "4", "5"] {
        let order = launches(&many, &["--sim-seed", seed]);
        assert_eq!(order.len(), 32, "one line a launch");
        assert_eq!(order, launches(&many, &["--sim-seed", seed]), "seed {seed} repeats");
        orders.insert(order);
    }
    assert!(orders.len() >= 4, "{} orders", orders.len());
    assert_ne!(launches(&many, &["--sim-schedule=late-first"]), launches(&many, &["--sim-schedule=in-order"]));

    // What is listed is what is touched: elements 0, 2, 4... by one launch, 1, 3, 5... by the
    // other.
    let lists = launches(&program, &["--sim-schedule=in-order"]);
    let first: Value = serde_json::from_str(&lists[0]).expect("JSON");
    let access = &first["accesses"][0];
    assert_eq!((access["kind"].as_str(), access["bytes"].as_u64()), (Some("write"), Some(4)), "{first:#}");
    assert!(
        access["file"].as_str().is_some_and(|file| file.ends_with("even_odd_streams.cu")) || access["file"].is_null()
    );
    let ranges = access["ranges"].as_array().expect("ranges");
    assert_eq!(ranges.len() as u64, access["count"].as_u64().expect("a count"), "no two elements touch");
    let number = |value: &Value| u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    assert!(ranges.iter().all(|range| number(&range[1]) - number(&range[0]) == 4));
    let starts: Vec<u64> = ranges.iter().map(|range| number(&range[0])).collect();
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == 8), "every other element");
}

#[test]
fn results_differ_between_schedules_of_a_racy_program_only() {
    let folder = build::scratch("sim-results");
    let digests = |source: &str, schedule: &str| {
        let program = compiled(source, "shared", &[])?;
        let file = folder.join("results");
        let options = [format!("--sim-results={}", file.display()), format!("--sim-schedule={schedule}")];
        let ended = sim(&[&options[0], &options[1], "--error-exitcode=0"], &program);
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        let mut lines: Vec<String> =
            std::fs::read_to_string(&file).expect("written").lines().map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines.iter().filter(|line| line.starts_with("device 4194304 ")).count(), 2, "{lines:?}");
        Some(lines)
    };
    let (racy, fixed) = ("corpus/cuda/stream_pair_unordered.cu", "corpus/cuda/stream_pair_event.cu");
    let Some(right) = digests(racy, "in-order") else { return };
    assert_ne!(digests(racy, "late-first"), Some(right));
    assert_eq!(digests(fixed, "late-first"), digests(fixed, "in-order"));
}

#[test]
fn an_access_out_of_bounds_says_where() {
    let Some(program) = compiled("programs/sim/out_of_bounds.cu", "shared", &["-lineinfo"]) else { return };
    let ended = sim(&[], &program);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert_eq!(ended.out, "an illegal memory access was encountered\n");
    let lines: Vec<&str> = ended.err.lines().filter(|line| line.starts_with("streamsan-sim: ")).collect();
    let [line] = lines.as_slice() else { panic!("{}", ended.err) };
    for part in [
        "out-of-bounds global write of 4 bytes at 0x",
        "in kernel `_Z7scatterPii`, block (1,0,0), thread (3,0,0)",
        "out_of_bounds.cu:9",
        "that is 67108864 bytes behind the nearest allocation, of 4096 bytes at 0x",
    ] {
        assert!(line.contains(part), "'{part}' is not in: {line}");
    }
}

#[test]
fn shared_memory_ends_where_a_devices_does_and_not_where_it_was_asked_to() {
    let Some(program) = compiled("programs/sim/shared_overrun.cu", "shared", &["-lineinfo"]) else { return };
    let ended = sim(&[], &program);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert_eq!(ended.out, "7 8 7, an illegal memory access was encountered\n");
    let lines: Vec<&str> = ended.err.lines().filter(|line| line.starts_with("streamsan-sim: ")).collect();
    // Once for each kernel, and then the fault.
    let [first, second, fault] = lines.as_slice() else { panic!("{}", ended.err) };
    assert!(first.contains("hint: out-of-bounds shared write of 4 bytes at 0x64 in kernel `_Z7overruniPi`"), "{first}");
    assert!(first.contains("shared_overrun.cu:8; ") && first.ends_with("in steps of 128 bytes"), "{first}");
    assert!(
        second.contains("hint: out-of-bounds shared write of 4 bytes at 0x7c in kernel `_Z10fixed_size"),
        "{second}"
    );
    assert!(fault.starts_with("streamsan-sim: out-of-bounds shared write of 4 bytes at 0x80 in kernel"), "{fault}");
}

/// Python with Numba, from `cargo xtask numba`.
fn numba() -> Option<PathBuf> {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return None;
    }
    Some(product::xtask("numba").unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn a_numba_program_runs_and_races_without_its_event() {
    let Some(python) = numba() else { return };
    let source = build::programs().join("python/numba_streams.py");
    let run = |options: &[&str], argument: &str| {
        let mut command = run::streamsan(["run", "--sim"]);
        command.args(options).arg("--").arg(&python).arg(&source).arg(argument);
        run::end(command.env_remove("LD_LIBRARY_PATH"))
    };
    let ended = run(&["--error-exitcode=0", "--sim-schedule=late-first"], "racy");
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "wrong\n"), "{}", ended.err);
    let ended = run(&[], "racy");
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    for part in
        ["DATA RACE: read-after-write (certain)", "fill[n // 128, 128, a](x, 1.0)", "double[n // 128, 128, b](x, y)"]
    {
        assert!(ended.err.contains(part), "'{part}' is not in:\n{}", ended.err);
    }
    assert!(ended.err.contains("4 launches (4 with ranges"), "{}", ended.err);
    let ended = run(&["--sim-schedule=late-first"], "fixed");
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "right\n"), "{}", ended.err);
}

#[test]
fn the_demo_computes_right_and_races_without_its_event() {
    let Some(racy) = compiled("programs/demo/racy.cu", "shared", &[]) else { return };
    let Some(fixed) = compiled("programs/demo/racy.cu", "shared", &["-DFIXED"]) else { return };
    assert_eq!(sim(&[], &racy).code(), Some(66));
    let ended = sim(&[], &fixed);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    // 4094 elements of 0x3f3f3f3f, averaged over three, summed up in some order.
    let total: f64 = ended.out.trim().strip_prefix("total ").and_then(|n| n.parse().ok()).expect("a number");
    let wanted = 4094.0 * f64::from(f32::from_bits(0x3f3f_3f3f));
    assert!((total - wanted).abs() < 1.0, "{total} instead of {wanted}");
}

#[test]
fn a_trace_of_the_simulated_gpu_is_checked_later() {
    let Some(program) = compiled("programs/demo/racy.cu", "shared", &[]) else { return };
    let folder = build::scratch("sim-trace");
    let (trace, json) = (folder.join("t"), folder.join("j"));
    let mut command = run::streamsan(["record", "--sim", "-o"]);
    let ended = run::end(command.arg(&trace).arg("--").arg(&program).env_remove("LD_LIBRARY_PATH"));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let ended = run::end(run::streamsan(["check", "--json"]).arg(&json).arg(&trace));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("JSON");
    assert_eq!(report["findings"][0]["confidence"], "certain");
    assert_eq!(report["coverage"]["launches"]["ranges"], 2);
    let lines = |side: &str| report["findings"][0][side]["stack"].to_string();
    assert!(["access", "previous", "allocation"].iter().all(|side| lines(side).contains("racy.cu")), "{report:#}");
}

#[test]
fn it_works_without_the_launcher_too() {
    let Some(program) = compiled("programs/demo/racy.cu", "shared", &[]) else { return };
    let folder = product::bin().join("sim");
    if !folder.exists() {
        panic!("no {}: scripts/build --place makes it", folder.display());
    }
    let mut command = run::preloaded(&program, "error-exitcode=66");
    let ended = run::end(command.env("LD_LIBRARY_PATH", &folder));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert!(ended.err.contains("kernel total(float const*, float*, int)"), "{}", ended.err);
}

#[test]
fn stream_zero_follows_how_the_program_was_compiled() {
    // The same source: with per-thread default streams stream 0 is another stream in each thread.
    let Some(program) = compiled("corpus/cuda/legacy_fences_blocking.cu", "shared", &[]) else { return };
    let Some(per_thread) =
        compiled("corpus/cuda/legacy_fences_blocking.cu", "shared", &["-default-stream", "per-thread"])
    else {
        return;
    };
    let kinds = |program: &Path| {
        let trace = build::scratch("sim-zero").join("t");
        let mut command = run::streamsan(["record", "--sim", "-o"]);
        let ended = run::end(command.arg(&trace).arg("--").arg(program).env_remove("LD_LIBRARY_PATH"));
        assert!(!ended.hung, "{}", ended.err);
        let dump = run::end(run::streamsan(["dump"]).arg(&trace));
        (dump.out.contains("kind: Legacy"), dump.out.contains("kind: PerThread"))
    };
    assert_eq!(kinds(&program), (true, false));
    assert!(kinds(&per_thread).1);
}

#[test]
fn protected_pages_are_invisible_to_the_program() {
    let Some(program) = compiled("programs/touches.cu", "shared", &[]) else { return };
    let plain = sim(&["--error-exitcode", "0"], &program);
    assert_eq!(plain.code(), Some(0), "{}{}", plain.out, plain.err);
    let folder = build::scratch("touches");
    let json = folder.join("j");
    let json = json.to_str().expect("a path");
    let watched = sim(&["--error-exitcode", "0", "--host-accesses", "--json", json], &program);
    assert_eq!((watched.code(), watched.out.as_str()), (Some(0), plain.out.as_str()), "{}", watched.err);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(json).expect("written")).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let lines: Vec<String> = findings.iter().map(|f| f["access"]["stack"].to_string()).collect();
    // Loads, four ways into the kernel and back, fread, threads, a signal handler, uploads,
    // registered and mapped memory, memmove: each is seen where it happens.
    assert!(findings.iter().all(|f| f["host"] == true), "{report:#}");
    for function in
        ["loads", "handlers", "writes", "preads", "pipes", "freads", "fortified", "sockets", "worker", "on_user"]
    {
        assert!(lines.iter().any(|l| l.contains(function)), "{function}: {lines:#?}");
    }
    for function in ["uploads", "registered", "mapped", "columns", "small", "moves", "altstacks"] {
        assert!(lines.iter().any(|l| l.contains(function)), "{function}: {lines:#?}");
    }
    // `memmove` both loads and stores. Without single steps (aarch64) its page is open when it
    // stores.
    assert_eq!(findings.len(), if product::is_aarch64() { 22 } else { 23 }, "{lines:#?}");
}

#[test]
fn a_program_that_faults_still_dies_of_it_beside_protected_pages() {
    let Some(program) = compiled("programs/touches.cu", "shared", &[]) else { return };
    let ended = run::end(
        run::streamsan(["run", "--sim", "--host-accesses"]).arg(program).arg("dies").env_remove("LD_LIBRARY_PATH"),
    );
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(ended.status.signal(), Some(11), "{}{}", ended.out, ended.err);
}
