//! Files with code in the cache folder: which are trusted, how they are read, written and removed.
//!
//! What such a file holds is executed, with all that the program may do. So the rule is: **only
//! bytes that this user alone can have written are executed.**
//!
//! - The folder and the file are this user's (the effective one), and nobody else may write them:
//!   neither group nor others, as file mode or as access list, which shows in the mode. The file is
//!   a plain one with one name. Both are asked through the open descriptor, and the file is opened
//!   in the open folder and never through a link: what was looked at is what is read.
//! - A process that runs with other rights than those of who started it (set-user-id, capabilities)
//!   neither reads nor writes. So its environment cannot choose the folder.
//! - A file system that is mounted `noexec` is not used: whoever forbade that meant code.
//! - All bytes are read into memory of our own first and checked there: kind, name, length, and a
//!   hash of the rest. Never is the file itself mapped. So nobody can change what was checked.
//! - The hash is against damage (a full disk, a crash of the system), not against malice: whoever
//!   may write this user's files may run programs as this user.
//! - Code that is new is written to a file of its own (mode 0600) and renamed. Other processes see
//!   all of it or nothing.
//!
//! What cannot be written is not tried again in this process. Does not know what files hold.

use std::fs::File;
use std::io::{Error, Read, Result, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use super::key::hash;

/// The first bytes of a file. Behind them are its name, a hash of the rest, and the rest.
const KIND: &[u8; 8] = b"SSNATIV1";

/// Larger files are none of ours.
const MOST: u64 = 64 << 20;

/// Files that were used since are not marked as used again.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// A folder in which code is kept. Thread-safe, and safe to share with other processes.
pub(super) struct Folder {
    path: PathBuf,
    /// Something could not be written.
    closed: AtomicBool,
    written: AtomicU32,
    /// Who looks after the size of the folder.
    cache: kernels::Cache,
}

/// Whether this process has the rights of who started it, and no others.
fn is_plain_process() -> bool {
    // SAFETY: these ask and change nothing.
    let (users, groups, secure) = unsafe {
        (libc::getuid() == libc::geteuid(), libc::getgid() == libc::getegid(), libc::getauxval(libc::AT_SECURE))
    };
    users && groups && secure == 0
}

/// Whether this user alone may write what was opened. `links`: names that it may have.
fn is_ours(about: &std::fs::Metadata, links: u64) -> bool {
    // SAFETY: this asks and changes nothing.
    let user = unsafe { libc::geteuid() };
    about.uid() == user && about.mode() & 0o022 == 0 && about.nlink() <= links
}

fn opened(at: libc::c_int, name: &[u8], flags: libc::c_int, mode: libc::mode_t) -> Result<File> {
    let name = std::ffi::CString::new(name)?;
    // SAFETY: a path that ends with a zero; the descriptor is nobody else's.
    let fd = unsafe { libc::openat(at, name.as_ptr(), flags | libc::O_CLOEXEC, libc::c_uint::from(mode)) };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: it was just opened.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

fn name_of(name: u128) -> String {
    format!("{name:032x}.native")
}

impl Folder {
    /// None where no code may be kept.
    pub(super) fn new(path: PathBuf) -> Option<Folder> {
        let path = std::path::absolute(path).ok().filter(|_| is_plain_process())?;
        let cache = kernels::Cache::new(&path);
        Some(Folder { path, closed: AtomicBool::new(false), written: AtomicU32::new(0), cache })
    }

    /// The folder, opened, if it is trusted.
    fn open(&self) -> Result<File> {
        let folder = opened(libc::AT_FDCWD, self.path.as_os_str().as_bytes(), libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
        // SAFETY: all of the structure may be zero; the call fills it in.
        let mut about: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open, and the structure is there.
        let known = unsafe { libc::fstatvfs(folder.as_raw_fd(), &raw mut about) } == 0;
        if !known || about.f_flag & libc::ST_NOEXEC != 0 || !is_ours(&folder.metadata()?, u64::MAX) {
            return Err(Error::from_raw_os_error(libc::EPERM));
        }
        Ok(folder)
    }

    /// What the file of that name holds, if it is there, trusted, and whole.
    pub(super) fn read(&self, name: u128) -> Option<Vec<u8>> {
        let folder = self.open().ok()?;
        // A pipe of that name must not keep us waiting.
        let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = opened(folder.as_raw_fd(), name_of(name).as_bytes(), flags, 0).ok()?;
        let about = file.metadata().ok()?;
        if !about.is_file() || about.len() > MOST || !is_ours(&about, 1) {
            return None;
        }
        let mut bytes = Vec::with_capacity(about.len() as usize + 1);
        (&file).take(MOST).read_to_end(&mut bytes).ok()?;
        let rest = bytes.strip_prefix(KIND)?.strip_prefix(&name.to_le_bytes())?;
        let (sum, content) = rest.split_first_chunk()?;
        if hash(content) != u128::from_le_bytes(*sum) {
            return None;
        }
        let head = bytes.len() - content.len();
        if about.modified().ok().and_then(|time| time.elapsed().ok()).is_some_and(|age| age > FRESH) {
            let _ = file.set_modified(SystemTime::now());
        }
        bytes.drain(..head);
        Some(bytes)
    }

    /// Puts a file in place of the one of that name.
    pub(super) fn write(&self, name: u128, content: &[u8]) {
        if self.closed.load(Ordering::Relaxed) || content.len() as u64 > MOST / 2 {
            return;
        }
        match self.replace(name, content) {
            Ok(()) => self.cache.grown(content.len() as u64),
            Err(_) => self.closed.store(true, Ordering::Relaxed),
        }
    }

    fn replace(&self, name: u128, content: &[u8]) -> Result<()> {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        }
        let folder = self.open()?;
        let temporary = format!("{name:032x}.{}-n{number}.tmp", std::process::id());
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let mut file = opened(folder.as_raw_fd(), temporary.as_bytes(), flags, 0o600)?;
        let (from, to) = (std::ffi::CString::new(temporary)?, std::ffi::CString::new(name_of(name))?);
        let head = [KIND, &name.to_le_bytes()[..], &hash(content).to_le_bytes()].concat();
        let written = signal_free::held(|| file.write_all(&head).and_then(|()| file.write_all(content)));
        let done = written.and_then(|()| {
            // SAFETY: two names in a folder that is open.
            let renamed = unsafe { libc::renameat(folder.as_raw_fd(), from.as_ptr(), folder.as_raw_fd(), to.as_ptr()) };
            if renamed == 0 { Ok(()) } else { Err(Error::last_os_error()) }
        });
        if done.is_err() {
            // SAFETY: a name in a folder that is open.
            unsafe { libc::unlinkat(folder.as_raw_fd(), from.as_ptr(), 0) };
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const NAME: u128 = 0xfeed;

    fn folder(name: &str) -> (PathBuf, Folder) {
        let path = std::env::temp_dir().join(format!("streamsan-kept-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let folder = Folder::new(path.clone()).unwrap();
        (path, folder)
    }

    fn with_file(name: &str) -> (PathBuf, Folder, PathBuf) {
        let (path, folder) = folder(name);
        folder.write(NAME, b"content");
        assert_eq!(folder.read(NAME).as_deref(), Some(&b"content"[..]));
        let file = path.join(name_of(NAME));
        (path, folder, file)
    }

    fn mode(path: &std::path::Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn keeps_content_for_its_owner() {
        let (path, folder, file) = with_file("owner");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        folder.write(NAME, b"other content");
        assert_eq!(folder.read(NAME).as_deref(), Some(&b"other content"[..]));
        assert_eq!(folder.read(NAME + 1), None);
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1, "nothing else is left");
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn what_others_may_write_is_not_read() {
        let (path, folder, file) = with_file("modes");
        for bad in [0o620, 0o602, 0o666] {
            mode(&file, bad);
            assert_eq!(folder.read(NAME), None, "{bad:o}");
        }
        mode(&file, 0o644);
        assert!(folder.read(NAME).is_some());
        for bad in [0o770, 0o707, 0o1777] {
            mode(&path, bad);
            assert_eq!(folder.read(NAME), None, "{bad:o}");
        }
        mode(&path, 0o755);
        assert!(folder.read(NAME).is_some());
        // Nor is anything written there.
        mode(&path, 0o777);
        folder.write(NAME, b"new");
        mode(&path, 0o700);
        assert_eq!(folder.read(NAME).as_deref(), Some(&b"content"[..]));
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn what_is_somebody_elses_is_not_read() {
        let (path, folder, file) = with_file("users");
        // SAFETY: this asks and changes nothing.
        if unsafe { libc::geteuid() } == 0 {
            std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
            assert_eq!(folder.read(NAME), None);
            std::os::unix::fs::chown(&file, Some(0), None).unwrap();
            std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
            assert_eq!(folder.read(NAME), None);
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
        assert!(folder.read(NAME).is_some());
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn links_and_other_files_are_not_read() {
        let (path, folder, file) = with_file("links");
        let other = path.join("other");
        std::fs::hard_link(&file, &other).unwrap();
        assert_eq!(folder.read(NAME), None, "two names");
        std::fs::remove_file(&file).unwrap();
        symlink(&other, &file).unwrap();
        assert_eq!(folder.read(NAME), None, "a link");
        std::fs::remove_file(&file).unwrap();
        let pipe = std::ffi::CString::new(file.as_os_str().as_bytes()).unwrap();
        // SAFETY: a path that ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        assert_eq!(folder.read(NAME), None, "a pipe");
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn damage_is_noticed() {
        let (path, folder, file) = with_file("damage");
        let whole = std::fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let mut bad = whole.clone();
            bad[at] ^= 4;
            std::fs::write(&file, bad).unwrap();
            assert_eq!(folder.read(NAME), None, "byte {at}");
            std::fs::write(&file, &whole[..at]).unwrap();
            assert_eq!(folder.read(NAME), None, "{at} bytes");
        }
        std::fs::write(&file, [&whole[..], &[0]].concat()).unwrap();
        assert_eq!(folder.read(NAME), None, "a byte more");
        // Another file's content under this name.
        folder.write(NAME + 1, b"content");
        std::fs::copy(path.join(name_of(NAME + 1)), &file).unwrap();
        assert_eq!(folder.read(NAME), None, "foreign");
        folder.write(NAME, b"content");
        assert!(folder.read(NAME).is_some(), "it is written anew");
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn nothing_is_tried_twice_where_nothing_can_be_written() {
        let folder = Folder::new("/dev/null/below".into()).unwrap();
        folder.write(NAME, b"content");
        assert!(folder.closed.load(Ordering::Relaxed));
        assert_eq!(folder.read(NAME), None);
    }
}
