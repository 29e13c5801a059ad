//! The id of an event.
//!
//! Owns defining events that were made before the shim was there when they are first used.

use cuda_sys::*;
use trace::{EventId, Op};

use super::recall::recall;
use crate::observe::Cx;
use crate::runtime::handle_cache;

impl Cx<'_> {
    /// The id of an event.
    pub fn event(&mut self, handle: CUevent) -> EventId {
        let Some(core) = self.core() else { return EventId::NONE };
        let key = handle.0 as u64;
        let known = recall(|l| &l.events, key, || core.handles.events.get(&key).map(|id| id.0));
        known.map_or_else(|| self.define_event(handle, 0), EventId)
    }

    /// An event was made (or seen first): gives it an id.
    pub fn define_event(&mut self, handle: CUevent, flags: u32) -> EventId {
        let Some(core) = self.core() else { return EventId::NONE };
        let context = self.current_context();
        let context = self.context(context);
        let event = EventId(core.handles.next.event.take());
        let key = handle.0 as u64;
        self.log(&Op::EventCreate { event, context, flags, handle: key });
        if core.handles.events.insert(key, event).is_some() {
            handle_cache::invalidate();
        }
        event
    }

    /// An event goes away: its handle may come back.
    pub fn forget_event(&mut self, handle: CUevent) -> Option<EventId> {
        let key = handle.0 as u64;
        let event = self.destroyed(|handles| &handles.events, key, |event| event.0)?;
        self.core()?.handles.shared_events.remove(&key);
        Some(EventId(event))
    }
}
