//! The id of an event.
//!
//! Owns defining events that were made before the shim was there when they are first used, and
//! whether any is shared with another process.

use std::sync::atomic::{AtomicU32, Ordering};

use cuda_sys::*;
use trace::{EventId, Op};

use super::recall::recall;
use crate::ids::contexts::{context_id, current_context};
use crate::ids::destroyed::handle_destroyed;
use crate::log::core::Core;
use crate::observe::Cx;
use crate::runtime::handle_cache::{self, Remembered};
use crate::runtime::thread_state;

/// Events that other processes have or get.
static SHARED: AtomicU32 = AtomicU32::new(0);

/// Whether there may be any.
pub fn any_shared() -> bool {
    SHARED.load(Ordering::Acquire) != 0
}

/// Another process has or gets an event.
pub fn note_shared() {
    SHARED.fetch_add(1, Ordering::Release);
}

/// The id of an event.
#[unsafe(link_section = "streamsan_hot")]
pub fn event_id(cx: &mut Cx<'_>, handle: CUevent) -> EventId {
    let Some(core) = cx.core() else { return EventId::NONE };
    let key = handle.0 as u64;
    let known = recall(|l| &l.events, Remembered::Events, key, || core.handles.events.get(&key).map(|id| id.0));
    known.map_or_else(|| define_event(cx, handle, 0), EventId)
}

/// An event was made (or seen first): gives it an id.
#[unsafe(link_section = "streamsan_hot")]
pub fn define_event(cx: &mut Cx<'_>, handle: CUevent, flags: u32) -> EventId {
    let Some(core) = cx.core() else { return EventId::NONE };
    let key = handle.0 as u64;
    let event = new_event(cx, core, key, flags);
    if core.handles.events.insert(key, event).is_some() {
        handle_cache::invalidate(Remembered::Events, key);
    }
    // It is used next, as a rule, and nobody can destroy what the program does not have yet.
    let generation = handle_cache::generation(Remembered::Events, key);
    thread_state::with(|l| l.events.put(key, event.0, generation));
    event
}

/// An event that is nobody's: it stands for order that a library makes.
pub fn unnamed_event(cx: &mut Cx<'_>) -> EventId {
    cx.core().map_or(EventId::NONE, |core| new_event(cx, core, 0, CU_EVENT_DISABLE_TIMING))
}

/// Logs a new event of the current context.
#[inline(always)]
fn new_event(cx: &mut Cx<'_>, core: &Core, handle: u64, flags: u32) -> EventId {
    let context = current_context();
    let context = context_id(cx, context);
    let event = EventId(core.handles.next.event.take());
    cx.log(&Op::EventCreate { event, context, flags, handle });
    event
}

/// An event goes away: its handle may come back.
#[unsafe(link_section = "streamsan_hot")]
pub fn forget_event(cx: &mut Cx<'_>, handle: CUevent) -> Option<EventId> {
    let key = handle.0 as u64;
    if cx.is_before() {
        // Programs that make an event for each wait destroy it where they made it: the table, whose
        // lines are cold, is asked once, when the call has succeeded.
        let recent = thread_state::with(|l| l.events.get(Remembered::Events, key));
        cx.token = recent.map_or(0, u64::from);
    }
    let event = handle_destroyed(cx, |handles| &handles.events, key, |event| event.0)?;
    handle_cache::invalidate(Remembered::Events, key);
    if any_shared() {
        cx.core()?.handles.shared_events.remove(&key);
    }
    Some(EventId(event))
}
