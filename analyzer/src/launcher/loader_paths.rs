//! Paths in `LD_PRELOAD` and `LD_LIBRARY_PATH`, which the dynamic linker cuts into pieces.
//!
//! Owns which paths it takes as they are, and the links by which it reaches the others: an
//! installation may lie in a folder whose name has a space or a colon. `LD_PRELOAD` is cut at
//! spaces and colons, `LD_LIBRARY_PATH` at colons and semicolons, and `$` may begin a token
//! (ld.so(8)); neither variable knows quotes. The links lie in the run's folder.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use system::file_name::shown;

/// Whether the dynamic linker takes a path as it is in both variables. (musl's cuts at white space
/// of every kind.)
pub(crate) fn is_plain(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b" :;$\t\n".contains(byte))
}

/// Why a path cannot be given to the dynamic linker.
#[derive(Debug, thiserror::Error)]
#[error(
    "LD_PRELOAD and LD_LIBRARY_PATH cannot name {}: the dynamic linker cuts them at spaces, colons and semicolons. \
     No link could be made{}; use a TMPDIR without these characters, or move StreamSan to a folder without them",
    shown(.path), .error.as_ref().map_or_else(String::new, |error| format!(" ({error})"))
)]
pub(crate) struct Unnameable {
    path: PathBuf,
    error: Option<io::Error>,
}

/// Names for the paths of one run.
pub(crate) struct LoaderPaths<'a> {
    /// Where links are made.
    folder: &'a Path,
    /// The folders that have a link.
    linked: Vec<PathBuf>,
}

impl<'a> LoaderPaths<'a> {
    /// Links are made in `folder`.
    pub(crate) fn new(folder: &'a Path) -> Self {
        Self { folder, linked: Vec::new() }
    }

    /// The folder under a name that the dynamic linker takes.
    pub(crate) fn folder(&mut self, folder: &Path) -> Result<PathBuf, Unnameable> {
        if is_plain(folder) {
            return Ok(folder.to_path_buf());
        }
        let unnameable = |error| Unnameable { path: folder.to_path_buf(), error };
        if !is_plain(self.folder) {
            return Err(unnameable(None));
        }
        let known = self.linked.iter().position(|linked| linked == folder);
        let link = self.folder.join(format!("folder-{}", known.unwrap_or(self.linked.len())));
        if known.is_none() {
            std::os::unix::fs::symlink(folder, &link).map_err(|error| unnameable(Some(error)))?;
            self.linked.push(folder.to_path_buf());
        }
        Ok(link)
    }

    /// The file under such a name.
    pub(crate) fn file(&mut self, file: &Path) -> Result<PathBuf, Unnameable> {
        match (file.parent(), file.file_name()) {
            (Some(folder), Some(name)) if is_plain(Path::new(name)) => Ok(self.folder(folder)?.join(name)),
            _ => Err(Unnameable { path: file.to_path_buf(), error: None }),
        }
    }
}

/// Joins paths for one of the variables.
pub(crate) fn joined<P: AsRef<OsStr>>(paths: &[P]) -> OsString {
    let parts: Vec<&OsStr> = paths.iter().map(AsRef::as_ref).collect();
    parts.join(OsStr::new(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_folders_get_one_link_each_and_others_none() {
        let run = system::private_file::folder("streamsan-test-").expect("a folder");
        let mut paths = LoaderPaths::new(&run);
        let plain = Path::new("/opt/streamsan-1.0_x/lib~é");
        assert_eq!(paths.folder(plain).expect("as it is"), plain);
        assert_eq!(paths.file(&plain.join("a.so")).expect("as it is"), plain.join("a.so"));
        for (index, odd) in ["sp ace", "co:lon", "semi;colon", "$ORIGIN", "tab\t", "line\nend"].iter().enumerate() {
            let folder = run.join(odd);
            std::fs::create_dir(&folder).expect("a folder");
            std::fs::write(folder.join("a.so"), odd).expect("a file");
            for _ in 0..2 {
                let file = paths.file(&folder.join("a.so")).expect("a link");
                assert_eq!(file, run.join(format!("folder-{index}/a.so")));
                assert_eq!(std::fs::read_to_string(file).expect("there"), *odd);
                assert!(is_plain(&paths.folder(&folder).expect("a link")));
            }
            // No link helps where its own path is odd.
            let error = LoaderPaths::new(&folder).folder(&folder).expect_err("refused");
            assert!(error.to_string().contains("or move StreamSan"), "{error}");
            assert!(LoaderPaths::new(&folder).folder(plain).is_ok());
        }
        assert!(LoaderPaths::new(&run).folder(&run.join("a b")).is_err(), "the name of the link is taken");
        std::fs::remove_dir_all(run).expect("ours");
    }
}
