//! The command line as a contract: exit codes, options, the program's own streams and signals. The
//! files that options name are in `output_files`.
//!
//! Runs against the fake driver: two fills on two streams (`racy.c`) make a certain finding without
//! any kernel.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;

use tests::run::{self, command, end, preloaded, streamsan};
use tests::{build, fake, product};

/// A program with one certain finding.
pub(super) fn racy() -> PathBuf {
    build::c_program("racy.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"])
}

fn ending() -> PathBuf {
    build::c_program("ending.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"])
}

/// `streamsan OPTIONS -- racy ARGS`: exit code and standard error.
fn checked(options: &[&str], args: &[&str]) -> (Option<i32>, String) {
    let ended = end(streamsan(options).arg("--").arg(racy()).args(args));
    (ended.code(), ended.err)
}

#[test]
fn findings_end_with_66_and_clean_runs_with_the_programs_code() {
    let (code, err) = checked(&[], &["0"]);
    assert_eq!(code, Some(66), "{err}");
    assert!(err.contains("DATA RACE: write-after-write (certain)"), "{err}");
    assert!(err.contains("streamsan: SUMMARY: 1 finding "), "{err}");
    assert_eq!(checked(&["run"], &["3"]).0, Some(66));
    let (code, err) = checked(&[], &["0", "ordered"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(!err.contains("DATA RACE") && err.contains("SUMMARY: 0 findings"), "{err}");
    assert_eq!(checked(&["run"], &["3", "ordered"]).0, Some(3));
}

#[test]
fn error_exitcode() {
    for (option, args, code) in [
        ("--error-exitcode=0", ["0"].as_slice(), 0),
        ("--error-exitcode=0", &["3"], 3),
        ("--error-exitcode=7", &["0"], 7),
        ("--error-exitcode=7", &["3"], 7),
        ("--error-exitcode=7", &["3", "ordered"], 3),
        ("--error-exitcode=255", &["0"], 255),
    ] {
        assert_eq!(checked(&[option], args).0, Some(code), "{option} {args:?}");
    }
    // From the environment, and the command line wins.
    let with = |options: &str, args: &[&str]| {
        let mut command = streamsan(args);
        end(command.env("STREAMSAN_OPTIONS", options).arg("--").arg(racy()).arg("3")).code()
    };
    assert_eq!(with("error-exitcode=9", &["run"]), Some(9));
    assert_eq!(with("error-exitcode=9", &["run", "--error-exitcode", "0"]), Some(3));
}

#[test]
fn plain_preload_keeps_the_programs_code_unless_asked() {
    let run = |options: &str, args: &[&str]| {
        let ended = end(preloaded(racy(), options).args(args));
        (ended.code(), ended.err)
    };
    let (code, err) = run("", &["3"]);
    assert_eq!(code, Some(3));
    assert!(err.contains("DATA RACE: write-after-write") && err.contains("SUMMARY: 1 finding "), "{err}");
    assert_eq!(run("error-exitcode=66", &["3"]).0, Some(66));
    assert_eq!(run("error-exitcode=12", &["0"]).0, Some(12));
    assert_eq!(run("error-exitcode=0", &["3"]).0, Some(3));
    assert_eq!(run("error-exitcode=66", &["3", "ordered"]).0, Some(3));
}

#[test]
fn the_report_is_there_before_the_program_ends() {
    // Under plain preload another process prints it: whoever waits for the program must find it
    // complete.
    for _ in 0..10 {
        let file = build::scratch("complete").join("report.txt");
        let ended = end(&mut preloaded(racy(), &format!("log-file={}", file.display())));
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        let text = std::fs::read_to_string(&file).expect("the report is written");
        assert!(text.lines().last().is_some_and(|line| line.starts_with("streamsan: SUMMARY: 1 finding ")), "{text}");
        assert_eq!(ended.err, "");
    }
}

#[test]
fn wrong_usage_ends_with_2_and_names_the_nearest() {
    let says = |args: &[&str], what: &str| {
        let ended = end(&mut streamsan(args));
        assert_eq!(ended.code(), Some(2), "{args:?}: {}", ended.err);
        assert!(ended.err.contains(what), "{args:?}: {}", ended.err);
        assert_eq!((ended.out.as_str(), ended.ours().len()), ("", 1), "{args:?}: {}", ended.err);
    };
    says(&["--jsn", "x", "--", "true"], "'--json'");
    says(&["--pedantik", "true"], "'--pedantic'");
    says(&["--zzzzzzzz", "true"], "'--zzzzzzzz'");
    says(&["--error-exitcode", "many", "true"], "0 to 255");
    says(&["--policy", "strict", "true"], "observed");
    says(&["--json"], "needs a value");
    says(&["record", "--", "true"], "-o");
    says(&["run"], "program");
    says(&["check"], "FILE");
    says(&["check", "--sim", "t"], "check does not take '--sim'; run, hunt and record do");
    says(&["check", "--no-stacks", "t"], "run, hunt and record do");
    says(&["--ring-mib", "0", "true"], "1 to 4096");
    says(&["--symbol-path", "/nosuch", "true"], "--symbol-path: there is no folder '/nosuch'");
    says(&["--off", "--require-cuda", "true"], "exclude each other");
    says(&["help", "chek"], "'check'");
    let ended = end(streamsan(["run", "--", "true"]).env("STREAMSAN_OPTIONS", "jsn=x"));
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
    assert!(ended.err.contains("'json'"), "{}", ended.err);
}

#[test]
fn programs_that_do_not_start() {
    for words in [["run", "--", "/nonexistent/program"], ["run", "--", "no-such-program-anywhere"]] {
        let ended = end(&mut streamsan(words));
        assert_eq!((ended.code(), ended.ours().len()), (Some(127), 1), "{}", ended.err);
        assert!(ended.err.contains(words[2]), "{}", ended.err);
    }
    let file = build::scratch("not-executable").join("text");
    std::fs::write(&file, "no program").expect("write");
    let ended = end(streamsan(["run", "--"]).arg(&file));
    assert_eq!((ended.code(), ended.ours().len()), (Some(126), 1), "{}", ended.err);
}

#[test]
fn what_follows_the_program_is_the_programs() {
    let ended = end(&mut streamsan(["run", "echo", "--json", "--help", "-o", "x"]));
    assert_eq!(ended.out, "--json --help -o x\n");
    let ended = end(&mut streamsan(["--", "echo", "--version"]));
    assert!(ended.out.contains("echo"), "{}", ended.out);
    // A word of ours behind the program is named once; who writes '--' knows what belongs to whom.
    let note = |args: &[&str]| end(&mut streamsan(args)).err.matches("goes to it; options of streamsan").count();
    assert_eq!(note(&["run", "echo", "--json", "x", "--no-stacks"]), 1);
    assert_eq!(note(&["echo", "--pedantic=yes"]), 1);
    assert_eq!(note(&["run", "--", "echo", "--json", "x"]), 0);
    assert_eq!(note(&["echo", "--epochs", "3", "-o", "x", "--help"]), 0);
    let ended = end(command(product::streamsan())
        .args([std::ffi::OsStr::new("printf"), std::ffi::OsStr::new("%s")])
        .arg(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"a\xffb")));
    assert_eq!(ended.out, "a\u{fffd}b", "words need not be UTF-8: {}", ended.err);
}

#[test]
fn help_and_version_go_to_standard_output() {
    for word in ["--help", "-h", "help"] {
        let ended = end(&mut streamsan([word]));
        assert_eq!((ended.code(), ended.err.as_str()), (Some(0), ""), "{word}");
        for needed in ["--json", "--error-exitcode", "--sim", "record", "check"] {
            assert!(ended.out.contains(needed), "{word}: no {needed}");
        }
    }
    for words in [["help", "check"], ["check", "--help"]] {
        let ended = end(&mut streamsan(words));
        assert_eq!((ended.code(), ended.err.as_str()), (Some(0), ""), "{words:?}");
        assert!(ended.out.contains("--junit") && !ended.out.contains("--sim"), "{}", ended.out);
    }
    let version = concat!("streamsan ", env!("CARGO_PKG_VERSION"), "\n");
    for words in [["-V"].as_slice(), &["check", "-V"]] {
        let ended = end(&mut streamsan(words));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), version), "{words:?}");
    }
    let ended = end(&mut streamsan(["--version"]));
    assert!(ended.code() == Some(0) && ended.out.starts_with(version), "{}", ended.out);
    assert!(ended.out.contains("\ncommit: ") && ended.out.contains("\nsimulator: installed"), "{}", ended.out);
}

#[test]
fn a_program_that_dies_of_a_signal_dies_of_it_again() {
    for (how, signal) in
        [("segv", libc::SIGSEGV), ("kill", libc::SIGKILL), ("abort", libc::SIGABRT), ("term", libc::SIGTERM)]
    {
        let ended = end(streamsan(["run", "--"]).arg(ending()).arg(how));
        assert_eq!(ended.signal(), Some(signal), "{how}: {:?} {}", ended.status, ended.err);
        assert!(ended.err.contains("SUMMARY"), "{how}: a report comes all the same: {}", ended.err);
        let note = format!("NOTE: the program died of signal {signal}");
        assert!(ended.err.contains(&note), "{how}: {}", ended.err);
    }
}

/// The program waits for its input, which does not end.
#[test]
fn the_first_finding_may_stop_the_program() {
    let run = |options: &[&str], words: &[&str], input: Stdio| {
        let mut command = streamsan(["run"]);
        command.args(options).arg("--").arg(racy()).args(words).stdin(input);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let mut child = run(&["--fail-fast"], &["0"], Stdio::piped());
    let input = child.stdin.take();
    let stopped = run::end_of(child);
    drop(input);
    assert_eq!(stopped.code(), Some(66), "{}", stopped.err);
    assert!(stopped.err.contains("NOTE: stopped at a finding (--fail-fast)"), "{}", stopped.err);
    assert!(!stopped.err.contains("died of signal") && stopped.err.contains("1 finding"), "{}", stopped.err);
    // What fails no run stops none.
    let supp = build::scratch("fail-fast").join("supp");
    std::fs::write(&supp, "race:main\n").expect("write");
    let supp = supp.to_string_lossy();
    let others: [(&[&str], &[&str]); 3] = [
        (&["--fail-fast"], &["5", "ordered"]),
        (&["--fail-fast", "--suppressions", &supp], &["5"]),
        (&["--fail-fast", "--ignore-module", "racy"], &["5"]),
    ];
    for (options, words) in others {
        let ended = run::end_of(run(options, words, Stdio::null()));
        assert_eq!(ended.code(), Some(5), "{options:?}: {}", ended.err);
        assert!(!ended.err.contains("stopped at"), "{options:?}: {}", ended.err);
    }
}

#[test]
fn signals_reach_the_program() {
    // A SIGTERM to the launcher alone is passed on.
    let program = build::c_program("launches.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let mut child = streamsan(["run", "--"])
        .arg(program)
        .arg("0")
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start");
    std::thread::sleep(std::time::Duration::from_millis(700));
    // SAFETY: the child is ours and not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let stderr = child.stderr.take();
    child.stderr = stderr;
    let ended = run::end_of(child);
    assert_eq!(ended.signal(), Some(libc::SIGTERM), "{}", ended.err);
    assert!(ended.err.contains("SUMMARY"), "{}", ended.err);
}

#[test]
fn standard_streams_are_the_programs() {
    let text: Vec<u8> = (0..300_000_u32).map(|n| b"0123456789\n"[(n % 11) as usize]).collect();
    for way in ["streamsan", "preload"] {
        let mut command = if way == "streamsan" {
            let mut command = streamsan(["run", "--error-exitcode", "0", "--"]);
            command.arg(racy());
            command
        } else {
            preloaded(racy(), "")
        };
        command.args(["4"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().expect("start");
        let mut stdin = child.stdin.take().expect("piped");
        let copy = text.clone();
        let writer = std::thread::spawn(move || stdin.write_all(&copy));
        let ended = run::end_of(child);
        writer.join().expect("writer").expect("write");
        assert_eq!(ended.code(), Some(4), "{way}: {}", ended.err);
        assert!(ended.out.as_bytes() == text, "{way}: {} bytes came out", ended.out.len());
        assert!(ended.err.contains("DATA RACE"), "{way}: {}", ended.err);
    }
}

#[test]
fn require_cuda() {
    let ended = end(&mut streamsan(["run", "--require-cuda", "--", "true"]));
    assert_eq!(ended.code(), Some(4), "{}", ended.err);
    let ended = end(&mut streamsan(["run", "--require-cuda", "--", "false"]));
    assert_eq!(ended.code(), Some(1), "{}", ended.err);
    let ended = end(&mut streamsan(["run", "--", "true"]));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.err.contains("nothing was checked"), "{}", ended.err);
    assert_eq!(checked(&["run", "--require-cuda"], &["0", "ordered"]).0, Some(0));
}

/// Files of reports and continuous integration ask for it, too.
#[test]
fn a_gate_that_checked_nothing_is_not_green() {
    let folder = build::scratch("gate-on-nothing");
    let trace = folder.join("t");
    assert_eq!(
        end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(racy()).args(["0", "ordered"])).code(),
        Some(0)
    );
    let report = folder.join("report");
    for option in ["--json", "--sarif", "--html", "--junit"] {
        let run = |more: &[&str], program: &[&str]| {
            let mut command = streamsan(["run", option]);
            end(command.arg(&report).args(more).arg("--").args(program))
        };
        let ended = run(&[], &["true"]);
        assert_eq!(ended.code(), Some(4), "{option}: {}", ended.err);
        let said =
            format!("ERROR: no CUDA work was checked, so this ends with exit code 4: {option} asks for a report");
        assert!(ended.err.contains(&said) && report.exists(), "{option}: {}", ended.err);
        let allowed = run(&["--no-require-cuda"], &["true"]);
        assert!(allowed.code() == Some(0) && !allowed.err.contains("exit code 4"), "{option}: {}", allowed.err);
        assert_eq!(run(&[], &["false"]).code(), Some(1), "the program's own code comes first");
        let racy = racy();
        let ordered = run(&[], &[racy.to_str().expect("a path"), "0", "ordered"]);
        assert!(ordered.code() == Some(0) && !ordered.err.contains("exit code 4"), "{option}: {}", ordered.err);
        let ended = end(streamsan(["check", option]).arg(&report).arg(&trace));
        assert_eq!(ended.code(), Some(0), "{option}: {}", ended.err);
    }
    for (variable, value, code) in [
        ("CI", "true", 4),
        ("CI", "1", 4),
        ("CI", "false", 0),
        ("CI", "", 0),
        ("JENKINS_URL", "x", 4),
        ("TF_BUILD", "True", 4),
    ] {
        let run = |args: &[&str]| end(streamsan(args).args(["--", "true"]).env(variable, value));
        let ended = run(&["run"]);
        assert_eq!(ended.code(), Some(code), "{variable}={value}: {}", ended.err);
        let said = format!("exit code 4: {variable} is set in the environment; --no-require-cuda lets such runs pass");
        assert_eq!(ended.err.contains(&said), code == 4, "{variable}={value}: {}", ended.err);
        assert_eq!(run(&["run", "--no-require-cuda"]).code(), Some(0), "{variable}={value}");
        assert_eq!(run(&["run", "--off"]).code(), Some(0), "{variable}={value}");
        assert_eq!(run(&["record", "-o", trace.to_str().expect("a path")]).code(), Some(0), "{variable}={value}");
    }
}

#[test]
fn json_holds_what_the_text_says() {
    let folder = build::scratch("json");
    let file = folder.join("out.json");
    let ended = end(streamsan(["run", "--json"]).arg(&file).arg("--").arg(racy()));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let text = std::fs::read_to_string(&file).expect("written");
    let json: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!(json["summary"]["findings"], 1);
    let finding = &json["findings"][0];
    assert_eq!(finding["hazard"], "write-after-write");
    assert_eq!(finding["host"], false);
    assert_eq!(finding["confidence"], "certain");
    assert_eq!(finding["count"], 1);
    for side in ["access", "previous", "allocation"] {
        let stack = finding[side]["stack"].as_array().expect("a stack");
        let ours = stack.iter().find(|frame| frame["file"].as_str().is_some_and(|f| f.ends_with("racy.c")));
        let frame = ours.unwrap_or_else(|| panic!("{side}: no line of racy.c in {stack:#?}"));
        let line = frame["line"].as_u64().expect("a line") as usize;
        let source = std::fs::read_to_string(build::programs().join("racy.c")).expect("source");
        let at = source.lines().nth(line - 1).expect("the line exists");
        let wanted = if side == "allocation" { "cuMemAlloc_v2" } else { "cuMemsetD8Async" };
        assert!(at.contains(wanted), "{side}: line {line} is {at:?}");
    }
    // Rewritten, not appended to.
    end(streamsan(["run", "--json"]).arg(&file).arg("--").arg(racy()).args(["0", "ordered"]));
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("written")).expect("JSON");
    assert_eq!(json["summary"]["findings"], 0);
}

#[test]
fn one_run_holds_many_processes_and_names_them() {
    let program = build::c_program("pair.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let folder = build::scratch("pair");
    let (file, trace) = (folder.join("out.json"), folder.join("t"));
    let ended = end(streamsan(["run", "--json"]).arg(&file).arg("-o").arg(&trace).arg("--").arg(program));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let pids: Vec<u64> = ended.out.split_whitespace().map(|n| n.parse().expect("a pid")).collect();
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("written")).expect("JSON");
    assert_eq!(json["processes"].as_array().map(Vec::len), Some(2), "{json:#}");
    let findings = json["findings"].as_array().expect("findings");
    let mut sizes: Vec<_> = findings.iter().map(|f| (f["pid"].as_u64(), f["allocation"]["size"].as_u64())).collect();
    sizes.sort_unstable_by_key(|(_, size)| *size);
    assert_eq!(sizes, [(Some(pids[1]), Some(1024)), (Some(pids[0]), Some(2048))], "{json:#}");
    for pid in pids {
        assert!(ended.err.contains(&format!("process {pid}")), "{pid}: {}", ended.err);
    }
    // The trace holds both.
    let later = end(streamsan(["check"]).arg(&trace));
    assert!(later.err.contains("SUMMARY: 2 findings") && later.err.contains("2 processes"), "{}", later.err);
}

/// A path as an argument.
pub(super) fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("a path")
}

/// A trace of the racy program.
pub(super) fn recorded(folder: &std::path::Path) -> PathBuf {
    let trace = folder.join("t.trace");
    let ended = end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(racy()));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    trace
}

#[test]
fn options_may_come_before_a_command() {
    let folder = build::scratch("before");
    let (trace, report) = (recorded(&folder), folder.join("r.json"));
    let ended = end(&mut streamsan(["--json", text(&report), "--error-exitcode=5", "check", text(&trace)]));
    assert_eq!((ended.code(), report.exists()), (Some(5), true), "{}", ended.err);
    // Behind '--' the word is a program.
    let ended = end(streamsan(["--", "check", text(&trace)]).env("PATH", &folder));
    assert_eq!(ended.code(), Some(127), "{}", ended.err);
}

#[test]
fn one_language_of_options_for_shim_and_analyzer() {
    let folder = build::scratch("one-language");
    let report = folder.join("r.json");
    let stacks = |options: &str| {
        let ended = end(&mut preloaded(racy(), &format!("json={}:{options}", report.display())));
        let json: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&report).expect("written")).expect("JSON");
        (json["findings"][0]["access"]["stack"].as_array().map_or(0, Vec::len), ended.err)
    };
    assert!(stacks("stacks=yes").0 > 0);
    for off in ["no-stacks", "stacks=0", "stacks=off", "stacks=1:no_stacks"] {
        assert_eq!(stacks(off).0, 0, "{off}");
    }
    for off in ["exact=off", "exact=false", "no-exact", "exact=0"] {
        let (_, err) = stacks(off);
        assert!(!err.contains("exact"), "{off}: {err}");
    }
    assert!(stacks("exact=on").1.contains("no exact mode"), "without its files it is asked for in vain");
    // A mistake is named, and hides nothing behind it.
    let (count, err) = stacks("jsn=x:stacks=0:ring-mib=0");
    assert_eq!(count, 0);
    assert!(err.contains("unknown option 'jsn'; did you mean 'json'?") && err.contains("1 to 4096"), "{err}");
    let (_, err) = stacks("sim:config=off");
    assert!(err.contains("'sim' does nothing here") && !err.contains("'config'"), "{err}");
    let counts = |options: &str| {
        let trace = folder.join("t");
        end(streamsan(["record", "-o"]).arg(&trace).env("STREAMSAN_OPTIONS", options).arg("--").arg(racy()));
        let listing = end(streamsan(["coverage"]).arg(&trace)).out;
        let line = listing.lines().find(|line| line.trim_start().starts_with("cuStreamCreate "));
        line.unwrap_or_else(|| panic!("{listing}")).contains(" call")
    };
    assert!(counts("count-calls") && counts("count-calls=on"));
    assert!(!counts("count-calls=0") && !counts("no-count-calls") && !counts("count-calls:count-calls=off"));
    // The command line overrides the environment for the shim too.
    let mut command = streamsan(["run", "--stacks", "--json", text(&report)]);
    end(command.env("STREAMSAN_OPTIONS", "stacks=0").arg("--").arg(racy()));
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&report).expect("written")).expect("JSON");
    assert!(json["findings"][0]["access"]["stack"].as_array().is_some_and(|s| !s.is_empty()), "{json:#}");
}
