//! Claims that are written down and input that is wrong: full disks and closed pipes, other
//! versions of files, patterns that name nothing.
//!
//! Runs against the fake driver, as `command_line` does.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::command_line::{racy, recorded, text};
use tests::run::{Ended, end, end_of, preloaded, streamsan};
use tests::{build, product};

/// A report of the racy program, which has one finding.
fn report(folder: &Path) -> PathBuf {
    let file = folder.join("report.json");
    let ended = end(streamsan(["check", "--json", text(&file)]).arg(recorded(folder)));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    file
}

/// Runs a command whose standard output is `out`.
fn into(out: impl Into<Stdio>, args: &[&str]) -> Ended {
    let mut command = streamsan(args);
    end_of(command.stdout(out).stderr(Stdio::piped()).spawn().expect("started"))
}

/// The end of a pipe that nobody reads.
fn closed_pipe() -> std::io::PipeWriter {
    std::io::pipe().expect("a pipe").1
}

#[test]
fn output_to_a_full_disk_is_an_error_of_every_command() {
    let folder = build::scratch("full");
    let (trace, report) = (recorded(&folder), report(&folder));
    let (trace, report) = (text(&trace), text(&report));
    let clean = folder.join("clean.trace");
    let ended = end(streamsan(["record", "-o", text(&clean), "--"]).arg(racy()).args(["0", "ordered"]));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let kernels = product::root().join("tests/recorded/triton_step.trace");
    let programs = folder.join("programs");
    std::fs::create_dir_all(&programs).expect("a folder");
    std::fs::copy(racy(), programs.join("racy")).expect("a copy");
    for args in [
        &["explain", text(&kernels)][..],
        &["explain", "--json", text(&kernels)],
        &["coverage"],
        &["coverage", trace],
        &["memory", trace],
        &["memory", "--json", "-", trace],
        &["excess", trace],
        &["excess", "--json", "-", trace],
        &["diff", report, report],
        &["diff", "--json", report, report],
        &["dump", trace],
        &["dump", "--json", trace],
        &["timeline", "-o", "-", trace],
        &["hunt", "--list", text(&programs)],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["--version"],
        &["check", "--quiet", "--json", "-", text(&clean)],
    ] {
        let ended = into(File::options().write(true).open("/dev/full").expect("there"), args);
        assert_eq!(ended.code(), Some(70), "{args:?}: {}", ended.err);
        let lines = ended.ours();
        assert!(lines.len() == 1 && lines[0].contains("No space left"), "{args:?}: {}", ended.err);
        // A reader that has seen enough is no error, but half a report is one.
        let ended = into(closed_pipe(), args);
        let is_report = args.contains(&"-") && args[0] != "timeline";
        assert_eq!(ended.code(), Some(if is_report { 70 } else { 0 }), "{args:?}: {}", ended.err);
        let said = ended.err.contains("standard output can not be written: Broken pipe");
        assert_eq!(said, is_report, "{args:?}: {}", ended.err);
        let ended = into(Stdio::piped(), args);
        assert_eq!(ended.code(), Some(0), "{args:?}: {}", ended.err);
        assert!(!ended.out.is_empty() && !ended.err.contains("can not be written"), "{args:?}: {}", ended.err);
    }
}

#[test]
fn a_device_without_an_end_is_an_error_and_not_read_for_ever() {
    let folder = build::scratch("endless");
    let (trace, report) = (recorded(&folder), report(&folder));
    let (trace, report) = (text(&trace), text(&report));
    for args in [
        &["check", "--baseline", "/dev/zero", trace][..],
        &["check", "--suppressions", "/dev/zero", trace],
        &["check", "--with", "/dev/zero", trace],
        &["check", "--config", "/dev/zero", trace],
        &["check", "--learned", "/dev/zero", trace],
        &["diff", "/dev/zero", report],
        &["explain", "/dev/zero"],
    ] {
        let ended = end(&mut streamsan(args));
        assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{args:?}: {}", ended.err);
        assert!(ended.err.contains("no regular file"), "{args:?}: {}", ended.err);
    }
    // A pipe has an end: a shell's substitution of a process is one.
    let (from, mut to) = std::io::pipe().expect("a pipe");
    std::io::Write::write_all(&mut to, b"# nothing\n").expect("room");
    drop(to);
    let ended = end(streamsan(["check", "--suppressions", "/dev/stdin", trace]).stdin(from));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
}

#[test]
fn a_time_line_takes_the_place_of_the_old_one_when_it_is_complete() {
    let folder = build::scratch("timeline-whole");
    let (trace, picture) = (recorded(&folder), folder.join("picture.json"));
    std::fs::write(&picture, "old").expect("written");
    let ended = end(&mut streamsan(["timeline", "/dev/null", "-o", text(&picture)]));
    assert_eq!(ended.code(), Some(70), "{}", ended.err);
    assert_eq!(std::fs::read(&picture).expect("there"), b"old");
    let ended = end(&mut streamsan(["timeline", text(&trace), "-o", text(&picture)]));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let drawn: serde_json::Value = serde_json::from_slice(&std::fs::read(&picture).expect("there")).expect("JSON");
    assert!(drawn["traceEvents"].as_array().is_some_and(|events| !events.is_empty()));
    let left = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let hidden: Vec<_> = left.filter(|name| name.as_encoded_bytes().starts_with(b".")).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn files_of_other_versions_are_refused() {
    let folder = build::scratch("versions");
    let (trace, report) = (recorded(&folder), report(&folder));
    let (base, other) = (folder.join("base.json"), folder.join("other.json"));
    let ended = end(&mut streamsan(["check", "--write-baseline", text(&base), text(&trace)]));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    for (file, field) in [(&report, "version"), (&base, "baseline")] {
        let mut value: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(file).expect("written")).expect("JSON");
        for (version, right) in [(1.into(), true), (0.into(), false), (2.into(), false), ("1".into(), false)] {
            value[field] = version;
            std::fs::write(&other, value.to_string()).expect("written");
            for args in [
                ["check", "--baseline", text(&other), text(&trace)],
                ["diff", "--quiet", text(&other), text(&report)],
                ["diff", "--quiet", text(&report), text(&other)],
            ] {
                let ended = end(&mut streamsan(args));
                assert_eq!(ended.code(), Some(if right { 0 } else { 2 }), "{args:?} {field}: {}", ended.err);
                let named = ended.ours().len() == 1 && ended.err.contains("this streamsan reads version 1");
                assert!(right || named, "{args:?} {field}: {}", ended.err);
            }
        }
    }
}

#[test]
fn patterns_that_name_nothing_or_a_part_of_a_hash_set_nothing_aside() {
    let folder = build::scratch("vacuous");
    let (trace, report, file) = (recorded(&folder), report(&folder), folder.join("supp"));
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(report).expect("written")).expect("JSON");
    let with = |line: &str| {
        std::fs::write(&file, line).expect("written");
        end(&mut streamsan(["check", "--suppressions", text(&file), text(&trace)]))
    };
    for field in ["fingerprint", "cause"] {
        let whole = report["findings"][0][field].as_str().expect("a hash");
        let (front, back) = (&whole[..whole.len() - 1], &whole[1..]);
        for pattern in [whole, &format!("^{whole}$"), &format!("{front}*"), "*"] {
            assert_eq!(with(&format!("{field}:{pattern}")).code(), Some(0), "{field}:{pattern}");
        }
        for pattern in [front, back, &format!("^{front}"), &format!("{back}$"), &whole[3..4]] {
            let ended = with(&format!("{field}:{pattern}"));
            assert_eq!(ended.code(), Some(66), "{field}:{pattern}: {}", ended.err);
            assert!(ended.err.contains("suppressed nothing"), "{field}:{pattern}: {}", ended.err);
        }
    }
    for pattern in ["^", "$", "^$", "**", "^*"] {
        let ended = with(&format!("race:{pattern}"));
        assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "race:{pattern}: {}", ended.err);
        for option in ["--ignore-stream", "--only-stream", "--ignore-kernel", "--ignore-module", "--library"] {
            let ended = end(&mut streamsan(["check", option, pattern, text(&trace)]));
            assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{option} {pattern}: {}", ended.err);
            assert!(ended.err.contains("names nothing") && ended.err.contains(option), "{}", ended.err);
        }
        for rule in ["sync", "default-stream"] {
            let ended = end(&mut streamsan(["check", "--forbid", &format!("{rule}={pattern}"), text(&trace)]));
            assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{rule}={pattern}: {}", ended.err);
            assert!(
                ended.err.contains("--forbid: the pattern") && ended.err.contains("names nothing"),
                "{}",
                ended.err
            );
        }
    }
}

#[test]
fn a_trace_that_is_gone_at_the_end_was_not_recorded() {
    let folder = build::scratch("trace-gone");
    let racy = racy();
    for (meanwhile, gone) in [
        ("rm t.trace", Some("was deleted")),
        ("mv t.trace other", Some("was deleted")),
        ("rm t.trace; echo mine > t.trace", Some("was replaced")),
        ("cp t.trace other; mv other t.trace", Some("was replaced")),
        ("rm t.trace; ln -s other t.trace", Some("was deleted")),
        ("rm t.trace; mkfifo t.trace", Some("was replaced")),
        ("head -c 1000000 /dev/zero >> t.trace", Some("was changed")),
        ("mv t.trace other; mv other t.trace", None),
        ("ln t.trace another", None),
        ("touch t.trace; chmod 400 t.trace", None),
    ] {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let script = format!("{} 0 ordered; {meanwhile}", text(&racy));
        for analysed in [false, true] {
            let words: &[&str] = if analysed { &["run", "-o", "t.trace"] } else { &["record", "-o", "t.trace"] };
            let ended = end(streamsan(words).args(["--", "sh", "-c", &script]).current_dir(&folder));
            assert_eq!(ended.code(), Some(if gone.is_some() { 70 } else { 0 }), "{meanwhile}: {}", ended.err);
            let lines = ended.ours();
            let said =
                gone.is_some_and(|gone| lines.iter().any(|line| line.contains("is gone") && line.contains(gone)));
            assert_eq!(said, gone.is_some(), "{meanwhile}: {}", ended.err);
            assert_eq!(ended.err.contains("recorded; check it"), gone.is_none() && !analysed, "{meanwhile}");
            for name in ["t.trace", "other", "another"] {
                let _ = std::fs::remove_file(folder.join(name));
            }
        }
    }
}

#[test]
fn a_second_recorder_of_one_file_is_refused() {
    let folder = build::scratch("two-recorders");
    let script = format!("{} 0 ordered; : > ran; while [ ! -e go ]; do sleep 0.02; done", text(&racy()));
    let words = ["record", "-o", "t.trace", "--", "sh", "-c", &script];
    let mut first = streamsan(words);
    let first = first.current_dir(&folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    while !folder.join("ran").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::os::unix::fs::symlink("t.trace", folder.join("link")).expect("a link");
    for name in ["t.trace", "link"] {
        for command in ["record", "run"] {
            let ended = end(streamsan([command, "-o", name, "--"]).arg(racy()).current_dir(&folder));
            assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{command} {name}: {}", ended.err);
            assert!(ended.err.contains("another recording is writing it"), "{}", ended.err);
        }
    }
    for (asked, words, code) in [("", &["3", "ordered"][..], 3), (":error-exitcode=66", &["0", "ordered"], 70)] {
        let options = format!("output=t.trace{asked}");
        let ended = end(preloaded(racy(), &options).args(words).current_dir(&folder));
        assert_eq!(ended.code(), Some(code), "{options}: {}", ended.err);
        assert!(ended.err.contains("another recording is writing it"), "{}", ended.err);
    }
    std::fs::write(folder.join("go"), "").expect("written");
    let ended = end_of(first);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let ended = end(streamsan(["check", "t.trace"]).current_dir(&folder));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let ended = end(streamsan(["record", "-o", "t.trace", "--"]).arg(racy()).current_dir(&folder));
    assert_eq!(ended.code(), Some(0), "the next one may: {}", ended.err);
}

fn pipe(at: &Path) {
    let name = std::ffi::CString::new(text(at)).expect("a path");
    // SAFETY: a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

#[test]
fn a_named_pipe_gets_the_whole_report_and_a_signal_ends_the_wait_for_its_reader() {
    let folder = build::scratch("fifo");
    let (trace, fifo) = (recorded(&folder), folder.join("fifo"));
    pipe(&fifo);
    let words = ["check", "--quiet", "--json", text(&fifo), text(&trace)];
    let start = || streamsan(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let read = |after: u64| {
        let fifo = fifo.clone();
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(after));
            std::fs::read(fifo).expect("readable")
        })
    };
    // The reader is there before, or comes late.
    for after in [0, 700] {
        let reader = read(after);
        let ended = end_of(start());
        assert_eq!(ended.code(), Some(66), "{after}: {}", ended.err);
        let report: serde_json::Value = serde_json::from_slice(&reader.join().expect("read")).expect("a whole report");
        assert_eq!(report["findings"].as_array().map(Vec::len), Some(1));
    }
    let waiting = start();
    let status = format!("/proc/{}/status", waiting.id());
    let catches = || {
        let text = std::fs::read_to_string(&status).expect("it runs");
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
        u64::from_str_radix(caught.trim(), 16).expect("digits") & 1 << (libc::SIGTERM - 1) != 0
    };
    while !catches() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    // SAFETY: it is our child, and not waited for yet.
    unsafe { libc::kill(waiting.id() as i32, libc::SIGTERM) };
    let ended = end_of(waiting);
    assert!(matches!(ended.code(), Some(66 | 70)), "{}", ended.err);
    assert!(ended.err.contains("interrupted by signal 15"), "{}", ended.err);
}

#[test]
fn a_link_to_what_is_not_there_yet_names_the_same_file() {
    let folder = build::scratch("dangling");
    let trace = recorded(&folder);
    std::os::unix::fs::symlink("real", folder.join("link")).expect("a link");
    std::os::unix::fs::symlink(folder.join("link"), folder.join("again")).expect("a link");
    let check = |json: &str, sarif: &str| {
        let mut command = streamsan(["check", "--json", json, "--sarif", sarif]);
        end(command.arg(&trace).current_dir(&folder))
    };
    for (json, sarif) in [("link", "real"), ("real", "link"), ("again", "real"), ("link", "again")] {
        let ended = check(json, sarif);
        assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{json} {sarif}: {}", ended.err);
        assert!(ended.err.contains("--json and --sarif both name"), "{}", ended.err);
        assert!(!folder.join("real").exists(), "nothing was written");
    }
    assert_eq!(check("link", "other").code(), Some(66), "and two files are two files");
    assert!(folder.join("real").exists() && folder.join("other").exists());
}

#[test]
fn no_message_has_characters_that_a_terminal_or_a_reader_of_lines_obeys() {
    let folder = build::scratch("hostile-text");
    let trace = recorded(&folder);
    let hostile = "x\u{1b}[31m\n::error::PWN\u{9b}\u{202e}";
    let config = folder.join("c.toml");
    std::fs::write(&config, "only-kernel = \"x\\u001b[31m\\n::error::PWN\"\n").expect("written");
    let unused = folder.join("unused");
    std::fs::write(&unused, "race:nomatch\u{1b}[31m\n").expect("written");
    let named = folder.join(hostile);
    std::fs::copy(racy(), &named).expect("a copy");
    let closed = folder.join(format!("static{hostile}"));
    let source = folder.join("main.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("written");
    let mut gcc = std::process::Command::new("gcc");
    assert!(gcc.args(["-static", "-o"]).arg(&closed).arg(&source).status().expect("gcc").success());
    let cases: [(&[&str], &str); 11] = [
        (&["./no\u{1b}such\n::error::PWN"], "cannot run"),
        (&[text(&closed)], "was not checked"),
        (&["--", text(&named), "0"], "::error"),
        (&["./none", hostile, "--json"], "'--json'"),
        (&["check", "--config", text(&config), text(&trace)], "--only-kernel"),
        (&["check", "--suppressions", text(&unused), text(&trace)], "suppressed nothing"),
        (&["check", "--suppressions", hostile, text(&trace)], "suppressions x"),
        (&["check", "--baseline", hostile, text(&trace)], "baseline x"),
        (&["check", "--json", "/nosuch/\n::error::\u{1b}", text(&trace)], "can not be written"),
        (&["check", hostile], "this is not a StreamSan trace"),
        (&["record", "-o", "/nosuch/\n::error::\u{1b}", "--", "true"], "can not be written"),
    ];
    for (args, what) in cases {
        let ended = end(streamsan(args).current_dir(&folder));
        assert!(what == "::error" || ended.err.contains(what), "{args:?}: {}", ended.err);
        let raw =
            |line: &str| line.starts_with("::") || line.chars().any(|c| c.is_control() && c != '\t' || c == '\u{202e}');
        assert!(!ended.err.lines().any(raw), "{args:?}: {:?}", ended.err);
    }
}

#[test]
fn a_configuration_that_cannot_be_read_is_no_configuration_that_is_absent() {
    let folder = build::scratch("config-kinds");
    let trace = recorded(&folder);
    let below = folder.join("below");
    std::fs::create_dir_all(&below).expect("a folder");
    let config = folder.join("streamsan.toml");
    let run = |args: &[&str]| end(streamsan(["check"]).args(args).arg(&trace).current_dir(&below));
    let link = |to: &str| std::os::unix::fs::symlink(to, &config).expect("a link");
    let kinds: [(&dyn Fn(), Option<&str>); 7] = [
        (&|| link("gone.toml"), Some("No such file")),
        (&|| link("streamsan.toml"), Some("symbolic links")),
        (&|| pipe(&config), Some("is no regular file")),
        (&|| link("/dev/null"), Some("is no regular file")),
        (&|| std::fs::create_dir(&config).expect("a folder"), Some("is no regular file")),
        (&|| std::fs::write(&config, "\n\nerror-exitcode = 300\n").expect("written"), Some("line 3: ")),
        (&|| std::fs::write(&config, "\n\n[chekc]\n").expect("written"), Some("line 3: ")),
    ];
    for (make, why) in kinds {
        make();
        let ended = run(&[]);
        assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{why:?}: {}", ended.err);
        assert!(ended.err.contains("streamsan.toml") && why.is_none_or(|why| ended.err.contains(why)), "{}", ended.err);
        assert_eq!(run(&["--config", "off"]).code(), Some(66), "{why:?}: passed over when told so");
        let _ = std::fs::remove_dir(&config);
        let _ = std::fs::remove_file(&config);
    }
    assert_eq!(run(&[]).code(), Some(66), "none is there");
    std::fs::write(folder.join("real.toml"), "error-exitcode = 5\n").expect("written");
    link("real.toml");
    assert_eq!(run(&[]).code(), Some(5), "a link to a file is read");
}

#[test]
fn a_quote_that_nothing_ends_is_an_error() {
    let folder = build::scratch("quotes");
    let trace = recorded(&folder);
    for (options, right) in [
        ("json='unclosed", false),
        ("json=\"a:sarif=b", false),
        ("quiet:json='", false),
        ("json='a'", true),
        ("json=it's", true),
    ] {
        let mut command = streamsan(["check"]);
        let ended = end(command.arg(&trace).env("STREAMSAN_OPTIONS", options).current_dir(&folder));
        assert_eq!(ended.code(), Some(if right { 66 } else { 2 }), "{options}: {}", ended.err);
        assert!(right || ended.err.contains("a quote without its end"), "{options}: {}", ended.err);
    }
    assert!(folder.join("a").exists() && folder.join("it's").exists());
    assert!(["'unclosed", "\"a", "'"].iter().all(|name| !folder.join(name).exists()));
}
