//! `streamsan init`: the files with which a project starts.
//!
//! Owns the texts and where each goes. A file that exists is kept as it is; nothing else of the
//! project is changed.

pub(crate) mod build_system;

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

/// The CI system whose job is written.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ci {
    /// `.github/workflows/streamsan.yml`
    Github,
    /// `.gitlab/streamsan.yml`
    Gitlab,
    /// None
    None,
}

impl Ci {
    /// Those whose files a project has.
    pub(crate) fn of(project: &Path) -> Vec<Self> {
        let systems = [(Self::Github, ".github"), (Self::Gitlab, ".gitlab-ci.yml")];
        systems.into_iter().filter(|(_, file)| project.join(file).exists()).map(|(ci, _)| ci).collect()
    }
}

/// The project's commands.
pub(crate) struct Commands<'a> {
    /// Builds it.
    pub(crate) build: &'a str,
    /// What a job checks: its tests, or a program.
    pub(crate) check: &'a str,
    /// A line about what fits such a project better, or nothing.
    pub(crate) next: &'a str,
    /// Whether the job needs Python where that of others needs CUDA's compiler.
    pub(crate) is_python: bool,
}

/// What became of the files.
pub(crate) struct Written {
    /// A line for each file, and what to do next.
    pub(crate) text: String,
    /// Why one could not be written.
    pub(crate) error: Option<String>,
}

/// Writes the files that are not there yet, with a job for each of the systems. Stops at the first
/// that cannot be written.
pub(crate) fn write(project: &Path, systems: &[Ci], commands: &Commands<'_>) -> Written {
    let mut files = vec![
        ("streamsan.toml", include_str!("streamsan.toml").to_owned(), "options of this project"),
        ("streamsan.supp", include_str!("streamsan.supp").to_owned(), "findings to set aside"),
    ];
    let mut next = String::new();
    for ci in systems {
        next += match ci {
            Ci::Github => {
                let purpose = if REPOSITORY.is_some() { "a job" } else { "a job; replace OWNER in it" };
                files.push((GITHUB, filled(include_str!("github.yml"), commands), purpose));
                "next   commit the job: it fails with exit code 66 where it finds a race\n"
            }
            Ci::Gitlab => {
                files.push((GITLAB, filled(include_str!("gitlab.yml"), commands), "a job; replace GROUP in it"));
                "next   in .gitlab-ci.yml: include: [{ local: .gitlab/streamsan.yml }]\n"
            }
            Ci::None => "",
        };
    }
    if systems.is_empty() {
        next += "next   for a CI job: --ci github or --ci gitlab\n";
    }
    next += commands.next;
    let mut text = String::new();
    for (name, content, purpose) in files {
        match write_new(&project.join(name), &content) {
            Ok(true) => {
                let _ = writeln!(text, "wrote  {name}: {purpose}");
            }
            Ok(false) => {
                let _ = writeln!(text, "kept   {name}: it exists");
            }
            Err(error) => return Written { text, error: Some(format!("{name} cannot be written: {error}")) },
        }
    }
    let _ = writeln!(text, "{next}try    streamsan --sim {}", commands.check);
    Written { text, error: None }
}

const GITHUB: &str = ".github/workflows/streamsan.yml";
const GITLAB: &str = ".gitlab/streamsan.yml";

/// The step that installs Python.
const PYTHON: &str = "      - uses: actions/setup-python@v6
        with:
          python-version: '3.x'
";

/// Where GitLab's job has what it checks from.
const GITLAB_PROGRAM: &str = "The program comes from an earlier stage.";
const GITLAB_PYTHON: &str = "The job installs the project.";

/// The repository that has the action, as `owner/name`, told when the product is built for a
/// release; without it, the job says that the owner is to be filled in.
const REPOSITORY: Option<&str> = option_env!("STREAMSAN_REPOSITORY");

/// A template with its words. A string of JSON is one of YAML.
fn filled(template: &str, commands: &Commands<'_>) -> String {
    let quoted = |command: &str| serde_json::Value::from(command).to_string();
    // The images of CUDA have no Python, and Debian's Python takes no packages by pip.
    let (container, setup, image) = match commands.is_python {
        true => ("", PYTHON, "      image: python:3\n"),
        false => ("    container: nvidia/cuda:13.0.0-devel-ubuntu24.04 # for nvcc\n", "", ""),
    };
    // GitLab's component has no step before that which it checks.
    let whole = format!("{} && {}", commands.build, commands.check);
    let note = " OWNER is the owner of StreamSan's repository.";
    template
        .replace("@CONTAINER@\n", container)
        .replace("@SETUP@\n", setup)
        .replace("@IMAGE@\n", image)
        .replace("@WHERE@", if commands.is_python { GITLAB_PYTHON } else { GITLAB_PROGRAM })
        .replace("@WHOLE@", &quoted(if commands.is_python { &whole } else { commands.check }))
        .replace("@NOTE@", if REPOSITORY.is_some() { "" } else { note })
        .replace("@REPOSITORY@", REPOSITORY.unwrap_or("OWNER/streamsan"))
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@BUILD@", &quoted(commands.build))
        .replace("@COMMAND@", &quoted(commands.check))
}

/// Writes a file unless there is one, a link that leads nowhere included. Whether it was written.
fn write_new(path: &Path, content: &str) -> std::io::Result<bool> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(content.as_bytes()).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
