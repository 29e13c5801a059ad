//! A launch of one kernel: how it gets a table, and what the hook behind the launch does with it.
//!
//! Owns the way of a table from the callback ([`Exact::launching`]) through the thread's state to
//! the hook ([`launched`]), which hands it in ([`submitted`]) or gives it up ([`abandoned`]).
//! Reading tables is in [`super::readback`].

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use cuda_sys::{CUcontext, CUstream};
use trace::ring::back_channel::LaunchClass;
use trace::{Epoch, KernelId};

use super::demand::MeasuredFunction;
use super::device_table::DeviceTable;
use super::sanitizer_api::{LaunchData, StreamHandle};
use super::settled::GridAndBlock;
use super::simulated::launch::{self as simulated, LaunchNumber};
use super::state::{DRAINING, Exact, PENDING, running};
use super::table_pool::TableOffer;
use super::{glob, readback};
use crate::handles::captures;
use crate::log::core::Core;
use crate::log::start::core;
use crate::runtime::{lifecycle, thread_state};

impl Exact {
    /// A kernel is about to be handed to the device: gives it a table, or null.
    pub(super) fn launching(&self, launch: &LaunchData) {
        // A table that no hook took belongs to a launch that failed, or that is not the program's.
        // Its end is unknown, so the table is given up.
        let left = thread_state::with(|l| l.launching.replace(std::ptr::null_mut()));
        if !left.is_null() {
            // SAFETY: made by Box::into_raw below, taken once.
            let left = unsafe { Box::from_raw(left.cast::<DeviceTable>()) };
            if let Ok(mut pool) = self.pool.lock() {
                pool.give_up(left.context);
            }
        }
        // What the driver launches for calls of ours is not the program's.
        let ours = DRAINING.get() || lifecycle::is_off();
        let asked = !ours && self.demand.as_ref().is_some_and(|demand| demand.measures(MeasuredFunction::of(launch)));
        let decided = !ours
            && self
                .settled
                .as_ref()
                .is_some_and(|settled| settled.has(MeasuredFunction::of(launch), GridAndBlock::of(launch)));
        let wanted = !ours && (asked || !decided && self.wants(launch.name)) && !self.is_refused(launch.module);
        let table = if wanted { self.take(launch.context, launch.stream_handle) } else { None };
        if wanted && table.is_none() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        let given = self.assign(launch, table.as_ref().map_or(std::ptr::null(), DeviceTable::address));
        let Some(table) = table else { return };
        if given {
            thread_state::with(|l| l.launching.set(Box::into_raw(Box::new(table)).cast()));
        } else {
            self.missed.fetch_add(1, Ordering::Relaxed);
            self.give_back(table);
        }
    }

    pub(super) fn take(&self, context: CUcontext, stream: StreamHandle) -> Option<DeviceTable> {
        let offer = self.pool.lock().ok()?.take(context);
        match offer {
            TableOffer::Free(table) => Some(table),
            TableOffer::None => None,
            TableOffer::First => {
                // The driver may launch kernels of its own for this.
                DRAINING.set(true);
                let table = DeviceTable::new(&self.api, context, stream);
                DRAINING.set(false);
                table
            }
        }
    }

    /// Says what the patches in a launch get as their user data.
    pub(super) fn assign(&self, launch: &LaunchData, data: *const c_void) -> bool {
        // SAFETY: the handles are those of the launch that a callback is about.
        unsafe { (self.api.set_launch_data)(launch.launch, launch.function, launch.stream_handle, data) == 0 }
    }

    pub(super) fn wants(&self, name: *const std::ffi::c_char) -> bool {
        glob::wants(self.pattern.as_deref(), name)
    }

    pub(super) fn give_back(&self, table: DeviceTable) {
        if let Ok(mut pool) = self.pool.lock() {
            pool.give_back(table);
        }
    }
}

/// Where the bytes of the launch that this thread has just made will be found, if it is measured.
pub enum LaunchMeasurement {
    /// In a table on the device.
    Table(Box<DeviceTable>),
    /// The simulator tells them by this number.
    Simulated(LaunchNumber),
}

/// Behind a launch: takes its table.
#[inline]
pub fn launched() -> Option<LaunchMeasurement> {
    let table = thread_state::with(|l| l.launching.get());
    if table.is_null() {
        return None;
    }
    thread_state::with(|l| l.launching.set(std::ptr::null_mut()));
    if let Some(number) = LaunchNumber::of(table) {
        return Some(LaunchMeasurement::Simulated(number));
    }
    // SAFETY: made by Box::into_raw in `launching`, taken once.
    Some(LaunchMeasurement::Table(unsafe { Box::from_raw(table.cast()) }))
}

/// Behind a launch that was logged: whether the analyzer wants this kernel measured from now on, or
/// such launches no more.
#[inline]
pub fn apply_requests(kernel: KernelId, grid: [u32; 3], block: [u32; 3], core: &Core) {
    let Some(exact) = running() else {
        simulated::apply_requests(kernel, grid, block, core);
        return;
    };
    if let Some(settled) = &exact.settled {
        settled.follow(core.header().settled.has(LaunchClass::of(kernel, grid, block)));
    }
    if let Some(demand) = &exact.demand
        && let Some(function) = demand.asked(kernel, &core.header().wanted)
    {
        exact.begin(demand, function);
    }
}

/// The launch was none of those that are logged: its table is given up.
pub fn abandoned(launched: LaunchMeasurement) {
    match launched {
        LaunchMeasurement::Simulated(number) => number.abandoned(),
        LaunchMeasurement::Table(table) => {
            if let Some(exact) = running()
                && let Ok(mut pool) = exact.pool.lock()
            {
                pool.give_up(table.context);
            }
        }
    }
}

/// The launch has been logged at `epoch`: its table is read when the stream has got there.
pub fn submitted(launched: LaunchMeasurement, epoch: Epoch, stream: CUstream, per_thread: bool) {
    match launched {
        LaunchMeasurement::Simulated(number) => number.submitted(epoch),
        LaunchMeasurement::Table(table) => table_submitted(*table, epoch, stream, per_thread),
    }
}

/// As [`submitted`], of a table.
pub(super) fn table_submitted(mut table: DeviceTable, epoch: Epoch, stream: CUstream, per_thread: bool) {
    let (Some(exact), Some(core)) = (running(), core()) else { return };
    table.epoch = epoch;
    if !table.submitted(stream, per_thread) {
        return readback::log_lost(core, &table);
    }
    let context = table.context;
    if let Ok(mut pool) = exact.pool.lock() {
        pool.pending.push(table);
        PENDING.fetch_add(1, Ordering::Relaxed);
    }
    if !captures::any() {
        exact.wait_for_table(core, context);
    }
}
