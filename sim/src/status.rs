//! Reports what the simulated GPU could not do, because the program itself may swallow the error.
//!
//! `STREAMSAN_SIM_STATUS=FILE` asks for one line for each reason, appended: `all REASON` when the
//! program cannot work at all here, `part REASON` when something it asked for is missing.
//! `streamsan --sim` names the file and reads it.

use std::fs::File;
use std::io::Write;

/// The program cannot be run here at all.
pub fn cannot_run(why: &str) {
    note("all", why);
}

/// Says on standard error what could not be done, and takes note of it.
pub fn complain(why: &str) {
    eprintln!("streamsan-sim: {why}");
    note("part", why);
}

fn note(weight: &str, why: &str) {
    let Some(path) = std::env::var_os("STREAMSAN_SIM_STATUS").filter(|path| !path.is_empty()) else { return };
    // A file that cannot be written stays empty; standard error has the message anyway.
    if let Ok(mut file) = File::options().create(true).append(true).open(path) {
        let _ = file.write_all(format!("{weight} {}\n", why.replace('\n', " ")).as_bytes());
    }
}
