//! What an op knew when it started: the answers to "is this ordered before it?".
//!
//! Owns the borrowed form of a start clock ([`ClockRef`]), the part of it that answers most
//! questions without a call ([`FastClock`]), and the form that outlives the next op
//! ([`ClockSnapshot`]). Does not change the engine.

use std::sync::Arc;

use trace::{Epoch, TimelineId};

use crate::clock::{Clock, Entry};
use crate::condition::AwaitedWord;
use crate::state::host::Host;
use crate::state::stream::Streams;

/// Where the clock part of a start is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ClockSource {
    /// The host's floor only.
    #[default]
    Host,
    /// The floor and the clock of the stream `own`.
    Stream,
    /// A snapshot that the engine keeps for this op.
    Snapshot,
}

/// The start of one op.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpStart {
    /// Timeline of the op; 0: the host.
    pub(crate) own: u32,
    /// Time on it that had finished.
    pub(crate) own_upto: u64,
    /// Later ops of it that had finished all the same: see [`crate::state::last_kernel::Began`].
    pub(crate) also: (u64, u64),
    /// Host ops that had been made.
    pub(crate) host_upto: u64,
    /// Where the rest is.
    pub(crate) source: ClockSource,
    /// The op is behind an open wait: what is before it is not known.
    pub(crate) blocked: bool,
    /// Everything was over (the driver drained the device for this op).
    pub(crate) drained: bool,
}

/// The clock at which something starts. Copying it is free; it borrows the engine.
#[derive(Clone, Copy)]
pub struct ClockRef<'a> {
    start: OpStart,
    floor: &'a Arc<Vec<u64>>,
    documented: Option<&'a Arc<Vec<u64>>>,
    clock: Option<&'a Clock>,
    streams: Option<&'a Streams>,
}

impl<'a> ClockRef<'a> {
    #[inline]
    pub(crate) fn of_start(host: &'a Host, streams: &'a Streams, start: OpStart) -> Self {
        let clock = match start.source {
            ClockSource::Stream => streams.slots.get(start.own as usize).map(|s| &s.clock),
            ClockSource::Host | ClockSource::Snapshot => None,
        };
        Self { start, clock, ..Self::of_host(host, streams) }
    }

    #[inline]
    pub(crate) fn of_host(host: &'a Host, streams: &'a Streams) -> Self {
        Self {
            start: OpStart { host_upto: host.time, ..OpStart::default() },
            floor: &host.floor.times,
            documented: host.documented.as_ref().map(|f| &f.times),
            clock: None,
            streams: Some(streams),
        }
    }

    /// A start with a clock that is not the clock of its stream, over the floor.
    pub(crate) fn of_clock(host: &'a Host, streams: &'a Streams, start: OpStart, clock: &'a Clock) -> Self {
        Self { start, clock: Some(clock), ..Self::of_host(host, streams) }
    }

    #[inline(always)]
    fn covers_over(&self, floor: &[u64], epoch: Epoch) -> bool {
        let slot = epoch.timeline.0;
        // The usual answers first: the op's own timeline, and what the host has seen.
        if slot == self.start.own && epoch.time <= self.start.own_upto && slot != 0 {
            return true;
        }
        if slot != 0 && floor.get(slot as usize).is_some_and(|&t| epoch.time <= t) {
            return true;
        }
        self.covers_else(epoch)
    }

    /// Not inlined: what it reads would take up registers wherever the usual answers are asked for.
    #[inline(never)]
    fn covers_else(&self, epoch: Epoch) -> bool {
        let slot = epoch.timeline.0;
        if epoch.timeline == TimelineId::HOST {
            return epoch.time <= self.start.host_upto;
        }
        if self.start.drained && !self.streams.is_some_and(|s| s.is_request(slot)) {
            return true;
        }
        // What a clock says of its own timeline is about completion up to the op before, which an
        // op that overlaps its predecessors must not take for its own start.
        if slot == self.start.own {
            return self.start.also.0 < epoch.time && epoch.time <= self.start.also.1;
        }
        self.clock.is_some_and(|c| c.get(slot) >= epoch.time)
            || self.start.blocked
            || self.streams.is_some_and(|s| s.is_behind_open_wait(epoch))
    }

    /// Whether this has finished before the op starts.
    #[inline(always)]
    pub fn covers(&self, epoch: Epoch) -> bool {
        self.covers_over(self.floor, epoch)
    }

    /// The same without the benefit of open waits: whether what was seen orders it so. What is
    /// behind such a wait counts as ordered behind everything else.
    pub fn covers_without_waits(&self, epoch: Epoch) -> bool {
        let slot = epoch.timeline.0;
        if slot == self.start.own || epoch.timeline == TimelineId::HOST {
            return self.covers(epoch);
        }
        let is_over = self.floor.get(slot as usize).is_some_and(|&upto| epoch.time <= upto);
        let drained = self.start.drained && !self.streams.is_some_and(|s| s.is_request(slot));
        is_over || drained || self.clock.is_some_and(|c| c.get(slot) >= epoch.time)
    }

    /// The part that answers most questions of [`ClockRef::covers`] without a call.
    #[inline]
    pub(crate) fn fast(&self) -> FastClock<'a> {
        let OpStart { own, own_upto, .. } = self.start;
        FastClock { own, own_upto, floor: self.floor, entries: self.clock.map_or(&[], Clock::inline) }
    }

    /// Whether documented synchronisation alone would order it so. The same as [`ClockRef::covers`]
    /// unless the engine was made with [`crate::Options::latent`]. A pair that is covered, but not
    /// by documented synchronisation, is a latent race.
    #[inline]
    pub fn covers_documented(&self, epoch: Epoch) -> bool {
        self.covers_over(self.documented.unwrap_or(self.floor), epoch)
    }

    /// The latest time of a timeline that is covered (for reports).
    pub fn time_of(&self, timeline: TimelineId) -> u64 {
        if timeline == TimelineId::HOST {
            return self.start.host_upto;
        }
        let floor = self.floor.get(timeline.0 as usize).copied().unwrap_or(0);
        if timeline.0 == self.start.own {
            return floor.max(self.start.own_upto);
        }
        floor.max(self.clock.map_or(0, |c| c.get(timeline.0)))
    }

    /// Whether the answers are only benevolent: the op is behind a wait for a value whose writer
    /// has not been seen, so that everything counts as ordered before it.
    pub fn is_behind_open_wait(&self) -> bool {
        self.start.blocked
    }

    /// A copy that outlives the next op. Costs two reference counts and about a hundred bytes; the
    /// engine copies its floor at the next synchronisation while any snapshot lives.
    pub fn snapshot(&self) -> ClockSnapshot {
        ClockSnapshot {
            start: self.start,
            floor: self.floor.clone(),
            documented: self.documented.cloned(),
            clock: self.clock.cloned().unwrap_or_default(),
        }
    }
}

/// The part of a start clock that is looked up without a call, so that a caller who asks it often
/// keeps everything in registers.
#[derive(Clone, Copy, Default)]
pub struct FastClock<'a> {
    own: u32,
    own_upto: u64,
    floor: &'a [u64],
    entries: &'a [Entry],
}

impl<'a> FastClock<'a> {
    #[inline]
    pub(crate) fn of(start: OpStart, floor: &'a [u64], clock: &'a Clock) -> Self {
        Self { own: start.own, own_upto: start.own_upto, floor, entries: clock.inline() }
    }

    /// Whether this has finished before the op starts. No: [`ClockRef::covers`] may know more.
    #[inline(always)]
    pub fn covers(&self, epoch: Epoch) -> bool {
        let Epoch { timeline: TimelineId(slot), time } = epoch;
        if slot == self.own {
            return time <= self.own_upto;
        }
        self.floor.get(slot as usize).is_some_and(|&upto| time <= upto)
            || self.entries.iter().any(|e| e.slot == slot && time <= e.time)
    }
}

/// A start clock of its own.
#[derive(Clone, Debug)]
pub struct ClockSnapshot {
    start: OpStart,
    floor: Arc<Vec<u64>>,
    documented: Option<Arc<Vec<u64>>>,
    clock: Clock,
}

impl ClockSnapshot {
    pub(crate) fn as_ref<'a>(&'a self, streams: Option<&'a Streams>) -> ClockRef<'a> {
        ClockRef {
            start: self.start,
            floor: &self.floor,
            documented: self.documented.as_ref(),
            clock: Some(&self.clock),
            streams,
        }
    }

    /// The words that it lies behind waits for, of which nothing seen in this process had written
    /// the values.
    pub fn awaited_words(&self) -> impl Iterator<Item = AwaitedWord> {
        self.clock.awaited_words()
    }

    /// The clock, to ask. Waits for values that were resolved in the meantime are not taken in.
    pub fn clock(&self) -> ClockRef<'_> {
        self.as_ref(None)
    }
}
