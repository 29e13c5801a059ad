//! `streamsan check`: recorded traces, analysed as if they were live.

pub(crate) mod fleet;

use super::arguments::Takes;
use super::common::{Outside, analysis_options, failed, note_required, prepare, readable, report, write_early, wrong};
use crate::cli::outputs::StandardOutput;
use analysis::counterfactual::edits::written::{self, WrittenWait};
use analysis::ipc::Across;
use ingest::segments::parts::{self, Parts};
use ingest::{progress::Progress, recorded};
use report::gate::ending;
use report::model::Outcome;
use settings::Assumptions;
use settings::Options;
use settings::exit_code::{Ending, Reason};
use system::file_name::FileName;

/// Check traces, or folders of them (one for each rank, say)
#[derive(clap::Args, Debug)]
pub(crate) struct CheckArgs {
    /// Traces, or folders with traces
    #[arg(value_name = "FILE", required = true)]
    files: Vec<FileName>,
    #[command(flatten)]
    _options: Takes<{ options::Command::Check as u16 }>,
}

/// Analyses the traces and reports.
pub(crate) fn main(args: &CheckArgs, mut options: Options) -> Ending {
    let files = match recorded::files(&args.files) {
        Ok(files) => files,
        Err(error) => return wrong(&error),
    };
    if let Some(Err(ending)) = args.files.iter().map(readable).find(Result::is_err) {
        return ending;
    }
    let gate = match prepare(&mut options, std::process::id(), StandardOutput::Free, &files) {
        Ok(gate) => gate,
        Err(ending) => return ending,
    };
    let with = match written(&options) {
        Ok(with) => with,
        Err(error) => return wrong(&error),
    };
    let options = &options;
    let parts: Vec<Parts> = files.iter().map(|file| parts::parts(file).unwrap_or_default()).collect();
    let has_gaps = parts.iter().any(Parts::have_gaps);
    if has_gaps && (!with.is_empty() || options.assumptions != Assumptions::default()) {
        return failed(
            "--with, --without and --default-stream need a whole trace, and segments of this one are missing",
        );
    }
    system::interrupt::watch();
    let mut progress = Progress::new(parts.iter().map(Parts::bytes).sum()).unless(options.quiet);
    let across = Across::new(false);
    // Other processes may have synchronised in what is missing.
    let compared = Some(&across).filter(|_| !options.judging.host_threads && !has_gaps);
    let (mut outcomes, mut unread, mut done): (Vec<Outcome>, Vec<String>, _) = (Vec::new(), Vec::new(), 0);
    for (file, parts) in files.iter().zip(&parts) {
        let mut early = |found| {
            let mut so_far = [outcomes.clone(), found].concat();
            tell_unread(&mut so_far, &unread);
            write_early(so_far, &gate, options);
        };
        let beside = (done, &mut progress);
        let (mut found, error) = recorded::check(file, analysis_options(options), compared, &with, beside, &mut early);
        done += parts.bytes();
        if files.len() > 1 {
            found.iter_mut().for_each(|outcome| outcome.process.trace = Some(file.to_string()));
        }
        if let Some(first) = found.first_mut() {
            first.coverage.partial.clone_from(&parts.notes);
        }
        if let Some(error) = error {
            unread.push(format!("{file}: {error}"));
        }
        outcomes.extend(found);
    }
    tell_unread(&mut outcomes, &unread);
    if let Some(note) = without_end_mark(&parts) {
        match outcomes.first_mut() {
            Some(first) => first.coverage.partial.push(note),
            None => system::say!("NOTE: {note}"),
        }
    }
    // A damaged segment is a gap as well, which only reading it shows.
    if outcomes.iter().all(|outcome| outcome.coverage.gaps == 0) {
        across.finish(&mut outcomes);
    }
    drop(progress);
    // The report names them too, if there is one and it is seen.
    if outcomes.is_empty() || options.log_file.is_some() {
        unread.iter().for_each(|error| system::say!("{error}"));
    }
    if outcomes.is_empty() && !unread.is_empty() {
        return Reason::NotRead.into();
    }
    let (report, printed) = report(outcomes, &gate, options, Outside::default());
    let required = options.cuda_required();
    let ending = ending::of_run(&report, options.error_exitcode, required.is_some())
        .and(!unread.is_empty(), Reason::NotRead)
        .and(!printed, Reason::NotWritten);
    note_required(required, &ending);
    ending
}

/// The report names the traces that could not be read, those without a process among them.
fn tell_unread(outcomes: &mut [Outcome], unread: &[String]) {
    if let Some(first) = outcomes.first_mut() {
        first.coverage.unread = unread.to_vec();
    }
}

/// A line about traces of which nobody can tell whether they are whole, if there are any.
fn without_end_mark(parts: &[Parts]) -> Option<String> {
    let old = parts.iter().filter(|parts| parts.lacks_end_mark).count();
    let which = match (old, parts.len()) {
        (0, _) => return None,
        (_, 1) => "this trace".to_owned(),
        (old, all) => format!("{old} of {all} traces"),
    };
    Some(format!("the format of {which} has no end mark, so a cut between two frames does not show"))
}

/// The waits of the files that `--with` names. The error is a line for the user.
fn written(options: &Options) -> Result<Vec<WrittenWait>, String> {
    let mut waits = Vec::new();
    for file in &options.with {
        let text = system::local_files::read_named_text(file).map_err(|error| format!("{file}: {error}"))?;
        waits.extend(written::read(&file.to_string(), &text)?);
    }
    Ok(waits)
}
