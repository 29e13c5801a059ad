//! `streamsan --version`: which build this is, and what is in it.
//!
//! Owns the lines. The first one is that of `-V`, and scripts read it. What only the build knows is
//! told by `scripts/build` through the environment of the compiler.

use std::ffi::OsString;

use crate::launcher::process::beside;

/// The commit that it was built from, marked if files differed from it.
const COMMIT: Option<&str> = option_env!("STREAMSAN_COMMIT");

/// Whether the simulator of this build makes native code of kernels: `yes` or `no`.
const NATIVE: Option<&str> = option_env!("STREAMSAN_NATIVE");

/// The answer to these words, one of which asks for the version.
pub(crate) fn of(args: &[OsString]) -> String {
    let asked = args.iter().find(|word| *word == "--version" || *word == "-V");
    let first = format!("streamsan {}\n", env!("CARGO_PKG_VERSION"));
    if asked.is_none_or(|word| word == "-V") {
        return first;
    }
    let lines = [
        ("commit", COMMIT.filter(|commit| !commit.is_empty()).unwrap_or("not told by the build").to_owned()),
        ("target", target()),
        ("simulator", simulator(beside("sim/libcuda.so.1").is_ok(), NATIVE).to_owned()),
        ("parquet", if cfg!(feature = "parquet") { "yes" } else { "no" }.to_owned()),
    ];
    lines.into_iter().fold(first, |text, (subject, line)| format!("{text}{subject}: {line}\n"))
}

/// The platform that it was built for, as compilers name it.
fn target() -> String {
    let library = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    format!("{}-unknown-linux-{library}", std::env::consts::ARCH)
}

fn simulator(installed: bool, native: Option<&str>) -> &'static str {
    match (installed, native) {
        (false, _) => "not installed beside it",
        (true, Some("yes")) => "installed, with native code",
        (true, Some("no")) => "installed, without native code (kernels are interpreted)",
        (true, _) => "installed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str]) -> String {
        of(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn scripts_read_the_first_line_and_people_the_others() {
        let short = concat!("streamsan ", env!("CARGO_PKG_VERSION"), "\n");
        assert_eq!(said(&["-V"]), short);
        assert_eq!(said(&["check", "-V"]), short);
        let long = said(&["--version"]);
        assert!(long.starts_with(short), "{long}");
        let subjects: Vec<&str> = long.lines().skip(1).filter_map(|line| Some(line.split_once(": ")?.0)).collect();
        assert_eq!(subjects, ["commit", "target", "simulator", "parquet"]);
        assert!(long.contains(&format!("target: {}-unknown-linux-", std::env::consts::ARCH)), "{long}");
    }

    #[test]
    fn a_simulator_is_said_to_have_only_what_is_known() {
        assert!(simulator(false, Some("yes")).starts_with("not installed"));
        assert_eq!(simulator(true, None), "installed");
        assert!(
            simulator(true, Some("yes")).contains("with native") && simulator(true, Some("no")).contains("without")
        );
    }
}
