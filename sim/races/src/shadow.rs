//! The history of every byte: which accesses later ones may still race with. Owns the cells and
//! their size, not what an access means.
//!
//! A page has cells of one size, which begins with that of the first access and is cut when a
//! smaller one comes, so that words cost a cell and bytes are still told apart.

use rustc_hash::FxHashMap;

/// Bytes of a page, as a power of two.
const PAGE: u32 = 10;

/// The largest cell, as a power of two.
const LARGEST: u32 = 4;

/// An access of lanes of a warp, or of all threads of some blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Access {
    pub(crate) epoch: u64,
    pub(crate) block: u32,
    /// The lanes; of a wide one the last block.
    pub(crate) lanes: u32,
    pub(crate) site: u32,
    /// The warp, or [`Access::WIDE`].
    pub(crate) warp: u8,
    pub(crate) flags: u8,
    /// Its scope in bits 0 and 1, its size from bit 4 on (as a power of two).
    pub(crate) reach: u8,
    /// A wide one is of no more than was there.
    pub(crate) exact: bool,
}

impl Access {
    pub(crate) const READ: u8 = 1;
    pub(crate) const WRITE: u8 = 2;
    pub(crate) const STRONG: u8 = 4;
    pub(crate) const VOLATILE: u8 = 8;
    pub(crate) const UNCHANGED: u8 = 16;
    pub(crate) const COPY: u8 = 32;
    /// All lanes of the warp executed it.
    pub(crate) const WHOLE: u8 = 64;
    /// The asynchronous proxy carries it out; the epoch is the number of the bulk operation.
    pub(crate) const BULK: u8 = 128;

    pub(crate) const WIDE: u8 = u8::MAX;

    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.warp == Access::WIDE
    }
}

/// Accesses of a cell that are kept one by one.
pub(crate) const KEPT: usize = 48;

/// Makes accesses of whole blocks from those of warps. Returns how many say more than was there.
pub(crate) fn widen(history: &mut Vec<Access>) -> u64 {
    history.sort_by_key(|access| (access.flags & !Access::WHOLE, access.reach, access.block));
    let mut inexact = 0;
    for force in [false, true] {
        if history.len() <= KEPT / 2 {
            break;
        }
        let before = std::mem::take(history);
        for access in before {
            let (last, exact) = if access.is_wide() { (access.lanes, access.exact) } else { (access.block, true) };
            let next = Access { lanes: last, warp: Access::WIDE, exact, ..access };
            let Some(kept) = history.last_mut() else {
                history.push(next);
                continue;
            };
            let alike = (kept.flags | Access::WHOLE, kept.reach) == (next.flags | Access::WHOLE, next.reach);
            let joins = next.block <= kept.lanes.saturating_add(1);
            let same = joins && kept.epoch == next.epoch;
            if !alike || kept.is(Access::COPY | Access::BULK) || !(same || force) {
                history.push(next);
                continue;
            }
            inexact += u64::from(!same);
            kept.exact &= next.exact && same;
            kept.lanes = kept.lanes.max(next.lanes);
            kept.epoch = kept.epoch.max(next.epoch);
        }
    }
    inexact
}

#[derive(Debug)]
struct Page {
    /// Bytes of a cell, as a power of two.
    cell: u32,
    cells: Vec<[Access; 2]>,
    /// What the cells have no room for. A list may be empty.
    more: FxHashMap<u32, Vec<Access>>,
}

impl Page {
    fn new(cell: u32) -> Page {
        Page { cell, cells: vec![[Access::default(); 2]; 1 << (PAGE - cell)], more: FxHashMap::default() }
    }

    fn cut(&mut self, cell: u32) {
        let parts = 1usize << (self.cell - cell);
        self.cells = self.cells.iter().flat_map(|cell| std::iter::repeat_n(*cell, parts)).collect();
        let more = std::mem::take(&mut self.more);
        for (at, list) in more {
            self.more.extend((0..parts as u32).map(|part| (at * parts as u32 + part, list.clone())));
        }
        self.cell = cell;
    }
}

/// The shadow of one memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    /// Where each page is in `pages`.
    index: FxHashMap<u64, usize>,
    pages: Vec<Page>,
    /// The page that was used last, and where it is.
    last: Option<(u64, usize)>,
    scratch: Vec<Access>,
    /// Accesses of blocks that say more than was there.
    pub(crate) inexact: u64,
}

impl Shadow {
    /// The page of a number, which gets cells of a size if it is new.
    fn page(&mut self, number: u64, cell: u32) -> &mut Page {
        let at = match self.last {
            Some((last, at)) if last == number => at,
            _ => *self.index.entry(number).or_insert_with(|| {
                self.pages.push(Page::new(cell));
                self.pages.len() - 1
            }),
        };
        self.last = Some((number, at));
        &mut self.pages[at]
    }

    /// The history of an access that is one cell of its page, if the cell has room for all of it.
    #[inline]
    pub(crate) fn cell(&mut self, address: u64, cell: u32) -> Option<&mut [Access; 2]> {
        let page = self.page(address >> PAGE, cell);
        if page.cell != cell {
            return None;
        }
        let index = ((address & ((1 << PAGE) - 1)) >> cell) as u32;
        if !page.more.is_empty() && page.more.get(&index).is_some_and(|more| !more.is_empty()) {
            return None;
        }
        page.cells.get_mut(index as usize)
    }

    /// All of the history of an access that is one cell of its page, if the page has such cells:
    /// the cell, and what it has no room for.
    pub(crate) fn whole(&mut self, address: u64, cell: u32) -> Option<(&mut [Access; 2], Option<&mut Vec<Access>>)> {
        let page = self.page(address >> PAGE, cell);
        if page.cell != cell {
            return None;
        }
        let index = ((address & ((1 << PAGE) - 1)) >> cell) as u32;
        let slots = page.cells.get_mut(index as usize)?;
        let full = slots.iter().all(|access| access.flags != 0);
        let more = if full && !page.more.is_empty() { page.more.get_mut(&index) } else { None };
        Some((slots, more))
    }

    /// Adds an access to the history of a cell that has no room for it.
    pub(crate) fn push(&mut self, address: u64, cell: u32, access: &Access) {
        let page = self.page(address >> PAGE, cell);
        let index = ((address & ((1 << PAGE) - 1)) >> page.cell) as u32;
        page.more.entry(index).or_default().push(*access);
    }

    /// Goes through the histories of some bytes. `update` gets each as it is, with its address, and
    /// leaves what is to be kept.
    pub(crate) fn update(&mut self, address: u64, size: u64, mut update: impl FnMut(u64, &mut Vec<Access>)) {
        let cell = (address | size).trailing_zeros().min(LARGEST);
        let mut at = address;
        while at < address + size {
            let mut list = std::mem::take(&mut self.scratch);
            let mut inexact = 0;
            let page = self.page(at >> PAGE, cell);
            if page.cell > cell {
                page.cut(cell);
            }
            let end = (address + size).min(((at >> PAGE) + 1) << PAGE);
            let within = |at: u64| ((at & ((1 << PAGE) - 1)) >> page.cell) as u32;
            let (first, last) = (within(at), within(end - 1));
            for index in first..=last {
                let slot = &mut page.cells[index as usize];
                list.clear();
                list.extend(slot.iter().filter(|access| access.flags != 0));
                if !page.more.is_empty()
                    && let Some(more) = page.more.get(&index)
                {
                    list.extend(more);
                }
                let had_more = list.len() > 2;
                update((at & !((1 << PAGE) - 1)) + (u64::from(index) << page.cell), &mut list);
                if list.len() > KEPT {
                    inexact += widen(&mut list);
                }
                for (to, from) in slot.iter_mut().zip(list.iter().copied().chain(std::iter::repeat(Access::default())))
                {
                    *to = from;
                }
                if list.len() > 2 {
                    let more = page.more.entry(index).or_default();
                    more.clear();
                    more.extend(&list[2..]);
                } else if had_more {
                    page.more.remove(&index);
                }
            }
            self.scratch = list;
            self.inexact += inexact;
            at = end;
        }
    }

    /// Forgets the histories of some bytes.
    pub(crate) fn forget(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        let mut at = address;
        while at < end {
            let next = (((at >> PAGE) + 1) << PAGE).min(end);
            if self.index.contains_key(&(at >> PAGE)) {
                self.update(at, next - at, |_, history| history.clear());
            }
            at = next;
        }
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let page = |page: &Page| {
            let more: usize = page.more.values().map(Vec::len).sum();
            ((page.cells.len() * 2 + more) * size_of::<Access>()) as u64
        };
        self.pages.iter().map(page).sum()
    }
}
