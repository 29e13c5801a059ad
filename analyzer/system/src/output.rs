//! Writing a file that the user has named, or standard output in its place.
//!
//! Owns how a file is replaced as a whole, and which may be. Also knows the name of this machine.

use crate::file_name::FileName;
use crate::interrupt;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The name of this machine.
pub fn host() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the buffer has room for its length; the last byte stays 0.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// The name that stands for standard output, as it does elsewhere. A file of that name is `./-`.
pub const STANDARD: &str = "-";

/// What an output is called in messages.
pub fn called(name: &FileName) -> String {
    if name.is(STANDARD) { "standard output".to_owned() } else { name.to_string() }
}

/// Writes a file, or to standard output. A regular file is replaced as a whole: a process that is
/// killed meanwhile, and a full disk, leave the old one, and no part of the new one.
pub fn write(name: &FileName, bytes: &[u8]) -> std::io::Result<()> {
    if !name.is(STANDARD) {
        if std::fs::metadata(name).is_ok_and(|meta| meta.file_type().is_fifo()) {
            return write_pipe(name, bytes);
        }
        return match replaceable(name).map(|file| (replace(&file, bytes), file)) {
            Some((Replaced::Whole, _)) => Ok(()),
            Some((Replaced::NoRoom(error), file)) => {
                // An empty one was made to see whether it can be written.
                if std::fs::metadata(&file).is_ok_and(|meta| meta.len() == 0) {
                    let _ = std::fs::remove_file(&file);
                }
                Err(error)
            }
            Some((Replaced::Cannot, _)) | None => std::fs::write(name, bytes),
        };
    }
    // A pipe that is closed early has not taken the whole report, as with a named pipe.
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// Pause between two looks for the reader of a pipe, or at a pipe that is full.
const PAUSE: Duration = Duration::from_millis(10);
/// How long a reader that takes nothing is waited for after a signal.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes into a named pipe, whose reader may come late and read slowly. A signal ends the wait.
fn write_pipe(name: &Path, mut bytes: &[u8]) -> std::io::Result<()> {
    let interrupted =
        |signal| std::io::Error::other(format!("interrupted by signal {signal} while nobody read the pipe"));
    let mut pipe = loop {
        match File::options().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(name) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                if let Some(signal) = interrupt::signal() {
                    return Err(interrupted(signal));
                }
                std::thread::sleep(PAUSE);
            }
            opened => break opened?,
        }
    };
    let mut progress = Instant::now();
    while !bytes.is_empty() {
        match pipe.write(bytes) {
            Ok(written) => {
                bytes = &bytes[written..];
                progress = Instant::now();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if let Some(signal) = interrupt::signal()
                    && progress.elapsed() > PATIENCE
                {
                    return Err(interrupted(signal));
                }
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The file behind a name that another file may take the place of: a regular one of this user with
/// this name only, which is not reached through a descriptor and is no stream of this process.
pub fn replaceable(name: &Path) -> Option<PathBuf> {
    // `/dev/stdout` leads through `/proc` to a file that somebody else writes on.
    let mut place = std::path::absolute(name).ok()?;
    for _ in 0..LINKS {
        if is_special(&place) {
            return None;
        }
        let Ok(next) = std::fs::read_link(&place) else { break };
        place = place.parent()?.join(next);
    }
    let file = place.canonicalize().ok()?;
    let meta = std::fs::symlink_metadata(&file).ok()?;
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    let is_plain = meta.is_file() && meta.nlink() == 1 && meta.uid() == user;
    let is_stream = (0..3).any(|fd| {
        // SAFETY: all-zero is a valid stat to be filled; a closed descriptor is an error.
        let (filled, stat) = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            (libc::fstat(fd, &raw mut stat) == 0, stat)
        };
        filled && (stat.st_dev, stat.st_ino) == (meta.dev(), meta.ino())
    });
    (is_plain && !is_stream && !is_special(&file)).then_some(file)
}

/// Whether a path leads to devices or descriptors.
fn is_special(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

/// Links that are followed, as the kernel does.
const LINKS: usize = 40;

/// What became of a file whose place a new one was to take.
enum Replaced {
    /// The new one has it.
    Whole,
    /// The disk has no room for the new one. The old one is as it was.
    NoRoom(std::io::Error),
    /// That can not be done here. The old one is as it was.
    Cannot,
}

/// Puts a new file into the place of another one, with its mode.
fn replace(file: &Path, bytes: &[u8]) -> Replaced {
    let Some(mut made) = Replacement::begin(file) else { return Replaced::Cannot };
    match made.file.write_all(bytes).and_then(|()| made.finish()) {
        Ok(()) => Replaced::Whole,
        Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            Replaced::NoRoom(error)
        }
        Err(_) => Replaced::Cannot,
    }
}

/// A file that takes the place of another one when it is complete. Without that it is removed, and
/// the old one stays.
pub struct Replacement {
    file: File,
    temporary: PathBuf,
    place: PathBuf,
}

impl Replacement {
    /// Begins a file beside this one ([`replaceable`]), with its mode. `None`: that can not be
    /// done.
    pub fn begin(place: &Path) -> Option<Self> {
        let mode = std::fs::metadata(place).ok()?.mode() & 0o7777;
        let mut template = place.parent()?.join(".streamsan-XXXXXX").into_os_string().into_vec();
        template.push(0);
        // SAFETY: template is a writable C string that ends in six X; the descriptor is nobody
        // else's.
        let file = unsafe {
            let fd = libc::mkostemp(template.as_mut_ptr().cast(), libc::O_CLOEXEC);
            (fd >= 0).then(|| File::from_raw_fd(fd))?
        };
        template.pop();
        let made = Self { file, temporary: OsString::from_vec(template).into(), place: place.to_path_buf() };
        made.file.set_permissions(std::fs::Permissions::from_mode(mode)).ok()?;
        Some(made)
    }

    /// Takes the place.
    pub fn finish(self) -> std::io::Result<()> {
        std::fs::rename(&self.temporary, &self.place)
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // It has another name if it has taken the place.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn only_a_plain_file_of_ones_own_is_replaced() {
        let folder = std::env::temp_dir().join(format!("streamsan-output-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let at = |name: &[u8]| FileName::from(folder.join(OsStr::from_bytes(name)));
        let pipe = std::ffi::CString::new(at(b"pipe").bytes()).expect("a path");
        // SAFETY: a C string.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        for name in [&b"plain"[..], b"by\xfftes", b"twice"] {
            std::fs::write(at(name), "old").expect("writable");
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(0o640)).expect("ours");
        }
        std::fs::hard_link(at(b"twice"), at(b"again")).expect("a link");
        std::os::unix::fs::symlink("plain", at(b"link")).expect("a link");
        std::os::unix::fs::symlink("/dev/stdout", at(b"out")).expect("a link");
        let open = std::fs::File::create(at(b"open")).expect("a file");
        let fd = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        let is = |name: &[u8]| replaceable(&at(name)).is_some();
        assert!(is(b"plain") && is(b"by\xfftes") && is(b"link"));
        assert!(!is(b"pipe") && !is(b"again") && !is(b"out") && !is(b"none") && !is(b""));
        assert!(["/dev/null", "/dev/stdout", &fd].iter().all(|name| replaceable(Path::new(name)).is_none()));
        let inode = |name: &[u8]| std::fs::metadata(at(name)).expect("there").ino();
        for (name, replaced) in [(&b"plain"[..], true), (b"by\xfftes", true), (b"link", true), (b"again", false)] {
            let before = inode(name);
            write(&at(name), b"new").expect("written");
            assert_eq!(std::fs::read(at(name)).expect("there"), b"new");
            assert_eq!(inode(name) != before, replaced, "{}", at(name));
        }
        assert_eq!(std::fs::metadata(at(b"plain")).expect("there").mode() & 0o777, 0o640);
        assert!(std::fs::symlink_metadata(at(b"link")).expect("there").is_symlink(), "what it leads to was replaced");
        assert_eq!(std::fs::read(at(b"twice")).expect("there"), b"new", "under both names");
        write(&FileName::from(&fd), b"descriptor").expect("written");
        assert_eq!(std::fs::read(at(b"open")).expect("there"), b"descriptor");
        let names = std::fs::read_dir(&folder).expect("there").flatten().map(|entry| entry.file_name());
        assert!(names.into_iter().all(|name| !name.as_bytes().starts_with(b".")), "nothing temporary is left");
        std::fs::remove_dir_all(folder).expect("ours");
    }
}
