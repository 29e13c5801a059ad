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

    #[inline(always)]
    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline(always)]
    pub(crate) fn is_wide(&self) -> bool {
        self.warp == Access::WIDE
    }

    /// Whether it stands for another one already, as one of whole blocks.
    pub(crate) fn includes(&self, other: &Access) -> bool {
        self.is_wide()
            && self.exact
            && (self.epoch, self.reach) == (other.epoch, other.reach)
            && (self.flags ^ other.flags) & !Access::WHOLE == 0
            && (self.block..=self.lanes).contains(&other.block)
    }
}

/// Accesses of a cell that are kept one by one.
const KEPT: usize = 48;

/// Where a history has got so many accesses more, it is tried to join those of different blocks.
const STEP: usize = 16;

/// Whether a history of that length is to be joined. Others may get an access more at no cost.
#[inline]
pub(crate) fn is_long(length: usize) -> bool {
    length > KEPT || length.is_multiple_of(STEP)
}

/// The same of a history in which all accesses are of warps of one block: of those none is joined
/// as long as there is room.
#[inline]
pub(crate) fn is_too_long(length: usize) -> bool {
    length > KEPT
}

/// Makes accesses of whole blocks from those of warps. Returns how many say more than was there.
fn widen(history: &mut Vec<Access>) -> u64 {
    // The newest one stays behind all others.
    let Some(last) = history.pop() else { return 0 };
    let inexact = widen_older(history, last.block);
    history.push(last);
    inexact
}

fn widen_older(history: &mut Vec<Access>, newest: u32) -> u64 {
    history.sort_by_key(|access| (access.flags & !Access::WHOLE, access.reach, access.block));
    if history.len() < KEPT {
        // Which threads of the newest block they are is told as long as there is room.
        join_blocks(history, false, |access| access.is_wide() || access.block != newest);
        return 0;
    }
    let mut inexact = 0;
    for force in [false, true] {
        if history.len() <= KEPT / 2 {
            break;
        }
        inexact += join_blocks(history, force, |_| true);
    }
    inexact
}

/// Joins neighbours in a history, of those accesses that may be joined.
fn join_blocks(history: &mut Vec<Access>, force: bool, may: impl Fn(&Access) -> bool) -> u64 {
    let wide = |access: &Access| {
        let (last, exact) = if access.is_wide() { (access.lanes, access.exact) } else { (access.block, true) };
        Access { lanes: last, warp: Access::WIDE, exact, ..*access }
    };
    let mut inexact = 0;
    let before = std::mem::take(history);
    for access in before {
        let Some(kept) = history.last_mut().filter(|kept| may(kept) && may(&access)) else {
            history.push(access);
            continue;
        };
        let (first, next) = (wide(kept), wide(&access));
        let alike = (first.flags | Access::WHOLE, first.reach) == (next.flags | Access::WHOLE, next.reach);
        let joins = next.block <= first.lanes.saturating_add(1);
        let same = joins && first.epoch == next.epoch;
        if !alike || first.is(Access::COPY | Access::BULK) || !(same || force) {
            history.push(access);
            continue;
        }
        inexact += u64::from(!same);
        *kept = Access {
            exact: first.exact && next.exact && same,
            lanes: first.lanes.max(next.lanes),
            epoch: first.epoch.max(next.epoch),
            ..first
        };
    }
    inexact
}

#[derive(Debug)]
pub(crate) struct Page {
    /// Bytes of a cell, as a power of two.
    cell: u32,
    cells: Vec<[Access; 2]>,
    /// What cells have no room for. A list may be empty.
    lists: Vec<Vec<Access>>,
    /// The number of each cell's list, from 1; empty as long as no cell has one.
    list_of: Vec<u16>,
}

impl Page {
    fn new(cell: u32) -> Page {
        Page { cell, cells: vec![[Access::default(); 2]; 1 << (PAGE - cell)], lists: Vec::new(), list_of: Vec::new() }
    }

    /// The accesses of a cell that are kept in it; empty ones come last.
    #[inline]
    pub(crate) fn slots(&mut self, index: u32) -> &mut [Access; 2] {
        &mut self.cells[index as usize]
    }

    /// Whether a cell has no room for all of its history.
    #[inline]
    pub(crate) fn has_more(&self, index: u32) -> bool {
        self.list_number(index).is_some_and(|at| !self.lists[at].is_empty())
    }

    /// All of the history of a cell: the cell, and what it has no room for.
    #[inline]
    pub(crate) fn whole(&mut self, index: u32) -> (&mut [Access; 2], Option<&mut Vec<Access>>) {
        let slots = &mut self.cells[index as usize];
        let full = slots[1].flags != 0;
        let number = if full { self.list_of.get(index as usize).copied().unwrap_or(0) } else { 0 };
        let more = usize::from(number).checked_sub(1).and_then(|at| self.lists.get_mut(at));
        (slots, more)
    }

    /// Adds an access to the history of a cell that has no room for it.
    pub(crate) fn push(&mut self, index: u32, access: &Access) {
        self.list(index).push(*access);
    }

    /// Makes a history what a list says. True.
    pub(crate) fn refill(&mut self, index: u32, history: &[Access]) -> bool {
        for (at, slot) in self.cells[index as usize].iter_mut().enumerate() {
            *slot = history.get(at).copied().unwrap_or_default();
        }
        let rest = history.get(2..).unwrap_or_default();
        if !rest.is_empty() || self.list_number(index).is_some() {
            let list = self.list(index);
            list.clear();
            list.extend_from_slice(rest);
        }
        true
    }

    #[inline]
    fn list_number(&self, index: u32) -> Option<usize> {
        usize::from(self.list_of.get(index as usize).copied().unwrap_or(0)).checked_sub(1)
    }

    /// The list of a cell, which gets one.
    fn list(&mut self, index: u32) -> &mut Vec<Access> {
        if self.list_of.is_empty() {
            self.list_of = vec![0; self.cells.len()];
        }
        let number = &mut self.list_of[index as usize];
        if *number == 0 {
            self.lists.push(Vec::with_capacity(6));
            // A page has no more than 1024 cells.
            *number = self.lists.len() as u16;
        }
        &mut self.lists[usize::from(*number) - 1]
    }

    fn cut(&mut self, cell: u32) {
        let parts = 1usize << (self.cell - cell);
        self.cells = self.cells.iter().flat_map(|cell| std::iter::repeat_n(*cell, parts)).collect();
        let (lists, list_of) = (std::mem::take(&mut self.lists), std::mem::take(&mut self.list_of));
        self.cell = cell;
        for (at, &number) in list_of.iter().enumerate().filter(|(_, number)| **number != 0) {
            for part in 0..parts {
                self.list((at * parts + part) as u32).clone_from(&lists[usize::from(number) - 1]);
            }
        }
    }
}

/// Finds cells of one size in a shadow, most of them in the page of the last one.
pub(crate) struct Cursor<'a> {
    shadow: &'a mut Shadow,
    cell: u32,
    /// The number of the page, and where it is.
    at: Option<(u64, usize)>,
}

impl Cursor<'_> {
    /// The page of an address and its cell there, if the page has cells of that size.
    #[inline]
    pub(crate) fn at(&mut self, address: u64) -> Option<(&mut Page, u32)> {
        let number = address >> PAGE;
        let at = match self.at {
            Some((last, at)) if last == number => at,
            _ => {
                self.shadow.page(number, self.cell);
                let at = self.shadow.last?.1;
                self.at = Some((number, at));
                at
            }
        };
        let page = &mut self.shadow.pages[at];
        let index = ((address & ((1 << PAGE) - 1)) >> self.cell) as u32;
        (page.cell == self.cell).then_some((page, index))
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

    /// Finds cells of one size.
    pub(crate) fn cursor(&mut self, cell: u32) -> Cursor<'_> {
        Cursor { shadow: self, cell, at: None }
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
                let slot = &page.cells[index as usize];
                list.clear();
                list.extend(slot.iter().filter(|access| access.flags != 0));
                if let Some(at) = page.list_number(index) {
                    list.extend(&page.lists[at]);
                }
                let had_more = list.len() > 2;
                update((at & !((1 << PAGE) - 1)) + (u64::from(index) << page.cell), &mut list);
                if is_long(list.len()) {
                    inexact += widen(&mut list);
                }
                let slot = &mut page.cells[index as usize];
                for (to, from) in slot.iter_mut().zip(list.iter().copied().chain(std::iter::repeat(Access::default())))
                {
                    *to = from;
                }
                if list.len() > 2 {
                    let more = page.list(index);
                    more.clear();
                    more.extend(&list[2..]);
                } else if had_more {
                    page.list(index).clear();
                }
            }
            self.scratch = list;
            self.inexact += inexact;
            at = end;
        }
    }

    /// Looks at every access that is kept, with the address of its cell.
    pub(crate) fn each(&self, mut look: impl FnMut(u64, &Access)) {
        for (&number, &at) in &self.index {
            let page = &self.pages[at];
            for (index, slots) in page.cells.iter().enumerate() {
                let address = (number << PAGE) + ((index as u64) << page.cell);
                let more = page.list_number(index as u32).map_or(&[][..], |list| &page.lists[list]);
                let all = slots.iter().filter(|access| access.flags != 0).chain(more);
                all.for_each(|access| look(address, access));
            }
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
            let more: usize = page.lists.iter().map(Vec::len).sum();
            ((page.cells.len() * 2 + more) * size_of::<Access>()) as u64
        };
        self.pages.iter().map(page).sum()
    }
}
