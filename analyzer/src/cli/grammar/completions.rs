//! `streamsan completions`: what a shell needs to complete the command line.

use clap_complete::Shell;

use crate::cli::common::print;
use settings::exit_code::Ending;

/// Print the completions of a shell
#[derive(clap::Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", required = true)]
    shell: Shell,
}

/// Prints those of the grammar.
pub(crate) fn main(args: &CompletionsArgs, mut grammar: clap::Command) -> Ending {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut grammar, "streamsan", &mut text);
    print(&String::from_utf8_lossy(&text))
}
