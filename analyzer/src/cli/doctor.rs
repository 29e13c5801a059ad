//! `streamsan doctor`: whether programs can be checked here.

use super::arguments::config;
use super::common::print;
use crate::doctor;
use report::gate::Gate;
use settings::exit_code::{Ending, Reason};

/// Say whether programs can be checked on this machine, and what is missing
#[derive(clap::Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Make the calls of the probe (internal)
    #[arg(long, hide = true)]
    probe: bool,
}

/// Makes the checks and prints them.
pub(crate) fn main(args: &DoctorArgs) -> Ending {
    if args.probe {
        return print(&doctor::probe());
    }
    let mut options = settings::Options::default();
    let configured = config::read(None, options::Command::Run, &mut options);
    // The files that it names are read by each run.
    let configured = configured.and_then(|file| Gate::open(&options).map(|_| file));
    let (text, fine) = doctor::examine(super::run::no_gpu(), configured);
    print(&text).and(!fine, Reason::Failed)
}
