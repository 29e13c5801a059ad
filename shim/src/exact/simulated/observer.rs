//! What the simulator asks and tells, and how it comes to do so.
//!
//! Owns the private table that a simulated driver hands out; a real driver does not know its id.
//! The simulator asks on the program's threads, inside the calls that launch. It tells on threads
//! of its own, which the program's calls may be waiting for: so nothing here waits for the program.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use cuda_sys::{
    CUarray, CUcontext, CUfunction, CUgraphExec, CUresult, InsideReport, LaunchObserver, ObservedLaunch,
    SIM_MEASURE_TABLE, SimMeasureTable, TouchedPage, launch_end, launch_wish,
};
use trace::exact_flags;

use super::budget::{Budget, Worth};
use super::graph_launch::{self, SimulatedNode};
use super::inside::{self, InsideGrid};
use super::state::{self, Simulated, running};
use super::tickets::{LaunchBytes, Tickets, Wish};
use crate::exact::demand::{Demand, MeasuredFunction};
use crate::exact::glob;
use crate::exact::runs::{Collector, PAGE_WORDS};
use crate::exact::settled::{GridAndBlock, SettledLaunches};
use crate::exact::state::PATIENCE;
use crate::real::driver::real;
use crate::runtime::lifecycle;
use crate::runtime::lock::Lock;

static OBSERVER: LaunchObserver = LaunchObserver { graph_begins, begins, starts, ended, inside: checked };

static TABLE: AtomicPtr<SimMeasureTable> = AtomicPtr::new(std::ptr::null_mut());

/// What the exact mode of a simulated GPU is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// Names of kernels that are measured from the start; `None`: of none.
    pub pattern: Option<&'a [u8]>,
    /// Launches that the code decides are not measured.
    pub settles: bool,
    /// Kernels are measured once the analyzer asks.
    pub confirm: bool,
    /// The percentage of the run that measuring may take, if it is limited.
    pub share: Option<u64>,
    /// Names of kernels whose threads are checked against each other.
    pub inside: Option<&'a [u8]>,
    /// Reads of unwritten memory are looked for in these kernels, too.
    pub unwritten: bool,
    /// And which of their fences and barriers are superfluous is found out.
    pub superfluous: bool,
}

/// Starts the exact mode of a simulated GPU. False: the GPU is not a simulated one.
pub(crate) fn start(asked: Asked<'_>) -> Result<bool, String> {
    let Asked { pattern, settles, confirm, share, inside, unwritten, superfluous } = asked;
    let mut table: *const c_void = std::ptr::null();
    let id = SIM_MEASURE_TABLE.as_ptr();
    let answer = real!(cuGetExportTable((&raw mut table).cast() => *mut c_void, id => *const u8));
    if answer != CUresult::SUCCESS || table.is_null() {
        return Ok(false);
    }
    TABLE.store(table.cast_mut().cast(), Ordering::Release);
    state::publish(Simulated {
        pattern: pattern.map(<[u8]>::to_vec),
        settled: settles.then(SettledLaunches::default),
        budget: share.map(Budget::of),
        // Within a budget, what findings rest on comes first.
        demand: (confirm || share.is_some()).then(Demand::default),
        inside: inside.map(<[u8]>::to_vec),
        superfluous,
        tickets: Lock::new(Tickets::default()),
    });
    // SAFETY: what stands behind this id; the observer is a static.
    if unsafe { ((*table.cast::<SimMeasureTable>()).observe)(&raw const OBSERVER) } == 0 {
        return Err("the simulated GPU has another observer".into());
    }
    if unwritten {
        // SAFETY: what stands behind this id.
        unsafe { ((*table.cast::<SimMeasureTable>()).keep_written)() };
    }
    // SAFETY: the handler lives as long as the process.
    unsafe { libc::atexit(at_exit) };
    Ok(true)
}

/// Where the bytes of an opaque array lie, if launches are measured on a simulated GPU.
pub(crate) fn array(array: CUarray) -> Option<u64> {
    // SAFETY: null, or the driver's table.
    let table = unsafe { TABLE.load(Ordering::Acquire).as_ref() }?;
    // SAFETY: the driver's function, which takes any handle.
    Some(unsafe { (table.array)(array) }).filter(|at| *at != 0)
}

/// The program ends: what is still running is waited for, a little.
extern "C" fn at_exit() {
    // SAFETY: null, or the driver's table.
    let table = unsafe { TABLE.load(Ordering::Acquire).as_ref() };
    let under_way = |simulated: &Simulated| simulated.tickets.lock().is_ok_and(|tickets| tickets.any_logged());
    if let Some(table) = table
        && lifecycle::is_running()
        && running().is_some_and(under_way)
    {
        // SAFETY: the driver's function; it waits for work, not for calls.
        unsafe { (table.drain)(PATIENCE.as_millis() as u32) };
        // What has run may be told of a moment later, when its last holder lets go.
        let drained = Instant::now();
        while running().is_some_and(under_way) && drained.elapsed() < PATIENCE / 8 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

unsafe extern "C" fn graph_begins(exec: CUgraphExec) {
    if running().is_some() && !lifecycle::is_off() {
        let _ = catch_unwind(|| graph_launch::graph_begins(exec.0.cast()));
    }
}

unsafe extern "C" fn begins(launch: *const ObservedLaunch) -> u64 {
    // SAFETY: the simulator passes one.
    let launch = unsafe { &*launch };
    match running() {
        Some(simulated) if !lifecycle::is_off() => {
            catch_unwind(AssertUnwindSafe(|| simulated.begins(launch))).unwrap_or(0)
        }
        _ => 0,
    }
}

unsafe extern "C" fn starts(number: u64) -> c_int {
    let wanted = |simulated: &Simulated| {
        let wish = simulated.wish(number);
        let granted = simulated.budget.as_ref().is_none_or(|budget| budget.grants(number));
        let bytes = if wish.bytes && granted { launch_wish::BYTES } else { 0 };
        let superfluous = if simulated.superfluous { launch_wish::SUPERFLUOUS } else { 0 };
        bytes | if wish.inside { launch_wish::INSIDE | superfluous } else { 0 }
    };
    let all = launch_wish::BYTES;
    running().map_or(0, |simulated| catch_unwind(AssertUnwindSafe(|| wanted(simulated))).unwrap_or(all))
}

unsafe extern "C" fn ended(number: u64, pages: *const TouchedPage, count: usize, end: c_int, nanoseconds: u64) {
    let Some(simulated) = running() else { return };
    let run = || {
        let begun = Instant::now();
        let (mut collector, mut ordered) = (Collector::default(), 0);
        for index in 0..count {
            // SAFETY: there are so many pages, each with so many words.
            let (page, bits) = unsafe {
                let page = &*pages.add(index);
                (page, std::slice::from_raw_parts(page.bits, PAGE_WORDS))
            };
            if page.kind > trace::exact_kind::ATOMIC_WRITE {
                ordered = exact_flags::ORDERED;
            }
            if bits.iter().all(|word| *word == u32::MAX) {
                collector.whole(page.address, page.kind);
            } else {
                collector.page(page.address, page.kind, bits);
            }
        }
        let flags = match end {
            launch_end::RAN => exact_flags::SIMULATED | ordered,
            launch_end::LEFT_OUT => exact_flags::SIMULATED | exact_flags::NOT_RUN,
            _ => exact_flags::LOST,
        };
        let runs = if flags & exact_flags::LOST == 0 { collector.finish() } else { Vec::new() };
        if let Some(budget) = &simulated.budget {
            budget.spent(number, Duration::from_nanos(nanoseconds) + begun.elapsed());
        }
        simulated.ended(number, LaunchBytes { flags, runs, inside: Vec::new() });
    };
    let _ = catch_unwind(AssertUnwindSafe(run));
}

unsafe extern "C" fn checked(number: u64, report: *const InsideReport) {
    let Some(simulated) = running() else { return };
    // SAFETY: the simulator's report, within its call.
    let _ = catch_unwind(AssertUnwindSafe(|| simulated.checked(number, unsafe { InsideGrid::of(&*report) })));
}

impl Simulated {
    /// A launch is being made: its number if it is measured or checked, otherwise 0.
    fn begins(&self, launch: &ObservedLaunch) -> u64 {
        let function = MeasuredFunction {
            context: CUcontext::NULL,
            module: std::ptr::null_mut(),
            function: CUfunction(launch.function as *mut _),
        };
        let shape = GridAndBlock::new(launch.grid, launch.block);
        let asked = self.demand.as_ref().is_some_and(|demand| demand.measures(function));
        let settled = self.settled.as_ref().is_some_and(|settled| settled.has(function, shape));
        let named = || glob::wants(self.pattern.as_deref(), launch.name);
        let worth = match &self.budget {
            Some(budget) => budget.worth((launch.function, shape), launch.name, asked, settled),
            None => (asked || !settled && named()).then_some(Worth::Asked),
        };
        let wish = Wish { bytes: worth.is_some(), inside: inside::wants(self.inside.as_deref(), launch.name) };
        let wanted = wish.bytes || wish.inside;
        let open = || {
            let number = self.tickets.lock().map_or(0, |mut tickets| tickets.open(wish));
            if let (Some(budget), Some(worth)) = (&self.budget, worth) {
                budget.begins(number, worth);
            }
            number
        };
        if launch.node.is_null() {
            let number = if wanted { open() } else { 0 };
            if number != 0 {
                self.leave(number);
            } else {
                self.leave_nothing();
            }
            return number;
        }
        let number = if wanted { open() } else { 0 };
        let node = SimulatedNode { handle: launch.node.0 as u64, function, shape, settled, number };
        if graph_launch::node_begins(node) { number } else { 0 }
    }
}
