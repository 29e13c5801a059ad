//! Recordings in segments, of a program that runs: checked as a whole, with a segment missing, and
//! what `--keep-last` keeps.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tests::run::{Ended, end, end_of, streamsan};
use tests::{build, fake};

/// Ops that fill a handful of segments of 1 MiB.
const OPS: &str = "60000";

fn job() -> PathBuf {
    let include = format!("-I{}", tests::product::root().join("include").display());
    let library = format!("-L{}", fake::folder().display());
    build::c_program("long_job.c", &[&include, &library, "-lcuda"])
}

fn record(folder: &Path, options: &[&str], words: &[&str]) -> Ended {
    let mut record = streamsan(["record", "--segment-mib=1", "--no-stacks", "-o"]);
    record.arg(folder).args(options).arg("--").arg(job()).arg(OPS).args(words);
    end(&mut record)
}

/// `streamsan check`, and the findings of its report.
fn checked(trace: &Path) -> (Ended, serde_json::Value) {
    let json = trace.with_extension("json");
    let ended = end(streamsan(["check", "--json"]).arg(&json).arg(trace));
    let text = std::fs::read_to_string(&json).unwrap_or_default();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    (ended, report["findings"].clone())
}

/// What is the same of findings in every run: their fingerprints, and how often they occurred.
fn prints(findings: &serde_json::Value) -> Vec<String> {
    let all = findings.as_array().expect("findings");
    all.iter().map(|finding| format!("{} {}", finding["fingerprint"], finding["count"])).collect()
}

/// Names in a folder with this ending, in order.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == ending)).collect();
    files.sort();
    files
}

/// Whatever the user's mask is, only the user may look.
#[test]
fn a_recording_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = build::scratch("segments_private");
    let mut record = streamsan(["record", "--segment-mib=1", "--keep-last=64MiB", "-o"]);
    record.arg(folder.join("job")).arg("--").arg(job()).arg(OPS).arg("race-last");
    // SAFETY: umask is async-signal-safe.
    unsafe {
        record.pre_exec(|| {
            libc::umask(0);
            Ok(())
        })
    };
    let ended = end(&mut record);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let mut all = vec![folder.join("job")];
    let mut at = 0;
    while let Some(path) = all.get(at).cloned() {
        at += 1;
        all.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    }
    assert!(all.iter().any(|path| path.ends_with("shared")) && all.len() > 4, "{all:?}");
}

/// A race at the end of a job, and its twin without one.
#[test]
fn segments_say_what_one_file_says_and_a_missing_one_is_named() {
    let folder = build::scratch("segments");
    for (words, code) in [(&["race-last"][..], 66), (&[], 0)] {
        let (whole, parts) = (folder.join(format!("whole{code}")), folder.join(format!("parts{code}")));
        let mut one = streamsan(["record", "--no-stacks", "-o"]);
        assert_eq!(end(one.arg(&whole).arg("--").arg(job()).arg(OPS).args(words)).code(), Some(0));
        let ended = record(&parts, &[], words);
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        let segments = files(&parts, "trace");
        assert!(segments.len() > 2 && files(&parts, "part").is_empty(), "{segments:?}");
        let (alone, found) = checked(&whole);
        let (together, same) = checked(&parts);
        assert_eq!((alone.code(), together.code()), (Some(code), Some(code)), "{}\n{}", alone.err, together.err);
        // Two runs have other process ids and addresses.
        assert_eq!(prints(&found), prints(&same), "{}\n{}", alone.err, together.err);
        // What is missing is named. The race at the end is found all the same; without one, nothing
        // is green.
        std::fs::remove_file(&segments[1]).expect("removed");
        let (rest, found) = checked(&parts);
        assert!(rest.err.contains("segment 1 is missing"), "{}", rest.err);
        assert_eq!(rest.code(), Some(if code == 0 { 70 } else { code }), "{}", rest.err);
        assert_eq!(prints(&found), prints(&same));
        let excess = end(streamsan(["excess"]).arg(&parts));
        assert_eq!(excess.code(), Some(70), "{}", excess.err);
        assert!(excess.err.contains("needs a whole trace"), "{}", excess.err);
    }
    let again = record(&folder.join("parts0"), &[], &[]);
    assert_eq!(again.code(), Some(2), "{}", again.err);
    assert!(again.err.contains("it holds a recording already"), "{}", again.err);
}

/// What the program asks to be kept stays, and so does what was there at the first finding. The
/// rest goes.
#[test]
fn the_end_is_kept_and_what_was_saved() {
    let folder = build::scratch("keep-last");
    let parts = folder.join("asked");
    let ended = record(&parts, &["--keep-last=2MiB"], &["race-first", "save"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.err.contains("saved-1-asked-for"), "{}", ended.err);
    let names = files(&parts, "trace");
    assert!(!names[0].ends_with("000000.trace") && !names.is_empty(), "{names:?}");
    let size: u64 = names.iter().map(|name| name.metadata().expect("there").len()).sum();
    assert!(size < 4 << 20, "{size} bytes are kept");
    let (end_of_job, found) = checked(&parts);
    assert_eq!((end_of_job.code(), found.as_array().map(Vec::len)), (Some(0), Some(0)), "{}", end_of_job.err);
    assert!(end_of_job.err.contains("the first that was kept"), "{}", end_of_job.err);
    let (saved, found) = checked(&parts.join("saved-1-asked-for"));
    assert_eq!((saved.code(), found.as_array().map(Vec::len)), (Some(66), Some(1)), "{}", saved.err);

    let parts = folder.join("found");
    let mut run = streamsan(["run", "--segment-mib=1", "--keep-last=2MiB", "--no-stacks", "-o"]);
    let ended = end(run.arg(&parts).arg("--").arg(job()).arg(OPS).arg("race-first"));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let (saved, _) = checked(&parts.join("saved-1-finding"));
    assert_eq!(saved.code(), Some(66), "{}", saved.err);
}

/// A job that runs is checked while it runs, and a signal saves what there is.
#[test]
fn a_job_is_checked_while_it_runs_and_saved_by_a_signal() {
    let folder = build::scratch("while-it-runs");
    let (parts, done) = (folder.join("parts"), folder.join("done"));
    let mut run = streamsan(["record", "--segment-mib=1", "--keep-last=1GiB", "--no-stacks", "-o"]);
    run.arg(&parts).arg("--").arg(job()).arg("30000").args(["race-first", "wait"]).arg(&done);
    let child = run.stderr(Stdio::piped()).process_group(0).spawn().expect("started");
    let began = Instant::now();
    let until = |what: &str, there: &dyn Fn() -> bool| {
        while !there() {
            assert!(began.elapsed() < Duration::from_secs(60), "waited for {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until("segments", &|| parts.is_dir() && !files(&parts, "trace").is_empty());
    let (meanwhile, found) = checked(&parts);
    assert_eq!((meanwhile.code(), found.as_array().map(Vec::len)), (Some(66), Some(1)), "{}", meanwhile.err);
    assert!(meanwhile.err.contains("the recording goes on"), "{}", meanwhile.err);
    // SAFETY: the process is our child and has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGURG) }, 0);
    let saved = parts.join("saved-1-signal");
    until("what was saved", &|| saved.is_dir() && !files(&saved, "trace").is_empty());
    std::fs::write(&done, "").expect("written");
    let ended = end_of(child);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert_eq!(checked(&saved).0.code(), Some(66));
    assert_eq!(checked(&parts).0.code(), Some(66));
}

/// Python asks whoever is there.
#[test]
fn python_asks_for_what_is_kept() {
    let script = "import streamsan; print(streamsan.save('odd loss'))";
    let package = tests::product::root().join("python");
    let answer = |mut command: std::process::Command| {
        let ended = end(command.args(["python3", "-c", script]).env("PYTHONPATH", &package));
        (ended.code(), ended.out.trim().to_string())
    };
    assert_eq!(answer(tests::run::command("env")), (Some(0), "False".to_string()));
    assert_eq!(answer(streamsan(["run"])), (Some(0), "True".to_string()));
}
