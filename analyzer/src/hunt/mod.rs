//! The hunt: finds the programs of a folder that may use CUDA, and runs each under StreamSan.
//!
//! Owns what counts as a program, how each is started and ended, and how it came out. Does not
//! analyse: each program has a process of this tool to itself (`streamsan run`), which hands over
//! what it has found ([`handed`]). So neither a crash nor the memory of one analysis is a matter of
//! the others. Does not merge or print reports: that is [`report`].
//!
//! The files in the order of use: `find` walks the folder, `ctest` asks for the tests of a build,
//! `links` says which executables use CUDA, `pytest` which Python files do. `selection` leaves out
//! what another job runs or an earlier hunt found clean. `one` runs a program
//! and judges its end, `second` says what another run of it is to measure and what follows from
//! that, `queue` runs them all, and `progress` says how far it is.

pub(crate) mod ctest;
pub(crate) mod find;
pub mod handed;
pub(crate) mod links;
pub(crate) mod one;
pub(crate) mod progress;
pub(crate) mod pytest;
pub(crate) mod queue;
pub(crate) mod second;
pub(crate) mod selection;
pub(crate) mod target;

/// The words that a program is run under: `streamsan run` with its options.
#[derive(Clone, Debug, Default)]
pub(crate) struct Under {
    /// The tool.
    pub(crate) tool: std::path::PathBuf,
    /// Its options.
    pub(crate) options: Vec<std::ffi::OsString>,
    /// The time that a program has, if it brings none of its own.
    pub(crate) limit: std::time::Duration,
    /// Whether that holds for programs with a limit of their own too.
    pub(crate) limit_for_all: bool,
    /// Where the output of programs is kept.
    pub(crate) output: std::path::PathBuf,
    /// Why programs can find no GPU here, if that is so and they run without a simulated one.
    pub(crate) no_gpu: Option<&'static str>,
    /// Whether weak findings count.
    pub(crate) pedantic: bool,
    /// Whether no more programs are started after one with findings.
    pub(crate) fail_fast: bool,
    /// Whether programs with findings in doubt run a second time; the error says why they cannot.
    /// `None`: that is not wanted.
    pub(crate) second: Option<Result<(), String>>,
}
