//! `streamsan excess`: what the synchronisations of a trace are needed for.

use super::arguments::Takes;
use super::common::{analysis_options, failed, prepare, print, readable, unreadable};
use crate::cli::outputs::StandardOutput;
use analysis::Analysis;
use analysis::counterfactual::excess::listing::Listing;
use analysis::counterfactual::excess::{judge, page, text};
use ingest::recorded::FileRecords;
use ingest::segments::parts;
use ingest::{progress::Progress, recorded};
use settings::Options;
use settings::exit_code::{Ending, Reason};
use system::file_name::FileName;
use system::output;

/// List the synchronisations of a trace: needed, or ordering nothing
#[derive(clap::Args, Debug)]
pub(crate) struct ExcessArgs {
    /// A trace
    #[arg(value_name = "FILE", required = true)]
    file: FileName,
    #[command(flatten)]
    _options: Takes<{ options::Command::Excess as u16 }>,
}

/// Reads the trace and judges what synchronises.
pub(crate) fn main(args: &ExcessArgs, mut options: Options) -> Ending {
    let file = &args.file;
    let inputs = std::slice::from_ref(file);
    if let Err(ending) =
        readable(file).and_then(|()| prepare(&mut options, std::process::id(), StandardOutput::Free, inputs))
    {
        return ending;
    }
    let mut progress = Progress::new(parts::parts(file).map_or(0, |parts| parts.bytes())).unless(options.quiet);
    let (mut processes, error) = recorded::analysed(file, analysis_options(&options), None, &[], (0, &mut progress));
    drop(progress);
    if processes.values().any(Analysis::has_gaps) {
        let why = error.map_or_else(|| "its beginning was not kept".to_string(), |error| error.to_string());
        return failed(&format!("{file}: excess needs a whole trace: {why}"));
    }
    let mut all: Vec<Listing> = Vec::new();
    let mut fine = true;
    for (process, analysis) in &mut processes {
        let mut records = FileRecords { path: file.to_path_buf(), process: *process };
        match judge::judge(analysis, &mut records) {
            Some(listing) => all.push(listing),
            None => {
                system::say!("{file} can not be read again");
                fine = false;
            }
        }
    }
    let mut taken = false;
    let json = || format!("{:#}\n", Listing::json(&all, &file.to_string()));
    for (path, bytes) in
        [(&options.reports.json, &json as &dyn Fn() -> String), (&options.reports.html, &|| page::page(&all))]
    {
        let Some(path) = path else { continue };
        taken |= path.is(output::STANDARD);
        if let Err(error) = output::write(path, bytes().as_bytes()) {
            system::say!("{} can not be written: {error}", system::output::called(path));
            fine = false;
        }
    }
    let printed = if taken { Ending::default() } else { print(&text::text(&all)) };
    printed.joined(unreadable(file, error)).and(!fine, Reason::NotWritten)
}
