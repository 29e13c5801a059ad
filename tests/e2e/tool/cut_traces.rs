//! Traces that are not what was recorded, each frame of them intact: cut off between two frames,
//! with a frame left out or repeated, of a recorder that was killed, of one that goes on; and
//! traces of versions that do not show it.
//!
//! Runs against the fake driver, as `command_line` does.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use super::command_line::{racy, text};
use tests::run::{Ended, end, end_of, streamsan};
use tests::{build, fake, product};
use trace::file::{Frame, Reader};

fn check(trace: &Path) -> Ended {
    end(streamsan(["check"]).arg(trace))
}

/// Where the frames of a trace begin, the empty last one among them.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let mut reader = Reader::new(bytes).expect("a trace");
    let mut at = vec![reader.position() as usize];
    while reader.next_frame(&mut Frame::default()).expect("whole") {
        at.push(reader.position() as usize);
    }
    at
}

#[test]
fn a_trace_that_is_cut_off_or_lacks_a_frame_is_never_green() {
    let folder = build::scratch("cut-traces");
    let (whole, cut) = (folder.join("whole.trace"), folder.join("cut.trace"));
    for (words, code) in [(&["0", "ordered"][..], 0), (&[], 66)] {
        let ended = end(streamsan(["record", "-o", text(&whole), "--"]).arg(racy()).args(words));
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        assert_eq!(check(&whole).code(), Some(code));
        let bytes = std::fs::read(&whole).expect("a trace");
        let mut borders = borders(&bytes);
        assert!(borders.len() > 2, "ops, symbols, and the end: {borders:?}");
        for (n, border) in borders.iter().enumerate() {
            std::fs::write(&cut, &bytes[..*border]).expect("written");
            let ended = check(&cut);
            // The ops are in the first frame.
            let right = if n == 0 || code == 0 { 70 } else { code };
            assert_eq!(ended.code(), Some(right), "cut at {border} of {}: {}", bytes.len(), ended.err);
            let lines = ended.ours();
            let named: Vec<_> = lines.iter().filter(|line| line.contains("is cut off")).collect();
            assert_eq!(named.len(), 1, "{}", ended.err);
            assert!(named[0].contains(&format!("at byte {border}")), "{}", ended.err);
        }
        borders.push(bytes.len());
        for pair in borders.windows(2) {
            let frame = &bytes[pair[0]..pair[1]];
            let without = [&bytes[..pair[0]], &bytes[pair[1]..]].concat();
            let twice = [&bytes[..pair[1]], frame, &bytes[pair[1]..]].concat();
            for (changed, holds_ops) in [(without, pair[0] > borders[0]), (twice, true)] {
                std::fs::write(&cut, changed).expect("written");
                let ended = check(&cut);
                let right = if code == 66 && holds_ops { 66 } else { 70 };
                assert_eq!(ended.code(), Some(right), "{pair:?}: {}", ended.err);
                let named = ["a part of the trace is missing", "is cut off", "something follows its end"];
                assert_eq!(named.iter().filter(|what| ended.err.contains(**what)).count(), 1, "{}", ended.err);
            }
        }
    }
    // Every command that reads traces says so.
    let bytes = std::fs::read(&whole).expect("a trace");
    std::fs::write(&cut, &bytes[..borders(&bytes)[1]]).expect("written");
    let drawn = folder.join("drawn.json");
    for (args, code) in [
        (&["check", "--quiet", "--error-exitcode", "0"][..], 70),
        (&["dump"], 70),
        (&["dump", "--json"], 70),
        (&["memory"], 70),
        (&["coverage"], 70),
        (&["explain"], 70),
        (&["excess"], 70),
        (&["timeline", "-o", text(&drawn)], 70),
    ] {
        let ended = end(streamsan(args).arg(&cut));
        assert_eq!(ended.code(), Some(code), "{args:?}: {}", ended.err);
        assert!(ended.err.contains("is cut off"), "{args:?}: {}", ended.err);
        let ended = end(streamsan(args).arg(&whole));
        assert!(ended.code() != Some(70) && !ended.err.contains("is cut off"), "{args:?}: {}", ended.err);
    }
}

#[test]
fn a_recording_is_not_whole_while_it_goes_on_nor_when_its_recorder_was_killed() {
    let folder = build::scratch("killed-recorder");
    let trace = folder.join("t.trace");
    let job = build::c_program(
        "long_job.c",
        &[
            &format!("-I{}", product::root().join("include").display()),
            &format!("-L{}", fake::folder().display()),
            "-lcuda",
        ],
    );
    for (ops, more) in [("9", 0_u64), ("20000", 1 << 20)] {
        let mut record = streamsan(["record", "--no-stacks", "-o", text(&trace), "--"]);
        record.arg(job.clone()).args([ops, "wait", text(&folder.join("never"))]);
        let recording = record.stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0).spawn().expect("started");
        // The recorder has written as many whole frames as it will: the program waits.
        let size = || std::fs::metadata(&trace).map_or(0, |meta| meta.len());
        let began = std::time::Instant::now();
        while size() < 16 + more {
            assert!(began.elapsed().as_secs() < 60, "{} bytes", size());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let ended = check(&trace);
        assert_eq!(ended.code(), Some(70), "{ops} ops: {}", ended.err);
        assert!(ended.err.contains("the recording goes on"), "{}", ended.err);
        // SAFETY: a group of our own child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(-(recording.id() as i32), libc::SIGKILL) }, 0);
        assert_eq!(end_of(recording).signal(), Some(libc::SIGKILL));
        let left = std::fs::read(&trace).expect("a trace");
        let ended = check(&trace);
        assert_eq!(ended.code(), Some(70), "{ops} ops, {} bytes: {}", left.len(), ended.err);
        assert!(ended.err.contains("is cut off") || ended.err.contains("middle of a frame"), "{}", ended.err);
        std::fs::remove_file(&trace).expect("there");
    }
}

/// Traces that were recorded before there was an end mark.
#[test]
fn traces_of_the_versions_before_keep_their_verdicts_and_are_named_once() {
    let recorded = product::root().join("tests/recorded");
    let notes = |ended: &Ended| ended.ours().iter().filter(|line| line.contains("no end mark")).count();
    for (name, code) in [
        ("triton_step.trace", 66),
        ("triton_step_waited.trace", 0),
        ("doc_mul_out.trace", 0),
        ("aarch64/racy.trace", 66),
        ("aarch64/ordered.trace", 0),
        ("segments", 66),
        ("segments/000001.trace", 0),
    ] {
        let ended = check(&recorded.join(name));
        assert_eq!((ended.code(), notes(&ended)), (Some(code), 1), "{name}: {}", ended.err);
        assert!(!ended.err.contains("ERROR"), "{name}: {}", ended.err);
    }
    let ended = check(&recorded.join("aarch64"));
    assert_eq!((ended.code(), notes(&ended)), (Some(66), 1), "{}", ended.err);
    assert!(ended.err.contains("the format of 3 of 3 traces"), "{}", ended.err);
    let folder = build::scratch("current-version");
    let ended = end(streamsan(["run", "-o", text(&folder.join("t")), "--"]).arg(racy()));
    assert_eq!((ended.code(), notes(&ended)), (Some(66), 0), "{}", ended.err);
    let ended = check(&folder.join("t"));
    assert_eq!((ended.code(), notes(&ended)), (Some(66), 0), "{}", ended.err);
    // What was cut off of such a trace between two frames can not be noticed, and that is said.
    let ordered = std::fs::read(recorded.join("aarch64/ordered.trace")).expect("a trace");
    let cut = folder.join("cut");
    for border in borders(&ordered) {
        std::fs::write(&cut, &ordered[..border]).expect("written");
        let ended = check(&cut);
        assert_eq!((ended.code(), notes(&ended)), (Some(0), 1), "{border}: {}", ended.err);
    }
}
