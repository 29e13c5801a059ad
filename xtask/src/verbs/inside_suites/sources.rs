//! Where the suites' sources come from: one commit of a public repository, unpacked into `.cache`,
//! from GitHub or from a clone that an option names. Nothing of them lies in this repository.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{command, environment};

/// Parts of a repository at one commit.
pub struct Source {
    /// Owner and name on GitHub.
    pub repository: &'static str,
    /// The whole hash: a server gives out nothing for a part of one.
    pub commit: &'static str,
    /// The folders that are wanted.
    pub paths: &'static [&'static str],
}

impl Source {
    /// The folder with the unpacked paths. `clone` is a git directory, or a work tree with one,
    /// that has the commit; without it the commit is fetched.
    pub fn unpacked(&self, clone: Option<&Path>) -> Result<PathBuf> {
        let name = self.repository.replace('/', "-");
        environment::folder(&format!("inside-suites-{name}-{}", &self.commit[..8]), "1", |folder| match clone {
            Some(clone) => {
                let inner = clone.join(".git");
                self.unpack(if inner.exists() { &inner } else { clone }, folder)
            }
            None => {
                let fetched = folder.join("fetched.git");
                command::run(Command::new("git").args(["init", "-q", "--bare"]).arg(&fetched))?;
                let url = format!("https://github.com/{}", self.repository);
                let mut fetch = git(&fetched);
                command::run(fetch.args(["fetch", "-q", "--depth", "1", &url, self.commit])).with_context(|| {
                    format!("--from takes a clone of {} where there is no network", self.repository)
                })?;
                self.unpack(&fetched, folder)?;
                Ok(std::fs::remove_dir_all(&fetched)?)
            }
        })
    }

    /// File by file: clones may lack large objects that no program here reads.
    fn unpack(&self, git_dir: &Path, into: &Path) -> Result<()> {
        let mut list = git(git_dir);
        let listed = command::output(list.args(["ls-tree", "-r", "--name-only", self.commit, "--"]).args(self.paths));
        let listed = listed.with_context(|| format!("{} has no {}", git_dir.display(), self.commit))?;
        for path in self.paths {
            if !listed.lines().any(|file| file.starts_with(path)) {
                bail!("{} has no {path} at {}", git_dir.display(), self.commit);
            }
        }
        for file in listed.lines().filter(|file| !file.ends_with(".tar.gz")) {
            let to = into.join(file);
            std::fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
            let mut show = git(git_dir);
            show.arg("show").arg(format!("{}:{file}", self.commit)).stdout(File::create(&to)?);
            command::run(&mut show)?;
        }
        Ok(())
    }
}

/// Git at work on a git directory, whoever owns it.
fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*"]).arg("--git-dir").arg(folder);
    git
}
