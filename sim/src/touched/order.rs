//! What orders the plain accesses of a measured launch for others: other kernels, and the host.
//!
//! Owns the judgement on each access. Flags and locks in memory order it if the launch acquires
//! before it, or releases behind it (PTX ISA, "Memory Consistency Model"):
//!
//! - *acquired*: its warp, or its block in front of a barrier, has read a word by a strong access
//!   of the device or the system, with an acquire behind the read, and has not given the word back
//!   by a strong store since. If the word is memory of the host and the scope is the system's, the
//!   host may have told of the bytes;
//! - *released*: its warp, or another one of the block behind a barrier, has released it behind the
//!   access: a fence of the device or the system and a strong store, or a store with that order.
//!   The fence may be in front of the barrier, if its own warp executes it, and the store behind
//!   it;
//! - *told*: the same with the scope of the system. Behind a fence of the system any store of one
//!   lane to memory of the host counts, because programs use plain ones. What another block has
//!   released and this one may have acquired is told, too.
//!
//! Only what is surely none of these is marked: warps count as one thread, an acquire as one of all
//! that was released until then. Launches in clusters, and programs without such instructions, are
//! not looked at.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::pages::{TouchedPages, pieces};
use crate::interp::{AccessKind, Accesses, OrderEvent, Reach, WARP_LANES};
use crate::memory::{self, AllocationKind};

/// The kinds of pages that say what was not ordered (`cuda_sys::TouchedPage`).
pub(super) const NOT_ACQUIRED: u64 = 5;
pub(super) const NOT_RELEASED: u64 = 6;
pub(super) const NOT_TOLD: u64 = 7;

const SHARDS: usize = 16;
/// Pending accesses of a block. The oldest make room, and count as ordered.
const MAX_PENDING: usize = 1 << 14;
/// Released accesses of a launch that nobody has told of yet; more count as told.
const MAX_PUBLISHED: usize = 1 << 20;
/// Pending accesses looked at for the releases of one block; after that it is not looked at.
const MAX_VISITS: u64 = 1 << 24;
/// Words that the threads of a warp may have read. With more it counts as having acquired.
const MAX_WORDS: usize = 64;
/// Pending accesses that a new one may repeat.
const RECENT: usize = 4;

/// What orders the accesses of one launch.
#[derive(Default)]
pub(super) struct LaunchOrder {
    blocks: [Mutex<HashMap<[u32; 3], Block>>; SHARDS],
    published: Mutex<Vec<Published>>,
    /// Counts what was published.
    time: AtomicU64,
    /// Some access was strong.
    strong: AtomicBool,
    /// Some block was looked at.
    begun: AtomicBool,
}

/// An access that was not released so far.
struct Pending {
    from: u64,
    to: u64,
    warp: u32,
    phase: u32,
    at: u64,
    /// The widest fence of its warp that lies between it and a barrier behind it.
    fenced: Option<Reach>,
    /// The host may have told of its bytes.
    heard: bool,
    /// It is a strong store, which need not be released.
    strong: bool,
}

/// An access that its block has released to the device, and when.
struct Published {
    owner: [u32; 3],
    from: u64,
    to: u64,
    time: u64,
}

/// A place in the order of a block, from which releases count.
#[derive(Clone, Copy)]
struct Place {
    at: u64,
    phase: u32,
    /// What was published until then may have been acquired.
    seen: u64,
}

/// A word that a thread has read.
struct Word {
    at: u64,
    thread: u32,
    acquired: bool,
}

#[derive(Default)]
struct WarpOrder {
    /// Words that its threads have read by strong accesses, and whether an acquire came behind.
    words: Vec<Word>,
    /// It has acquired more words than are kept.
    has_acquired: bool,
    /// It has read a word of the host with the system's scope; and acquired.
    reads_system: bool,
    heard: bool,
    /// The last fences of the device's scope, or wider, and of the system's.
    fence: Option<Place>,
    system_fence: Option<Place>,
}

impl WarpOrder {
    fn acquired(&self) -> bool {
        self.has_acquired || self.words.iter().any(|word| word.acquired)
    }

    fn acquire(&mut self) {
        self.words.iter_mut().for_each(|word| word.acquired = true);
        self.heard |= self.reads_system;
    }

    /// A thread reads a word. That it has been acquired before stays true of a word that is read
    /// again: other threads of the warp may be about to try.
    fn read(&mut self, at: u64, thread: u32, acquired: bool) {
        if self.has_acquired {
            return;
        }
        let known = self.words.iter_mut().find(|word| (word.at, word.thread) == (at, thread));
        if let Some(word) = known {
            word.acquired |= acquired;
        } else if self.words.len() < MAX_WORDS {
            self.words.push(Word { at, thread, acquired });
        } else {
            self.has_acquired = true;
        }
    }

    /// A thread gives words back that it has acquired.
    fn give_back(&mut self, lanes: &[(u64, u32)]) {
        self.words.retain(|word| !word.acquired || !lanes.contains(&(word.at, word.thread)));
    }
}

/// A running block.
#[derive(Default)]
struct Block {
    system: bool,
    /// Barriers so far.
    phase: u32,
    /// Accesses so far.
    at: u64,
    acquired: bool,
    heard: bool,
    seen: u64,
    visits: u64,
    warps: HashMap<u32, WarpOrder>,
    pending: Vec<Pending>,
    /// Some pending ones are fenced.
    fenced: bool,
}

impl Block {
    fn here(&self) -> Place {
        Place { at: self.at, phase: self.phase, seen: self.seen }
    }

    fn push(&mut self, new: Pending) {
        let from = self.pending.len().saturating_sub(RECENT);
        let same = |old: &&mut Pending| {
            (old.from, old.to, old.warp, old.phase) == (new.from, new.to, new.warp, new.phase)
                && (old.heard, old.strong) == (new.heard, new.strong)
        };
        if let Some(old) = self.pending[from..].iter_mut().find(same) {
            old.at = new.at;
            return;
        }
        if self.pending.len() >= MAX_PENDING {
            self.pending.drain(..MAX_PENDING / 2);
        }
        self.pending.push(new);
    }

    /// Takes the accesses that a release of a warp covers: those in front of its fence, and those
    /// that were fenced so far before a barrier.
    fn released(&mut self, warp: u32, fence: Option<Place>, reach: Reach) -> Vec<Pending> {
        self.visits += self.pending.len() as u64;
        if self.visits > MAX_VISITS {
            self.pending.clear();
        }
        let covered = |p: &mut Pending| {
            let behind = |fence: Place| p.at < fence.at && (p.warp == warp || p.phase < fence.phase);
            fence.is_some_and(behind) || p.fenced.is_some_and(|fenced| fenced >= reach)
        };
        self.pending.extract_if(.., covered).collect()
    }

    /// Threads have met at a barrier: each of them knows the fences of the others.
    fn meets(&mut self) {
        self.acquired |= self.warps.values().any(WarpOrder::acquired);
        self.heard |= self.warps.values().any(|warp| warp.heard);
        self.phase += 1;
        if self.warps.values().all(|warp| warp.fence.is_none() && warp.system_fence.is_none()) {
            return;
        }
        self.visits += self.pending.len() as u64;
        for p in &mut self.pending {
            let Some(warp) = self.warps.get(&p.warp) else { continue };
            let fences = [(Reach::System, warp.system_fence), (Reach::Device, warp.fence)];
            let fenced = fences.into_iter().find(|(_, fence)| fence.is_some_and(|fence| p.at < fence.at));
            p.fenced = p.fenced.max(fenced.map(|(reach, _)| reach));
        }
        self.fenced = self.pending.iter().any(|p| p.fenced.is_some());
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the host reads there.
fn is_of_host(address: u64) -> bool {
    let kind = memory::get().find(address).map(|block| block.kind);
    matches!(kind, Some(AllocationKind::Host(_) | AllocationKind::Managed(_) | AllocationKind::Registered(_)))
}

impl LaunchOrder {
    fn shard(&self, block: [u32; 3]) -> MutexGuard<'_, HashMap<[u32; 3], Block>> {
        let [x, y, z] = block;
        locked(&self.blocks[(x ^ y.rotate_left(8) ^ z.rotate_left(16)) as usize % SHARDS])
    }

    /// Takes note of accesses of a warp.
    pub(super) fn observe(&self, accesses: &Accesses<'_>, pages: &TouchedPages) {
        self.observe_with(accesses, pages, is_of_host);
    }

    fn observe_with(&self, accesses: &Accesses<'_>, pages: &TouchedPages, is_of_host: impl Fn(u64) -> bool) {
        let Some(&(first, thread)) = accesses.lanes.first() else { return };
        let mut shard = self.shard(accesses.block);
        let Some(block) = shard.get_mut(&accesses.block) else { return };
        let (index, order) = (thread / WARP_LANES as u32, accesses.order);
        let mut warp = block.warps.remove(&index).unwrap_or_default();
        let is_plain = matches!(accesses.kind, AccessKind::Read | AccessKind::Write);
        let writes = !matches!(accesses.kind, AccessKind::Read | AccessKind::AtomicRead);
        let (mut told, here) = (false, block.here());
        if !is_plain {
            self.strong.store(true, Ordering::Relaxed);
        }
        if writes {
            let system = order.strong == Some(Reach::System);
            let release = (!is_plain && order.release).then_some(here);
            // A flag is one word: what more lanes store plainly is data.
            let host = || system || (!is_plain || accesses.lanes.len() == 1) && is_of_host(first);
            let fence = release.filter(|_| system).or_else(|| warp.system_fence.take_if(|_| host()));
            if fence.is_some() || block.fenced && host() {
                told = self.tell((accesses.block, block), index, fence);
            }
            let fence = release.or_else(|| warp.fence.take_if(|_| !is_plain));
            if fence.is_some() || !is_plain && block.fenced {
                self.publish((accesses.block, block), index, fence);
            }
        }
        if !is_plain && writes {
            warp.give_back(accesses.lanes);
        }
        if !is_plain && accesses.kind != AccessKind::AtomicWrite {
            accesses.lanes.iter().for_each(|(at, thread)| warp.read(*at, *thread, order.acquire));
            let of_host = order.strong == Some(Reach::System) && is_of_host(first);
            warp.reads_system |= of_host;
            if order.acquire {
                warp.heard |= of_host;
                block.seen = self.time.load(Ordering::Relaxed);
            }
        }
        // A store that tells is the message itself.
        if (is_plain || writes) && !told {
            let acquired = warp.acquired() || block.acquired;
            let heard = warp.heard || block.heard;
            block.at += 1;
            pieces(accesses, |from, to| {
                if is_plain && !acquired {
                    pages.set(NOT_ACQUIRED, from, to);
                }
                let (phase, at) = (block.phase, block.at - 1);
                block.push(Pending { from, to, warp: index, phase, at, fenced: None, heard, strong: !is_plain });
            });
        }
        block.warps.insert(index, warp);
    }

    /// Accesses of a warp and of its block are released to the device.
    fn publish(&self, (owner, block): ([u32; 3], &mut Block), warp: u32, fence: Option<Place>) {
        let time = self.time.fetch_add(1, Ordering::Relaxed) + 1;
        // Strong stores stay: nothing but a message of the system tells of them.
        let (kept, released): (Vec<_>, Vec<_>) =
            block.released(warp, fence, Reach::Device).into_iter().partition(|p| p.strong);
        block.pending.extend(kept);
        if block.system {
            let mut published = locked(&self.published);
            let room = MAX_PUBLISHED.saturating_sub(published.len());
            let new = released.into_iter().filter(|p| !p.heard);
            published.extend(new.take(room).map(|Pending { from, to, .. }| Published { owner, from, to, time }));
        }
    }

    /// The host is told of accesses of a warp and its block, and of what they have acquired, if a
    /// fence of its scope stands in front. Whether one does.
    fn tell(&self, (owner, block): ([u32; 3], &mut Block), warp: u32, fence: Option<Place>) -> bool {
        let told = block.released(warp, fence, Reach::System);
        let seen = fence.map(|fence| fence.seen).or_else(|| told.first().map(|_| block.seen));
        if let Some(seen) = seen {
            locked(&self.published).retain(|p| p.time > seen && p.owner != owner);
        }
        seen.is_some()
    }

    /// Takes note of what orders the accesses of a warp.
    pub(super) fn event(&self, at: [u32; 3], index: u32, event: OrderEvent, pages: &TouchedPages) {
        let mut shard = self.shard(at);
        if let OrderEvent::Begins { system } = event {
            self.begun.store(true, Ordering::Relaxed);
            shard.insert(at, Block { system, ..Block::default() });
            return;
        }
        if event == OrderEvent::Ends {
            let Some(block) = shard.remove(&at) else { return };
            for p in block.pending {
                if !p.strong {
                    pages.set(NOT_RELEASED, p.from, p.to);
                }
                if block.system && !p.heard {
                    pages.set(NOT_TOLD, p.from, p.to);
                }
            }
            return;
        }
        let Some(block) = shard.get_mut(&at) else { return };
        let now = self.time.load(Ordering::Relaxed);
        match event {
            OrderEvent::Fence(reach) if reach >= Reach::Device => {
                block.seen = now;
                let here = block.here();
                let warp = block.warps.entry(index).or_default();
                warp.acquire();
                warp.fence = Some(here);
                if reach == Reach::System {
                    warp.system_fence = warp.fence;
                }
            }
            OrderEvent::Acquire => {
                block.seen = now;
                block.warps.entry(index).or_default().acquire();
            }
            OrderEvent::BlockMeets => block.meets(),
            OrderEvent::GridMeets => {
                block.meets();
                let here = block.here();
                self.publish((at, block), index, Some(here));
                (block.acquired, block.seen) = (true, self.time.load(Ordering::Relaxed));
            }
            OrderEvent::Fence(_) | OrderEvent::Begins { .. } | OrderEvent::Ends => {}
        }
    }

    /// The launch is over. Answers whether pages of a kind say anything of it.
    pub(super) fn finish(&mut self, pages: &TouchedPages) -> impl Fn(u64) -> bool + use<> {
        let published = self.published.get_mut().unwrap_or_else(PoisonError::into_inner);
        published.drain(..).for_each(|p| pages.set(NOT_TOLD, p.from, p.to));
        if *self.begun.get_mut() {
            pages.put_empty(NOT_TOLD);
        }
        // Without strong accesses it has looked at no lock and no flag of another kernel.
        let strong = *self.strong.get_mut();
        move |kind| strong || !matches!(kind, NOT_ACQUIRED | NOT_RELEASED)
    }
}

#[cfg(test)]
mod tests;
