//! `streamsan doctor`: what it says of whole and of broken installations.
//!
//! Runs against the fake driver and the simulated GPU.

use std::path::Path;

use tests::run::{Ended, command, end, streamsan};
use tests::{build, fake, product};

/// The line of a subject.
fn line<'a>(ended: &'a Ended, subject: &str) -> &'a str {
    let of = |line: &&str| line.split_whitespace().nth(1) == Some(subject.split(' ').next().unwrap_or(subject));
    ended.out.lines().find(of).unwrap_or_else(|| panic!("no line on {subject}: {}\n{}", ended.out, ended.err))
}

fn is(ended: &Ended, grade: &str, subject: &str) -> bool {
    line(ended, subject).starts_with(grade)
}

/// Links to the product's files that `keep` names, and the command itself.
fn install(folder: &Path, keep: impl Fn(&str) -> bool) {
    std::fs::create_dir_all(folder).expect("writable");
    for entry in std::fs::read_dir(product::bin()).expect("built").flatten() {
        let (from, to) = (entry.path(), folder.join(entry.file_name()));
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "streamsan" {
            // It asks where it is itself.
            std::fs::hard_link(&from, &to).or_else(|_| std::fs::copy(&from, &to).map(drop)).expect("copied");
        } else if keep(&name) {
            std::os::unix::fs::symlink(&from, &to).expect("a link");
        }
    }
}

#[test]
fn the_simulated_gpu_is_tried() {
    let ended = end(streamsan(["doctor"]).env_remove("LD_LIBRARY_PATH"));
    assert_eq!(ended.code(), Some(0), "{}{}", ended.out, ended.err);
    assert!(is(&ended, "ok", "simulator") && is(&ended, "ok", "files") && !ended.out.contains("FAIL"), "{}", ended.out);
    assert!(line(&ended, "simulator").ends_with("was run and checked"), "{}", ended.out);
    // What the system allows, as the kernel says it of a child of this process.
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let is_free = status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "0"]));
    assert_eq!(line(&ended, "system").contains("seccomp filters no system calls"), is_free, "{}", ended.out);
    assert!(line(&ended, "system").contains("container") && line(&ended, "system").contains("debug"), "{}", ended.out);
    assert!(line(&ended, "sees").contains("--host-accesses") && line(&ended, "sees").contains("--sim --inside"));
    // A line for each check, none wider than a terminal's grade, subject and sentence need.
    assert!(ended.out.lines().all(|line| line.split_whitespace().count() > 3), "{}", ended.out);
}

#[test]
fn a_driver_is_tried() {
    let ended = end(streamsan(["doctor"]).env("LD_LIBRARY_PATH", fake::folder()));
    assert_eq!(ended.code(), Some(0), "{}{}", ended.out, ended.err);
    assert!(is(&ended, "ok", "driver") && is(&ended, "ok", "gpu"), "{}", ended.out);
}

#[test]
fn what_is_missing_is_named() {
    let base = build::scratch("doctor");
    let doctor = |name: &str, keep: &dyn Fn(&str) -> bool| {
        let folder = base.join(name);
        install(&folder, keep);
        end(command(folder.join("streamsan")).arg("doctor").env_remove("LD_LIBRARY_PATH"))
    };
    let ours = |name: &str| name.starts_with("libstreamsan") || name == "sim";
    let ended = doctor("whole", &ours);
    assert_eq!(ended.code(), Some(0), "{}{}", ended.out, ended.err);
    let ended = doctor("no-shim", &|name| ours(name) && name != "libstreamsan.so");
    assert_eq!(ended.code(), Some(70), "{}", ended.out);
    assert!(is(&ended, "FAIL", "files") && is(&ended, "FAIL", "simulator"), "{}", ended.out);
    let ended = doctor("no-threads", &|name| ours(name) && name != "libstreamsan_threads.so");
    assert_eq!(ended.code(), Some(0), "{}", ended.out);
    assert!(line(&ended, "files").contains("libstreamsan_threads.so missing"), "{}", ended.out);
    assert!(!line(&ended, "sees").contains("--host-order"), "{}", ended.out);
    // Neither a GPU nor the simulated one: the machines of these tests have no driver.
    let ended = doctor("no-sim", &|name| ours(name) && name != "sim");
    assert!(is(&ended, "note", "simulator"), "{}", ended.out);
    assert!(!line(&ended, "sees").contains("--sim"), "{}", ended.out);
    if is(&ended, "note", "driver") {
        assert!(ended.code() == Some(70) && is(&ended, "FAIL", "gpu"), "{}", ended.out);
    }
}

#[test]
fn surroundings_are_named() {
    let wrong = end(streamsan(["doctor"]).env("STREAMSAN_OPTIONS", "jsn=x"));
    assert_eq!(wrong.code(), Some(70), "{}", wrong.out);
    assert!(line(&wrong, "environment").contains("unknown option 'jsn'; did you mean 'json'?"), "{}", wrong.out);
    let folder = tests::build::scratch("doctor-options");
    std::fs::write(folder.join("streamsan.toml"), "quiet = true\nfoo = 1\n").expect("write");
    let file = end(streamsan(["doctor"]).current_dir(&folder));
    assert_eq!(file.code(), Some(70), "{}", file.out);
    assert!(is(&file, "FAIL", "options") && line(&file, "options").contains("line 2: "), "{}", file.out);
    std::fs::write(folder.join("streamsan.toml"), "quiet = true\n").expect("write");
    let file = end(streamsan(["doctor"]).current_dir(&folder).env("TMPDIR", "/nonexistent"));
    assert_eq!(file.code(), Some(0), "{}", file.out);
    assert!(is(&file, "ok", "options") && line(&file, "options").contains("streamsan.toml"), "{}", file.out);
    assert!(line(&file, "temporary").contains("/nonexistent: "), "{}", file.out);
    let set = end(streamsan(["doctor"]).env("STREAMSAN_OPTIONS", "quiet=1").env("STREAMSAN_CACHE", "off"));
    assert_eq!(set.code(), Some(0), "{}", set.out);
    assert!(is(&set, "note", "environment") && is(&set, "note", "cache"), "{}", set.out);
}
