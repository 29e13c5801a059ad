//! Files of this machine that a recording names: object files, code images, sources.
//!
//! A trace may be anybody's, and so may the paths in it. Owns which of them are read: all for a
//! program that runs here and now; for a trace those below `--symbol-path`, those whose build id is
//! the recorded one, and those beside the recorded program, if the program here is that one by its
//! build id. Regular files only, opened without waiting: a pipe or a device has no answer for us.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use object::Object;

/// Whether what names files may be anybody's.
static FOREIGN: AtomicBool = AtomicBool::new(false);

/// From now on files are named by traces. Call it before any is read.
pub fn named_by_traces() {
    FOREIGN.store(true, Ordering::Relaxed);
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

/// What identifies a file as long as it exists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Identity {
    /// Its device.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When its content was last changed: seconds and nanoseconds.
    pub modified: (i64, u32),
}

impl Identity {
    fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        let modified = (meta.mtime(), meta.mtime_nsec() as u32);
        Ok(Self { device: meta.dev(), inode: meta.ino(), size: meta.size(), modified })
    }
}

/// A file of a program that runs here and now: it stays that file even if another one gets its
/// name.
#[derive(Clone, Debug)]
pub struct Held(Hold);

#[derive(Clone, Debug)]
enum Hold {
    /// Open since it was named.
    Open(Arc<File>),
    /// Too many are open: it is opened when it is read.
    Later(Identity),
    /// Its name was another file's already.
    Replaced,
}

/// Files that are held open at most: descriptors are scarce, and programs with code in more files
/// are rare.
const MOST_HELD: usize = 128;

/// The files that are held open, shared by all processes and images.
static HELD: Mutex<Option<HashMap<Identity, Weak<File>>>> = Mutex::new(None);

/// Holds a file that a living process has loaded. `None`: a trace names it, which may be from
/// another machine and another time.
pub fn hold(path: &Path, identity: Identity) -> Option<Held> {
    if FOREIGN.load(Ordering::Relaxed) {
        return None;
    }
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let held = held.get_or_insert_default();
    if let Some(file) = held.get(&identity).and_then(Weak::upgrade) {
        return Some(Held(Hold::Open(file)));
    }
    held.retain(|_, file| file.strong_count() > 0);
    let Ok(file) = open_same(path, identity) else { return Some(Held(Hold::Replaced)) };
    if held.len() >= MOST_HELD {
        return Some(Held(Hold::Later(identity)));
    }
    let file = Arc::new(file);
    held.insert(identity, Arc::downgrade(&file));
    Some(Held(Hold::Open(file)))
}

/// Opens a file that has to be this one.
fn open_same(path: &Path, identity: Identity) -> io::Result<File> {
    let file = open(path)?;
    let is_same = Identity::of(&file).is_ok_and(|found| found == identity);
    if is_same { Ok(file) } else { Err(io::Error::from(io::ErrorKind::StaleNetworkFileHandle)) }
}

impl Held {
    /// The file; `None`: it is gone, or another one has its name.
    pub fn file(&self, path: &Path) -> Option<Arc<File>> {
        match &self.0 {
            Hold::Open(file) => Some(Arc::clone(file)),
            Hold::Later(identity) => open_same(path, *identity).ok().map(Arc::new),
            Hold::Replaced => None,
        }
    }
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
        if !FOREIGN.load(Ordering::Relaxed) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Ways in which a name comes to lead to another file, or to none.
    const WAYS: [fn(&Path); 5] = [
        |path| fs::remove_file(path).expect("ours"),
        |path| {
            fs::write(path.with_extension("new"), b"others").expect("writable");
            fs::rename(path.with_extension("new"), path).expect("ours");
        },
        |path| {
            fs::remove_file(path).expect("ours");
            fs::write(path, b"others").expect("writable");
        },
        |path| {
            fs::remove_file(path).expect("ours");
            std::os::unix::fs::symlink("another", path).expect("a link");
        },
        |path| fs::rename(path, path.with_extension("old")).expect("ours"),
    ];

    fn content(held: &Held, path: &Path) -> Option<Vec<u8>> {
        let file = held.file(path)?;
        let mut bytes = vec![0; file.metadata().expect("open").len() as usize];
        std::os::unix::fs::FileExt::read_exact_at(&*file, &mut bytes, 0).expect("readable");
        Some(bytes)
    }

    #[test]
    fn a_file_that_is_held_stays_itself_and_one_that_was_replaced_is_not_read() {
        let folder = crate::private_file::folder("streamsan-held-").expect("a folder");
        for (index, replace) in WAYS.into_iter().enumerate() {
            let path = folder.join(format!("file{index}"));
            fs::write(&path, b"mine").expect("writable");
            let identity = Identity::of(&open(&path).expect("there")).expect("a file");
            let first = hold(&path, identity).expect("a living process");
            // One that more files are open than may be, before.
            let late = Held(Hold::Later(identity));
            assert_eq!(content(&late, &path).as_deref(), Some(&b"mine"[..]));
            replace(&path);
            assert_eq!(content(&first, &path).as_deref(), Some(&b"mine"[..]), "{index}");
            assert_eq!(content(&late, &path), None, "{index}");
            // While one holds it, all may.
            assert!(content(&hold(&path, identity).expect("held"), &path).is_some(), "{index}");
            drop(first);
            assert_eq!(content(&hold(&path, identity).expect("an answer"), &path), None, "{index}");
        }
        fs::remove_dir_all(folder).expect("ours");
    }
}
