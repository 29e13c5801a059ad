//! The history of every byte: which accesses later ones may still race with. Owns the cells and
//! their size, not what an access means.
//!
//! A page has cells of one size, which begins with that of the first access and is cut when a
//! smaller one comes, so that words cost a cell and bytes are still told apart. Cells are kept
//! together in lines as long as whole warps access them (`line`).

mod access;
mod line;

use rustc_hash::FxHashMap;

use access::widen;
pub(crate) use access::{Access, KEPT, STEP, is_long, is_too_long};
pub(crate) use line::{CELLS, Line, Piece, Spread, Steps};

/// Bytes of a page, as a power of two.
const PAGE: u32 = 10;

/// The largest cell, as a power of two.
const LARGEST: u32 = 4;

/// What a cell has no room for.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) all: Vec<Access>,
    /// These are plain reads in the order of their blocks: those of the newest block come last.
    pub(crate) in_order: bool,
}

impl List {
    fn push(&mut self, access: &Access) {
        let last = self.all.last();
        self.in_order = access.flags & !Access::WHOLE == Access::READ
            && last.is_none_or(|last| self.in_order && last.last_block() <= access.block);
        self.all.push(*access);
    }

    pub(crate) fn clear(&mut self) {
        self.set(&[]);
    }

    fn set(&mut self, accesses: &[Access]) {
        self.all.clear();
        accesses.iter().for_each(|access| self.push(access));
    }
}

#[derive(Debug)]
pub(crate) struct Page {
    /// Bytes of a cell, as a power of two.
    cell: u32,
    lines: Vec<Line>,
    /// What cells have no room for. A list may be empty.
    lists: Vec<List>,
    /// The number of each cell's list, from 1; empty as long as no cell has one.
    list_of: Vec<u16>,
}

impl Page {
    fn new(cell: u32) -> Page {
        let lines = (0..(1 << (PAGE - cell)) / CELLS).map(|_| Line::default()).collect();
        Page { cell, lines, lists: Vec::new(), list_of: Vec::new() }
    }

    /// The line of a cell.
    #[inline]
    fn line(&mut self, index: u32) -> &mut Line {
        &mut self.lines[(index / CELLS) as usize]
    }

    /// The accesses of a cell that are kept in it; empty ones come last.
    #[inline]
    pub(crate) fn slots(&mut self, index: u32) -> &mut [Access; 2] {
        let line = (index / CELLS) as usize;
        if !self.lines[line].is_cut() {
            self.cut_line(line);
        }
        self.lines[line].slots(index)
    }

    /// Makes cells of a line.
    #[cold]
    fn cut_line(&mut self, line: usize) {
        let whole = std::mem::replace(&mut self.lines[line], Line::of_cells());
        let mut history = Vec::new();
        for cell in 0..CELLS {
            history.clear();
            whole.history(cell, &mut history);
            if !history.is_empty() {
                self.refill(line as u32 * CELLS + cell, &history);
            }
        }
    }

    /// Adds the history of a cell to a list.
    fn history(&self, index: u32, history: &mut Vec<Access>) {
        self.lines[(index / CELLS) as usize].history(index % CELLS, history);
        if let Some(at) = self.list_number(index) {
            history.extend(&self.lists[at].all);
        }
    }

    /// Whether a cell has no room for all of its history.
    #[inline]
    pub(crate) fn has_more(&self, index: u32) -> bool {
        self.list_number(index).is_some_and(|at| !self.lists[at].all.is_empty())
    }

    /// All of the history of a cell: the cell, and what it has no room for.
    #[inline]
    pub(crate) fn whole(&mut self, index: u32) -> (&mut [Access; 2], Option<&mut List>) {
        let line = (index / CELLS) as usize;
        if !self.lines[line].is_cut() {
            self.cut_line(line);
        }
        let slots = self.lines[line].slots(index);
        let full = slots[1].flags != 0;
        let number = if full { self.list_of.get(index as usize).copied().unwrap_or(0) } else { 0 };
        let more = usize::from(number).checked_sub(1).and_then(|at| self.lists.get_mut(at));
        (slots, more)
    }

    /// Adds an access to the history of a cell that has no room for it.
    pub(crate) fn push(&mut self, index: u32, access: &Access) {
        self.list(index).push(access);
    }

    /// Makes a history what a list says. True.
    pub(crate) fn refill(&mut self, index: u32, history: &[Access]) -> bool {
        for (at, slot) in self.slots(index).iter_mut().enumerate() {
            *slot = history.get(at).copied().unwrap_or_default();
        }
        let rest = history.get(2..).unwrap_or_default();
        if !rest.is_empty() || self.list_number(index).is_some() {
            self.list(index).set(rest);
        }
        true
    }

    #[inline]
    fn list_number(&self, index: u32) -> Option<usize> {
        usize::from(self.list_of.get(index as usize).copied().unwrap_or(0)).checked_sub(1)
    }

    /// The list of a cell, which gets one.
    fn list(&mut self, index: u32) -> &mut List {
        if self.list_of.is_empty() {
            self.list_of = vec![0; 1 << (PAGE - self.cell)];
        }
        let number = &mut self.list_of[index as usize];
        if *number == 0 {
            self.lists.push(List { all: Vec::with_capacity(6), in_order: true });
            // A page has no more than 1024 cells.
            *number = self.lists.len() as u16;
        }
        &mut self.lists[usize::from(*number) - 1]
    }

    fn cut(&mut self, cell: u32) {
        let parts = 1u32 << (self.cell - cell);
        let whole = std::mem::replace(self, Page::new(cell));
        let mut history = Vec::new();
        for at in 0..1 << (PAGE - whole.cell) {
            history.clear();
            whole.history(at, &mut history);
            if !history.is_empty() {
                for part in 0..parts {
                    self.refill(at * parts + part, &history);
                }
            }
        }
    }

    /// Bytes that it takes.
    fn bytes(&self) -> usize {
        let lines: usize = self.lines.iter().map(Line::bytes).sum();
        let more: usize = self.lists.iter().map(|list| list.all.capacity()).sum();
        lines + more * size_of::<Access>() + self.lists.len() * size_of::<List>() + self.list_of.len() * 2
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
        let cell = self.cell;
        let page = self.page(address);
        let index = ((address & ((1 << PAGE) - 1)) >> cell) as u32;
        (page.cell == cell).then_some((page, index))
    }

    /// The page of an address and its cells there, if none of them is larger than that size.
    #[inline]
    pub(crate) fn cells_at(&mut self, address: u64) -> Option<(&mut Page, std::ops::Range<u32>)> {
        let cell = self.cell;
        let page = self.page(address);
        let first = ((address & ((1 << PAGE) - 1)) >> page.cell) as u32;
        let part = cell.checked_sub(page.cell)?;
        Some((page, first..first + (1 << part)))
    }

    /// The size of cells at an address, as a power of two.
    #[inline]
    pub(crate) fn cell_at(&mut self, address: u64) -> u32 {
        self.page(address).cell
    }

    /// The line of an address, if it is not cut and has cells of a size.
    #[inline]
    pub(crate) fn line(&mut self, address: u64, cell: u32) -> Option<&mut Line> {
        let page = self.page(address);
        let index = ((address & ((1 << PAGE) - 1)) >> cell) as u32;
        (page.cell == cell).then(|| page.line(index)).filter(|line| !line.is_cut())
    }

    #[inline]
    fn page(&mut self, address: u64) -> &mut Page {
        let number = address >> PAGE;
        let at = match self.at {
            Some((last, at)) if last == number => at,
            _ => {
                self.shadow.page(number, self.cell);
                let at = self.shadow.last.map_or(0, |(_, at)| at);
                self.at = Some((number, at));
                at
            }
        };
        &mut self.shadow.pages[at]
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

    /// Goes through the histories of some bytes. `update` gets each as it is, with the address and
    /// the size of its cell (as a power of two), and leaves what is to be kept.
    pub(crate) fn update(&mut self, address: u64, size: u64, mut update: impl FnMut((u64, u32), &mut Vec<Access>)) {
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
                list.clear();
                page.history(index, &mut list);
                let had_more = list.len() > 2;
                let cell = (at & !((1 << PAGE) - 1)) + (u64::from(index) << page.cell);
                update((cell, page.cell), &mut list);
                if is_long(list.len()) {
                    inexact += widen(&mut list);
                }
                let slot = page.slots(index);
                for (to, from) in slot.iter_mut().zip(list.iter().copied().chain(std::iter::repeat(Access::default())))
                {
                    *to = from;
                }
                if list.len() > 2 {
                    page.list(index).set(&list[2..]);
                } else if had_more {
                    page.list(index).set(&[]);
                }
            }
            self.scratch = list;
            self.inexact += inexact;
            at = end;
        }
    }

    /// Looks at every access that is kept, with the address of its cell.
    pub(crate) fn each(&self, mut look: impl FnMut(u64, &Access)) {
        let mut history = Vec::new();
        for (&number, &at) in &self.index {
            let page = &self.pages[at];
            for index in 0..1 << (PAGE - page.cell) {
                let address = (number << PAGE) + (u64::from(index) << page.cell);
                history.clear();
                page.history(index, &mut history);
                history.iter().for_each(|access| look(address, access));
            }
        }
    }

    /// Forgets the histories of some bytes.
    pub(crate) fn forget(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        let mut at = address;
        while at < end {
            let next = (((at >> PAGE) + 1) << PAGE).min(end);
            if let Some(&page) = self.index.get(&(at >> PAGE)).filter(|_| next - at == 1 << PAGE) {
                self.pages[page] = Page::new(self.pages[page].cell);
            } else if self.index.contains_key(&(at >> PAGE)) {
                self.update(at, next - at, |_, history| history.clear());
            }
            at = next;
        }
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.pages.iter().map(|page| page.bytes() as u64).sum()
    }
}
