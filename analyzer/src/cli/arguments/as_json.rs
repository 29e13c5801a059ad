//! `--json` and `--json=FILE` of commands that print JSON in place of their text.
//!
//! Owns this one argument. Of commands that write a report beside their text, `--json FILE` is a
//! row of the table of options.

use std::io::{BufWriter, Write};

use crate::cli::common::{print, wrong};
use crate::cli::outputs::{self, StandardOutput};
use settings::Options;
use settings::exit_code::{Ending, Reason};
use settings::report_files::ReportFiles;
use system::file_name::FileName;
use system::output::{self, Replacement};

/// The argument.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct AsJson {
    /// Print JSON, or write it to FILE
    #[arg(
        long = "json",
        id = "as-json",
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = output::STANDARD,
    )]
    json: Option<FileName>,
}

impl AsJson {
    /// Whether JSON is asked for.
    pub(crate) fn is_asked(&self) -> bool {
        self.json.is_some()
    }

    /// The file that it goes to, with its placeholders replaced; `None`: standard output. A file of
    /// `inputs` is refused.
    pub(crate) fn file(&self, inputs: &[FileName]) -> Result<Option<FileName>, Ending> {
        let reports = ReportFiles { json: self.json.clone(), ..ReportFiles::default() };
        let mut named = Options { reports, ..Options::default() };
        let expanded = outputs::expand_all(&mut named, std::process::id(), StandardOutput::Free, inputs);
        expanded.map_err(|error| wrong(&error))?;
        Ok(named.reports.json.filter(|file| !file.is(output::STANDARD)))
    }

    /// Prints the text, or writes it to the file.
    pub(crate) fn print(&self, text: &str, inputs: &[FileName]) -> Ending {
        match self.file(inputs) {
            Err(ending) => ending,
            Ok(None) => print(text),
            Ok(Some(file)) => output::write(&file, text.as_bytes())
                .map_or_else(|error| not_written(&file, &error), |()| Ending::default()),
        }
    }
}

/// What it means that a file could not be written.
pub(crate) fn not_written(file: &FileName, error: &std::io::Error) -> Ending {
    system::say!("{file} can not be written: {error}");
    Reason::NotWritten.into()
}

/// Writes a file bit by bit. A regular file is replaced when it is complete; until then, and if
/// `write` fails, the old one stays.
pub(crate) fn write_file<E: From<std::io::Error>>(
    file: &FileName,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    match output::replaceable(file).and_then(|place| Replacement::begin(&place)) {
        Some(mut new) => {
            let mut to = BufWriter::new(&mut new);
            write(&mut to)?;
            to.flush()?;
            drop(to);
            Ok(new.finish()?)
        }
        None => {
            let mut to = BufWriter::new(std::fs::File::create(file)?);
            write(&mut to)?;
            Ok(to.flush()?)
        }
    }
}
