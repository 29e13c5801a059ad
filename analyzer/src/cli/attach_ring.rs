//! `streamsan attach-ring`: the analyzer of a program under plain `LD_PRELOAD`, started by the shim.
//!
//! Reads no configuration file: the shim inside of the program reads none either, and half of a
//! file would hold.

use super::common::{analysis_options, prepare, recorder, report};
use crate::options::Options;
use crate::output::StandardOutput;
use crate::session::attach;
use crate::session::live::Sink;

/// Follow a program through the ring on a descriptor (internal)
#[derive(clap::Args, Debug)]
#[command(hide = true)]
pub struct Args {
    #[arg(hide = true)]
    fd: i32,
    #[arg(hide = true)]
    pid: i32,
}

/// Follows the program to its end and reports. The program runs already: a wrong option is named,
/// the others hold.
pub fn main(args: &Args, environment: &[u8]) -> i32 {
    let mut options = Options::default();
    for error in options.read_env(environment) {
        eprintln!("streamsan: in STREAMSAN_OPTIONS: {error}");
    }
    if let Err(error) = options.consistent() {
        eprintln!("streamsan: in STREAMSAN_OPTIONS: {error}");
        options.host_threads &= !options.latent;
    }
    let pid = args.pid.unsigned_abs();
    let gate = prepare(&mut options, pid, StandardOutput::Closed, &[]).unwrap_or_default();
    let recorder = recorder(&options).ok().flatten();
    let sink = Sink { analysis: Some(analysis_options(&options)), recorder, across: None };
    attach::attach_ring(args.fd, args.pid, &sink, |outcome| {
        let (report, _) = report(outcome.into_iter().collect(), &gate, &options, |_| Vec::new());
        report.failures().count() as u32
    })
}
