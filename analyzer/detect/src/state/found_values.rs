//! Values that a stream finds in memory when it begins to wait for them: whether what a fill or a
//! copy left there is certain.
//!
//! Owns the moments of the latest fills and copies of known bytes. The order ([`order`]) knows what
//! they left and what that means for a wait. The accesses say whether anything else may have
//! written there since. If it may, the order is told to doubt it.

use crate::memory::Allocations;
use crate::memory::allocations::leftovers::holds_left;
use crate::state::happens_before::Ordering;
use std::collections::VecDeque;
use trace::{Epoch, Op, ThreadId};

/// Fills and copies whose moments are kept. The order keeps fewer.
const KEPT: usize = 1024;

/// When the latest fills and copies of known bytes were made.
#[derive(Default)]
pub struct LeftMoments(VecDeque<(Epoch, u64)>);

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

    /// Before the order applies an op: what it may take for certain of values in memory.
    #[inline]
    pub fn settle(&mut self, op: &Op<'_>, thread: ThreadId, ordering: &mut Ordering, memory: &mut Allocations) {
        match op {
            Op::Filled { .. } | Op::Contents { .. } => {
                if let Some(epoch) = ordering.left_by(thread) {
                    self.put(epoch, memory.strays.now());
                }
            }
            Op::WaitValue { .. } | Op::GraphLaunch { .. } => self.doubt(op, ordering, memory),
            // What they write is not known.
            Op::Opaque { .. } | Op::Checking { .. } => memory.strays.anywhere(),
            _ => {}
        }
    }

    fn doubt(&self, op: &Op<'_>, ordering: &mut Ordering, memory: &Allocations) {
        for found in ordering.values_found(op) {
            for &epoch in &found.left {
                let moment = self.of(epoch);
                if !moment.is_some_and(|moment| holds_left(memory, &found, epoch, moment)) {
                    ordering.doubt_left_value(found.address, epoch);
                }
            }
        }
    }
}
