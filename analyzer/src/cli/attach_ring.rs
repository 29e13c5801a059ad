//! `streamsan attach-ring`: the analyzer of a program under plain `LD_PRELOAD`, which the shim
//! starts.
//!
//! Reads no configuration file: the shim inside of the program reads none either, and half of a
//! file would hold.

use options::{Id, Reader, Value, Word};

use super::common::{Outside, analysis_options, early, finish, prepare, recorder, report};
use crate::cli::outputs::StandardOutput;
use ingest::attach;
use ingest::live::{Judged, Sink};
use report::gate;
use settings::Options;
use settings::exit_code::{Ending, Reason};

/// Follow a program through the ring on a descriptor (internal)
#[derive(clap::Args, Debug)]
#[command(hide = true)]
pub(crate) struct AttachRingArgs {
    #[arg(hide = true)]
    fd: i32,
    #[arg(hide = true)]
    pid: i32,
}

/// Follows the program to its end and reports. The program runs already: a wrong option is named,
/// the others hold.
pub(crate) fn main(args: &AttachRingArgs, environment: &[u8]) -> Ending {
    let mut options = Options::default();
    for error in options.read_env(environment) {
        system::say!("in STREAMSAN_OPTIONS: {error}");
    }
    for name in in_vain(environment) {
        system::say!("in STREAMSAN_OPTIONS: '{name}' does nothing here: it needs the streamsan command");
    }
    if let Err(error) = options.consistent() {
        system::say!("in STREAMSAN_OPTIONS: {error}");
        options.judging.host_threads &= !options.judging.latent;
    }
    let pid = args.pid.unsigned_abs();
    let gate = prepare(&mut options, pid, StandardOutput::Closed, &[]).unwrap_or_default();
    // A trace that cannot be written, of another recording say, has been named.
    let recorder = recorder(&options);
    let is_refused = recorder.is_err();
    let recorder = recorder.ok().flatten();
    let early = Some(early(&options, &gate));
    let sink = Sink {
        analysis: Some(analysis_options(&options)),
        recorder: recorder.clone(),
        across: None,
        early,
        fresh: None,
        gives_way: !options.sim,
    };
    let ending = attach::attach_ring(args.fd, args.pid, &sink, |outcome| {
        let (report, printed) = report(outcome.into_iter().collect(), &gate, &options, Outside::default());
        let ending = gate::ending::of_run(&report, options.error_exitcode, options.require_cuda == Some(true));
        Judged { findings: report.failing() as u32, ending: ending.and(!printed || is_refused, Reason::NotWritten) }
    });
    ending.and(!finish(recorder.as_ref()), Reason::Failed)
}

/// Options that only the command acts on, which has not started this program.
fn in_vain(environment: &[u8]) -> Vec<&'static str> {
    let is_off = |value| matches!(value, Value::Flag(false) | Value::Word(Word::Off) | Value::Text(b"off"));
    let ours = |id: &Id| options::find(*id).reader == Reader::Launcher;
    let given = options::parse(environment).flatten().filter(|(id, value)| ours(id) && !is_off(*value));
    let mut names: Vec<&str> = given.map(|(id, _)| options::find(id).name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_command_acts_on_is_named() {
        assert_eq!(in_vain(b"sim:sim=1:config=x:soname=yes:stacks=0:json=r"), ["config", "sim", "soname"]);
        assert_eq!(in_vain(b"no-sim:config=off:output=t:exact"), [""; 0]);
    }
}
