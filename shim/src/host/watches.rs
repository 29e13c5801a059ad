//! The watched bytes: memory of copies that may not have run yet, with what it looked like.
//!
//! Owns the table of watches and its rules; lives behind the lock of `crate::log::core`. Checksums
//! are computed outside of that lock, so a watch that a thread is checking is marked as such, and
//! what makes the check worthless meanwhile marks it void.
//!
//! # Why a change proves a race
//!
//! A watch begins when its copy has been enqueued and ends at the first moment at which the host is
//! ordered after the copy; that moment is known to this shim before the program's call returns.
//! Whatever changed the bytes in between was not ordered after the copy. It was the host, unless
//! work of the device wrote there. The analyzer, which knows what kernels write, rules that out,
//! and also programs that learn of the copy's end from memory which a kernel writes.

use cuda_sys::{CU_MEMHOSTALLOC_WRITECOMBINED, CU_MEMHOSTREGISTER_IOMEMORY};
use order::{AwaitedWord, Engine};
use trace::{Epoch, HostFuncId, Op, Region};

use crate::host::awaited::AwaitedWords;
use crate::host::checksum;
use crate::host::checksum::Checksums;
use crate::host::in_place::InPlace;
use crate::host::page_protection;

/// Watches at a time. More are not begun: the oldest one makes room.
const MOST: usize = 256;
/// Bytes to sum up of a source whose pages are protected, when more would take too long.
const LEAST_SAMPLE: u64 = 1024;

/// Memory of the host that devices can reach, whose bytes may be read here.
#[derive(Clone, Copy, Debug)]
struct Pinned {
    start: u64,
    end: u64,
    /// Reading it is some hundred times slower than usual.
    write_combined: bool,
    /// The program's own pages: it may take them away without a word.
    registered: bool,
    /// All of it can be read and written, and may lose that for a while.
    ordinary: bool,
}

impl Pinned {
    /// Whether it is small, and quick to read.
    fn may_be_table(&self) -> bool {
        /// Larger memory holds no tables of pointers that are worth the time.
        const LARGEST: u64 = 4096;
        self.end - self.start <= LARGEST && !self.write_combined
    }
}

/// What is watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watched {
    /// A source in pinned memory.
    Pinned,
    /// A source in memory that CUDA does not know.
    Pageable,
    /// A target in pinned memory: only the CPU's touches are looked for.
    Written,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Its first sums are being made.
    New,
    /// No thread checks it.
    Idle,
    /// A thread compares the bytes.
    Looked,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    id: u32,
    epoch: Epoch,
    region: Region,
    most: u64,
    seed: u32,
    registered: bool,
    ordinary: bool,
    /// The work writes the bytes: only the CPU's touches are looked for.
    writes: bool,
    /// What the work waits for.
    awaits: AwaitedWords,
    /// Nothing says when the memory goes away.
    pageable: bool,
    sums: Checksums,
    state: State,
    /// The result of the check that is under way means nothing.
    void: bool,
}

/// One watch to check outside of the lock.
#[derive(Clone, Copy, Debug)]
pub struct WatchCheck {
    /// Its number.
    pub id: u32,
    /// Its bytes.
    pub region: Region,
    /// The size of the sample, see [`checksum::sums`].
    pub most: u64,
    /// How many bytes there are.
    pub bytes: u64,
    /// Which sample.
    pub seed: u32,
    /// The program's own pages: each is to be tried before it is read.
    pub registered: bool,
}

/// All watches, and the memory that can be watched.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Watches {
    list: Vec<Watch>,
    /// How often the host's knowledge had changed when the watches were last held against it.
    seen: u64,
    pinned: Vec<Pinned>,
    last: u32,
    /// The latest launch on each timeline of a graph with host functions.
    callers: Vec<Epoch>,
    /// Pages may be protected.
    accesses: bool,
    /// What devices use in place.
    pub in_place: InPlace,
}

impl Watches {
    /// No watches. `accesses`: pages may be protected.
    pub fn new(accesses: bool) -> Self {
        Self { accesses, ..Self::default() }
    }

    /// Memory comes and goes. Answers whether this op changed the list.
    #[inline]
    pub fn note(&mut self, op: &Op<'_>) -> bool {
        use trace::{FreeKind, MemoryKind};
        let may_be_pinned = matches!(
            op,
            Op::Alloc { kind: MemoryKind::PinnedHost | MemoryKind::RegisteredHost, .. }
                | Op::Free { kind: FreeKind::Host | FreeKind::Unregister, .. }
        );
        may_be_pinned && self.note_memory(op)
    }

    #[cold]
    fn note_memory(&mut self, op: &Op<'_>) -> bool {
        use trace::{FreeKind, MemoryKind};
        match *op {
            Op::Alloc {
                ptr, size, kind: kind @ (MemoryKind::PinnedHost | MemoryKind::RegisteredHost), flags, ..
            } => {
                let registered = kind == MemoryKind::RegisteredHost;
                let end = ptr.saturating_add(size);
                self.pinned.retain(|p| p.end <= ptr || p.start >= end);
                if !(registered && flags & CU_MEMHOSTREGISTER_IOMEMORY != 0) && size > 0 {
                    let write_combined = !registered && flags & CU_MEMHOSTALLOC_WRITECOMBINED != 0;
                    let at = self.pinned.partition_point(|p| p.start < ptr);
                    let ordinary = self.accesses && page_protection::is_ordinary(ptr, end);
                    self.pinned.insert(at, Pinned { start: ptr, end, write_combined, registered, ordinary });
                }
                true
            }
            Op::Free { ptr, kind: FreeKind::Host | FreeKind::Unregister, .. } => {
                self.pinned.retain(|p| p.start != ptr);
                true
            }
            _ => false,
        }
    }

    /// First address of memory that is pinned or watched, and one past the last.
    pub fn bounds(&self) -> (u64, u64) {
        let pageable = self.list.iter().filter(|w| w.pageable).map(|w| (w.region.start, w.region.end()));
        let all = self.pinned.iter().map(|p| (p.start, p.end)).chain(pageable);
        all.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, 0))
    }

    fn pinned(&self, region: &Region) -> Option<Pinned> {
        let at = self.pinned.partition_point(|p| p.start <= region.start).checked_sub(1)?;
        self.pinned.get(at).copied().filter(|p| region.end() <= p.end && !region.is_empty())
    }

    /// First address of pinned memory that may be tables of pointers, and one past the last; zeros:
    /// there is none.
    pub fn table_bounds(&self) -> (u64, u64) {
        let end = self.pinned.iter().filter(|p| p.may_be_table()).map(|p| p.end).max().unwrap_or(0);
        (self.pinned.iter().find(|p| p.may_be_table()).map_or(0, |p| p.start), end)
    }

    /// One past the last address of such memory around an address.
    pub fn end_of_table(&self, address: u64) -> Option<u64> {
        let at = self.pinned.partition_point(|p| p.start <= address).checked_sub(1)?;
        self.pinned.get(at).filter(|p| address < p.end && p.may_be_table()).map(|p| p.end)
    }

    /// The range that a free of this address takes away.
    pub fn range(&self, ptr: u64) -> Option<(u64, u64)> {
        self.pinned.iter().find(|p| p.start == ptr).map(|p| (p.start, p.end))
    }

    /// Whether nothing is watched.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A graph with host functions was launched.
    pub fn calls_host(&mut self, epoch: Epoch) {
        self.callers.retain(|e| e.timeline != epoch.timeline);
        self.callers.push(epoch);
    }

    /// Whether a graph may be running host functions, which nobody sees.
    pub fn graphs_call_host(&mut self, engine: &Engine) -> bool {
        self.callers.retain(|epoch| !engine.host_covers(*epoch));
        !self.callers.is_empty()
    }

    /// Begins to watch bytes that work at `epoch` reads or writes, unless it is over or its bytes
    /// are not such memory. `most`: how many bytes to sum up at most, by the size of the region;
    /// none: not to watch them, unless the CPU's touches are looked for anyway.
    pub fn begin(
        &mut self,
        engine: &Engine,
        epoch: Epoch,
        region: &Region,
        what: Watched,
        most: impl FnOnce(u64, bool) -> Option<u64>,
    ) -> Option<WatchCheck> {
        let (start, end) = (region.start, region.end());
        let memory = match what {
            Watched::Pageable if region.is_empty() => return None,
            Watched::Pageable => Pinned { start, end, write_combined: false, registered: true, ordinary: false },
            Watched::Pinned | Watched::Written => self.pinned(region)?,
        };
        let writes = what == Watched::Written;
        self.callers.retain(|epoch| !engine.host_covers(*epoch));
        // A host function that is still to run may fill the bytes, in order before the copy.
        if engine.host_covers(epoch) || engine.host_functions_pending() || !self.callers.is_empty() {
            return None;
        }
        let bytes = bytes_of(region);
        let most =
            if writes { 0 } else { most(bytes, memory.write_combined).or(memory.ordinary.then_some(LEAST_SAMPLE))? };
        if self.list.len() >= MOST {
            let oldest = self.list.iter().position(|w| w.state == State::Idle)?;
            self.remove(oldest);
        }
        // Words in other memory may go away unseen, or the host cannot read them.
        let may_be_read = |word: &AwaitedWord| {
            let bytes = Region::linear(word.address, u64::from(word.width()));
            self.pinned(&bytes).is_some_and(|pinned| !pinned.registered)
        };
        let awaits = AwaitedWords::of(engine.awaited_words(epoch.timeline), may_be_read);
        self.last += 1;
        let watch = Watch {
            id: self.last,
            epoch,
            region: *region,
            most,
            seed: self.last,
            registered: memory.registered,
            ordinary: memory.ordinary,
            writes,
            awaits,
            pageable: what == Watched::Pageable,
            sums: [0; checksum::PARTS],
            state: if writes { State::Idle } else { State::New },
            void: false,
        };
        self.list.push(watch);
        Some(watch.look())
    }

    /// The first sums of a watch are made, of the sample of this seed. False: it has come to
    /// nothing meanwhile.
    pub fn ready(&mut self, engine: &Engine, id: u32, seed: u32, sums: Option<Checksums>) -> bool {
        let Some(at) = self.list.iter().position(|w| w.id == id) else { return false };
        let watch = &mut self.list[at];
        match sums {
            Some(sums) if !watch.void && !engine.host_covers(watch.epoch) => {
                (watch.sums, watch.seed, watch.state) = (sums, seed, State::Idle);
                true
            }
            _ => {
                self.remove(at);
                false
            }
        }
    }

    /// Whether the op just applied may have ended watches. `calls_host`: it is the beginning of a
    /// host function.
    #[inline]
    pub fn is_due(&self, engine: &Engine, calls_host: bool) -> bool {
        let any = !self.list.is_empty() || !self.in_place.is_idle();
        any && (calls_host || engine.host_changes() != self.seen)
    }

    /// A watch to check because it ends, if there is one. Those that other threads are checking are
    /// void now: a thread that waited for the same work may touch the bytes as soon as its call
    /// returns.
    pub fn next_ended(&mut self, engine: &Engine, func: Option<HostFuncId>) -> Option<WatchCheck> {
        self.seen = engine.host_changes();
        self.in_place.settle(engine);
        // A host function in stream order knows more than the host.
        let clock = func.and_then(|func| Some(engine.host_function(func)?.1));
        let is_over = |w: &Watch| engine.host_covers(w.epoch) || clock.is_some_and(|clock| clock.covers(w.epoch));
        self.drop_where(|w| w.writes && is_over(w));
        let mut found = None;
        for watch in &mut self.list {
            if watch.writes || !is_over(watch) {
                continue;
            }
            match watch.state {
                State::Idle if found.is_none() => {
                    watch.state = State::Looked;
                    found = Some(watch.look());
                }
                State::Idle => {}
                // As soon as that: the thread that checks it now gives its pages back only when all
                // has been summed up.
                State::New | State::Looked => {
                    watch.void = true;
                    page_protection::release(watch.id);
                }
            }
        }
        found
    }

    /// A watch to check because new work reads some of its bytes, if there is one that is older
    /// than `than`.
    pub fn next_reused(&mut self, region: &Region, than: u32, after: u32) -> Option<WatchCheck> {
        let overlaps = |w: &Watch| w.region.start < region.end() && region.start < w.region.end();
        let next = self
            .list
            .iter_mut()
            .find(|w| w.id > after && w.id < than && !w.writes && w.state == State::Idle && overlaps(w))?;
        next.state = State::Looked;
        Some(next.look())
    }

    /// The bytes that a check found changed; `None` also when the check is void.
    pub fn changed(&self, id: u32, now: &Checksums) -> Option<(u64, u64)> {
        let watch = self.list.iter().find(|w| w.id == id && !w.void)?;
        checksum::changed(&watch.region, &watch.sums, now)
    }

    /// The bytes of a check that could not read them, when that tells that the program has given
    /// the memory back.
    pub fn taken_away(&self, id: u32) -> Option<(u64, u64)> {
        let watch = self.list.iter().find(|w| w.id == id && !w.void && w.pageable)?;
        Some((watch.region.start, watch.region.end()))
    }

    /// A check is over, and with it the watch, unless it `goes_on`.
    pub fn settle(&mut self, id: u32, goes_on: bool) {
        let Some(at) = self.list.iter().position(|w| w.id == id) else { return };
        if goes_on && !self.list[at].void {
            self.list[at].state = State::Idle;
        } else {
            self.remove(at);
        }
    }

    /// Earlier work at the same timeline that read just these bytes: what races with it races
    /// with the new one too.
    pub fn supersede(&mut self, id: u32) {
        let Some(new) = self.list.iter().find(|w| w.id == id).copied() else { return };
        self.drop_where(|w| {
            let same = w.epoch.timeline == new.epoch.timeline && w.region == new.region && w.writes == new.writes;
            same && w.id < id && w.state == State::Idle
        });
    }

    /// The device is about to write to these bytes: what they looked like says nothing any more.
    pub fn forget(&mut self, start: u64, end: u64) {
        let hit = |w: &Watch| w.region.start < end && start < w.region.end();
        self.list.iter_mut().filter(|w| hit(w)).for_each(|w| w.void = true);
        self.drop_where(|w| hit(w) && w.state == State::Idle && !w.writes);
    }

    /// Memory goes away, and with it every watch of it that no thread is checking.
    pub fn leave(&mut self, start: u64, end: u64) {
        self.in_place.leave(start, end);
        self.forget(start, end);
        self.drop_where(|w| w.region.start < end && start < w.region.end() && w.state == State::Idle);
    }

    /// All that there is to say of a watch has been said.
    pub fn end(&mut self, id: u32) {
        self.list.iter_mut().filter(|w| w.id == id).for_each(|w| w.void = true);
        self.drop_where(|w| w.id == id && w.state == State::Idle);
    }

    /// Takes the CPU's access to the bytes of a watch away, where that can be.
    pub fn protect(&mut self, id: u32) {
        let Some(w) = self.list.iter().find(|w| w.id == id && w.ordinary) else { return };
        if !self.in_place.knows(w.region.start) {
            page_protection::protect(w.id, &w.region, w.writes, w.awaits);
        } else if !w.writes && !w.awaits.is_empty() {
            page_protection::note_awaits(w.id, &w.region, w.awaits);
        }
    }

    fn remove(&mut self, at: usize) {
        page_protection::release(self.list.remove(at).id);
    }

    fn drop_where(&mut self, which: impl Fn(&Watch) -> bool) {
        self.list.retain(|w| {
            let goes = which(w);
            if goes {
                page_protection::release(w.id);
            }
            !goes
        });
    }

    /// Whether a thread is reading bytes of this range now.
    pub fn is_read(&self, start: u64, end: u64) -> bool {
        self.list.iter().any(|w| w.state != State::Idle && w.region.start < end && start < w.region.end())
    }
}

/// How many bytes a region has.
fn bytes_of(region: &Region) -> u64 {
    region.width.saturating_mul(u64::from(region.height)).saturating_mul(u64::from(region.depth))
}

impl Watch {
    fn look(&self) -> WatchCheck {
        let &Watch { id, region, most, seed, registered, .. } = self;
        WatchCheck { id, region, most, bytes: bytes_of(&region), seed, registered }
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
