//! The files that images are mapped from.
//!
//! Owns what was looked up of each object file. Which file an image is in, and whether it still is,
//! `crate::ids::image_bytes` finds out.

use trace::FileIdentity;

use super::HandleTable;

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
