//! Waits that are added to a recorded order, and what became of them.
//!
//! Owns the changes and their state during one pass: what has been recorded for each wait, and how
//! the times of streams have moved. Does not apply anything: that is
//! [`super::adding`].

use rustc_hash::{FxHashMap, FxHashSet};
use trace::{Epoch, EventId, Op, Record, StreamId};

use super::notes::TrialNotes;
use super::written::{self, WrittenWait};
use detect::state::op_site::OpSite;
use report::cause::{Applied, Join};
use symbols::frame::Frame;

/// The events of added waits are numbered from here on. The shim counts from 1.
const FIRST_EVENT: u32 = 0xf000_0000;

/// A wait that is added to the order: what is at `before` waits for what is at `after`, on every
/// stream that has run that so far.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AddedWait {
    /// What is waited for.
    pub after: Vec<OpSite>,
    /// What waits.
    pub before: Vec<OpSite>,
    /// How.
    pub join: Join,
}

/// The latest record for a wait on one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded {
    pub(crate) stream: StreamId,
    pub(crate) event: EventId,
    pub(crate) epoch: Epoch,
    /// Whether it is behind a wait for a value that nobody has been seen to write.
    pub(crate) blocked: bool,
}

/// A block that a pool must not hand out before this event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptBlock {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) event: EventId,
}

/// The changes to an order, and their state in a pass.
#[derive(Default)]
pub struct Replan {
    /// The waits.
    pub waits: Vec<AddedWait>,
    /// What became of each.
    pub applied: Vec<Applied>,
    /// Waits of a file, the first of `waits`, whose sites are found as they come up.
    pub written: Vec<WrittenWait>,
    pub(crate) met: FxHashSet<OpSite>,
    /// What is noted during the pass, if anything is.
    pub notes: Option<TrialNotes>,
    pub(crate) before: FxHashMap<OpSite, Vec<usize>>,
    pub(crate) after: FxHashMap<OpSite, Vec<usize>>,
    pub(crate) recorded: Vec<Vec<Recorded>>,
    pub(crate) kept: Vec<KeptBlock>,
    events: u32,
    syncs: u32,
    /// Work that was added to the ops of the run, counted in ops.
    pub added: u64,
    /// How much may be added; nothing: as much as it takes.
    allowed: Option<u64>,
    /// For each stream: from which time of the recording on its times are later by how much.
    moved: FxHashMap<StreamId, Vec<(u64, i64)>>,
}

impl Replan {
    /// These waits.
    pub fn new(waits: Vec<AddedWait>) -> Self {
        let mut plan = Self {
            applied: vec![Applied::default(); waits.len()],
            recorded: vec![Vec::new(); waits.len()],
            ..Self::default()
        };
        for (index, wait) in waits.iter().enumerate() {
            wait.after.iter().for_each(|site| plan.after.entry(*site).or_default().push(index));
            wait.before.iter().for_each(|site| plan.before.entry(*site).or_default().push(index));
        }
        plan.waits = waits;
        plan
    }

    /// Waits of a file.
    pub(crate) fn written(waits: &[WrittenWait]) -> Self {
        let empty = waits.iter().map(WrittenWait::empty).collect();
        Self { written: waits.to_vec(), ..Self::new(empty) }
    }

    /// Takes in a site that has not come up before.
    pub(crate) fn meet(&mut self, at: OpSite, stack: &[Frame], kernel: &str) {
        for (index, after) in written::place(&self.written, &mut self.waits, at, stack, kernel) {
            let side = if after { &mut self.after } else { &mut self.before };
            side.entry(at).or_default().push(index);
        }
    }

    /// The same, with notes taken.
    pub fn noting(self, notes: TrialNotes) -> Self {
        Self { notes: Some(notes), ..self }
    }

    /// The same, given up when more than this is added to the run's own ops.
    pub fn at_most(self, added: u64) -> Self {
        Self { allowed: Some(added), ..self }
    }

    /// Whether the pass has been given up.
    pub fn is_given_up(&self) -> bool {
        self.allowed.is_some_and(|allowed| self.added > allowed)
    }

    /// An event of its own.
    pub(crate) fn event(&mut self) -> EventId {
        self.events += 1;
        EventId(FIRST_EVENT + self.events)
    }

    /// The number of a host wait of its own.
    pub(crate) fn sync(&mut self) -> trace::SyncId {
        self.syncs += 1;
        trace::SyncId(FIRST_EVENT + self.syncs)
    }

    /// The event to record for a wait on a stream: one for each stream.
    pub(crate) fn event_of(&mut self, wait: usize, stream: StreamId) -> EventId {
        let known = self.recorded[wait].iter().find(|r| r.stream == stream).map(|r| r.event);
        known.unwrap_or_else(|| self.event())
    }

    /// Notes that an event was recorded for a wait.
    pub(crate) fn note_record(&mut self, wait: usize, new: Recorded) {
        self.applied[wait].records += 1;
        match self.recorded[wait].iter_mut().find(|r| r.stream == new.stream) {
            Some(old) => *old = new,
            None => self.recorded[wait].push(new),
        }
    }

    /// Notes where an op of a stream was in the recording, and where it is now.
    pub(crate) fn note_time(&mut self, stream: StreamId, recorded: u64, now: u64) {
        let by = now as i64 - recorded as i64;
        let moved = self.moved.entry(stream).or_default();
        if moved.last().map_or(0, |(_, by)| *by) != by {
            moved.push((recorded, by));
        }
    }

    /// The record with its times of streams as they are now.
    pub(crate) fn translated<'a>(&self, record: &Record<'a>) -> Record<'a> {
        let Op::StreamIdle { stream, upto } = record.op else { return *record };
        let moved = self.moved.get(&stream).map_or(&[][..], Vec::as_slice);
        let by = moved[..moved.partition_point(|(from, _)| *from <= upto)].last().map_or(0, |(_, by)| *by);
        Record { op: Op::StreamIdle { stream, upto: upto.saturating_add_signed(by) }, ..*record }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::Origin;

    #[test]
    fn a_pass_is_given_up_beyond_what_may_be_added() {
        let mut plan = Replan::new(Vec::new()).at_most(2);
        plan.added = 2;
        assert!(!plan.is_given_up());
        plan.added = 3;
        assert!(plan.is_given_up());
        // Waits that the user wrote down take what they take.
        assert!(!Replan { added: u64::MAX, ..Replan::written(&[]) }.is_given_up());
    }

    #[test]
    fn times_of_a_stream_move_with_what_is_added() {
        let mut plan = Replan::new(Vec::new());
        let stream = StreamId(3);
        for (recorded, now) in [(1, 1), (2, 2), (3, 4), (4, 5), (5, 8)] {
            plan.note_time(stream, recorded, now);
        }
        let at = |upto| {
            let record = Record { origin: Origin::default(), op: Op::StreamIdle { stream, upto } };
            match plan.translated(&record).op {
                Op::StreamIdle { upto, .. } => upto,
                _ => 0,
            }
        };
        assert_eq!([0, 1, 2, 3, 4, 5].map(at), [0, 1, 2, 4, 5, 8]);
    }
}
