//! Loaded images whose variables the driver was not asked for yet.
//!
//! Owns the list, which `crate::ids::variables` takes images from. Only images whose bytes lie in a
//! read-only mapping of a file are listed. Does not read images.

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use trace::ImageId;

/// Images larger than this are not unpacked inside the program.
const LARGEST: usize = 16 << 20;
/// Images up to this size are listed when a kernel of theirs is first launched, so that an address
/// that reaches a kernel as a parameter is known too. (Unpacking takes under a millisecond then;
/// libraries' images are mostly larger.)
const SMALL: usize = 128 << 10;

/// What kind of handle an image belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageOwner {
    /// A `CUmodule`.
    Module,
    /// A `CUlibrary`.
    Library,
}

/// An image whose variables were not asked for yet.
#[derive(Clone, Copy)]
pub struct UnlistedImage {
    /// The module or library, by its handle.
    pub owner: u64,
    /// Which of the two.
    pub kind: ImageOwner,
    /// Its id.
    pub image: ImageId,
    /// Where its bytes lie.
    pub start: u64,
    /// How many.
    pub len: usize,
}

/// Images whose variables were not asked for yet.
#[derive(Default)]
pub struct UnlistedImages {
    count: AtomicU32,
    entries: Mutex<Vec<UnlistedImage>>,
}

impl UnlistedImages {
    /// An image was loaded from bytes that lie in a read-only mapping of a file.
    pub fn add(&self, owner: *mut c_void, kind: ImageOwner, image: ImageId, bytes: &[u8]) {
        if bytes.len() <= LARGEST {
            let entry =
                UnlistedImage { owner: owner as u64, kind, image, start: bytes.as_ptr() as u64, len: bytes.len() };
            self.change(|entries| entries.push(entry));
        }
    }

    /// A module or library goes away.
    pub fn remove(&self, owner: *mut c_void) {
        if !self.is_empty() {
            self.change(|entries| entries.retain(|entry| entry.owner != owner as u64));
        }
    }

    /// A small image, to be listed now that a kernel of it was launched.
    pub fn take_small(&self, image: ImageId) -> Option<UnlistedImage> {
        self.change(|entries| {
            let index = entries.iter().position(|entry| entry.image == image && entry.len <= SMALL)?;
            Some(entries.swap_remove(index))
        })?
    }

    /// The newest one.
    pub fn take(&self) -> Option<UnlistedImage> {
        self.change(Vec::pop)?
    }

    /// Whether there are none. Read without the lock.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Changes the list and keeps the count, which is read without the lock. `None` after a panic
    /// under the lock.
    fn change<T>(&self, how: impl FnOnce(&mut Vec<UnlistedImage>) -> T) -> Option<T> {
        let mut entries = self.entries.lock().ok()?;
        let answer = how(&mut entries);
        self.count.store(entries.len() as u32, Ordering::Release);
        Some(answer)
    }
}
