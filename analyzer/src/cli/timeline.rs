//! `streamsan timeline`: a trace as a picture.

use std::io::Write;

use super::arguments::Takes;
use super::common::{analysis_options, failed, prepare, readable, unreadable, wrong};
use crate::cli::outputs::StandardOutput;
use crate::tools::timeline::{Drawn, draw};
use analysis::AnalysisOptions;
use analysis::counterfactual::causes;
use ingest::{progress::Progress, recorded};
use report::model::Outcome;
use report::words::counted;
use settings::Options;
use settings::exit_code::Ending;
use system::file_name::FileName;
use system::output::{self, Replacement};
use trace::file::FileError;

/// Draw a trace for Perfetto: streams as tracks, in logical time, with its races
#[derive(clap::Args, Debug)]
pub(crate) struct TimelineArgs {
    /// A trace
    #[arg(value_name = "FILE", required = true)]
    file: FileName,
    #[command(flatten)]
    _options: Takes<{ options::Command::Timeline as u16 }>,
}

/// Draws into a file, or to standard output. A regular file is replaced when the drawing is
/// complete, and stays where there is nothing to draw.
fn drawn(trace: &FileName, outcomes: &[Outcome], path: &FileName) -> std::io::Result<(Drawn, Option<FileError>)> {
    let (mut file, mut out);
    let mut replacement = None;
    let to: &mut dyn Write = if path.is(output::STANDARD) {
        out = std::io::stdout().lock();
        &mut out
    } else {
        replacement = output::replaceable(path).and_then(|place| Replacement::begin(&place));
        match &mut replacement {
            Some(new) => new,
            None => {
                file = std::fs::File::create(path)?;
                &mut file
            }
        }
    };
    let (drawn, error) = draw(trace, outcomes, std::io::BufWriter::new(to))?;
    if let Some(new) = replacement
        && (error.is_none() || drawn != Drawn::default())
    {
        new.finish()?;
    }
    Ok((drawn, error))
}

/// The findings of the trace, as far as it can be read: what keeps it from being read is told with
/// the drawing.
fn findings(trace: &FileName, options: AnalysisOptions) -> Vec<Outcome> {
    let mut progress = Progress::new(std::fs::metadata(trace).map_or(0, |meta| meta.len()));
    let (mut processes, _) = recorded::analysed(trace, options, None, &[], (0, &mut progress));
    processes.values_mut().map(|analysis| causes::findings(analysis).0).collect()
}

/// Draws it.
pub(crate) fn main(args: &TimelineArgs, mut options: Options) -> Ending {
    let file = &args.file;
    if options.output.is_none() {
        return wrong("timeline needs '-o FILE' for the picture");
    }
    let inputs = std::slice::from_ref(file);
    if let Err(ending) =
        readable(file).and_then(|()| prepare(&mut options, std::process::id(), StandardOutput::Free, inputs))
    {
        return ending;
    }
    let judged = analysis_options(&options);
    let path = options.output.unwrap_or_default();
    let outcomes = findings(file, judged);
    match drawn(file, &outcomes, &path) {
        // A reader that has seen enough (head) closes the pipe: no error of ours.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ending::default(),
        Err(error) => failed(&format!("{} can not be written: {error}", system::output::called(&path))),
        Ok((drawn, Some(error))) if drawn == Drawn::default() => unreadable(file, Some(error)),
        Ok((drawn, error)) => {
            let (ops, arrows) = (counted(drawn.slices, "op", "ops"), counted(drawn.flows, "arrow", "arrows"));
            system::say!("{path}: {ops} and {arrows}, in logical time; open it at ui.perfetto.dev");
            unreadable(file, error)
        }
    }
}
