//! When MPI's calls are observed: the library for it (`libstreamsan_mpi.so`) is loaded into
//! programs that may use MPI, and into no others.

use std::path::Path;
use std::process::Command;

use tests::run::end;
use tests::{build, product};

use super::mpi::{Mpi, built, has_toolkit, libraries, sim, source};

/// `host.cpp`, which is not linked with MPI.
fn built_host(cuda: bool) -> String {
    let toolkit = build::toolkit().unwrap_or_else(|error| panic!("{error}"));
    let (file, lib) = (source("host.cpp"), product::root().join(".toolkit/lib"));
    let mut args: Vec<String> = ["-g", "-Wall", "-o", "{out}"].map(String::from).into();
    args.extend(cuda.then(|| "-DCUDA".to_string()));
    args.extend([format!("-I{}", toolkit.join("include").display()), file.display().to_string()]);
    if cuda {
        args.extend([format!("-L{}", lib.display()), "-lcudart".into(), "-Wl,--allow-shlib-undefined".into()]);
    }
    args.push("-ldl".into());
    let made = build::cached("host", Path::new("g++"), &args, &[&file]).unwrap_or_else(|error| panic!("{error}"));
    made.display().to_string()
}

/// `cases.cu` as a library, with another name for its main function.
fn built_plugin(mpi: Mpi) -> String {
    let mut extra = vec![format!("-I{}", mpi.headers().display())];
    extra.extend(["-shared", "-Xcompiler=-fPIC", "-Dmain=plugin_main", "-Xlinker"].map(String::from));
    extra.extend(["--no-as-needed".into(), "-Xlinker".into(), mpi.library().display().to_string()]);
    extra.extend(["-Xlinker".into(), format!("-rpath-link={}", libraries().display())]);
    let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
    let made = build::cuda_program(&source("cases.cu"), "shared", &extra).unwrap_or_else(|error| panic!("{error}"));
    made.display().to_string()
}

/// The line of a report that says what was not observed.
const UNOBSERVED: &str = "not observed: MPI's calls (LD_PRELOAD lacks libstreamsan_mpi.so)";

/// mpi4py loads MPI long after the program has started.
#[test]
fn mpi_that_is_loaded_later_is_observed() {
    if !has_toolkit() {
        return;
    }
    let host = built_host(false);
    for mpi in Mpi::ALL {
        let plugin = built_plugin(mpi);
        let racy = sim(mpi, &[&host, &plugin, "send"]);
        assert_eq!((racy.code(), racy.out.as_str()), (Some(66), "observes MPI\ndone\n"), "{mpi:?}: {}", racy.err);
        assert!(racy.err.contains("access=MPI_Send "), "{mpi:?}: {}", racy.err);
        let fixed = sim(mpi, &[&host, &plugin, "send", "fixed"]);
        assert_eq!(fixed.code(), Some(0), "{mpi:?}: {}", fixed.err);
        assert!(!racy.err.contains(UNOBSERVED) && !fixed.err.contains(UNOBSERVED), "{mpi:?}: {}", fixed.err);
    }
}

/// A program that uses CUDA and names MPI nowhere gets none of MPI's names. If it loads MPI all the
/// same, the report says that its calls were not observed, and which library observes them.
#[test]
fn a_program_without_mpi_is_left_alone() {
    if !has_toolkit() || product::is_aarch64() {
        return;
    }
    let host = built_host(true);
    let alone = sim(Mpi::Open, &[&host]);
    assert_eq!((alone.code(), alone.out.as_str()), (Some(0), "does not observe MPI\n"), "{}", alone.err);
    assert!(!alone.err.contains("not observed"), "{}", alone.err);
    let symbols = Command::new("nm").args(["-D", "--defined-only"]).arg(product::shim()).output().expect("nm runs");
    let symbols = String::from_utf8_lossy(&symbols.stdout).to_lowercase();
    assert!(symbols.contains(" cumemalloc") && symbols.contains(" streamsan_mpi_link"), "{symbols}");
    assert!(!symbols.contains(" mpi_") && !symbols.contains(" pmpi_"), "{symbols}");
    let library = product::bin().join("libstreamsan_mpi.so").display().to_string();
    for mpi in Mpi::ALL {
        let plugin = built_plugin(mpi);
        for mode in ["racy", "fixed"] {
            let unseen = sim(mpi, &[&host, &plugin, "send", mode]);
            assert_eq!(unseen.out, "does not observe MPI\ndone\n", "{mpi:?} {mode}: {}", unseen.err);
            assert_eq!(unseen.err.matches(UNOBSERVED).count(), 1, "{mpi:?} {mode}: {}", unseen.err);
        }
        let streamsan = product::streamsan().display().to_string();
        let words = ["env", &format!("LD_PRELOAD={library}"), &streamsan, "--sim", &host, &plugin, "send"];
        let seen = end(&mut mpi.command(&words));
        assert_eq!((seen.code(), seen.out.as_str()), (Some(66), "observes MPI\ndone\n"), "{mpi:?}: {}", seen.err);
        assert!(!seen.err.contains(UNOBSERVED), "{mpi:?}: {}", seen.err);
    }
}

/// Without the launcher, the user names both libraries, in either order.
#[test]
fn plain_preload_takes_both_libraries() {
    if !has_toolkit() {
        return;
    }
    let (shim, library) = (product::shim().display().to_string(), product::bin().join("libstreamsan_mpi.so"));
    let (library, folder) = (library.display().to_string(), product::bin().join("sim").display().to_string());
    for mpi in Mpi::ALL {
        let program = built(mpi, "cases.cu", &[]);
        let preloaded = |preload: &str| {
            let script = format!("LD_LIBRARY_PATH={folder}:$LD_LIBRARY_PATH LD_PRELOAD={preload} exec \"$@\"");
            end(&mut mpi.command(&["sh", "-c", &script, "sh", &program, "send"]))
        };
        let alone = preloaded(&shim);
        assert!(alone.out.contains("done") && alone.err.contains(UNOBSERVED), "{mpi:?}: {}", alone.err);
        for both in [format!("{shim}:{library}"), format!("{library}:{shim}")] {
            let ended = preloaded(&both);
            assert!(ended.err.contains("DATA RACE: read-after-write (certain)"), "{mpi:?} {both}: {}", ended.err);
            assert!(ended.err.contains("access=MPI_Send "), "{mpi:?} {both}: {}", ended.err);
            assert!(!ended.err.contains(UNOBSERVED), "{mpi:?} {both}: {}", ended.err);
        }
    }
}

/// The two libraries of two releases say so in one line, and the program runs on.
#[test]
fn libraries_of_two_releases_do_not_link() {
    let program = build::c_program("mpi/other_version.c", &[]);
    let shim = build::c_program("mpi/other_version.c", &["-shared", "-fPIC", "-DSHIM"]);
    let refused = end(&mut tests::run::preloaded(&program, ""));
    assert_eq!((refused.out.as_str(), refused.err.as_str()), ("refused\n", ""));
    let library = product::bin().join("libstreamsan_mpi.so");
    let mut command = tests::run::command(&program);
    command.env("LD_PRELOAD", format!("{}:{}", shim.display(), library.display()));
    let ended = end(&mut command);
    assert!(ended.out.starts_with("asked with version 1 and ") && ended.out.ends_with("refused\n"), "{}", ended.out);
    let line = "streamsan: libstreamsan_mpi.so does not fit libstreamsan.so (another version): MPI's calls are not \
                observed\n";
    assert_eq!(ended.err, line);
}
