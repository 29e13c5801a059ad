//! `streamsan init`: the files that it writes, that the product takes them, and that it harms none.
//!
//! `wiring` runs the job for GitHub.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tests::run::{Ended, end, streamsan};
use tests::{build, fake};

fn init(project: &Path, words: &[&str]) -> Ended {
    end(streamsan(["init"]).args(words).arg(project))
}

fn read(project: &Path, name: &str) -> String {
    fs::read_to_string(project.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn the_files_are_options_that_the_product_takes() {
    let project = build::scratch("init");
    let ended = init(&project, &[]);
    assert_eq!(ended.code(), Some(0), "{}{}", ended.out, ended.err);
    let names = ["streamsan.toml", "streamsan.supp"];
    assert!(names.iter().all(|name| ended.out.contains(&format!("wrote  {name}: "))), "{}", ended.out);
    assert!(ended.out.contains("--ci github"), "which it does not guess: {}", ended.out);
    assert_eq!(fs::read_dir(&project).expect("a folder").count(), names.len(), "no job without a CI system");
    let racy = build::c_program("racy.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let run = || {
        end(streamsan(["--write-baseline", "streamsan-baseline.json"])
            .arg(&racy)
            .current_dir(&project)
            .env("LD_LIBRARY_PATH", fake::folder()))
    };
    assert_eq!(run().code(), Some(66));
    // Its comments hold options and patterns, which hold as well.
    let uncommented = |text: &str, sign: &str| {
        let lines = text.lines().map(|line| match line.strip_prefix('#') {
            Some(rest) if rest.starts_with(|first: char| first.is_ascii_lowercase()) && rest.contains(sign) => rest,
            _ => line,
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let (options, patterns) = (read(&project, names[0]), read(&project, names[1]));
    let all = uncommented(&options, " = ");
    for key in ["baseline", "library", "fail-on", "forbid"] {
        assert!(all.contains(&format!("\n{key} = ")), "{all}");
    }
    fs::write(project.join(names[0]), all).expect("written");
    let all: String = uncommented(&patterns, ":")
        .lines()
        .map(|line| format!("{}\n", line.split("  ").next().unwrap_or(line)))
        .collect();
    assert!(all.contains("\nrace:libfoo.so\n"), "{all}");
    fs::write(project.join(names[1]), all).expect("written");
    fs::remove_file(project.join("streamsan-baseline.json")).expect("the first run has written it");
    let ended = run();
    assert_eq!(ended.code(), Some(66), "a baseline begins with this run: {}", ended.err);
    assert!(ended.err.contains("race:libfoo.so"), "it covered nothing, and is named: {}", ended.err);
    fs::write(project.join(names[0]), options).expect("written");
    fs::write(project.join(names[1]), patterns + "race:*\n").expect("written");
    let ended = run();
    assert_eq!(ended.code(), Some(0), "suppressed: {}", ended.err);
}

#[test]
fn files_that_exist_are_kept() {
    let project = build::scratch("init_kept");
    fs::create_dir(project.join(".github")).expect("a folder");
    fs::write(project.join("streamsan.toml"), "stacks = true\n").expect("written");
    // Where the link leads must not be written to.
    let (elsewhere, supp) = (project.join("elsewhere"), project.join("streamsan.supp"));
    symlink(&elsewhere, &supp).expect("a link");
    let ended = init(&project, &["--command", "./app --name \"a: b\""]);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert_eq!(read(&project, "streamsan.toml"), "stacks = true\n");
    assert!(!elsewhere.exists() && ended.out.matches("kept ").count() == 2, "{}", ended.out);
    let job = read(&project, ".github/workflows/streamsan.yml");
    assert!(job.contains("\n          command: \"./app --name \\\"a: b\\\"\"\n"), "{job}");
    let again = init(&project, &["--ci", "github"]);
    assert!(again.code() == Some(0) && !again.out.contains("wrote"), "{}", again.out);
    assert_eq!(read(&project, ".github/workflows/streamsan.yml"), job);
    // A job for a CI system that has its own file is included there, not written into it.
    fs::write(project.join(".gitlab-ci.yml"), "stages: [build]\n").expect("written");
    let ended = init(&project, &[]);
    assert!(ended.out.contains("wrote  .gitlab/streamsan.yml") && ended.out.contains("local: .gitlab/streamsan.yml"));
    assert_eq!(read(&project, ".gitlab-ci.yml"), "stages: [build]\n");
}

#[test]
fn what_cannot_be_written_is_named() {
    let project = build::scratch("init_wrong");
    let file = project.join("file");
    fs::write(&file, "").expect("written");
    let ended = init(&file, &[]);
    assert!(ended.code() == Some(2) && ended.err.contains("is no folder"), "{}", ended.err);
    fs::write(project.join(".github"), "").expect("written");
    let ended = init(&project, &["--ci", "github"]);
    assert!(
        ended.code() == Some(70) && ended.err.contains(".github/workflows/streamsan.yml cannot be written"),
        "{}",
        ended.err
    );
    assert!(ended.out.contains("wrote  streamsan.toml"), "what was done is told: {}", ended.out);
    let ended = init(&project, &["--ci", "jenkins"]);
    assert!(ended.code() == Some(2) && ended.err.contains("gitlab"), "{}", ended.err);
}
