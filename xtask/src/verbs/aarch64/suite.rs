//! What is tested for aarch64: the list, and in which order.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::emulation;
use super::python::Python;
use super::tally::Tally;
use super::toolchain::{TRIPLE, Toolchain};
use crate::{command, workspace};

/// How much is built and run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All that is listed here.
    All,
    /// A slice for CI.
    Fast,
}

/// The product: as `scripts/build` builds it.
const PRODUCT: [&str; 8] =
    ["analyzer", "shim", "shim-threads", "shim-instrumented", "shim-mpi", "sim", "sim-cudart", "sim-libraries"];
/// What the slice needs of it.
const FAST_PRODUCT: [&str; 3] = ["analyzer", "shim", "shim-mpi"];
/// Packages whose unit tests are worth their time under emulation: what depends on the processor,
/// and what has to compute the same on both.
const UNIT_TESTS: [&str; 10] =
    ["cuda-sys", "device-code", "kernels", "options", "order", "shim", "sim", "sim-divert", "sim-exec", "trace"];
/// As above, of the slice: of others the test binary would take as long as the product.
const FAST_UNIT_TESTS: [&str; 1] = ["trace"];
/// Of these only what they test inside: further tests compile programs with CUDA's compiler, or
/// expect x86-64's stacks.
const INSIDE_ONLY: [&str; 3] = ["shim", "sim", "sim-divert"];
/// How many random cases are tried, where nothing else is asked for.
const FEW_CASES: [(&str, &str); 2] = [("RANGES_FUZZ", "1..2"), ("PROPTEST_CASES", "16")];
/// End-to-end tests on the fake driver and the simulated GPU, by parts of their names.
const END_TO_END: [&str; 20] = [
    "architectures::stacks",
    "detection::host_order::",
    "detection::instrumented::a_report_names",
    "detection::instrumented::every_case",
    "detection::instrumented::the_library_performs",
    "detection::in_place::large_pages",
    "detection::in_place::memory_in_place_can_be_left_out",
    "detection::in_place::what_is_ordered",
    "detection::in_place::what_the_host_touches",
    "detection::ipc::",
    "interception::hardening::a_stack_overflow",
    "interception::hardening::a_timer",
    "interception::hardening::many_forks",
    "interception::processes::",
    "interception::symbol_hooks::",
    "simulated::a_program_that_faults",
    "simulated::protected_pages",
    "simulated::results_differ",
    "tool::offline::",
    "tool::traces::",
];
/// The slice of these.
const FAST_END_TO_END: [&str; 6] = [
    "architectures::stacks",
    "processes::a_forked_child_that_uses_cuda",
    "processes::a_killed_program_loses",
    "processes::signal_mask_and_handlers_stay",
    "symbol_hooks::dlopen_and_dlsym",
    "symbol_hooks::direct_link",
];
/// Programs of the corpus, racy and ordered, of each kind of order; each runs as PTX and as machine
/// code, and measured once more.
const CASES: [&str; 10] = [
    "corpus::atomic",
    "corpus::chain_three_streams",
    "corpus::event_re",
    "corpus::graph_capture_fork_join",
    "corpus::host_func",
    "corpus::host_reads",
    "corpus::legacy",
    "corpus::pool_reuse_two_streams",
    "corpus::ptds",
    "corpus::stream_pair",
];
/// What records and checks traces.
const TRACES: &str = "architectures::traces";
/// The wheel: packed, installed, and used by an interpreter for aarch64.
const WHEEL: &str = "python::wheel::an_installed_wheel";

/// Builds and tests.
pub fn run(tools: &Toolchain, extent: Extent, built: Option<&Path>) -> Result<()> {
    let mut tally = Tally::new();
    let all = extent == Extent::All;
    tally.step("build");
    if built.is_none() {
        build(tools, extent)?;
    }
    let tests = Tests::build(built.map_or_else(binaries, Path::to_path_buf), extent)?;
    tally.step("unit tests");
    unit_tests(&mut tally, tools, extent, if all { &UNIT_TESTS } else { &FAST_UNIT_TESTS }, &[])?;
    tally.step("traces of one architecture on the other");
    tests.traces(&mut tally, tools, extent)?;
    tally.step("end-to-end tests");
    if all {
        let python = Python::get()?;
        tests.end_to_end(&mut tally, tools, Some(&python), &END_TO_END)?;
        tests.end_to_end(&mut tally, tools, Some(&python), &[WHEEL])?;
        tests.cases(&mut tally, tools, &CASES)?;
    } else {
        tests.end_to_end(&mut tally, tools, None, &FAST_END_TO_END)?;
    }
    tally.step("the end");
    tally.end()
}

/// Builds the product and completes its folder.
fn build(tools: &Toolchain, extent: Extent) -> Result<()> {
    let mut cargo = command::cargo(["build", "-q", "--target", TRIPLE]);
    if extent == Extent::Fast {
        // What the workspace says of this package goes before the environment's word for all.
        cargo.args(["--config", "profile.dev.package.kernels.opt-level=0"]);
    }
    let packages = if extent == Extent::All { &PRODUCT[..] } else { &FAST_PRODUCT };
    packages.iter().for_each(|package| {
        cargo.args(["-p", package]);
    });
    set(tools, extent, &mut cargo);
    command::run(&mut cargo)?;
    if extent == Extent::Fast {
        return Ok(());
    }
    let mut place = emulation::command(tools, workspace::root().join("scripts/build"));
    place.arg("--place").arg(binaries());
    tools.set(&mut place);
    command::run(&mut place)
}

/// As [`Toolchain::set`]. The slice is built once and runs for seconds: nothing is optimised.
fn set(tools: &Toolchain, extent: Extent, cargo: &mut Command) {
    tools.set(cargo);
    if extent == Extent::Fast {
        cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    }
}

fn binaries() -> PathBuf {
    workspace::target().join("aarch64").join(TRIPLE).join("debug")
}

/// The unit tests of packages, under emulation.
pub fn unit_tests(
    tally: &mut Tally,
    tools: &Toolchain,
    extent: Extent,
    packages: &[&str],
    rest: &[String],
) -> Result<()> {
    for package in packages {
        let inside = extent == Extent::Fast || INSIDE_ONLY.contains(package);
        let what = if inside { &["--lib"][..] } else { &["--lib", "--tests"] };
        let mut cargo = emulation::command(tools, std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(workspace::root()).args(["test", "-q", "--target", TRIPLE, "--no-fail-fast"]).args(what);
        cargo.args(["-p", package, "--"]).args(rest);
        // Random cases take ten times as long under emulation, and which processor computes them
        // matters to few.
        for (variable, cases) in FEW_CASES {
            if std::env::var_os(variable).is_none() {
                cargo.env(variable, cases);
            }
        }
        set(tools, extent, &mut cargo);
        tally.run(&format!("unit tests of {package}"), &mut cargo)?;
    }
    Ok(())
}

/// The test binaries of the crate `tests`: this machine's, whatever product they run.
struct Tests {
    e2e: PathBuf,
    /// Not of the slice.
    cases: Option<PathBuf>,
    product: PathBuf,
}

impl Tests {
    /// Builds them, for the product in a folder: with the features of the whole workspace, as they
    /// are built elsewhere.
    fn build(product: PathBuf, extent: Extent) -> Result<Tests> {
        let all = extent == Extent::All;
        let mut cargo = command::cargo(["test", "-q", "--workspace", "--no-run", "--test", "e2e"]);
        cargo.args(if all { &["--test", "cases"][..] } else { &[] });
        let built = command::output(cargo.arg("--message-format=json"))?;
        let find = |name: &str| {
            let messages = built.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            let mut found = messages.filter(|message| message["target"]["name"] == name);
            let path = found.find_map(|message| message["executable"].as_str().map(PathBuf::from));
            path.with_context(|| format!("cargo names no test binary {name}"))
        };
        let cases = all.then(|| find("cases")).transpose()?;
        Ok(Tests { e2e: find("e2e")?, cases, product: std::fs::canonicalize(product)? })
    }

    /// Sees to it that each name is one of a test: others would pass.
    fn look_for(binary: &Path, names: &[&str]) -> Result<()> {
        for name in names {
            let listed = command::output(Command::new(binary).args(["--list", name]).current_dir(folder()))?;
            if !listed.lines().any(|line| line.contains(name) && line.ends_with(": test")) {
                bail!("no test is called {name}");
            }
        }
        Ok(())
    }

    /// Runs the tests of traces on this machine's own product, which leaves traces, then on that
    /// for aarch64 with these, then on this machine's with those of aarch64.
    fn traces(&self, tally: &mut Tally, tools: &Toolchain, extent: Extent) -> Result<()> {
        Self::look_for(&self.e2e, &[TRACES])?;
        let traces = workspace::target().join("e2e-aarch64/traces");
        let (native, emulated) = (traces.join("x86_64"), traces.join("aarch64"));
        let run = |command: &mut Command| {
            if extent == Extent::Fast {
                // Neither CUDA's compiler nor the simulator is there.
                command.env("STREAMSAN_NO_TOOLKIT", "1");
            }
            command.arg(TRACES).current_dir(folder());
        };
        for left in [&native, &emulated] {
            let _ = std::fs::remove_dir_all(left);
        }
        let mut command = Command::new(&self.e2e);
        run(command.env("STREAMSAN_TRACES_TO", &native));
        tally.run("traces, recorded on x86-64", &mut command)?;
        let mut command = self.emulated(tools, None, &self.e2e);
        run(command.env("STREAMSAN_TRACES_TO", &emulated).env("STREAMSAN_TRACES_FROM", &native));
        tally.run("traces, recorded on aarch64, those of x86-64 checked", &mut command)?;
        let mut command = Command::new(&self.e2e);
        run(command.env("STREAMSAN_TRACES_FROM", &emulated));
        tally.run("traces of aarch64 checked on x86-64", &mut command)
    }

    /// A test binary with the product for aarch64. The binary is this machine's; compilers, and
    /// Python where there is one, are aarch64's.
    fn emulated(&self, tools: &Toolchain, python: Option<&Python>, binary: &Path) -> Command {
        let mut command = emulation::with_python(tools, python, binary);
        tools.set(&mut command);
        if let Some(python) = python {
            python.set(&mut command, tools);
        }
        command.current_dir(folder()).env("STREAMSAN_BIN", &self.product);
        command
    }

    fn end_to_end(&self, tally: &mut Tally, tools: &Toolchain, python: Option<&Python>, names: &[&str]) -> Result<()> {
        Self::look_for(&self.e2e, names)?;
        for name in names {
            tally.run(name, self.emulated(tools, python, &self.e2e).arg(name))?;
        }
        Ok(())
    }

    fn cases(&self, tally: &mut Tally, tools: &Toolchain, names: &[&str]) -> Result<()> {
        let cases = self.cases.as_ref().context("the slice has no lists of programs")?;
        Self::look_for(cases, names)?;
        names.iter().try_for_each(|name| tally.run(name, self.emulated(tools, None, cases).arg(name)))
    }
}

/// Where cargo runs the tests.
fn folder() -> PathBuf {
    workspace::root().join("tests")
}
