//! Which kernels are measured because the analyzer asks for them while the program runs
//! (`confirm`).
//!
//! Owns the way from the analyzer's request for a kernel to the driver's function, and the decision
//! to patch code that is loaded already. The analyzer names kernels by the ids that the shim gave
//! them; callbacks of the API know functions and modules. The two meet behind a launch: its
//! callback leaves the function here, its hook knows the kernel. So the first launch after a
//! request is not measured, and those after it are.
//!
//! Code is patched in the hook, not in the callback: in the hook the driver holds no lock of its
//! own. The API instruments all launches of a module that come after its patching; those that run
//! meanwhile keep the code that they were launched with.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cuda_sys::{CUcontext, CUfunction};
use trace::KernelId;
use trace::ring::back_channel::MeasureRequests;

use super::sanitizer_api::LaunchData;
use crate::runtime::lock::Lock;

/// What the driver is launching on this thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct MeasuredFunction {
    /// Its context.
    pub context: CUcontext,
    /// Its module.
    pub module: *mut c_void,
    /// Itself.
    pub function: CUfunction,
}

impl MeasuredFunction {
    /// What a launch is of.
    pub(super) fn of(launch: &LaunchData) -> Self {
        Self { context: launch.context, module: launch.module, function: launch.function }
    }
}

thread_local! {
    static LAST: Cell<Option<MeasuredFunction>> = const { Cell::new(None) };
}

/// Whether an executable graph has kernels of a module, which must then stay as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ModuleHold {
    /// None has.
    Free,
    /// One is being made.
    Unknown,
    /// One has, or may have.
    Held,
}

/// Functions that were asked for.
pub(super) struct Demand {
    /// Whether there is any, so that most launches ask for no more.
    any: AtomicBool,
    /// It is unknown what executable graphs hold: all code must stay as it is.
    closed: AtomicBool,
    /// Executable graphs that are being made.
    making: AtomicU32,
    /// Modules with kernels of executable graphs.
    held: Lock<Vec<*mut c_void>>,
    /// Each with whether its code could be patched.
    known: Lock<Vec<(MeasuredFunction, bool)>>,
}

// SAFETY: handles of the driver, valid on every thread.
unsafe impl Send for Demand {}
// SAFETY: what is not in the lock is atomic.
unsafe impl Sync for Demand {}

impl Default for Demand {
    fn default() -> Self {
        Self {
            any: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            making: AtomicU32::new(0),
            held: Lock::new(Vec::new()),
            known: Lock::new(Vec::new()),
        }
    }
}

impl Demand {
    /// In the callback of a launch: whether it is to be measured.
    pub(super) fn measures(&self, function: MeasuredFunction) -> bool {
        LAST.set(Some(function));
        self.any.load(Ordering::Relaxed)
            && self.known.lock().is_ok_and(|known| known.iter().any(|(f, patched)| *f == function && *patched))
    }

    /// Behind a launch of this kernel: its function, when the analyzer wants it and it is not known
    /// yet.
    pub(super) fn asked(&self, kernel: KernelId, wanted: &MeasureRequests) -> Option<MeasuredFunction> {
        self.asked_of(LAST.take()?, kernel, wanted)
    }

    /// The same of a function that is known to be this kernel.
    pub(super) fn asked_of(
        &self,
        function: MeasuredFunction,
        kernel: KernelId,
        wanted: &MeasureRequests,
    ) -> Option<MeasuredFunction> {
        if !wanted.any() || !wanted.has(kernel) {
            return None;
        }
        let known = self.known.lock().ok()?;
        known.iter().all(|(f, _)| *f != function).then_some(function)
    }

    /// Whether a function of this module has been asked for before, and with what success its code
    /// was patched.
    pub(super) fn patched(&self, function: &MeasuredFunction) -> Option<bool> {
        let known = self.known.lock().ok()?;
        let same = |f: &MeasuredFunction| f.context == function.context && f.module == function.module;
        known.iter().find(|(f, _)| same(f)).map(|(_, patched)| *patched)
    }

    /// Whether any function was asked for.
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Nothing is patched from now on.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// The program begins to make an executable graph, or has made it.
    pub(super) fn making(&self, begins: bool) {
        let _ = self.making.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
            Some(if begins { n + 1 } else { n.saturating_sub(1) })
        });
    }

    /// An executable graph has a kernel of this module.
    pub(super) fn hold(&self, module: *mut c_void) {
        if let Ok(mut held) = self.held.lock()
            && !held.contains(&module)
        {
            held.push(module);
        }
    }

    /// Whether a module may be patched.
    pub(super) fn holds(&self, module: *mut c_void) -> ModuleHold {
        if self.closed.load(Ordering::Relaxed) || self.held.lock().map_or(true, |held| held.contains(&module)) {
            ModuleHold::Held
        } else if self.making.load(Ordering::Relaxed) != 0 {
            ModuleHold::Unknown
        } else {
            ModuleHold::Free
        }
    }

    /// From now on launches of this function are measured, if its code could be patched.
    pub(super) fn add(&self, function: MeasuredFunction, patched: bool) {
        if let Ok(mut known) = self.known.lock() {
            known.push((function, patched));
        }
        self.any.store(true, Ordering::Relaxed);
    }

    /// A module goes away: its handles may come back as others.
    pub(super) fn forget(&self, gone: impl Fn(&MeasuredFunction) -> bool) {
        if self.any.load(Ordering::Relaxed)
            && let Ok(mut known) = self.known.lock()
        {
            known.retain(|(f, _)| !gone(f));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(module: usize, function: usize) -> MeasuredFunction {
        let function = CUfunction(function as *mut _);
        MeasuredFunction { context: CUcontext(std::ptr::null_mut()), module: module as *mut c_void, function }
    }

    #[test]
    fn a_kernel_is_measured_from_the_launch_after_the_one_that_tells_its_function() {
        // SAFETY: all-zero is an empty list.
        let wanted: MeasureRequests = unsafe { std::mem::zeroed() };
        let demand = Demand::default();
        assert!(!demand.measures(launch(8, 16)));
        assert!(demand.asked(KernelId(3), &wanted).is_none(), "nothing has been requested");
        wanted.add(KernelId(3));
        assert!(!demand.measures(launch(8, 32)));
        assert!(demand.asked(KernelId(4), &wanted).is_none(), "another kernel");
        assert!(!demand.measures(launch(8, 16)));
        let function = demand.asked(KernelId(3), &wanted).expect("its function is known now");
        assert!(demand.asked(KernelId(3), &wanted).is_none(), "no launch, no function");
        assert_eq!(demand.patched(&function), None);
        demand.add(function, true);
        assert!(!demand.measures(launch(8, 32)) && demand.measures(launch(8, 16)));
        assert!(demand.asked(KernelId(3), &wanted).is_none());
    }

    #[test]
    fn code_of_executable_graphs_stays_as_it_is() {
        let demand = Demand::default();
        let (one, other) = (8 as *mut c_void, 16 as *mut c_void);
        demand.making(true);
        assert_eq!(demand.holds(other), ModuleHold::Unknown);
        demand.hold(one);
        demand.making(false);
        assert_eq!((demand.holds(one), demand.holds(other)), (ModuleHold::Held, ModuleHold::Free));
        demand.making(false);
        assert_eq!(demand.holds(other), ModuleHold::Free);
        demand.close();
        assert_eq!(demand.holds(other), ModuleHold::Held);
    }

    #[test]
    fn code_that_could_not_be_patched_is_never_measured_and_what_is_gone_is_forgotten() {
        // SAFETY: all-zero is an empty list.
        let wanted: MeasureRequests = unsafe { std::mem::zeroed() };
        wanted.add(KernelId(3));
        let demand = Demand::default();
        assert!(!demand.measures(launch(8, 16)));
        let function = demand.asked(KernelId(3), &wanted).expect("wanted");
        demand.add(function, false);
        assert!(!demand.measures(launch(8, 16)), "not patched");
        assert!(demand.asked(KernelId(3), &wanted).is_none(), "not tried again");
        assert_eq!(demand.patched(&function), Some(false));
        demand.forget(|f| f.module == 8 as *mut c_void);
        assert!(!demand.measures(launch(8, 16)), "another function by the same handle");
        assert!(demand.asked(KernelId(3), &wanted).is_some());
    }
}
