//! `cargo xtask fuzz`: libFuzzer on what reads images and code.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::{command, workspace};

/// Fuzz what reads images and code: containers, PTX, the SASS decoder, and lifting (code to summary
/// and launch).
///
/// Needs a nightly compiler (`rustup toolchain install nightly`) and g++; no cargo-fuzz. Seeds are
/// the kernels of the tests. Inputs that fail stay in `.cache/fuzz/artifacts`.
#[derive(clap::Args)]
pub struct FuzzArgs {
    /// How long each target runs.
    #[arg(short = 't', long, default_value_t = 600)]
    seconds: u32,
    /// What is fuzzed.
    #[arg(value_enum, default_values_t = [Target::Container, Target::Ptx, Target::Sass, Target::Lift])]
    targets: Vec<Target>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Target {
    Container,
    Ptx,
    Sass,
    Lift,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Ptx => "ptx",
            Self::Sass => "sass",
            Self::Lift => "lift",
        }
    }

    /// The longest input in bytes.
    fn longest(self) -> u32 {
        match self {
            Self::Container => 262_144,
            Self::Ptx => 65_536,
            Self::Sass => 512,
            Self::Lift => 2048,
        }
    }
}

/// Generations of devices with the byte by which the target `lift` knows them.
const GENERATIONS: [(u32, u8); 5] = [(75, 1), (80, 2), (90, 3), (100, 4), (120, 5)];

/// Builds the targets, makes seeds unless they are there, and runs one target after the other.
pub fn run(args: &FuzzArgs) -> Result<ExitCode> {
    let nightly = Command::new("cargo").args(["+nightly", "--version"]).stdout(Stdio::null()).status();
    if !nightly.is_ok_and(|status| status.success()) {
        bail!("a nightly compiler is needed: rustup toolchain install nightly");
    }
    let work = workspace::root().join(".cache/fuzz");
    build(&work)?;
    seeds(&work.join("seeds"))?;
    let mut failed = false;
    for target in &args.targets {
        failed |= !fuzz(&work, *target, args.seconds)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// With what cargo-fuzz passes, without AddressSanitizer: the crate has no unsafe code. Debug
/// assertions check arithmetic.
fn build(work: &Path) -> Result<()> {
    let mut flags =
        "--cfg fuzzing -Cpasses=sancov-module -Clink-dead-code -Cdebug-assertions -Ccodegen-units=4".to_owned();
    for part in ["level=4", "inline-8bit-counters", "pc-table", "trace-compares"] {
        flags.push_str(&format!(" -Cllvm-args=-sanitizer-coverage-{part}"));
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["+nightly", "build", "-q", "--release", "--target", "x86_64-unknown-linux-gnu"]);
    cargo.current_dir(workspace::root().join("kernels/fuzz"));
    // This program runs under a cargo of its own, whose choice of compiler must not be taken over.
    cargo.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command::run(cargo.env("CARGO_TARGET_DIR", work.join("target")).env("RUSTFLAGS", flags))
}

fn seeds(folder: &Path) -> Result<()> {
    if folder.join(".ready").exists() {
        return Ok(());
    }
    for name in ["container", "ptx", "sass", "lift"] {
        std::fs::create_dir_all(folder.join(name))?;
    }
    let nvcc = workspace::toolkit()?.join("bin/nvcc");
    // What a generation does not take is left out.
    let compile = |args: &[&str], source: &Path, to: &Path| {
        let mut nvcc = Command::new(&nvcc);
        nvcc.args(["-O2", "-std=c++17", "-w"]).args(args).arg("-o").arg(to).arg(source).stderr(Stdio::null());
        nvcc.status().is_ok_and(|status| status.success())
    };
    for source in ["kernels/tests/cuda", "device-code/tests/sass", "device-code/tests/image"] {
        for source in workspace::files_in(source, "cu")? {
            let stem = workspace::stem(&source);
            for (sm, generation) in GENERATIONS {
                let cubin = folder.join("container").join(format!("{stem}-{sm}.cubin"));
                if compile(&["-cubin", &format!("-arch=sm_{sm}")], &source, &cubin) {
                    code_of(&cubin, generation, folder)?;
                    let ptx = folder.join("ptx").join(format!("{stem}-{sm}"));
                    compile(&["-ptx", &format!("-arch=compute_{sm}")], &source, &ptx);
                }
            }
            for mode in ["none", "size", "speed"] {
                let fatbin = folder.join("container").join(format!("{stem}-{mode}.fatbin"));
                let code = "-gencode=arch=compute_90,code=[sm_90,compute_90]";
                compile(&["-fatbin", "--compress-mode", mode, code], &source, &fatbin);
            }
        }
    }
    std::fs::write(folder.join(".ready"), "")?;
    Ok(())
}

/// Writes the code of each kernel (ELF64 sections named .text.*) as seeds: for `lift` behind the
/// byte of its generation and a launch.
fn code_of(cubin: &Path, generation: u8, folder: &Path) -> Result<()> {
    let file = std::fs::read(cubin)?;
    let number = |at: usize, bytes: usize| -> Result<usize> {
        let field = file.get(at..at + bytes).context("a truncated ELF file")?;
        Ok(field.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (table, size, count, names) = (number(40, 8)?, number(58, 2)?, number(60, 2)?, number(62, 2)?);
    let text = number(table + names * size + 24, 8)?;
    for section in 0..count {
        let at = table + section * size;
        let name = file.get(text + number(at, 4)?..).context("a name outside the file")?;
        if name.starts_with(b".text.") {
            let (from, bytes) = (number(at + 24, 8)?, number(at + 32, 8)?);
            let code = file.get(from..from + bytes).context("a section outside the file")?;
            let name = format!("{}-{section}", cubin.file_name().unwrap_or_default().to_string_lossy());
            std::fs::write(folder.join("lift").join(&name), [&[generation, 0x51], code].concat())?;
            std::fs::write(folder.join("sass").join(&name), &code[..code.len().min(4096)])?;
        }
    }
    Ok(())
}

/// Runs one target; whether it found nothing.
fn fuzz(work: &Path, target: Target, seconds: u32) -> Result<bool> {
    let name = target.name();
    let made = |kind: &str| -> Result<PathBuf> {
        let folder = work.join(kind).join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let (corpus, artifacts) = (made("corpus")?, made("artifacts")?);
    let log = work.join(format!("{name}.log"));
    let file = std::fs::File::create(&log)?;
    let mut fuzzer = Command::new(work.join("target/x86_64-unknown-linux-gnu/release").join(name));
    fuzzer.arg(corpus).arg(work.join("seeds").join(name));
    // libFuzzer counts 25 s on one input, and 2 GiB, as failures.
    fuzzer.args(["-timeout=25", "-rss_limit_mb=2048", "-print_final_stats=1"]);
    fuzzer.arg(format!("-max_len={}", target.longest())).arg(format!("-max_total_time={seconds}"));
    fuzzer.arg(format!("-artifact_prefix={}/", artifacts.display()));
    let clean = fuzzer.stdout(file.try_clone()?).stderr(file).status().context(name)?.success();
    let said = std::fs::read(&log)?;
    let said = String::from_utf8_lossy(&said);
    let inputs = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let edges = said.lines().rev().find_map(|line| line.split_once(" cov: ")?.1.split(' ').next());
    let verdict = if clean { "clean" } else { "FAILED" };
    let (inputs, edges) = (inputs.unwrap_or("0").trim(), edges.unwrap_or("0"));
    println!("{name}: {verdict}, {inputs} inputs in {seconds} s, {edges} edges ({})", log.display());
    Ok(clean)
}
