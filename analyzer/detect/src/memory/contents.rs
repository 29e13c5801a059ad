//! The contents of pointer tables, as far as copies from the host to device memory, and launches
//! that were given pinned memory, revealed them.
//!
//! Owns the words and the rule of when they are valid. Does not know kernels or order.
//!
//! A word is known from the copy that stored it until anything else may have overwritten it: an
//! access that writes its bytes, an access of unknown extent in its allocation, or a kernel that
//! writes through addresses that can not be followed. The last one forgets all words. Words are
//! kept in the order of submission: if the copy and a kernel that reads the table are not ordered,
//! that is a race on the table itself. Words of pinned memory, which the host changes unseen, are
//! known for one launch.

use std::collections::BTreeMap;

/// Upper bound on the number of words. When it is reached, all are forgotten.
const MAX_WORDS: usize = 1 << 16;

/// Known words of memory, by address.
#[derive(Debug, Default)]
pub struct Contents {
    words: BTreeMap<u64, u64>,
    /// Addresses of words that are known for the next launch only.
    fleeting: Vec<u64>,
}

impl Contents {
    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Stores a word at an address (a multiple of 8).
    pub(crate) fn put(&mut self, address: u64, word: u64) {
        if self.words.len() >= MAX_WORDS {
            self.words.clear();
        }
        self.words.insert(address, word);
    }

    /// Stores a word that is known for the next launch only.
    pub(crate) fn put_fleeting(&mut self, address: u64, word: u64) {
        self.put(address, word);
        self.fleeting.push(address);
    }

    /// A launch is over.
    #[inline]
    pub fn forget_fleeting(&mut self) {
        for address in self.fleeting.drain(..) {
            self.words.remove(&address);
        }
    }

    /// The word at an address.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        self.words.get(&address).copied()
    }

    /// Forgets the words from `start` up to `end`, which may have changed.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        let from = start.saturating_sub(7);
        if self.words.range(from..end.max(from)).next().is_none() {
            return;
        }
        let gone: Vec<u64> = self.words.range(from..end).map(|(address, _)| *address).collect();
        for address in gone {
            self.words.remove(&address);
        }
    }

    /// Forgets all words: any of them may have changed.
    pub fn forget_all(&mut self) {
        self.words.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_known_until_a_byte_of_it_may_have_changed() {
        let mut c = Contents::default();
        for (at, word) in [(64, 1), (72, 2), (80, 3)] {
            c.put(at, word);
        }
        c.forget(79, 80);
        assert_eq!((c.word(64), c.word(72), c.word(80)), (Some(1), None, Some(3)));
        c.forget(88, 1000);
        c.forget(0, 64);
        assert_eq!((c.word(64), c.word(80)), (Some(1), Some(3)));
        c.put_fleeting(96, 4);
        assert_eq!(c.word(96), Some(4));
        c.forget_fleeting();
        assert_eq!((c.word(64), c.word(96)), (Some(1), None));
        c.forget_all();
        assert!(c.is_empty());
    }
}
