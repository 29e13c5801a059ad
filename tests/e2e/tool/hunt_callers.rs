//! One race in a helper that three places of the program call, in one program or in three of a
//! hunt: one line and one cause, and each finding in the JSON. Runs `callers.c` against the fake
//! driver.

use std::path::{Path, PathBuf};

use tests::run::{end, streamsan};
use tests::{build, fake};

use super::hunt::{hunt, put, read};

/// `callers.c`, made in a way.
fn callers(ways: &[&str]) -> PathBuf {
    let ways: Vec<String> = ways.iter().map(|way| format!("-D{way}")).collect();
    let folder = fake::folder().to_string_lossy();
    let mut args: Vec<&str> = ways.iter().map(String::as_str).collect();
    args.extend(["-Wl,--no-as-needed", "-L", &folder, "-lcuda"]);
    build::c_program("callers.c", &args)
}

/// A folder with the program once for each caller.
fn three_programs(name: &str, ways: &[&str]) -> PathBuf {
    let folder = build::scratch(name);
    for caller in ["CALLER=1", "CALLER=2", "CALLER=3"] {
        put(&callers(&[&[caller][..], ways].concat()), &folder.join(format!("bin/{}", &caller[7..])));
    }
    folder
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.contains("callers.c:") && line.contains("data race")).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn three_programs_with_three_callers_of_one_helper_have_one_cause() {
    let folder = three_programs("callers", &[]);
    let json = folder.join("report.json");
    let ended = end(&mut hunt(&["--format", "short", "--json", text(&json)], &folder));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let report = read(&json);
    let (findings, causes) =
        (report["findings"].as_array().expect("a list"), report["causes"].as_array().expect("a list"));
    assert_eq!((findings.len(), causes.len()), (3, 1), "{report:#}");
    assert_eq!(causes[0]["findings"].as_array().map(Vec::len), Some(3), "{report:#}");
    let found = lines(&ended.err);
    let cause = causes[0]["fingerprint"].as_str().expect("text");
    assert_eq!(found.len(), 1, "{}", ended.err);
    assert!(found[0].ends_with(&format!(", from 3 callers [cause:{cause}]")), "{}", found[0]);
    assert!(ended.err.contains("SUMMARY: 3 findings (3 certain, 0 likely)"), "{}", ended.err);
    assert!(ended.err.contains(", 1 cause"), "{}", ended.err);
    // What one program's own report calls the cause is taken as well, and covers that one only.
    let alone = folder.join("alone.json");
    assert_eq!(end(streamsan(["--json"]).arg(&alone).arg("--").arg(folder.join("bin/2"))).code(), Some(66));
    let own = read(&alone)["causes"][0]["fingerprint"].as_str().expect("text").to_owned();
    let file = folder.join("own.supp");
    std::fs::write(&file, format!("cause:{own}\n")).expect("written");
    let ended = end(&mut hunt(&["--format", "short", "--suppressions", text(&file)], &folder));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert!(lines(&ended.err)[0].contains(", from 2 callers ["), "{}", ended.err);
    assert!(ended.err.contains(", 1 suppressed"), "{}", ended.err);
    // The cause of the merged report covers all of them.
    std::fs::write(&file, format!("cause:{cause}\n")).expect("written");
    let ended = end(&mut hunt(&["--format", "short", "--suppressions", text(&file)], &folder));
    assert_eq!((ended.code(), lines(&ended.err).len()), (Some(0), 0), "{}", ended.err);
}

#[test]
fn mended_or_from_one_place_there_is_no_count_of_callers() {
    let ended = end(&mut hunt(&["--format", "short"], &three_programs("callers-ordered", &["ORDERED"])));
    assert_eq!((ended.code(), lines(&ended.err).len()), (Some(0), 0), "{}", ended.err);
    assert!(ended.err.contains("SUMMARY: 0 findings"), "{}", ended.err);
    let ended = end(streamsan(["--format", "short", "--"]).arg(callers(&["CALLER=1"])));
    assert_eq!((ended.code(), lines(&ended.err).len()), (Some(66), 1), "{}", ended.err);
    assert!(!ended.err.contains("callers ["), "{}", ended.err);
}

#[test]
fn one_program_with_three_callers_has_one_line() {
    let ended = end(streamsan(["--format", "short", "--"]).arg(callers(&["CALLER=0"])));
    assert_eq!((ended.code(), lines(&ended.err).len()), (Some(66), 1), "{}", ended.err);
    assert!(ended.err.contains(", from 3 callers [cause:"), "{}", ended.err);
    let ended = end(streamsan(["--findings-per-cause", "1", "--"]).arg(callers(&["CALLER=0"])));
    assert!(ended.err.contains("streamsan: 2 more findings of this cause"), "{}", ended.err);
    assert_eq!(ended.err.matches(", from 2 callers [cause:").count(), 1, "{}", ended.err);
    let ended = end(streamsan(["--format", "short", "--"]).arg(callers(&["CALLER=0", "ORDERED"])));
    assert_eq!((ended.code(), lines(&ended.err).len()), (Some(0), 0), "{}", ended.err);
}
