//! Memory of the host that devices use where it lies, and the work that may use it now.
//!
//! Owns the list of such memory and of the pending work in it, behind the lock of
//! `crate::log::core`; each piece of work holds pages ([`super::holds`]) until the host is ordered
//! after it. What a launch uses is not known here: it may use all of every allocation that a word
//! of its parameters points into, and managed variables. The analyzer, which knows what kernels
//! touch, decides what a touch of the CPU means.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use order::Engine;
use trace::{Epoch, Region};

use super::held_touches;
use super::holds::{self, Level};
use super::unwatched;
use crate::arch::page_size;

/// Whether there is any such memory.
#[unsafe(link_section = "streamsan_state")]
static ANY: AtomicBool = AtomicBool::new(false);

/// Where all such memory lies.
static LOWEST: AtomicU64 = AtomicU64::new(u64::MAX);
static HIGHEST: AtomicU64 = AtomicU64::new(0);

/// Whether any of these bytes may lie in such memory.
pub fn may_hold(start: u64, end: u64) -> bool {
    start < HIGHEST.load(Ordering::Relaxed) && end > LOWEST.load(Ordering::Relaxed)
}

/// Whether there is memory whose use is worth noting.
#[inline]
pub fn exists() -> bool {
    ANY.load(Ordering::Relaxed)
}

#[derive(Clone, Copy, Debug)]
struct Memory {
    start: u64,
    end: u64,
    kind: InPlaceKind,
}

/// What such memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InPlaceKind {
    /// Allocated by the driver, managed.
    Managed,
    /// Allocated by the driver, pinned.
    Pinned,
    /// The program's own pages: the first and the last one hold other things too.
    Registered,
    /// A managed variable, which kernels name without a parameter.
    Variable,
}

#[derive(Clone, Copy, Debug)]
struct Use {
    /// The number of its hold.
    id: u32,
    epoch: Epoch,
    start: u64,
    end: u64,
    level: Level,
}

/// The memory, and its uses.
#[derive(Debug, Default)]
pub struct InPlace {
    memory: Vec<Memory>,
    uses: Vec<Use>,
    last: u32,
}

impl InPlace {
    /// Memory that devices reach through a mapping of their own has come.
    pub fn add(&mut self, start: u64, end: u64, kind: InPlaceKind) {
        if self.memory.iter().any(|m| (m.start, m.end) == (start, end)) {
            return;
        }
        self.leave(start, end);
        if kind != InPlaceKind::Registered {
            // What was said of these addresses was said of other memory.
            holds::forget(start & !(page_size() - 1), end.next_multiple_of(page_size()), true);
        }
        let at = self.memory.partition_point(|m| m.start < start);
        self.memory.insert(at, Memory { start, end, kind });
        self.note_bounds();
    }

    fn note_bounds(&self) {
        LOWEST.store(self.memory.first().map_or(u64::MAX, |m| m.start), Ordering::Relaxed);
        HIGHEST.store(self.memory.last().map_or(0, |m| m.end), Ordering::Relaxed);
        ANY.store(!self.memory.is_empty(), Ordering::Relaxed);
    }

    /// Memory between these addresses goes.
    pub fn leave(&mut self, start: u64, end: u64) {
        let mut gone = self.memory.extract_if(.., |m| m.start < end && start < m.end).collect::<Vec<_>>();
        for memory in gone.drain(..) {
            self.uses.retain(|u| {
                let stays = u.end <= memory.start || memory.end <= u.start;
                if !stays {
                    holds::release(u.id);
                }
                stays
            });
            let (start, end) = (memory.start & !(page_size() - 1), memory.end.next_multiple_of(page_size()));
            // The program's own pages stay as they are used.
            holds::forget(start, end, memory.kind != InPlaceKind::Registered);
        }
        self.note_bounds();
    }

    /// Whether this address lies in such memory.
    pub fn knows(&self, address: u64) -> bool {
        self.around(address).is_some()
    }

    /// Whether such memory begins at this address.
    pub fn begins_at(&self, address: u64) -> bool {
        self.around(address).is_some_and(|memory| memory.start == address)
    }

    fn around(&self, address: u64) -> Option<Memory> {
        let at = self.memory.partition_point(|m| m.start <= address).checked_sub(1)?;
        self.memory.get(at).copied().filter(|m| address < m.end)
    }

    /// Work at `epoch` may use all memory that one of these words points into.
    pub fn use_words(&mut self, engine: &Engine, epoch: Epoch, words: impl Iterator<Item = u64>) {
        let (Some(first), Some(last)) = (self.memory.first(), self.memory.last()) else { return };
        let (lowest, highest) = (first.start, last.end);
        let variables = self.memory.iter().filter(|m| m.kind == InPlaceKind::Variable).copied().collect::<Vec<_>>();
        for memory in variables {
            self.add_use(engine, epoch, memory, (memory.start, memory.end), Level::Nothing);
        }
        for word in words.filter(|word| (lowest..highest).contains(word)) {
            if let Some(memory) = self.around(word) {
                self.add_use(engine, epoch, memory, (memory.start, memory.end), Level::Nothing);
            }
        }
    }

    /// Work at `epoch` reads or writes these bytes.
    pub fn use_region(&mut self, engine: &Engine, epoch: Epoch, region: &Region, writes: bool) {
        if region.is_empty() || !region.array.is_none() {
            return;
        }
        if let Some(memory) = self.around(region.start) {
            let bytes = (region.start, region.end().min(memory.end));
            self.add_use(engine, epoch, memory, bytes, if writes { Level::Nothing } else { Level::NoStores });
        }
    }

    fn add_use(&mut self, engine: &Engine, epoch: Epoch, memory: Memory, (start, end): (u64, u64), level: Level) {
        let (mut first, mut last) = (start & !(page_size() - 1), end.next_multiple_of(page_size()));
        if memory.kind == InPlaceKind::Registered {
            first = first.max(memory.start.next_multiple_of(page_size()));
            last = last.min(memory.end & !(page_size() - 1));
        }
        if first >= last || engine.host_covers(epoch) {
            return;
        }
        let same =
            |u: &&mut Use| u.epoch.timeline == epoch.timeline && (u.start, u.end, u.level) == (first, last, level);
        if let Some(known) = self.uses.iter_mut().find(same) {
            if known.epoch != epoch {
                known.epoch = epoch;
                holds::renew();
            }
            return;
        }
        if let_go_of_stacks(first, last) {
            unwatched::count_missed();
            return held_touches::lose_sight();
        }
        self.last += 1;
        if holds::hold(self.last, first, last, level) {
            self.uses.push(Use { id: self.last, epoch, start: first, end: last, level });
        } else {
            held_touches::lose_sight();
        }
    }

    /// Whether no work is pending.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.uses.is_empty()
    }

    /// The host has seen work finish: what is over holds nothing any more.
    pub fn settle(&mut self, engine: &Engine) {
        self.uses.retain(|u| {
            let pending = !engine.host_covers(u.epoch);
            if !pending {
                holds::release(u.id);
            }
            pending
        });
    }
}

/// Leaves the stacks of the calling thread to the program where they lie in a range that is about
/// to be protected. True: the thread runs on a stack in that range, whose bounds are not known.
fn let_go_of_stacks(start: u64, end: u64) -> bool {
    // SAFETY: all-zero is a valid value.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: a plain system call; stack is valid.
    unsafe { libc::syscall(libc::SYS_sigaltstack, std::ptr::null::<libc::stack_t>(), &raw mut stack) };
    let (from, to) = (stack.ss_sp as u64, (stack.ss_sp as u64).saturating_add(stack.ss_size as u64));
    if stack.ss_flags & libc::SS_DISABLE == 0 && from < end && start < to {
        holds::let_go(from & !(page_size() - 1), to.saturating_add(page_size() - 1) & !(page_size() - 1));
    }
    let here = crate::arch::registers().1;
    (start..end).contains(&here)
}
