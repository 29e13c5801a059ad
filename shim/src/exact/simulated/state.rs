//! The running exact mode of a simulated GPU.
//!
//! Owns [`Simulated`], its static, and logging what a launch has touched.

use std::sync::atomic::{AtomicPtr, Ordering};

use super::budget::Budget;
use super::inside::InsideGrid;
use super::tickets::{LaunchBytes, LaunchPlace, Tickets, Wish};
use crate::exact::demand::Demand;
use crate::exact::settled::SettledLaunches;
use crate::exact::state::log_exact;
use crate::log::start::core;
use crate::runtime::lifecycle;
use crate::runtime::lock::Lock;

/// The running exact mode.
pub(super) struct Simulated {
    /// Names of kernels that are measured from the start; `None`: of none.
    pub pattern: Option<Vec<u8>>,
    /// Launches that are not measured any more, if that was not ruled out.
    pub settled: Option<SettledLaunches>,
    /// What measuring may cost, if it is limited.
    pub budget: Option<Budget>,
    /// Kernels that are measured once the analyzer asks for them, if that was asked for.
    pub demand: Option<Demand>,
    /// Names of kernels whose threads are checked against each other; `None`: of none.
    pub inside: Option<Vec<u8>>,
    /// Which of their fences and barriers are superfluous is found out.
    pub superfluous: bool,
    /// Launches under way.
    pub tickets: Lock<Tickets>,
}

#[unsafe(link_section = "streamsan_state")]
static SIMULATED: AtomicPtr<Simulated> = AtomicPtr::new(std::ptr::null_mut());

/// The running one, if the GPU is a simulated one and its launches are measured.
#[inline]
pub(super) fn running() -> Option<&'static Simulated> {
    // SAFETY: a published value is never freed.
    unsafe { SIMULATED.load(Ordering::Acquire).as_ref() }
}

/// Makes it the running one, for good.
pub(super) fn publish(simulated: Simulated) -> &'static Simulated {
    let simulated: &'static Simulated = Box::leak(Box::new(simulated));
    SIMULATED.store(std::ptr::from_ref(simulated).cast_mut(), Ordering::Release);
    simulated
}

impl Simulated {
    /// The launch of this number is in the log.
    pub(super) fn logged(&self, number: u64, place: LaunchPlace) {
        let Ok(mut tickets) = self.tickets.lock() else { return };
        let touched = tickets.logged(number, place);
        drop(tickets);
        if let Some(touched) = touched {
            log(place, &touched);
        }
    }

    /// The launch of this number will not be in the log.
    pub(super) fn unlogged(&self, number: u64) {
        if let Ok(mut tickets) = self.tickets.lock() {
            tickets.unlogged(number);
        }
    }

    /// What is wanted of the launch of this number.
    pub(super) fn wish(&self, number: u64) -> Wish {
        self.tickets.lock().map_or(Wish::default(), |tickets| tickets.wish(number))
    }

    /// A grid of the launch of this number was checked.
    pub(super) fn checked(&self, number: u64, grid: InsideGrid) {
        if let Ok(mut tickets) = self.tickets.lock() {
            tickets.checked(number, grid);
        }
    }

    /// The launch of this number has ended.
    pub(super) fn ended(&self, number: u64, touched: LaunchBytes) {
        let Ok(mut tickets) = self.tickets.lock() else { return };
        let known = tickets.ended(number, touched);
        drop(tickets);
        if let Some((place, touched)) = known {
            log(place, &touched);
        }
    }
}

fn log(place: LaunchPlace, touched: &LaunchBytes) {
    // A thread of the simulator must not be the one that starts a log.
    if lifecycle::is_running()
        && let Some(core) = core()
    {
        touched.inside.iter().for_each(|grid| grid.log(core, place));
        log_exact(core, place.epoch, place.node, touched.flags, &touched.runs);
    }
}
