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
use crate::rules::host_sync::frontier;
use crate::state::allocations::Allocations;
use crate::state::host::{Covered, Guarantee};
use crate::state::sync_vars::SyncVars;

/// `Gap`: before what lives is told, and (`resumed`) after it.
pub(crate) fn gap(engine: &mut Engine, resumed: bool) -> Epoch {
    let slots = 1..engine.streams.slots.len() as u32;
    let many: Vec<Entry> = slots.clone().map(|slot| frontier(engine, slot)).filter(|e| e.time > 0).collect();
    let all = Covered { snapshot: None, many, all_before: engine.host.time };
    engine.host.acquire(engine.thread, &all, Guarantee::ALWAYS);
    engine.host.forget_waits();
    let floor = engine.host.weakest().times.clone();
    for slot in slots {
        engine.streams.slots[slot as usize].forget();
        engine.streams.settle(slot, &floor);
    }
    engine.streams.forget_waits();
    engine.sync_vars = SyncVars::default();
    engine.host_funcs.clear();
    engine.graph_funcs.clear();
    engine.events.clear();
    if !resumed {
        engine.execs.clear();
        let parts = std::mem::take(&mut engine.graph_parts);
        parts.keys().for_each(|slot| engine.streams.destroy_part(*slot));
        engine.allocations = Allocations::default();
        engine.streams.destroy_all();
    }
    engine.resumed = true;
    engine.host_op()
}
