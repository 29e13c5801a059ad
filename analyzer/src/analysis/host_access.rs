//! The host's own loads and stores, as the shim observed them.
//!
//! Owns the way from a `HostWatch` and a `HostAccess` op to a race, and from a `HostTouch`, which
//! is compared with all work that is not ordered before it. Does not decide whether something else
//! explains a changed byte: that is [`crate::detect::host_watch`].

use super::Analysis;
use crate::detect::confidence::Confidence;
use crate::detect::host_watch;
use crate::detect::host_watch::HostWatch;
use crate::detect::race::Race;
use crate::memory::{Access, AccessKind, Cause, Extent, Site};
use trace::{Epoch, KernelId, Op, Origin, StackId, StreamId};

impl Analysis {
    /// The shim begins to watch bytes that work of this thread reads or writes.
    pub(super) fn watch(&mut self, op: &Op<'_>, origin: &Origin) {
        let Op::HostWatch { watch, stream, exec, node, ref region, writes } = *op else { return };
        let Some(epoch) = self.latest.get(&origin.thread).copied() else { return };
        let Some(place) = self.memory.locate(region.start) else { return };
        let site = self.submissions.context(origin, epoch).site(Cause::Copy, stream);
        let made = node.checked_sub(1).and_then(|index| self.graphs.find(exec, index)).map(|n| (n.stack, n.call));
        let (stack, call) = made.unwrap_or((site.stack, site.call));
        let work = Access {
            epoch,
            kind: if writes { AccessKind::Write } else { AccessKind::Read },
            extent: host_watch::extent(region).moved(place.address.wrapping_sub(region.start)),
            allocation: place.allocation,
            site: Site { stack, call, node, launched: if node > 0 { origin.stack } else { StackId::NONE }, ..site },
        };
        let begun = HostWatch { work, home: place.home, known: self.ordering.known(), void: false };
        let void = begun.is_overwritten(&self.memory);
        self.watches.begin(watch, HostWatch { void, ..begun });
    }

    /// The host touched watched bytes.
    pub(super) fn host_access(&mut self, op: &Op<'_>, origin: &Origin, epoch: Epoch) {
        let Op::HostAccess { watch, start, end, writes, in_the_act } = *op else { return };
        let Some(watch) = self.watches.judge(watch, in_the_act, &self.memory) else { return };
        let cause = if in_the_act { Cause::Host } else { Cause::HostBetween };
        let access = Access {
            epoch,
            kind: if writes { AccessKind::Write } else { AccessKind::Read },
            extent: if in_the_act { Extent::exact(start, end) } else { Extent::bound(start, end, start) },
            allocation: watch.work.allocation,
            site: self.submissions.context(origin, epoch).site(cause, StreamId::NONE),
        };
        // Certain even where it is not known which bytes were written: some of them were.
        let race = Race::judge(&watch.work, &access, false).map(|r| Race { confidence: Confidence::Certain, ..r });
        self.races.extend(race);
    }

    /// The host touched memory that devices can reach.
    pub(super) fn host_touch(&mut self, op: &Op<'_>, origin: &Origin, epoch: Epoch) {
        let Op::HostTouch { start, end, writes, atomic, .. } = *op else { return };
        let kind = match (writes, atomic) {
            (_, true) => AccessKind::Atomic,
            (true, _) => AccessKind::Write,
            _ => AccessKind::Read,
        };
        let context = self.submissions.context(origin, epoch);
        let others = self.races.len();
        self.at(context, context.site(Cause::Host, StreamId::NONE), None).host(start, end, kind);
        if self.races.len() == others {
            return;
        }
        // The host may have learned through memory that the work is over, and it may be the other
        // side of a protocol: then only the programmer knows.
        let signals = self.signals();
        for race in &mut self.races[others..] {
            let work = &race.previous;
            let may_follow = |e: Epoch| e.timeline != work.epoch.timeline || e.time >= work.epoch.time;
            if signals.iter().any(|e| may_follow(*e)) || self.watches.graph_follows(work.epoch, &self.ordering) {
                race.confidence = Confidence::Possible;
            }
        }
    }

    /// Work that the host has not seen finish and that may tell it something through memory which
    /// both use: kernels with a fence of system scope, and values that streams write.
    fn signals(&mut self) -> Vec<Epoch> {
        let mut signals = Vec::new();
        let mut kernels: Vec<(KernelId, StreamId, Epoch)> = Vec::new();
        for access in self.memory.accesses_in(&host_watch::SHARED) {
            match access.site.cause {
                _ if self.ordering.host_saw(access.epoch) => {}
                Cause::Value => signals.push(access.epoch),
                Cause::Kernel => {
                    let known = (access.site.kernel, access.site.stream, access.epoch);
                    if kernels.last() != Some(&known) {
                        kernels.push(known);
                    }
                }
                _ => {}
            }
        }
        for (kernel, stream, epoch) in kernels {
            let arch = self.arch(stream);
            if self.code.signals(kernel, self.names.kernel(kernel), arch) {
                signals.push(epoch);
            }
        }
        signals
    }
}
