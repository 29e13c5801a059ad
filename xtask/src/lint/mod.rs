//! `cargo xtask lint`: the rules of the house that neither rustfmt nor clippy knows.
//!
//! Owns the list of checks and how violations print. Each check has its own file; `modules` reads
//! crates for those that need to know modules.

mod comments;
mod cycles;
mod features;
mod folders;
mod forgotten;
mod impls;
mod links;
mod markdown;
mod modules;
mod names;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use crate::workspace;

/// Widest line of a comment or of prose.
const COLUMNS: usize = 100;

/// Checks what rustfmt and clippy do not: comment and prose width, links, folder size, module
/// cycles, duplicate type names, types spread over files, and files of tests that never run.
///
/// Prints each violation as FILE:LINE and exits with 1 if there is any.
#[derive(clap::Args)]
pub struct LintArgs {
    /// Run only these checks.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CHECK")]
    only: Vec<Check>,
    /// Look only at crates or files below this folder of the repository.
    #[arg(long = "in", value_name = "FOLDER")]
    inside: Option<PathBuf>,
    /// Take all files of a folder as one unit, so that folders must form layers. The default
    /// reports cycles of the modules themselves, as far as they cross folders.
    #[arg(long)]
    layers: bool,
}

impl LintArgs {
    /// All checks, as `cargo xtask check` and `scripts/test` run them.
    pub fn all() -> Self {
        Self { only: Vec::new(), inside: None, layers: false }
    }
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Check {
    /// Comments in Rust sources end by column 100.
    Comments,
    /// Prose in Markdown ends by column 100; tables, code and addresses may be wider.
    Markdown,
    /// Links of Markdown, and paths between backticks, lead somewhere.
    Links,
    /// No folder below `src/` has more than 15 source files beside each other.
    Folders,
    /// No cycle of modules crosses folders.
    Cycles,
    /// No two public types of a crate have one name.
    Names,
    /// The methods of a type stand in at most five files.
    Impls,
    /// Every file of a folder of tests is a module of a test program.
    Forgotten,
    /// The features that `scripts/build` names reach the simulator.
    Features,
}

/// What breaks a rule.
struct Violation {
    file: PathBuf,
    line: usize,
    text: String,
}

impl Violation {
    fn new(file: &Path, line: usize, text: impl Into<String>) -> Self {
        Self { file: file.to_path_buf(), line, text: text.into() }
    }
}

/// Runs the checks that are asked for.
pub fn run(args: &LintArgs) -> Result<ExitCode> {
    let asked = |check| args.only.is_empty() || args.only.contains(&check);
    let inside = |path: &Path| args.inside.as_ref().is_none_or(|folder| path.starts_with(folder));
    let sources = || Ok::<_, anyhow::Error>(workspace::files("rs")?.into_iter().filter(|path| inside(path)));
    let mut violations = Vec::new();
    if asked(Check::Comments) {
        for file in sources()? {
            violations.extend(comments::check(&file)?);
        }
    }
    if asked(Check::Markdown) {
        for file in workspace::files("md")?.iter().filter(|path| inside(path)) {
            violations.extend(markdown::check(file)?);
        }
    }
    if asked(Check::Links) {
        for file in workspace::files("md")?.iter().filter(|path| inside(path)) {
            violations.extend(links::check(file)?);
        }
    }
    if asked(Check::Folders) {
        violations.extend(folders::check(sources()?));
    }
    if asked(Check::Cycles) || asked(Check::Names) || asked(Check::Impls) {
        for folder in workspace::crates()?.iter().filter(|folder| inside(folder)) {
            for tree in modules::read(folder)? {
                if asked(Check::Cycles) {
                    violations.extend(cycles::check(&tree, !args.layers));
                }
                if asked(Check::Names) {
                    violations.extend(names::check(&tree));
                }
                if asked(Check::Impls) {
                    violations.extend(impls::check(&tree));
                }
            }
        }
    }
    if asked(Check::Forgotten) {
        violations.extend(forgotten::check(&forgotten::roots()?, sources()?)?);
    }
    if asked(Check::Features) {
        violations.extend(features::check()?);
    }
    for Violation { file, line, text } in &violations {
        println!("{}:{line}: {text}", file.display());
    }
    if violations.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("lint: {} violations", violations.len());
    Ok(ExitCode::FAILURE)
}
