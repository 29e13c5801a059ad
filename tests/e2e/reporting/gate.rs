//! The CI gate: which findings fail a run, and what CI systems are told. Runs against the fake
//! driver.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tests::run::{Ended, end, preloaded, streamsan};
use tests::{build, fake, product};

fn racy() -> PathBuf {
    build::c_program("racy.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"])
}

/// `streamsan OPTIONS -- racy`.
fn checked(options: &[&str]) -> Ended {
    end(streamsan(options).arg("--").arg(racy()))
}

fn json(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).expect("written");
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Runs `program` and answers the fingerprints of its findings.
fn fingerprints(program: &Path, name: &str) -> Vec<String> {
    let file = build::scratch(name).join("report.json");
    let ended = end(streamsan(["run", "--json"]).arg(&file).arg("--").arg(program));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let report = json(&file);
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().map(|f| f["fingerprint"].as_str().expect("a fingerprint").to_string()).collect()
}

/// The racy program with its source changed.
fn changed(name: &str, change: impl Fn(&str) -> String) -> PathBuf {
    let text = std::fs::read_to_string(build::programs().join("racy.c")).expect("source");
    // Not by `generated`: the file's name is part of a fingerprint.
    let folder = build::scratch(name);
    let file = folder.join("racy.c");
    std::fs::write(&file, change(&text)).expect("write");
    let program = folder.join("racy");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-pthread", "-fno-omit-frame-pointer", "-fPIC", "-o"]).arg(&program).arg(&file);
    gcc.arg("-I").arg(build::programs()).arg("-I").arg(build::programs().join("fake"));
    gcc.arg("-L").arg(fake::folder()).args(["-lcuda", "-ldl"]);
    assert!(gcc.status().expect("gcc").success());
    program
}

#[test]
fn fingerprints_survive_moved_lines() {
    let before = fingerprints(&changed("still", str::to_string), "fp-still");
    assert_eq!(before.len(), 1);
    let moved = |text: &str| {
        let text = text.replace(
            "int main",
            "/* one\n * two\n * three */\nstatic const int unused __attribute__((unused)) = 1;\n\nint main",
        );
        text.replace("    CUevent event;\n", "\n    /* moved */\n    CUevent event;\n\n\n")
    };
    assert_eq!(fingerprints(&changed("moved", moved), "fp-moved"), before);
    // Another operation is another finding.
    let other = |text: &str| text.replace("cuMemsetD8Async(x, 2, 4096, b)", "cuMemsetD8Async(x, 2, 2048, b)");
    assert_ne!(fingerprints(&changed("other", other), "fp-other"), before);
}

#[test]
fn one_text_twice_makes_two_findings_with_lasting_names() {
    let line = "    CHECK(cuMemsetD8Async(x, 2, 4096, b));\n";
    let twice = |text: &str| text.replace(line, &format!("{line}    CHECK(cuStreamSynchronize(b));\n{line}"));
    let two = fingerprints(&changed("twice", twice), "fp-twice");
    assert_eq!(two.len(), 2, "{two:?}");
    assert_ne!(two[0], two[1]);
    let moved = |text: &str| twice(&text.replace("int main", "\n\n\nint main"));
    assert_eq!(fingerprints(&changed("twice-moved", moved), "fp-twice-moved"), two);
}

#[test]
fn suppressions_set_aside_count_and_are_named_when_unused() {
    let folder = build::scratch("suppressions");
    let (file, other, report) = (folder.join("supp"), folder.join("more"), folder.join("report.json"));
    let with = |text: &str| {
        std::fs::write(&file, text).expect("write");
        end(streamsan(["run", "--suppressions"]).arg(&file).arg("--json").arg(&report).arg("--").arg(racy()))
    };
    for line in [
        "race:main",
        "race:racy.c$",
        "race:^ma*n$",
        "race_top:main",
        "function:main",
        "file:racy.c",
        "module:*/racy$",
        "stream:racy.c",
    ] {
        let ended = with(&format!("# why\n{line}\n"));
        assert_eq!(ended.code(), Some(0), "{line}: {}", ended.err);
        assert!(!ended.err.contains("DATA RACE"), "{line}: {}", ended.err);
        let hit = format!("SUPPRESSED: 1 finding with 1 occurrence by {line} (");
        assert!(
            ended.err.contains(&hit) && ended.err.contains("0 findings (0 certain, 0 likely)"),
            "{line}: {}",
            ended.err
        );
        assert!(ended.err.contains(", 1 suppressed"), "{}", ended.err);
        let json = json(&report);
        assert_eq!((&json["summary"]["findings"], &json["summary"]["suppressed"]), (&0.into(), &1.into()));
        assert_eq!(json["findings"].as_array().map(Vec::len), Some(0));
        assert_eq!(json["set_aside"][0]["standing"], "suppressed");
        assert_eq!(json["judgement"]["suppressions"][0]["findings"], 1);
    }
    for line in ["race:nobody", "kernel:main", "race_top:begin", "module:libnone", "race:^ain", "fingerprint:0000"] {
        let ended = with(line);
        assert_eq!(ended.code(), Some(66), "{line}: {}", ended.err);
        assert!(
            ended.err.contains(&format!("NOTE: {line} (")) && ended.err.contains("suppressed nothing"),
            "{}",
            ended.err
        );
    }
    // Several files; mistakes stop the run before it begins.
    std::fs::write(&file, "race:nobody\n").expect("write");
    std::fs::write(&other, "race:main\n").expect("write");
    let ended =
        end(streamsan(["run", "--suppressions"]).arg(&file).arg("--suppressions").arg(&other).arg("--").arg(racy()));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    for (text, what) in [("races:x", "no suppressions of type 'races'"), ("hello", "write 'race:PATTERN'")] {
        let ended = with(text);
        assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{}", ended.err);
        assert!(ended.err.contains(what) && ended.err.contains("supp:1"), "{}", ended.err);
    }
    let ended = checked(&["run", "--suppressions", "/nonexistent/file"]);
    assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{}", ended.err);
    // Under plain LD_PRELOAD too.
    let options = format!("error-exitcode=66:suppressions={}", other.display());
    let ended = end(&mut preloaded(racy(), &options));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
}

#[test]
fn generated_suppressions_suppress_what_they_were_made_from() {
    let folder = build::scratch("gen");
    let file = folder.join("supp");
    let file = file.to_str().expect("a path");
    assert_eq!(checked(&["run", "--gen-suppressions", file]).code(), Some(66));
    let text = std::fs::read_to_string(file).expect("written");
    assert!(text.contains("\nfingerprint:") && text.contains("\n# stream:^stream "), "{text}");
    assert!(!text.contains(":^main$"), "that would hide all there is in the program: {text}");
    assert_eq!(checked(&["run", "--suppressions", file]).code(), Some(0));
    // The wider lines work as they stand, without the '#'.
    std::fs::write(file, text.replace("# stream:", "stream:").replace("fingerprint:", "# ")).expect("write");
    assert_eq!(checked(&["run", "--suppressions", file]).code(), Some(0));
}

#[test]
fn only_findings_that_are_not_in_the_baseline_fail() {
    let folder = build::scratch("baseline");
    let path = |name: &str| folder.join(name).to_str().expect("a path").to_string();
    let (base, report, clean) = (path("base.json"), path("report.json"), path("clean.json"));
    assert_eq!(checked(&["run", "--write-baseline", &base, "--json", &report]).code(), Some(66));
    // A run may keep its own baseline, from the first one on.
    let own = path("own.json");
    for (code, said) in [(66, "SUMMARY: 1 finding"), (0, ", 1 known")] {
        let ended = checked(&["run", "--baseline", &own, "--write-baseline", &own]);
        assert!(ended.code() == Some(code) && ended.err.contains(said), "{}", ended.err);
    }
    assert_eq!(checked(&["run", "--baseline", &path("absent.json")]).code(), Some(2));
    for known in [&base, &report] {
        let ended = checked(&["run", "--baseline", known]);
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        assert!(ended.err.contains("0 findings") && ended.err.contains(", 1 known"), "{}", ended.err);
    }
    // Something new fails, what is known is not printed.
    let line = "    CHECK(cuMemsetD8Async(x, 2, 4096, b));\n";
    let more = changed("baseline-more", |t| {
        t.replace(
            line,
            &format!(
                "{line}    CHECK(cuMemsetD8Async(x, 3, 100, 0));\n    CHECK(cuMemsetD8Async(x + 8, 3, 100, a));\n"
            ),
        )
    });
    let ended = end(streamsan(["run", "--baseline", &base, "--json", &report, "--"]).arg(&more));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let json = json(Path::new(&report));
    assert_eq!(json["summary"]["known"], 1, "{json:#}");
    assert!(json["summary"]["findings"].as_u64() >= Some(1));
    assert!(json["findings"].as_array().expect("a list").iter().all(|f| f["standing"] == "new"));
    // What has gone is said; a report with a baseline serves as one itself.
    let ended = end(streamsan(["run", "--baseline", &base, "--write-baseline", &clean, "--"])
        .arg(racy())
        .args(["0", "ordered"]));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.err.contains("1 finding of the baseline did not come up"), "{}", ended.err);
    assert_eq!(end(streamsan(["run", "--baseline", &report, "--"]).arg(&more)).code(), Some(0));
    assert_eq!(checked(&["run", "--baseline", &clean]).code(), Some(66));
    for (file, what) in [("/nonexistent/file", "No such file"), ("/proc/self/status", "this is no baseline")] {
        let ended = checked(&["run", "--baseline", file]);
        assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{}", ended.err);
        assert!(ended.err.contains(what) && ended.err.contains(file), "{}", ended.err);
    }
}

#[test]
fn filters_leave_out_and_are_stated() {
    for (filter, code) in [
        (["--ignore-module", "racy.c"], 0),
        (["--ignore-module", "libother"], 66),
        (["--only-module", "racy"], 66),
        (["--only-module", "libother"], 0),
        (["--only-stream", "non-blocking"], 66),
        (["--ignore-stream", "^stream 1 "], 0),
        (["--only-kernel", "*"], 0),
        (["--ignore-kernel", "*"], 66),
    ] {
        let ended = checked(&["run", filter[0], filter[1]]);
        assert_eq!(ended.code(), Some(code), "{filter:?}: {}", ended.err);
        let said = format!(
            "not everything was wanted: {} '{}' left out {}",
            filter[0],
            filter[1],
            if code == 0 { "1 finding" } else { "0 findings" }
        );
        assert!(ended.err.contains(&said), "{filter:?}: {}", ended.err);
    }
}

#[test]
fn fail_on() {
    // The finding is certain.
    for level in ["certain", "likely", "possible", "latent"] {
        assert_eq!(checked(&["run", "--fail-on", level]).code(), Some(66), "{level}");
    }
    let trace = product::root().join("tests/recorded/doc_mul_out.trace");
    let with = |options: &[&str]| end(streamsan(["check"]).args(options).arg(&trace));
    // Here without the program's files nothing is known of its kernels: the finding is possible.
    assert_eq!(with(&[]).code(), Some(0));
    assert_eq!(with(&["--fail-on", "possible"]).code(), Some(66));
    let ended = with(&["--pedantic", "--fail-on", "certain"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(
        ended.err.contains("DATA RACE") && ended.err.contains(", 1 below --fail-on"),
        "shown all the same: {}",
        ended.err
    );
    assert_eq!(with(&["--fail-on", "sometimes"]).code(), Some(2));
}

#[test]
fn placeholders_in_file_names() {
    let folder = build::scratch("placeholders");
    let name = folder.join("log.%q{WHO}.%p.%%");
    let mut run = streamsan(["run", "--log-file"]);
    let ended = end(run.arg(&name).arg("--").arg(racy()).env("WHO", "me"));
    assert_eq!((ended.code(), ended.err.as_str()), (Some(66), ""));
    let made: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|f| f.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(made.len() == 1 && made[0].starts_with("log.me.") && made[0].ends_with(".%"), "{made:?}");
    let ended = checked(&["run", "--json", "x.%q{NOT_THERE}"]);
    assert_eq!((ended.code(), ended.ours().len()), (Some(2), 1), "{}", ended.err);
    // Under plain LD_PRELOAD, %p is the program.
    let name = folder.join("pre.%p");
    let child = preloaded(racy(), &format!("log-file={}", name.display())).spawn().expect("start");
    let pid = child.id();
    assert_eq!(tests::run::end_of(child).code(), Some(0));
    let text = std::fs::read_to_string(folder.join(format!("pre.{pid}"))).expect("a report of its own");
    assert!(text.contains("SUMMARY: 1 finding"), "{text}");
}

#[test]
fn annotations_for_github() {
    let root = build::programs();
    let annotation = |ended: &Ended| ended.err.lines().find(|l| l.starts_with("::error ")).map(String::from);
    let ended = end(streamsan(["run", "--format", "github", "--"]).arg(racy()).env("GITHUB_WORKSPACE", &root));
    assert_eq!(ended.code(), Some(66));
    let line = annotation(&ended).unwrap_or_else(|| panic!("no annotation: {}", ended.err));
    let text = std::fs::read_to_string(root.join("racy.c")).expect("source");
    let at = text.lines().position(|l| l.contains("cuMemsetD8Async(x, 2")).expect("the line") + 1;
    let head = format!("::error file=racy.c,line={at},title=StreamSan%3A write-after-write (certain)::");
    assert!(line.starts_with(&head), "{line}");
    assert!(line.contains("%0A") && line.contains("Previous access"), "{line}");
    assert!(ended.err.contains("streamsan: SUMMARY: 1 finding") && !ended.err.contains("DATA RACE"), "{}", ended.err);
    assert!(!ended.err.contains("not printed"), "the annotations tell it: {}", ended.err);
    // Under Actions the text comes with annotations; elsewhere it does not.
    let ended = end(streamsan(["run", "--"]).arg(racy()).env("GITHUB_ACTIONS", "true").env("GITHUB_WORKSPACE", &root));
    assert!(annotation(&ended).is_some() && ended.err.contains("DATA RACE"), "{}", ended.err);
    assert!(annotation(&checked(&["run"])).is_none());
    let ended = end(streamsan(["run", "--"]).arg(racy()).args(["0", "ordered"]).env("GITHUB_ACTIONS", "true"));
    assert!(ended.code() == Some(0) && annotation(&ended).is_none(), "{}", ended.err);
}

#[test]
fn sarif_and_junit_hold_against_their_schemas() {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let validators = product::xtask("validators").unwrap_or_else(|error| panic!("{error}"));
    let folder = build::scratch("schemas");
    let path = |name: &str| folder.join(name).to_str().expect("a path").to_string();
    let supp = path("supp");
    std::fs::write(&supp, "race:main\n").expect("write");
    let base = path("base.json");
    assert_eq!(checked(&["run", "--write-baseline", &base]).code(), Some(66));
    let recorded = product::root().join("tests/recorded/freed_block_reused.trace");
    let recorded = recorded.to_str().expect("a path");
    let program = racy();
    let program = program.to_str().expect("a path");
    let mut files = Vec::new();
    for (name, words) in [
        ("racy", vec!["run", "--", program]),
        ("clean", vec!["run", "--", program, "0", "ordered"]),
        ("suppressed", vec!["run", "--suppressions", &supp, "--", program]),
        ("known", vec!["run", "--baseline", &base, "--", program]),
        ("none", vec!["run", "--no-require-cuda", "--", "true"]),
        ("recorded", vec!["check", "--fail-on=possible", recorded]),
        ("passes", vec!["check", "--pedantic", "--fail-on=certain", recorded]),
    ] {
        let (sarif, junit) = (path(&format!("{name}.sarif")), path(&format!("{name}.xml")));
        let mut command = streamsan([words[0], "--sarif", &sarif, "--junit", &junit]);
        let ended = end(command.args(&words[1..]));
        assert!(matches!(ended.code(), Some(0 | 66)), "{name}: {}", ended.err);
        let results = json(Path::new(&sarif))["runs"][0]["results"].as_array().map_or(0, Vec::len);
        let xml = std::fs::read_to_string(&junit).expect("written");
        assert_eq!(results > 0, !matches!(name, "clean" | "none"), "{name}");
        assert_eq!(xml.contains("<failure"), matches!(name, "racy" | "recorded"), "{name}: {xml}");
        assert_eq!(
            xml.contains("<skipped"),
            matches!(name, "suppressed" | "known" | "none" | "passes"),
            "{name}: {xml}"
        );
        files.extend([sarif, junit]);
    }
    let sarif = json(&folder.join("suppressed.sarif"));
    assert_eq!(sarif["runs"][0]["results"][0]["suppressions"][0]["kind"], "external");
    assert_eq!(json(&folder.join("known.sarif"))["runs"][0]["results"][0]["baselineState"], "unchanged");
    let result = &json(&folder.join("racy.sarif"))["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "write-after-write");
    assert!(result["locations"][0]["physicalLocation"]["region"]["startLine"].is_u64(), "{result:#}");
    // Each validator must also refuse something, or it would prove nothing.
    let (bad_sarif, bad_junit) = (path("bad.sarif"), path("bad.xml"));
    std::fs::write(&bad_sarif, r#"{"version":"2.1.0","runs":[{"results":[]}]}"#).expect("write");
    std::fs::write(&bad_junit, "<testsuites><testsuite name='x'><nonsense/></testsuite></testsuites>").expect("write");
    let script = "import sys, json, jsonschema, xmlschema\n\
        root = sys.argv[1]\n\
        sarif = jsonschema.Draft7Validator(json.load(open(root + '/sarif.json')))\n\
        junit = xmlschema.XMLSchema(root + '/junit.xsd')\n\
        for f in sys.argv[2:]:\n\
        \x20   bad = [e.message[:200] for e in sarif.iter_errors(json.load(open(f)))] if f.endswith('.sarif') else [str(e)[:400] for e in junit.iter_errors(f)]\n\
        \x20   print(f, 'invalid: ' + '; '.join(bad) if bad else 'valid')\n";
    let out = Command::new(validators.join("venv/bin/python"))
        .args(["-c", script])
        .arg(&validators)
        .args(&files)
        .args([&bad_sarif, &bad_junit])
        .output();
    let out = out.expect("python");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    for file in &files {
        assert!(said.contains(&format!("{file} valid")), "{said}");
    }
    for file in [bad_sarif, bad_junit] {
        assert!(said.contains(&format!("{file} invalid: ")), "{said}");
    }
}

#[test]
fn the_program_names_its_parts_and_stops_checking() {
    let program = build::c_program("parts.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let alone = end(&mut tests::run::command(&program));
    assert_eq!((alone.code(), alone.out.as_str()), (Some(0), "alone\n"), "{}", alone.err);
    let file = build::scratch("parts").join("report.json");
    let checked = |how: &str| {
        let ended = end(streamsan(["run", "--json"]).arg(&file).arg("--").arg(&program).arg(how));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "active\n"), "{how}: {}", ended.err);
        (ended, json(&file))
    };
    for how in ["header", "nvtx"] {
        let (ended, report) = checked(how);
        let parts: Vec<String> = report["findings"]
            .as_array()
            .expect("findings")
            .iter()
            .map(|f| format!("{} {} {}", f["allocation"]["size"], f["access"]["regions"], f["previous"]["regions"]))
            .collect();
        let expected =
            [r#"4096 ["step","forward"] ["step","forward"]"#, r#"100 ["step","backward"] ["step","backward"]"#];
        assert_eq!(parts, expected, "{how}");
        assert!(ended.err.contains(", in step > forward\n"), "{how}: {}", ended.err);
    }
    let (ended, report) = checked("stop");
    assert_eq!((&report["summary"]["findings"], &report["coverage"]["paused"]), (&1.into(), &2.into()));
    assert_eq!(report["findings"][0]["allocation"]["size"], 100);
    assert!(
        ended.err.contains("2 operations were not checked, because the program had stopped checking"),
        "{}",
        ended.err
    );
}

/// A pool's regions have lives, stacks and names of their own, as NVTX's memory annotations tell
/// them: the real header, our injection.
#[test]
fn regions_of_an_annotated_pool_are_memory_of_their_own() {
    let headers = build::toolkit().expect("the toolkit").join("include");
    let include = format!("-I{}", headers.display());
    let program = build::c_program(
        "nvtx_mem.c",
        &[&include, "-L", &fake::folder().to_string_lossy(), "-lcuda", "-ldl", "-pthread"],
    );
    let alone = end(tests::run::command(&program).arg("reset"));
    assert_eq!((alone.code(), alone.out.as_str()), (Some(0), "done\n"), "no tool: {}", alone.err);
    let file = build::scratch("nvtx_mem").join("report.json");
    let checked = |how: &str, code: i32| {
        let ended = end(streamsan(["run", "--json"]).arg(&file).arg("--").arg(&program).arg(how));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "done\n"), "{how}: {}", ended.err);
        let found = json(&file)["findings"].as_array().expect("findings").clone();
        let memory = |m: &Value| format!("{} bytes, {}, {}", m["size"], m["name"], m["call"]);
        let lives: Vec<_> = found
            .iter()
            .map(|f| format!("{}; before: {}", memory(&f["allocation"]), memory(&f["previous_allocation"])))
            .collect();
        (ended, lives)
    };
    let (ended, lives) = checked("racy", 66);
    let second = "2048 bytes, \"gradients in arena\", \"nvtxMemRegionsRegister\"";
    let first = "4096 bytes, \"activations in arena\", \"nvtxMemRegionsRegister\"";
    assert_eq!(lives, [format!("{second}; before: {first}")]);
    for part in [
        "Memory: 2048 bytes of a pool of the program, gradients in arena at ",
        "4096 bytes of a pool of the program, activations in arena at ",
        "take",
    ] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    let unnamed = "2048 bytes, \"arena\", \"nvtxMemRegionsRegister\"";
    assert_eq!(checked("reset", 66).1, [format!("{unnamed}; before: {first}")]);
    assert_eq!(checked("resized", 66).1.len(), 1, "the bytes that were there before");
    for clean in ["waited", "apart"] {
        assert_eq!(checked(clean, 0).1, Vec::<String>::new(), "{clean}");
    }
}

#[test]
fn the_page_is_whole_and_holds_nothing_foreign() {
    let folder = build::scratch("html");
    let (page, report) = (folder.join("report.html"), folder.join("report.json"));
    let program = folder.join("<script>alert(1)<");
    std::fs::copy(racy(), &program).expect("copy");
    let mut command = streamsan(["run", "--html"]);
    let ended = end(command.arg(&page).arg("--json").arg(&report).arg("--").arg(&program));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let text = std::fs::read_to_string(&page).expect("written");
    let data = text.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("the data");
    assert!(!data.contains('<') && data.contains("\\u003cscript"), "the program's name is escaped");
    assert_eq!(serde_json::from_str::<Value>(data).expect("JSON"), json(&report), "the page holds what the JSON holds");
    assert_eq!((text.matches("<script").count(), text.matches("</script>").count()), (2, 2));
    for foreign in ["http://", "https://", "<link", "<img", "@import", "@DATA@"] {
        assert!(!text.contains(foreign), "{foreign}");
    }
}
