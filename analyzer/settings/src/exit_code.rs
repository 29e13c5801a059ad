//! Exit codes of the `streamsan` command. Others script against these: never change the meaning of
//! one.
//!
//! Owns the numbers. Which of them a run ends with is decided in `report::gate::ending`.

/// Nothing was found, for the commands that run no program (`check`, `explain`, `dump`). With `run`
/// and `record` a clean run ends with the program's own exit code.
pub const CLEAN: i32 = 0;

/// `hunt`: a program ended with an error of its own, and nothing worse has happened.
pub const PROGRAM_FAILED: i32 = 1;

/// Findings (with `diff`: new ones), unless `--error-exitcode` names another number; with 0 the
/// program's own exit code is
/// kept.
pub const FINDINGS: i32 = 66;

/// The command line, `STREAMSAN_OPTIONS` or the configuration file was wrong, or a file or kernel
/// that they name is not there; nothing was run.
pub const USAGE: i32 = 2;

/// With `--require-cuda`: the program made no use of CUDA that could be checked.
pub const NO_CUDA: i32 = 4;

/// The tool itself failed (or switched itself off half way), so that a clean report would mean
/// nothing.
pub const INTERNAL: i32 = 70;

/// The program could not be started: it is there, but cannot be executed (as shells answer).
pub const CANNOT_EXECUTE: i32 = 126;

/// The program could not be started: it was not found (as shells answer).
pub const NOT_FOUND: i32 = 127;
