//! `streamsan coverage`: which functions of the driver are modelled.

use super::arguments::Takes;
use super::common::{failed, print, readable};
use crate::tools::function_coverage;
use settings::exit_code::Ending;
use system::file_name::FileName;

/// List what is modelled of CUDA, and what a trace has of it
#[derive(clap::Args, Debug)]
pub(crate) struct CoverageArgs {
    /// A trace
    #[arg(value_name = "FILE")]
    file: Option<FileName>,
    #[command(flatten)]
    _options: Takes<0>,
}

/// Prints the listing.
pub(crate) fn main(args: &CoverageArgs) -> Ending {
    let Some(file) = &args.file else {
        return print(&function_coverage::listing(None));
    };
    if let Err(ending) = readable(file) {
        return ending;
    }
    match function_coverage::seen(file) {
        Ok(seen) => print(&function_coverage::listing(Some(&seen))),
        Err(error) => failed(&format!("{file}: {error}")),
    }
}
