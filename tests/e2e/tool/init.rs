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
fn the_commands_are_those_of_the_projects_files() {
    for (n, (file, text, build, check)) in [
        ("CMakeLists.txt", "project(a CUDA)\n  Enable_Testing()\n", "cmake -S . -B build", "ctest --test-dir build"),
        ("CMakeLists.txt", "project(a CUDA)\n# enable_testing()\n", "cmake -S . -B build", "build/app"),
        ("meson.build", "project('a', 'cuda')\ntest('a', a)\n", "meson setup build", "meson test -C build"),
        ("Makefile", "all: a\ntest: all\n", "make", "make test"),
        ("Makefile", "all: a\ntests-are-elsewhere: all\n", "make", "./app"),
        ("pyproject.toml", "[project]\nname = 'a'\n", "pip install . pytest", "python -m pytest"),
        ("setup.py", "", "pip install . pytest", "python -m pytest"),
        ("pytest.ini", "[pytest]\n", "pip install pytest", "python -m pytest"),
        ("README", "", "make", "./app"),
    ]
    .into_iter()
    .enumerate()
    {
        let project = build::scratch(&format!("init_commands_{n}"));
        fs::write(project.join(file), text).expect("written");
        let ended = init(&project, &["--ci", "github"]);
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        let job = read(&project, ".github/workflows/streamsan.yml");
        let holds =
            |key: &str, command: &str| job.lines().any(|line| line.trim().starts_with(&format!("{key}: \"{command}")));
        assert!(holds("run", build) && holds("command", check), "{file}: {text}: {job}");
        assert!(ended.out.contains(&format!("try    streamsan --sim {check}")), "{}", ended.out);
        // The images of CUDA have no Python; other projects need CUDA's compiler.
        let is_python = check.starts_with("python");
        let has = |words: &str| job.contains(words);
        assert_eq!((has("actions/setup-python@"), has("container: nvidia/cuda:")), (is_python, !is_python), "{job}");
        assert_eq!(ended.out.contains("pytest --streamsan-sim"), is_python, "{}", ended.out);
        let ended = init(&project, &["--ci", "gitlab"]);
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        let job = read(&project, ".gitlab/streamsan.yml");
        let whole = if is_python { format!("{build} && {check}") } else { check.to_owned() };
        assert!(job.contains(&format!("\n      command: \"{whole}")), "{job}");
        assert_eq!(job.contains("image: python:3\n"), is_python, "{job}");
        assert_eq!(job.matches('@').count(), 1, "each word is filled in: {job}");
    }
    let project = build::scratch("init_commands_given");
    fs::write(project.join("CMakeLists.txt"), "enable_testing()\n").expect("written");
    let ended = init(&project, &["--ci", "github", "--command", "build/mine", "--build", "ninja"]);
    let job = read(&project, ".github/workflows/streamsan.yml");
    assert!(job.contains("run: \"ninja\"\n") && job.contains("command: \"build/mine\"\n"), "{job}");
    assert!(!ended.out.contains("CMake:"), "{}", ended.out);
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
