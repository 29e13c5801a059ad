//! CUDA events: snapshots, never references to streams.
//!
//! Owns the records of each event. A wait takes the snapshot that is current when the wait is made,
//! so a later record changes only later waits.

use crate::clock::TimelineSnapshot;

/// One event.
#[derive(Debug, Default)]
pub(crate) struct Event {
    /// Number of the latest record; 0: never recorded.
    pub(crate) record: u64,
    /// Whether its creation was seen, so that its records are counted from the first.
    pub(crate) created: bool,
    /// The latest two snapshots, by parity of their number: a query that another thread's record
    /// overtook asks for the one before.
    kept: [TimelineSnapshot; 2],
}

impl Event {
    /// Records.
    #[inline]
    pub(crate) fn set(&mut self, snapshot: TimelineSnapshot) {
        self.record += 1;
        self.kept[(self.record & 1) as usize] = snapshot;
    }

    /// The current snapshot.
    #[inline]
    pub(crate) fn current(&self) -> Option<&TimelineSnapshot> {
        (self.record > 0).then(|| &self.kept[(self.record & 1) as usize])
    }

    /// The snapshot of one record, if it is the latest or the one before.
    pub(crate) fn of_record(&self, record: u64) -> Option<&TimelineSnapshot> {
        let kept = record > 0 && record <= self.record && self.record - record < 2;
        kept.then(|| &self.kept[(record & 1) as usize])
    }
}
