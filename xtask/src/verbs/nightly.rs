//! `cargo xtask nightly`: the long forms of tests that CI runs with few seeds.
//!
//! Owns the list: which tests take seeds, and how many a night has time for. What must hold is the
//! tests'. Results that changed something are in `docs/measurements/fuzzing.md`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::command;

/// Run the long forms of randomised tests, one after the other: minutes to an hour for each.
///
/// The attacks of `cargo xtask harden --long` and the fuzzers of `cargo xtask fuzz` are separate.
#[derive(clap::Args)]
pub struct NightlyArgs {
    /// Only those with this in their name.
    only: Option<String>,
    /// Print the list instead.
    #[arg(long)]
    list: bool,
}

/// A randomised test.
struct Long {
    name: &'static str,
    package: &'static str,
    test: &'static str,
    /// What makes it long.
    environment: &'static [(&'static str, &'static str)],
}

const CASES: (&str, &str) = ("PROPTEST_CASES", "10000");

const LONG: [Long; 12] = [
    long("ranges of generated kernels", "kernels", "ranges_fuzz::", &[("RANGES_FUZZ", "1..25")]),
    long("replayed launches", "kernels", "ranges_replays::", &[("REPLAYS", "2000")]),
    long("native code of random kernels in PTX", "sim", "native_fuzz::random", &[("NATIVE_FUZZ", "300")]),
    long(
        "native code of random kernels in machine code",
        "sim",
        "native_fuzz::random",
        &[("NATIVE_FUZZ", "100"), ("INTERP_CODE", "sass"), ("INTERP_ARCH", "sm_90")],
    ),
    long("ranges against touched addresses", "sim", "interp_ranges::", &[("RANGES_SEEDS", "25")]),
    long("clocks", "order", "property::", &[("PROPTEST_CASES", "100000")]),
    long("clocks of host threads", "order", "property_threads::", &[("PROPTEST_CASES", "100000")]),
    long("causes", "analyzer", "causes_property::", &[CASES]),
    long("excess", "analyzer", "excess_property::", &[CASES]),
    long("excess in graphs", "analyzer", "excess_graphs_property::", &[CASES]),
    long("segments", "analyzer", "segments::", &[CASES]),
    long("random programs", "tests", "detection::random::", &[("RANDOM_COUNT", "2000")]),
];

const fn long(
    name: &'static str,
    package: &'static str,
    test: &'static str,
    environment: &'static [(&'static str, &'static str)],
) -> Long {
    Long { name, package, test, environment }
}

/// Runs the list. Fails if a test fails, after all have run.
pub fn run(args: &NightlyArgs) -> Result<ExitCode> {
    let mut failed = Vec::new();
    let wanted = |long: &&Long| args.only.as_ref().is_none_or(|only| long.name.contains(only.as_str()));
    for long in LONG.iter().filter(wanted) {
        let variables: Vec<String> = long.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        println!("{}: {} ({}, {})", long.name, long.test, long.package, variables.join(" "));
        if args.list {
            continue;
        }
        let began = Instant::now();
        // All packages at once: another selection would have other features, and be built again.
        let program = if long.package == "tests" { "e2e" } else { "it" };
        let mut test = command::cargo(["test", "-q", "--workspace", "--test", program, "--", long.test]);
        test.envs(long.environment.iter().copied());
        let passed = command::run(&mut test).is_ok();
        println!(
            "  {} in {:?}",
            if passed { "held" } else { "FAILED" },
            Duration::from_secs(began.elapsed().as_secs())
        );
        if !passed {
            failed.push(long.name);
        }
    }
    if !failed.is_empty() {
        eprintln!("failed: {}", failed.join(", "));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
