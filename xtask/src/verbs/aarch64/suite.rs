//! What is tested for aarch64: the list, and in which order.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use super::emulation;
use super::toolchain::{TRIPLE, Toolchain};
use crate::{command, workspace};

/// The product: as `scripts/build` builds it.
const PRODUCT: [&str; 7] =
    ["analyzer", "shim", "shim-threads", "shim-instrumented", "sim", "sim-cudart", "sim-libraries"];
/// Packages whose unit tests are worth their time under emulation: what depends on the processor,
/// and what has to compute the same on both.
const UNIT_TESTS: [&str; 8] = ["cuda-sys", "kernels", "options", "order", "shim", "sim", "sim-divert", "trace"];
/// Of these only what they test inside: further tests compile programs with CUDA's compiler, or
/// expect x86-64's stacks.
const INSIDE_ONLY: [&str; 3] = ["shim", "sim", "sim-divert"];

/// All of it, or a slice of end-to-end tests.
pub fn everything(tools: &Toolchain, fast: bool) -> Result<()> {
    let began = Instant::now();
    let step = |what: &str| println!("\n== {:4} s  aarch64: {what}", began.elapsed().as_secs());
    step("build");
    build(tools)?;
    if !fast {
        step("unit tests");
        unit_tests(tools, &UNIT_TESTS, &[])?;
    }
    step("end-to-end tests");
    end_to_end(tools, if fast { &FAST } else { &END_TO_END }, if fast { &FAST_CASES } else { &CASES })?;
    step("all passed");
    Ok(())
}

/// Builds the product and completes its folder.
fn build(tools: &Toolchain) -> Result<()> {
    let mut cargo = command::cargo(["build", "-q", "--target", TRIPLE]);
    PRODUCT.iter().for_each(|package| {
        cargo.args(["-p", package]);
    });
    tools.set(&mut cargo);
    command::run(&mut cargo)?;
    let mut place = emulation::command(tools, workspace::root().join("scripts/build"));
    place.arg("--place").arg(binaries());
    tools.set(&mut place);
    command::run(&mut place)
}

fn binaries() -> PathBuf {
    workspace::target().join("aarch64").join(TRIPLE).join("debug")
}

/// The unit tests of packages, under emulation.
pub fn unit_tests(tools: &Toolchain, packages: &[&str], rest: &[String]) -> Result<()> {
    let (inside, whole): (Vec<&str>, Vec<&str>) = packages.iter().partition(|name| INSIDE_ONLY.contains(name));
    for (packages, what) in [(whole, &["--lib", "--tests"][..]), (inside, &["--lib"][..])] {
        if packages.is_empty() {
            continue;
        }
        let mut cargo = emulation::command(tools, std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(workspace::root()).args(["test", "-q", "--target", TRIPLE, "--no-fail-fast"]).args(what);
        packages.iter().for_each(|package| {
            cargo.args(["-p", package]);
        });
        cargo.arg("--").args(rest);
        tools.set(&mut cargo);
        command::run(&mut cargo)?;
    }
    Ok(())
}

/// End-to-end tests, by parts of their names.
const END_TO_END: [&str; 15] = [
    "architectures::stacks",
    "interception::processes::",
    // Of these all but what runs this machine's Python.
    "symbol_hooks::deep_bound",
    "symbol_hooks::direct_link",
    "symbol_hooks::dl",
    "symbol_hooks::export_tables",
    "symbol_hooks::foreign",
    "symbol_hooks::get_proc_address",
    "symbol_hooks::next_look_ups",
    "symbol_hooks::per_thread_names",
    "symbol_hooks::the_bare_work",
    "symbol_hooks::unknown_names",
    "tool::traces::a_block",
    "tool::traces::pytorchs",
    "tool::traces::they_are_whole",
];
/// The slice of these.
const FAST: [&str; 1] = ["architectures::stacks"];
/// The same of the lists of programs.
const CASES: [&str; 1] = ["corpus::stream_pair"];
/// As above.
const FAST_CASES: [&str; 1] = ["corpus::stream_pair_unordered"];
/// What records and checks traces.
const TRACES: &str = "architectures::traces";

/// Runs this machine's test programs on the product for aarch64, between two runs on this machine's
/// own product that leave traces and take them back.
fn end_to_end(tools: &Toolchain, tests: &[&str], cases: &[&str]) -> Result<()> {
    let traces = workspace::target().join("e2e-aarch64/traces");
    let (native, emulated) = (traces.join("x86_64"), traces.join("aarch64"));
    command::run(Tests::E2e.on_this_machine(TRACES)?.env("STREAMSAN_TRACES_TO", &native))?;
    let mut run = Tests::E2e.emulated(tools, TRACES)?;
    command::run(run.env("STREAMSAN_TRACES_TO", &emulated).env("STREAMSAN_TRACES_FROM", &native))?;
    command::run(Tests::E2e.on_this_machine(TRACES)?.env("STREAMSAN_TRACES_FROM", &emulated))?;
    tests.iter().try_for_each(|name| command::run(&mut Tests::E2e.emulated(tools, name)?))?;
    cases.iter().try_for_each(|name| command::run(&mut Tests::Cases.emulated(tools, name)?))
}

/// A test binary of the crate `tests`.
#[derive(Clone, Copy)]
enum Tests {
    E2e,
    Cases,
}

impl Tests {
    fn cargo(self) -> Vec<&'static str> {
        vec!["test", "-q", "-p", "tests", "--test", if matches!(self, Self::E2e) { "e2e" } else { "cases" }]
    }

    /// Builds the binary, and sees to it that a name is one of a test: others would pass.
    fn look_for(self, name: &str) -> Result<()> {
        let listed = command::output(command::cargo(self.cargo()).args(["--", "--list", name]))?;
        if !listed.lines().any(|line| line.contains(name) && line.ends_with(": test")) {
            bail!("no test is called {name}");
        }
        Ok(())
    }

    /// With the product that cargo builds for this machine.
    fn on_this_machine(self, name: &str) -> Result<Command> {
        self.look_for(name)?;
        let mut cargo = command::cargo(self.cargo());
        cargo.args(["--", name]);
        Ok(cargo)
    }

    /// The same binary with the product for aarch64.
    fn emulated(self, tools: &Toolchain, name: &str) -> Result<Command> {
        self.look_for(name)?;
        let mut cargo = emulation::command(tools, std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        tools.set(&mut cargo);
        // The tests themselves are this machine's.
        for variable in ["RUSTC", "CARGO_TARGET_DIR", "CARGO_INCREMENTAL", "CARGO_PROFILE_DEV_DEBUG"] {
            match std::env::var_os(variable) {
                Some(value) => cargo.env(variable, value),
                None => cargo.env_remove(variable),
            };
        }
        cargo.current_dir(workspace::root()).args(self.cargo()).args(["--", name]);
        cargo.env("STREAMSAN_BIN", binaries());
        Ok(cargo)
    }
}
