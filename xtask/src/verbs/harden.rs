//! `cargo xtask harden`: attacks on the promises that nothing is green that was not checked and
//! that no program is harmed.
//!
//! Owns which tests and programs make up an attack, and how long a short and a long one is. What
//! must hold is theirs; figures are in `docs/internals/hardening.md`.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{command, workspace};

/// Attack the product: kill it, change its traces, feed it hostile names, take resources away, load
/// it.
///
/// A short run takes seconds beside the build and is a part of CI; a long one (`--long`) is for the
/// night. Each attack is a line with what was tried.
#[derive(clap::Args)]
pub struct HardenArgs {
    /// Many more rounds, and the large sizes.
    #[arg(long)]
    long: bool,
    /// Seconds that traces are changed and read [default: 5; 3600 with --long].
    #[arg(long)]
    seconds: Option<u64>,
    /// Where the changes to traces begin.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The attacks.
    #[arg(value_enum, default_values_t = [Attack::Kill, Attack::Fuzz, Attack::Injection, Attack::Limits, Attack::Load])]
    attacks: Vec<Attack>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Attack {
    Kill,
    Fuzz,
    Injection,
    Limits,
    Load,
}

impl Attack {
    fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Fuzz => "fuzz",
            Self::Injection => "injection",
            Self::Limits => "limits",
            Self::Load => "load",
        }
    }

    /// The tests that it consists of: the package, its test program, and parts of names.
    fn tests(self) -> &'static [(&'static str, &'static str, &'static [&'static str])] {
        match self {
            Self::Kill => {
                &[("tests", "e2e", &["a_killed_", "the_program_survives_the_death", "a_launcher_that_is_killed"])]
            }
            // What it does is a program of its own.
            Self::Fuzz => &[("analyzer", "it", &["damage::"])],
            Self::Injection => &[
                ("analyzer", "it", &["escape::"]),
                ("tests", "e2e", &["tool::foreign::", "what_a_dataset_holds_is_data"]),
            ],
            Self::Limits => {
                &[("tests", "e2e", &["interception::limits::", "full_file_systems", "without_descriptors"])]
            }
            Self::Load => &[
                ("analyzer", "it", &["scale::"]),
                ("tests", "e2e", &["many_forks", "many_threads", "a_slow_analyzer", "memory_does_not_grow"]),
            ],
        }
    }
}

/// Runs the attacks one after the other.
pub fn run(args: &HardenArgs) -> Result<ExitCode> {
    let mut failed = false;
    for attack in &args.attacks {
        let began = Instant::now();
        let mut tried = Vec::new();
        let mut held = true;
        for (package, program, names) in attack.tests() {
            // All packages at once: another selection has other features, and is built again.
            let mut passed = 0;
            for name in *names {
                let mut test = command::cargo(["test", "-q", "--workspace", "--test", program, "--", name]);
                if args.long {
                    test.env("STREAMSAN_HARDENING", "full");
                }
                let (number, fine) = tests(&mut test)?;
                if number == 0 && fine {
                    bail!("no test of {package} has '{name}' in its name");
                }
                passed += number;
                held &= fine;
            }
            tried.push(format!("{passed} tests of {package}"));
        }
        if *attack == Attack::Fuzz {
            let seconds = args.seconds.unwrap_or(if args.long { 3600 } else { 5 });
            let (said, fine) = fuzz(seconds, args.seed)?;
            tried.push(said);
            held &= fine;
        }
        let verdict = if held { "held" } else { "FAILED" };
        let took = Duration::from_secs(began.elapsed().as_secs());
        println!("{}: {verdict}, {} ({took:?})", attack.name(), tried.join(", "));
        failed |= !held;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs tests: how many passed, and whether all did. What fails is passed on.
fn tests(test: &mut Command) -> Result<(u64, bool)> {
    let made = test.output().context("cargo test")?;
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    if !made.status.success() {
        eprintln!("{said}{}", String::from_utf8_lossy(&made.stderr));
    }
    let results = said.lines().filter_map(|line| line.strip_prefix("test result: ")?.split_once(". "));
    let passed = results.filter_map(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok()).sum();
    Ok((passed, made.status.success()))
}

/// Changes recorded traces at random, records with their checksums repaired, and reads them with
/// everything that reads traces: what was done, and whether nothing went wrong.
fn fuzz(seconds: u64, seed: u64) -> Result<(String, bool)> {
    command::run(&mut command::cargo(["build", "-q", "--workspace", "--example", "fuzz_traces"]))?;
    let mut run = Command::new(workspace::target().join("debug/examples/fuzz_traces"));
    run.current_dir(workspace::root());
    run.args([seconds.to_string(), seed.to_string()]);
    run.args(workspace::files_in("tests/recorded", "trace")?);
    let made = run.output().context("fuzz_traces")?;
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    if !made.status.success() {
        eprintln!("{said}{}", String::from_utf8_lossy(&made.stderr));
    }
    Ok((said.lines().last().unwrap_or_default().to_owned(), made.status.success()))
}
