//! `cargo xtask VERB`: what developers run that needs no GPU.
//!
//! Owns the list of verbs and their command line; each verb has a file under `verbs/` of its own.
//! What users run is in `scripts/`, what needs a GPU in `tests/gpu`.

mod columns;
mod command;
mod environment;
mod lint;
mod verbs;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

use verbs::simulated::{frameworks, machine_code, operators, oracle, replay, schedules};
use verbs::{
    aarch64, bless, check, compare_reports, cuda_headers, field, fleet, fuzz, harden, inside_suites, library_names,
    loom, nightly, numba, precision, ptx_census, release, torch_sim, unsafe_blocks, validators,
};

/// Tasks for developers of StreamSan that need no GPU.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Verb {
    Aarch64(aarch64::Aarch64Args),
    Bless(bless::BlessArgs),
    Check(check::CheckArgs),
    CompareReports(compare_reports::CompareReportsArgs),
    CudaHeaders(cuda_headers::CudaHeadersArgs),
    Field(field::FieldArgs),
    Fleet(fleet::FleetArgs),
    Frameworks(frameworks::FrameworksArgs),
    Fuzz(fuzz::FuzzArgs),
    Harden(harden::HardenArgs),
    InsideSuites(inside_suites::InsideSuitesArgs),
    LibraryNames(library_names::LibraryNamesArgs),
    Lint(lint::LintArgs),
    Loom(loom::LoomArgs),
    MachineCode(machine_code::MachineCodeArgs),
    Nightly(nightly::NightlyArgs),
    Numba(numba::NumbaArgs),
    Operators(operators::OperatorsArgs),
    Oracle(oracle::OracleArgs),
    Replay(replay::ReplayArgs),
    Precision(precision::PrecisionArgs),
    PtxCensus(ptx_census::PtxCensusArgs),
    Release(release::ReleaseArgs),
    Schedules(schedules::SchedulesArgs),
    Test(aarch64::TestArgs),
    TorchSim(torch_sim::TorchSimArgs),
    #[command(name = "unsafe")]
    UnsafeBlocks(unsafe_blocks::UnsafeBlocksArgs),
    Validators(validators::ValidatorsArgs),
}

fn main() -> ExitCode {
    let done = match Verb::parse() {
        Verb::Aarch64(args) => aarch64::run(&args),
        Verb::Bless(args) => bless::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::CompareReports(args) => compare_reports::run(&args),
        Verb::CudaHeaders(args) => cuda_headers::run(&args),
        Verb::Field(args) => field::run(&args),
        Verb::Fleet(args) => fleet::run(&args),
        Verb::Frameworks(args) => frameworks::run(&args),
        Verb::Fuzz(args) => fuzz::run(&args),
        Verb::Harden(args) => harden::run(&args),
        Verb::InsideSuites(args) => inside_suites::run(&args),
        Verb::LibraryNames(args) => library_names::run(&args),
        Verb::Lint(args) => lint::run(&args),
        Verb::Loom(args) => loom::run(&args),
        Verb::MachineCode(args) => machine_code::run(&args),
        Verb::Nightly(args) => nightly::run(&args),
        Verb::Numba(args) => numba::run(&args),
        Verb::Operators(args) => operators::run(&args),
        Verb::Oracle(args) => oracle::run(&args),
        Verb::Replay(args) => replay::run(&args),
        Verb::Precision(args) => precision::run(&args),
        Verb::PtxCensus(args) => ptx_census::run(&args),
        Verb::Release(args) => release::run(&args),
        Verb::Schedules(args) => schedules::run(&args),
        Verb::Test(args) => aarch64::test(&args),
        Verb::TorchSim(args) => torch_sim::run(&args),
        Verb::UnsafeBlocks(args) => unsafe_blocks::run(&args),
        Verb::Validators(args) => validators::run(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
