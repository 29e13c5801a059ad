//! The `streamsan` command: a thread with room for deep analyses, and the exit code. The commands
//! are in [`analyzer::cli`].

use std::ffi::OsString;

use analyzer::cli;
use settings::exit_code::{Ending, Reason};

fn main() {
    analyzer::launcher::inherited::take_signals();
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let thread = std::thread::Builder::new().stack_size(ingest::STACK).spawn(move || cli::main(&args));
    let failed = || Ending::from(Reason::Failed).code();
    let code = match thread {
        // A panic has printed its own message.
        Ok(thread) => thread.join().unwrap_or_else(|_| failed()),
        Err(error) => {
            system::say!("no thread: {error}");
            failed()
        }
    };
    std::process::exit(code)
}
