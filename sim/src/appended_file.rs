//! A file that lines are appended to for as long as the program runs. The program may close its
//! descriptor meanwhile, and open a file of its own under the number: then it is opened again.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use signal_free::descriptors::HeldFile;

/// One such file.
pub(crate) struct AppendedFile {
    path: PathBuf,
    file: HeldFile,
}

fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

impl AppendedFile {
    /// Opens a file, or makes it.
    pub(crate) fn open(path: PathBuf) -> io::Result<AppendedFile> {
        let file = HeldFile::new(open(&path)?).ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        Ok(AppendedFile { path, file })
    }

    /// Appends with one write: lines of several processes stay whole. A failure is said: who reads
    /// the file would take it for all there is.
    pub(crate) fn append(&self, line: &[u8]) {
        let append = || match self.file.number() {
            Some(_) => self.file.with(|mut file| file.write_all(line)),
            None => open(&self.path).and_then(|mut file| file.write_all(line)),
        };
        if let Err(error) = signal_free::held(append) {
            crate::status::complain(&format!("{}: {error}", self.path.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_to_the_file_and_not_into_the_programs() {
        let path = |name: &str| std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let (ours, theirs) = (path("appended"), path("the-programs"));
        let file = AppendedFile::open(ours.clone()).expect("a file");
        file.append(b"one\n");
        let number = file.file.number().expect("open");
        let other = File::create(&theirs).expect("a file");
        // SAFETY: as a program that knows nothing of us: it takes the number, and later closes it.
        unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&other), number) };
        file.append(b"two\n");
        // SAFETY: as above.
        unsafe { libc::close(number) };
        file.append(b"three\n");
        assert_eq!(std::fs::read(&ours).expect("readable"), b"one\ntwo\nthree\n");
        assert_eq!(std::fs::read(&theirs).expect("readable"), b"");
        for path in [ours, theirs] {
            std::fs::remove_file(path).expect("remove");
        }
    }
}
