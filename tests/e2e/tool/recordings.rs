//! Recordings as files: what is recorded says later what a run says, and damaged and foreign files
//! are named.

use tests::run::{command, end, streamsan};
use tests::{build, product};

use super::command_line::racy;

#[test]
fn recorded_then_checked_is_as_live() {
    let folder = build::scratch("record-check");
    let trace = folder.join("t");
    let ended = end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(racy()).arg("3"));
    assert_eq!(ended.code(), Some(3), "recording judges nothing: {}", ended.err);
    let live = end(streamsan(["run", "--"]).arg(racy()).arg("3"));
    let later = end(streamsan(["check"]).arg(&trace));
    assert_eq!((live.code(), later.code()), (Some(66), Some(66)));
    let strip = |text: &str| {
        let lines = text.lines().filter(|line| !line.contains("0x") && !line.contains("host thread"));
        lines.map(|line| line.split("pid=").next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(strip(&live.err), strip(&later.err));
    // Both at once.
    let both = folder.join("both");
    let ended = end(streamsan(["run", "-o"]).arg(&both).arg("--").arg(racy()));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert_eq!(end(streamsan(["check", "--error-exitcode", "0"]).arg(&both)).code(), Some(0));
    assert_eq!(end(streamsan(["check"]).arg(&both).arg(&trace)).code(), Some(66));
}

#[test]
fn damaged_and_foreign_files_are_named() {
    let folder = build::scratch("damaged");
    let trace = folder.join("t");
    end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(racy()));
    let whole = std::fs::read(&trace).expect("the trace");
    let says = |name: &str, bytes: &[u8]| {
        let file = folder.join(name);
        std::fs::write(&file, bytes).expect("write");
        for word in ["check", "dump"] {
            let ended = end(streamsan([word]).arg(&file));
            assert!(matches!(ended.code(), Some(70 | 66)), "{word} {name}: {:?} {}", ended.code(), ended.err);
            assert!(ended.err.contains(name), "{word} {name}: {}", ended.err);
        }
    };
    says("empty", b"");
    says("foreign", b"#!/bin/sh\necho no trace\n");
    says("cut", &whole[..whole.len() - 7]);
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x55;
    says("flipped", &flipped);
    for word in ["check", "dump"] {
        let ended = end(&mut streamsan([word, "/nonexistent/trace"]));
        assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{}", ended.err);
    }
    // The traces that are there are named.
    let mistyped = folder.join("tt");
    let ended = end(streamsan(["check"]).arg(&mistyped));
    assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{}", ended.err);
    assert!(ended.err.contains("traces there: ") && ended.err.contains("/t,"), "{}", ended.err);
}

#[test]
fn a_dump_can_be_cut_short() {
    let folder = build::scratch("dump");
    let trace = folder.join("t");
    end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(racy()));
    let script = format!("{} dump {} | head -n 1", product::streamsan().display(), trace.display());
    let ended = end(command("sh").args(["-c", &script]));
    assert_eq!((ended.code(), ended.err.as_str()), (Some(0), ""));
    assert_eq!(ended.out.lines().count(), 1);
}
