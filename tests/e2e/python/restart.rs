//! `STREAMSAN=1`: a script starts itself again, or is told why it cannot.

use std::process::Stdio;

use tests::run::{Ended, command, end};
use tests::{build, product};

const SCRIPT: &str = "import streamsan, sys\nstreamsan.enable()\nprint('runs', streamsan.is_active())\nsys.exit(5)\n";

/// Runs a line of the shell in which `$script` is the script's file, in a folder of the test's.
fn shell(test: &str, line: &str) -> Ended {
    let script = build::scratch(test).join("script.py");
    std::fs::write(&script, SCRIPT).expect("written");
    let mut command = command("bash");
    command.args(["-c", line]).env("script", &script).env("STREAMSAN", "1").env("STREAMSAN_BIN", product::bin());
    build::keep_bytecode(&mut command);
    command.env("PYTHONPATH", product::root().join("python"));
    end(command.stdin(Stdio::null()))
}

#[test]
fn a_script_that_can_be_read_again_is_started_again() {
    for line in [
        "python3 \"$script\"",
        "python3 \"$script\" - argument",
        "cat \"$script\" | python3 \"$script\"",
        "cd \"$(dirname \"$script\")\"; python3 -m script",
        "python3 -c \"$(cat \"$script\")\"",
    ] {
        let ended = shell("python-started-again", line);
        assert_eq!((ended.code(), ended.out.as_str()), (Some(5), "runs True\n"), "{line}: {}", ended.err);
    }
}

#[test]
fn a_script_that_is_consumed_says_so() {
    for line in [
        "python3 < \"$script\"",
        "python3 - < \"$script\"",
        "python3 - argument < \"$script\"",
        "cat \"$script\" | python3",
        "cat \"$script\" | python3 -u -",
        "cat \"$script\" | python3 /dev/stdin",
        "python3 <(cat \"$script\")",
    ] {
        let ended = shell("python-consumed", line);
        assert_eq!((ended.code(), ended.out.as_str()), (Some(1), ""), "{line}: {}", ended.err);
        assert!(ended.err.contains("cannot be read a second time: write it to a file first"), "{line}: {}", ended.err);
    }
}
