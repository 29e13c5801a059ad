//! The barrier of all threads of a cooperative launch that `cudaCGSynchronize` is
//! (`cuda_device_runtime_api.h`; Numba's `this_grid().sync()`).
//!
//! Owns who has arrived, and what a thread is told of its grid. Newer headers of cooperative groups
//! bring a barrier of their own, which needs nothing but memory: `polls` knows when it never ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sim_races::Meeting;

use crate::observed_order::OrderEvent;
use crate::program::Next;
use crate::warp::Warp;

/// The handle of the scope that a grid is. Others have none.
pub(crate) const HANDLE: u64 = 1;

/// What the functions return for a handle of nothing (`cudaErrorUnknown`, in the code of the device
/// runtime's library).
pub(crate) const NO_GRID: u64 = 999;

/// What `cudaCGGetSize` stores, or (`rank`) `cudaCGGetRank`: of threads, and of grids. Zeros for a
/// handle of nothing.
pub(crate) fn answer(w: &mut Warp<'_>, handle: u64, rank: bool, lane: usize) -> [u32; 2] {
    if handle != HANDLE {
        return [0; 2];
    }
    if !rank {
        return [w.env.threads() as u32, 1];
    }
    let [nx, ny, nz] = w.env.launch.block;
    let within = w.tid[0][lane] + nx * (w.tid[1][lane] + ny * w.tid[2][lane]);
    [(w.block().linear as u32).wrapping_mul(nx * ny * nz).wrapping_add(within), 0]
}

/// What all blocks share.
#[derive(Debug, Default)]
pub(crate) struct GridBarrier(Mutex<Phase>);

#[derive(Debug, Default)]
struct Phase {
    arrived: u64,
    /// Threads that have ended: nobody waits for them.
    ended: u64,
    is_odd: bool,
}

impl GridBarrier {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Threads end.
    pub(crate) fn leave(&self, threads: u32, of: u64) {
        let mut phase = self.phase();
        phase.ended += u64::from(threads);
        phase.end(of);
    }
}

impl Phase {
    fn end(&mut self, threads: u64) {
        if self.arrived > 0 && self.arrived + self.ended >= threads {
            self.arrived = 0;
            self.is_odd = !self.is_odd;
        }
    }
}

/// Lanes of a warp that have arrived, and whether the phase that each waits for is an odd one. A
/// lane is never two phases behind: the next one needs its arrival.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrivals {
    lanes: u32,
    odd: u32,
}

/// Lanes come to the barrier, or look at it again. Answers which of them go on.
fn arrive(w: &mut Warp<'_>, lanes: u32) -> u32 {
    let threads = w.env.threads();
    let coming = lanes & !w.arrivals.lanes;
    w.tell_lanes(coming, |events, lanes| events.meeting_arrives(Meeting::Grid, lanes, true));
    if coming != 0 {
        w.tell_order(OrderEvent::GridMeets);
    }
    let mut phase = w.env.grid_barrier.phase();
    let new = lanes & !w.arrivals.lanes;
    if new != 0 {
        w.env.system_changes.add();
        w.arrivals.lanes |= new;
        w.arrivals.odd = w.arrivals.odd & !new | if phase.is_odd { new } else { 0 };
        phase.arrived += u64::from(new.count_ones());
        phase.end(threads);
    }
    let passed = lanes & if phase.is_odd { !w.arrivals.odd } else { w.arrivals.odd };
    w.arrivals.lanes &= !passed;
    drop(phase);
    w.tell_lanes(passed, |events, lanes| events.meeting_passes(Meeting::Grid, lanes));
    if passed != 0 {
        w.tell_order(OrderEvent::GridMeets);
    }
    passed
}

/// A call of the barrier at the program counter, by `mask`. Lanes that have to wait come to the
/// call again. The others are those of the first value: they keep running, are to be given their
/// results, and go on behind the call.
pub(crate) fn call(w: &mut Warp<'_>, mask: u32) -> (u32, Next) {
    if !w.env.launch.cooperative {
        return (mask, Next::Step);
    }
    let passed = arrive(w, mask);
    if passed == 0 {
        w.polls_system(mask);
        return (0, Next::Yield);
    }
    let waiting = w.here(w.pc);
    w.send(mask & !passed, waiting);
    (passed, Next::Step)
}
