//! Engines that a script announces: `streamsan.external_begin` and `external_end`.

use std::process::Command;

use tests::run::{command, end, streamsan};
use tests::{build, fake, product};

fn script(mut command: Command, words: &[&str]) -> tests::run::Ended {
    command.arg("python3").arg(build::programs().join("external.py")).args(words);
    build::keep_bytecode(&mut command);
    end(command.env("PYTHONPATH", product::root().join("python")).env("LD_LIBRARY_PATH", fake::folder()))
}

#[test]
fn a_script_announces_an_engine() {
    let refused = "access is 'see': it must be one of read, write, read_write\nan address needs its size in bytes\n";
    let alone = script(command("env"), &[]);
    assert_eq!((alone.code(), alone.out), (Some(0), format!("{refused}sent False\n")), "{}", alone.err);
    for (words, findings) in [(&[][..], 1), (&["waits"], 0), (&["engine", "waits"], 1), (&["engine"], 3)] {
        let ended = script(streamsan(["--error-exitcode", "0", "--"]), words);
        assert_eq!((ended.code(), ended.out), (Some(0), format!("{refused}sent True\n")), "{words:?}: {}", ended.err);
        assert!(ended.err.contains(&format!("SUMMARY: {findings} finding")), "{words:?}: {}", ended.err);
        assert_eq!(ended.err.contains("external.py:"), findings > 0, "{words:?}: {}", ended.err);
    }
}
