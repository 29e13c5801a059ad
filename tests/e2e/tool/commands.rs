//! The commands and what their options print: `--quiet`, `--format short`, the configuration file,
//! `diff`, `dump --json`, `explain`, completions, the Python module.
//!
//! Runs against the fake driver, as `command_line.rs` does, which holds the contract itself.

use std::path::{Path, PathBuf};

use tests::run::{command, end, streamsan};
use tests::{build, fake, product};

fn racy() -> PathBuf {
    build::c_program("racy.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"])
}

/// `streamsan OPTIONS -- racy ARGS`: exit code and standard error.
fn checked(options: &[&str], args: &[&str]) -> (Option<i32>, String) {
    let ended = end(streamsan(options).arg("--").arg(racy()).args(args));
    (ended.code(), ended.err)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// A trace of the racy program.
fn recorded(folder: &Path) -> PathBuf {
    let trace = folder.join("t.trace");
    let ended = end(streamsan(["record", "-o"]).arg(&trace).arg("--").arg(racy()));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    trace
}

#[test]
fn quiet_says_nothing_of_a_clean_run() {
    let quiet = |args: &[&str]| checked(&["run", "--quiet"], args);
    assert_eq!(quiet(&["0", "ordered"]), (Some(0), String::new()));
    let (code, err) = quiet(&["0"]);
    assert_eq!(code, Some(66));
    assert!(err.contains("DATA RACE") && err.contains("SUMMARY: 1 finding") && !err.contains("COVERAGE"), "{err}");
    // Programs without CUDA are nobody's affair; who wants to know asks.
    let ended = end(&mut streamsan(["run", "--quiet", "--", "true"]));
    assert_eq!((ended.code(), ended.err.as_str()), (Some(0), ""));
    assert_eq!(end(&mut streamsan(["run", "--quiet", "--require-cuda", "--", "true"])).code(), Some(4));
    let trace = build::scratch("quiet").join("t");
    let ended = end(streamsan(["record", "--quiet", "-o"]).arg(&trace).arg("--").arg(racy()));
    assert_eq!((ended.code(), ended.err.as_str()), (Some(0), ""));
    for format in ["short", "csan", "github"] {
        let (code, err) = checked(&["run", "--quiet", "--format", format], &["0", "ordered"]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{format}");
    }
}

#[test]
fn the_short_format_is_one_line_a_finding() {
    let (code, err) = checked(&["--format", "short"], &["0"]);
    assert_eq!((code, err.lines().count()), (Some(66), 2), "{err}");
    let source = std::fs::read_to_string(build::programs().join("racy.c")).expect("source");
    let at = source.lines().position(|l| l.contains("cuMemsetD8Async(x, 2")).expect("the line") + 1;
    let line = err.lines().next().expect("a line");
    assert!(
        line.contains(&format!("/racy.c:{at}: data race: write-after-write (certain): cuMemsetD8Async on ")),
        "{err}"
    );
    assert!(
        line.contains(", after cuMemsetD8Async on ") && line.contains(" at racy.c:") && line.ends_with(']'),
        "{err}"
    );
    assert!(err.lines().nth(1).is_some_and(|l| l.starts_with("streamsan: SUMMARY: 1 finding ")), "{err}");
    let ended = end(&mut streamsan(["--format=short", "--", "true"]));
    assert!(ended.err.contains("nothing was checked"), "{}", ended.err);
}

#[test]
fn a_configuration_file_is_found_upwards_and_overridden() {
    let folder = build::scratch("config");
    let below = folder.join("a/b");
    std::fs::create_dir_all(&below).expect("folders");
    let (file, supp) = (folder.join("streamsan.toml"), folder.join("supp"));
    std::fs::write(&supp, "race:nobody\n").expect("write");
    let write = |text: &str| std::fs::write(&file, text).expect("write");
    let run = |args: &[&str], environment: &str| {
        let mut command = streamsan(args);
        let ended = end(command.current_dir(&below).env("STREAMSAN_OPTIONS", environment).arg("--").arg(racy()));
        (ended.code(), ended.err)
    };
    write("error-exitcode = 5\nsuppressions = 'supp'\n[check]\nerror-exitcode = 6\n");
    let (code, err) = run(&["run"], "");
    assert!(code == Some(5) && err.contains("race:nobody"), "{code:?} {err}");
    assert_eq!(run(&["run"], "error-exitcode=7").0, Some(7));
    assert_eq!(run(&["run", "--error-exitcode=8"], "error-exitcode=7").0, Some(8));
    for (args, environment) in [(["run", "--config=off"].as_slice(), ""), (&["run"], "config=off")] {
        let (code, err) = run(args, environment);
        assert!(code == Some(66) && !err.contains("race:nobody"), "{err}");
    }
    let trace = recorded(&build::scratch("config-trace"));
    let ended = end(streamsan(["check"]).arg(&trace).current_dir(&below));
    assert_eq!(ended.code(), Some(6), "{}", ended.err);
    let other = build::scratch("config-other").join("other.toml");
    std::fs::write(&other, "stacks = false\nerror-exitcode = 9\n").expect("write");
    let (code, err) = run(&["--config", text(&other)], "");
    assert!(code == Some(9) && err.contains("(no stack recorded)"), "the shim gets its part: {err}");
    for (wrong, why) in [
        ("jsn = 'x'", "unknown option 'jsn'; did you mean 'json'?"),
        ("stacks = 3", "option 'stacks' takes true or false, not 3"),
        ("[check]\nsim = true", "[check] does not take '--sim'"),
        ("stacks = = 3", "line 1: "),
    ] {
        write(wrong);
        let (code, err) = run(&["run"], "");
        assert_eq!((code, err.lines().count()), (Some(2), 1), "{wrong}: {err}");
        assert!(err.contains(why) && err.contains("streamsan.toml: "), "{wrong}: {err}");
    }
    let (code, err) = run(&["--config", "/nosuch.toml"], "");
    assert_eq!((code, err.lines().count()), (Some(2), 1), "{err}");
}

#[test]
fn reports_are_compared_by_fingerprint() {
    let folder = build::scratch("diff");
    let path = |name: &str| folder.join(name);
    let (racy_report, clean, base) = (path("racy.json"), path("clean.json"), path("base.json"));
    let words = ["run", "--json", text(&racy_report), "--write-baseline", text(&base)];
    assert_eq!(checked(&words, &["0"]).0, Some(66));
    assert_eq!(checked(&["run", "--json", text(&clean)], &["0", "ordered"]).0, Some(0));
    let diff = |args: &[&str], old: &PathBuf, new: &PathBuf| {
        let ended = end(streamsan(["diff"]).args(args).arg(old).arg(new));
        (ended.code(), ended.out, ended.err)
    };
    let (code, out, _) = diff(&[], &clean, &racy_report);
    assert!(
        code == Some(66) && out.starts_with("NEW  write-after-write (certain): cuMemsetD8Async at racy.c:"),
        "{out}"
    );
    assert!(out.ends_with("streamsan: DIFF: 1 new finding, 0 gone, 0 kept\n"), "{out}");
    assert_eq!(diff(&["--error-exitcode=0"], &clean, &racy_report).0, Some(0));
    let (code, out, _) = diff(&[], &racy_report, &clean);
    assert!(code == Some(0) && out.starts_with("GONE ") && out.contains("0 new findings, 1 gone, 0 kept"), "{out}");
    for old in [&racy_report, &base] {
        let (code, out, _) = diff(&[], old, &racy_report);
        assert!(code == Some(0) && out.starts_with("KEPT ") && out.contains("0 gone, 1 kept"), "{out}");
    }
    // The newer run finds it, and its baseline knows it.
    let known = path("known.json");
    assert_eq!(checked(&["run", "--json", text(&known), "--baseline", text(&base)], &["0"]).0, Some(0));
    let (code, out, _) = diff(&[], &racy_report, &known);
    assert!(code == Some(0) && out.starts_with("ASIDE ") && out.contains("0 gone, 0 kept, 1 set aside\n"), "{out}");
    let (code, out, _) = diff(&["--json"], &racy_report, &known);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, json["set_aside"].as_array().map(Vec::len)), (Some(0), Some(1)));
    assert_eq!(diff(&["--quiet"], &racy_report, &clean), (Some(0), String::new(), String::new()));
    let (code, out, _) = diff(&["--json"], &clean, &racy_report);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(
        (code, json["new"].as_array().map(Vec::len), json["gone"].as_array().map(Vec::len)),
        (Some(66), Some(1), Some(0))
    );
    // What a run did not find that was not fully checked may be there.
    let mut value: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&clean).expect("written")).expect("JSON");
    let half = path("half.json");
    for (key, doubt) in [
        ("unread", serde_json::json!(["the trace is cut off"])),
        ("unchecked", serde_json::json!(["process 1: no room"])),
        ("disabled", serde_json::json!(["the analyzer died"])),
        ("not_simulated", serde_json::json!(["cuFoo"])),
        ("lost", serde_json::json!({ "RangePush": 2 })),
    ] {
        let was = std::mem::replace(&mut value["coverage"][key], doubt);
        std::fs::write(&half, value.to_string()).expect("written");
        for (old, new, code) in
            [(&racy_report, &half, 70), (&half, &clean, 0), (&half, &half, 70), (&half, &racy_report, 66)]
        {
            let (got, _, err) = diff(&["--quiet"], old, new);
            assert_eq!(got, Some(code), "{key}: {err}");
            let lines = [old, new].iter().filter(|file| **file == &half).count();
            assert_eq!(err.matches("half.json: not fully checked (").count(), lines, "{key}: {err}");
        }
        value["coverage"][key] = was;
    }
    for (bad, why) in [(PathBuf::from("/nosuch"), "No such file"), (racy(), "this is no report")] {
        let (code, out, err) = diff(&[], &clean, &bad);
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(2), "", 1), "{err}");
        assert!(err.contains(why), "{err}");
    }
}

/// The current folder may be anybody's: a folder of traces, a shared one for temporary files.
#[test]
fn fleet_imports_nothing_from_the_current_folder() {
    let folder = build::scratch("fleet-imports");
    let foreign = "open('imported', 'w').close()\n";
    std::fs::create_dir_all(folder.join("streamsan/fleet")).expect("a folder");
    for file in ["streamsan/__init__.py", "streamsan/fleet/__init__.py", "argparse.py", "json.py", "ray.py"] {
        std::fs::write(folder.join(file), foreign).expect("written");
    }
    for path in ["", ":", "/nosuch:"] {
        let mut fleet = streamsan(["fleet", "--help"]);
        let ended = end(fleet.current_dir(&folder).env("PYTHONPATH", path));
        assert!(matches!(ended.code(), Some(0 | 2)), "{path}: {}", ended.err);
        assert!(!folder.join("imported").exists(), "{path}: {}", ended.err);
    }
}

#[test]
fn a_dump_as_json_has_one_object_a_line() {
    let trace = recorded(&build::scratch("dump-json"));
    let (text, json) = (end(streamsan(["dump"]).arg(&trace)), end(streamsan(["dump", "--json"]).arg(&trace)));
    assert_eq!((json.code(), json.out.lines().count()), (Some(0), text.out.lines().count()), "{}", json.err);
    let lines: Vec<serde_json::Value> =
        json.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect();
    let of = |name: &str| lines.iter().filter(|l| l["op"] == name).collect::<Vec<_>>();
    assert!(
        of("Process")[0]["fields"]["exe"].as_str().is_some_and(|exe| exe.ends_with("/racy")),
        "{}",
        of("Process")[0]
    );
    assert_eq!(of("StreamCreate").iter().filter(|l| l["fields"]["kind"] == "NonBlocking").count(), 2, "{}", json.out);
    assert!(lines.iter().all(|l| l["fields"].is_object() && l["time"].is_u64()), "{}", json.out);
    for recorded in ["triton_step.trace", "doc_mul_out.trace"] {
        let ended = end(streamsan(["dump", "--json"]).arg(product::root().join("tests/recorded").join(recorded)));
        assert!(ended.code() == Some(0) && ended.out.lines().all(|l| l.starts_with('{')), "{}", ended.err);
    }
}

#[test]
fn the_kernels_of_a_trace_are_explained_and_unknown_ones_answered() {
    let trace = product::root().join("tests/recorded/triton_step.trace");
    let explain = |args: &[&str]| {
        let ended = end(streamsan(["explain"]).arg(&trace).args(args));
        (ended.code(), ended.out, ended.err)
    };
    let (code, out, err) = explain(&[]);
    assert!(
        code == Some(0)
            && out.starts_with("scale (sm_")
            && out.contains("  through the pointer in parameter 1 reads and writes;"),
        "{out} {err}"
    );
    let (code, out, err) = explain(&["--json", "scale"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{out}");
    let (code, out, err) = explain(&["scael"]);
    assert_eq!((code, out.as_str(), err.lines().count()), (Some(2), "", 1), "{err}");
    assert!(err.contains("no kernel whose name contains 'scael'; did you mean 'scale'?; there are scale"), "{err}");
    // The code of this one lies in a library that is not here.
    let ended = end(streamsan(["explain"]).arg(product::root().join("tests/recorded/doc_mul_out.trace")));
    assert!(ended.code() == Some(0) && ended.out.contains("not known: "), "{} {}", ended.out, ended.err);
    let ended = end(&mut streamsan(["explain", "/nonexistent/file"]));
    assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{}", ended.err);
}

#[test]
fn plurals_are_right() {
    let trace = product::root().join("tests/recorded/triton_step.trace");
    let ended = end(streamsan(["coverage"]).arg(&trace));
    assert!(ended.out.contains(" 1 op\n") && !ended.out.contains(" 1 ops"), "{}", ended.out);
    let ended = end(streamsan(["memory"]).arg(&trace));
    assert!(ended.out.contains(" 1 allocation,") && !ended.out.contains(" 1 allocations"), "{}", ended.out);
}

#[test]
fn completions_and_manual_pages_come_from_the_same_table() {
    for shell in ["bash", "zsh", "fish"] {
        let ended = end(&mut streamsan(["completions", shell]));
        assert_eq!((ended.code(), ended.err.as_str()), (Some(0), ""), "{shell}");
        for word in ["coverage", "diff", "error-exitcode", "late-first"] {
            assert!(ended.out.contains(word), "{shell}: no {word}");
        }
    }
    let folder = build::scratch("man");
    assert_eq!(end(streamsan(["man"]).arg(&folder)).code(), Some(0));
    let page = std::fs::read_to_string(folder.join("streamsan-check.1")).expect("a page");
    assert!(page.contains("junit") && !page.contains("ring"), "{page}");
    assert!(folder.join("streamsan.1").exists() && !folder.join("streamsan-attach-ring.1").exists());
    assert!(end(&mut streamsan(["man"])).out.contains(".TH streamsan 1"));
    // Sections that man-pages(7) names, in its order; the codes are those of the reference.
    let page = std::fs::read_to_string(folder.join("streamsan.1")).expect("the page");
    let sections = ["OPTIONS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"];
    let places: Vec<_> = sections
        .iter()
        .map(|name| page.find(&format!(".SH \"{name}\"")).or(page.find(&format!(".SH {name}"))))
        .collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{page}");
    let reference = std::fs::read_to_string(product::root().join("docs/reference/exit-codes.md")).expect("the page");
    let codes = reference.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse::<u8>().ok());
    for code in codes.filter(|code| *code != 0) {
        assert!(page.contains(&format!("\\fB{code}\\fR\n")), "{code} is not in the manual page");
    }
    let of_command = std::fs::read_to_string(folder.join("streamsan-check.1")).expect("the page");
    assert!(of_command.contains("EXIT STATUS") && of_command.contains("\\fBstreamsan\\fR(1)"), "{of_command}");
}

#[test]
fn a_run_without_a_gpu_names_the_simulated_one() {
    let folders =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"];
    if folders.iter().any(|folder| Path::new(folder).join("libcuda.so.1").exists()) {
        return;
    }
    let hints = |command: &mut std::process::Command| end(command).err.matches("'streamsan --sim'").count();
    assert_eq!(hints(streamsan(["run", "--", "true"]).env_remove("LD_LIBRARY_PATH")), 1);
    assert_eq!(hints(streamsan(["run", "--"]).arg(racy())), 0, "CUDA was used");
    assert_eq!(hints(streamsan(["run", "--off", "--", "true"]).env_remove("LD_LIBRARY_PATH")), 0);
}

#[test]
fn the_python_module_takes_the_options_of_run() {
    let script = build::scratch("python-module").join("x.py");
    std::fs::write(&script, "import sys; print(sys.argv[1:])\n").expect("write");
    let python = |args: &[&str]| {
        let mut python = command("python3");
        python.env("PYTHONPATH", product::root().join("python")).env("STREAMSAN_BIN", product::bin());
        let ended = end(python.args(["-m", "streamsan"]).args(args));
        (ended.code(), ended.out, ended.err)
    };
    let script = text(&script);
    let (code, out, err) = python(&[script, "--json", "a"]);
    assert_eq!((code, out.as_str()), (Some(0), "['--json', 'a']\n"), "{err}");
    let (code, out, err) = python(&["--require-cuda", "--max-findings", "3", script, "b"]);
    assert_eq!((code, out.as_str()), (Some(4), "['b']\n"), "{err}");
    for args in [["--require-cuda", "-c", "print(1)"], ["-c", "print(1)", "x"], ["--", "-c", "print(1)"]] {
        assert_eq!(python(&args).1, "1\n", "{args:?}");
    }
    let version = concat!("streamsan ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(python(&["-V"]).1, version);
    assert!(python(&["--help"]).1.contains("--sim"));
    assert_eq!(python(&["--jsn", "x", script]).0, Some(2));
}
