//! The id of a context, and the definition of its device.
//!
//! Owns asking the driver about contexts that were made before the shim was there. What follows
//! from a context's end is decided by `order`.

use cuda_sys::*;
use trace::{ContextId, NoteKind, Op};

use super::recall::recall;
use crate::ids::destroyed::handle_destroyed;
use crate::observe::Cx;
use crate::real::driver::real;
use crate::runtime::cycles::{self, Part};
use crate::runtime::handle_cache::{self, Remembered};

/// The current context of this thread; null when there is none.
pub fn current_context() -> CUcontext {
    let mut context = CUcontext::NULL;
    let _ = cycles::of(Part::Context, || real!(cuCtxGetCurrent(&raw mut context => *mut CUcontext)));
    context
}

/// The id of a context, defining it when it is new.
pub fn context_id(cx: &mut Cx<'_>, handle: CUcontext) -> ContextId {
    context_on(cx, handle, None)
}

/// The id of a context on a device that the caller knows.
#[unsafe(link_section = "streamsan_hot")]
pub fn context_on(cx: &mut Cx<'_>, handle: CUcontext, device: Option<CUdevice>) -> ContextId {
    let Some(core) = cx.core() else { return ContextId::NONE };
    if handle == CUcontext::NULL {
        return ContextId::NONE;
    }
    let key = handle.0 as u64;
    let known = recall(|l| &l.contexts, Remembered::Contexts, key, || core.handles.contexts.get(&key).map(|id| id.0));
    if let Some(id) = known {
        return ContextId(id);
    }
    let device = device.unwrap_or_else(|| {
        let mut device: CUdevice = 0;
        let _ = real!(cuCtxGetDevice(&raw mut device => *mut CUdevice));
        device
    });
    device_of(cx, device);
    let mut made = None;
    let id = *core.handles.contexts.entry(key).or_insert_with(|| {
        let id = ContextId(core.handles.next.context.take());
        made = Some(id);
        id
    });
    if made.is_some() {
        cx.log(&Op::ContextCreate { context: id, device: device as u32, handle: key });
        // CU_CTX_SYNC_MEMOPS, when it was set before the context was seen.
        let mut flags = 0_u32;
        let current =
            current_context() == handle && real!(cuCtxGetFlags(&raw mut flags => *mut u32)) == CUresult::SUCCESS;
        if current && flags & CU_CTX_SYNC_MEMOPS != 0 {
            cx.log(&Op::ContextSyncMemops { context: id, on: true });
        }
    }
    id
}

/// Another handle of a context that is known.
pub fn same_context(cx: &mut Cx<'_>, known: CUcontext, other: CUcontext) {
    let id = context_id(cx, known);
    if let Some(core) = cx.core() {
        let key = other.0 as u64;
        core.handles.contexts.insert(key, id);
        handle_cache::invalidate(Remembered::Contexts, key);
    }
}

fn device_of(cx: &mut Cx<'_>, device: CUdevice) {
    let Some(core) = cx.core() else { return };
    if core.handles.devices.insert(device as u32, ()).is_some() {
        return;
    }
    let attribute = |which: CUdevice_attribute| {
        let mut value: i32 = 0;
        let _ = real!(cuDeviceGetAttribute(
            &raw mut value => *mut i32, which => CUdevice_attribute, device => CUdevice
        ));
        value.max(0) as u32
    };
    let arch = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10
        + attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    let mut name = [0_u8; 128];
    let _ = real!(cuDeviceGetName(name.as_mut_ptr() => *mut u8, 127 => i32, device => CUdevice));
    let len = name.iter().position(|b| *b == 0).unwrap_or(0);
    cx.define(&Op::Device { ordinal: device as u32, arch, name: trace::codec::Text(&name[..len]) });
    let mut uuid = [0_u8; 16];
    let found = real!(cuDeviceGetUuid_v2(uuid.as_mut_ptr().cast() => *mut CUuuid, device => CUdevice));
    if found == CUresult::SUCCESS && uuid != [0; 16] {
        let [first, second] = [0, 8].map(|at| u64::from_le_bytes(uuid[at..at + 8].try_into().unwrap_or_default()));
        cx.define(&Op::DeviceUuid { ordinal: device as u32, first, second });
    }
    if attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0 {
        cx.define(&Op::Note { kind: NoteKind::Info, text: trace::SYSTEM_MEMORY.into(), count: 1 });
    }
}

/// A context goes away: its handles may come back as others. Before the call nothing is
/// forgotten; after it, `handle` does not matter.
pub fn forget_context(cx: &mut Cx<'_>, handle: CUcontext) -> Option<ContextId> {
    let core = cx.core()?;
    let id = ContextId(handle_destroyed(cx, |handles| &handles.contexts, handle.0 as u64, |context| context.0)?);
    let of_it = |other: &ContextId| *other == id;
    let mut keys: Vec<u64> = vec![handle.0 as u64];
    keys.extend(core.handles.contexts.iter().filter(|entry| of_it(entry.value())).map(|entry| *entry.key()));
    core.handles.contexts.retain(|_, other| !of_it(other));
    core.handles.legacy.retain(|key, _| !keys.contains(key));
    core.handles.per_thread.retain(|(context, _), _| !keys.contains(context));
    handle_cache::invalidate_all();
    Some(id)
}
