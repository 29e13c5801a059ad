//! `cargo xtask VERB`: what developers run that needs no GPU.
//!
//! Owns the list of verbs and their command line; each verb has a file under `verbs/` of its own.
//! What users run is in `scripts/`, what needs a GPU in `tests/gpu`.

mod lint;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

/// Tasks for developers of StreamSan that need no GPU.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Verb {
    Lint(lint::Args),
}

fn main() -> ExitCode {
    let done = match Verb::parse() {
        Verb::Lint(args) => lint::run(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
