//! Where the suites' sources come from: one commit of a public repository, unpacked into `.cache`,
//! from GitHub or from a clone that an option names. Nothing of them lies in this repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

    /// Each path by itself: clones may lack objects elsewhere.
    fn unpack(&self, git_dir: &Path, into: &Path) -> Result<()> {
        for path in self.paths {
            let mut archive = git(git_dir);
            archive.arg("archive").arg(format!("--prefix={path}/")).arg(format!("{}:{path}", self.commit));
            let mut archive = archive.stdout(Stdio::piped()).spawn().context("git archive")?;
            let packed = archive.stdout.take().context("git archive has an output")?;
            let unpacked = command::run(Command::new("tar").arg("x").arg("-C").arg(into).stdin(packed));
            if !archive.wait()?.success() {
                bail!("{} has no {path} at {}", git_dir.display(), self.commit);
            }
            unpacked?;
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
