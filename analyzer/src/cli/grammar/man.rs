//! `streamsan man`: the manual pages, for packages.
//!
//! Owns the sections that the command line does not know: exit status, environment, files, examples
//! and related pages (man-pages(7), "Sections within a manual page"). The reference has them in
//! full.

use std::fs::OpenOptions;
use std::io::{Error, Write};
use std::path::{Path, PathBuf};

use crate::cli::common::{failed, print};
use settings::exit_code::Ending;

/// The main page; those of the commands are `streamsan-NAME.1`.
const MAIN: &str = "streamsan.1";

/// Exit codes, as `docs/reference/exit-codes.md` explains them.
const EXIT_STATUS: [(&str, &str); 8] = [
    ("0, or the program's own", "Nothing was found."),
    ("1", "hunt: a program ended with an error of its own."),
    ("66", "Findings, or another number with --error-exitcode."),
    ("2", "Wrong usage. No program was run."),
    ("4", "The program made no use of CUDA that could be checked (see --require-cuda)."),
    ("70", "StreamSan failed, or could not check everything: a clean report would mean nothing."),
    ("126", "The program cannot be executed."),
    ("127", "The program was not found."),
];

const ENVIRONMENT: [(&str, &str); 6] = [
    ("STREAMSAN_OPTIONS", "Options as key=value:key=value. The command line takes precedence."),
    ("STREAMSAN_CACHE", "Folder of kept analyses of kernels, or off."),
    ("STREAMSAN_SIM", "The simulated device, as key=value:key=value."),
    ("CUDA_HOME", "Where tools of NVIDIA are searched for."),
    ("NO_COLOR", "No colours, unless --color says otherwise."),
    ("GITHUB_ACTIONS", "If true, annotations are printed beside the report."),
];

const FILES: [(&str, &str); 3] = [
    ("streamsan.toml", "Options, in the current folder or one above it."),
    ("$XDG_CACHE_HOME/streamsan", "Kept analyses of kernels; ~/.cache/streamsan without the variable."),
    ("libstreamsan.so", "The library that is preloaded. It lies beside the program streamsan."),
];

const EXAMPLES: [(&str, &str); 6] = [
    ("streamsan ./app", "Check a program while it runs on the GPU."),
    ("streamsan --sim --require-cuda --sarif races.sarif ./app", "A gate of a CI job on a machine without a GPU."),
    ("streamsan record -o t.trace ./app", "Record now, and later, on another machine:"),
    ("streamsan check t.trace", "Analyse the recording."),
    ("streamsan hunt --sim build/", "Check every program and test of a folder."),
    ("streamsan diff old.json new.json", "Which findings are new between two reports of --json."),
];

/// Print the manual page, or write the pages of all commands to a folder (internal)
#[derive(clap::Args, Debug)]
#[command(hide = true)]
pub(crate) struct ManArgs {
    /// Where to write the pages
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Prints the page, or writes the pages.
pub(crate) fn main(args: &ManArgs, command: clap::Command) -> Ending {
    let made = match &args.folder {
        Some(folder) => {
            clap_mangen::generate_to(command, folder).and_then(|()| complete(folder)).map(|()| Ending::default())
        }
        None => {
            let mut text = Vec::new();
            let made = clap_mangen::Man::new(command).render(&mut text);
            made.map(|()| print(&format!("{}{}", String::from_utf8_lossy(&text), main_sections(&[]))))
        }
    };
    made.unwrap_or_else(|error| failed(&format!("no manual page: {error}")))
}

/// Adds the sections to the pages of a folder.
fn complete(folder: &Path) -> Result<(), Error> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name == MAIN || (name.starts_with("streamsan-") && name.ends_with(".1")) {
            names.push(name);
        }
    }
    names.sort_unstable();
    for name in &names {
        let text = if name == MAIN { main_sections(&names) } else { command_sections() };
        OpenOptions::new().append(true).open(folder.join(name))?.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn main_sections(pages: &[String]) -> String {
    let mut text = list("EXIT STATUS", &EXIT_STATUS) + &list("ENVIRONMENT", &ENVIRONMENT) + &list("FILES", &FILES);
    text += &list("EXAMPLES", &EXAMPLES);
    let others = pages.iter().filter(|name| *name != MAIN).filter_map(|name| name.strip_suffix(".1"));
    let others: Vec<String> = others.chain(["ld.so", "nvcc"]).map(related).collect();
    text + ".SH \"SEE ALSO\"\n" + &others.join(",\n") + "\n"
}

fn command_sections() -> String {
    list("EXIT STATUS", &EXIT_STATUS) + ".SH \"SEE ALSO\"\n" + &related("streamsan") + "\n"
}

/// A page that another one names.
fn related(name: &str) -> String {
    let section = if name == "ld.so" { 8 } else { 1 };
    format!("\\fB{}\\fR({section})", escaped(name))
}

/// A section of terms and what they mean.
fn list(title: &str, entries: &[(&str, &str)]) -> String {
    let mut text = format!(".SH \"{title}\"\n");
    for (term, meaning) in entries {
        text += &format!(".TP\n\\fB{}\\fR\n{}\n", escaped(term), escaped(meaning));
    }
    text
}

/// Text for roff: hyphens stay hyphens when they are copied, and no line begins a request.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
