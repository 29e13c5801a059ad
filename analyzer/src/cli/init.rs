//! `streamsan init`: the files with which a project starts.

use std::path::PathBuf;

use super::common::{failed, print, wrong};
use crate::init::{self, Ci, Commands, build_system};
use settings::exit_code::Ending;

/// Write streamsan.toml, a file of suppressions and a job for CI into a project
#[derive(clap::Args, Debug)]
pub(crate) struct InitArgs {
    /// The CI system whose job to write [default: those whose files the project has]
    #[arg(long, value_name = "github|gitlab|none", value_enum)]
    ci: Option<Ci>,
    /// The command that GitHub's job builds the project with [default: what its files show, else
    /// make]
    #[arg(long, value_name = "COMMAND")]
    build: Option<String>,
    /// The command that the job checks [default: the project's tests as its files show them, else
    /// ./app]
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// The folder of the project
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
}

/// Writes the files that are not there yet, and says what became of each.
pub(crate) fn main(args: &InitArgs) -> Ending {
    if !args.folder.is_dir() {
        return wrong(&format!("init: {} is no folder", args.folder.display()));
    }
    let systems = args.ci.map_or_else(|| Ci::of(&args.folder), |ci| vec![ci]);
    let guess = build_system::guess(&args.folder);
    let commands = Commands {
        build: args.build.as_deref().unwrap_or(guess.build),
        check: args.command.as_deref().unwrap_or(guess.check),
        next: if args.command.is_none() { guess.next } else { "" },
        is_python: guess.is_python,
    };
    let written = init::write(&args.folder, &systems, &commands);
    if args.build.is_some() && !guess.is_python && !systems.contains(&Ci::Github) {
        system::say!("NOTE: --build is for GitHub's job; that of GitLab takes the program from an earlier stage");
    }
    let ending = print(&written.text);
    match written.error {
        Some(error) => failed(&format!("init: {error}")),
        None => ending,
    }
}
