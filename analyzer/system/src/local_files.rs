//! Files of this machine that a recording names: object files, code images, sources.
//!
//! A trace may be anybody's, and so may the paths in it. Owns which of them are read: all for a
//! program that runs here and now; for a trace those below `--symbol-path`, those whose build id is
//! the recorded one, and those beside the recorded program, if the program here is that one by its
//! build id. Regular files only, opened without waiting: a pipe or a device has no answer for us.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use object::Object;

/// Whether what names files may be anybody's.
static FOREIGN: AtomicBool = AtomicBool::new(false);

/// From now on files are named by traces. Call it before any is read.
pub fn named_by_traces() {
    FOREIGN.store(true, Ordering::Relaxed);
}

/// Whether files are named by traces, which may be from another machine and another time.
pub fn are_named_by_traces() -> bool {
    FOREIGN.load(Ordering::Relaxed)
}

/// The folders of `--symbol-path`: they are searched before the one of the system.
static SEARCH_PATH: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Sets the folders to search for debug information. Call it once, before anything is resolved.
pub fn set_search_path(folders: Vec<PathBuf>) {
    let _ = SEARCH_PATH.set(folders);
}

/// The folders passed to [`set_search_path`].
pub fn search_path() -> &'static [PathBuf] {
    SEARCH_PATH.get().map_or(&[], Vec::as_slice)
}

/// Opens a regular file for reading. Anything else is an error, and nothing is waited for.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

/// Reads a regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut open(path)?, &mut bytes)?;
    Ok(bytes)
}

/// Bytes that are read of something that is no regular file: a device may have no end.
const MOST_OF_A_STREAM: u64 = 64 << 20;

/// Reads a file that the user names: a regular one, or a pipe of at most 64 MiB to its end.
pub fn read_named(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        io::Read::read_to_end(&mut file, &mut bytes)?;
        return Ok(bytes);
    }
    io::Read::read_to_end(&mut io::Read::take(file, MOST_OF_A_STREAM + 1), &mut bytes)?;
    match bytes.len() as u64 > MOST_OF_A_STREAM {
        true => Err(io::Error::other("it is no regular file, and did not end within 64 MiB")),
        false => Ok(bytes),
    }
}

/// Reads a text that the user names, as [`read_named`] does.
pub fn read_named_text(path: impl AsRef<Path>) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
    String::from_utf8(read_named(path)?).map_err(not_text)
}

/// What the recording of one process says of its files. Shared by all that read files for it.
#[derive(Clone, Default)]
pub struct RecordedFiles(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    program: PathBuf,
    /// Build ids of object files, by path; empty where the recording has none.
    modules: HashMap<PathBuf, Vec<u8>>,
    /// Whether the file here is the recorded one, once that was looked up.
    same: HashMap<PathBuf, bool>,
}

impl RecordedFiles {
    /// The program that was recorded.
    pub fn program(&self, path: &Path) {
        self.lock().program = path.to_path_buf();
    }

    /// An object file that was mapped.
    pub fn module(&self, path: &Path, build_id: &[u8]) {
        let mut known = self.lock();
        known.modules.insert(path.to_path_buf(), build_id.to_vec());
        known.same.remove(path);
    }

    /// Whether this file is read.
    pub fn may_read(&self, path: &Path) -> bool {
        if !are_named_by_traces() {
            return true;
        }
        // Where it lies in truth: `..` and links lead out of any folder.
        let Ok(real) = path.canonicalize() else { return false };
        let inside = |folder: &Path| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
        let mut known = self.lock();
        if search_path().iter().any(|folder| inside(folder)) || known.is_same(path) {
            return true;
        }
        let program = known.program.clone();
        program.parent().is_some_and(inside) && known.is_same(&program)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Whether the file here has the build id that was recorded for its path.
    fn is_same(&mut self, path: &Path) -> bool {
        if let Some(same) = self.same.get(path) {
            return *same;
        }
        let same = self.modules.get(path).is_some_and(|id| !id.is_empty() && has_build_id(path, id));
        self.same.insert(path.to_path_buf(), same);
        same
    }
}

fn has_build_id(path: &Path, build_id: &[u8]) -> bool {
    let Ok(file) = open(path) else { return false };
    // SAFETY: the mapping is private and read-only. Truncating an object file while it is read is a
    // fault that every debugger shares.
    let Ok(map) = (unsafe { memmap2::Mmap::map(&file) }) else { return false };
    object::File::parse(&*map).is_ok_and(|file| file.build_id().ok().flatten() == Some(build_id))
}
