//! Pages that the CPU may not touch while a copy uses them (`--host-accesses`): what is protected,
//! and what touches were seen.
//!
//! Owns the table of protected ranges and the queue of touches. Both live in static memory without
//! allocation, because they are used in a signal handler that may have interrupted anything
//! ([`super::sigsegv`]). The device is not affected by `mprotect`.
//!
//! Only memory that is readable and writable as a whole is protected, so giving access back is
//! always the same. A range that was given back stays in the table as *retired* for a while:
//! another thread may be on its way into the handler because of it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use trace::Region;

use super::awaited::AwaitedWords;
use super::unwatched;
use crate::arch::page_size;
use crate::runtime::{guard, lent_memory, lifecycle, thread_state};
use crate::stack::frames;
use crate::stack::frames::{Depth, Frames};

const RANGES: usize = 256;
const TOUCHES: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Protected,
    Retired,
    /// Its pages are held for other reasons ([`super::holds`]). What the copy waits for is asked at
    /// touches of them.
    Noted,
}

#[derive(Clone, Copy)]
struct Range {
    state: State,
    /// Pages.
    start: u64,
    end: u64,
    /// The copy's bytes. What else lies on these pages does not matter.
    region: Region,
    /// The copy writes, so that the CPU may not even read.
    writes: bool,
    watch: u32,
    /// What the copy waits for.
    awaits: AwaitedWords,
}

impl Range {
    const FREE: Self = Self {
        state: State::Free,
        start: 0,
        end: 0,
        region: Region { start: 0, width: 0, height: 0, depth: 0, pitch: 0, slice_pitch: 0, array: trace::ArrayId(0) },
        writes: false,
        watch: 0,
        awaits: AwaitedWords::NONE,
    };

    /// Whether the copy uses any byte from `start` to `end`.
    fn uses(&self, start: u64, end: u64) -> bool {
        let r = &self.region;
        if end <= r.start || start >= r.end() {
            return false;
        }
        if (r.height <= 1 && r.depth <= 1) || r.pitch == 0 || end - start > r.pitch {
            return true;
        }
        let within = |at: u64| {
            let at = at - r.start;
            let line = if r.depth > 1 && r.slice_pitch > 0 { at % r.slice_pitch } else { at };
            line % r.pitch < r.width && line / r.pitch < u64::from(r.height)
        };
        within(start.max(r.start)) || within((end - 1).min(r.end() - 1))
    }
}

struct Table {
    ranges: UnsafeCell<[Range; RANGES]>,
    next: AtomicU32,
    locked: AtomicBool,
}

// SAFETY: ranges are used with the lock held only.
unsafe impl Sync for Table {}

static TABLE: Table =
    Table { ranges: UnsafeCell::new([Range::FREE; RANGES]), next: AtomicU32::new(0), locked: AtomicBool::new(false) };

/// Ranges that are protected now. Read by naked code.
pub static PROTECTED: AtomicU32 = AtomicU32::new(0);

/// Ranges that are noted and not protected.
static NOTED: AtomicU32 = AtomicU32::new(0);

/// Touches that wait to be logged.
#[unsafe(link_section = "streamsan_state")]
pub static WAITING: AtomicU32 = AtomicU32::new(0);

/// Touches for which the queue had no room.
pub static LOST: AtomicU64 = AtomicU64::new(0);

/// A touch of the CPU.
pub struct PageTouch {
    state: AtomicU8,
    /// The watch of the copy.
    pub watch: u32,
    /// The address.
    pub address: u64,
    /// Whether it was a store.
    pub writes: bool,
    /// What the copy waits for was there.
    pub waits_met: bool,
    /// The number of the thread, as [`guard`] keeps it.
    pub thread: u32,
    /// Where.
    pub frames: Frames,
}

const EMPTY: u8 = 0;
const FILLING: u8 = 1;
const FULL: u8 = 2;

struct Queue([UnsafeCell<PageTouch>; TOUCHES]);

// SAFETY: a touch belongs to who has moved its state on.
unsafe impl Sync for Queue {}

static QUEUE: Queue = Queue(
    [const {
        UnsafeCell::new(PageTouch {
            state: AtomicU8::new(EMPTY),
            watch: 0,
            address: 0,
            writes: false,
            waits_met: false,
            thread: 0,
            frames: Frames::new(),
        })
    }; TOUCHES],
);

/// The table, for `run`. Signals of this thread wait meanwhile: one whose handler touches a
/// protected page would wait for itself.
fn with_ranges<T>(run: impl FnOnce(&mut [Range; RANGES]) -> T) -> T {
    let mut before = 0_u64;
    mask(libc::SIG_SETMASK, Some(!0), Some(&mut before));
    while TABLE.locked.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::hint::spin_loop();
    }
    // SAFETY: the lock is held.
    let result = run(unsafe { &mut *TABLE.ranges.get() });
    TABLE.locked.store(false, Ordering::Release);
    mask(libc::SIG_SETMASK, Some(before), None);
    result
}

/// Changes the signal mask by a plain system call, past every wrapper.
pub(super) fn mask(how: i32, set: Option<u64>, old: Option<&mut u64>) {
    let set = set.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let old = old.map_or(std::ptr::null_mut(), std::ptr::from_mut);
    // SAFETY: both are null or point to the 8 bytes of the kernel's signal set.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, set, old, 8) };
}

fn access(range: &Range, protection: i32) -> bool {
    let len = (range.end - range.start) as usize;
    // SAFETY: the range is pinned memory of the program, mapped until a call that we see takes it
    // away.
    unsafe { libc::syscall(libc::SYS_mprotect, range.start as *mut libc::c_void, len, protection) == 0 }
}

fn give_back(range: &mut Range) {
    access(range, libc::PROT_READ | libc::PROT_WRITE);
    range.state = State::Retired;
    PROTECTED.fetch_sub(1, Ordering::AcqRel);
}

/// The entry that has been of no use for longest.
fn free_slot(ranges: &[Range; RANGES]) -> Option<usize> {
    let first = TABLE.next.load(Ordering::Relaxed) as usize;
    let is_unused = |i: &usize| matches!(ranges[*i].state, State::Free | State::Retired);
    let slot = (0..RANGES).map(|i| (first + i) % RANGES).find(is_unused)?;
    TABLE.next.store(slot as u32 + 1, Ordering::Relaxed);
    Some(slot)
}

/// Makes some pages of a protected range accessible and leaves the rest as it is: one range, or two
/// where the pages lie in the middle. The pages stay in the table as retired. False: that cannot
/// be, for they are all of it or there is no room.
fn give_up(ranges: &mut [Range; RANGES], index: usize, start: u64, end: u64) -> bool {
    let range = ranges[index];
    let (start, end) = (start.max(range.start), end.min(range.end));
    let (before, after) = (range.start < start, end < range.end);
    if !before && !after {
        return false;
    }
    let Some(given_up) = free_slot(ranges) else { return false };
    let last = ranges[given_up];
    ranges[given_up] = Range { start, end, state: State::Protected, ..range };
    if before && after {
        let Some(rest) = free_slot(ranges) else {
            ranges[given_up] = last;
            return false;
        };
        ranges[rest] = Range { start: end, ..range };
        PROTECTED.fetch_add(1, Ordering::AcqRel);
    }
    if before {
        ranges[index].end = start;
    } else {
        ranges[index].start = end;
    }
    access(&ranges[given_up], libc::PROT_READ | libc::PROT_WRITE);
    ranges[given_up].state = State::Retired;
    true
}

/// Takes the CPU's access to these bytes away: all of it when the copy `writes`, otherwise stores.
/// The caller has made sure that the memory is readable and writable and that
/// [`crate::host::sigsegv`] is installed.
pub fn protect(watch: u32, region: &Region, writes: bool, awaits: AwaitedWords) {
    let (start, end) = (region.start & !(page_size() - 1), region.end().next_multiple_of(page_size()));
    if lent_memory::is_lent(start, end) {
        return;
    }
    with_ranges(|ranges| {
        let is_live = |r: &Range| r.state == State::Protected;
        // With the lock: who lets go of pages says so first, and then waits for it.
        if unwatched::overlaps(start, end) {
            return unwatched::count_missed();
        }
        // A weaker protection would undo a stronger one.
        if !writes && ranges.iter().any(|r| is_live(r) && r.writes && r.start < end && start < r.end) {
            return;
        }
        let Some(slot) = free_slot(ranges) else { return };
        let range = &mut ranges[slot];
        *range = Range { state: State::Protected, start, end, region: *region, writes, watch, awaits };
        PROTECTED.fetch_add(1, Ordering::AcqRel);
        if !access(range, if writes { libc::PROT_NONE } else { libc::PROT_READ }) {
            give_back(range);
        }
    });
}

/// Takes note of the bytes of a copy out of memory whose stores are seen in another way, so that
/// [`met_at`] can tell whether the copy was still held back.
pub fn note_awaits(watch: u32, region: &Region, awaits: AwaitedWords) {
    with_ranges(|ranges| {
        let Some(slot) = free_slot(ranges) else { return };
        NOTED.fetch_add(1, Ordering::AcqRel);
        let (start, end) = (region.start, region.end());
        ranges[slot] = Range { state: State::Noted, start, end, region: *region, writes: false, watch, awaits };
    });
}

/// The watch of a noted copy out of these bytes, if what it waits for is there now; 0: none. For
/// signal handlers, too.
pub fn met_at(start: u64, end: u64) -> u32 {
    if NOTED.load(Ordering::Acquire) == 0 {
        return 0;
    }
    let found = with_ranges(|ranges| {
        let hit = |r: &&Range| r.state == State::Noted && r.start < end && start < r.end && r.uses(start, end);
        ranges.iter().find(hit).map(|range| (range.watch, range.awaits))
    });
    found.filter(|(_, awaits)| awaits.are_met()).map_or(0, |(watch, _)| watch)
}

/// The watch is over: the CPU may touch its bytes again.
pub fn release(watch: u32) {
    if PROTECTED.load(Ordering::Acquire) == 0 && NOTED.load(Ordering::Acquire) == 0 {
        return;
    }
    with_ranges(|ranges| {
        for range in ranges.iter_mut().filter(|r| r.watch == watch) {
            match range.state {
                State::Protected => give_back(range),
                State::Noted => {
                    range.state = State::Free;
                    NOTED.fetch_sub(1, Ordering::AcqRel);
                }
                State::Free | State::Retired => {}
            }
        }
    });
}

/// Makes the pages of these bytes accessible, without a touch: those of a range that others share
/// too.
pub fn let_go(start: u64, end: u64) {
    if PROTECTED.load(Ordering::Acquire) == 0 {
        return;
    }
    with_ranges(|ranges| {
        let is_meant = |r: &&mut Range| r.state == State::Protected && r.start < end && start < r.end;
        ranges.iter_mut().filter(is_meant).for_each(give_back);
    });
}

/// What a touch of an address, by a fault or a call, came to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TouchOutcome {
    /// Nothing of ours.
    Foreign,
    /// The page is accessible (by now).
    Mended,
    /// As [`TouchOutcome::Mended`], but it was so before: another thread was faster, or the page is
    /// protected for another reason too.
    Again,
}

/// Makes the pages of these bytes accessible, and notes the touch when it is one of bytes that a
/// copy uses. `is_api`: the driver does it on behalf of a call. `in_handler`: this is a fault, not
/// a call.
pub fn touched(
    start: u64,
    end: u64,
    writes: bool,
    in_handler: bool,
    is_api: impl FnOnce(&Frames) -> bool,
) -> TouchOutcome {
    let mut first = None;
    let fault = with_ranges(|ranges| {
        let mut fault = TouchOutcome::Foreign;
        for index in 0..RANGES {
            let range = ranges[index];
            if range.start >= end || start >= range.end {
                continue;
            }
            match range.state {
                State::Protected => {
                    fault = TouchOutcome::Mended;
                    // One touch is enough to know; of other bytes beside them only their pages are
                    // given up.
                    let hit = range.uses(start, end);
                    if hit && (range.writes || writes) && first.is_none() {
                        first = Some((range.watch, range.awaits));
                    }
                    if hit || !give_up(ranges, index, start & !(page_size() - 1), end.next_multiple_of(page_size())) {
                        give_back(&mut ranges[index]);
                    }
                }
                State::Retired if fault == TouchOutcome::Foreign => fault = TouchOutcome::Again,
                State::Retired | State::Free | State::Noted => {}
            }
        }
        fault
    });
    // What a library moves for the program in its calls is an op of its own.
    let told = thread_state::inside_transport() || guard::is_inside();
    if let Some((watch, awaits)) = first
        && !lifecycle::is_forked()
        && !told
    {
        // The pages have been given back: a word may lie on them.
        note(watch, awaits.are_met(), start, writes, in_handler, is_api);
    }
    fault
}

fn note(
    watch: u32,
    waits_met: bool,
    address: u64,
    writes: bool,
    in_handler: bool,
    is_api: impl FnOnce(&Frames) -> bool,
) {
    let free = QUEUE.0.iter().find(|touch| {
        // SAFETY: only the atomic state is looked at.
        let state = unsafe { &(*touch.get()).state };
        state.compare_exchange(EMPTY, FILLING, Ordering::Acquire, Ordering::Relaxed).is_ok()
    });
    let Some(touch) = free else {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    };
    // SAFETY: its state says that it is ours.
    let touch = unsafe { &mut *touch.get() };
    (touch.watch, touch.waits_met, touch.address, touch.writes) = (watch, waits_met, address, writes);
    touch.thread = guard::thread_number();
    touch.frames.clear();
    frames::capture(&mut touch.frames, Depth::Full);
    // In a handler the innermost frame is the C library's way back from it.
    if in_handler {
        touch.frames.skip_one();
    }
    if is_api(&touch.frames) {
        return touch.state.store(EMPTY, Ordering::Release);
    }
    touch.state.store(FULL, Ordering::Release);
    WAITING.fetch_add(1, Ordering::AcqRel);
}

/// The touches so far.
pub fn drain(mut each: impl FnMut(&PageTouch)) {
    for touch in &QUEUE.0 {
        // SAFETY: only the atomic state is looked at.
        let state = unsafe { &(*touch.get()).state };
        if state.compare_exchange(FULL, FILLING, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            // SAFETY: its state says that it is ours.
            each(unsafe { &*touch.get() });
            WAITING.fetch_sub(1, Ordering::AcqRel);
            state.store(EMPTY, Ordering::Release);
        }
    }
}

/// Whether all of this memory can be read and written as far as the system's list of mappings
/// says.
pub fn is_ordinary(start: u64, end: u64) -> bool {
    let Ok(maps) = std::fs::read_to_string(signal_free::descriptors::own_proc("maps")) else { return false };
    let mut at = start;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else { continue };
        let Some((from, to)) = range.split_once('-') else { continue };
        let (Ok(from), Ok(to)) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16)) else { continue };
        if from <= at && at < to {
            if !rights.starts_with("rw") || rights.contains('x') {
                return false;
            }
            at = to;
            if at >= end {
                return true;
            }
        }
    }
    false
}
