//! The files that options name: what cannot be written, two of one name, standard output.
//!
//! Runs against the fake driver, as `command_line` does. What is in a file is tested in
//! `reporting`.

use super::command_line::{racy, recorded, text};
use tests::build;
use tests::run::{end, streamsan};

#[test]
fn unwritable_files_are_named_before_the_program_runs() {
    for option in ["--json", "--log-file", "--output"] {
        for (path, why) in [("/nonexistent/folder/x", "No such file"), ("/", "directory")] {
            let ended = end(streamsan(["run", option, path, "--"]).arg(racy()).args(["0", "ordered"]));
            assert_eq!(ended.code(), Some(2), "{option} {path}: {}", ended.err);
            assert_eq!(ended.ours().len(), 1, "{option} {path}: {}", ended.err);
            assert!(ended.err.contains(path) && ended.err.contains(why), "{option} {path}: {}", ended.err);
        }
    }
    let ended = end(streamsan(["record", "-o", "/nonexistent/folder/x", "--"]).arg(racy()));
    assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{}", ended.err);
}

#[test]
fn a_full_disk_is_said_and_the_program_runs_on() {
    let ended = end(streamsan(["run", "--json", "/dev/full", "--"]).arg(racy()).args(["0", "ordered"]));
    assert_eq!(ended.code(), Some(70), "a report that could not be written is no clean run: {}", ended.err);
    assert!(ended.err.contains("/dev/full"), "{}", ended.err);
    let ended = end(streamsan(["record", "-o", "/dev/full", "--"]).arg(racy()).args(["5", "ordered"]));
    assert!(ended.err.contains("No space left"), "{}", ended.err);
    assert_eq!(ended.code(), Some(5), "{}", ended.err);
}

/// `-` is standard output, as it is elsewhere, and no file of that name; the report does not mix
/// with it.
#[test]
fn a_dash_is_standard_output() {
    let folder = build::scratch("dash");
    let run = |args: &[&str]| {
        let ended = end(streamsan(args).current_dir(&folder));
        (ended.code(), ended.out, ended.err)
    };
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON and nothing else");
    let (racy, trace) = (racy(), folder.join("t.trace"));
    let (racy, trace) = (&*racy.to_string_lossy(), &*trace.to_string_lossy());
    assert_eq!(run(&["record", "-o", trace, "--", racy, "0"]).0, Some(0));

    let (code, out, err) = run(&["check", "--json", "-", trace]);
    assert_eq!((code, json(&out)["findings"].as_array().map(Vec::len)), (Some(66), Some(1)), "{err}");
    assert!(err.contains("SUMMARY: 1 finding"), "{err}");
    let (code, out, err) = run(&["check", "--sarif=-", trace]);
    assert_eq!((code, &json(&out)["version"]), (Some(66), &"2.1.0".into()), "{err}");
    let (code, out, err) = run(&["check", "--log-file", "-", trace]);
    assert!(code == Some(66) && out.contains("SUMMARY: 1 finding") && !err.contains("SUMMARY"), "{out} {err}");
    let (code, out, err) = run(&["timeline", trace, "-o", "-"]);
    assert!(code == Some(0) && json(&out)["traceEvents"].is_array(), "{err}");
    let (code, out, err) = run(&["memory", "--json", "-", trace]);
    assert!(code == Some(0) && json(&out).is_object(), "{err}");

    let refused = |args: &[&str], why: &str| {
        let (code, out, err) = run(args);
        assert_eq!((code, &*out), (Some(2), ""), "{args:?}: {err}");
        assert!(err.contains(why) && err.contains("name a file") && err.lines().count() == 1, "{err}");
    };
    refused(&["check", "--json", "-", "--sarif", "-", trace], "--json and --sarif can not both go to standard output");
    refused(&["record", "-o", "-", "--", racy, "0"], "a trace can not go to standard output");
    refused(&["--sim-addresses", "-", "--", racy, "0"], "--sim-addresses can not go to standard output");
    // Where a program runs, standard output is the program's.
    for option in ["--json", "--sarif", "--log-file", "--junit", "--write-baseline"] {
        refused(&[option, "-", "--", racy, "0"], &format!("{option} can not go to standard output ('-'), where"));
    }
    assert!(!folder.join("-").exists(), "no file has that name");
    assert_eq!(run(&["check", "--json", "./-", trace]).0, Some(66));
    assert!(folder.join("-").exists(), "but when it is asked for");
}

#[test]
fn no_output_overwrites_another_or_what_is_read() {
    let folder = build::scratch("same-file");
    let trace = recorded(&folder);
    let before = std::fs::read(&trace).expect("the trace");
    let file = folder.join("same");
    let (file, trace) = (text(&file), text(&trace));
    let (pid, host) = (folder.join("r.%p"), folder.join("r.%%p"));
    for (args, why) in [
        (vec!["run", "--json", file, "--sarif", file, "--", "true"], "--json and --sarif both name"),
        (vec!["run", "-o", file, "--json", file, "--", "true"], "both name"),
        (vec!["run", "--json", text(&pid), "--html", text(&pid), "--", "true"], "--json and --html both name"),
        (vec!["check", "--json", trace, trace], "--json would overwrite"),
        (vec!["timeline", "-o", trace, trace], "--output would overwrite"),
        // The program, a script, what an argument names.
        (vec!["record", "-o", trace, "--", trace], "--output would overwrite"),
        (vec!["run", "--json", trace, "--", "true", trace], "--json would overwrite"),
    ] {
        let ended = end(&mut streamsan(&args));
        assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{args:?}: {}", ended.err);
        assert!(ended.err.contains(why), "{args:?}: {}", ended.err);
    }
    assert!(std::fs::read(trace).expect("the trace") == before, "it was left alone");
    let ended = end(streamsan(["--json", text(&pid), "--html", text(&host)]).arg("--").arg(racy()));
    assert_eq!(ended.code(), Some(66), "names that differ once they are expanded: {}", ended.err);
}

/// Commands that print JSON write it to the file that `--json=FILE` names, and print nothing then.
#[test]
fn json_in_place_of_text_goes_to_a_file_that_is_named() {
    let folder = build::scratch("json-file");
    let trace = folder.join("triton.trace");
    std::fs::copy(tests::product::root().join("tests/recorded/triton_step.trace"), &trace).expect("copied");
    let (trace, report, file) = (text(&trace), folder.join("report.json"), folder.join("out.json"));
    let report = text(&report);
    assert_eq!(end(&mut streamsan(["check", "--json", report, trace])).code(), Some(66));
    let before = [trace, report].map(|input| std::fs::read(input).expect("an input"));
    for words in [vec!["diff", report, report], vec!["dump", trace], vec!["explain", trace]] {
        let with = |option: &str| end(&mut streamsan([&[words[0], option], &words[1..]].concat()));
        let (printed, written) = (with("--json"), with(&format!("--json={}", text(&file))));
        assert_eq!((printed.code(), written.code()), (Some(0), Some(0)), "{words:?}: {}", written.err);
        assert!(std::fs::read_to_string(&file).expect("written") == printed.out, "{words:?}");
        assert_eq!(written.out, "", "{words:?}");
        std::fs::remove_file(&file).expect("written");
        assert_eq!(with("--json=/dev/full").code(), Some(70), "{words:?}");
        let nowhere = with("--json=/nonexistent/x");
        assert!(nowhere.code() == Some(70) && nowhere.err.contains("/nonexistent/x can not be written"), "{words:?}");
        let refused = with(&format!("--json={}", words[1]));
        assert!(refused.code() == Some(2) && refused.err.contains("--json would overwrite"), "{}", refused.err);
    }
    let after = [trace, report].map(|input| std::fs::read(input).expect("an input"));
    assert!(before == after, "they were left alone");
}
