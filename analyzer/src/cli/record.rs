//! `streamsan record`: a trace instead of a report.

use std::ffi::OsString;

use super::arguments::Takes;
use super::common::wrong;
use super::run;
use settings::Options;
use settings::exit_code::Ending;

/// Run a program and write a trace, to check it later
#[derive(clap::Args, Debug)]
#[command(override_usage = "streamsan record -o FILE [OPTIONS] [--] PROGRAM [ARGS]...")]
pub(crate) struct RecordArgs {
    /// What to run, with its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    program: Vec<OsString>,
    #[command(flatten)]
    _options: Takes<{ options::Command::Record as u16 }>,
}

/// Runs the program and writes the trace.
pub(crate) fn main(args: RecordArgs, words: &[OsString], environment: &[u8], options: Options) -> Ending {
    if args.program.is_empty() {
        return wrong("record needs a program to run");
    }
    if options.output.is_none() {
        return wrong("record needs '-o FILE' for the trace");
    }
    run::note_misplaced(&args.program, words, &options);
    run::start(&args.program, environment, options, &run::Purpose::default())
}
