//! Packages of Debian for both architectures, unpacked into a folder and installed nowhere.
//!
//! Owns the state of `apt-get`: the machine's own sources, with the other architecture and the
//! backports added, beside the machine's state and not in it. What is wanted is for others to say.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::command;

/// The release of Debian that holds newer programs than Debian 12.
pub const BACKPORTS: &str = "bookworm-backports";

/// A list of packages, as of now.
pub struct Debian {
    state: PathBuf,
}

impl Debian {
    /// Reads the list into a folder.
    pub fn read(folder: &Path) -> Result<Debian> {
        let state = folder.join("apt");
        for made in ["lists/partial", "archives/partial", "debs"] {
            fs::create_dir_all(state.join(made)).with_context(|| state.display().to_string())?;
        }
        fs::write(state.join("status"), "")?;
        let sources = fs::read_to_string("/etc/apt/sources.list").unwrap_or_default();
        let backports = format!(
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian {BACKPORTS} main"
        );
        fs::write(state.join("sources.list"), format!("{sources}\n{backports}\n"))?;
        let at = state.display();
        let settings = format!(
            "APT::Architecture \"amd64\";\nAPT::Architectures {{ \"amd64\"; \"arm64\"; }};\nDir::State \"{at}\";\n\
             Dir::State::lists \"{at}/lists\";\nDir::State::status \"{at}/status\";\nDir::Cache \"{at}\";\n\
             Dir::Etc::sourcelist \"{at}/sources.list\";\nAcquire::Languages \"none\";\nAPT::Sandbox::User \"\";\n"
        );
        fs::write(state.join("apt.conf"), settings)?;
        let debian = Debian { state };
        debian.apt(&["update"]).context("the list of Debian's packages: this needs Debian 12 with its sources")?;
        Ok(debian)
    }

    /// Fetches packages and unpacks them into a folder.
    pub fn unpack(&self, packages: &[&str], root: &Path) -> Result<()> {
        let debs = self.state.join("debs");
        // All at once: apt-get asks for several at a time, and reads its lists once.
        let arguments: Vec<&str> = ["download"].into_iter().chain(packages.iter().copied()).collect();
        self.apt(&arguments).with_context(|| format!("of Debian's packages {}", packages.join(", ")))?;
        for entry in fs::read_dir(&debs)? {
            let package = entry?.path();
            command::run(Command::new("dpkg").arg("-x").arg(&package).arg(root))?;
            fs::remove_file(package)?;
        }
        Ok(())
    }

    /// Removes the list: unpacked, packages need it no more.
    pub fn forget(self) -> Result<()> {
        fs::remove_dir_all(self.state).context("the list of Debian's packages")
    }

    fn apt(&self, arguments: &[&str]) -> Result<()> {
        let mut apt = Command::new("apt-get");
        apt.args(["-q", "-q"]).args(arguments).env("APT_CONFIG", self.state.join("apt.conf"));
        apt.current_dir(self.state.join("debs")).stdout(Stdio::null());
        command::run(&mut apt)
    }
}
