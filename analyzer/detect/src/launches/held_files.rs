//! Files of code that are held: a living process has loaded them, and a build may replace them
//! while it runs.
//!
//! Owns which of them are open, for all processes and images. Where a trace names the file, nothing
//! is held: `system::local_files` says whether it is read.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use system::local_files;
use trace::FileIdentity;

/// A file of a program that runs here and now: it stays that file even if another one gets its
/// name.
#[derive(Clone, Debug)]
pub(crate) struct HeldFile(Hold);

#[derive(Clone, Debug)]
enum Hold {
    /// Open since it was named.
    Open(Arc<File>),
    /// Too many are open: it is opened when it is read.
    Later(FileIdentity),
    /// Its name was another file's already.
    Replaced,
}

/// Files that are held open at most: descriptors are scarce, and programs with code in more files
/// are rare.
const MOST_HELD: usize = 128;

/// The files that are held open, shared by all processes and images.
static HELD: Mutex<Option<HashMap<FileIdentity, Weak<File>>>> = Mutex::new(None);

/// Holds a file that a living process has loaded. `None`: a trace names it, which may be from
/// another machine and another time.
pub(crate) fn hold(path: &Path, identity: FileIdentity) -> Option<HeldFile> {
    if local_files::are_named_by_traces() {
        return None;
    }
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let held = held.get_or_insert_default();
    if let Some(file) = held.get(&identity).and_then(Weak::upgrade) {
        return Some(HeldFile(Hold::Open(file)));
    }
    held.retain(|_, file| file.strong_count() > 0);
    let Ok(file) = open_same(path, identity) else { return Some(HeldFile(Hold::Replaced)) };
    if held.len() >= MOST_HELD {
        return Some(HeldFile(Hold::Later(identity)));
    }
    let file = Arc::new(file);
    held.insert(identity, Arc::downgrade(&file));
    Some(HeldFile(Hold::Open(file)))
}

fn identity_of(file: &File) -> io::Result<FileIdentity> {
    Ok(FileIdentity::new(&file.metadata()?))
}

/// Opens a file that has to be this one.
fn open_same(path: &Path, identity: FileIdentity) -> io::Result<File> {
    let file = local_files::open(path)?;
    let is_same = identity_of(&file).is_ok_and(|found| found == identity);
    if is_same { Ok(file) } else { Err(io::Error::from(io::ErrorKind::StaleNetworkFileHandle)) }
}

impl HeldFile {
    /// Whether both surely are one file.
    pub(crate) fn is(&self, other: &HeldFile) -> bool {
        match (&self.0, &other.0) {
            (Hold::Open(one), Hold::Open(other)) => Arc::ptr_eq(one, other),
            (Hold::Later(one), Hold::Later(other)) => one == other,
            _ => false,
        }
    }

    /// The file; `None`: it is gone, or another one has its name.
    pub(crate) fn file(&self, path: &Path) -> Option<Arc<File>> {
        match &self.0 {
            Hold::Open(file) => Some(Arc::clone(file)),
            Hold::Later(identity) => open_same(path, *identity).ok().map(Arc::new),
            Hold::Replaced => None,
        }
    }
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

    fn content(held: &HeldFile, path: &Path) -> Option<Vec<u8>> {
        let file = held.file(path)?;
        let mut bytes = vec![0; file.metadata().expect("open").len() as usize];
        std::os::unix::fs::FileExt::read_exact_at(&*file, &mut bytes, 0).expect("readable");
        Some(bytes)
    }

    #[test]
    fn a_file_that_is_held_stays_itself_and_one_that_was_replaced_is_not_read() {
        let folder = system::private_file::folder("streamsan-held-").expect("a folder");
        for (index, replace) in WAYS.into_iter().enumerate() {
            let path = folder.join(format!("file{index}"));
            fs::write(&path, b"mine").expect("writable");
            let identity = identity_of(&local_files::open(&path).expect("there")).expect("a file");
            let first = hold(&path, identity).expect("a living process");
            // One that more files are open than may be, before.
            let late = HeldFile(Hold::Later(identity));
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
