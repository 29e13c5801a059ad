//! Which bytes of device memory nothing has written since they were allocated. Kept once a tool
//! has asked for it; owns the bits.
//!
//! Only memory that begins without a value is kept track of: that of `cuMemAlloc`, of pools, of
//! graphs' allocation nodes, and of `malloc` in kernels. Variables of modules, arrays, mapped and
//! managed memory, the host's and that of other processes count as written. Memory that is handed
//! out again begins anew: where that is ordered by streams, when the allocation's turn comes.
//!
//! Whoever may have written what is not seen has written everything: a kernel that nobody watched,
//! another process that got a handle. Nothing is said of what a copy carries: its target is
//! written, whatever the source is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use sim_races::{LANES, WrittenBytes};

/// Bytes of a page, as a power of two. A page of which nothing is written has no bits.
const PAGE: u32 = 12;
const WORDS: usize = (1 << PAGE) / 64;

type Page = OnceLock<Box<[AtomicU64; WORDS]>>;

/// An allocation.
#[derive(Debug)]
struct Block {
    at: u64,
    size: u64,
    pages: Vec<Page>,
}

/// A part of a page: the page, the word in it, and the bits.
type Part = (usize, usize, u64);

impl Block {
    fn new(at: u64, size: u64) -> Block {
        let pages = std::iter::repeat_with(OnceLock::new).take(size.div_ceil(1 << PAGE) as usize).collect();
        Block { at, size, pages }
    }

    /// The bytes of a range that are of the block, in words of 64.
    fn parts(&self, address: u64, size: u64) -> impl Iterator<Item = Part> + use<> {
        let from = address.max(self.at) - self.at;
        let to = address.saturating_add(size).min(self.at + self.size).saturating_sub(self.at).max(from);
        (from / 64..to.div_ceil(64)).map(move |word| {
            let (low, high) = (from.max(word * 64) - word * 64, to.min(word * 64 + 64) - word * 64);
            let bits = (u64::MAX >> (64 - (high - low))) << low;
            ((word >> (PAGE - 6)) as usize, word as usize % WORDS, bits)
        })
    }

    fn write(&self, address: u64, size: u64) {
        for (page, word, bits) in self.parts(address, size) {
            let page = self.pages[page].get_or_init(|| Box::new([const { AtomicU64::new(0) }; WORDS]));
            if page[word].load(Ordering::Relaxed) & bits != bits {
                page[word].fetch_or(bits, Ordering::Relaxed);
            }
        }
    }

    /// The first bits of each word that are not written: how many, and the first byte.
    fn missing(&self, address: u64, size: u64) -> (u64, Option<u64>) {
        let (mut count, mut first) = (0, None);
        for (page, word, bits) in self.parts(address, size) {
            let left = bits & !self.pages[page].get().map_or(0, |page| page[word].load(Ordering::Relaxed));
            count += u64::from(left.count_ones());
            if left != 0 && first.is_none() {
                first = Some(self.at + ((page * WORDS + word) * 64) as u64 + u64::from(left.trailing_zeros()));
            }
        }
        (count, first)
    }

    fn has(&self, address: u64) -> bool {
        address.wrapping_sub(self.at) < self.size
    }
}

type Blocks = BTreeMap<u64, Arc<Block>>;

/// All blocks that are kept track of, by their addresses.
#[derive(Debug)]
pub(crate) struct Unwritten {
    on: AtomicBool,
    blocks: RwLock<Blocks>,
}

static ALL: Unwritten = Unwritten { on: AtomicBool::new(false), blocks: RwLock::new(BTreeMap::new()) };

/// From now on memory that is allocated is kept track of.
#[cfg(feature = "driver")]
pub(crate) fn keep() {
    ALL.on.store(true, Ordering::Relaxed);
}

/// Whether memory is kept track of.
pub(crate) fn is_kept() -> bool {
    ALL.on.load(Ordering::Relaxed)
}

/// What is kept track of, if anything is.
pub(crate) fn kept() -> Option<&'static Unwritten> {
    is_kept().then_some(&ALL)
}

/// Memory begins without a value.
pub(crate) fn begins(at: u64, size: u64) {
    if is_kept() {
        let mut blocks = ALL.change();
        end(&mut blocks, at, size);
        if size > 0 {
            blocks.insert(at, Arc::new(Block::new(at, size)));
        }
    }
}

/// Memory is none of those any more, or somebody unseen may write it.
pub(crate) fn ends(at: u64, size: u64) {
    if is_kept() {
        end(&mut ALL.change(), at, size);
    }
}

/// Everything may have been written.
pub(crate) fn all_written() {
    if is_kept() {
        ALL.change().clear();
    }
}

/// Bytes are being written.
pub(crate) fn written(address: u64, size: u64) {
    if is_kept() {
        let blocks = ALL.read();
        let first = blocks.range(..=address).next_back().map_or(address, |(&at, _)| at);
        for block in blocks.range(first..address.saturating_add(size)).map(|(_, block)| block) {
            block.write(address, size);
        }
    }
}

fn end(blocks: &mut Blocks, at: u64, size: u64) {
    let end = at.saturating_add(size.max(1));
    while let Some((&other, block)) = blocks.range(..end).next_back()
        && block.at + block.size > at
    {
        blocks.remove(&other);
    }
}

impl Unwritten {
    fn read(&self) -> RwLockReadGuard<'_, Blocks> {
        self.blocks.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, Blocks> {
        self.blocks.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls with the block of each lane that is in one.
    fn each_lane(&self, lanes: u32, addresses: &[u64; LANES], mut call: impl FnMut(usize, &Block)) {
        let blocks = self.read();
        let mut last: Option<&Arc<Block>> = None;
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
            let address = addresses[lane];
            if last.is_none_or(|block| !block.has(address)) {
                let found = blocks.range(..=address).next_back().map(|(_, block)| block);
                last = found.filter(|block| block.has(address));
            }
            if let Some(block) = last {
                call(lane, block);
            }
        }
    }

    fn of(&self, address: u64) -> Option<Arc<Block>> {
        let found = self.read().range(..=address).next_back().map(|(_, block)| block.clone());
        found.filter(|block| block.has(address))
    }
}

impl WrittenBytes for Unwritten {
    fn write(&self, lanes: u32, addresses: &[u64; LANES], size: u32) {
        self.each_lane(lanes, addresses, |lane, block| block.write(addresses[lane], size.into()));
    }

    fn unwritten(&self, lanes: u32, addresses: &[u64; LANES], size: u32) -> u32 {
        let mut some = 0;
        self.each_lane(lanes, addresses, |lane, block| {
            let (count, _) = block.missing(addresses[lane], size.into());
            some |= u32::from(count != 0) << lane;
        });
        some
    }

    fn is_unwritten(&self, address: u64, size: u32) -> bool {
        self.of(address).is_some_and(|block| block.missing(address, size.into()).0 == u64::from(size))
    }

    fn first_unwritten(&self, address: u64, size: u32) -> Option<u64> {
        self.of(address)?.missing(address, size.into()).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_leave_the_bytes_beside_them() {
        let block = Block::new(0x1200, 10_000);
        assert_eq!(block.missing(0x1200, 10_000), (10_000, Some(0x1200)));
        block.write(0x1200 + 4090, 16);
        assert_eq!(block.missing(0x1200 + 4088, 20), (4, Some(0x1200 + 4088)));
        assert_eq!(block.missing(0x1200 + 4090, 16), (0, None));
        // What lies outside is nobody's.
        block.write(0x1000, 0x201);
        assert_eq!(block.missing(0x1000, 0x202), (1, Some(0x1201)));
        block.write(0, u64::MAX);
        assert_eq!(block.missing(0, u64::MAX), (0, None));
    }

    #[test]
    fn memory_that_is_handed_out_again_begins_anew() {
        let of = |at, size| (at, Arc::new(Block::new(at, size)));
        let mut blocks = Blocks::from([of(0, 512), of(512, 512), of(4096, 512)]);
        end(&mut blocks, 1000, 1);
        assert_eq!(blocks.keys().copied().collect::<Vec<_>>(), [0, 4096]);
        end(&mut blocks, 511, 3586);
        assert!(blocks.is_empty());
        let mut blocks = Blocks::from([of(0, 512), of(512, 512)]);
        end(&mut blocks, 1024, 64);
        assert_eq!(blocks.len(), 2);
    }
}
