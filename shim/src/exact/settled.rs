//! Which launches exact mode leaves out: those whose every byte follows from their code, so that
//! measuring would only repeat what the analyzer knows.
//!
//! Owns the way from the analyzer's verdict on a class of launches (kernel, grid and block) to the
//! driver's function. The callback of a launch leaves function and shape here; the hook behind the
//! launch knows the kernel. The analyzer may change its mind: when a launch of such a class turns
//! out not to follow from its code, those after it are measured again.

use std::cell::Cell;
use std::collections::HashMap;

use super::demand::MeasuredFunction;
use super::sanitizer_api::LaunchData;
use crate::runtime::lock::Lock;

thread_local! {
    /// What the driver is launching on this thread, and whether that is left out.
    static LAST: Cell<Option<(MeasuredFunction, GridAndBlock, bool)>> = const { Cell::new(None) };
}

/// Grid and block of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct GridAndBlock([u32; 6]);

impl GridAndBlock {
    /// Of a launch.
    pub(super) fn of(launch: &LaunchData) -> Self {
        Self(std::array::from_fn(|i| launch.shape[i]))
    }

    /// Of these numbers of blocks and threads.
    pub(super) fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self(std::array::from_fn(|i| if i < 3 { grid[i] } else { block[i - 3] }))
    }
}

/// Launches that are left out: functions by their handles, each with its shapes.
pub(super) struct SettledLaunches(Lock<HashMap<(usize, GridAndBlock), MeasuredFunction>>);

impl Default for SettledLaunches {
    fn default() -> Self {
        Self(Lock::new(HashMap::new()))
    }
}

// SAFETY: handles of the driver, valid on every thread.
unsafe impl Send for SettledLaunches {}
// SAFETY: all of it is in the lock.
unsafe impl Sync for SettledLaunches {}

impl SettledLaunches {
    /// In the callback of a launch: whether it is left out.
    pub(super) fn has(&self, function: MeasuredFunction, shape: GridAndBlock) -> bool {
        let key = (function.function.0 as usize, shape);
        let has = self.0.lock().is_ok_and(|known| known.get(&key) == Some(&function));
        LAST.set(Some((function, shape, has)));
        has
    }

    /// Behind that launch: whether its class is settled.
    #[inline]
    pub(super) fn follow(&self, settled: bool) {
        if let Some((function, shape, has)) = LAST.take()
            && has != settled
        {
            self.change(function, shape, settled);
        }
    }

    /// From now on such launches are left out, or are not.
    #[cold]
    pub(super) fn change(&self, function: MeasuredFunction, shape: GridAndBlock, settled: bool) {
        let Ok(mut known) = self.0.lock() else { return };
        let key = (function.function.0 as usize, shape);
        if settled {
            known.insert(key, function);
        } else {
            known.remove(&key);
        }
    }

    /// Modules and contexts that go away take their functions with them.
    pub(super) fn forget(&self, gone: impl Fn(&MeasuredFunction) -> bool) {
        if let Ok(mut known) = self.0.lock() {
            known.retain(|_, f| !gone(f));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::c_void;

    fn of(module: usize, function: usize) -> MeasuredFunction {
        let (context, function) = (cuda_sys::CUcontext::NULL, cuda_sys::CUfunction(function as *mut c_void));
        MeasuredFunction { context, module: module as *mut c_void, function }
    }

    #[test]
    fn a_kernel_is_left_out_while_it_is_settled() {
        let known = SettledLaunches::default();
        let one = GridAndBlock::new([1; 3], [32, 1, 1]);
        assert!(!known.has(of(8, 16), one));
        known.follow(false);
        assert!(!known.has(of(8, 16), one));
        known.follow(true);
        assert!(known.has(of(8, 16), one) && !known.has(of(8, 32), one) && !known.has(of(24, 16), one));
        let larger = GridAndBlock::new([2, 1, 1], [32, 1, 1]);
        assert!(!known.has(of(8, 16), larger), "another shape");
        assert!(known.has(of(8, 16), one));
        known.follow(false);
        assert!(!known.has(of(8, 16), one), "the analyzer has changed its mind");
        known.follow(true);
        known.forget(|f| f.module == 8 as *mut c_void);
        assert!(!known.has(of(8, 16), one), "another function by the same handle");
        // Without a launch there is nothing to follow.
        known.follow(false);
        known.follow(true);
        assert!(!known.has(of(8, 16), one));
    }
}
