//! How a walk over a stack ended, and the numbers that stand for known walks.
//!
//! Owns [`WalkResult`], which native and Python walks return alike, and the counter of walk ids.
//! Does not walk, and does not keep walks: see [`super::walk_memo`].

use core::sync::atomic::{AtomicU32, Ordering};

/// How a walk ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WalkResult {
    /// Frames written. None, although there are some, when the walk was known.
    pub len: usize,
    /// What stands for these frames, in this thread or another: 0 for no frames, `None` when the
    /// walk could not be kept.
    pub id: Option<u32>,
}

impl WalkResult {
    /// No frames.
    pub const NOTHING: Self = Self { len: 0, id: Some(0) };

    /// Whether there are frames that were not written.
    pub fn is_known(self) -> bool {
        self.len == 0 && self.id.is_some_and(|id| id != 0)
    }

    /// Whether there are frames.
    pub fn has_frames(self) -> bool {
        self.len > 0 || self.is_known()
    }
}

/// A number that was never given out; `None` when there are no more.
pub fn new_walk_id() -> Option<u32> {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| last.checked_add(1)).ok().map(|last| last + 1)
}
