//! The threads of the blocks that run: their clocks, and what barriers, fences and copies do to
//! them. Knows no memory.
//!
//! An epoch has the generation of its block in its upper half: how often all threads of the block
//! have met at a barrier. After such a meeting every thread knows everything below its floor, the
//! new generation's first epoch, and no clock names single threads of the block. The lower half
//! counts a thread's releases within a generation. Both have 32 bits: a kernel would have to pass
//! four thousand million barriers to overflow them.

use std::sync::Arc;

use crate::clock::{AGENT, Fenced, Known, Snapshot, Span, join, join_all, union};
use crate::events::{FenceOrder, LANES, Lanes, Meeting, Proxies, Scope};
use crate::grids::Past;

/// Bits of an epoch below the generation.
const GENERATION: u32 = 32;

/// What few threads need.
#[derive(Debug, Default)]
struct Extra {
    /// The clock at the last fence, for each scope that the fence reached.
    fences: [Option<Snapshot>; 3],
    /// Releases in the block and the cluster that strong reads have met, until a fence.
    pending: [Option<Arc<Known>>; 2],
    /// The open group of asynchronous copies.
    group: u64,
    /// The closed ones that were not waited for.
    closed: Vec<u64>,
    /// The last group that was done at an epoch of the thread.
    done: Vec<(u64, u64)>,
    /// Phases of the barriers beyond the block that it has come to.
    met: [u64; 2],
    /// What a wait at a barrier object would have made known, had it acquired for the cluster.
    unheard: Option<Arc<Known>>,
}

/// A thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) epoch: u64,
    /// Epochs of the own block's threads below it are known.
    pub(crate) floor: u64,
    pub(crate) known: Arc<Known>,
    /// The clocks at the sequentially consistent fences of the device's scope that are behind the
    /// thread, also those of other threads.
    pub(crate) sc: Arc<Known>,
    /// Releases to the device that strong reads have met, until a fence. Also those of threads that
    /// it has met at a barrier since.
    met: Arc<Known>,
    extra: Option<Box<Extra>>,
}

impl Thread {
    /// One with the past that all threads of a block have in common.
    fn new(past: &Past) -> Thread {
        let Past { known, sc, met } = past.clone();
        Thread { epoch: 0, floor: 0, known, sc, met, extra: None }
    }

    fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    fn learn(&mut self, block: u32, known: &Arc<Known>) {
        self.known = join(&self.known, known);
        self.floor = self.floor.max(self.known.floor(block));
    }

    /// What a strong read has met: known at once, or behind the next fence.
    pub(crate) fn acquire(&mut self, block: u32, met: &[Option<Arc<Known>>; 3], at_once: bool) {
        for (scope, met) in met.iter().enumerate() {
            let Some(met) = met else { continue };
            if at_once {
                self.learn(block, met);
            } else if scope == Scope::Device as usize {
                self.met = join(&self.met, met);
            } else {
                let pending = &mut self.extra().pending[scope];
                *pending = Some(pending.as_ref().map_or_else(|| met.clone(), |old| join(old, met)));
            }
        }
    }

    /// The clock that a fence of at least that scope has left for later writes.
    pub(crate) fn fenced(&self, scope: Scope) -> Option<&Snapshot> {
        self.extra.as_ref()?.fences[scope as usize].as_ref()
    }

    /// Whether only the scope of its wait keeps an epoch of another thread from it.
    pub(crate) fn has_not_heard(&self, block: u32, thread: u32, epoch: u64) -> bool {
        let unheard = self.extra.as_ref().and_then(|extra| extra.unheard.as_ref());
        unheard.is_some_and(|unheard| unheard.knows(block, thread, epoch))
    }

    /// Its wait was of the block's scope, and this was released to the cluster.
    pub(crate) fn misses(&mut self, far: &Arc<Known>) {
        let unheard = &mut self.extra().unheard;
        *unheard = Some(unheard.as_ref().map_or_else(|| far.clone(), |old| join(old, far)));
    }

    /// Whether a relaxed atomic operation of it releases nothing: it has passed no fence.
    #[inline]
    pub(crate) fn publishes_nothing(&self) -> bool {
        self.sc.is_empty() && self.extra.as_ref().is_none_or(|extra| extra.fences.iter().all(Option::is_none))
    }

    /// Begins an epoch: what was told of the last one is no longer all.
    pub(crate) fn released(&mut self) {
        self.epoch += 1;
    }
}

#[derive(Debug, Default)]
struct Barrier {
    /// Lanes of each warp that wait.
    waiting: Vec<u32>,
    /// The clocks of those that went on at once.
    gone: Vec<Snapshot>,
}

/// A block.
#[derive(Debug)]
pub(crate) struct Block {
    number: u32,
    pub(crate) cluster: u32,
    generation: u64,
    pub(crate) threads: Vec<Thread>,
    alive: Vec<u32>,
    /// Some threads have ended.
    has_ended: bool,
    barriers: Vec<Barrier>,
    /// Lanes that wait at the grid's barrier.
    at_grid: Vec<u32>,
}

/// Puts a clock in the place of another one. Mostly neither says anything, and counting references
/// of hundreds of threads at each barrier takes long.
#[inline]
fn replace(clock: &mut Arc<Known>, by: &Arc<Known>) {
    if !(clock.is_empty() && by.is_empty()) {
        *clock = by.clone();
    }
}

/// The threads of lanes.
pub(crate) fn threads(warp: u32, mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 != 0).map(move |lane| warp as usize * LANES + lane)
}

impl Block {
    pub(crate) fn new(number: u32, count: u32, cluster: u32, past: &Past) -> Block {
        let warps = count.div_ceil(LANES as u32);
        let lanes = |warp: u32| match count - warp * LANES as u32 {
            left if left >= LANES as u32 => u32::MAX,
            left => (1 << left) - 1,
        };
        Block {
            number,
            cluster,
            generation: 0,
            threads: (0..warps * LANES as u32).map(|_| Thread::new(past)).collect(),
            alive: (0..warps).map(lanes).collect(),
            has_ended: false,
            barriers: Vec::new(),
            at_grid: vec![0; warps as usize],
        }
    }

    /// Lanes end. The others may all be at the grid's barrier then, see [`Block::all_at_grid`].
    pub(crate) fn exits(&mut self, lanes: Lanes) -> Option<(u64, Snapshot)> {
        self.alive[lanes.warp as usize] &= !lanes.mask;
        self.has_ended = true;
        self.all_at_grid()
    }

    /// If all threads wait at the grid's barrier: the phase, and a clock that speaks for all.
    fn all_at_grid(&mut self) -> Option<(u64, Snapshot)> {
        let warp = self.alive.iter().position(|&mask| mask != 0)?;
        if self.at_grid != self.alive {
            return None;
        }
        self.at_grid.fill(0);
        self.all_meet();
        let at = warp * LANES + self.alive[warp].trailing_zeros() as usize;
        let given = (self.threads[at].extra().met[Meeting::Grid as usize], self.snapshot(at));
        self.threads[at].released();
        Some(given)
    }

    /// The lanes of a warp that have not ended.
    pub(crate) fn alive(&self, warp: u32) -> u32 {
        self.alive[warp as usize]
    }

    pub(crate) fn snapshot(&self, thread: usize) -> Snapshot {
        let of = &self.threads[thread];
        Snapshot {
            known: of.known.clone(),
            block: self.number,
            thread: thread as u32,
            floor: of.floor,
            epoch: of.epoch,
            sc: of.sc.clone(),
            met: of.met.clone(),
        }
    }

    pub(crate) fn fence(&mut self, lanes: Lanes, scope: Scope, order: FenceOrder) {
        let reached = scope as usize + 1;
        for at in threads(lanes.warp, lanes.mask) {
            let number = self.number;
            let thread = &mut self.threads[at];
            let mut pending = [None, None, None];
            if let Some(extra) = &mut thread.extra {
                for (pending, met) in pending.iter_mut().zip(&mut extra.pending).take(reached) {
                    *pending = met.take();
                }
            }
            if scope == Scope::Device {
                pending[2] = Some(std::mem::take(&mut thread.met));
            }
            self.threads[at].acquire(number, &pending, true);
            if order == FenceOrder::Acquire {
                continue;
            }
            let snapshot = self.snapshot(at);
            if order == FenceOrder::Sequential && scope == Scope::Device {
                let thread = &mut self.threads[at];
                thread.sc = join(&thread.sc, &Arc::new(snapshot.clock()));
            }
            let extra = self.threads[at].extra();
            for fence in &mut extra.fences[..reached] {
                *fence = Some(snapshot.clone());
            }
            self.threads[at].released();
        }
    }

    /// Lanes have met releases ([`Thread::acquire`]). Those of one past share what they know then.
    pub(crate) fn acquire(&mut self, (warp, mask): (u32, u32), met: &[Option<Arc<Known>>; 3], at_once: bool) {
        let number = self.number;
        if !at_once {
            threads(warp, mask).for_each(|at| self.threads[at].acquire(number, met, false));
            return;
        }
        let all = join_all(met.iter().flatten());
        let mut last: Option<[Arc<Known>; 2]> = None;
        for at in threads(warp, mask) {
            let thread = &mut self.threads[at];
            let after = match last {
                Some([before, after]) if Arc::ptr_eq(&before, &thread.known) => after,
                _ => join(&thread.known, &all),
            };
            thread.floor = thread.floor.max(after.floor(number));
            last = Some([std::mem::replace(&mut thread.known, after.clone()), after]);
        }
    }

    /// Threads that wait meet: each knows what any of them knew.
    fn meet(&mut self, members: &[usize], gone: &mut Vec<Snapshot>) {
        gone.extend(members.iter().map(|&at| self.snapshot(at)));
        let known = union(gone);
        let sc = join_all(gone.iter().map(|snapshot| &snapshot.sc));
        let met = join_all(gone.iter().map(|snapshot| &snapshot.met));
        let floor = known.floor(self.number);
        for &at in members {
            let thread = &mut self.threads[at];
            (thread.known, thread.sc, thread.met) = (known.clone(), sc.clone(), met.clone());
            thread.floor = thread.floor.max(floor);
            thread.released();
        }
    }

    pub(crate) fn warp_meets(&mut self, lanes: Lanes) {
        if lanes.mask.count_ones() > 1 {
            let members: Vec<usize> = threads(lanes.warp, lanes.mask).collect();
            self.meet(&members, &mut Vec::new());
        }
    }

    pub(crate) fn barrier_arrives(&mut self, number: u8, lanes: Lanes, waits: bool) {
        let (number, warps) = (usize::from(number), self.alive.len());
        if self.barriers.len() <= number {
            self.barriers.resize_with(number + 1, Barrier::default);
        }
        self.barriers[number].waiting.resize(warps, 0);
        if waits {
            self.barriers[number].waiting[lanes.warp as usize] |= lanes.mask;
            return;
        }
        for at in threads(lanes.warp, lanes.mask) {
            let snapshot = self.snapshot(at);
            self.barriers[number].gone.push(snapshot);
            self.threads[at].released();
        }
    }

    pub(crate) fn barrier_completes(&mut self, number: u8, whole: bool) {
        let Some(barrier) = self.barriers.get_mut(usize::from(number)) else { return };
        let waiting = std::mem::take(&mut barrier.waiting);
        let mut gone = std::mem::take(&mut barrier.gone);
        // Those that have ended take part in a barrier of all threads only.
        if gone.is_empty() && waiting == self.alive && (whole || !self.has_ended) {
            self.all_meet();
            return;
        }
        let members: Vec<usize> =
            waiting.iter().enumerate().flat_map(|(warp, &mask)| threads(warp as u32, mask)).collect();
        self.meet(&members, &mut gone);
    }

    /// All threads of the block that have not ended wait for each other.
    fn all_meet(&mut self) {
        self.generation += 1;
        let floor = self.generation << GENERATION;
        let mut known = join_all(self.threads.iter().map(|thread| &thread.known));
        let sc = join_all(self.threads.iter().map(|thread| &thread.sc));
        let met = join_all(self.threads.iter().map(|thread| &thread.met));
        if !known.is_empty() {
            Arc::make_mut(&mut known).forget_threads(self.number);
        }
        for (warp, &mask) in self.alive.iter().enumerate() {
            for at in threads(warp as u32, mask) {
                let thread = &mut self.threads[at];
                (thread.floor, thread.epoch) = (floor, floor);
                replace(&mut thread.known, &known);
                replace(&mut thread.sc, &sc);
                replace(&mut thread.met, &met);
            }
        }
    }

    /// Lanes come to a barrier beyond the block: the phase, and the clocks that they give it.
    pub(crate) fn meeting_arrives(&mut self, meeting: Meeting, lanes: Lanes, releases: bool) -> Vec<(u64, Snapshot)> {
        let mut given = Vec::new();
        for at in threads(lanes.warp, lanes.mask) {
            let met = &mut self.threads[at].extra().met[meeting as usize];
            *met += 1;
            let phase = *met;
            if meeting == Meeting::Cluster && releases {
                given.push((phase, self.snapshot(at)));
                self.threads[at].released();
            } else if meeting == Meeting::Cluster {
                given.extend(self.threads[at].fenced(Scope::Cluster).map(|left| (phase, left.clone())));
            }
        }
        if meeting == Meeting::Grid {
            self.at_grid[lanes.warp as usize] |= lanes.mask;
            given.extend(self.all_at_grid());
        }
        given
    }

    /// The phase that a thread came to last.
    pub(crate) fn phase(&mut self, meeting: Meeting, thread: usize) -> u64 {
        self.threads[thread].extra().met[meeting as usize]
    }

    pub(crate) fn meeting_passes(&mut self, thread: usize, known: &Arc<Known>) {
        self.learns(thread, known);
    }

    /// A thread orders its proxies.
    pub(crate) fn proxy_fence(&mut self, thread: usize, proxies: Proxies) {
        let clock = self.snapshot(thread).clock();
        let mut spans = if proxies.shared { clock.fenced(Fenced::Shared) } else { Vec::new() };
        spans.extend(if proxies.global { clock.fenced(Fenced::Global) } else { Vec::new() });
        Arc::make_mut(&mut self.threads[thread].known).learn(spans);
        self.threads[thread].released();
    }

    /// A thread releases to the proxy of tensor maps, or acquires for it.
    pub(crate) fn map_fence(&mut self, thread: usize, acquires: bool) {
        let clock = self.snapshot(thread).clock();
        let spans = if acquires { clock.acquired_for_maps() } else { clock.fenced(Fenced::ToMaps) };
        Arc::make_mut(&mut self.threads[thread].known).learn(spans);
        self.threads[thread].released();
    }

    /// A thread issues its part of a product: what those know who wait for the product.
    pub(crate) fn issues_product(&mut self, thread: usize) -> Span {
        let own = Span {
            thread: thread as u32 | Fenced::Product.mark(),
            first: self.number,
            last: self.number,
            epoch: self.threads[thread].epoch,
        };
        self.threads[thread].released();
        own
    }

    /// What all threads know together.
    pub(crate) fn known_to_all(&self) -> Arc<Known> {
        let all: Vec<Snapshot> = (0..self.threads.len()).map(|at| self.snapshot(at)).collect();
        union(&all)
    }

    /// A thread learns what others have released.
    pub(crate) fn learns(&mut self, thread: usize, known: &Arc<Known>) {
        let number = self.number;
        self.threads[thread].learn(number, known);
    }

    /// The group that copies of a thread belong to now.
    pub(crate) fn open_group(&mut self, thread: usize) -> u64 {
        self.threads[thread].extra().group
    }

    pub(crate) fn copies_committed(&mut self, lanes: Lanes) {
        for at in threads(lanes.warp, lanes.mask) {
            let extra = self.threads[at].extra();
            extra.closed.push(extra.group);
            extra.group += 1;
        }
    }

    pub(crate) fn copies_awaited(&mut self, lanes: Lanes, pending: Option<u32>) {
        if pending.is_none() {
            self.copies_committed(lanes);
        }
        let pending = pending.unwrap_or(0) as usize;
        for at in threads(lanes.warp, lanes.mask) {
            let epoch = self.threads[at].epoch;
            let extra = self.threads[at].extra();
            let done = extra.closed.len().saturating_sub(pending);
            if let Some(last) = extra.closed.drain(..done).next_back() {
                extra.done.push((last, epoch));
            }
        }
    }

    /// The copies of a thread so far, for those who learn when they are done.
    pub(crate) fn copies_so_far(&mut self, thread: usize) -> Span {
        let group = self.threads[thread].extra().group;
        self.threads[thread].extra().group += 1;
        Span { thread: thread as u32 | AGENT, first: self.number, last: self.number, epoch: group }
    }

    /// The epoch of a thread at which a group of its copies was done.
    pub(crate) fn done_at(&self, thread: usize, group: u64) -> Option<u64> {
        let done = &self.threads[thread].extra.as_ref()?.done;
        done.get(done.partition_point(|&(last, _)| last < group)).map(|&(_, epoch)| epoch)
    }
}
