//! Copies and sets: ops of streams, and waits of the host.
//!
//! Owns how the table in [`crate::policy`] changes clocks.

use trace::{Epoch, Region, SourceOrder, Space, StreamId, ThreadId};

use crate::engine::Engine;
use crate::policy::{self, HostWait, MemoryClass, Rule, SourceRead};
use crate::state::host::{Covered, Guarantee};
use crate::state::left_values::LeftBytes;
use crate::state::stream::Stream;

impl Engine {
    fn place(&self, region: &Region, space: Space) -> (MemoryClass, bool) {
        if !region.array.is_none() {
            return (MemoryClass::Device, false);
        }
        let range = self.allocations.find(region.start);
        (MemoryClass::of(space, range.map(|r| r.kind)), range.is_some_and(|r| r.sync_memops))
    }

    /// What a wait of this rule is worth, when it is at least `least`.
    pub(crate) fn guarantee(&self, rule: &Rule, least: HostWait) -> Guarantee {
        Guarantee { by_policy: rule.wait(self.options.policy) >= least, documented: rule.documented >= least }
    }

    pub(crate) fn copy(
        &mut self,
        thread: ThreadId,
        stream: StreamId,
        (dst, dst_space): (Region, Space),
        (src, src_space): (Region, Space),
        asynchronous: bool,
        batch: u32,
    ) -> Epoch {
        let (to, to_sync) = self.place(&dst, dst_space);
        let (from, from_sync) = self.place(&src, src_space);
        let slot = self.begin(stream);
        let context = &self.streams.contexts[self.streams.slots[slot as usize].context as usize];
        let rule = policy::copy(asynchronous, to, from, to_sync || from_sync || context.sync_memops);
        let between = if asynchronous { None } else { self.between_devices(&dst, &src) };
        if let Some(devices) = between {
            self.join_devices(slot, devices);
        }
        let s = &self.streams.slots[slot as usize];
        // Copies inside one batch are unordered among themselves.
        let upto = if batch != 0 && s.batch == batch { s.batch_start } else { s.time };
        let epoch = self.advance(slot, upto);
        let s = &mut self.streams.slots[slot as usize];
        (s.batch, s.batch_start) = (batch, upto);
        let settled = self.options.pageable_copies_wait && policy::is_staged(rule);
        self.host_waits(thread, slot, if settled { policy::copied_from_pinned() } else { rule });
        if rule.source(self.options.policy) == SourceRead::DuringCall {
            self.last_source = Some(self.host_epoch());
        }
        self.overwritten(&dst, slot);
        if let Some(devices) = between {
            self.hold_back_devices(slot, devices);
        }
        if self.options.left_values {
            // The source is what it was when the call returned.
            let read = rule.source(self.options.policy) == SourceRead::DuringCall
                || self.guarantee(rule, HostWait::Op).by_policy;
            self.last_left = (read && dst.array.is_none()).then_some((thread, epoch, dst));
        }
        epoch
    }

    /// A copy whose source is not read in stream order. cuda.h, cuMemcpyBatchAsync: "access to the
    /// source pointer can be out of stream order", for sources of which "it's known that no prior
    /// operations in the stream can be accessing the memory". So the read may begin when the call
    /// does. With `DURING_API_CALL` it is over when the call returns; with `ANY` it may be as late
    /// as the rest of the copy.
    pub(crate) fn attributed_copy(
        &mut self,
        thread: ThreadId,
        stream: StreamId,
        dst: (Region, Space),
        src: (Region, Space),
        batch: u32,
        source: SourceOrder,
    ) -> Epoch {
        let known = self.host_clock().snapshot();
        let (from, _) = self.place(&src.0, src.1);
        let epoch = self.copy(thread, stream, dst, src, true, batch);
        if source == SourceOrder::Stream {
            return epoch;
        }
        let during = source == SourceOrder::DuringCall;
        let len = src.0.width.saturating_mul(src.0.height.into()).saturating_mul(src.0.depth.into());
        let late = from == MemoryClass::Pageable && policy::is_read_late(self.options.policy, len);
        self.last_source = (during && !late).then(|| self.host_epoch());
        self.early_source = Some((epoch, known));
        if during && let Some(slot) = self.streams.find(stream) {
            self.host_waits(thread, slot, policy::source_during_call(from));
        }
        epoch
    }

    /// The devices of both sides, when they are two.
    fn between_devices(&self, dst: &Region, src: &Region) -> Option<[u32; 2]> {
        let device = |region: &Region| {
            let range = self.allocations.find(region.start).filter(|_| region.array.is_none())?;
            let on_device = MemoryClass::of(Space::Unified, Some(range.kind)) == MemoryClass::Device;
            let context = self.streams.find_context(range.context).filter(|_| on_device)?;
            self.streams.contexts[context as usize].device
        };
        let (to, from) = (device(dst)?, device(src)?);
        (to != from).then_some([to, from])
    }

    /// A copy between two devices without a stream "does not start until all commands previously
    /// issued to either device have completed" (programming guide, peer-to-peer memory copy).
    fn join_devices(&mut self, slot: u32, devices: [u32; 2]) {
        let all = self.covered_by_contexts(|_, device| device.is_some_and(|d| devices.contains(&d)));
        let floor = self.host.floor_ref();
        let s = &mut self.streams.slots[slot as usize];
        s.save_clock();
        let mut many = all.many;
        many.retain(|e| e.slot != slot);
        s.clock.raise_many(&mut many, slot, floor);
        // What those streams had waited for themselves, as far as it is not in `many`.
        if let Some(snapshot) = all.snapshot {
            s.clock.join(&snapshot.clock, slot, floor);
        }
    }

    /// ... "and runs to completion before any commands issued after the copy to either device can
    /// start".
    fn hold_back_devices(&mut self, slot: u32, devices: [u32; 2]) {
        let floor = self.host.floor_ref();
        let now = self.streams.slots[slot as usize].snapshot(slot);
        for (index, context) in self.streams.contexts.iter_mut().enumerate() {
            if context.device.is_some_and(|d| devices.contains(&d)) {
                // Lineage of its own: no stream has a number like this one.
                let owner = u32::MAX - index as u32;
                context.waits.raise(now.own, owner, floor);
                context.waits.join(&now.clock, owner, floor);
                context.wait_version += 1;
                context.version += 1;
            }
        }
    }

    pub(crate) fn set(&mut self, thread: ThreadId, stream: StreamId, dst: Region, asynchronous: bool) -> Epoch {
        let (to, sync) = self.place(&dst, Space::Unified);
        // Sets take device addresses: what is not known is memory from before the tool was loaded.
        let to = if to == MemoryClass::Pageable { MemoryClass::Device } else { to };
        let slot = self.begin(stream);
        let context = &self.streams.contexts[self.streams.slots[slot as usize].context as usize];
        let rule = policy::set(asynchronous, to, sync || context.sync_memops);
        let upto = self.streams.slots[slot as usize].time;
        let epoch = self.advance(slot, upto);
        self.host_waits(thread, slot, rule);
        self.overwritten(&dst, slot);
        if self.options.left_values {
            self.last_left = dst.array.is_none().then_some((thread, epoch, dst));
        }
        epoch
    }

    /// The bytes of the fill or the copy before this op become known.
    pub(crate) fn bytes_known(&mut self, thread: ThreadId, at: u64, bytes: LeftBytes<'_>) {
        let Some((by, epoch, dst)) = self.last_left.take() else { return };
        let slot = epoch.timeline.0;
        let s = &self.streams.slots[slot as usize];
        // An op of another thread that came between has changed the stream's clock.
        if by == thread && dst.start == at && s.time == epoch.time {
            self.sync_vars.leave(dst, bytes, s.snapshot(slot), self.host.floor_ref());
        }
    }

    /// The host waits for the op just applied on `slot`, or for what came before it.
    fn host_waits(&mut self, thread: ThreadId, slot: u32, rule: &Rule) {
        let s: &Stream = &self.streams.slots[slot as usize];
        for (least, time) in [(HostWait::Before, s.time - 1), (HostWait::Op, s.time)] {
            let guarantee = self.guarantee(rule, least);
            if guarantee.by_policy || guarantee.documented {
                let mut snapshot = self.streams.slots[slot as usize].snapshot(slot);
                snapshot.own.time = time;
                self.acquire(thread, &Covered { snapshot: Some(snapshot), ..Covered::default() }, guarantee);
            }
        }
    }

    fn overwritten(&mut self, dst: &Region, slot: u32) {
        if !self.sync_vars.is_empty() && dst.array.is_none() {
            let now = self.streams.slots[slot as usize].snapshot(slot);
            self.sync_vars.overwrite(dst.start, dst.end(), &now, self.host.floor_ref());
        }
    }
}
