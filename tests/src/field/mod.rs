//! The field suite: stream bugs of public projects, each at the release with the bug and at the one
//! with the fix (`tests/field`, `docs/field.md`).
//!
//! Owns what a `bug.toml` says, and how one is tried: as a test (`cases/field.rs`) and by `cargo
//! xtask field`. The projects' code comes from PyPI and is kept in `.cache/field`; none of it is in
//! the repository.

mod expected;
mod sources;
mod torch;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use crate::{build, product, run};
use expected::Race;

pub use sources::package;
pub use torch::{Torch, environment as torch};

/// How long a driver may take: an import of a big package is part of it, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// The exit code of a run with findings.
const FOUND: i32 = 66;

/// A bug, as its `bug.toml` says it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bug {
    /// The folder's name.
    #[serde(skip)]
    pub name: String,
    #[serde(skip)]
    folder: PathBuf,
    /// What goes wrong, in one line.
    pub title: String,
    /// Whose bug it was.
    pub project: String,
    /// Where it is documented: an issue, a pull request, a commit.
    pub link: String,
    bug: Release,
    fix: Release,
    /// What every run needs beside the project's own packages.
    #[serde(default)]
    packages: Vec<String>,
    /// Arguments of `streamsan run`.
    #[serde(default)]
    options: Vec<String>,
    /// Arguments of the compiler.
    #[serde(default)]
    compiler: Vec<String>,
    race: Vec<Race>,
}

/// The project's code on one side of the fix.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    packages: Vec<String>,
    /// Arguments of the driver: only for a bug that no release has fixed.
    #[serde(default)]
    arguments: Vec<String>,
}

/// Which of the two releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one with the bug: exactly its races must be reported.
    Bug,
    /// The one with the fix: nothing must be.
    Fix,
}

impl Bug {
    /// All bugs, sorted by name.
    pub fn all() -> Vec<Bug> {
        let root = product::root().join("tests/field");
        let entries = std::fs::read_dir(&root).unwrap_or_else(|error| panic!("{}: {error}", root.display()));
        let folders = entries.map(|entry| entry.expect("the folder can be read").path());
        let mut bugs: Vec<Bug> = folders.filter(|path| path.is_dir()).map(|path| Bug::read(&path)).collect();
        bugs.sort_by(|a, b| a.name.cmp(&b.name));
        bugs
    }

    fn read(folder: &Path) -> Bug {
        let file = folder.join("bug.toml");
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut bug: Bug = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(!bug.race.is_empty(), "{}: no race is expected", file.display());
        bug.name = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        bug.folder = folder.to_path_buf();
        bug
    }

    /// Whether its driver is a Python program on PyTorch, which is a bigger download.
    pub fn needs_torch(&self) -> bool {
        self.folder.join("driver.py").exists()
    }

    /// The packages of a side, without what every run needs.
    pub fn release(&self, side: Side) -> String {
        self.of(side).packages.join(", ")
    }

    fn of(&self, side: Side) -> &Release {
        if side == Side::Bug { &self.bug } else { &self.fix }
    }

    /// Installs and compiles what a side needs, unless it is there.
    pub fn prepare(&self, side: Side) -> Result<Prepared, String> {
        let release = self.of(side);
        let packages: Vec<PathBuf> = release
            .packages
            .iter()
            .chain(&self.packages)
            .map(|requirement| sources::package(requirement))
            .collect::<Result<_, String>>()?;
        let mut command = if self.needs_torch() {
            let torch = torch::environment()?;
            // Drivers share files of their own, too.
            let shared = product::root().join("tests/field");
            let path = std::env::join_paths(packages.iter().chain([&shared])).map_err(|error| error.to_string())?;
            let driver = [torch.python(), self.folder.join("driver.py")];
            (driver.to_vec(), vec![("PYTHONPATH", path), ("LD_LIBRARY_PATH", torch.stand_ins().into())])
        } else {
            let program = sources::compiled(&self.folder.join("driver.cu"), &packages, &self.compiler)?;
            (vec![program], Vec::new())
        };
        command.0.extend(release.arguments.iter().map(PathBuf::from));
        Ok(Prepared { program: command.0, environment: command.1 })
    }

    /// Tries a side. The error says what is not as it should be.
    pub fn check(&self, side: Side) -> Result<Duration, String> {
        let prepared = self.prepare(side)?;
        let scratch = build::scratch(&format!("field-{}-{side:?}", self.name));
        let json = scratch.join("report.json");
        let mut command = run::streamsan(["run", "--sim", "--require-cuda", "--error-exitcode"]);
        command.arg(FOUND.to_string()).args(&self.options).arg("--json").arg(&json);
        command.arg("--").args(&prepared.program).env_remove("LD_LIBRARY_PATH").env_remove("STREAMSAN_SIM");
        for (name, value) in &prepared.environment {
            command.env(name, value);
        }
        if self.needs_torch() {
            // PyTorch's kernels are machine code: they are seen with their bytes, and do nothing.
            build::keep_bytecode(command.env("STREAMSAN_SIM", "sass=skip"));
        }
        let began = Instant::now();
        let ended = run::end_within(&mut command, PATIENCE);
        let took = began.elapsed();
        let fail = |why: String| format!("{why}\n{}\n{}", ended.out, ended.err);
        if ended.hung {
            return Err(fail("the driver hangs".to_owned()));
        }
        let wanted = if side == Side::Bug { FOUND } else { 0 };
        if ended.status.code() != Some(wanted) {
            return Err(fail(format!("ends with {} instead of {wanted}", ended.status)));
        }
        let text = std::fs::read_to_string(&json).map_err(|error| format!("no JSON: {error}\n{}", ended.err))?;
        let report: Value = serde_json::from_str(&text).map_err(|error| format!("JSON: {error}"))?;
        expected::judge(if side == Side::Bug { &self.race } else { &[] }, &report).map_err(fail)?;
        Ok(took)
    }
}

/// A driver that can be started.
pub struct Prepared {
    program: Vec<PathBuf>,
    environment: Vec<(&'static str, std::ffi::OsString)>,
}
