//! Work that escapes a capture: a call of a capturing thread on a stream that is not captured. It
//! runs once, and the graph has no node for it.
//!
//! Owns which work escaped, and what became of the bytes that it read and wrote. Much of it is
//! meant: constants are made, caches are filled. It is a mistake where a graph goes on reading what
//! was written once, although the bytes that it was made of have changed. So one that reads nothing
//! is not kept, nor one whose result was overwritten since, by whatever it may be.

use super::access::{Access, Cause, Site};
use super::extent::{Extent, Meet, Precision};
use super::{AllocationId, Strays};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::collections::VecDeque;
use trace::{CaptureId, Op, StreamId, ThreadId};

/// Escaped ops that are watched at most; the oldest ones make room.
const MAX_ESCAPED: usize = 64;
/// Accesses that are kept of one.
const MAX_ACCESSES: usize = 16;
/// Launches of graphs without a mistake, after which one is not watched any longer.
const MAX_LAUNCHES: u32 = 64;
/// Mistakes that are kept.
const MAX_MISSED: usize = 16;

/// A node reads what an escaped op left, which is out of date.
#[derive(Clone, Copy, Debug)]
pub struct Missed {
    /// The stream whose capture was escaped from.
    pub captured: StreamId,
    /// The op that escaped.
    pub escaped: Site,
    /// What has changed the bytes that it read.
    pub changed: Site,
    /// The node.
    pub node: Site,
}

#[derive(Debug)]
struct Bytes {
    allocation: AllocationId,
    extent: Extent,
}

#[derive(Debug)]
struct Escaped {
    capture: CaptureId,
    captured: StreamId,
    /// When, in writes to places that are not known.
    moment: u64,
    site: Option<Site>,
    reads: Vec<Bytes>,
    writes: Vec<Bytes>,
    /// Numbers of the nodes that were captured after it.
    nodes: FxHashSet<u32>,
    changed: Option<Site>,
    launches: u32,
}

/// The escaped ops of a process.
#[derive(Debug, Default)]
pub struct Escapes {
    /// Captures that have not ended.
    open: Vec<(CaptureId, ThreadId, StreamId)>,
    all: VecDeque<Escaped>,
    /// The op in hand is the last one.
    recording: bool,
    /// Numbers of the node in hand.
    node: SmallVec<[u32; 2]>,
    missed: Vec<Missed>,
}

impl Escaped {
    /// An access of itself.
    fn record(&mut self, access: &Access) {
        self.site.get_or_insert(access.site);
        let bytes = || Bytes { allocation: access.allocation, extent: access.extent.clone() };
        if access.kind.reads() && is_known(access) && self.reads.len() < MAX_ACCESSES {
            self.reads.push(bytes());
        }
        if access.kind.writes() && is_known(access) && self.writes.len() < MAX_ACCESSES {
            self.writes.push(bytes());
        }
    }

    /// Something else writes, allocates or frees.
    fn overwrite(&mut self, access: &Access) {
        let meets = |bytes: &Bytes| bytes.extent.meet(&access.extent) != Meet::No;
        self.writes.retain(|bytes| !meets(bytes));
        let gone = matches!(access.site.cause, Cause::Alloc | Cause::Free | Cause::Discard);
        self.reads.retain(|bytes| !(meets(bytes) && (gone || bytes.allocation != access.allocation)));
        let changes = |bytes: &Bytes| is_known(access) && bytes.extent.meet(&access.extent) == Meet::Yes;
        if self.changed.is_none() && self.reads.iter().any(changes) {
            self.changed = Some(access.site);
        }
    }

    /// Whether an access reads what it left, which nothing can have brought up to date.
    fn is_read_by(&self, access: &Access, strays: &Strays) -> bool {
        let same =
            |bytes: &&Bytes| bytes.allocation == access.allocation && bytes.extent.meet(&access.extent) == Meet::Yes;
        is_known(access)
            && self.writes.iter().find(same).is_some_and(|b| !strays.any_since(self.moment, [b.allocation; 2]))
    }
}

/// Whether the bytes are those that are touched, and no guess. All texels of an object count.
fn is_known(access: &Access) -> bool {
    let Access { extent, site, .. } = access;
    extent.precision != Precision::Unknown && (!extent.scattered || site.texels) && !site.guessed
}

impl Escapes {
    /// Whether there is nothing to watch.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.all.is_empty()
    }

    /// An op of a capture.
    pub fn capture(&mut self, op: &Op<'_>, thread: ThreadId) {
        match *op {
            Op::CaptureStart { capture, stream } => {
                self.open.retain(|(.., open)| *open != stream);
                self.open.push((capture, thread, stream));
            }
            Op::CaptureNode { capture, node, .. } => {
                for escaped in self.all.iter_mut().filter(|escaped| escaped.capture == capture) {
                    escaped.nodes.insert(node);
                }
            }
            Op::CaptureDone { stream } => {
                self.open.retain(|(.., open)| *open != stream);
                // No node of those graphs comes after it.
                let open = &self.open;
                self.all.retain(|e| !e.nodes.is_empty() || open.iter().any(|(capture, ..)| *capture == e.capture));
            }
            _ => {}
        }
    }

    /// Work is submitted by this thread, on a stream that is not captured. Its accesses follow, and
    /// then [`Escapes::end`].
    pub fn begin(&mut self, thread: ThreadId, strays: &Strays) {
        let Some(&(capture, _, captured)) = self.open.iter().rfind(|(_, of, _)| *of == thread) else { return };
        if self.all.len() >= MAX_ESCAPED {
            self.all.pop_front();
        }
        let (reads, writes, nodes) = (Vec::new(), Vec::new(), FxHashSet::default());
        let (site, changed, moment, launches) = (None, None, strays.now(), 0);
        self.all.push_back(Escaped { capture, captured, moment, site, reads, writes, nodes, changed, launches });
        self.recording = true;
    }

    /// The end of what [`Escapes::begin`] began.
    pub fn end(&mut self) {
        let kept = |escaped: &Escaped| !escaped.reads.is_empty() && !escaped.writes.is_empty();
        if std::mem::take(&mut self.recording) && !self.all.back().is_some_and(kept) {
            self.all.pop_back();
        }
    }

    /// A node of a launched graph does its work: its numbers; none after the last one.
    pub fn node(&mut self, numbers: impl Iterator<Item = u32>) {
        self.node = numbers.collect();
    }

    /// A graph with nodes of these numbers has been launched.
    pub fn launched(&mut self, mut numbers: impl FnMut(&FxHashSet<u32>) -> bool) {
        self.all.retain_mut(|escaped| {
            escaped.launches += u32::from(numbers(&escaped.nodes));
            escaped.launches < MAX_LAUNCHES
        });
    }

    /// An access to memory from CUDA.
    pub(crate) fn touch(&mut self, access: &Access, strays: &Strays) {
        let others = if self.recording { self.all.len() - 1 } else { self.all.len() };
        if let Some(own) = self.all.get_mut(others) {
            own.record(access);
        }
        let (node, missed) = (&self.node, &mut self.missed);
        let is_after = |escaped: &Escaped| node.iter().any(|number| escaped.nodes.contains(number));
        for escaped in self.all.iter_mut().take(others) {
            if access.kind.reads()
                && let (Some(site), Some(changed)) = (escaped.site, escaped.changed)
                && is_after(escaped)
                && escaped.is_read_by(access, strays)
            {
                if missed.len() < MAX_MISSED {
                    missed.push(Missed { captured: escaped.captured, escaped: site, changed, node: access.site });
                }
                escaped.writes.clear();
            }
            if access.kind.writes() {
                escaped.overwrite(access);
            }
        }
        let recording = self.recording;
        let mut left = self.all.len();
        self.all.retain(|escaped| {
            left -= 1;
            (recording && left == 0)
                || !(escaped.reads.is_empty() && escaped.changed.is_none() || escaped.writes.is_empty())
        });
    }

    /// The mistakes, each once.
    pub fn take_missed(&mut self) -> Vec<Missed> {
        std::mem::take(&mut self.missed)
    }
}
