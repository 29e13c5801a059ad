//! The stand-ins for CUDA's libraries: what they compute, and the races that their calls take part
//! in. `programs/blas` holds the programs; they declare what they call, so no header of CUDA's is
//! needed.

use std::path::{Path, PathBuf};

use tests::{build, product, run};

/// A program of `programs/blas`, linked with the simulator's libraries.
pub fn built(name: &str) -> PathBuf {
    built_for(name, 13)
}

/// The same for a version of CUDA.
fn built_for(name: &str, version: u32) -> PathBuf {
    let folder = build::programs().join("blas");
    let source = folder.join(format!("{name}.c"));
    let libraries = product::bin().join("sim");
    let mut args: Vec<String> = ["-O1", "-g", "-Wall", "-Werror", "-o", "{out}"].map(String::from).into();
    args.extend([source.display().to_string(), format!("-L{}", libraries.display())]);
    args.extend(["libcublas", "libcublasLt", "libcudart"].map(|library| format!("-l:{library}.so.{version}")));
    args.extend(["libcufft", "libcusolver"].map(|library| format!("-l:{library}.so.{}", version - 1)));
    args.push("-l:libcusparse.so.12".to_owned());
    args.extend(["-l:libcurand.so.10", "-l:libnccl.so.2", "-l:libcudnn.so.9", "-lm"].map(String::from));
    let headers = ["matrices.h", "operands.h", "solvers.h", "sparse.h"].map(|header| folder.join(header));
    let sources: Vec<&Path> = [&source].into_iter().chain(&headers).map(PathBuf::as_path).collect();
    build::cached(name, Path::new("gcc"), &args, &sources).unwrap_or_else(|e| panic!("{e}"))
}

pub fn sim(program: &Path, options: &[&str], args: &[&str]) -> run::Ended {
    let mut command = run::streamsan(["run", "--sim", "--error-exitcode", "66"]);
    command.args(options).arg("--").arg(program).args(args);
    run::end(command.env_remove("LD_LIBRARY_PATH").env_remove("STREAMSAN_SIM"))
}

fn sim_with(devices: u32, program: &Path, args: &[&str]) -> run::Ended {
    let mut command = run::streamsan(["run", "--sim", "--error-exitcode", "66", "--"]);
    command.arg(program).args(args).env_remove("LD_LIBRARY_PATH").env("STREAMSAN_SIM", format!("devices={devices}"));
    run::end(&mut command)
}

/// The number in front of a word.
pub fn number_before(text: &str, word: &str) -> Option<u32> {
    text.split_once(word)?.0.split_whitespace().last()?.parse().ok()
}

#[test]
fn cublas_computes_what_loops_compute() {
    for (name, least) in [("products", 1000), ("algebra", 1500)] {
        let ended = sim(&built(name), &[], &[]);
        assert_eq!(ended.code(), Some(0), "{name}: {}{}", ended.out, ended.err);
        let made = number_before(&ended.out, " comparisons, 0 failed");
        assert!(made.is_some_and(|made| made >= least), "{name}: {}", ended.out);
        assert!(!ended.out.contains("refused:"), "{name}: {}", ended.out);
        let calls = number_before(&ended.err, " calls of cuBLAS by the simulator's stand-in");
        assert!(calls.is_some_and(|calls| calls > 300), "{name}: {}", ended.err);
        assert!(ended.err.contains(" 0 unknown, "), "{name}: {}", ended.err);
    }
}

#[test]
fn cublas_of_cuda_12_is_the_same() {
    let program = built_for("products", 12);
    let bytes = std::fs::read(&program).expect("the program can be read");
    let names = |library: &str| bytes.windows(library.len()).any(|part| part == library.as_bytes());
    assert!(names("libcublas.so.12") && !names("libcublas.so.13"));
    let ended = sim(&program, &[], &[]);
    assert_eq!(ended.code(), Some(0), "{}{}", ended.out, ended.err);
    let made = number_before(&ended.out, " comparisons, 0 failed");
    assert!(made.is_some_and(|made| made >= 1000), "{}", ended.out);
}

/// The other way to run a kernel of a stand-in: its PTX, for the addresses, and then what computes.
#[test]
fn models_change_nothing_that_is_computed() {
    let log = build::scratch("models").join("addresses");
    for name in ["products", "algebra"] {
        let ended = sim(&built(name), &["--sim-addresses", &log.to_string_lossy()], &[]);
        assert_eq!(ended.code(), Some(0), "{name}: {}{}", ended.out, ended.err);
    }
    assert!(std::fs::read_to_string(&log).is_ok_and(|text| text.contains("streamsan_cublas")));
}

/// Program, hazard with confidence, and the function of cuBLAS in the finding.
const RACES: [(&str, &str, &str); 10] = [
    ("input", "write-after-read (certain)", "streamsan_cublasSgemm"),
    ("result", "read-after-write (certain)", "streamsan_cublasSgemm"),
    ("halves", "write-after-write (certain)", "streamsan_cublasSgemm"),
    ("padding", "write-after-write (certain)", "streamsan_cublasSgemm"),
    ("factor", "read-after-write (certain)", "streamsan_cublasSgemm"),
    ("dot", "write-after-write (certain)", "streamsan_cublasSdot"),
    ("workspace", "write-after-write (likely)", "streamsan_cublasSgemm"),
    ("addresses", "write-after-read (certain)", "streamsan_cublasSgemmBatched"),
    ("graph", "write-after-write (certain)", "streamsan_cublasSgemm"),
    ("models", "write-after-write (certain)", "streamsan_cublasSgemm"),
];

#[test]
fn races_of_cublas_calls_are_found_and_their_twins_are_silent() {
    let program = built("races");
    for (name, hazard, function) in RACES {
        let racy = sim(&program, &[], &[name]);
        assert_eq!(racy.code(), Some(66), "{name}: {}", racy.err);
        assert!(racy.err.contains(hazard) && racy.err.contains(function), "{name}: {}", racy.err);
        assert!(racy.err.contains(" 0 unknown, "), "{name}: {}", racy.err);
        // The stand-in's own frames are folded.
        assert!(!racy.err.contains("sim/libraries/src"), "{name}: {}", racy.err);
        let fixed = sim(&program, &[], &[name, "fixed"]);
        assert_eq!(fixed.code(), Some(0), "{name}: {}", fixed.err);
    }
}

#[test]
fn cufft_computes_what_sums_compute() {
    let ended = sim(&built("transforms"), &[], &[]);
    assert_eq!(ended.code(), Some(0), "{}{}", ended.out, ended.err);
    let made = number_before(&ended.out, " comparisons, 0 failed");
    assert!(made.is_some_and(|made| made >= 20_000), "{}", ended.out);
    let calls = number_before(&ended.err, " calls of cuFFT by the simulator's stand-in");
    assert!(calls.is_some_and(|calls| calls > 400), "{}", ended.err);
    assert!(ended.err.contains(" 0 unknown, "), "{}", ended.err);
}

/// Program, and the hazard with confidence.
const TRANSFORM_RACES: [(&str, &str); 8] = [
    ("input", "write-after-read (certain)"),
    ("output", "write-after-write (certain)"),
    ("in place", "write-after-write (certain)"),
    ("others", "write-after-write (certain)"),
    ("padding", "write-after-write (certain)"),
    ("destroyed", "(certain)"),
    ("readers", "write-after-write (certain)"),
    ("work area", "write-after-write (likely)"),
];

#[test]
fn races_of_transforms_are_found_and_their_twins_are_silent() {
    let program = built("transforms");
    for (name, hazard) in TRANSFORM_RACES {
        let racy = sim(&program, &[], &[name]);
        assert_eq!(racy.code(), Some(66), "{name}: {}{}", racy.out, racy.err);
        assert!(racy.err.contains(hazard) && racy.err.contains("streamsan_cufftExec"), "{name}: {}", racy.err);
        let fixed = sim(&program, &[], &[name, "fixed"]);
        assert_eq!(fixed.code(), Some(0), "{name}: {}{}", fixed.out, fixed.err);
    }
}

#[test]
fn curand_has_the_distributions_that_were_asked_for() {
    let program = built("numbers");
    let ended = sim(&program, &[], &[]);
    assert_eq!(ended.code(), Some(0), "{}{}", ended.out, ended.err);
    assert!(number_before(&ended.out, " comparisons, 0 failed").is_some_and(|made| made >= 40), "{}", ended.out);
    assert!(ended.err.contains(" calls of cuRAND by the simulator's stand-in"), "{}", ended.err);
    for kind in
        ["bits", "wide bits", "uniform", "uniform double", "normal", "normal double", "log-normal", "log-normal double"]
    {
        let racy = sim(&program, &[], &[kind]);
        assert_eq!(racy.code(), Some(66), "{kind}: {}{}", racy.out, racy.err);
        assert!(racy.err.contains("write-after-write (certain)"), "{kind}: {}", racy.err);
        let fixed = sim(&program, &[], &[kind, "fixed"]);
        assert_eq!(fixed.code(), Some(0), "{kind}: {}{}", fixed.out, fixed.err);
    }
}

/// Three ranks on one device, on three, and in three processes.
#[test]
fn nccl_computes_what_loops_compute() {
    let program = built("collectives");
    for (devices, args, outputs) in [(1, &[][..], 1), (3, &[], 1), (1, &["processes"], 3)] {
        let ended = sim_with(devices, &program, args);
        assert_eq!(ended.code(), Some(0), "{devices} {args:?}: {}{}", ended.out, ended.err);
        let good = ended.out.lines().filter(|line| line.ends_with(" comparisons, 0 failed")).count();
        assert_eq!(good, outputs, "{devices} {args:?}: {}", ended.out);
    }
}

#[test]
fn races_of_collectives_are_found_and_their_twins_are_silent() {
    let program = built("collectives");
    for devices in [1, 3] {
        let racy = sim_with(devices, &program, &["racy"]);
        assert_eq!(racy.code(), Some(66), "{devices}: {}", racy.err);
        assert!(racy.err.contains("Previous access: ncclAllReduce writes bytes 0 to 47 of 144"), "{}", racy.err);
        let ordered = sim_with(devices, &program, &["ordered"]);
        assert_eq!(ordered.code(), Some(0), "{devices}: {}", ordered.err);
    }
}

/// NCCL orders the operations of a communicator, not what else is on their streams.
#[test]
fn operations_of_a_communicator_follow_each_other_on_all_streams() {
    let program = built("collectives");
    for devices in [1, 3] {
        let serial = sim_with(devices, &program, &["serial"]);
        assert_eq!(serial.code(), Some(0), "{devices}: {}{}", serial.out, serial.err);
        assert!(serial.err.contains("SUMMARY: 0 findings"), "{}", serial.err);
        let overtaken = sim_with(devices, &program, &["overtaken"]);
        assert_eq!(overtaken.code(), Some(66), "{devices}: {}{}", overtaken.out, overtaken.err);
    }
}

/// NCCL makes one operation of a group: the streams of a communicator wait for each other.
#[test]
fn a_group_orders_the_streams_of_a_communicator() {
    let program = built("collectives");
    for devices in [1, 3] {
        let apart = sim_with(devices, &program, &["apart"]);
        assert_eq!(apart.code(), Some(66), "{devices}: {}", apart.err);
        let together = sim_with(devices, &program, &["together"]);
        assert_eq!(together.code(), Some(0), "{devices}: {}{}", together.out, together.err);
        assert!(together.err.contains("SUMMARY: 0 findings"), "{}", together.err);
    }
}

/// Each with a race: what it is, and the launch's name.
const CONVOLUTIONS: [(&str, &str, &str); 5] = [
    ("forward", "read-after-write (certain)", "kernel streamsan_cudnnConvolutionForward, "),
    ("filter", "read-after-write (certain)", "kernel streamsan_cudnnConvolutionBackwardFilter, "),
    ("data", "read-after-write (certain)", "kernel streamsan_cudnnConvolutionBackwardData, "),
    ("bias", "read-after-write (certain)", "kernel streamsan_cudnnConvolutionForward, "),
    ("stride", "write-after-read (certain)", "kernel streamsan_cudnnConvolutionForward, "),
];

#[test]
fn convolutions_of_cudnn_compute_what_loops_compute_and_race() {
    let program = built("convolutions");
    for (what, hazard, function) in CONVOLUTIONS {
        let fixed = sim(&program, &["--pedantic"], &[what]);
        assert_eq!(fixed.code(), Some(0), "{what}: {}{}", fixed.out, fixed.err);
        let compared = number_before(&fixed.out, " comparisons, 0 failed");
        assert!(what == "stride" || compared.is_some_and(|made| made > 100), "{what}: {}", fixed.out);
        assert!(fixed.err.contains("NOTE: 1 call of cuDNN by the simulator's stand-in"), "{what}: {}", fixed.err);
        assert!(fixed.err.contains(" 0 unknown, "), "{what}: {}", fixed.err);
        let racy = sim(&program, &[], &[what, "racy"]);
        assert_eq!(racy.code(), Some(66), "{what}: {}{}", racy.out, racy.err);
        assert!(racy.err.contains(hazard) && racy.err.contains(function), "{what}: {}", racy.err);
    }
}

#[test]
fn what_cudnn_does_beside_convolutions_is_refused_by_name() {
    let ended = sim(&built("convolutions"), &[], &["matmul"]);
    assert_eq!(ended.code(), Some(70), "{}", ended.err);
    let line = "cuDNN: an operation of CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR is not simulated";
    assert!(ended.ours().iter().any(|ours| ours.ends_with(line)), "{}", ended.err);
}
