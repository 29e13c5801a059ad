//! Early frees: blocks that returned to PyTorch's allocator or another pool while another stream
//! was still using them. With PyTorch: a forgotten `record_stream`.
//!
//! Owns the watch over such blocks, from the free to the first allocation that could have been
//! given their bytes. At that allocation the mistake becomes a race that only the allocator's
//! choice has hidden, and it is reported. A program that makes the allocating stream wait before it
//! allocates again has made no mistake. When an allocation really gets the bytes, the block is no
//! longer watched: from then on the accesses of the new block show the race.
//!
//! `record_stream` is visible in the trace. Before the allocator takes such a block back, it
//! records an event on every stream that was named, directly before its report of the free and on
//! the same thread, and it hands the block out only when a query has found these events complete.
//! So a use that such an event covers is not watched. While a stream is being captured the
//! allocator postpones those events: nothing is watched then.

use crate::memory::{Access, AccessKind, Allocation, AllocationId, Allocations, Exclusion, Extent, Site};
use crate::race::Race;
use crate::state::happens_before::View;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use trace::{Epoch, Op, StreamId, ThreadId};

use crate::memory::access_map::{Clocks, Ordered};
use crate::memory::allocations::Home;

/// Maximum number of watched blocks.
const MOST: usize = 1024;
/// Maximum number of uses kept of one block, one a timeline.
const USES: usize = 4;
/// PyTorch keeps blocks up to this size in a separate pool.
const SMALL: u64 = 1 << 20;

struct Block {
    info: Allocation,
    uses: SmallVec<[Access; USES]>,
}

/// The watch of one process.
#[derive(Default)]
pub struct EarlyFreeWatch {
    blocks: Vec<Block>,
    /// Events that a thread has recorded with nothing else in between.
    records: FxHashMap<ThreadId, SmallVec<[Epoch; 4]>>,
    /// Streams that are being captured.
    captures: SmallVec<[StreamId; 2]>,
    /// Take no notice of events: what would be used if `record_stream` was never called?
    without_events: bool,
}

impl EarlyFreeWatch {
    /// From now on events do not count.
    pub fn ignore_events(&mut self) {
        self.without_events = true;
    }

    /// Observes any op, to know which events were recorded directly before a free.
    pub fn observe(&mut self, op: &Op<'_>, thread: ThreadId, epoch: Epoch) {
        match op {
            Op::EventRecord { .. } => self.records.entry(thread).or_default().push(epoch),
            Op::EventCreate { .. } | Op::Free { kind: trace::FreeKind::Block, .. } => {}
            // Captured streams do no work.
            Op::CaptureRecord { .. } | Op::CaptureWait { .. } | Op::CaptureNode { .. } => {}
            Op::CaptureStart { stream, .. } if !self.captures.contains(stream) => self.captures.push(*stream),
            // All that is said of the start of a capture whose stream has no name.
            Op::CaptureChanged { .. } if self.captures.is_empty() => self.captures.push(StreamId::NONE),
            Op::CaptureStart { .. } | Op::CaptureChanged { .. } => {}
            Op::CaptureDone { stream } => self.captures.retain(|open| open != stream),
            _ => self.interrupt(thread),
        }
    }

    /// The next free of a thread comes after this event, which no record of the trace stands for.
    pub fn covered(&mut self, thread: ThreadId, epoch: Epoch) {
        self.records.entry(thread).or_default().push(epoch);
    }

    /// As [`EarlyFreeWatch::observe`], of an op that is not the allocator's.
    #[inline]
    pub fn interrupt(&mut self, thread: ThreadId) {
        if let Some(list) = self.records.get_mut(&thread) {
            list.clear();
        }
    }

    /// A kernel was launched on a stream. One that works is not captured: the end of a capture that
    /// failed is not told.
    #[inline]
    pub fn launched(&mut self, thread: ThreadId, stream: StreamId) {
        self.interrupt(thread);
        if !self.captures.is_empty() {
            self.captures.retain(|open| *open != stream && !open.is_none());
        }
    }

    /// A block is freed. `view`: the order as seen from its own stream now.
    pub fn freed(&mut self, info: &Allocation, home: Home, memory: &mut Allocations, view: &View<'_>, site: Site) {
        let mut records = self.records.remove(&site.thread).unwrap_or_default();
        if self.without_events {
            records.clear();
        }
        if !self.captures.is_empty() || self.blocks.len() >= MOST {
            return;
        }
        let all = whole(info, view.epoch, site);
        let mut uses: SmallVec<[Access; USES]> = SmallVec::new();
        let mut see = |used: &Access, latent: bool| {
            let on_stream = view.stream_epoch(used.epoch);
            let covered = records.iter().any(|r| r.timeline == on_stream.timeline && r.time >= on_stream.time);
            let known = uses.iter().any(|u: &Access| u.epoch.timeline == used.epoch.timeline && u.epoch >= used.epoch);
            let foreign = !used.site.stream.is_none() && used.site.stream != info.stream;
            if !latent && foreign && !covered && !known && used.allocation == info.id && uses.len() < USES {
                uses.push(used.clone());
            }
        };
        if let Some(map) = memory.map(home) {
            map.check(&all, view, &mut see);
        }
        if !uses.is_empty() {
            self.blocks.push(Block { info: *info, uses });
        }
    }

    /// Whether blocks of this stream are watched.
    pub fn watches(&self, stream: StreamId) -> bool {
        self.blocks.iter().any(|block| block.info.stream == stream)
    }

    /// A block was allocated on a stream. `view`: the order as seen from that stream now. `site`:
    /// the allocation.
    pub fn handed_out(&mut self, size: u64, view: &View<'_>, site: Site, races: &mut Vec<Race>) {
        self.blocks.retain_mut(|block| {
            let fits = size <= block.info.size && (size <= SMALL) == (block.info.size <= SMALL);
            if block.info.stream != site.stream {
                return true;
            }
            block.uses.retain(|used| view.ordered(used.epoch, used.site.node) == Ordered::No);
            if block.uses.is_empty() || !fits {
                return !block.uses.is_empty();
            }
            let access = whole(&block.info, view.epoch, site);
            let judged = block.uses.iter().filter_map(|used| Race::judge(used, &access, false));
            races.extend(judged.map(|race| Race { freed_early: true, ..race }));
            false
        });
    }

    /// These addresses belong to another allocation now.
    pub fn forget(&mut self, start: u64, end: u64) {
        if !self.blocks.is_empty() {
            self.blocks.retain(|block| block.info.end() <= start || end <= block.info.ptr);
        }
    }
}

/// The access that stands for the next owner of a block.
fn whole(info: &Allocation, epoch: Epoch, site: Site) -> Access {
    let allocation: AllocationId = info.id;
    let (extent, exclusion) = (Extent::exact(info.ptr, info.end()), Exclusion::NONE);
    Access { epoch, kind: AccessKind::Write, extent, allocation, site, exclusion }
}
