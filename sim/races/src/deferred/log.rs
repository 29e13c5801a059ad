//! Plain reads of global memory that nothing has written yet, as a list by region: one entry for
//! what an instruction of a warp has read, also in many blocks. Owns the list and which pages are
//! in it, not what reads mean to others.

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

use super::pattern::{Offsets, Pattern, REGION, offset};
use crate::events::{LANES, lanes};
use crate::shadow::Access;

/// Bytes of a page, as a power of two: a region has 64.
const PAGE: u32 = REGION - 6;

/// Bytes that the reads of a region may take: four for each byte of it. Beyond that they are kept
/// byte by byte, where those of many blocks become one.
const MOST: usize = 4 << REGION;

/// A read as it came, but for its block, its lanes and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    site: u32,
    epoch: u64,
    floor: u64,
    pattern: Pattern,
    warp: u8,
    flags: u8,
    /// The size, as a power of two.
    size: u8,
}

/// The same in some blocks, one after another, at one place.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The offset of the first lane; of lanes in no order a hash of all offsets.
    place: u32,
    lanes: u32,
    first: u32,
    last: u32,
    /// The number of the offsets of lanes in no order.
    table: u32,
}

/// A read of a warp that is to be kept byte by byte from now on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deferred {
    pub(crate) access: Access,
    pub(crate) floor: u64,
    pub(crate) addresses: [u64; LANES],
    /// The size, as a power of two.
    pub(crate) size: u32,
}

#[derive(Debug, Default)]
struct Region {
    /// Pages whose histories are kept byte by byte.
    direct: u64,
    /// By the kind: sorted by place, lanes and block. No block is in two of one place and lanes.
    reads: IndexMap<Kind, Vec<Entry>, FxBuildHasher>,
    tables: Vec<Offsets>,
    entries: usize,
}

/// What is in the list of entries of a place already.
enum Found {
    /// This read.
    This,
    /// Nothing: it belongs here.
    Place(usize),
    /// Other lanes in no order with this hash.
    Other,
}

impl Region {
    /// Adds a read. `false`: it has no room.
    fn add(&mut self, kind: Kind, (block, mask): (u32, u32), offsets: &Offsets) -> bool {
        let each = kind.pattern == Pattern::Each;
        let place = if each { hash(mask, offsets) } else { u32::from(offsets[mask.trailing_zeros() as usize]) };
        let (tables, entries) = (&mut self.tables, self.reads.entry(kind).or_default());
        let same = |entry: &Entry| {
            let of = tables.get(entry.table as usize);
            of.is_none_or(|of| lanes(mask).all(|lane| of[lane as usize] == offsets[lane as usize]))
        };
        let at = match find(entries, (place, mask), block, same) {
            Found::This => return true,
            Found::Other => return false,
            Found::Place(at) => at,
        };
        let alike = |entry: &Entry| (entry.place, entry.lanes) == (place, mask);
        let before = at.checked_sub(1).filter(|&before| alike(&entries[before]));
        let follows = before.filter(|&before| entries[before].last.checked_add(1) == Some(block));
        let next = entries.get(at).copied().filter(alike);
        let precedes = next.filter(|next| block.checked_add(1) == Some(next.first));
        match (follows, precedes) {
            (Some(before), Some(next)) => {
                entries[before].last = next.last;
                entries.remove(at);
                self.entries -= 1;
            }
            (Some(before), None) => entries[before].last = block,
            (None, Some(_)) => entries[at].first = block,
            (None, None) => {
                let table = match (before.map(|before| entries[before]).or(next), each) {
                    (Some(near), _) => near.table,
                    (None, false) => u32::MAX,
                    (None, true) => {
                        tables.push(*offsets);
                        tables.len() as u32 - 1
                    }
                };
                if entries.len() == entries.capacity() {
                    // There are many short lists, and doubled ones would be half empty.
                    entries.reserve_exact(1 + entries.len() / 4);
                }
                entries.insert(at, Entry { place, lanes: mask, first: block, last: block, table });
                self.entries += 1;
            }
        }
        true
    }

    fn offsets(&self, kind: &Kind, entry: &Entry) -> Offsets {
        let mut offsets = [0; LANES];
        match kind.pattern {
            Pattern::Each => offsets = self.tables[entry.table as usize],
            Pattern::Strides { .. } => kind.pattern.offsets(entry.lanes, entry.place as u16, &mut offsets),
        }
        offsets
    }

    /// Takes some pages out of the list. Gives what was read there, block by block, and of each in
    /// the order of execution, where that matters.
    fn take(&mut self, start: u64, pages: u64, mut give: impl FnMut(&Deferred)) {
        self.direct |= pages;
        let page = |offset: u16| 1u64 << (offset >> PAGE);
        let mut met: Vec<(u32, u64, usize, Entry)> = Vec::new();
        let reads = std::mem::take(&mut self.reads);
        for (at, (kind, entries)) in reads.iter().enumerate() {
            for entry in entries {
                let offsets = self.offsets(kind, entry);
                if lanes(entry.lanes).any(|lane| page(offsets[lane as usize]) & pages != 0) {
                    met.extend((entry.first..=entry.last).map(|block| (block, kind.epoch, at, *entry)));
                }
            }
        }
        met.sort_by_key(|&(block, epoch, at, entry)| (block, epoch, at, entry.place));
        for (block, epoch, at, entry) in met {
            let Some((kind, _)) = reads.get_index(at) else { continue };
            let offsets = self.offsets(kind, &entry);
            let here = lanes(entry.lanes).filter(|&lane| page(offsets[lane as usize]) & pages != 0);
            let here = here.fold(0, |all, lane| all | 1 << lane);
            give(&Deferred {
                access: Access {
                    epoch,
                    block,
                    lanes: here,
                    site: kind.site,
                    warp: kind.warp,
                    flags: kind.flags,
                    reach: kind.size << 4,
                    marks: Access::EXACT,
                },
                floor: kind.floor,
                addresses: offsets.map(|offset| start | u64::from(offset)),
                size: u32::from(kind.size),
            });
        }
        self.reads = reads;
        self.drop_direct();
    }

    /// Leaves out what is of no page any more.
    fn drop_direct(&mut self) {
        if self.direct == u64::MAX {
            *self = Region { direct: u64::MAX, ..Region::default() };
            return;
        }
        let mut reads = std::mem::take(&mut self.reads);
        reads.retain(|kind, entries| {
            entries.retain(|entry| {
                let offsets = self.offsets(kind, entry);
                lanes(entry.lanes).any(|lane| self.direct >> (offsets[lane as usize] >> PAGE) & 1 == 0)
            });
            !entries.is_empty()
        });
        self.entries = reads.values().map(Vec::len).sum();
        self.reads = reads;
    }

    fn is_full(&self) -> bool {
        self.entries * size_of::<Entry>()
            + self.tables.len() * size_of::<Offsets>()
            + self.reads.len() * size_of::<(Kind, Vec<Entry>, u64)>()
            > MOST
    }

    fn bytes(&self) -> usize {
        let entries: usize = self.reads.values().map(Vec::capacity).sum();
        entries * size_of::<Entry>()
            + self.tables.capacity() * size_of::<Offsets>()
            // An entry of the map has its hash and, in its table, a place of four bytes and a
            // mark, of which up to half are free.
            + self.reads.capacity() * (size_of::<(Kind, Vec<Entry>, u64)>() + 2 * 5)
    }
}

fn hash(mask: u32, offsets: &Offsets) -> u32 {
    let mut hasher = FxHasher::default();
    lanes(mask).for_each(|lane| offsets[lane as usize].hash(&mut hasher));
    (hasher.finish() >> 32) as u32
}

fn find(entries: &[Entry], place: (u32, u32), block: u32, same: impl Fn(&Entry) -> bool) -> Found {
    let key = |entry: &Entry| ((entry.place, entry.lanes), entry.first);
    // Mostly the last one is of the block before, or goes before this one.
    let at = match entries.last() {
        Some(last) if key(last) <= (place, block) => entries.len(),
        _ => entries.partition_point(|entry| key(entry) <= (place, block)),
    };
    let alike = |entry: &&Entry| (entry.place, entry.lanes) == place;
    let before = at.checked_sub(1).map(|before| &entries[before]).filter(alike);
    let next = entries.get(at).filter(alike);
    if before.or(next).is_some_and(|near| !same(near)) {
        return Found::Other;
    }
    if before.is_some_and(|before| block <= before.last) { Found::This } else { Found::Place(at) }
}

/// The reads of global memory.
#[derive(Debug, Default)]
pub(crate) struct Log {
    index: FxHashMap<u64, usize>,
    regions: Vec<Region>,
    /// The region that was used last, and where it is.
    last: Option<(u64, usize)>,
}

impl Log {
    fn region(&mut self, number: u64) -> &mut Region {
        let at = match self.last {
            Some((last, at)) if last == number => at,
            _ => *self.index.entry(number).or_insert_with(|| {
                self.regions.push(Region::default());
                self.regions.len() - 1
            }),
        };
        self.last = Some((number, at));
        &mut self.regions[at]
    }

    /// Takes a plain read of threads with one clock. Returns the lanes that are left: those of
    /// pages whose histories are kept byte by byte, or for which there is no room.
    pub(crate) fn add(&mut self, now: &Access, mask: u32, addresses: &[u64; LANES], floor: u64) -> u32 {
        let mut offsets = [0; LANES];
        let first = addresses[mask.trailing_zeros() as usize];
        let (mut todo, mut left, mut apart) = (mask, 0, 0);
        for (to, &address) in offsets.iter_mut().zip(addresses) {
            *to = offset(address);
        }
        for lane in lanes(mask) {
            apart |= addresses[lane as usize] ^ first;
        }
        let add = |region: &mut Region, here: u32| {
            if region.is_full() {
                return false;
            }
            let kind = |pattern: Pattern| Kind {
                site: now.site,
                epoch: now.epoch,
                floor,
                pattern,
                warp: now.warp,
                flags: now.flags,
                size: now.reach >> 4,
            };
            let mut add = |pattern, lanes| region.add(kind(pattern), (now.block, lanes), &offsets);
            let whole = Pattern::of(here, &offsets);
            if let (Pattern::Each, Some(parts)) = (whole, Pattern::halves(here, &offsets)) {
                // An index that begins anew at the end of a table.
                return parts.into_iter().all(|(pattern, lanes)| add(pattern, lanes));
            }
            add(whole, here)
        };
        if apart >> REGION == 0 {
            let region = self.region(first >> REGION);
            if region.direct == 0 {
                return if add(region, mask) { 0 } else { mask };
            }
            if region.direct == u64::MAX {
                return mask;
            }
        }
        while todo != 0 {
            let number = addresses[todo.trailing_zeros() as usize] >> REGION;
            let region = self.region(number);
            let (mut of_it, mut here) = (0, 0);
            for lane in lanes(todo).filter(|&lane| addresses[lane as usize] >> REGION == number) {
                of_it |= 1 << lane;
                let is_direct = region.direct >> (offsets[lane as usize] >> PAGE) & 1;
                here |= (1 - is_direct as u32) << lane;
            }
            todo &= !of_it;
            left |= of_it & !here;
            if here != 0 && !add(region, here) {
                left |= here;
            }
        }
        left
    }

    /// Takes the pages of an access out of the list, and gives what was read there.
    pub(crate) fn settle(&mut self, mask: u32, addresses: &[u64; LANES], size: u64, mut give: impl FnMut(&Deferred)) {
        let mut done = None;
        for lane in lanes(mask) {
            let address = addresses[lane as usize];
            let pages = (address >> PAGE, address.saturating_add(size - 1) >> PAGE);
            if done != Some(pages) {
                done = Some(pages);
                self.settle_pages(pages, &mut give);
            }
        }
    }

    /// The same of some bytes.
    fn settle_pages(&mut self, (first, last): (u64, u64), give: &mut impl FnMut(&Deferred)) {
        for page in first..=last {
            let number = page >> (REGION - PAGE);
            let region = self.region(number);
            let bit = 1u64 << (page & 63);
            if region.direct & bit == 0 {
                let pages = if region.is_full() { !region.direct } else { bit };
                region.take(number << REGION, pages, &mut *give);
            }
        }
    }

    /// Takes the pages of some bytes out of the list that are in it, and gives what was read there.
    pub(crate) fn settle_bytes(&mut self, address: u64, size: u64, mut give: impl FnMut(&Deferred)) {
        let end = address.saturating_add(size.saturating_sub(1));
        let mut numbers: Vec<u64> = self.index.keys().copied().collect();
        numbers.retain(|number| (address >> REGION..=end >> REGION).contains(number));
        numbers.sort_unstable();
        for number in numbers {
            let first = (address >> PAGE).max(number << (REGION - PAGE));
            let last = (end >> PAGE).min(((number + 1) << (REGION - PAGE)) - 1);
            self.settle_pages((first, last), &mut give);
        }
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| (size_of::<Region>() + region.bytes()) as u64).sum()
    }
}
