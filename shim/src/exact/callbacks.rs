//! What NVIDIA's Sanitizer API calls back for, and the patching of code.
//!
//! Owns the dispatch of callbacks, the life of modules and contexts, and which functions are
//! patched. A callback runs on the program's thread, inside its call, while the driver may hold
//! locks of its own. Launches are in [`super::launch`], graphs in [`super::graph_launch`].

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use cuda_sys::{CU_GRAPH_NODE_TYPE_KERNEL, CUcontext};

use super::demand::{Demand, MeasuredFunction, ModuleHold};
use super::readback;
use super::sanitizer_api::{self, ContextData, GraphData, LaunchData, ModuleData, NodeData, domain, event};
use super::state::{DRAINING, Exact, PENDING, fail, note, running};
use super::table_pool::within;
use crate::handles::captures;
use crate::log::start::core;
use crate::runtime::lifecycle;

/// What the API calls while the driver works: on the program's threads, inside its calls.
pub(super) unsafe extern "C" fn callback(_user: *mut c_void, domain: u32, event: u32, data: *const c_void) {
    let Some(exact) = running() else { return };
    let run = AssertUnwindSafe(|| match (domain, event) {
        (domain::RESOURCE, event::MODULE_LOADED) => {
            // SAFETY: the API passes this structure with this id.
            exact.loaded(unsafe { &*data.cast::<ModuleData>() });
        }
        (domain::RESOURCE, event::MODULE_UNLOAD) => {
            // SAFETY: as above.
            exact.unloaded(unsafe { &*data.cast::<ModuleData>() });
        }
        (domain::RESOURCE, event::CONTEXT_DESTROY) => {
            // SAFETY: as above.
            exact.forget(unsafe { &*data.cast::<ContextData>() }.context);
        }
        (domain::LAUNCH, event::LAUNCH_BEGIN) => {
            // SAFETY: as above.
            exact.launching(unsafe { &*data.cast::<LaunchData>() });
        }
        (domain::LAUNCH, event::LAUNCH_SET_UP) => {
            // SAFETY: as above.
            exact.set_up(unsafe { &*data.cast::<LaunchData>() });
        }
        (domain::GRAPHS, event::EXEC_CREATING) => exact.graph_made(true),
        (domain::GRAPHS, event::EXEC_CREATED) => exact.graph_made(false),
        (domain::GRAPHS, event::NODE_LAUNCH_BEGIN) => {
            // SAFETY: as above; only the fields before the union are looked at yet.
            let kind = unsafe { (*data.cast::<NodeData>()).kind };
            if kind == CU_GRAPH_NODE_TYPE_KERNEL.0 {
                // SAFETY: as above; of a kernel node the launch is there.
                exact.launching_node(unsafe { &*data.cast::<NodeData>() });
            }
        }
        (domain::GRAPHS, event::GRAPH_LAUNCH_BEGIN) => {
            // SAFETY: as above.
            exact.graph_begins(unsafe { &*data.cast::<GraphData>() });
        }
        _ => {}
    });
    let _ = catch_unwind(run);
}

impl Exact {
    /// A module is being loaded: patched at once, unless kernels are measured on demand only.
    fn loaded(&self, module: &ModuleData) {
        if self.pattern.is_none() {
            return;
        }
        let patched = !lifecycle::is_off() && self.patch(module.context, module.module);
        if !patched && let Ok(mut refused) = self.refused.lock() {
            refused.push(module.module);
        }
    }

    pub(super) fn is_refused(&self, module: *mut c_void) -> bool {
        self.refused.lock().map_or(true, |refused| refused.contains(&module))
    }

    fn unloaded(&self, module: &ModuleData) {
        if let Ok(mut refused) = self.refused.lock() {
            refused.retain(|m| *m != module.module);
        }
        self.forget_functions(|f| f.module == module.module);
    }

    /// Functions go away: their handles may come back as others.
    fn forget_functions(&self, gone: impl Fn(&MeasuredFunction) -> bool) {
        if let Some(demand) = &self.demand {
            demand.forget(&gone);
        }
        if let Some(settled) = &self.settled {
            settled.forget(&gone);
        }
    }

    /// Patches a module. False: it runs as it did.
    fn patch(&self, context: CUcontext, module: *mut c_void) -> bool {
        let Ok(mut patched) = self.patched.lock() else { return false };
        if !patched.contains(&context) {
            // SAFETY: the image is a fatbin that lives as long as the process.
            let answer = unsafe { (self.api.add_patches)(self.image.as_ptr().cast(), context) };
            if answer != 0 {
                fail(format_args!("no exact mode: sanitizerAddPatches answered {answer}"));
                return false;
            }
            patched.push(context);
        }
        let mut answer = 0;
        for (instruction, function) in sanitizer_api::PATCHES {
            // SAFETY: the module is loaded; the names are those of our patches.
            answer |= unsafe { (self.api.patch_instructions)(instruction, module, function.as_ptr()) };
        }
        // SAFETY: as above.
        answer |= unsafe { (self.api.patch_module)(module) };
        if answer != 0 {
            note("code that could not be patched", 1);
        }
        answer == 0
    }

    /// A function that the analyzer wants measured: its module is patched, if it is not yet.
    #[cold]
    pub(super) fn begin(&self, demand: &Demand, function: MeasuredFunction) {
        // While a stream is captured most calls of ours would break the capture: asked again at the
        // next launch.
        if lifecycle::is_off() || captures::any() {
            return;
        }
        let known =
            if self.pattern.is_some() { Some(!self.is_refused(function.module)) } else { demand.patched(&function) };
        match demand.holds(function.module) {
            _ if known.is_some() => {}
            ModuleHold::Free => {}
            ModuleHold::Unknown => return,
            ModuleHold::Held => {
                note("exact ranges of kernels in doubt that are part of executable graphs", 1);
                return demand.add(function, false);
            }
        }
        let patched = known.unwrap_or_else(|| {
            let before = DRAINING.replace(true);
            let patched = within(function.context, || self.patch(function.context, function.module));
            DRAINING.set(before);
            patched == Some(true)
        });
        demand.add(function, patched);
    }

    /// A context goes away, and its tables with it.
    fn forget(&self, context: CUcontext) {
        let Ok(mut patched) = self.patched.lock() else { return };
        patched.retain(|c| *c != context);
        drop(patched);
        self.forget_functions(|f| f.context == context);
        let Ok(mut pool) = self.pool.lock() else { return };
        let lost = pool.forget(context);
        drop(pool);
        PENDING.fetch_sub(lost.len() as u32, Ordering::Relaxed);
        if let Some(core) = core() {
            lost.iter().for_each(|table| readback::log_lost(core, table));
        }
    }
}
