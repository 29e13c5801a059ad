//! NVSHMEM's barriers: the elements of a team that come together.
//!
//! Owns their exports. On streams, each element records an event of its own and waits for those of
//! the others, which processes share by a name ([`trace::MEETING_KEY`]): the team's elements by
//! their numbers in the world, and whose event it is. The n-th wait is for the n-th record.
//! Elements whose memory this process does not share are left out: what they do is not compared
//! with anything. A barrier of the host orders what the hosts have seen finish, and needs no words:
//! the clock that all processes share tells that it was before. It ends what the host has begun
//! ([`super::by_host`]). `sync` orders as `barrier` does, without that.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{LazyLock, Mutex, PoisonError};

use cuda_sys::{CUstream, FnId};
use trace::{EventId, EventMode, Op};

use super::by_host::ending;
use super::{SONAME, asking, elements_of, export, handle_of, is_observed, own_place_in};
use crate::ids::events::{note_shared, unnamed_event};
use crate::ids::streams::working_stream;
use crate::observe::{Phase, observe};
use crate::real::library::LibraryFunction;

/// `NVSHMEM_TEAM_WORLD`.
const WORLD: i32 = 0;
/// `NVSHMEM_TEAM_SHARED`: the elements whose memory can be reached by loads and stores.
const SHARED: i32 = 1;

/// Elements of a team whose order is followed.
const MOST: usize = 64;

/// The event of each element of each team, by its name.
static EVENTS: LazyLock<Mutex<HashMap<Vec<u8>, EventId>>> = LazyLock::new(Mutex::default);

/// The number of an element in another team.
fn translated(team: i32, element: usize, other: i32) -> Option<i32> {
    static TRANSLATE: LibraryFunction = LibraryFunction::new(SONAME, c"nvshmem_team_translate_pe");
    type Translate = unsafe extern "C" fn(i32, c_int, i32) -> c_int;
    let real = TRANSLATE.find(0)?;
    // SAFETY: NVSHMEM's signature; the team exists, and so does its element.
    let number = unsafe { std::mem::transmute::<usize, Translate>(real)(team, element as c_int, other) };
    (number >= 0).then_some(number)
}

/// The names of the own event, and of those of the elements that share memory with this one.
fn names(team: i32) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let (count, own) = (elements_of(team)?, own_place_in(team)?);
    let world: Vec<i32> = (0..count).map(|element| translated(team, element, WORLD)).collect::<Option<_>>()?;
    let common: Vec<u8> = world.iter().flat_map(|number| number.to_le_bytes()).collect();
    let name = |element: usize| [trace::MEETING_KEY, &common, &world[element].to_le_bytes()].concat();
    let near = |element: &usize| *element != own && translated(team, *element, SHARED).is_some();
    let others: Vec<Vec<u8>> = (0..count).filter(near).map(name).collect();
    (own < count && others.len() < MOST).then(|| (name(own), others))
}

/// The elements of a team meet on their streams.
fn meeting<R>(id: FnId, real: impl FnOnce() -> R, stream: CUstream, team: i32) -> R {
    if !is_observed() {
        return real();
    }
    let names = asking(|| names(team));
    let mut is_known = false;
    observe(id, 0, Phase::Before, |cx| {
        let Some((own, others)) = &names else { return cx.not_modelled() };
        let Some(stream) = working_stream(cx, handle_of(stream)) else { return };
        is_known = true;
        if others.is_empty() {
            return;
        }
        let mut events = EVENTS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut event = |name: &Vec<u8>| {
            *events.entry(name.clone()).or_insert_with(|| {
                note_shared();
                crate::log::shared::record_time();
                let event = unnamed_event(cx);
                cx.without_stack().log(&Op::SharedEvent { event, key: name });
                event
            })
        };
        let own = event(own);
        let others: Vec<EventId> = others.iter().map(event).collect();
        drop(events);
        cx.log(&Op::EventRecord { event: own, stream, mode: EventMode::Plain });
        for event in others {
            cx.log(&Op::StreamWait { stream, event, mode: EventMode::Plain });
        }
    });
    // In a graph, or of a team that is not known, it stays what NVSHMEM makes of it.
    if is_known { asking(real) } else { real() }
}

/// The hosts of all elements meet, and nothing is over that was begun before.
fn syncing<R>(_id: FnId, real: impl FnOnce() -> R) -> R {
    if is_observed() { asking(real) } else { real() }
}

export!(["nvshmemx_barrier_on_stream"] (team: i32, stream: CUstream) -> c_int, -1, meeting(stream, team));
export!(["nvshmemx_barrier_all_on_stream"] (stream: CUstream), meeting(stream, WORLD));
export!(["nvshmemx_team_sync_on_stream"] (team: i32, stream: CUstream) -> c_int, -1, meeting(stream, team));
export!(["nvshmemx_sync_all_on_stream"] (stream: CUstream), meeting(stream, WORLD));
export!(["nvshmem_barrier"] (team: i32) -> c_int, -1, ending());
export!(["nvshmem_barrier_all"](), ending());
export!(["nvshmem_team_sync"] (team: i32) -> c_int, -1, syncing());
export!(["nvshmem_sync_all"](), syncing());
