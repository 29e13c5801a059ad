//! Which device the simulated GPU is, by the code that a program was built with, and what follows
//! from its compute capability.

use std::path::PathBuf;

use tests::{build, run};

/// A program of `programs/sim`, built for one architecture. `None`: there is no compiler.
fn built(name: &str, arch: &str) -> Option<PathBuf> {
    // The last architecture counts.
    build::cuda_program_if_possible(&format!("sim/{name}.cu"), "shared", &[&format!("-arch={arch}")])
}

/// Runs it with arguments. `device`: as a user names it; empty: as the program was built.
fn sim(program: &PathBuf, device: &str, args: &[&str]) -> run::Ended {
    let mut command = run::streamsan(["run", "--sim", "--error-exitcode", "66", "--"]);
    command.arg(program).args(args).env_remove("LD_LIBRARY_PATH").env_remove("STREAMSAN_SIM");
    if !device.is_empty() {
        command.env("STREAMSAN_SIM", format!("arch={device}"));
    }
    run::end(&mut command)
}

/// Two streams that read one table: silent whatever the program was built for, on a device that its
/// code runs on. Its twin writes.
#[test]
fn the_device_is_what_the_program_was_built_for() {
    for (arch, device) in [("sm_75", "sm_80"), ("sm_80", "sm_80"), ("sm_90", "sm_90"), ("sm_90a", "sm_90")] {
        let Some(program) = built("table", arch) else { return };
        let ended = sim(&program, "", &[]);
        assert_eq!((ended.code(), ended.out.trim()), (Some(0), device), "{arch}: {}", ended.err);
        assert!(!ended.err.contains("unknown launches"), "{arch}: {}", ended.err);
        let racy = sim(&program, "", &["racy"]);
        assert_eq!((racy.code(), racy.out.trim()), (Some(66), device), "{arch}: {}", racy.err);
        assert!(racy.err.contains("write-after-read (certain)"), "{arch}: {}", racy.err);
    }
}

/// A device that was asked for is taken as it is, and refuses what does not run on it as a driver
/// does.
#[test]
fn a_device_that_was_asked_for_refuses_other_code() {
    let Some(program) = built("table", "sm_90") else { return };
    let newer = sim(&program, "120", &[]);
    assert_eq!((newer.code(), newer.out.trim()), (Some(0), "sm_120"), "{}", newer.err);
    let older = sim(&program, "80", &[]);
    assert!(older.code().is_some_and(|code| code != 0 && code != 66), "{}", older.err);
    assert!(older.err.contains("made for sm_90, which does not run on the simulated sm_80"), "{}", older.err);
    assert!(older.err.contains("no kernel image is available for execution on the device"), "{}", older.err);
    assert!(!older.err.contains("DATA RACE"), "{}", older.err);
}

/// Libraries hold machine code for each generation, and PTX for what comes after the newest. That
/// is no code for an older device.
#[test]
fn code_for_a_newer_device_is_not_taken() {
    let codes = ["-arch=compute_80", "-code=sm_80", "-gencode=arch=compute_90,code=compute_90"];
    let Some(program) = build::cuda_program_if_possible("sim/which_code.cu", "shared", &codes) else { return };
    for (device, code) in [("80", "800"), ("86", "800"), ("90", "900")] {
        let ended = sim(&program, device, &[]);
        let expected = format!("{code} no error");
        assert_eq!((ended.code(), ended.out.trim()), (Some(0), expected.as_str()), "sm_{device}: {}", ended.err);
    }
}

/// The attribute that CUB's merge sort sets on every device orders nothing away below 9.0, nor
/// behind a kernel that does not trigger: code for older devices can not.
#[test]
fn kernels_overlap_from_compute_capability_9_on() {
    let (Some(old), Some(new)) = (built("overlap", "sm_80"), built("overlap", "sm_90")) else { return };
    for (program, device, how, races) in [
        (&old, "", "attribute", false),
        (&old, "89", "attribute", false),
        (&old, "90", "attribute", false),
        (&new, "", "attribute", true),
        (&new, "", "waits", false),
        (&old, "", "event", false),
        (&new, "", "event", true),
        (&new, "", "event-waits", false),
    ] {
        let ended = sim(program, device, &[how]);
        let name = program.display();
        assert_eq!(ended.code(), Some(if races { 66 } else { 0 }), "{name} {device} {how}: {}", ended.err);
        assert_eq!(ended.out, "32766\n", "{name} {device} {how}");
        assert_eq!(ended.err.contains("read-after-write (certain)"), races, "{name} {device} {how}: {}", ended.err);
    }
}

/// An edge of a graph with a port orders nothing for a kernel that never waits, in whichever way it
/// was made; below 9.0 it is an edge like any other.
#[test]
fn edges_keep_their_ports() {
    let (Some(old), Some(new)) = (built("edges", "sm_80"), built("edges", "sm_90")) else { return };
    for (how, port) in [
        ("capture", 1),
        ("update", 1),
        ("event", 1),
        ("completion", 2),
        ("dependencies", 1),
        ("launch_order", 2),
        ("node", 1),
        ("clone", 1),
        ("plain", 0),
    ] {
        for (program, waits, races) in [(&old, false, false), (&new, false, port != 0), (&new, true, false)] {
            let words = [how, "waits"];
            let ended = sim(program, "", &words[..if waits { 2 } else { 1 }]);
            let name = program.display();
            assert_eq!(ended.code(), Some(if races { 66 } else { 0 }), "{name} {how} {waits}: {}", ended.err);
            assert_eq!(ended.out, format!("1 edge from port {port}, 32766\n"), "{name} {how} {waits}");
            assert_eq!(ended.err.contains("read-after-write (certain)"), races, "{name} {how} {waits}: {}", ended.err);
        }
    }
}

/// Machine code for 9.0 has instructions of its own, and its driver lays out a launch's constants
/// in its own way: results are those of the PTX of the same kernels, which another front end
/// executes.
#[test]
fn machine_code_for_9_computes_what_its_ptx_computes() {
    let Some(program) = built("hopper", "sm_90") else { return };
    let outputs = ["code=ptx", "code=sass", "code=sass:compile=off"].map(|code| {
        let mut command = run::streamsan(["run", "--sim", "--"]);
        let ended = run::end(command.arg(&program).env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", code));
        assert_eq!(ended.code(), Some(0), "{code}: {}", ended.err);
        assert_eq!(ended.out.matches(" no error\n").count(), 6, "{code}: {}", ended.out);
        ended.out
    });
    assert_eq!(outputs[1], outputs[0]);
    assert_eq!(outputs[2], outputs[0]);
}

/// Blocks of clusters share memory: results are the host's, as PTX, as machine code and with the
/// launches' addresses recorded. The copy of the last one races, or waits.
#[test]
fn blocks_of_a_cluster_share_memory() {
    let Some(program) = built("clusters", "sm_90") else { return };
    let right = "histogram right\nring of 1 right, fits\nring of 3 right, fits\nring of 6 right, fits\n\
                 ring of 8 right, fits\nsixteen: cudaErrorInvalidClusterSize, cudaSuccess, right\n\
                 odd: cudaErrorInvalidClusterSize\nmirror right\n";
    for code in ["code=ptx", "code=sass", "code=sass:workers=3"] {
        for (way, options, exit) in
            [("clean", &[][..], 0), ("race", &[], 66), ("clean", &["--exact"], 0), ("race", &["--exact"], 66)]
        {
            let mut command = run::streamsan(["run", "--sim", "--no-stacks", "--error-exitcode", "66"]);
            command.args(options).arg("--").arg(&program).arg(way);
            let ended = run::end(command.env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", code));
            assert_eq!((ended.code(), &*ended.out), (Some(exit), right), "{code} {way} {options:?}: {}", ended.err);
            assert!(!ended.err.contains("unknown launches"), "{code} {way}: {}", ended.err);
        }
    }
}

/// The answers of an H200 (driver 580), whichever code runs: machine code for 9.0 has a section of
/// shared memory that begins with what is reserved for the system.
#[test]
fn shared_memory_has_a_devices_limits_in_both_codes() {
    let Some(program) = built("shared_limits", "sm_90") else { return };
    for code in ["90:code=ptx", "90:code=sass"] {
        let ended = sim(&program, code, &[]);
        assert_eq!(ended.code(), Some(0), "{code}: {}", ended.err);
        let lines: Vec<&str> = ended.out.lines().collect();
        let most = "231424 232192 232193 232448 -1";
        assert_eq!(lines[0], format!("none: 0, dynamic 49152: {most}"), "{code}");
        assert_eq!(lines[1], "some: 256, dynamic 48896: 231424 232192 -1 -1 -1", "{code}");
        assert_eq!(lines[2], format!("alone: 0, dynamic 49152: {most}"), "{code}");
    }
}
