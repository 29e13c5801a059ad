//! What several commands do: files are prepared, reports written, users answered.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cli::outputs::{self, StandardOutput};
use analysis::AnalysisOptions;
use detect::exact::learned::{self, Learned};
use ingest::live::{Early, Recorder};
use ingest::recorded;
use ingest::segments::store::TraceStore;
use ingest::segments::writer::SegmentLimits;
use report::doubt::Measuring;
use report::escape::{Harmless as _, harmless};
use report::gate::Gate;
use report::gate::forbidden::Forbidden;
use report::gate::pattern::Pattern;
use report::model::{Outcome, Report};
use report::reporters::Reporters;
use report::words::counted;
use settings::exit_code::{Ending, NO_CUDA, Reason};
use settings::{CudaRequired, Options};
use system::file_name::FileName;

/// Says what the user did wrong.
pub(crate) fn wrong(error: &str) -> Ending {
    system::say!("{error}");
    Reason::Usage.into()
}

/// Says what went wrong in the tool.
pub(crate) fn failed(error: &str) -> Ending {
    system::say!("{error}");
    Reason::Failed.into()
}

/// Says why a run without CUDA work fails, if it does for that reason.
pub(crate) fn note_required(required: Option<CudaRequired>, ending: &Ending) {
    if let Some(required) = required.filter(|_| ending.code() == NO_CUDA) {
        system::say!("ERROR: no CUDA work was checked, so this ends with exit code {NO_CUDA}: {required}");
    }
}

/// A word as a shell takes it, for commands that are suggested.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    let word = if word.starts_with('-') { format!("./{word}") } else { word.to_owned() };
    if !word.is_empty() && word.chars().all(is_plain) {
        return word;
    }
    // Between quotes all characters mean themselves; those that a terminal obeys are spelt out.
    if harmless(&word) != word {
        let escape = |c: char| match c {
            '\\' | '\'' => format!("\\{c}"),
            c if harmless(&c.to_string()) != c.to_string() => {
                c.to_string().bytes().map(|byte| format!("\\x{byte:02x}")).collect()
            }
            c => c.to_string(),
        };
        return format!("$'{}'", word.chars().map(escape).collect::<String>());
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The same of the name of a file, whose bytes need not be UTF-8.
pub(crate) fn quoted_name(name: &FileName) -> String {
    let Err(_) = std::str::from_utf8(name.bytes()) else { return quoted(&String::from_utf8_lossy(name.bytes())) };
    let lead = if name.bytes().starts_with(b"-") { "./" } else { "" };
    let escape = |byte: &u8| match byte {
        b'\\' | b'\'' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    format!("$'{lead}{}'", name.bytes().iter().map(escape).collect::<String>())
}

/// Prints the result of a command to standard output. A reader that has seen enough (head) closes
/// the pipe, which is no error. Anything else that keeps the text from being written is one.
pub(crate) fn print(text: &str) -> Ending {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_or_else(|error| print_failed(&error), |()| Ending::default())
}

/// What it means that standard output could not be written.
pub(crate) fn print_failed(error: &std::io::Error) -> Ending {
    if error.kind() == ErrorKind::BrokenPipe {
        return Ending::default();
    }
    system::say!("standard output can not be written: {error}");
    Reason::NotWritten.into()
}

/// What the options mean for the analysis.
pub(crate) fn analysis_options(options: &Options) -> AnalysisOptions {
    AnalysisOptions {
        judging: options.judging,
        compare: options.exact.compare.is_some(),
        confirm: options.exact.confirm,
        measured_from_start: options.exact.confirm && options.exact.kernels.is_some(),
        measuring: match (options.exact.kernels.as_deref(), options.exact.confirm) {
            (Some("" | "all"), _) => Measuring::Exact,
            (Some(_), _) => Measuring::Named,
            (None, true) => Measuring::Confirm,
            (None, false) => Measuring::Nothing,
        },
        // Some kernels by name, all, or all beside predictions: then nothing is left out.
        settle: options.exact.kernels.as_deref() == Some("") && options.exact.compare.is_none(),
        assumptions: options.assumptions.clone().keep(),
        forbidden: Forbidden::keep(&options.forbid),
    }
}

/// What the options say of files, before anything runs: names are expanded, suppressions and the
/// baseline are read, what will be written can be written. `inputs`: files that the command reads.
/// The error has been said.
pub(crate) fn prepare(
    options: &mut Options,
    pid: u32,
    out: StandardOutput,
    inputs: &[FileName],
) -> Result<Gate, Ending> {
    ready(options, pid, out, inputs).map_err(|error| wrong(&error))
}

fn ready(options: &mut Options, pid: u32, out: StandardOutput, inputs: &[FileName]) -> Result<Gate, String> {
    detect::launches::image_reader::set_cache(options.cache.as_ref());
    system::local_files::set_search_path(options.symbol_path.iter().map(|folder| folder.to_path_buf()).collect());
    let forbidden = options.forbid.iter().filter_map(|rule| Some(("forbid", rule.split_once('=')?.1)));
    let patterns = options.library.iter().map(|pattern| ("library", &**pattern)).chain(forbidden);
    if let Some((option, pattern)) = patterns.into_iter().find(|(_, pattern)| Pattern::is_vacuous(pattern)) {
        return Err(format!("--{option}: the pattern '{pattern}' names nothing; '*' stands for all names"));
    }
    let patterns: Vec<Pattern> = options.library.iter().map(|text| Pattern::new(text)).collect();
    symbols::library::set_libraries(move |name| patterns.iter().any(|pattern| pattern.matches(name)));
    // A baseline may be written anew, for it is read before.
    let more = options.suppressions.iter().chain(&options.with).chain(&options.exact.learned).cloned();
    let inputs: Vec<FileName> = inputs.iter().cloned().chain(more).collect();
    outputs::expand_all(options, pid, out, &inputs)?;
    let gate = Gate::open(options)?;
    outputs::check_writable(options)?;
    if let Some(path) = &options.exact.learned {
        learned::give(Learned::read(path)?);
    }
    Ok(gate)
}

/// What is known of a run beside its processes' records.
#[derive(Default)]
pub(crate) struct Outside {
    /// Why the program, or part of it, could not be run on the simulated GPU.
    pub(crate) not_simulated: Vec<String>,
    /// Processes that could not be observed, and why.
    pub(crate) unchecked: Vec<String>,
}

/// Writes findings whose causes are not known yet into the files of reports: seeking causes takes a
/// while, and a process that is killed meanwhile should leave what it knows.
pub(crate) fn write_early(outcomes: Vec<Outcome>, gate: &Gate, options: &Options) {
    let reporters = Reporters::asked_for(options).in_files();
    if !reporters.is_empty() {
        let mut report = Report::merge(outcomes, options.judging.pedantic);
        gate.judge(&mut report);
        reporters.write(&report);
    }
}

/// The same for the processes of a live run.
pub(crate) fn early(options: &Options, gate: &Gate) -> Arc<Early> {
    let (options, gate) = (options.clone(), gate.clone());
    Early::new(move |outcomes| write_early(outcomes, &gate, &options))
}

/// The report of these outcomes, judged. Second: whether everything could be written.
pub(crate) fn report(outcomes: Vec<Outcome>, gate: &Gate, options: &Options, outside: Outside) -> (Report, bool) {
    let mut report = Report::merge(outcomes, options.judging.pedantic);
    report.coverage.not_simulated = outside.not_simulated;
    // What the analysis says of files that were replaced is a matter of recorded runs.
    report.coverage.unchecked.retain(|line| line.starts_with("the inside of "));
    report.coverage.unchecked.extend(outside.unchecked);
    report.unmet_names = unmet_names(&report, options);
    report.cuda_required = options.cuda_required().is_some();
    report.coverage.disarm();
    gate.judge(&mut report);
    let mut written = Reporters::asked_for(options).write(&report);
    if let Some(path) = &options.exact.compare {
        written &= report.oracle.write(path);
    }
    if let Some(path) = options.exact.learned.as_ref().filter(|_| report.learned.counts() != (0, 0)) {
        match std::mem::take(&mut report.learned).add_to(path) {
            Ok(_) if options.quiet => {}
            Ok((known, differ)) => {
                let launches = counted(known as u64, "launch", "launches");
                let more =
                    if differ == 0 { String::new() } else { format!("; {differ} more differed from run to run") };
                system::say!("LEARNED: {path} knows the ranges of {launches}{more}");
            }
            Err(error) => {
                system::say!("{error}");
                written = false;
            }
        }
    }
    (report, written)
}

/// Kernels that options name and that the program has not launched, as lines: a name may be spelt
/// wrong, or the kernel have another one by now.
fn unmet_names(report: &Report, options: &Options) -> Vec<String> {
    let named = [("inside", options.inside.as_deref()), ("exact", options.exact.kernels.as_deref())];
    let mut lines = Vec::new();
    for (option, names) in named {
        for name in names.unwrap_or_default().split(',').filter(|name| !name.is_empty() && *name != "all") {
            // As the shim compares them.
            let pattern = if name.contains('*') { Pattern::whole(name) } else { Pattern::new(name) };
            if report.coverage.any_work() && !report.coverage.kernels.keys().any(|kernel| pattern.matches(kernel)) {
                lines.push(format!("--{option}={}: the program launched no kernel of such a name", harmless(name)));
            }
        }
    }
    lines
}

/// The trace that is to be written, if one is.
pub(crate) fn recorder(options: &Options) -> Result<Option<Recorder>, Ending> {
    let Some(path) = &options.output else { return Ok(None) };
    let path_of: &Path = path;
    let made = if options.segment_mib > 0 || options.keep_last.is_some() {
        TraceStore::segments(path_of, SegmentLimits::of(options.segment_mib, options.keep_last))
    } else {
        TraceStore::file(path_of)
    };
    match made {
        Ok(store) => Ok(Some(Arc::new(Mutex::new(store)))),
        Err(error) => Err(wrong(&format!("{path} can not be written: {error}"))),
    }
}

/// Ends a recording, if there is one. False: not all of it could be written, which has been said.
pub(crate) fn finish(recorder: Option<&Recorder>) -> bool {
    let Some(recorder) = recorder else { return true };
    let mut store = recorder.lock().unwrap_or_else(PoisonError::into_inner);
    let ended = store.finish();
    if let Err(error) = &ended {
        system::say!("{}", store.complaint(error));
    }
    ended.is_ok()
}

/// Whether a file can be read at all; otherwise the error has been said, with the traces beside it.
pub(crate) fn readable(file: &FileName) -> Result<(), Ending> {
    // A trace is read several times.
    if std::fs::metadata(file).is_ok_and(|meta| meta.file_type().is_fifo()) {
        return Err(wrong(&format!("{file} is a pipe: write what comes from it to a file, and name that")));
    }
    let Err(error) = std::fs::File::open(file) else { return Ok(()) };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let there = recorded::files(&[folder.into()]).unwrap_or_default();
    let there: Vec<String> = there.iter().map(FileName::to_string).collect();
    const SHOWN: usize = 5;
    let names: Vec<&str> = there.iter().take(SHOWN).map(|name| name.strip_prefix("./").unwrap_or(name)).collect();
    let more = there.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let beside = if names.is_empty() { String::new() } else { format!("; traces there: {}{more}", names.join(", ")) };
    Err(wrong(&format!("{file}: {error}{beside}")))
}

/// Says why a trace could not be read to its end.
pub(crate) fn unreadable(file: &FileName, error: Option<trace::file::FileError>) -> Ending {
    error.map_or_else(Ending::default, |error| failed(&format!("{file}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gets_the_word_back_and_a_terminal_nothing_to_obey() {
        let words = [
            "t.trace",
            "a b",
            "it's",
            "$(touch x)",
            "`x`",
            "-o",
            "a;b|c&d",
            "*?[]",
            "\\n",
            "\u{1b}[2J",
            "a\nb'c",
            "\"",
            "~/x",
            "größe",
            "a\u{202e}b",
            "",
        ];
        for word in words {
            let shown = quoted(word);
            assert_eq!(harmless(&shown), shown);
            // `$'...'` is bash's.
            let ended = std::process::Command::new("bash").args(["-c", &format!("printf %s {shown}")]).output();
            let Ok(ended) = ended else { return };
            let back = String::from_utf8_lossy(&ended.stdout).into_owned();
            assert_eq!(back, if word == "-o" { "./-o" } else { word }, "{shown}");
        }
        assert_eq!((quoted("/a/t.trace").as_str(), quoted("a b").as_str()), ("/a/t.trace", "'a b'"));
    }
}
