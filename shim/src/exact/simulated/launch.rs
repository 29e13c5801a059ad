//! A launch of one kernel: its number goes from the simulator's question to the hook behind the
//! call.
//!
//! Owns the place where it waits meanwhile, in the thread's state: there can be one at a time.

use std::ffi::c_void;

use trace::ring::back_channel::LaunchClass;
use trace::{Epoch, KernelId};

use super::state::{Simulated, running};
use super::tickets::LaunchPlace;
use crate::log::core::Core;
use crate::runtime::thread_state;

/// The number of a launch that is measured.
#[derive(Clone, Copy)]
pub struct LaunchNumber(u64);

impl Simulated {
    /// Leaves the number of a launch for the hook behind it. One that no hook took was not the
    /// program's.
    pub(super) fn leave(&self, number: u64) {
        // The lowest bit tells numbers from addresses of tables.
        let left = thread_state::with(|l| l.launching.replace((number << 1 | 1) as *mut c_void));
        if let Some(left) = LaunchNumber::of(left) {
            self.unlogged(left.0);
        }
    }

    /// There is nothing to leave for the hook behind the next launch.
    pub(super) fn leave_nothing(&self) {
        let left = thread_state::with(|l| l.launching.replace(std::ptr::null_mut()));
        if let Some(left) = LaunchNumber::of(left) {
            self.unlogged(left.0);
        }
    }
}

impl LaunchNumber {
    /// The number that was left in the thread's state, if that is one.
    pub fn of(left: *mut c_void) -> Option<LaunchNumber> {
        (left as u64 & 1 != 0).then_some(LaunchNumber(left as u64 >> 1))
    }

    /// The launch was none of those that are logged.
    pub fn abandoned(self) {
        if let Some(simulated) = running() {
            simulated.unlogged(self.0);
        }
    }

    /// The launch has been logged at `epoch`.
    pub fn submitted(self, epoch: Epoch) {
        if let Some(simulated) = running() {
            simulated.logged(self.0, LaunchPlace { epoch, node: 0 });
        }
    }
}

/// Behind a launch that was logged: whether the analyzer wants this kernel measured from now on, or
/// such launches no more. False: the GPU is not a simulated one.
#[inline]
pub(crate) fn apply_requests(kernel: KernelId, grid: [u32; 3], block: [u32; 3], core: &Core) -> bool {
    let Some(simulated) = running() else { return false };
    if let Some(settled) = &simulated.settled {
        settled.follow(core.header().settled.has(LaunchClass::of(kernel, grid, block)));
    }
    if let Some(demand) = &simulated.demand
        && let Some(function) = demand.asked(kernel, &core.header().wanted)
    {
        demand.add(function, true);
    }
    true
}
