//! MPI's calls under Debian's Open MPI and MPICH, and an MPICH with the interface of MPI 5, on the
//! simulated GPU: races, their mended twins, and the reports of several ranks. `scripts/mpi`
//! fetches the libraries; `programs/mpi` holds the programs.
//!
//! `STREAMSAN_NO_TOOLKIT=1` says that CUDA's compiler is missing, and skips them; so does a machine
//! without `apt-get`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tests::run::{Ended, end};
use tests::{build, product};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mpi {
    Open,
    Mpich,
    /// The interface of MPI 5, by MPICH.
    Five,
}

impl Mpi {
    pub(super) const ALL: [Self; 2] = [Self::Open, Self::Mpich];

    fn name(self) -> &'static str {
        match self {
            Self::Open => "openmpi",
            Self::Mpich => "mpich",
            Self::Five => "five",
        }
    }

    pub(super) fn headers(self) -> PathBuf {
        libraries().join(match self {
            Self::Open => "openmpi/include",
            Self::Mpich => "../../include/x86_64-linux-gnu/mpich",
            Self::Five => "../../../../five/include",
        })
    }

    pub(super) fn library(self) -> PathBuf {
        libraries().join(match self {
            Self::Open => "libmpi.so.40",
            Self::Mpich => "libmpich.so.12",
            Self::Five => "../../../../five/lib/libmpi_abi.so.1",
        })
    }

    /// What Fortran programs are linked with.
    fn fortran(self) -> Vec<PathBuf> {
        let names: &[&str] = match self {
            Self::Open => &["libmpi_usempif08.so.40", "libmpi_mpifh.so.40"],
            Self::Mpich => &["libmpichfort.so.12"],
            Self::Five => &[],
        };
        names.iter().map(|name| libraries().join(name)).collect()
    }

    /// A command in the environment of this library: a shell sets it.
    pub(super) fn command(self, words: &[&str]) -> Command {
        let mut command = tests::run::command("bash");
        // The fake driver is not for these programs.
        command.env_remove("LD_LIBRARY_PATH").env_remove("STREAMSAN_SIM");
        // Processes of Open MPI that start without a launcher have one session directory for the
        // whole machine, and the first one that ends removes it from under the next (4.1.4: four
        // loops of programs with nothing but MPI_Init failed 4 times in 240).
        let script = ". \"$0\" \"$1\"; shift
            OMPI_MCA_orte_tmpdir_base=$(mktemp -d) && export OMPI_MCA_orte_tmpdir_base || exit
            \"$@\"; code=$?; rm -rf \"$OMPI_MCA_orte_tmpdir_base\"; exit $code";
        let env = if self == Self::Five { "env5" } else { "env" };
        command.args(["-c", script]).arg(root().join(env)).arg(self.name()).args(words);
        command
    }
}

/// What `scripts/mpi` has unpacked. Each command needs it several times.
fn root() -> PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(unpacked).clone()
}

/// As [`root`], asked again.
fn unpacked() -> PathBuf {
    let _held = build::lock(&build::cache().join("mpi.lock")).unwrap_or_else(|error| panic!("{error}"));
    let made = Command::new(product::root().join("scripts/mpi")).output().expect("scripts/mpi runs");
    assert!(made.status.success(), "scripts/mpi: {}", String::from_utf8_lossy(&made.stderr));
    PathBuf::from(String::from_utf8_lossy(&made.stdout).trim())
}

pub(super) fn libraries() -> PathBuf {
    root().join("root/usr/lib/x86_64-linux-gnu")
}

/// Whether there is a compiler, and something that fetches Debian's packages.
pub(super) fn has_toolkit() -> bool {
    let apt = Command::new("apt-get").arg("--version").output().is_ok_and(|made| made.status.success());
    apt && std::env::var_os("STREAMSAN_NO_TOOLKIT").is_none_or(|value| value != "1")
}

pub(super) fn source(name: &str) -> PathBuf {
    build::programs().join("mpi").join(name)
}

/// A program, linked with these libraries in this order and the MPI library behind them.
pub(super) fn built(mpi: Mpi, name: &str, front: &[PathBuf]) -> String {
    let mut extra = vec![format!("-I{}", mpi.headers().display())];
    let folder = libraries();
    for library in front.iter().chain([&mpi.library()]) {
        extra.extend(["-Xlinker".into(), "--no-as-needed".into(), "-Xlinker".into(), library.display().to_string()]);
    }
    extra.extend(["-Xlinker".into(), format!("-rpath-link={}", folder.display())]);
    let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
    let program = build::cuda_program(&source(name), "shared", &extra).unwrap_or_else(|error| panic!("{error}"));
    program.display().to_string()
}

/// `rows.cpp` for this library; it has no device code.
fn built_rows(mpi: Mpi, large: bool) -> String {
    let toolkit = build::toolkit().unwrap_or_else(|error| panic!("{error}"));
    let (file, folder) = (source("rows.cpp"), libraries());
    let mut args: Vec<String> = ["-std=c++17", "-g", "-Wall", "-o", "{out}"].map(String::from).into();
    args.extend(large.then(|| "-DLARGE".to_string()));
    args.extend([mpi.headers(), toolkit.join("include")].map(|path| format!("-I{}", path.display())));
    args.extend(["OMPI_SKIP_MPICXX", "MPICH_SKIP_MPICXX"].map(|name| format!("-D{name}")));
    args.extend([file.display().to_string(), mpi.library().display().to_string()]);
    let lib = product::root().join(".toolkit/lib");
    args.extend([format!("-L{}", lib.display()), "-lcudart".into(), "-Wl,--allow-shlib-undefined".into()]);
    args.push(format!("-Wl,-rpath-link={}", folder.display()));
    let made = build::cached("rows", Path::new("g++"), &args, &[&file]).unwrap_or_else(|error| panic!("{error}"));
    made.display().to_string()
}

/// The stand-in for a CUDA-aware library, which goes in front of one that is not.
fn cuda_aware(mpi: Mpi) -> PathBuf {
    let toolkit = build::toolkit().unwrap_or_else(|error| panic!("{error}"));
    let file = source("cuda_aware.c");
    let mut args: Vec<String> = ["-O1", "-g", "-Wall", "-fPIC", "-shared", "-o", "{out}"].map(String::from).into();
    args.extend([format!("-I{}", mpi.headers().display()), format!("-I{}", toolkit.join("include").display())]);
    args.push(file.display().to_string());
    build::cached("libcuda_aware.so", Path::new("gcc"), &args, &[&file]).unwrap_or_else(|error| panic!("{error}"))
}

fn simulated(mpi: Mpi, words: &[&str]) -> Command {
    let streamsan = product::streamsan().display().to_string();
    let all: Vec<&str> = [streamsan.as_str(), "--sim"].into_iter().chain(words.iter().copied()).collect();
    mpi.command(&all)
}

pub(super) fn sim(mpi: Mpi, words: &[&str]) -> Ended {
    end(&mut simulated(mpi, words))
}

/// As [`sim`], of one process that starts no other. Without a launcher Open MPI would start its
/// daemon for it, which takes as long as a case; [`all_rows`] has it.
fn alone(mpi: Mpi, words: &[&str]) -> Ended {
    end(simulated(mpi, words).env("OMPI_MCA_ess_singleton_isolated", "1"))
}

/// One finding of this kind, with this call on one side; none in the twin.
fn judged(mpi: Mpi, program: &str, name: &str, hazard: &str, call: &str) {
    let racy = alone(mpi, &[program, name]);
    assert_eq!((racy.code(), racy.out.as_str()), (Some(66), "done\n"), "{mpi:?} {name}: {}", racy.err);
    assert!(racy.err.contains("SUMMARY: 1 finding (1 certain, 0 likely)"), "{mpi:?} {name}: {}", racy.err);
    assert!(racy.err.contains(&format!("DATA RACE: {hazard} (certain)")), "{mpi:?} {name}: {}", racy.err);
    let sides = [format!("access={call} "), format!("previous={call} ")];
    assert!(sides.iter().any(|side| racy.err.contains(side)), "{mpi:?} {name}: {}", racy.err);
    assert!(racy.err.contains(" host=yes "), "{mpi:?} {name}: {}", racy.err);
    let fixed = alone(mpi, &[program, name, "fixed"]);
    assert_eq!((fixed.code(), fixed.out.as_str()), (Some(0), "done\n"), "{mpi:?} {name}: {}", fixed.err);
    assert!(fixed.err.contains("SUMMARY: 0 findings"), "{mpi:?} {name}: {}", fixed.err);
}

const READ_AFTER_WRITE: &str = "read-after-write";
const WRITE_AFTER_WRITE: &str = "write-after-write";
const WRITE_AFTER_READ: &str = "write-after-read";

/// Cases of `cases.cu`: their hazard, and the function of MPI in the finding.
const CASES: [(&str, &str, &str); 38] = [
    ("send", READ_AFTER_WRITE, "MPI_Send"),
    ("send-pinned", READ_AFTER_WRITE, "MPI_Send"),
    ("ssend", READ_AFTER_WRITE, "MPI_Ssend"),
    ("recv", WRITE_AFTER_READ, "MPI_Recv"),
    ("recv-pinned", WRITE_AFTER_READ, "MPI_Recv"),
    ("isend", WRITE_AFTER_READ, "MPI_Isend"),
    ("irecv", READ_AFTER_WRITE, "MPI_Irecv"),
    ("devicesync", WRITE_AFTER_WRITE, "MPI_Irecv"),
    ("test", READ_AFTER_WRITE, "MPI_Irecv"),
    ("waitall", WRITE_AFTER_WRITE, "MPI_Irecv"),
    ("waitany", WRITE_AFTER_WRITE, "MPI_Irecv"),
    ("waitsome", WRITE_AFTER_WRITE, "MPI_Irecv"),
    ("testall", WRITE_AFTER_WRITE, "MPI_Irecv"),
    ("testany", WRITE_AFTER_WRITE, "MPI_Irecv"),
    ("sendrecv", READ_AFTER_WRITE, "MPI_Sendrecv"),
    ("replace", WRITE_AFTER_READ, "MPI_Sendrecv_replace"),
    ("persistent", READ_AFTER_WRITE, "MPI_Recv_init"),
    ("startall", WRITE_AFTER_READ, "MPI_Send_init"),
    ("vector", READ_AFTER_WRITE, "MPI_Send"),
    ("subarray", READ_AFTER_WRITE, "MPI_Send"),
    ("struct", READ_AFTER_WRITE, "MPI_Send"),
    ("halves", READ_AFTER_WRITE, "MPI_Send"),
    ("nobody", READ_AFTER_WRITE, "MPI_Send"),
    ("bcast", READ_AFTER_WRITE, "MPI_Bcast"),
    ("allreduce", READ_AFTER_WRITE, "MPI_Allreduce"),
    ("reduce", WRITE_AFTER_WRITE, "MPI_Reduce"),
    ("iallreduce", WRITE_AFTER_WRITE, "MPI_Iallreduce"),
    ("gatherv", WRITE_AFTER_WRITE, "MPI_Gatherv"),
    ("allgather", WRITE_AFTER_WRITE, "MPI_Allgather"),
    ("alltoallw", WRITE_AFTER_WRITE, "MPI_Alltoallw"),
    ("put", WRITE_AFTER_READ, "MPI_Put"),
    ("get", WRITE_AFTER_WRITE, "MPI_Get"),
    ("accumulate", WRITE_AFTER_READ, "MPI_Accumulate"),
    ("rput", WRITE_AFTER_READ, "MPI_Rput"),
    ("flush", WRITE_AFTER_READ, "MPI_Put"),
    ("pack", READ_AFTER_WRITE, "MPI_Pack"),
    ("isend-pinned", WRITE_AFTER_READ, "MPI_Isend"),
    ("upload-pinned", WRITE_AFTER_READ, "MPI_Recv"),
];

fn all_cases(mpi: Mpi) {
    if !has_toolkit() {
        return;
    }
    let program = built(mpi, "cases.cu", &[]);
    for (name, hazard, call) in CASES {
        judged(mpi, &program, name, hazard, call);
    }
}

#[test]
fn calls_of_open_mpi_race_and_their_twins_are_silent() {
    all_cases(Mpi::Open);
}

#[test]
fn calls_of_mpich_race_and_their_twins_are_silent() {
    all_cases(Mpi::Mpich);
}

/// In place the root's own block stays where it is (MPI 4.1, 6.6): alone it sends nothing.
#[test]
fn a_root_scatters_in_place_what_is_for_others() {
    if !has_toolkit() {
        return;
    }
    for mpi in Mpi::ALL {
        let program = built(mpi, "cases.cu", &[]);
        let alone = sim(mpi, &[&program, "scatter-inplace"]);
        assert_eq!((alone.code(), alone.out.as_str()), (Some(0), "done\n"), "{mpi:?}: {}", alone.err);
        assert!(alone.err.contains("SUMMARY: 0 findings"), "{mpi:?}: {}", alone.err);
        let launcher = format!("mpirun.{}", mpi.name());
        let two = |words: &[&str]| sim(mpi, &[&[&launcher, "-n", "2", &program, "scatter-inplace"], words].concat());
        // The launcher may put one rank's text between the other's words and the end of its line.
        let both_done = |ended: &Ended| ended.out.matches("done").count() == 2;
        let (racy, fixed) = (two(&[]), two(&["fixed"]));
        assert_eq!((racy.code(), both_done(&racy)), (Some(66), true), "{mpi:?}: {}{}", racy.out, racy.err);
        assert!(racy.err.contains("DATA RACE: read-after-write (certain)"), "{mpi:?}: {}", racy.err);
        assert!(racy.err.contains("access=MPI_Scatter "), "{mpi:?}: {}", racy.err);
        assert_eq!((fixed.code(), both_done(&fixed)), (Some(0), true), "{mpi:?}: {}{}", fixed.out, fixed.err);
    }
}

/// The library's own copies neither race nor order: device memory, a blocking stream that these
/// copies wait for.
#[test]
fn the_transport_of_a_cuda_aware_library_is_its_own() {
    if !has_toolkit() {
        return;
    }
    for mpi in Mpi::ALL {
        let program = built(mpi, "cases.cu", &[cuda_aware(mpi)]);
        for (name, hazard, call) in [
            ("transport-device", READ_AFTER_WRITE, "MPI_Send"),
            ("irecv-device", READ_AFTER_WRITE, "MPI_Irecv"),
            ("recv-device", WRITE_AFTER_READ, "MPI_Recv"),
            ("allreduce-device", READ_AFTER_WRITE, "MPI_Allreduce"),
        ] {
            judged(mpi, &program, name, hazard, call);
        }
    }
}

/// What a Fortran compiler makes of calls: names in small letters with an underscore, everything by
/// reference, a last argument for the error.
#[test]
fn fortran_names_are_calls_too() {
    if !has_toolkit() {
        return;
    }
    for mpi in Mpi::ALL {
        let program = built(mpi, "fortran.cu", &mpi.fortran());
        judged(mpi, &program, "send", READ_AFTER_WRITE, "MPI_Send");
        judged(mpi, &program, "irecv", READ_AFTER_WRITE, "MPI_Irecv");
        judged(mpi, &program, "waitany", WRITE_AFTER_WRITE, "MPI_Irecv");
        judged(mpi, &program, "in-place", WRITE_AFTER_WRITE, "MPI_Gather");
        judged(mpi, &program, "bottom", READ_AFTER_WRITE, "MPI_Send");
        if mpi == Mpi::Open {
            judged(mpi, &program, "f08", READ_AFTER_WRITE, "MPI_Irecv");
        }
    }
}

/// Every function that touches memory, and every one that completes what others have begun: one
/// race for each, none in the twins. `large`: the functions with large counts.
fn all_rows(mpi: Mpi, large: bool, least: usize) {
    if !has_toolkit() {
        return;
    }
    let program = built_rows(mpi, large);
    let report = build::scratch("rows").join("report.json").display().to_string();
    let racy = sim(mpi, &["--json", &report, &program]);
    let rows: Vec<&str> = racy.out.lines().filter(|line| line.starts_with("MPI_")).collect();
    assert!(racy.out.ends_with("done\n") && rows.len() >= least, "{mpi:?} {}: {}{}", rows.len(), racy.out, racy.err);
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&report).expect("a report")).expect("JSON");
    let mut found: Vec<&str> = json["findings"].as_array().expect("findings").iter().map(finding_of).collect();
    let mut expected: Vec<&str> = rows.iter().map(|row| begun(row)).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{mpi:?} large {large}: {}", racy.err);
    let fixed = sim(mpi, &[&program, "fixed"]);
    assert_eq!(fixed.code(), Some(0), "{mpi:?} large {large}: {}", fixed.err);
    assert!(fixed.err.contains("SUMMARY: 0 findings"), "{mpi:?}: {}", fixed.err);
}

/// The function in the finding of a row: what completes a call is not there, the call is.
fn begun(row: &str) -> &str {
    match row {
        "MPI_Pready" | "MPI_Pready_range" | "MPI_Pready_list" => "MPI_Psend_init",
        "MPI_Parrived" => "MPI_Precv_init",
        _ if row.starts_with("MPI_Win_") => "MPI_Put",
        _ if ["MPI_Test", "MPI_Wait", "MPI_Request_"].iter().any(|start| row.starts_with(start)) => "MPI_Irecv",
        _ => row,
    }
}

/// The function of MPI in a finding.
fn finding_of(finding: &serde_json::Value) -> &str {
    let sides = [&finding["access"]["call"], &finding["previous"]["call"]];
    sides.into_iter().filter_map(|call| call.as_str()).find(|call| call.starts_with("MPI_")).unwrap_or("none")
}

#[test]
fn every_function_of_open_mpi_has_its_row() {
    all_rows(Mpi::Open, false, 110);
}

#[test]
fn every_function_of_mpich_has_its_row() {
    all_rows(Mpi::Mpich, false, 135);
    all_rows(Mpi::Mpich, true, 135);
}

#[test]
fn every_function_of_mpi_5_has_its_row() {
    all_rows(Mpi::Five, false, 138);
}

/// Tests read the environments while others ask for them: what is as it should be stays as it is.
#[test]
fn environments_are_not_written_again() {
    use std::os::unix::fs::MetadataExt;
    if !has_toolkit() {
        return;
    }
    let files = [root().join("env"), root().join("env5")];
    let state = || files.each_ref().map(|file| file.metadata().map(|file| (file.ino(), file.mtime_nsec())).unwrap());
    let before = state();
    unpacked();
    assert_eq!(state(), before);
}

/// One report for the ranks of a machine, whichever of the two starts the other, and no rank is
/// stopped before it has ended.
#[test]
fn ranks_make_one_report() {
    if !has_toolkit() {
        return;
    }
    let streamsan = product::streamsan().display().to_string();
    for mpi in Mpi::ALL {
        let (program, launcher) = (built(mpi, "ranks.cu", &[]), format!("mpirun.{}", mpi.name()));
        for (mode, code) in [("racy", 66), ("fixed", 0), ("fails", 3)] {
            let inner = end(&mut mpi.command(&[&launcher, "-n", "3", &streamsan, "--sim", &program, mode]));
            let outer = sim(mpi, &[&launcher, "-n", "3", &program, mode]);
            for ended in [inner, outer] {
                assert_eq!(ended.code(), Some(code), "{mpi:?} {mode}: {}", ended.err);
                let ranks = ended.out.lines().filter(|line| line.starts_with("rank ")).count();
                let reports: Vec<&str> = ended.err.lines().filter(|line| line.contains("SUMMARY: ")).collect();
                let found = if mode == "racy" { "1 finding (1 certain, 0 likely), 1 occurrence" } else { "0 findings" };
                assert_eq!((ranks, reports.len()), (3, 1), "{mpi:?} {mode}: {}{}", ended.out, ended.err);
                assert!(reports[0].contains(found) && reports[0].contains("3 processes"), "{mpi:?}: {}", reports[0]);
            }
        }
    }
}

/// Several machines: each rank records, and the traces are checked together.
#[test]
fn traces_of_ranks_are_checked_together() {
    if !has_toolkit() {
        return;
    }
    let folder = build::scratch("ranks");
    let streamsan = product::streamsan().display().to_string();
    let program = built(Mpi::Open, "ranks.cu", &[]);
    let trace = folder.join("%q{OMPI_COMM_WORLD_RANK}.trace").display().to_string();
    let words = ["mpirun.openmpi", "-n", "2", &streamsan, "record", "--sim", "-o", &trace, &program, "racy"];
    let ended = end(&mut Mpi::Open.command(&words));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let checked = end(&mut Mpi::Open.command(&[&streamsan, "check", &folder.display().to_string()]));
    assert_eq!(checked.code(), Some(66), "{}", checked.err);
    assert!(checked.err.contains("SUMMARY: 1 finding") && checked.err.contains("2 processes"), "{}", checked.err);
}
