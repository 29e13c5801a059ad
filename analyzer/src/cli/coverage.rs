//! `streamsan coverage`: which functions of the driver are modelled.

use super::arguments::Given;
use super::common::{failed, print, readable};
use crate::{exit_code, functions};

/// List what is modelled of CUDA, and what a trace has of it
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A trace
    #[arg(value_name = "FILE")]
    file: Option<String>,
    #[command(flatten)]
    pub(super) options: Given<0>,
}

/// Prints the listing.
pub fn main(args: &Args) -> i32 {
    let Some(file) = &args.file else {
        print(&functions::listing(None));
        return exit_code::CLEAN;
    };
    if let Err(code) = readable(file) {
        return code;
    }
    match functions::seen(file) {
        Ok(seen) => {
            print(&functions::listing(Some(&seen)));
            exit_code::CLEAN
        }
        Err(error) => failed(&format!("{file}: {error}")),
    }
}
