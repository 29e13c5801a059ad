//! An archive of the suites' programs that can be carried to a machine with a GPU, with their list
//! for `python3 tests/gpu racecheck --list`. They are compiled elsewhere, and nothing is run here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::table::{Row, Says};
use super::trial::Made;
use crate::command;

/// The list's name in the archive.
const LIST: &str = "list.tsv";

/// What is in an archive that is being made.
pub struct Carried {
    archive: PathBuf,
    /// Where it is put together, beside the archive.
    folder: PathBuf,
    /// The name of a file in the archive, by its place here.
    copied: BTreeMap<PathBuf, String>,
    lines: Vec<String>,
}

impl Carried {
    /// An empty one.
    pub fn new(archive: &Path) -> Result<Self> {
        let name = archive.file_name().context("an archive has a name")?.to_string_lossy().into_owned();
        let folder = archive.with_file_name(format!(".{name}.partial"));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Self { archive: archive.to_path_buf(), folder, copied: BTreeMap::new(), lines: Vec::new() })
    }

    /// A program of a suite. Files among its arguments come along. What is neither racy nor clean
    /// is left out.
    pub fn add(&mut self, suite: &str, row: &Row, program: &Made) -> Result<()> {
        let truth = match row.says {
            Says::Racy => "racy",
            Says::Clean => "clean",
            Says::Other => return Ok(()),
        };
        let mut words = vec![self.copy(&program.file, suite, true)?];
        for argument in &program.arguments {
            let is_file = argument.contains('/') && Path::new(argument).is_file();
            words.push(if is_file { self.copy(Path::new(argument), "inputs", false)? } else { argument.clone() });
        }
        if let Some(word) = words.iter().find(|word| word.contains(|letter: char| " \t'\"\\".contains(letter))) {
            bail!("{suite} {}: {word:?} would have to be quoted", row.name);
        }
        // Forms of ScoR's programs are a suite of their own.
        let plain = row.name.strip_prefix("plain/").map(|name| (format!("{suite}-plain"), name));
        let (suite, name) = plain.unwrap_or((suite.to_owned(), &row.name));
        self.lines.push(format!("{suite} {name}\t{truth}\t{}\n", words.join(" ")));
        Ok(())
    }

    /// The name of a file in the archive, which has one copy of it.
    fn copy(&mut self, file: &Path, group: &str, is_program: bool) -> Result<String> {
        if let Some(name) = self.copied.get(file) {
            return Ok(name.clone());
        }
        let own = file.file_name().context("a file has a name")?.to_string_lossy().into_owned();
        // Compiled programs of a suite have one name, each in a folder of its own.
        let name = if is_program { format!("{group}/{}", self.copied.len()) } else { format!("{group}/{own}") };
        if self.copied.values().any(|taken| *taken == name) {
            bail!("two files would be {name}");
        }
        let to = self.folder.join(&name);
        std::fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        std::fs::copy(file, &to).with_context(|| file.display().to_string())?;
        if is_program {
            // Symbols stay: the simulated runtime takes the place of the static one by them.
            command::run(Command::new("strip").arg("--strip-debug").arg(&to))?;
        }
        self.copied.insert(file.to_path_buf(), name.clone());
        Ok(name)
    }

    /// Writes the archive, and says what is in it.
    pub fn finish(self) -> Result<()> {
        std::fs::write(self.folder.join(LIST), self.lines.concat())?;
        let partial = self.folder.with_extension("new");
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--owner=0", "--group=0", "--mtime=@0", "-cJf"]).arg(&partial);
        // A window over all programs: each has CUDA's runtime within.
        command::run(tar.arg("-C").arg(&self.folder).arg(".").env("XZ_OPT", "--lzma2=preset=3,dict=64MiB"))?;
        std::fs::rename(&partial, &self.archive).with_context(|| self.archive.display().to_string())?;
        std::fs::remove_dir_all(&self.folder)?;
        let size = std::fs::metadata(&self.archive)?.len() as f64 / f64::from(1 << 20);
        println!("{}: {} programs, {size:.1} MiB", self.archive.display(), self.lines.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::inside_suites::table::Shown;

    fn row(name: &str, says: Says) -> Row {
        Row { name: name.to_owned(), says, expected: Shown::Silent, arguments: Vec::new(), why: String::new() }
    }

    #[test]
    fn programs_and_inputs_are_in_the_archive_once_and_named_from_its_folder() {
        let scratch = ::tests::build::scratch("carried");
        let (graph, archive) = (scratch.join("g.egr"), scratch.join("all.tar.xz"));
        std::fs::write(&graph, "graph").expect("a file");
        let program = |name: &str| Made {
            file: std::env::current_exe().expect("this program"),
            arguments: vec![name.to_owned(), graph.display().to_string(), "2".to_owned()],
        };
        let mut carried = Carried::new(&archive).expect("an empty folder");
        carried.add("suite", &row("a", Says::Racy), &program("a")).expect("a program");
        carried.add("suite", &row("b", Says::Clean), &program("b")).expect("a program");
        carried.add("suite", &row("c", Says::Other), &program("c")).expect("nothing to add");
        assert!(carried.add("suite", &row("d", Says::Racy), &program("d e")).is_err());
        carried.finish().expect("an archive");
        let unpacked = scratch.join("unpacked");
        std::fs::create_dir(&unpacked).expect("a folder");
        let mut tar = Command::new("tar");
        command::run(tar.arg("-xJf").arg(&archive).arg("-C").arg(&unpacked)).expect("an archive of tar");
        let list = std::fs::read_to_string(unpacked.join(LIST)).expect("a list");
        let line = |name: &str, truth: &str| format!("suite {name}\t{truth}\tsuite/0 {name} inputs/g.egr 2\n");
        assert_eq!(list, [line("a", "racy"), line("b", "clean")].concat());
        assert_eq!(std::fs::read_to_string(unpacked.join("inputs/g.egr")).expect("a copy"), "graph");
        assert!(unpacked.join("suite/0").exists());
        let left = scratch.read_dir().expect("a folder").count();
        assert_eq!(left, 3, "the graph, the archive and what it was unpacked into");
    }
}
