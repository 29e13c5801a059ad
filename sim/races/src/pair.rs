//! What two accesses are to each other: ordered, one covered by the other, or a race, and of which
//! grade. Owns the rule; changes nothing.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::clock::{AGENT, ALL, Fenced, Known};
pub(crate) use crate::events::lanes;
use crate::events::{GROUPED, Kind, LANES, Scope};
use crate::grade::{Evidence, Refill};
use crate::grids::Grids;
use crate::objects::{Objects, Progress};
use crate::records::{Remedy, Side};
use crate::shadow::Access;
use crate::threads::Block;

fn kind_of(access: &Access) -> Kind {
    match (access.is(Access::READ), access.is(Access::WRITE)) {
        (true, true) => Kind::Atomic,
        (_, true) => Kind::Write,
        _ => Kind::Read,
    }
}

fn scope_of(reach: u8) -> Scope {
    Scope::ALL[usize::from(reach & 3).min(2)]
}

/// The side of a thread of an access.
pub(crate) fn side(access: &Access, lane: u32) -> Side {
    Side {
        site: access.site,
        kind: kind_of(access),
        scope: access.is(Access::STRONG).then(|| scope_of(access.reach)),
        asynchronous: access.is(Access::COPY | Access::BULK),
        block: access.block,
        thread: (!access.is_wide()).then(|| u32::from(access.warp) * LANES as u32 + lane),
    }
}

/// Whether one of two accesses is a plain read and the other an atomic operation.
pub(crate) fn is_guess(a: &Access, b: &Access) -> bool {
    let read =
        |access: &Access| kind_of(access) == Kind::Read && !access.is(Access::STRONG | Access::COPY | Access::BULK);
    let atomic = |access: &Access| kind_of(access) == Kind::Atomic && !access.is(Access::BULK);
    read(a) && atomic(b) || read(b) && atomic(a)
}

/// The chain of strong writes that a strong read has the value of: its first place, as far back as
/// each link reaches the reader, and whether no write is before it.
fn chain(history: &[Access], reader: &Access) -> (usize, bool) {
    let atomic = Access::READ | Access::WRITE | Access::STRONG;
    let mut first = history.len();
    for (at, before) in history.iter().enumerate().rev() {
        if !before.is(Access::WRITE) {
            continue;
        }
        let near = before.block == reader.block && (!before.is_wide() || before.lanes == before.block);
        let reaches = near || scope_of(before.reach) == Scope::Device && scope_of(reader.reach) == Scope::Device;
        if !before.is(Access::STRONG) || before.reach >> 4 != reader.reach >> 4 || !reaches {
            return (first, false);
        }
        first = at;
        if before.flags & atomic != atomic {
            return (first, false);
        }
    }
    (first, true)
}

/// Lanes of an access that are to be looked at together: one address, one epoch.
pub(crate) struct Group<'a> {
    pub(crate) block: &'a Block,
    pub(crate) access: Access,
    pub(crate) executing: u32,
    /// What its strong reads have met, though no fence has made it known yet.
    pub(crate) met: Option<Arc<Known>>,
    pub(crate) clusters: &'a FxHashMap<u32, u32>,
    pub(crate) objects: &'a Objects,
    pub(crate) grids: &'a Grids,
    /// The memory is shared.
    pub(crate) shared: bool,
    /// It operates on a barrier object, which every proxy sees.
    pub(crate) object: bool,
    /// Of a bulk operation: it reads a tensor map.
    pub(crate) map: bool,
}

impl Group<'_> {
    pub(crate) fn thread(&self, lane: u32) -> usize {
        usize::from(self.access.warp) * LANES + lane as usize
    }

    /// Whether a thread has a bulk operation behind it.
    fn sees_bulk(&self, lane: u32, before: &Access) -> bool {
        let operation = before.epoch;
        if self.access.is(Access::BULK) && self.access.epoch == operation {
            return true;
        }
        let at = self.thread(lane);
        let thread = &self.block.threads[at];
        if thread.known.knows_end(before.block) {
            return true;
        }
        match self.objects.progress(operation) {
            None => false,
            Some(Progress::Reported { block, object, phase }) => thread.known.knows_phase(block, object, phase),
            Some(Progress::Awaited { block, thread: number, epoch }) => {
                let same = block == self.access.block;
                same && (number as usize == at || epoch < thread.floor) || thread.known.knows(block, number, epoch)
            }
        }
    }

    /// Whether the proxy that carries a bulk operation out knows of a write of before.
    fn crosses(&self, lane: u32, before: &Access, other: u32) -> bool {
        if !self.access.is(Access::BULK) || !before.is(Access::WRITE) || before.is(Access::BULK) || self.object {
            return true;
        }
        let known = &self.block.threads[self.thread(lane)].known;
        let fenced = match (self.map, self.shared) {
            (true, _) => Fenced::Maps,
            (_, true) => Fenced::Shared,
            _ => Fenced::Global,
        };
        if before.is_wide() {
            return (before.block..=before.lanes).all(|block| known.to_proxy(block, ALL, before.epoch, fenced));
        }
        let number = u32::from(before.warp) * LANES as u32 + other;
        if !before.is(Access::COPY) {
            return known.to_proxy(before.block, number, before.epoch, fenced);
        }
        let same = before.block == self.access.block;
        let done = if same { self.block.done_at(number as usize, before.epoch) } else { None };
        done.is_some_and(|epoch| known.to_proxy(before.block, number, epoch, fenced))
            || known.to_proxy(before.block, number | AGENT, before.epoch, fenced)
    }

    /// Whether a thread has an access of before behind it, of a thread of that access, and the
    /// proxy knows of it that carries this one out.
    fn sees(&self, lane: u32, before: &Access, other: u32, met: Option<&Known>) -> bool {
        if before.is(Access::BULK) {
            return self.sees_bulk(lane, before);
        }
        self.comes_behind(lane, before, other, met) && self.crosses(lane, before, other)
    }

    /// The same whatever the proxy.
    fn comes_behind(&self, lane: u32, before: &Access, other: u32, met: Option<&Known>) -> bool {
        let at = self.thread(lane);
        let thread = &self.block.threads[at];
        let number = u32::from(before.warp) * LANES as u32 + other;
        if before.is(Access::COPY) {
            let same = before.block == self.access.block;
            if thread.known.knows_end(before.block) {
                return true;
            }
            let told = |known: &Known| known.knows_copies(before.block, number, before.epoch);
            if told(&thread.known) || met.is_some_and(told) {
                return true;
            }
            let done = if same { self.block.done_at(number as usize, before.epoch) } else { None };
            return done.is_some_and(|epoch| {
                number as usize == at || epoch < thread.floor || thread.known.knows(before.block, number, epoch)
            });
        }
        if before.block == self.access.block && (number as usize == at || before.epoch < thread.floor) {
            return true;
        }
        thread.known.knows(before.block, number, before.epoch)
            || met.is_some_and(|met| met.knows(before.block, number, before.epoch))
            // Waits of the block's scope hand buffers back between blocks in every library: what
            // was only read has been read.
            || !before.is(Access::WRITE) && thread.has_not_heard(before.block, number, before.epoch)
    }

    /// Whether a thread would have an access of before behind it if its wait were of the cluster's
    /// scope.
    fn has_not_heard(&self, before: &Access, (lane, other): (u32, u32)) -> bool {
        let number = u32::from(before.warp) * LANES as u32 + other;
        let thread = &self.block.threads[self.thread(lane)];
        !before.is_wide()
            && !before.is(Access::COPY | Access::BULK)
            && thread.has_not_heard(before.block, number, before.epoch)
    }

    /// Whether an access of before has read shared memory ahead of a product that somebody has
    /// waited for whom the thread knows of. A product begins once all warps of its warp group have
    /// issued it, and a warp issues its reads of shared memory before it, in order; so devices have
    /// read by then. The memory model has no such rule (PTX ISA, "Asynchronous Warpgroup Level
    /// Matrix Instructions": the wait is one for the product).
    fn read_before_product(&self, before: &Access, (lane, other): (u32, u32)) -> bool {
        let number = u32::from(before.warp) * LANES as u32 + other;
        let known = &self.block.threads[self.thread(lane)].known;
        self.shared
            && !before.is(Access::WRITE | Access::COPY | Access::BULK)
            && !before.is_wide()
            && known.to_proxy(before.block, number, before.epoch, Fenced::Product)
    }

    /// Whether a thread has all accesses of whole blocks behind it.
    fn sees_all(&self, lane: u32, before: &Access) -> bool {
        let thread = &self.block.threads[self.thread(lane)];
        (before.block..=before.lanes).all(|block| {
            block == self.access.block && before.epoch < thread.floor
                || thread.known.floor(block) > before.epoch
                || self.met.as_ref().is_some_and(|met| met.floor(block) > before.epoch)
        })
    }

    /// The first lane that has not all of an access of before behind it, and that lane.
    pub(crate) fn unordered(&self, before: &Access) -> Option<(u32, u32)> {
        if before.is_wide() {
            let sees = |lane: u32| self.sees_all(lane, before) && self.crosses(lane, before, 0);
            return lanes(self.access.lanes).find(|&lane| !sees(lane)).map(|lane| (lane, 0));
        }
        let same_warp = (before.block, before.warp) == (self.access.block, self.access.warp);
        // What others carry out is not in the thread's order.
        let behind_the_back = before.is(Access::COPY | Access::BULK) || self.access.is(Access::BULK);
        if same_warp && before.lanes == self.access.lanes && before.lanes.is_power_of_two() && !behind_the_back {
            return None;
        }
        let all = lanes(self.access.lanes).flat_map(|lane| lanes(before.lanes).map(move |other| (lane, other)));
        let all = all.filter(|&(lane, other)| !same_warp || lane != other || behind_the_back);
        let mut unseen = all.filter(|&(lane, other)| !self.sees(lane, before, other, self.met.as_deref()));
        let first = unseen.next()?;
        if !self.read_before_product(before, first) {
            return Some(first);
        }
        // The surest pair is told.
        Some(unseen.find(|&pair| !self.read_before_product(before, pair)).unwrap_or(first))
    }

    /// Whether later accesses that race with one of before race with this one as well, where it
    /// comes behind.
    fn covers(&self, before: &Access) -> bool {
        let now = &self.access;
        (now.is(Access::WRITE) || !before.is(Access::WRITE))
            && (!now.is(Access::STRONG)
                || before.is(Access::STRONG)
                    && (now.reach, now.flags & Access::VOLATILE) == (before.reach, before.flags & Access::VOLATILE)
                    && (scope_of(now.reach) == Scope::Device || now.block == before.block))
            // Benign pairs must not hide others, nor a byte that a compare-and-swap keeps one that
            // it changes.
            && now.kept() & !before.kept() == 0
            && (!now.is(Access::UNCHANGED) || before.is(Access::UNCHANGED) || !before.is(Access::WRITE))
    }

    /// The lanes of an access of before that this one covers. It covers what its threads have
    /// behind them, also without a fence to come.
    pub(crate) fn covered(&self, before: &Access, ordered: bool) -> u32 {
        if !self.covers(before) {
            return 0;
        }
        if ordered {
            return u32::MAX;
        }
        if before.is_wide() {
            return 0;
        }
        let first = self.access.lanes.trailing_zeros();
        let thread = &self.block.threads[self.thread(first)];
        if thread.known.is_empty() && !before.is(Access::COPY | Access::BULK) && !self.access.is(Access::BULK) {
            // It knows of the block's common past, and of its warp what it has done itself.
            let past = before.block == self.access.block && before.epoch < thread.floor;
            let own = (before.block, before.warp) == (self.access.block, self.access.warp);
            return if past { u32::MAX } else { u32::from(own) * self.access.lanes };
        }
        let mut covered = 0;
        if (before.block, before.warp) == (self.access.block, self.access.warp)
            && (!before.is(Access::COPY) || self.access.is(Access::COPY))
            && !before.is(Access::BULK)
            && !self.access.is(Access::BULK)
        {
            covered = self.access.lanes;
        }
        for other in lanes(before.lanes & !covered) {
            covered |= u32::from(self.sees(first, before, other, None)) << other;
        }
        covered
    }

    /// Whether each of two strong accesses reaches the other's thread.
    pub(crate) fn reach_each_other(&self, before: &Access) -> bool {
        let cluster = |block: u32| self.clusters.get(&block).copied().unwrap_or(block);
        let (mine, theirs) = (self.access.block, before.block);
        [self.access.reach, before.reach].into_iter().all(|reach| match scope_of(reach) {
            Scope::Block => mine == theirs && (!before.is_wide() || before.block == before.lanes),
            Scope::Cluster => cluster(mine) == cluster(theirs),
            Scope::Device => true,
        })
    }

    /// Which accesses of a history have been observed by strong reads that happen before this
    /// access: strong writes that they read, or that read-modify-writes have made their values of
    /// (PTX ISA, "Observation Order" and "Causality Order"). So whoever draws the last number from
    /// a counter may set it back by a plain write, without an acquire. The ranges are of places in
    /// the history, which is in the order of execution.
    pub(crate) fn observed(&self, history: &[Access]) -> Vec<std::ops::Range<usize>> {
        let mut observed = Vec::new();
        if !history.iter().any(|access| access.is(Access::STRONG) && access.is(Access::WRITE)) {
            return observed;
        }
        let sees = |before: &Access| {
            let one = |lane| lanes(before.lanes).any(|other| self.sees(lane, before, other, None));
            before.is(Access::STRONG)
                && before.is(Access::READ)
                && !before.is_wide()
                && lanes(self.access.lanes).all(one)
        };
        let mut end = history.len();
        while let Some(last) = history[..end].iter().rposition(sees) {
            end = last;
            if observed.iter().any(|seen: &std::ops::Range<usize>| seen.contains(&last)) {
                continue;
            }
            let (first, is_all) = chain(&history[..last], &history[last]);
            if first < last {
                observed.push(first..last);
            }
            // Else an earlier reader may have observed older writes, or some of another size.
            if is_all {
                break;
            }
        }
        observed
    }

    /// The place from which on the chain goes that this access continues; without one the history's
    /// end. An observer before that place is needed still: nothing else tells that what it has
    /// observed comes before its thread's further accesses.
    pub(crate) fn continues(&self, history: &[Access]) -> usize {
        let reads = self.access.is(Access::STRONG) && self.access.is(Access::READ);
        if reads { chain(history, &self.access).0 } else { history.len() }
    }

    /// The write of a history that a plain read meets in vain: the same value was written behind it
    /// once more, by the readers themselves (all threads of a block set one variable, and use it at
    /// once) or by others that they come behind (each block fills a table, the same one).
    pub(crate) fn repeated(&self, history: &[Access]) -> Option<usize> {
        let now = &self.access;
        let other = Access::STRONG | Access::COPY | Access::BULK;
        if now.is(Access::WRITE | other) {
            return None;
        }
        let again = Access::WRITE | Access::UNCHANGED;
        let by_readers = |before: &Access| {
            (before.block, before.warp) == (now.block, now.warp) && before.lanes & now.lanes == now.lanes
        };
        let own = history.iter().rposition(|before| {
            before.flags & (again | other) == again && (by_readers(before) || self.unordered(before).is_none())
        })?;
        let last =
            history[..own].iter().rposition(|before| before.is(Access::WRITE) && !before.is(Access::UNCHANGED))?;
        (!history[last].is(other)).then_some(last)
    }

    /// Whether two asynchronous copies (`cp.async`) are of one thread, and of one group. Those of a
    /// group have no order (PTX ISA, "cp.async.commit_group": undefined if they write the same
    /// bytes). Groups end in the order in which they were closed, which does not say when each of
    /// their copies writes.
    fn refills(&self, before: &Access, (lane, other): (u32, u32)) -> Option<Refill> {
        let now = &self.access;
        let both = now.is(Access::COPY) && before.is(Access::COPY);
        let one = lane == other && (before.block, before.warp) == (now.block, now.warp);
        (both && one).then_some(if before.epoch == now.epoch { Refill::InGroup } else { Refill::NextGroup })
    }

    pub(crate) fn evidence(&self, before: &Access, (lane, other): (u32, u32)) -> Evidence {
        let now = &self.access;
        // Of the threads that a wide access is of, some may be known one by one.
        let known = [Some(&self.block.threads[self.thread(lane)].known), self.met.as_ref()];
        let named = |known: &Arc<Known>| known.names_threads(before.block, before.lanes, before.epoch);
        let plain = |access: &Access| !access.is(Access::STRONG);
        let same_warp = !before.is_wide() && (before.block, before.warp) == (now.block, now.warp);
        // In machine code nothing shows that the lanes which copy a map meet (`.sync.aligned`).
        let reads_map_in_machine_code = self.map && self.object;
        let copies =
            before.is(Access::COPY | Access::BULK) || now.is(Access::COPY | Access::BULK) && !reads_map_in_machine_code;
        let proxies_write = now.is(Access::BULK)
            && now.is(Access::WRITE)
            // What a reduction adds to has to be known.
            && !now.is(Access::READ)
            && !before.is(Access::BULK)
            && before.is(Access::WRITE)
            && self.comes_behind(lane, before, other, self.met.as_deref());
        Evidence {
            same_value: plain(now)
                && plain(before)
                && (now.is(Access::UNCHANGED) || before.is(Access::UNCHANGED) && !now.is(Access::WRITE)),
            same_warp: same_warp && !copies,
            lockstep: same_warp && !copies && (before.is(Access::WHOLE) || self.executing >> other & 1 != 0),
            is_volatile: now.is(Access::VOLATILE) || before.is(Access::VOLATILE),
            blocks_differ: now.block != before.block || before.is_wide() && before.block != before.lanes,
            mixed_size: now.is(Access::STRONG) && before.is(Access::STRONG) && now.reach >> 4 != before.reach >> 4,
            flag_like: false,
            kept: false,
            widened: before.is_wide() && (!before.is_exact() || known.into_iter().flatten().any(named)),
            proxies_write,
            refill: self.refills(before, (lane, other)),
            narrow_wait: self.has_not_heard(before, (lane, other)),
            before_product: self.read_before_product(before, (lane, other)),
        }
    }

    pub(crate) fn remedy(&self, before: &Access, (lane, other): (u32, u32), evidence: Evidence) -> Remedy {
        let now = &self.access;
        let both = |flag| now.is(flag) && before.is(flag);
        let cluster = |block: u32| self.clusters.get(&block);
        if !self.grids.are_of_one(now.block, before.block) {
            Remedy::LaunchOrder
        } else if before.is(Access::BULK) {
            if before.epoch & GROUPED != 0 { Remedy::AwaitGroup } else { Remedy::AwaitPhase }
        } else if now.is(Access::BULK) && !before.is_wide() && self.comes_behind(lane, before, other, None) {
            if self.map { Remedy::MapFence } else { Remedy::ProxyFence }
        } else if self.has_not_heard(before, (lane, other)) {
            Remedy::WiderWait
        } else if evidence.before_product {
            Remedy::EachReader
        } else if now.is(Access::BULK) && !before.is(Access::WRITE) {
            Remedy::AwaitUsers
        } else if now.is(Access::COPY) || before.is(Access::COPY) {
            Remedy::AwaitCopy
        } else if both(Access::STRONG) && !evidence.flag_like {
            Remedy::WiderScope
        } else if now.is(Access::STRONG) != before.is(Access::STRONG) && !now.is(Access::BULK) {
            Remedy::Atomic
        } else if now.block != before.block || before.is_wide() && before.block != before.lanes {
            let same = cluster(now.block).is_some() && cluster(now.block) == cluster(before.block);
            if same { Remedy::ClusterBarrier } else { Remedy::ReleaseAcquire }
        } else if now.warp == before.warp {
            Remedy::WarpBarrier
        } else {
            Remedy::BlockBarrier
        }
    }
}
