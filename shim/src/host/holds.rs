//! Pages of memory that devices use in place, and that the CPU may not touch meanwhile.
//!
//! Owns the table of held ranges and of the pages in them that are open for now. Lives in static
//! memory without allocation, because a signal handler uses it. Only for memory that devices reach
//! whatever rights the program has to it (`crate::real::reach`). Does not know why a range is held
//! ([`super::in_place`]) nor what a touch was ([`super::held_touches`]).
//!
//! A page is open while one instruction of a thread touches it ([`super::single_step`]); until the
//! next call where that cannot be or has been done often enough; and until the next call of the
//! same thread when that has given its address to the kernel, which would answer `EFAULT`.
//!
//! Changing a page's protection splits its mapping, and Linux allows 65,530 mappings per process.
//! If the mappings are not merged again ([`be_sparing`]), all holds end permanently after some
//! thousand pages.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::page_protection::{PROTECTED, mask};
use super::unwatched;
use crate::arch::page_size;
use crate::runtime::lent_memory;

const HOLDS: usize = 512;
const OPEN: usize = 256;
const COUNTERS: usize = 1024;
/// Touches of one page that are stepped over until it is left open until the next call: the first
/// of them while there is time, the second afterwards.
const STEPS: u32 = 64;
const FEW_STEPS: u32 = 2;
/// Steps of a run before it has to be sparing (at some 10 to 20 microseconds each): of the first
/// touches of each page, and of those in loops over a page that come after them.
const MANY: u64 = 1 << 15;
const MANY_IN_LOOPS: u64 = 1 << 15;
/// Calls into the kernel whose buffers are known at a time.
const GIVEN: usize = 64;
/// Pages that may become mappings of their own.
const PIECES: u32 = 1 << 13;
/// A page is known by this many bits.
const SEEN: usize = 1 << 16;

/// What the CPU may not do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Everything is allowed.
    Free,
    /// Loads are allowed.
    NoStores,
    /// Nothing is.
    Nothing,
}

impl Level {
    /// Whether a touch is against it.
    pub fn forbids(self, writes: bool) -> bool {
        self == Self::Nothing || (self == Self::NoStores && writes)
    }

    fn rights(self) -> i32 {
        match self {
            Self::Free => libc::PROT_READ | libc::PROT_WRITE,
            Self::NoStores => libc::PROT_READ,
            Self::Nothing => libc::PROT_NONE,
        }
    }
}

#[derive(Clone, Copy)]
struct Hold {
    /// Its number; 0: never used.
    id: u32,
    live: bool,
    start: u64,
    end: u64,
    level: Level,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    No,
    /// Threads step over an instruction that touches it: so many.
    Stepped(u32),
    /// Until the next call.
    Call,
}

#[derive(Clone, Copy)]
struct OpenPage {
    at: u64,
    why: Why,
}

/// Pages whose address the kernel may have, from the thread of this number in the system: until its
/// next call.
#[derive(Clone, Copy)]
struct Given {
    /// 0 with `end`: none.
    start: u64,
    end: u64,
    thread: i32,
}

struct Pages {
    holds: [Hold; HOLDS],
    given: [Given; GIVEN],
    next_given: usize,
    /// Which pages were opened by themselves, by a part of their numbers.
    seen: [u64; SEEN / 64],
    pieces: u32,
    next: usize,
    open: [OpenPage; OPEN],
    /// Page, the work that was newest, touches since.
    counters: [(u64, u32, u32); COUNTERS],
    generation: u32,
}

struct Table {
    pages: UnsafeCell<Pages>,
    locked: AtomicBool,
}

// SAFETY: pages are used with the lock held only.
unsafe impl Sync for Table {}

static TABLE: Table = Table {
    pages: UnsafeCell::new(Pages {
        holds: [Hold { id: 0, live: false, start: 0, end: 0, level: Level::Free }; HOLDS],
        given: [Given { start: 0, end: 0, thread: 0 }; GIVEN],
        next_given: 0,
        seen: [0; SEEN / 64],
        pieces: 0,
        next: 0,
        open: [OpenPage { at: 0, why: Why::No }; OPEN],
        counters: [(0, 0, 0); COUNTERS],
        generation: 0,
    }),
    locked: AtomicBool::new(false),
};

/// Pages that are open until a call.
#[unsafe(link_section = "streamsan_state")]
pub static OPEN_PAGES: AtomicU32 = AtomicU32::new(0);
static STEPPED: AtomicU64 = AtomicU64::new(0);
static STEPPED_IN_LOOPS: AtomicU64 = AtomicU64::new(0);
/// How often a page was left open because it had been stepped over too often.
static LEFT_OPEN: AtomicU64 = AtomicU64::new(0);
static SPARING: AtomicBool = AtomicBool::new(false);
/// Nothing is held any more; holds that were asked for since, and one.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// The table, for `run`. Signals of this thread wait meanwhile: one whose handler touches a held
/// page would wait for itself.
fn with_pages<T>(run: impl FnOnce(&mut Pages) -> T) -> T {
    let mut before = 0_u64;
    mask(libc::SIG_SETMASK, Some(!0), Some(&mut before));
    while TABLE.locked.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::hint::spin_loop();
    }
    // SAFETY: the lock is held.
    let result = run(unsafe { &mut *TABLE.pages.get() });
    TABLE.locked.store(false, Ordering::Release);
    mask(libc::SIG_SETMASK, Some(before), None);
    result
}

fn protect(start: u64, end: u64, level: Level) -> bool {
    let mut done = true;
    unwatched::around(start, end, |from, to| {
        let (at, len) = (from as *mut libc::c_void, (to - from) as usize);
        // SAFETY: memory that the driver allocated or the program registered, mapped until a call
        // that we see takes it away; a range that is gone is refused.
        done &= unsafe { libc::syscall(libc::SYS_mprotect, at, len, level.rights()) == 0 };
    });
    done
}

/// Pages may remain mappings of their own from now on.
pub fn be_sparing() {
    SPARING.store(true, Ordering::Relaxed);
}

/// How often a page was left open for its touches were too many.
pub fn left_open() -> u64 {
    LEFT_OPEN.load(Ordering::Relaxed)
}

/// Whether a thread may step over this touch of a page, which is the page's so many-th.
fn may_step(count: u32) -> bool {
    let (steps, most) = if count > STEPS { (&STEPPED_IN_LOOPS, MANY_IN_LOOPS) } else { (&STEPPED, MANY) };
    let may = count <= FEW_STEPS || steps.load(Ordering::Relaxed) < most;
    if may { steps } else { &LEFT_OPEN }.fetch_add(1, Ordering::Relaxed);
    may
}

/// How many pieces of work were not watched because nothing is held any more.
pub fn ended() -> u64 {
    ENDED.load(Ordering::Relaxed)
}

impl Pages {
    fn level(&self, page: u64) -> Level {
        let holds = self.holds.iter().filter(|h| h.live && h.start <= page && page < h.end);
        holds.map(|h| h.level).max().unwrap_or(Level::Free)
    }

    fn opened(&mut self, page: u64) -> Option<&mut OpenPage> {
        self.open.iter_mut().find(|open| open.at == page && open.why != Why::No)
    }

    /// Gives all pages of a range the protection that the holds ask for. False: somewhere that
    /// cannot be.
    fn apply(&self, start: u64, end: u64) -> bool {
        let (mut at, mut done) = (start, true);
        while at < end {
            let open = self.open.iter().any(|open| open.at == at && open.why != Why::No)
                || self.given.iter().any(|given| given.start <= at && at < given.end);
            let bounds = self.holds.iter().filter(|h| h.live).flat_map(|h| [h.start, h.end]);
            let pages =
                self.open.iter().filter(|open| open.why != Why::No).flat_map(|open| [open.at, open.at + page_size()]);
            let given = self.given.iter().flat_map(|given| [given.start, given.end]);
            let next = bounds.chain(pages).chain(given).filter(|bound| *bound > at).min().unwrap_or(end).min(end);
            done &= protect(at, next, if open { Level::Free } else { self.level(at) });
            at = next;
        }
        done
    }

    /// As [`Pages::apply`], where anything is held.
    fn apply_held(&mut self, start: u64, end: u64) {
        for index in 0..HOLDS {
            let hold = self.holds[index];
            let (from, to) = (start.max(hold.start), end.min(hold.end));
            if hold.live && from < to && !self.apply(from, to) {
                return self.end();
            }
        }
    }

    /// Counts a page that is opened by itself. False: there have been too many.
    fn may_become_piece(&mut self, page: u64) -> bool {
        let bit = (page / page_size()) as usize % SEEN;
        let (word, mask) = (&mut self.seen[bit / 64], 1 << (bit % 64));
        if *word & mask == 0 {
            *word |= mask;
            self.pieces += 1;
        }
        self.pieces <= PIECES || !SPARING.load(Ordering::Relaxed)
    }

    /// Gives everything back, for good. Whole ranges are always accepted: they join what was taken
    /// apart.
    fn end(&mut self) {
        ENDED.fetch_add(1, Ordering::Relaxed);
        for hold in self.holds.iter_mut().filter(|h| h.live) {
            hold.live = false;
            PROTECTED.fetch_sub(1, Ordering::AcqRel);
            protect(hold.start, hold.end, Level::Free);
        }
    }

    fn open(&mut self, page: u64, why: Why) {
        if !self.may_become_piece(page) || !protect(page, page + page_size(), Level::Free) {
            return self.end();
        }
        let stays = !matches!(why, Why::Stepped(_));
        if let Some(known) = self.opened(page) {
            if stays {
                let counted = known.why == Why::Call;
                known.why = why;
                OPEN_PAGES.fetch_add(u32::from(!counted), Ordering::AcqRel);
            }
            return;
        }
        // Without room the page stays open until a hold of it begins or ends.
        if let Some(free) = self.open.iter_mut().find(|open| open.why == Why::No) {
            *free = OpenPage { at: page, why };
            OPEN_PAGES.fetch_add(u32::from(stays), Ordering::AcqRel);
        }
    }

    fn take_back(&mut self, slot: usize) {
        OPEN_PAGES.fetch_sub(u32::from(self.given[slot].end != 0), Ordering::AcqRel);
        self.given[slot] = Given { start: 0, end: 0, thread: 0 };
    }

    /// Counts a touch of a page since the newest work began.
    fn count(&mut self, page: u64) -> u32 {
        let counter = &mut self.counters[(page / page_size()) as usize % COUNTERS];
        if (counter.0, counter.1) != (page, self.generation) {
            *counter = (page, self.generation, 0);
        }
        counter.2 += 1;
        counter.2
    }
}

/// Takes the CPU's access to these pages away until [`release`] of this number, which is not 0.
/// False: there is no room.
pub fn hold(id: u32, start: u64, end: u64, level: Level) -> bool {
    if lent_memory::is_lent(start, end) {
        return false;
    }
    if unwatched::overlaps(start, end) {
        unwatched::count_missed();
    }
    with_pages(|pages| {
        if ENDED.load(Ordering::Relaxed) > 0 {
            ENDED.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let first = pages.next;
        let Some(slot) = (0..HOLDS).map(|i| (first + i) % HOLDS).find(|slot| !pages.holds[*slot].live) else {
            return false;
        };
        pages.next = slot + 1;
        pages.generation = pages.generation.wrapping_add(1);
        pages.holds[slot] = Hold { id, live: true, start, end, level };
        PROTECTED.fetch_add(1, Ordering::AcqRel);
        if pages.apply(start, end) {
            return true;
        }
        // Memory whose pages are no pages of this size, or that is gone.
        pages.holds[slot].live = false;
        PROTECTED.fetch_sub(1, Ordering::AcqRel);
        pages.apply(start, end);
        false
    })
}

/// The work behind a hold is over.
pub fn release(id: u32) {
    with_pages(|pages| {
        let Some(hold) = pages.holds.iter_mut().find(|h| h.live && h.id == id) else { return };
        hold.live = false;
        let (start, end) = (hold.start, hold.end);
        PROTECTED.fetch_sub(1, Ordering::AcqRel);
        pages.apply(start, end);
    });
}

/// New work of a kind that is held already: pages may be stepped over as often again.
pub fn renew() {
    with_pages(|pages| pages.generation = pages.generation.wrapping_add(1));
}

/// Leaves these pages to the program: they are accessible now, and never protected again.
pub fn let_go(start: u64, end: u64) {
    with_pages(|pages| {
        for index in 0..HOLDS {
            let hold = pages.holds[index];
            if hold.live && hold.start < end && start < hold.end {
                protect(start.max(hold.start), end.min(hold.end), Level::Free);
            }
        }
        let before = unwatched::count();
        if !unwatched::add(start, end) {
            return pages.end();
        }
        // Each counts as open pages: what the program touches there is not seen.
        OPEN_PAGES.fetch_add(unwatched::count().wrapping_sub(before), Ordering::AcqRel);
    });
}

/// The memory goes away, and with it what was said of its pages. `gone`: with its mapping.
pub fn forget(start: u64, end: u64, gone: bool) {
    with_pages(|pages| {
        if gone {
            let before = unwatched::count();
            unwatched::remove(start, end);
            OPEN_PAGES.fetch_sub(before - unwatched::count(), Ordering::AcqRel);
        }
        for open in pages.open.iter_mut().filter(|open| open.why != Why::No && start <= open.at && open.at < end) {
            OPEN_PAGES.fetch_sub(u32::from(!matches!(open.why, Why::Stepped(_))), Ordering::AcqRel);
            open.why = Why::No;
        }
    });
}

/// Closes the pages that were open until the next call, and those that the thread of this number
/// in the system has given to the kernel: it is back.
#[cold]
pub fn close(thread: i32) {
    with_pages(|pages| {
        for index in 0..OPEN {
            let page = pages.open[index];
            if page.why == Why::Call {
                pages.open[index].why = Why::No;
                OPEN_PAGES.fetch_sub(1, Ordering::AcqRel);
                pages.apply(page.at, page.at + page_size());
            }
        }
        for index in 0..GIVEN {
            let given = pages.given[index];
            if given.end != 0 && given.thread == thread {
                pages.take_back(index);
                pages.apply_held(given.start, given.end);
            }
        }
    });
}

/// The pages that are open until a call, as ranges: what the program touches there is not seen. Of
/// those that the kernel was given: by this thread, or by any.
pub fn each_open(thread: Option<i32>, mut each: impl FnMut(u64, u64)) {
    if OPEN_PAGES.load(Ordering::Relaxed) == 0 {
        return;
    }
    /// So many at a time: the thread's stack may be small.
    const PART: usize = 32;
    unwatched::each(&mut each);
    for first in (0..OPEN + GIVEN).step_by(PART) {
        let mut part = [(0, 0); PART];
        with_pages(|pages| {
            for (index, found) in part.iter_mut().enumerate() {
                match pages.open.get(first + index) {
                    Some(open) if open.why == Why::Call => *found = (open.at, open.at + page_size()),
                    Some(_) => {}
                    None => {
                        let given = pages.given[first + index - OPEN];
                        if given.end != 0 && thread.is_none_or(|thread| thread == given.thread) {
                            *found = (given.start, given.end);
                        }
                    }
                }
            }
        });
        part.iter().filter(|found| found.1 != 0).for_each(|found| each(found.0, found.1));
    }
}

/// What holds a page: `None` when nothing does and nothing did of late.
pub fn level(address: u64) -> Option<Level> {
    let page = address & !(page_size() - 1);
    with_pages(|pages| {
        let level = if unwatched::overlaps(page, page + 1) { Level::Free } else { pages.level(page) };
        let known = pages.holds.iter().any(|h| h.id != 0 && h.start <= page && page < h.end);
        known.then_some(level)
    })
}

/// Whether any of these bytes is held against such a touch.
pub fn holds(start: u64, end: u64, writes: bool) -> bool {
    with_pages(|pages| pages.holds.iter().any(|h| h.live && h.level.forbids(writes) && h.start < end && start < h.end))
}

/// Opens the page of an address that a thread has touched. `step`: it can step over the
/// instruction. True: it shall, and call [`stepped`].
pub fn open(address: u64, step: bool) -> bool {
    let page = address & !(page_size() - 1);
    with_pages(|pages| {
        if !step || !may_step(pages.count(page)) {
            pages.open(page, Why::Call);
            return false;
        }
        match pages.opened(page) {
            Some(OpenPage { why: Why::Stepped(threads), .. }) => *threads += 1,
            Some(_) => return false,
            None => {
                pages.open(page, Why::Stepped(1));
                return pages.opened(page).is_some();
            }
        }
        if !protect(page, page + page_size(), Level::Free) {
            pages.end();
        }
        true
    })
}

/// A thread has stepped over its instruction.
pub fn stepped(page: u64) {
    with_pages(|pages| {
        let Some(open) = pages.opened(page) else { return };
        let Why::Stepped(threads) = open.why else { return };
        open.why = if threads > 1 { Why::Stepped(threads - 1) } else { Why::No };
        if threads == 1 && !pages.apply(page, page + page_size()) {
            pages.end();
        }
    });
}

/// Opens the pages of these bytes, and keeps them open when work that comes holds them: the kernel
/// gets their address from the thread of this number in the system.
pub fn give(start: u64, end: u64, thread: i32) {
    let (start, end) = (start & !(page_size() - 1), end.saturating_add(page_size() - 1) & !(page_size() - 1));
    with_pages(|pages| {
        // What has no room is forgotten: the longest ago.
        let same = |given: &Given| (given.start, given.end, given.thread) == (start, end, thread);
        let free = || pages.given.iter().position(|given| given.end == 0);
        let slot = pages.given.iter().position(same).or_else(free).unwrap_or(pages.next_given % GIVEN);
        pages.next_given = slot + 1;
        pages.take_back(slot);
        pages.given[slot] = Given { start, end, thread };
        OPEN_PAGES.fetch_add(1, Ordering::AcqRel);
        pages.apply_held(start, end);
    });
}
