//! Descriptors in a process that belongs to somebody else: the program may close any number, as
//! daemons do, and open a file of its own under it.
//!
//! Owns which file a number stands for ([`FileIdentity`]), numbers that are used only while they
//! stand for our file ([`HeldFile`]), and where the system shows the process's own ([`own_proc`]).
//! Between the look and the use another thread may still
//! exchange the file: no system call does both.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

/// A file, whatever number it is open under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// The file system.
    pub device: u64,
    /// The file in it.
    pub inode: u64,
    /// The device that a special file stands for.
    pub special: u64,
}

impl FileIdentity {
    /// The file that a number stands for now; none if it is closed. `errno` stays.
    pub fn of(number: RawFd) -> Option<FileIdentity> {
        // SAFETY: all-zero is a valid stat to be overwritten; errno is this thread's.
        unsafe {
            let errno = *libc::__errno_location();
            let mut stat: libc::stat = std::mem::zeroed();
            let answer = libc::fstat(number, &mut stat);
            *libc::__errno_location() = errno;
            (answer == 0).then_some(FileIdentity { device: stat.st_dev, inode: stat.st_ino, special: stat.st_rdev })
        }
    }
}

/// A file of the system about this process, such as `maps`. It is asked for by this thread: what
/// `/proc/self` shows is empty once the main thread has ended (`pthread_exit`). Kernels before 3.17
/// know nothing else.
pub fn own_proc(name: &str) -> PathBuf {
    let by_thread = Path::new("/proc/thread-self");
    let folder = if by_thread.symlink_metadata().is_ok() { by_thread } else { Path::new("/proc/self") };
    folder.join(name)
}

/// An open file whose number may become the program's.
#[derive(Debug)]
pub struct HeldFile {
    number: RawFd,
    identity: FileIdentity,
}

impl HeldFile {
    /// Takes a file that was just opened. None: it is closed already.
    pub fn new(file: impl Into<OwnedFd>) -> Option<HeldFile> {
        let file = file.into();
        let identity = FileIdentity::of(file.as_raw_fd())?;
        Some(HeldFile { number: file.into_raw_fd(), identity })
    }

    /// The file's number, while it is still this file.
    pub fn number(&self) -> Option<RawFd> {
        (FileIdentity::of(self.number) == Some(self.identity)).then_some(self.number)
    }

    /// Which file it is.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Uses the file, while its number is still ours; an error (EBADF) otherwise.
    pub fn with<T>(&self, call: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        let number = self.number().ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        // SAFETY: the number stands for our file, and is not closed by this.
        call(&ManuallyDrop::new(unsafe { File::from_raw_fd(number) }))
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        if let Some(number) = self.number() {
            // SAFETY: our own descriptor, which nothing else closes.
            unsafe { libc::close(number) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    fn file(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let mut file = File::options().create(true).truncate(true).write(true).read(true).open(&path).expect("a file");
        std::fs::remove_file(path).expect("remove");
        file.write_all(text.as_bytes()).expect("write");
        file
    }

    fn content(mut file: &File) -> String {
        let mut text = String::new();
        file.rewind().expect("seek");
        file.read_to_string(&mut text).expect("read");
        text
    }

    #[test]
    fn a_number_is_used_while_it_stands_for_the_file() {
        let (ours, same) = (file("held-a", ""), file("held-b", ""));
        let copy = ours.try_clone().expect("dup");
        let held = HeldFile::new(ours).expect("open");
        held.with(|mut file| file.write_all(b"one")).expect("ours");
        assert_eq!(held.identity(), FileIdentity::of(copy.as_raw_fd()).expect("open"));
        assert_ne!(held.identity(), FileIdentity::of(same.as_raw_fd()).expect("open"));
        assert_eq!(content(&copy), "one");
    }

    #[test]
    fn a_number_that_became_the_programs_is_neither_written_nor_closed() {
        let (theirs, ours) = (file("held-c", "theirs"), file("held-d", ""));
        let number = ours.as_raw_fd();
        let held = HeldFile::new(ours).expect("open");
        // SAFETY: as a program that knows nothing of us: it takes the number.
        unsafe { assert_eq!(libc::dup2(theirs.as_raw_fd(), number), number) };
        let write = held.with(|mut file| file.write_all(b"ours"));
        assert_eq!(write.map_err(|e| e.raw_os_error()), Err(Some(libc::EBADF)));
        drop(held);
        assert_eq!(FileIdentity::of(number), FileIdentity::of(theirs.as_raw_fd()), "it is still open");
        assert_eq!(content(&theirs), "theirs");
        // SAFETY: the duplicate made above.
        unsafe { libc::close(number) };
    }

    #[test]
    fn a_closed_number_is_no_file() {
        let ours = file("held-e", "");
        let number = ours.as_raw_fd();
        let held = HeldFile::new(ours).expect("open");
        // SAFETY: as a program that knows nothing of us. Another test may have the number next.
        unsafe { libc::close(number) };
        assert!(held.number().is_none());
        assert!(held.with(|mut file| file.write_all(b"ours")).is_err());
    }
}
