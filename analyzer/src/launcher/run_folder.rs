//! The folder of a run: the socket, the simulator's libraries, what must not outlive the run.
//!
//! Owns its place, its name and its end. Only this user may list it and write in it, its name can
//! not be guessed, and it goes away with the run. Only root lets others through it: root's programs
//! may become other users, who load libraries from it. A launcher that is killed leaves it behind:
//! the next run of this user removes it. A lock tells whether its launcher lives.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::launcher::loader_paths;
use system::private_file;

/// How the names of the folders begin.
const PREFIX: &str = "streamsan-";
/// The file that is locked while the launcher lives.
const LOCK: &str = "lock";

/// A folder, removed when this is dropped.
pub(crate) struct RunFolder {
    /// Where it is.
    pub(crate) path: PathBuf,
    _lock: Option<File>,
}

impl RunFolder {
    /// The processes that may still connect to its socket.
    pub(crate) fn users(&self) -> impl Iterator<Item = i32> {
        users(&self.path)
    }

    /// Makes the folder. Its path leaves room for the socket's name, for a socket's path has 107
    /// bytes.
    pub(crate) fn create() -> io::Result<Self> {
        const LONGEST: usize = 80;
        let base = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_dir());
        let short = |base: &PathBuf| base.as_os_str().len() <= LONGEST;
        let bases = base.into_iter().chain([std::env::temp_dir(), PathBuf::from("/tmp")]).filter(short);
        let mut bases: Vec<PathBuf> = bases.collect();
        // SAFETY: geteuid has no preconditions.
        let is_root = unsafe { libc::geteuid() } == 0;
        // Stable: the order above decides between equals.
        bases.sort_by_key(|base| !loader_paths::is_plain(base) || is_root && !lets_others_through(base));
        let mut last = io::Error::from(io::ErrorKind::InvalidFilename);
        for base in bases {
            match private_file::folder_in(&base, PREFIX) {
                Ok(path) => {
                    remove_abandoned(&base);
                    // Whatever the umask leaves of what was asked for.
                    let mode = if is_root { 0o711 } else { 0o700 };
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
                    // Without a lock the folder stays if this process is killed.
                    let _lock = locked(&path).ok();
                    return Ok(Self { path, _lock });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Makes a folder in this one where all who know its name may leave links, if others get
    /// through this one.
    pub(crate) fn open_to_others(&self, name: &str) -> io::Result<()> {
        if std::fs::metadata(&self.path)?.mode() & 0o001 == 0 {
            return Ok(());
        }
        let below = self.path.join(name);
        std::fs::create_dir(&below)?;
        std::fs::set_permissions(&below, std::fs::Permissions::from_mode(0o1733))
    }
}

/// Whether every user gets to what is in a folder.
fn lets_others_through(folder: &Path) -> bool {
    folder.ancestors().all(|part| std::fs::metadata(part).is_ok_and(|meta| meta.mode() & 0o001 != 0))
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The locked file in a new folder. It gets its name once it is locked: a run that looks around
/// meanwhile must not take the folder for an abandoned one.
fn locked(folder: &Path) -> io::Result<File> {
    let unnamed = folder.join("lock.new");
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unnamed)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.try_lock()?;
    std::fs::rename(unnamed, folder.join(LOCK))?;
    Ok(file)
}

/// Removes folders of runs of this user whose launchers and programs live no more.
fn remove_abandoned(base: &Path) {
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_named = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).is_some_and(|rest| rest.len() == 6);
        if is_named && is_abandoned(&entry.path()) && !is_used(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a folder is this user's, and nobody holds its lock.
fn is_abandoned(folder: &Path) -> bool {
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    let is_ours = |meta: std::fs::Metadata| meta.is_dir() && meta.uid() == user && meta.mode() & 0o066 == 0;
    if !std::fs::symlink_metadata(folder).is_ok_and(is_ours) {
        return false;
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let lock = OpenOptions::new().read(true).custom_flags(flags).open(folder.join(LOCK));
    lock.is_ok_and(|lock| lock.try_lock().is_ok())
}

/// Whether a process has the folder's socket in its environment: a program that has outlived its
/// launcher may still load from the folder.
fn is_used(folder: &Path) -> bool {
    users(folder).next().is_some()
}

/// The processes that have the folder's socket in their environment, as far as this user may look.
fn users(folder: &Path) -> impl Iterator<Item = i32> {
    let socket = [b"STREAMSAN_SOCKET=", folder.as_os_str().as_encoded_bytes(), b"/"].concat();
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(move |entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(&socket)).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_whose_launcher_is_gone_are_removed() {
        let base = private_file::folder("streamsan-test-").expect("a folder");
        let make = |name: &str, lock: bool| {
            let path = private_file::folder_in(&base, name).expect("a folder");
            let lock = lock.then(|| locked(&path).expect("a lock"));
            std::fs::write(path.join("run"), b"").expect("writable");
            (path, lock)
        };
        let (living, held) = make(PREFIX, true);
        let (dead, lock) = make(PREFIX, true);
        let (older, _) = make(PREFIX, false);
        let (foreign, other) = make("another-", true);
        drop((lock, other));
        let target = base.join("target");
        std::fs::create_dir(&target).expect("a folder");
        drop(locked(&target).expect("a lock"));
        let link = base.join("streamsan-abcdef");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        remove_abandoned(&base);
        let left = [&living, &dead, &older, &foreign, &target, &link].map(|path| path.exists());
        assert_eq!(left, [true, false, true, true, true, true]);
        drop(held);
        // A program that has outlived its launcher.
        let mut program = std::process::Command::new("sleep");
        let mut program = program.arg("60").env("STREAMSAN_SOCKET", living.join("run")).spawn().expect("sleep");
        // `spawn` returns while the kernel still sets up the environment of the new program.
        let environ = format!("/proc/{}/environ", program.id());
        while std::fs::read(&environ).is_ok_and(|bytes| bytes.is_empty()) {
            std::thread::yield_now();
        }
        remove_abandoned(&base);
        assert!(living.exists());
        program.kill().and_then(|()| program.wait()).expect("ended");
        remove_abandoned(&base);
        assert!(!living.exists());
        std::fs::remove_dir_all(base).expect("ours");
    }
}
