//! The words of tensor maps that threads make: in shared memory, and where they go from there.
//!
//! Owns what the words are, and which tensor a map in global memory is of.
//!
//! # Why it holds
//!
//! A thread makes a map from words that its warp filled with zeros, and the lanes of the warp take
//! it to global memory word by word. (`map_words.rs` says which instructions count; each is passed
//! once.) What a thread loads that it stored itself is what it stored. What another lane stored is
//! there if every lane that comes to the load has passed the store, or if the lane that stored has
//! come to the load, too: a program that has no race in shared memory has them in this order.
//! Nothing is told of any map if two warps store to one word, if a store has an unknown address or
//! may happen only, if a word of global memory gets two values, or if blocks of a cluster may store
//! into each other's memory.
//!
//! The tensor's address counts from the pointer that was stored as a whole. All else in a map are
//! numbers, which rest on the inputs of the launch as all numbers do.

use super::lane_classes::{LANES, Mask, NO_LANES, lanes};
use super::lane_value::{LaneValue, NUMBER, Tag, Tags, UNKNOWN};
use super::walk::Walk;
use crate::ir::BlockId;
use crate::ranges::graph::node::{MapStepNode, NodeId, Width};
use device_code::tensor_map::{SIZE, Tensor};
use rustc_hash::FxHashMap;

/// A word of a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    Number(u32),
    /// The low or the high half of an address, and what that counts from.
    Half {
        tag: Tag,
        address: u64,
        high: bool,
    },
}

/// A thread: its block, its warp in the block, its number in the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Writer {
    pub(super) block: u64,
    pub(super) thread: u64,
}

impl Writer {
    fn warp(self) -> u64 {
        self.thread / 32
    }
}

/// What was stored to a word of shared memory, by whom, and in which step.
#[derive(Clone, Copy)]
struct Stored {
    word: Option<Word>,
    by: Writer,
    step: usize,
}

/// Where a map lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum MapPlace {
    /// The parameter at this offset.
    Param(u16),
    /// In global memory, made by the kernel: which of the tensors.
    Made(usize),
}

/// The maps of a launch, as far as they are made.
#[derive(Default)]
pub(super) struct MadeMaps {
    shared: FxHashMap<(u64, u32), Stored>,
    global: FxHashMap<(Tag, u64), Option<Word>>,
    /// Halves of addresses that lanes have loaded: those of a lane's last load.
    halves: FxHashMap<(NodeId, usize), Word>,
    /// By what a map's address counts from, and the address.
    found: FxHashMap<(Tag, u64), usize>,
    /// The tensors of maps, and what their addresses count from.
    pub(super) tensors: Vec<(Tag, Tensor)>,
    /// Not all is known of what makes maps.
    pub(super) is_lost: bool,
}

impl MadeMaps {
    pub(super) fn store(&mut self, at: u32, word: Option<Word>, by: Writer, step: usize) {
        let before = self.shared.insert((by.block, at), Stored { word, by, step });
        self.is_lost |= before.is_some_and(|b| b.by.warp() != by.warp());
    }

    /// The word that a thread loads; `is_ordered`: whether it comes behind what another thread
    /// stored in a step.
    pub(super) fn load(&self, at: u32, by: Writer, is_ordered: impl Fn(usize, Writer) -> bool) -> Option<Word> {
        let stored = self.shared.get(&(by.block, at))?;
        let is_own = stored.by == by;
        let is_of_warp = stored.by.warp() == by.warp() && is_ordered(stored.step, stored.by);
        stored.word.filter(|_| is_own || is_of_warp)
    }

    /// A word goes to global memory.
    pub(super) fn put(&mut self, at: (Tag, u64), word: Option<Word>) {
        let before = self.global.insert(at, word);
        self.is_lost |= before.is_some_and(|b| b != word);
    }

    /// What the addresses of maps count from.
    pub(super) fn places(&self) -> impl Iterator<Item = Tag> {
        self.found.keys().map(|at| at.0)
    }

    /// The tensor of the map at an address.
    pub(super) fn tensor(&mut self, (tag, at): (Tag, u64)) -> Option<usize> {
        if let Some(known) = self.found.get(&(tag, at)) {
            return Some(*known);
        }
        let mut words = [None; SIZE / 4];
        for (k, word) in words.iter_mut().enumerate() {
            *word = Some((*self.global.get(&(tag, at.wrapping_add(4 * k as u64)))?)?);
        }
        let found = tensor_of(&words.map(|w| w.unwrap_or(Word::Number(0))))?;
        let k = self.tensors.iter().position(|t| *t == found).unwrap_or_else(|| {
            self.tensors.push(found);
            self.tensors.len() - 1
        });
        self.found.insert((tag, at), k);
        Some(k)
    }
}

impl Walk<'_> {
    /// The steps of a block that make maps, by these lanes.
    pub(super) fn make_maps(&mut self, b: BlockId, mask: &Mask) {
        for at in 0..self.map_steps[b.0 as usize].len() {
            let k = self.map_steps[b.0 as usize][at];
            let step = &self.analysis.graph.map_words[k];
            let mut mask = *mask;
            if let Some(guard) = step.guard {
                let [yes, _, unknown] = self.lanes.get(guard).decides(&mask);
                self.maps.is_lost |= unknown != NO_LANES;
                mask = yes;
            }
            if mask == NO_LANES {
                continue;
            }
            self.lanes.spent += lanes(&mask).count();
            match &step.step {
                MapStepNode::Store { addr, words, pairs, bytes } => {
                    self.store_words(k, *addr, (words, pairs, *bytes), &mask);
                }
                MapStepNode::Load { addr, words } => self.load_words(b, *addr, words, &mask),
                MapStepNode::Word { addr, word, .. } => self.put_words(*addr, *word, &mask),
            }
        }
    }

    fn number(&self, n: NodeId, lane: usize) -> Option<u64> {
        let value = self.lanes.operand(n);
        (value.tags.at(lane) == NUMBER).then(|| value.at(lane))
    }

    fn writer(&self, lane: usize) -> Writer {
        let (block, thread) = self.lanes.round.thread(lane);
        Writer { block, thread }
    }

    fn store_words(&mut self, k: usize, addr: NodeId, what: (&[NodeId], &[NodeId], u32), mask: &Mask) {
        let (words, pairs, bytes) = what;
        self.lanes.get(addr);
        for n in pairs {
            self.lanes.get(*n);
        }
        // (Where a pair is known, its words are not made: an address stays one.)
        let is_open = |walk: &Self, n: &NodeId| lanes(mask).any(|l| walk.lanes.operand(*n).tags.at(l) == UNKNOWN);
        for (part, n) in words.iter().enumerate() {
            if pairs.get(part / 2).is_none_or(|pair| is_open(self, pair)) {
                self.lanes.get(*n);
            }
        }
        for lane in lanes(mask) {
            let Some(at) = self.number(addr, lane).map(|at| at as u32).filter(|at| at.is_multiple_of(4)) else {
                self.maps.is_lost = true;
                return;
            };
            for part in 0..bytes.div_ceil(4) as usize {
                let of_pair = pairs.get(part / 2).map(|n| self.lanes.operand(*n)).and_then(|pair| {
                    let (high, whole) = (part % 2 == 1, pair.at(lane));
                    match pair.tags.at(lane) {
                        UNKNOWN => None,
                        NUMBER => Some(Word::Number(if high { whole >> 32 } else { whole } as u32)),
                        tag => Some(Word::Half { tag, address: whole, high }),
                    }
                });
                let own = || self.number(*words.get(part)?, lane).map(|w| Word::Number(w as u32));
                let (word, by) = (of_pair.or_else(own), self.writer(lane));
                self.maps.store(at.wrapping_add(4 * part as u32), word, by, k);
            }
        }
    }

    fn load_words(&mut self, b: BlockId, addr: NodeId, words: &[(NodeId, u8)], mask: &Mask) {
        let (cfg, g) = (&self.analysis.cfg, &self.analysis.graph);
        self.lanes.get(addr);
        let is_here = |w: Writer| {
            let lane = self.lanes.round.lane(w.block, w.thread);
            lane.is_some_and(|lane| mask[lane / 64] >> (lane % 64) & 1 == 1)
        };
        let is_ordered = |step: usize, by: Writer| cfg.dominates(g.map_words[step].block, b) || is_here(by);
        let mut loaded: Vec<(NodeId, LaneValue)> = Vec::new();
        let mut halves: Vec<(NodeId, usize, Option<Word>)> = Vec::new();
        for (n, part) in words {
            let (mut tags, mut numbers) = (Box::new([UNKNOWN; LANES]), [0; LANES]);
            for lane in lanes(mask) {
                let at = |k: u8| Some((self.number(addr, lane)? as u32).wrapping_add(4 * u32::from(k)));
                let load = |k: u8| self.maps.load(at(k)?, self.writer(lane), is_ordered);
                let mut half = None;
                match (g.node(*n).width, load(*part)) {
                    (Width::W32, Some(Word::Number(word))) => {
                        (tags[lane], numbers[lane]) = (NUMBER, u64::from(word));
                    }
                    (Width::W32, word) => half = word,
                    (_, Some(Word::Number(low))) if let Some(Word::Number(high)) = load(part + 1) => {
                        (tags[lane], numbers[lane]) = (NUMBER, u64::from(high) << 32 | u64::from(low));
                    }
                    _ => {}
                }
                halves.push((*n, lane, half));
            }
            let mut value = LaneValue::unknown();
            value.put(self.lanes.len, |lane| numbers[lane]);
            value.tags = Tags::found(tags, self.lanes.len);
            loaded.push((*n, value));
        }
        for (n, lane, half) in halves {
            match half {
                Some(half) => {
                    self.maps.halves.insert((n, lane), half);
                }
                None => {
                    self.maps.halves.remove(&(n, lane));
                }
            }
        }
        for (n, value) in &loaded {
            self.lanes.assign(*n, mask, value);
        }
        self.lanes.joined();
    }

    fn put_words(&mut self, addr: NodeId, word: NodeId, mask: &Mask) {
        self.lanes.get(addr);
        self.lanes.get(word);
        for lane in lanes(mask) {
            let address = self.lanes.operand(addr);
            let (tag, at) = (address.tags.at(lane), address.at(lane));
            if tag == UNKNOWN {
                self.maps.is_lost = true;
                return;
            }
            let half = self.maps.halves.get(&(word, lane)).copied();
            let put = half.or_else(|| self.number(word, lane).map(|w| Word::Number(w as u32)));
            self.maps.put((tag, at), put);
        }
    }
}

/// What a map is of.
fn tensor_of(words: &[Word; SIZE / 4]) -> Option<(Tag, Tensor)> {
    let (tag, address) = match (words[0], words[1]) {
        (Word::Number(low), Word::Number(high)) => (NUMBER, u64::from(high) << 32 | u64::from(low)),
        (Word::Half { tag, address, high: false }, Word::Half { tag: t, address: a, high: true })
            if (tag, address) == (t, a) =>
        {
            (tag, address)
        }
        _ => return None,
    };
    let mut bytes = [0; SIZE];
    bytes[..8].copy_from_slice(&address.to_le_bytes());
    for (k, word) in words.iter().enumerate().skip(2) {
        let Word::Number(word) = word else { return None };
        bytes[4 * k..4 * k + 4].copy_from_slice(&word.to_le_bytes());
    }
    Some((tag, Tensor::decode(&bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(block: u64, thread: u64) -> Writer {
        Writer { block, thread }
    }

    #[test]
    fn a_lane_sees_what_it_stored_and_what_its_warp_stored_before() {
        let mut maps = MadeMaps::default();
        maps.store(16, Some(Word::Number(5)), by(0, 3), 7);
        assert_eq!(maps.load(16, by(0, 3), |_, _| false), Some(Word::Number(5)));
        assert_eq!(maps.load(16, by(0, 4), |step, _| step == 7), Some(Word::Number(5)));
        assert_eq!(maps.load(16, by(0, 4), |_, _| false), None, "not in order");
        assert_eq!(maps.load(16, by(0, 40), |_, _| true), None, "another warp");
        assert_eq!(maps.load(16, by(1, 3), |_, _| true), None, "another block");
        maps.store(16, None, by(0, 4), 8);
        assert_eq!(maps.load(16, by(0, 3), |_, _| true), None, "not known any more");
        assert!(!maps.is_lost);
        maps.store(16, Some(Word::Number(5)), by(0, 32), 8);
        assert!(maps.is_lost, "two warps");
    }

    #[test]
    fn a_map_is_of_the_tensor_whose_words_were_put() {
        // Two axes of 40 and 30 elements of 2 bytes, rows of 80 bytes, a box of 8 x 4.
        let mut words = [Word::Number(0); SIZE / 4];
        let half = |high| Word::Half { tag: 2, address: 0x7000_0040, high };
        (words[0], words[1]) = (half(false), half(true));
        for (k, n) in [(2, 0x310), (3, 5), (8, 39), (9, 29), (13, 7 << 24), (14, 3)] {
            words[k] = Word::Number(n);
        }
        let made = |words: &[Word]| {
            let mut maps = MadeMaps::default();
            words.iter().enumerate().for_each(|(k, w)| maps.put((1, 0x100 + 4 * k as u64), Some(*w)));
            maps
        };
        let mut maps = made(&words);
        assert_eq!(maps.tensor((1, 0x100)), Some(0));
        let (tag, t) = maps.tensors[0];
        assert_eq!((tag, t.address, t.element, &t.sizes[..2], t.strides[0]), (2, 0x7000_0040, 2, &[40, 30][..], 80));
        assert_eq!(t.tile.map(|t| (t.extent[0], t.extent[1])), Some((8, 4)));
        assert_eq!(maps.tensor((1, 0x104)), None, "not the first word");
        assert_eq!(maps.tensor((3, 0x100)), None, "counts from elsewhere");
        maps.put((1, 0x124), Some(Word::Number(29)));
        assert!(!maps.is_lost);
        maps.put((1, 0x124), Some(Word::Number(28)));
        assert!(maps.is_lost, "two sizes");
        for (k, other) in [(1, half(false)), (1, Word::Number(0)), (9, half(true))] {
            let mut words = words;
            words[k] = other;
            assert_eq!(made(&words).tensor((1, 0x100)), None, "{k} {other:?}");
        }
        assert_eq!(made(&words[..15]).tensor((1, 0x100)), None, "a word is missing");
    }
}
