//! `streamsan memory`: the allocations of a trace.

use super::arguments::Takes;
use super::common::{prepare, print, readable, unreadable};
use crate::cli::outputs::StandardOutput;
use crate::tools;
use settings::Options;
use settings::exit_code::{Ending, Reason};
use system::file_name::FileName;
use system::output;

/// Report the allocations of a trace: peak, who held it, leaks
#[derive(clap::Args, Debug)]
pub(crate) struct MemoryArgs {
    /// A trace
    #[arg(value_name = "FILE", required = true)]
    file: FileName,
    #[command(flatten)]
    _options: Takes<{ options::Command::Memory as u16 }>,
}

/// Reads the trace and writes what it has.
pub(crate) fn main(args: &MemoryArgs, mut options: Options) -> Ending {
    let file = &args.file;
    let inputs = std::slice::from_ref(file);
    if let Err(ending) =
        readable(file).and_then(|()| prepare(&mut options, std::process::id(), StandardOutput::Free, inputs))
    {
        return ending;
    }
    let mut report = tools::memory::read(file);
    let mut fine = true;
    let mut write = |path: &FileName, bytes: Result<Vec<u8>, String>| {
        let written = bytes.and_then(|bytes| output::write(path, &bytes).map_err(|error| error.to_string()));
        if let Err(error) = written {
            system::say!("{} can not be written: {error}", system::output::called(path));
            fine = false;
        }
    };
    if let Some(path) = &options.reports.json {
        write(path, Ok(format!("{:#}\n", report.json()).into_bytes()));
    }
    if let Some(path) = &options.snapshot {
        let snapshot = tools::snapshot::snapshot(&mut report);
        let pickle = serde_pickle::to_vec(&snapshot, serde_pickle::SerOptions::new());
        write(path, pickle.map_err(|error| error.to_string()));
    }
    let taken = [&options.reports.json, &options.snapshot]
        .iter()
        .any(|name| name.as_ref().is_some_and(|name| name.is(output::STANDARD)));
    let printed = if taken { Ending::default() } else { print(&report.text()) };
    printed.joined(unreadable(file, report.error)).and(!fine, Reason::NotWritten)
}
