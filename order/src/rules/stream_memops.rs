//! Waits for values in memory: stream memory operations, external semaphores, nodes of graphs.
//!
//! Which write a wait sees is decided in [`crate::state::sync_vars`].

use trace::{Epoch, Op, StreamId, ThreadId};

use crate::condition::Condition;
use crate::engine::Engine;
use crate::state::sync_vars::{FoundValues, WaitOutcome};

/// Where the value of an external semaphore is kept: beyond all memory.
pub(crate) fn semaphore_address(semaphore: u32) -> u64 {
    1 << 63 | u64::from(semaphore)
}

impl Engine {
    pub(crate) fn wait_value(&mut self, stream: StreamId, address: u64, condition: Condition) -> Epoch {
        let slot = self.begin(stream);
        let floor = self.host.floor_ref();
        let s = &mut self.streams.slots[slot as usize];
        match self.sync_vars.wait(address, condition, s.time, &s.clock, slot, floor) {
            WaitOutcome::After(clock) => {
                s.save_clock();
                s.clock.join(&clock, slot, floor);
                let upto = s.time;
                self.advance(slot, upto)
            }
            WaitOutcome::Open(wait) => {
                let upto = s.time;
                // The wait itself is not behind itself, and it touches its flag only when it is
                // released.
                s.save_clock();
                s.clock.add_open_wait(wait);
                self.advance(slot, upto)
            }
        }
    }

    /// What the waits of an op may find in memory that nobody wrote there as a value. Asked before
    /// the op is applied: of what something else may have overwritten,
    /// [`Engine::doubt_left_value`] has to be told, because only the caller knows what kernels and
    /// others write.
    pub fn values_found(&mut self, op: &Op<'_>) -> Vec<FoundValues> {
        match *op {
            Op::WaitValue { address, value, width, compare, .. } => {
                self.sync_vars.found(address, Condition { compare, value, width }).into_iter().collect()
            }
            Op::GraphLaunch { exec, .. } => {
                let Some(known) = self.execs.get(&exec.0) else { return Vec::new() };
                let found = known.waits().filter_map(|(address, condition)| self.sync_vars.found(address, condition));
                found.collect()
            }
            _ => Vec::new(),
        }
    }

    /// The fill or copy whose bytes become known if this thread's next op says them.
    pub fn left_by(&self, thread: ThreadId) -> Option<Epoch> {
        self.last_left.filter(|(by, ..)| *by == thread).map(|(_, epoch, _)| epoch)
    }

    /// What this fill or copy left at an address may not be there any more.
    pub fn doubt_left_value(&mut self, address: u64, epoch: Epoch) {
        self.sync_vars.doubt(address, epoch);
    }

    /// Some open wait was released: streams behind it learn by what.
    #[cold]
    pub(crate) fn released_waits(&mut self) {
        let floor = self.host.floor_ref();
        for (slot, s) in self.streams.slots.iter_mut().enumerate().skip(1) {
            if s.clock.has_open_wait() {
                s.clock.refresh(slot as u32, floor);
                if !s.clock.has_open_wait() {
                    s.blocked_from = u64::MAX;
                }
            }
        }
    }

    /// A timeline that has begun an op waits for a value.
    pub(crate) fn hold_back(&mut self, slot: u32, outcome: &WaitOutcome) {
        let floor = self.host.floor_ref();
        let s = &mut self.streams.slots[slot as usize];
        s.save_clock();
        match outcome {
            WaitOutcome::After(clock) => s.clock.join(clock, slot, floor),
            WaitOutcome::Open(wait) => s.clock.add_open_wait(wait.clone()),
        }
    }
}
