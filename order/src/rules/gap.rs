//! Records that are missing: a segment of the recording is not there.
//!
//! What is not known is taken for order. All that came before the gap is over: the floor covers it,
//! so none of it races with what follows. Pending waits, open waits, host functions and the events'
//! records of before are forgotten: they can say of what came before only that it is over.
//!
//! What is asked for by a number (the record of an event, the time of a stream) was counted by the
//! program from its beginning, and is counted here from the gap. So a query that succeeds covers
//! what there is, which may be more than it found. A wait for an event that may have been recorded
//! before the gap is a wait: on the legacy stream it orders other streams, whatever the record was.

use trace::Epoch;

use crate::clock::Entry;
use crate::engine::Engine;
use crate::state::allocations::Allocations;
use crate::state::host::{Covered, Guarantee};
use crate::state::sync_vars::SyncVars;

impl Engine {
    /// `Gap`: before what lives is told, and (`resumed`) after it.
    pub(crate) fn gap(&mut self, resumed: bool) -> Epoch {
        let slots = 1..self.streams.slots.len() as u32;
        let many: Vec<Entry> = slots.clone().map(|slot| self.frontier(slot)).filter(|e| e.time > 0).collect();
        let all = Covered { snapshot: None, many, all_before: self.host.time };
        self.host.acquire(self.thread, &all, Guarantee::ALWAYS);
        self.host.forget_waits();
        let floor = self.host.weakest().times.clone();
        for slot in slots {
            self.streams.slots[slot as usize].forget();
            self.streams.settle(slot, &floor);
        }
        self.streams.forget_waits();
        self.sync_vars = SyncVars::default();
        self.host_funcs.clear();
        self.graph_funcs.clear();
        self.events.clear();
        if !resumed {
            self.execs.clear();
            self.allocations = Allocations::default();
            self.streams.destroy_all();
        }
        self.resumed = true;
        self.host_op()
    }
}
