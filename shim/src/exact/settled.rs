//! Which launches exact mode leaves out: those of kernels whose code tells every byte, says the analyzer, so that measuring would only repeat it.
//!
//! Owns the way from the analyzer's word for a kernel to the driver's function. The callback of a launch leaves the function here, the
//! hook behind the launch knows the kernel. The analyzer may change its mind: when a launch of such a kernel turns out not to be told by its
//! code, the kernel is measured again from the launch after it on.

use std::cell::Cell;
use std::collections::HashMap;

use super::demand::Function;
use super::sanitizer::LaunchData;
use crate::process::lock::Lock;

thread_local! {
    /// What the driver is launching on this thread, and whether that is left out.
    static LAST: Cell<Option<(Function, bool)>> = const { Cell::new(None) };
}

/// Functions that are left out.
pub struct Known(Lock<HashMap<usize, Function>>);

impl Default for Known {
    fn default() -> Self {
        Self(Lock::new(HashMap::new()))
    }
}

// SAFETY: handles of the driver, valid on every thread.
unsafe impl Send for Known {}
// SAFETY: all of it is in the lock.
unsafe impl Sync for Known {}

impl Known {
    /// In the callback of a launch: whether it is left out.
    pub fn has(&self, launch: &LaunchData) -> bool {
        let function = Function::of(launch);
        let has = self.0.lock().is_ok_and(|known| known.get(&(function.function.0 as usize)) == Some(&function));
        LAST.set(Some((function, has)));
        has
    }

    /// Behind that launch: whether its kernel is settled.
    #[inline]
    pub fn follow(&self, settled: bool) {
        if let Some((function, has)) = LAST.take()
            && has != settled
        {
            self.change(function, settled);
        }
    }

    #[cold]
    fn change(&self, function: Function, settled: bool) {
        let Ok(mut known) = self.0.lock() else { return };
        if settled {
            known.insert(function.function.0 as usize, function);
        } else {
            known.remove(&(function.function.0 as usize));
        }
    }

    /// Modules and contexts that go away take their functions with them.
    pub fn forget(&self, gone: impl Fn(&Function) -> bool) {
        if let Ok(mut known) = self.0.lock() {
            known.retain(|_, f| !gone(f));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::c_void;

    fn launch(module: usize, function: usize) -> LaunchData {
        // SAFETY: all-zero is a valid value of every field.
        let mut data: LaunchData = unsafe { std::mem::zeroed() };
        (data.module, data.function) = (module as *mut c_void, cuda_sys::CUfunction(function as *mut c_void));
        data
    }

    #[test]
    fn a_kernel_is_left_out_while_it_is_settled() {
        let known = Known::default();
        assert!(!known.has(&launch(8, 16)));
        known.follow(false);
        assert!(!known.has(&launch(8, 16)));
        known.follow(true);
        assert!(known.has(&launch(8, 16)) && !known.has(&launch(8, 32)) && !known.has(&launch(24, 16)));
        assert!(known.has(&launch(8, 16)));
        known.follow(false);
        assert!(!known.has(&launch(8, 16)), "the analyzer has changed its mind");
        known.follow(true);
        known.forget(|f| f.module == 8 as *mut c_void);
        assert!(!known.has(&launch(8, 16)), "another function by the same handle");
        // Without a launch there is nothing to follow.
        known.follow(false);
        known.follow(true);
        assert!(!known.has(&launch(8, 16)));
    }
}
