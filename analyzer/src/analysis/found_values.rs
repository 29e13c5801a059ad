//! Values that a stream finds in memory when it begins to wait for them: whether what a fill or a
//! copy left there is certain.
//!
//! Owns the moments of the latest fills and copies of known bytes. The order ([`order`]) knows what
//! they left and what that means for a wait. The accesses say whether anything else may have
//! written there since. If it may, the order is told to doubt it.

use super::Analysis;
use std::collections::VecDeque;
use trace::{Epoch, Op, ThreadId};

/// Fills and copies whose moments are kept. The order keeps fewer.
const KEPT: usize = 1024;

/// When the latest fills and copies of known bytes were made.
#[derive(Default)]
pub(super) struct LeftMoments(VecDeque<(Epoch, u64)>);

impl LeftMoments {
    fn put(&mut self, epoch: Epoch, moment: u64) {
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back((epoch, moment));
    }

    fn of(&self, epoch: Epoch) -> Option<u64> {
        self.0.iter().rev().find(|(of, _)| *of == epoch).map(|(_, moment)| *moment)
    }
}

impl Analysis {
    /// Before the order applies an op: what it may take for certain of values in memory.
    #[inline]
    pub(super) fn settle_values(&mut self, op: &Op<'_>, thread: ThreadId) {
        match op {
            Op::Filled { .. } | Op::Contents { .. } => {
                if let Some(epoch) = self.ordering.left_by(thread) {
                    self.left.put(epoch, self.memory.strays.now());
                }
            }
            Op::WaitValue { .. } | Op::GraphLaunch { .. } => self.doubt_values(op),
            // What they write is not known.
            Op::Opaque { .. } | Op::Checking { .. } => self.memory.strays.anywhere(),
            _ => {}
        }
    }

    fn doubt_values(&mut self, op: &Op<'_>) {
        for found in self.ordering.values_found(op) {
            for &epoch in &found.left {
                let moment = self.left.of(epoch);
                if !moment.is_some_and(|moment| self.memory.holds_left(&found, epoch, moment)) {
                    self.ordering.doubt_left_value(found.address, epoch);
                }
            }
        }
    }
}
