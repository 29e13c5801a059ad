//! The functions of the graph interface: descriptors, the one engine, plans, and running them.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use cuda_sys::{CUresult, CUstream};

use super::attributes::{Descriptor, Slot};
use super::graph::{Graph, Launch, TENSORS};
use super::handle::DnnHandle;
use super::{BAD_PARAM, DESCRIPTOR_TYPE, EXECUTION_FAILED, NOT_FINALIZED, NOT_SUPPORTED, NULL_POINTER, Res};
use super::{not_simulated, status};
use crate::model::launch;

/// Kinds of descriptors, and attributes.
mod number {
    use std::ffi::c_int;
    pub(super) const ENGINE: c_int = 2;
    pub(super) const CONFIGURATION: c_int = 3;
    pub(super) const HEURISTICS: c_int = 4;
    pub(super) const PLAN: c_int = 5;
    pub(super) const OPERATIONS: c_int = 15;
    pub(super) const VARIANT: c_int = 16;
    /// Of the last kind that is known.
    pub(super) const LAST: c_int = 41;
    pub(super) const HEURISTICS_GRAPH: c_int = 201;
    pub(super) const HEURISTICS_RESULTS: c_int = 202;
    pub(super) const CONFIGURATION_ENGINE: c_int = 300;
    pub(super) const CONFIGURATION_WORKSPACE: c_int = 303;
    pub(super) const PLAN_CONFIGURATION: c_int = 401;
    pub(super) const PLAN_WORKSPACE: c_int = 402;
    pub(super) const GRAPH_OPERATIONS: c_int = 801;
    pub(super) const GRAPH_ENGINES: c_int = 802;
    pub(super) const VARIANT_IDS: c_int = 1000;
    pub(super) const VARIANT_POINTERS: c_int = 1001;
    pub(super) const ENGINE_GRAPH: c_int = 1300;
    pub(super) const ENGINE_INDEX: c_int = 1301;
}

impl Descriptor {
    /// Says that nothing more will be set, and finds out what it means.
    fn finalize(&mut self) -> Res<()> {
        match self.kind {
            number::OPERATIONS => {
                let operations = self.descriptors(number::GRAPH_OPERATIONS);
                if operations.is_empty() {
                    return Err(BAD_PARAM);
                }
                let graph = Graph::new(operations.iter().map(|operation| &**operation))?;
                // Launches of it may be captured, and run when all descriptors are gone.
                self.graph = Some(Box::leak(Box::new(graph)));
                self.put_ints(number::GRAPH_ENGINES, &[1]);
            }
            number::HEURISTICS => {
                self.graph = self.descriptor(number::HEURISTICS_GRAPH)?.graph;
                let mut engine = Descriptor::new(number::ENGINE);
                let graph = self.descriptors(number::HEURISTICS_GRAPH).to_vec();
                engine.put_descriptors(number::ENGINE_GRAPH, graph);
                engine.put_ints(number::ENGINE_INDEX, &[0]);
                engine.finalize()?;
                let mut configuration = Descriptor::new(number::CONFIGURATION);
                configuration.put_descriptors(number::CONFIGURATION_ENGINE, vec![Arc::new(engine)]);
                configuration.finalize()?;
                self.put_descriptors(number::HEURISTICS_RESULTS, vec![Arc::new(configuration)]);
            }
            number::ENGINE => {
                // There is one, of number 0.
                if self.ints(number::ENGINE_INDEX).first().is_some_and(|index| *index != 0) {
                    return Err(NOT_SUPPORTED);
                }
                self.graph = self.descriptor(number::ENGINE_GRAPH)?.graph;
            }
            number::CONFIGURATION => {
                self.graph = self.descriptor(number::CONFIGURATION_ENGINE)?.graph;
                self.put_ints(number::CONFIGURATION_WORKSPACE, &[0]);
            }
            number::PLAN => {
                let Ok(configuration) = self.descriptor(number::PLAN_CONFIGURATION) else {
                    return Err(not_simulated("a plan that is no configuration's"));
                };
                self.graph = configuration.graph;
                self.put_ints(number::PLAN_WORKSPACE, &[0]);
            }
            // What others mean is asked by those that refer to them.
            _ => {}
        }
        self.finalized = true;
        Ok(())
    }
}

/// # Safety
/// `to` is writable, or null.
// SAFETY: the library's name and signature.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnBackendCreateDescriptor(kind: c_int, to: *mut *mut Slot) -> c_int {
    if to.is_null() {
        return NULL_POINTER;
    }
    if !(0..=number::LAST).contains(&kind) {
        return not_simulated(&format!("cudnnBackendDescriptorType_t {kind}"));
    }
    let slot = Slot(Arc::new(Descriptor::new(kind)));
    // SAFETY: the caller's promise.
    unsafe { to.write(Box::into_raw(Box::new(slot))) };
    0
}

/// # Safety
/// `slot` is null or came from [`cudnnBackendCreateDescriptor`], and is not used again.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnBackendDestroyDescriptor(slot: *mut Slot) -> c_int {
    if !slot.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(slot) });
    }
    0
}

/// # Safety
/// `slot` is null or came from [`cudnnBackendCreateDescriptor`].
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnBackendInitialize(slot: *mut Slot) -> c_int {
    // SAFETY: the caller's promise.
    let Some(slot) = (unsafe { slot.as_mut() }) else { return NULL_POINTER };
    slot.0 = Arc::new(Descriptor::new(slot.0.kind));
    0
}

/// # Safety
/// `slot` is null or came from [`cudnnBackendCreateDescriptor`].
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnBackendFinalize(slot: *mut Slot) -> c_int {
    // SAFETY: the caller's promise.
    let Some(slot) = (unsafe { slot.as_mut() }) else { return NULL_POINTER };
    status(Arc::make_mut(&mut slot.0).finalize())
}

/// # Safety
/// `slot` is null or came from [`cudnnBackendCreateDescriptor`]; `from` points to so many elements
/// of the type.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnBackendSetAttribute(
    slot: *mut Slot,
    name: c_int,
    kind: c_int,
    count: i64,
    from: *const c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(slot) = (unsafe { slot.as_mut() }) else { return NULL_POINTER };
    if slot.0.finalized {
        return BAD_PARAM;
    }
    // SAFETY: the caller's promise.
    status(unsafe { Arc::make_mut(&mut slot.0).set(name, kind, count, from) })
}

/// # Safety
/// `slot` is null or came from [`cudnnBackendCreateDescriptor`]; the results have room for as many
/// as asked for.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnBackendGetAttribute(
    slot: *const Slot,
    name: c_int,
    kind: c_int,
    room: i64,
    found: *mut i64,
    to: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(slot) = (unsafe { slot.as_ref() }) else { return NULL_POINTER };
    if !slot.0.finalized {
        return NOT_FINALIZED;
    }
    // SAFETY: the caller's promise.
    status(unsafe { slot.0.get(name, kind, room, found, to) })
}

/// # Safety
/// All three are null, or the library's; the pointers of tensors by value are to an element.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnBackendExecute(handle: *const DnnHandle, plan: *const Slot, variant: *const Slot) -> c_int {
    // SAFETY: the caller's promise.
    let given = unsafe { (handle.as_ref(), plan.as_ref(), variant.as_ref()) };
    let (Some(handle), Some(plan), Some(variant)) = given else { return NULL_POINTER };
    // SAFETY: the caller's promise.
    status(unsafe { execute(handle, &plan.0, &variant.0) })
}

/// # Safety
/// The pointers of tensors by value are to an element.
unsafe fn execute(handle: &DnnHandle, plan: &Descriptor, variant: &Descriptor) -> Res<()> {
    if plan.kind != number::PLAN || variant.kind != number::VARIANT {
        return Err(DESCRIPTOR_TYPE);
    }
    if !plan.finalized || !variant.finalized {
        return Err(NOT_FINALIZED);
    }
    let graph = plan.graph.ok_or(BAD_PARAM)?;
    let (ids, pointers) = (variant.ints(number::VARIANT_IDS), variant.addresses(number::VARIANT_POINTERS));
    if ids.len() != pointers.len() {
        return Err(BAD_PARAM);
    }
    let mut at = [0; TENSORS];
    for (index, place) in graph.wanted() {
        let given = ids.iter().zip(&pointers).find(|(id, _)| **id == place.unique);
        let (_, pointer) = given.filter(|(_, pointer)| **pointer != 0).ok_or(NULL_POINTER)?;
        // SAFETY: the caller's promise.
        at[index] = unsafe { graph.argument(index, *pointer) };
    }
    let blocks = graph.blocks(&at);
    match launch::launch(CUstream::from_bits(handle.stream), graph.name, &blocks, &Launch { graph, at }) {
        Ok(()) => Ok(()),
        Err(CUresult::ERROR_NOT_SUPPORTED) => Err(not_simulated("a graph of this size")),
        Err(_) => Err(EXECUTION_FAILED),
    }
}
