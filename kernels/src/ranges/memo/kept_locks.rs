//! The locks of the launches of one evaluation, kept with it.
//!
//! Owns the data, and how it moves with pointers. [`crate::ranges::held_locks`] finds the locks and
//! puts in the values of a launch.

use crate::effects::Extent;
use crate::ranges::extent::reached::ReachedBytes;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Where the words of locks lie, by the numbers of the accesses that go through them, before the
/// values of parameters are put in.
pub(crate) type SymbolicWords = FxHashMap<u32, SmallVec<[ReachedBytes<Extent>; 1]>>;

/// The locks of all launches of one evaluation, before the values of parameters are put in: finding
/// them takes as long as the evaluation. Of launches whose bytes are told apart by lock there are
/// none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct KeptLocks {
    pub(crate) words: SymbolicWords,
    pub(crate) asked: bool,
    pub(crate) made: Vec<bool>,
    /// Which of the words that addresses derive from were equal: where others are, locks may be one
    /// that were two.
    pub(crate) equal: Vec<bool>,
}

impl KeptLocks {
    /// The same for other pointers, by which `moved` moves bytes.
    pub(crate) fn moved(
        &self,
        moved: impl Fn(&ReachedBytes<Extent>) -> Option<ReachedBytes<Extent>>,
    ) -> Option<KeptLocks> {
        let of = |(k, reached): (&u32, &SmallVec<[ReachedBytes<Extent>; 1]>)| {
            Some((*k, reached.iter().map(&moved).collect::<Option<SmallVec<_>>>()?))
        };
        Some(KeptLocks { words: self.words.iter().map(of).collect::<Option<_>>()?, ..self.clone() })
    }
}

/// Locks that may not have been looked for, as they are written down.
pub(super) mod once {
    use super::KeptLocks;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::OnceLock;

    pub(crate) fn serialize<S: Serializer>(locks: &OnceLock<KeptLocks>, to: S) -> Result<S::Ok, S::Error> {
        locks.get().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<OnceLock<KeptLocks>, D::Error> {
        let locks = Option::<KeptLocks>::deserialize(from)?;
        Ok(locks.map_or_else(OnceLock::new, OnceLock::from))
    }
}
