//! The native walks of one thread, as a tree of the words that they read.
//!
//! Owns the tree; why following it is as good as walking is argued in [`crate::stack::walk_memo`].
//! The words of a walk are the return addresses, and those saved frame pointers by which a later
//! frame is found. The others hold whatever the program had in that register, and matter to no
//! walk. What a walk reads next must depend on nothing but what it read before, so a saved frame
//! pointer has its place where it is used.
//!
//! A path is an array of 64-bit entries: a word (48 bits, as addresses have) and how far above the
//! first place it lies, in words (16 bits), so that no read waits for the one before. Paths that
//! begin alike share their beginning: where two part, an edge leads from the entry in the first
//! one's array, with the other word, to the rest of the second. The first word of all is what the
//! walk began with: stack pointer and limits.
//!
//! What is not kept: walks through signal frames and through code without rules, and those that
//! ended where nothing was readable.

use super::Registers;
use crate::stack::edges::Edges;
use crate::stack::native::readable::Window;
use crate::stack::native::rule_cache;
use crate::stack::walk::new_walk_id;

const WORDS: usize = 1 << 16;
const WORD: u64 = (1 << 48) - 1;
/// In the place of a distance: the entry is the path's number.
const END: u64 = 0;
/// In the place of a distance: the word is the frame pointer that the walk began with.
const REGISTER: u64 = 0xffff;

/// The tree. All zeros: empty.
pub struct WalkTree {
    epoch: u64,
    /// Entries used. The first is none: edges from there are beginnings.
    len: usize,
    edges: Edges,
    words: [u64; WORDS],
}

/// Where the words read were no longer known.
#[derive(Clone, Copy)]
pub(crate) struct TreeMiss {
    from: u16,
    /// Words read before that were known.
    matched: usize,
}

impl WalkTree {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.epoch = rule_cache::epoch();
        self.len = 1;
        self.edges.clear();
    }

    /// The number of the walk that begins like this, or where it is no longer known; `None` when it
    /// can not be kept either. `limits` fit into 16 bits.
    #[inline]
    pub(super) fn find(&mut self, at: Registers, limits: u64, window: &mut Window) -> Result<u32, Option<TreeMiss>> {
        if self.edges.is_new() || self.epoch != rule_cache::epoch() {
            self.clear();
        }
        let (mut from, mut value, mut matched) = (0, at.sp | limits << 48, 0);
        let mut near = Near::around(at.sp, window);
        loop {
            // A word that is not the one of this path, or the beginning.
            let Some([mut index, _]) = self.edges.get(from, value) else {
                return Err(Some(TreeMiss { from, matched }));
            };
            let begin = index;
            loop {
                let entry = self.words[usize::from(index)];
                value = match near.word(entry >> 48) {
                    Some(word) => word,
                    None => match entry >> 48 {
                        END => return Ok(entry as u32),
                        REGISTER => at.fp,
                        distance => {
                            let word = window.read(at.sp - 8 + distance * 8).ok_or(None)?;
                            // It may have grown.
                            near = Near::around(at.sp, window);
                            word
                        }
                    },
                };
                if value != entry & WORD {
                    matched += usize::from(index - begin) + 1;
                    from = index;
                    break;
                }
                // A path never runs past the last entry.
                index = index.wrapping_add(1);
            }
        }
    }

    /// To keep the walk of which [`WalkTree::find`] said this, from its beginning on.
    pub(super) fn path(&mut self, miss: TreeMiss, at: Registers, limits: u64) -> TreePath<'_> {
        let next = self.len;
        let mut path = TreePath { tree: self, miss, next, read: 0, first: at.sp - 8, value: 0, keep: true };
        path.word(0, at.sp | limits << 48);
        path
    }
}

/// The words above a stack pointer that are known to be readable: one comparison says so of each.
struct Near {
    sp: u64,
    count: u64,
}

impl Near {
    #[inline(always)]
    fn around(sp: u64, window: &Window) -> Self {
        // Neither of the two reserved distances is one of a word.
        Self { sp, count: window.words_from(sp).min(REGISTER - 1) }
    }

    /// The word at a distance, if it is one of these.
    #[inline(always)]
    fn word(&self, distance: u64) -> Option<u64> {
        let number = distance.wrapping_sub(END + 1);
        // SAFETY: this many words from there on are readable and aligned: `Window::words_from`.
        (number < self.count).then(|| unsafe { ((self.sp + number * 8) as *const u64).read() })
    }
}

/// A walk that is to be kept.
pub(crate) struct TreePath<'a> {
    tree: &'a mut WalkTree,
    miss: TreeMiss,
    /// Where the next entry goes.
    next: usize,
    read: usize,
    /// The place that distances count from.
    first: u64,
    /// The first word that was not known.
    value: u64,
    keep: bool,
}

impl TreePath<'_> {
    /// The walk has read a word.
    pub(crate) fn read(&mut self, address: u64, value: u64) {
        let distance = address.wrapping_sub(self.first) / 8;
        // Neither of the two reserved distances, nor too far.
        self.keep &= (END + 1..REGISTER).contains(&distance) && value <= WORD;
        self.word(distance, value);
    }

    /// The frame pointer that the walk began with has come to matter.
    pub(crate) fn register(&mut self, value: u64) {
        self.keep &= value <= WORD;
        self.word(REGISTER, value);
    }

    fn word(&mut self, distance: u64, value: u64) {
        if self.read == self.miss.matched {
            self.value = value;
            // The walk reads what the tree says is read here. (The beginning has no entry.)
            let entry = self.tree.words[usize::from(self.miss.from)];
            self.keep &= self.miss.from == 0 || entry >> 48 == distance;
        } else if self.read > self.miss.matched && self.next < WORDS {
            self.tree.words[self.next] = distance << 48 | value & WORD;
            self.next += 1;
        }
        self.read += 1;
    }

    /// The walk is none that can be kept.
    pub(crate) fn give_up(&mut self) {
        self.keep = false;
    }

    /// The walk is over: its number, if it is kept.
    pub(crate) fn end(self) -> Option<u32> {
        if self.next < WORDS {
            if !self.keep || self.read <= self.miss.matched {
                return None;
            }
            let id = new_walk_id()?;
            self.tree.words[self.next] = u64::from(id);
            if self.tree.edges.put(self.miss.from, self.value, [self.tree.len as u16, 0]).is_some() {
                self.tree.len = self.next + 1;
                return Some(id);
            }
        }
        self.tree.clear();
        None
    }
}
