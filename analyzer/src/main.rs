//! The `streamsan` command: a thread with room for deep analyses, and the exit code. The commands
//! are in [`analyzer::cli`].

use std::ffi::OsString;

use analyzer::cli;
use settings::exit_code;

fn main() {
    // A trace that grows past the limit of file sizes is an error that is named, not our death.
    analyzer::launcher::process::ignore_file_size_signal();
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let thread = std::thread::Builder::new().stack_size(ingest::STACK).spawn(move || cli::main(&args));
    // A panic has printed its own message.
    let code = thread.map(|thread| thread.join().unwrap_or(exit_code::INTERNAL));
    std::process::exit(code.unwrap_or_else(|error| {
        eprintln!("streamsan: no thread: {error}");
        exit_code::INTERNAL
    }));
}
