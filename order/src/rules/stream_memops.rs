//! Values.

use trace::{Epoch, StreamId};

use crate::engine::Engine;
use crate::state::sync_vars::{Answer, Condition};

/// Where the value of an external semaphore is kept: beyond all memory.
pub(crate) fn semaphore_address(semaphore: u32) -> u64 {
    1 << 63 | u64::from(semaphore)
}

impl Engine {
    pub(crate) fn wait_value(&mut self, stream: StreamId, address: u64, condition: Condition) -> Epoch {
        let slot = self.begin(stream);
        let known = self.host.known();
        let s = &mut self.streams.slots[slot as usize];
        match self.values.wait(address, condition, s.time, &s.clock, slot, known) {
            Answer::After(clock) => {
                s.keep_past();
                s.clock.join(&clock, slot, known);
                let upto = s.time;
                self.advance(slot, upto)
            }
            Answer::Open(wait) => {
                let upto = s.time;
                // The wait itself is not behind itself, and it touches its flag only when it is
                // released.
                s.keep_past();
                s.clock.put_behind(wait);
                self.advance(slot, upto)
            }
        }
    }

    /// Some open wait was released: streams behind it learn by what.
    #[cold]
    pub(crate) fn released_waits(&mut self) {
        let known = self.host.known();
        for (slot, s) in self.streams.slots.iter_mut().enumerate().skip(1) {
            if s.clock.is_behind() {
                s.clock.refresh(slot as u32, known);
                if !s.clock.is_behind() {
                    s.blocked_from = u64::MAX;
                }
            }
        }
    }

    /// A stream that has begun an op waits for a value.
    pub(crate) fn hold_back(&mut self, slot: u32, address: u64, condition: Condition) {
        let known = self.host.known();
        let s = &mut self.streams.slots[slot as usize];
        let answer = self.values.wait(address, condition, s.time, &s.clock, slot, known);
        s.keep_past();
        match answer {
            Answer::After(clock) => s.clock.join(&clock, slot, known),
            Answer::Open(wait) => s.clock.put_behind(wait),
        }
    }
}
