//! NVSHMEM's barriers: the elements of a team that come together.
//!
//! Owns their exports, and how elements meet on streams, also in collectives
//! ([`super::collectives`]). There, each element records an event of its own and waits for those of
//! the others, which processes share by a name ([`trace::MEETING_KEY`]): which team it is
//! ([`super::teams`]), and whose event. The n-th wait is for the n-th record.
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
use super::teams::{WORLD, names};
use super::{Effects, asking, export, handle_of, is_observed};
use crate::ids::events::{note_shared, unnamed_event};
use crate::ids::streams::working_stream;
use crate::observe::{Phase, observe};

/// The event of each element of each team, by its name.
static EVENTS: LazyLock<Mutex<HashMap<Vec<u8>, EventId>>> = LazyLock::new(Mutex::default);

/// Whom the elements of a team wait for.
#[derive(Clone, Copy)]
pub(super) enum Awaited {
    /// Each waits for all others: a barrier, and where the result of each needs what all have.
    All,
    /// All others wait for this one.
    Only(c_int),
}

/// The elements of a team meet on their streams. `effects`: what this one does between its arrival
/// and its wait.
pub(super) fn meeting<R>(
    id: FnId,
    real: impl FnOnce() -> R,
    stream: CUstream,
    (team, awaited): (i32, Awaited),
    effects: impl Fn() -> Effects,
) -> R {
    if !is_observed() {
        return real();
    }
    // In a graph, or of a team that is not known, it stays what NVSHMEM makes of it.
    if meets(id, stream, (team, awaited), &effects) { asking(real) } else { real() }
}

/// Logs a meeting. False: it is not known who meets.
#[inline(never)]
fn meets(id: FnId, stream: CUstream, (team, awaited): (i32, Awaited), effects: &dyn Fn() -> Effects) -> bool {
    let (names, effects) = asking(|| (names(team), effects()));
    let mut is_known = false;
    observe(id, 0, Phase::Before, |cx| {
        if effects.in_part || names.is_none() {
            cx.not_modelled();
        }
        let Some(stream) = working_stream(cx, handle_of(stream)) else { return };
        let (mut own, mut awaits) = (None, Vec::new());
        if let Some((mine, others)) = &names {
            is_known = true;
            let is_awaited = |place: usize| match awaited {
                Awaited::All => true,
                Awaited::Only(one) => usize::try_from(one) == Ok(place),
            };
            let mut event = |name: &Vec<u8>| {
                let mut events = EVENTS.lock().unwrap_or_else(PoisonError::into_inner);
                *events.entry(name.clone()).or_insert_with(|| {
                    note_shared();
                    crate::log::shared::record_time();
                    let event = unnamed_event(cx);
                    cx.without_stack().log(&Op::SharedEvent { event, key: name });
                    event
                })
            };
            if is_awaited(mine.0) && !others.is_empty() {
                own = Some(event(&mine.1));
            }
            awaits.extend(others.iter().filter(|other| is_awaited(other.0)).map(|other| event(&other.1)));
        }
        if let Some(event) = own {
            cx.log(&Op::EventRecord { event, stream, mode: EventMode::Plain });
        }
        effects.ops(stream, |op| {
            cx.log(&op);
        });
        for event in awaits {
            cx.log(&Op::StreamWait { stream, event, mode: EventMode::Plain });
        }
    });
    is_known
}

/// The hosts of all elements meet, and nothing is over that was begun before.
fn syncing<R>(_id: FnId, real: impl FnOnce() -> R) -> R {
    if is_observed() { asking(real) } else { real() }
}

export!(["nvshmemx_barrier_on_stream"] (team: i32, stream: CUstream) -> c_int, -1, meeting(stream, (team, Awaited::All), Effects::default));
export!(["nvshmemx_barrier_all_on_stream"] (stream: CUstream), meeting(stream, (WORLD, Awaited::All), Effects::default));
export!(["nvshmemx_team_sync_on_stream"] (team: i32, stream: CUstream) -> c_int, -1, meeting(stream, (team, Awaited::All), Effects::default));
export!(["nvshmemx_sync_all_on_stream"] (stream: CUstream), meeting(stream, (WORLD, Awaited::All), Effects::default));
export!(["nvshmem_barrier"] (team: i32) -> c_int, -1, ending());
export!(["nvshmem_barrier_all"](), ending());
export!(["nvshmem_team_sync"] (team: i32) -> c_int, -1, syncing());
export!(["nvshmem_sync_all"](), syncing());
