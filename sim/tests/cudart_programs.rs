//! Programs built by NVIDIA's compiler with `-cudart shared`, run on the simulated GPU.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tests::build::installed_toolkit;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stderr}", output.status);
    output
}

/// The folder of the built libraries: `STREAMSAN_BIN`, else cargo builds them into the folder that
/// this test was built into.
fn built() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let profile = exe.parent().unwrap().parent().unwrap();
    if let Some(folder) = std::env::var_os("STREAMSAN_BIN") {
        return std::fs::canonicalize(folder).unwrap();
    }
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "-p", "sim", "-p", "sim-cudart", "--target-dir"]);
    build.arg(profile.parent().unwrap()).current_dir(root());
    if profile.ends_with("release") {
        build.arg("--release");
    }
    run(&mut build);
    profile.to_owned()
}

/// A folder of this process with `libcuda.so.1`, `libcudart.so.12` and `libcudart.so.13`.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let built = built();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sim-tests-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let link = |from: &str, to: &str| {
            let _ = std::fs::remove_file(folder.join(to));
            std::os::unix::fs::symlink(built.join(from), folder.join(to)).unwrap();
        };
        link("libstreamsan_sim.so", "libcuda.so.1");
        link("libstreamsan_sim.so", "libcuda.so");
        link("libstreamsan_sim_cudart.so", "libcudart.so.13");
        let cudart = folder.join("libcudart.so.13");
        run(Command::new(built.join("streamsan-cudart12")).arg(&cudart).arg(folder.join("libcudart.so.12")));
        folder
    })
}

/// A program, compiled once for each content, whichever tests and runs ask for it.
fn compile(source: &Path, extra: &[&str]) -> PathBuf {
    let mut args: Vec<String> =
        ["-O2", "-arch=sm_80", "-cudart", "shared", "-cudadevrt", "none"].map(String::from).into();
    args.extend([source.display().to_string(), "-o".to_owned(), "{out}".to_owned()]);
    args.push(format!("-L{}", root().join(".toolkit/lib").display()));
    args.push(format!("-L{}/lib", installed_toolkit().display()));
    args.extend(extra.iter().map(|word| (*word).to_owned()));
    let nvcc = installed_toolkit().join("bin/nvcc");
    let compiled = tests::build::cached("program", &nvcc, &args, &[source]);
    compiled.unwrap_or_else(|said| panic!("{said}"))
}

fn start(program: &Path, options: &str) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", libraries()).env("STREAMSAN_SIM", options);
    command
}

fn own(name: &str) -> PathBuf {
    root().join("sim/tests/cuda").join(name)
}

#[test]
fn the_runtime_does_what_it_should_under_every_schedule() {
    let program = compile(&own("runtime.cu"), &[]);
    for options in ["", "schedule=late-first", "schedule=random:seed=3", "schedule=in-order", "arch=90:workers=2"] {
        let output = run(&mut start(&program, options));
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[4], lines.len()), ("before", "after", 5), "{options}: {text}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr.lines().count(), 1, "{options}: {stderr}");
        assert!(stderr.contains("out-of-bounds global write of 4 bytes"), "{stderr}");
    }
}

#[test]
fn what_is_not_ordered_happens_both_ways() {
    let program = compile(&own("order.cu"), &[]);
    let result = |options: &str| String::from_utf8(run(&mut start(&program, options)).stdout).unwrap();
    assert_eq!(result("schedule=in-order"), "11 11\n");
    // The later stream goes first; the event still holds.
    assert_eq!(result("schedule=late-first"), "1 11\n");
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let options = format!("schedule=random:seed={seed}");
        let first = result(&options);
        assert_eq!(first, result(&options), "a seed repeats");
        seen.insert(first);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["1 11\n", "11 11\n"]);
}

/// What a program prints when its PTX and when its machine code runs.
fn of_both_kinds(program: &str) -> [String; 2] {
    let program = compile(&own(program), &["-w"]);
    let printed = ["code=ptx", "code=sass"].map(|options| {
        let output = run(&mut start(&program, options));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{options}");
        String::from_utf8(output.stdout).unwrap()
    });
    for (ptx, machine) in printed[0].lines().zip(printed[1].lines()) {
        assert_eq!(ptx, machine);
    }
    printed
}

#[test]
fn asynchronous_copies_arrive_at_barriers_in_both_kinds_of_code() {
    let [ptx, machine] = of_both_kinds("async_barriers.cu");
    assert_eq!((ptx.lines().count(), &ptx), (5, &machine));
    // 37 * 255 % 1009, and 251 arrivals that are missing of 256.
    assert!(ptx.contains("by hand: 251000354 "), "{ptx}");
}

#[test]
fn textures_are_the_same_to_both_kinds_of_code() {
    let [ptx, machine] = of_both_kinds("texture_forms.cu");
    // With the handle as an argument and out of a table.
    let (same, differs) = (ptx.matches(" same ").count(), ptx.matches(" differs ").count());
    assert_eq!((ptx.lines().count(), same, differs), (machine.lines().count(), 215, 0), "{ptx}");
}

#[test]
fn levels_of_detail_select_mip_levels_in_both_kinds_of_code() {
    let [ptx, machine] = of_both_kinds("mip_levels.cu");
    let count = |word: &str| ptx.lines().filter(|line| line.split(' ').any(|w| w == word)).count();
    assert_eq!((ptx.lines().count(), count("WRONG"), count("differs")), (machine.lines().count(), 0, 0), "{ptx}");
    assert_eq!((count("right"), count("same")), (149, 149), "{ptx}");
    let ends = "level 2: cudaSuccess\nlevel 3: cudaErrorInvalidValue\ndone\n";
    assert!(ptx.ends_with(ends) && !ptx.contains("too many") && !ptx.contains("without"), "{ptx}");
}

#[test]
fn a_wrong_option_fails_and_says_so() {
    let program = compile(&own("order.cu"), &[]);
    let output = start(&program, "schedule=fastest").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("option `schedule` cannot be `fastest`"));
}

#[test]
fn version_12_is_another_library_with_its_own_symbol_versions() {
    let source = libraries().join("version12.c");
    let text = "#include <stdio.h>\nint cudaRuntimeGetVersion(int *);\nint cudaGetDeviceCount(int *);\n\
        int main(void) { int v = 0, n = 0; int e = cudaRuntimeGetVersion(&v) | cudaGetDeviceCount(&n);\
        printf(\"%d %d %d\\n\", e, v, n); return 0; }\n";
    std::fs::write(&source, text).unwrap();
    let program = libraries().join("version12");
    let mut cc = Command::new("cc");
    cc.arg(&source).arg("-o").arg(&program).arg(format!("-L{}", libraries().display())).arg("-l:libcudart.so.12");
    run(&mut cc);
    let output = run(&mut start(&program, ""));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0 12090 1\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "no complaint of the loader about versions");
}
