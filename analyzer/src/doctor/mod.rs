//! `streamsan doctor`: whether StreamSan can check programs on this machine.
//!
//! Owns the list of checks, their order and their lines. The main check is a run: a small program
//! with a few CUDA calls ([`probe`]) runs bare, under StreamSan, and under StreamSan on the
//! simulated GPU. Changes nothing on the machine.

mod child;
mod machine;
mod probe;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::launcher::process::beside;
use child::ProbeRun;
use detect::launches::image_reader::cache_folder;
use report::words::counted;
use settings::Options;
use system::descriptors;

/// Prints what the probe found, for the doctor's own use.
pub(crate) fn probe() -> String {
    probe::run()
}

/// How a check came out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Grade {
    Ok,
    /// Something that works elsewhere does not work here; what is there can be used.
    Note,
    /// Programs cannot be checked.
    Fail,
}

/// The result of one check: its grade, its subject and a line.
struct Finding(Grade, &'static str, String);

/// Free space from which on nothing is said of it: a long recording takes some GiB.
const ENOUGH_SPACE: u64 = 10 << 30;

/// Bytes that are written to find out whether there is room for temporary files.
const NEEDED_TEMPORARY: usize = 1 << 20;

/// Descriptors that a run needs beside the program's own (the sockets, the ring, the trace).
const DESCRIPTORS: u64 = 64;

/// Makes all checks. Returns the lines, and whether programs can be checked.
/// `no_gpu`: why a program cannot find a GPU here, if that is known. `configured`: the
/// configuration file of runs in the working directory, or what is wrong with it.
pub(crate) fn examine(no_gpu: Option<&str>, configured: Result<Option<PathBuf>, String>) -> (String, bool) {
    let mut findings = vec![
        Finding(Grade::Ok, "streamsan", format!("{} for {}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH)),
        files(),
        environment(),
        configuration(configured),
        Finding(Grade::Ok, "system", machine::system()),
    ];
    let bare = child::bare();
    let driver = driver(&bare, no_gpu);
    let has_gpu = driver.0 == Grade::Ok;
    findings.push(driver);
    let simulator = beside("sim/libcuda.so.1").is_ok();
    if has_gpu {
        findings.push(run("gpu", &child::checked(&[])));
    }
    findings.push(match simulator {
        true => run("simulator", &child::checked(&["--sim"])),
        false => {
            let needed = "without it, programs run on a GPU only (scripts/build makes it)";
            Finding(Grade::Note, "simulator", format!("not installed beside streamsan: {needed}"))
        }
    });
    if !has_gpu && !simulator {
        findings.push(Finding(Grade::Fail, "gpu", "there is neither a GPU nor the simulated one".to_owned()));
    }
    findings.push(Finding(Grade::Ok, "sees", sees(has_gpu, simulator)));
    findings.extend([exact(), open_files(), space(), temporary(), cache()]);
    let mut text = String::new();
    for Finding(grade, subject, line) in &findings {
        let word = match grade {
            Grade::Ok => "ok",
            Grade::Note => "note",
            Grade::Fail => "FAIL",
        };
        let _ = writeln!(text, "{word:4}  {subject:11}  {line}");
    }
    (text, findings.iter().all(|finding| finding.0 != Grade::Fail))
}

/// The files of StreamSan beside the program.
fn files() -> Finding {
    let shim = match beside("libstreamsan.so") {
        Ok(shim) => shim,
        Err(error) => return Finding(Grade::Fail, "files", error.to_string()),
    };
    let optional = ["libstreamsan_threads.so", "libstreamsan_host.so", "libstreamsan_mpi.so"];
    let missing: Vec<&str> = optional.into_iter().filter(|name| beside(name).is_err()).collect();
    let folder = shim.parent().unwrap_or(Path::new(".")).display();
    match missing.is_empty() {
        true => Finding(Grade::Ok, "files", format!("all libraries are in {folder}")),
        false => {
            let line = format!("{} missing in {folder}: options that need them are refused", missing.join(", "));
            Finding(Grade::Note, "files", line)
        }
    }
}

/// What runs see here, with the options that see more.
fn sees(has_gpu: bool, simulator: bool) -> String {
    let on = match (has_gpu, simulator) {
        (true, true) => " on the GPU, and with --sim on the simulated one",
        (true, false) => " on the GPU",
        (false, true) => " with --sim, on the simulated GPU",
        (false, false) => ", but no device runs them",
    };
    let more = [
        (beside("libstreamsan.so").is_ok(), "what the host loads and stores (--host-accesses)"),
        (beside("libstreamsan_threads.so").is_ok(), "how host threads wait for each other (--host-order threads)"),
        (beside("libstreamsan_mpi.so").is_ok(), "what MPI sends and receives"),
        (simulator, "races inside kernels (--sim --inside)"),
    ];
    let more: Vec<&str> = more.into_iter().filter(|(there, _)| *there).map(|(_, what)| what).collect();
    let more = if more.is_empty() { "nothing else".to_owned() } else { more.join(", ") };
    format!("CUDA calls and the bytes of kernels{on}; besides, {more}")
}

/// Variables that change what runs do.
fn environment() -> Finding {
    let mut options = Options::default();
    let given = std::env::var_os("STREAMSAN_OPTIONS").unwrap_or_default();
    let wrong = options.read_env(given.as_encoded_bytes());
    if let Some(first) = wrong.first() {
        return Finding(Grade::Fail, "environment", format!("in STREAMSAN_OPTIONS: {first}"));
    }
    let set: Vec<&str> = ["STREAMSAN_OPTIONS", "STREAMSAN_SIM", "STREAMSAN_CACHE", "LD_PRELOAD"]
        .into_iter()
        .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
        .collect();
    match set.is_empty() {
        true => Finding(Grade::Ok, "environment", "no variable changes the defaults".to_owned()),
        false => Finding(Grade::Note, "environment", format!("{} set: runs follow it", set.join(", "))),
    }
}

/// The file that holds the options of runs here.
fn configuration(read: Result<Option<PathBuf>, String>) -> Finding {
    match read {
        Ok(None) => Finding(Grade::Ok, "options", "no streamsan.toml here or above: the defaults hold".to_owned()),
        Ok(Some(file)) => Finding(Grade::Ok, "options", format!("runs here follow {}", file.display())),
        Err(error) => Finding(Grade::Fail, "options", error),
    }
}

/// What the driver of this machine says.
fn driver(bare: &ProbeRun, no_gpu: Option<&str>) -> Finding {
    let version = bare.word(probe::VERSION).map_or_else(String::new, |version| format!("CUDA {version}, "));
    let devices: Vec<&str> = bare.words(probe::DEVICE).collect();
    if bare.has(probe::USED) {
        let number = counted(devices.len() as u64, "device", "devices");
        return Finding(Grade::Ok, "driver", format!("{version}{number}: {}", devices.join(", ")));
    }
    let why = match (no_gpu, bare.word(probe::ERROR)) {
        (Some(why), _) => why.to_owned(),
        (None, Some(error)) => format!("{version}but {error}"),
        (None, None) => format!("the driver ended the probe ({})", bare.end()),
    };
    Finding(Grade::Note, "driver", format!("{why}; 'streamsan --sim' runs programs on the simulated GPU"))
}

/// A run of the probe under StreamSan.
fn run(subject: &'static str, ran: &ProbeRun) -> Finding {
    if ran.is_clean() && ran.has(probe::USED) {
        let on = ran.words(probe::DEVICE).next().unwrap_or("a device");
        return Finding(Grade::Ok, subject, format!("a probe on {on} was run and checked"));
    }
    let why = ran.word(probe::ERROR).map(str::to_owned).or_else(|| ran.said()).unwrap_or_else(|| ran.end());
    Finding(Grade::Fail, subject, format!("a probe could not be checked: {why}"))
}

/// What `--exact` needs on a GPU.
fn exact() -> Finding {
    let asked = settings::ExactOptions { kernels: Some(String::new()), ..settings::ExactOptions::default() };
    let shim = beside("libstreamsan.so").unwrap_or_default();
    let folder = shim.parent().unwrap_or(Path::new(""));
    match crate::launcher::exact_setup::shim_options(&asked, folder, false, false) {
        Ok(_) => Finding(Grade::Ok, "exact mode", "--exact and --confirm can measure on a GPU".to_owned()),
        Err(why) => Finding(Grade::Note, "exact mode", format!("on a GPU, {why}")),
    }
}

/// How many files a run may have open.
fn open_files() -> Finding {
    match descriptors::limit() {
        Some(limit) if limit < DESCRIPTORS => {
            let line = format!("only {limit} open files are allowed: raise it with 'ulimit -n 1024'");
            Finding(Grade::Note, "limits", line)
        }
        Some(limit) => Finding(Grade::Ok, "limits", format!("{limit} open files are allowed")),
        None => Finding(Grade::Note, "limits", "the system does not say how many open files are allowed".to_owned()),
    }
}

/// Free space for traces in the working directory.
fn space() -> Finding {
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let free = match child::free_space(&folder) {
        Ok(free) => free,
        Err(error) => return Finding(Grade::Note, "space", format!("{}: {error}", folder.display())),
    };
    let (gib, shown) = (free >> 30, folder.display());
    match free < ENOUGH_SPACE {
        true => {
            let line = format!("{} MiB free in {shown}: long recordings need '--keep-last'", free >> 20);
            Finding(Grade::Note, "space", line)
        }
        false => Finding(Grade::Ok, "space", format!("{gib} GiB free for traces in {shown}")),
    }
}

/// Whether temporary files can be made, and have room: a hunt keeps there what its programs print.
fn temporary() -> Finding {
    let folder = std::env::temp_dir();
    let shown = folder.display();
    let made = system::private_file::folder("streamsan-doctor-").and_then(|made| {
        let written = std::fs::write(made.join("probe"), vec![0; NEEDED_TEMPORARY]);
        std::fs::remove_dir_all(&made)?;
        written
    });
    match made {
        Ok(()) => Finding(Grade::Ok, "temporary", format!("files can be made in {shown}")),
        Err(error) => {
            Finding(Grade::Note, "temporary", format!("{shown}: {error}; TMPDIR names another place for 'hunt'"))
        }
    }
}

/// The folder of kernel summaries.
fn cache() -> Finding {
    let again = "each run analyses kernels again";
    let Some(folder) = cache_folder(None) else {
        return Finding(Grade::Note, "cache", format!("kernel summaries are kept nowhere: {again}"));
    };
    match child::is_writable(&folder) {
        true => Finding(Grade::Ok, "cache", format!("kernel summaries are kept in {}", folder.display())),
        false => Finding(Grade::Note, "cache", format!("{} cannot be written: {again}", folder.display())),
    }
}
