//! Private files and folders: traces hold code, stacks, paths and arguments, which are for the user
//! alone.
//!
//! Owns how such a file is opened: readable and writable for its user alone, and in a folder that
//! others can write to (`/tmp`) never through another user's link or into another user's file.
//! Reports are created like the files of any program: others are meant to read them.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Creates or empties a file with mode 0600, and locks it: a second recording would tear the first
/// one's file, and is refused before it empties it.
pub fn create(path: &Path) -> io::Result<File> {
    const OTHERS_WRITE: u32 = 0o022;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_shared = std::fs::metadata(folder).is_ok_and(|meta| meta.mode() & OTHERS_WRITE != 0);
    let flags = if is_shared { libc::O_NOFOLLOW } else { 0 } | libc::O_NOCTTY;
    // A pipe of another user, on which nobody reads, must not hold us up.
    let options = |more| OpenOptions::new().write(true).create(true).mode(0o600).custom_flags(flags | more).open(path);
    let is_anothers = std::fs::symlink_metadata(path).is_ok_and(|meta| is_foreign(is_shared, &meta));
    let file = options(if is_shared { libc::O_NONBLOCK } else { 0 });
    let file = match file {
        // A pipe of one's own is waited for, as by any program.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) && !is_anothers => options(0)?,
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Err(somebody_elses()),
        file => file?,
    };
    let meta = file.metadata()?;
    if is_foreign(is_shared, &meta) {
        return Err(somebody_elses());
    }
    blocking(&file)?;
    // A pipe or a device is the user's choice.
    if meta.is_file() {
        // Where files cannot be locked at all, nobody is kept out.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another recording is writing it"));
        }
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.set_len(0)?;
    }
    Ok(file)
}

/// Whether what lies in a folder that others can write to is somebody else's: a file or a pipe. The
/// system's devices are everybody's.
fn is_foreign(is_shared: bool, meta: &std::fs::Metadata) -> bool {
    let kind = meta.file_type();
    // SAFETY: geteuid has no preconditions.
    is_shared && meta.uid() != unsafe { libc::geteuid() } && !kind.is_char_device() && !kind.is_block_device()
}

fn somebody_elses() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to somebody else")
}

/// Takes O_NONBLOCK off: who writes a trace into a pipe waits for its reader.
fn blocking(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open; the calls take numbers only.
    let set = unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        flags >= 0 && libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) == 0
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Creates a folder of a new name for this user alone, where temporary files belong.
pub fn folder(prefix: &str) -> io::Result<PathBuf> {
    folder_in(&std::env::temp_dir(), prefix)
}

/// Creates a folder of a new name for this user alone, in `base`.
pub fn folder_in(base: &Path, prefix: &str) -> io::Result<PathBuf> {
    let mut template = base.join(format!("{prefix}XXXXXX")).into_os_string().into_vec();
    template.push(0);
    // SAFETY: template is a writable C string that ends in six X; mkdtemp makes the folder with
    // mode 0700.
    if unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    template.pop();
    Ok(OsString::from_vec(template).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(mode: u32) -> std::path::PathBuf {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("streamsan-private-{number}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::set_permissions(&folder, Permissions::from_mode(mode)).expect("ours");
        folder
    }

    #[test]
    fn only_its_user_may_read_it_even_if_others_could_before() {
        let folder = scratch(0o700);
        let path = folder.join("trace");
        std::fs::write(&path, b"older and longer").expect("writable");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("ours");
        create(&path).expect("created");
        let meta = std::fs::metadata(&path).expect("there");
        assert_eq!((meta.mode() & 0o777, meta.len()), (0o600, 0));
        create(&folder.join("new")).expect("created");
        assert_eq!(std::fs::metadata(folder.join("new")).expect("there").mode() & 0o777, 0o600);
        // A link in the user's own folder is the user's own.
        std::os::unix::fs::symlink(&path, folder.join("link")).expect("a link");
        assert!(create(&folder.join("link")).is_ok());
        std::fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn a_file_that_is_being_written_is_refused_and_left_alone() {
        let folder = scratch(0o700);
        let path = folder.join("trace");
        let mut first = create(&path).expect("created");
        io::Write::write_all(&mut first, b"mine").expect("written");
        for _ in 0..2 {
            assert_eq!(create(&path).expect_err("refused").kind(), io::ErrorKind::ResourceBusy);
            assert_eq!(std::fs::read(&path).expect("there"), b"mine");
        }
        drop(first);
        create(&path).expect("free again");
        std::fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn links_in_shared_folders_are_not_followed() {
        let folder = scratch(0o1777);
        let victim = folder.join("victim");
        std::fs::write(&victim, b"precious").expect("writable");
        std::os::unix::fs::symlink(&victim, folder.join("trace")).expect("a link");
        let error = create(&folder.join("trace")).expect_err("refused");
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
        assert_eq!(std::fs::read(&victim).expect("there"), b"precious");
        assert!(create(Path::new("/dev/null")).is_ok());
        std::fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn what_is_somebody_elses_is_refused_at_once() {
        // SAFETY: geteuid has no preconditions.
        if unsafe { libc::geteuid() } != 0 {
            // Only root can make what belongs to somebody else.
            return;
        }
        let folder = scratch(0o1777);
        let path =
            |name: &str| std::ffi::CString::new(folder.join(name).as_os_str().as_encoded_bytes()).expect("a path");
        std::fs::write(folder.join("file"), b"theirs").expect("writable");
        // SAFETY: C strings; the last three are made in a folder of this test.
        unsafe {
            assert_eq!(libc::mkfifo(path("pipe").as_ptr(), 0o666), 0);
            assert_eq!(libc::mkfifo(path("read").as_ptr(), 0o666), 0);
            ["pipe", "read", "file"].iter().for_each(|name| assert_eq!(libc::chown(path(name).as_ptr(), 1, 1), 0));
        }
        // Somebody reads one of the pipes.
        let reader = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(folder.join("read"));
        for name in ["pipe", "read", "file"] {
            let error = create(&folder.join(name)).expect_err(name);
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{name}");
        }
        drop(reader);
        assert_eq!(std::fs::read(folder.join("file")).expect("there"), b"theirs");
        std::fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn a_pipe_of_ones_own_is_written_to_and_waits_for_its_reader() {
        for mode in [0o700, 0o1777] {
            let folder = scratch(mode).join("");
            let pipe = folder.join("pipe");
            let path = std::ffi::CString::new(pipe.as_os_str().as_encoded_bytes()).expect("a path");
            // SAFETY: a C string.
            assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
            let reader = std::thread::spawn(move || std::fs::read(pipe).expect("readable"));
            let mut writer = create(&folder.join("pipe")).expect("created");
            // More than a pipe holds: writing must wait, not fail.
            io::Write::write_all(&mut writer, &vec![b'x'; 1 << 20]).expect("written");
            drop(writer);
            assert_eq!(reader.join().expect("read").len(), 1 << 20);
            std::fs::remove_dir_all(folder).expect("ours");
        }
    }
}
