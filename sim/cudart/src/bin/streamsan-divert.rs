//! Writes the library that puts the simulator's runtime in place of NVIDIA's (crate `sim-divert`).
//!
//! `streamsan-divert libstreamsan_divert.so`

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let (Some(to), None) = (args.next(), args.next()) else {
        eprintln!("usage: streamsan-divert libstreamsan_divert.so");
        return ExitCode::from(2);
    };
    match std::fs::write(&to, streamsan_divert::LIBRARY) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("streamsan-divert: {}: {error}", to.to_string_lossy());
            ExitCode::FAILURE
        }
    }
}
