//! `streamsan timeline`: a trace as a picture.

use std::io::Write;

use super::arguments::Given;
use super::common::{failed, prepare, readable, unreadable, wrong};
use crate::cli::outputs::StandardOutput;
use crate::tools;
use report::words::counted;
use settings::Options;
use settings::exit_code::Ending;
use system::file_name::FileName;
use system::output;

/// Draw a trace for Perfetto: streams as tracks, in logical time
#[derive(clap::Args, Debug)]
pub(crate) struct TimelineArgs {
    /// A trace
    #[arg(value_name = "FILE", required = true)]
    file: FileName,
    #[command(flatten)]
    pub(super) options: Given<{ options::Command::Timeline as u16 }>,
}

/// Draws it.
pub(crate) fn main(args: &TimelineArgs, mut options: Options) -> Ending {
    let file = &args.file;
    if options.output.is_none() {
        return wrong("timeline needs '-o FILE' for the picture");
    }
    let inputs = std::slice::from_ref(file);
    if let Err(ending) =
        readable(file).and_then(|()| prepare(&mut options, std::process::id(), StandardOutput::Free, inputs))
    {
        return ending;
    }
    let path = options.output.unwrap_or_default();
    let to: std::io::Result<Box<dyn Write>> = match path.is(output::STANDARD) {
        true => Ok(Box::new(std::io::stdout().lock())),
        false => std::fs::File::create(&path).map(|file| Box::new(file) as Box<dyn Write>),
    };
    let made = to.and_then(|to| tools::timeline::draw(file, std::io::BufWriter::new(to)));
    match made {
        // A reader that has seen enough (head) closes the pipe: no error of ours.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ending::default(),
        Err(error) => failed(&format!("{path} can not be written: {error}")),
        Ok((drawn, error)) => {
            let (ops, arrows) = (counted(drawn.slices, "op", "ops"), counted(drawn.flows, "arrow", "arrows"));
            system::say!("{path}: {ops} and {arrows}, in logical time; open it at ui.perfetto.dev");
            unreadable(file, error)
        }
    }
}
