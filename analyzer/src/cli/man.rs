//! `streamsan man`: the manual pages, for packages.

use std::path::PathBuf;

use super::common::{failed, print};
use settings::exit_code::Ending;

/// Print the manual page, or write the pages of all commands to a folder (internal)
#[derive(clap::Args, Debug)]
#[command(hide = true)]
pub(crate) struct ManArgs {
    /// Where to write the pages
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Prints the page, or writes the pages.
pub(crate) fn main(args: &ManArgs) -> Ending {
    let command = super::shown();
    let made = match &args.folder {
        Some(folder) => clap_mangen::generate_to(command, folder).map(|()| Ending::default()),
        None => {
            let mut text = Vec::new();
            let made = clap_mangen::Man::new(command).render(&mut text);
            made.map(|()| print(&String::from_utf8_lossy(&text)))
        }
    };
    made.unwrap_or_else(|error| failed(&format!("no manual page: {error}")))
}
