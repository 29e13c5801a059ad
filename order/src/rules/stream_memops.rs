//! Waits for values in memory: stream memory operations, external semaphores, nodes of graphs.
//!
//! Which write a wait sees is decided in [`crate::state::sync_vars`].

use trace::{Epoch, StreamId};

use crate::engine::Engine;
use crate::state::sync_vars::{Condition, WaitOutcome};

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

    /// A stream that has begun an op waits for a value.
    pub(crate) fn hold_back(&mut self, slot: u32, address: u64, condition: Condition) {
        let floor = self.host.floor_ref();
        let s = &mut self.streams.slots[slot as usize];
        let answer = self.sync_vars.wait(address, condition, s.time, &s.clock, slot, floor);
        s.save_clock();
        match answer {
            WaitOutcome::After(clock) => s.clock.join(&clock, slot, floor),
            WaitOutcome::Open(wait) => s.clock.add_open_wait(wait),
        }
    }
}
