//! The files that images are mapped from.
//!
//! Owns what identifies a file, and what was looked up of each object file. Which file an image is
//! in, and whether it still is, `crate::ids::image_bytes` finds out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use super::HandleTable;

/// What identifies a file as long as it exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileIdentity {
    /// Its device.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When its content was last changed: seconds and nanoseconds.
    pub modified: (i64, u32),
}

impl FileIdentity {
    /// That of the file that a path leads to now.
    pub fn of(path: &[u8]) -> Option<Self> {
        let meta = std::fs::metadata(OsStr::from_bytes(path)).ok()?;
        let modified = (meta.mtime(), meta.mtime_nsec() as u32);
        Some(Self { device: meta.dev(), inode: meta.ino(), size: meta.size(), modified })
    }
}

/// The file of an object file that was mapped.
#[derive(Clone)]
pub struct ImageFile {
    /// Its path when it was looked up.
    pub path: Vec<u8>,
    /// What it was then.
    pub identity: FileIdentity,
}

/// What was looked up, by where the object file begins in memory.
#[derive(Default)]
pub struct ImageFiles(HandleTable<u64, (Vec<u8>, ImageFile)>);

impl ImageFiles {
    /// What is known of an object file, which the loader knows by this name.
    pub fn get(&self, object: u64, loader: &[u8]) -> Option<ImageFile> {
        self.0.get(&object).filter(|known| known.0 == loader).map(|known| known.1.clone())
    }

    /// Remembers it.
    pub fn set(&self, object: u64, loader: &[u8], file: ImageFile) {
        self.0.insert(object, (loader.to_vec(), file));
    }
}
