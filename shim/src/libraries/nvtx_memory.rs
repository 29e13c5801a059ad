//! NVTX's memory annotations (`nvToolsExtMem.h`): the regions that a program's own pool hands out,
//! each with its stack, lifetime and name.
//!
//! Owns the functions of NVTX's extension for memory ([`super::nvtx_extensions`] offers them).
//! Taken are registering, resizing, naming and ending of regions, and resetting and ending of
//! heaps. Permissions are not: they say what may be touched, not when. Only virtual
//! addresses in heaps that are suballocators count: other heaps describe a layout, in which nothing
//! is ever handed out.
//!
//! A region's handle is its address, so nothing has to be looked up; a heap's is a small number.
//! Layouts and numbers are those of the header with compatibility number 0x0102; a header with
//! another one finds no tool, as without us.

use std::ffi::{CStr, c_char, c_void};

use trace::codec::Text;
use trace::{FreeKind, Op, StreamId};

use crate::handles::tables::NvtxHeap;
use crate::log::call_names::NVTX_REGIONS;
use crate::observe::{Cx, Phase, observe};
use crate::runtime::lifecycle;

/// The extension that is taken: its number and the version of its structures.
pub(super) const MEMORY: (u16, u16) = (1, 0x0102);
/// `NVTX_MEM_TYPE_VIRTUAL_ADDRESS`.
const VIRTUAL: u32 = 1;
/// `NVTX_MEM_HEAP_USAGE_TYPE_LAYOUT`.
const LAYOUT: u32 = 2;
/// Longest name that is kept, in bytes.
const MAX_NAME: usize = 200;

/// `nvtxMessageValue_t`: a pointer, whatever it points to.
type Message = *const c_void;

#[repr(C)]
struct HeapDesc {
    compat: u16,
    size: u16,
    reserved: u32,
    usage: u32,
    memory_type: u32,
    specific_size: usize,
    specific: *const c_void,
    category: u32,
    message_type: u32,
    message: Message,
}

#[repr(C)]
struct RangeDesc {
    size: usize,
    ptr: u64,
}

#[repr(C)]
struct RegisterBatch {
    compat: u16,
    size: u16,
    region_type: u32,
    heap: u64,
    count: usize,
    stride: usize,
    elements: *const u8,
    handles: *mut u64,
}

#[repr(C)]
struct ResizeBatch {
    compat: u16,
    size: u16,
    region_type: u32,
    count: usize,
    stride: usize,
    elements: *const u8,
}

#[repr(C)]
struct UnregisterBatch {
    compat: u16,
    size: u16,
    ref_type: u32,
    count: usize,
    stride: usize,
    elements: *const u8,
}

#[repr(C)]
struct NameDesc {
    ref_type: u32,
    name_type: u32,
    region: u64,
    name: Message,
}

#[repr(C)]
struct NameBatch {
    compat: u16,
    size: u16,
    reserved: u32,
    count: usize,
    stride: usize,
    elements: *const u8,
}

/// The elements of a batch, which may be longer than what is known of them.
///
/// # Safety
/// `elements` points to `count` elements of `stride` bytes each, which begin with a `T`.
unsafe fn elements<'a, T: 'a>(elements: *const u8, count: usize, stride: usize) -> impl Iterator<Item = &'a T> {
    let fits = !elements.is_null() && stride >= size_of::<T>() && elements.addr().is_multiple_of(align_of::<T>());
    let count = if fits && stride.is_multiple_of(align_of::<T>()) { count } else { 0 };
    // SAFETY: the caller's promise; null, short and odd elements were turned away.
    (0..count).map(move |index| unsafe { &*elements.add(index * stride).cast::<T>() })
}

/// The text of a message.
///
/// # Safety
/// `message` is a message of this type.
unsafe fn text(kind: u32, message: Message) -> Vec<u8> {
    const ASCII: u32 = 1;
    const UNICODE: u32 = 2;
    let mut name = Vec::new();
    match kind {
        _ if message.is_null() => {}
        // SAFETY: a C string.
        ASCII => name.extend_from_slice(unsafe { CStr::from_ptr(message.cast::<c_char>()) }.to_bytes()),
        UNICODE => {
            // SAFETY: ends with a zero; reading stops there.
            let wide = (0..MAX_NAME).map(|at| unsafe { *message.cast::<u32>().add(at) }).take_while(|c| *c != 0);
            let read: String = wide.map(|c| char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
            name.extend_from_slice(read.as_bytes());
        }
        // Registered strings: their registration is not intercepted.
        _ => {}
    }
    name.truncate(MAX_NAME);
    name
}

fn begin_region(cx: &mut Cx<'_>, heap: u64, ptr: u64, size: u64) {
    let Some(core) = cx.core() else { return };
    let name = core.handles.heaps.get(&heap).map(|heap| heap.name.clone()).unwrap_or_default();
    core.handles.regions.insert(ptr, heap);
    cx.log_block(ptr, size, StreamId::NONE);
    if !name.is_empty() {
        cx.define(&Op::MemoryName { ptr, name: Text(b""), heap: Text(&name) });
    }
}

fn end_region(cx: &mut Cx<'_>, ptr: u64) {
    if cx.core().is_some_and(|core| core.handles.regions.remove(&ptr).is_some()) {
        cx.log(&Op::Free { ptr, kind: FreeKind::Block, stream: StreamId::NONE });
    }
}

fn end_regions_of(cx: &mut Cx<'_>, heap: u64) {
    let Some(core) = cx.core() else { return };
    let theirs: Vec<u64> = core.handles.regions.iter().filter(|r| *r.value() == heap).map(|r| *r.key()).collect();
    theirs.into_iter().for_each(|ptr| end_region(cx, ptr));
}

/// Notes an annotation, once CUDA is in use.
fn note(op: impl FnOnce(&mut Cx<'_>)) {
    if lifecycle::is_running() {
        observe(NVTX_REGIONS, 0, Phase::Before, op);
    }
}

/// # Safety
/// Called by NVTX with a description or null.
unsafe extern "C" fn heap_register(_domain: *mut c_void, desc: *const HeapDesc) -> u64 {
    // SAFETY: as the caller promises.
    let Some(desc) = (unsafe { desc.as_ref() }).filter(|d| usize::from(d.size) >= size_of::<HeapDesc>()) else {
        return 0;
    };
    // SAFETY: the message is of the type beside it.
    let name = unsafe { text(desc.message_type, desc.message) }.into();
    let heap = NvtxHeap { is_layout: desc.usage & LAYOUT != 0, name };
    let mut handle = 0;
    note(|cx| {
        if let Some(core) = cx.core() {
            handle = u64::from(core.handles.fresh());
            core.handles.heaps.insert(handle, heap);
        }
    });
    handle
}

extern "C" fn heap_unregister(_domain: *mut c_void, heap: u64) {
    note(|cx| {
        end_regions_of(cx, heap);
        if let Some(core) = cx.core() {
            core.handles.heaps.remove(&heap);
        }
    });
}

extern "C" fn heap_reset(_domain: *mut c_void, heap: u64) {
    note(|cx| end_regions_of(cx, heap));
}

/// # Safety
/// Called by NVTX with a description or null.
unsafe extern "C" fn regions_register(_domain: *mut c_void, batch: *const RegisterBatch) {
    // SAFETY: as the caller promises.
    let Some(batch) = (unsafe { batch.as_ref() }).filter(|b| b.region_type == VIRTUAL) else { return };
    let layout = |cx: &mut Cx<'_>| {
        let heap = cx.core().and_then(|core| core.handles.heaps.get(&batch.heap).map(|heap| heap.is_layout));
        heap.unwrap_or(false)
    };
    note(|cx| {
        if layout(cx) {
            return;
        }
        // SAFETY: NVTX's contract: the array is as long as the batch says.
        for range in unsafe { elements::<RangeDesc>(batch.elements, batch.count, batch.stride) } {
            if range.ptr != 0 && range.size != 0 {
                begin_region(cx, batch.heap, range.ptr, range.size as u64);
            }
        }
    });
    if !batch.handles.is_null() {
        // SAFETY: as above.
        for (index, range) in unsafe { elements::<RangeDesc>(batch.elements, batch.count, batch.stride) }.enumerate() {
            // SAFETY: as many handles as regions.
            unsafe { *batch.handles.add(index) = range.ptr };
        }
    }
}

/// # Safety
/// Called by NVTX with a description or null.
unsafe extern "C" fn regions_resize(_domain: *mut c_void, batch: *const ResizeBatch) {
    // SAFETY: as the caller promises.
    let Some(batch) = (unsafe { batch.as_ref() }).filter(|b| b.region_type == VIRTUAL) else { return };
    note(|cx| {
        // SAFETY: NVTX's contract: the array is as long as the batch says.
        for range in unsafe { elements::<RangeDesc>(batch.elements, batch.count, batch.stride) } {
            let heap = cx.core().and_then(|core| core.handles.regions.get(&range.ptr).map(|heap| *heap));
            if let Some(heap) = heap.filter(|_| range.size != 0) {
                end_region(cx, range.ptr);
                begin_region(cx, heap, range.ptr, range.size as u64);
            }
        }
    });
}

/// # Safety
/// Called by NVTX with a description or null.
unsafe extern "C" fn regions_unregister(_domain: *mut c_void, batch: *const UnregisterBatch) {
    // SAFETY: as the caller promises. References by address and by handle are the same here.
    let Some(batch) = (unsafe { batch.as_ref() }) else { return };
    note(|cx| {
        // SAFETY: NVTX's contract: the array is as long as the batch says.
        for ptr in unsafe { elements::<u64>(batch.elements, batch.count, batch.stride) } {
            end_region(cx, *ptr);
        }
    });
}

/// # Safety
/// Called by NVTX with a description or null.
unsafe extern "C" fn regions_name(_domain: *mut c_void, batch: *const NameBatch) {
    // SAFETY: as the caller promises.
    let Some(batch) = (unsafe { batch.as_ref() }) else { return };
    note(|cx| {
        let Some(core) = cx.core() else { return };
        // SAFETY: NVTX's contract: the array is as long as the batch says.
        for region in unsafe { elements::<NameDesc>(batch.elements, batch.count, batch.stride) } {
            // A name for memory that is no region of a heap stays: any allocation may have one.
            let heap = core.handles.regions.get(&region.region).map(|heap| *heap);
            let heap = heap.and_then(|heap| core.handles.heaps.get(&heap).map(|heap| heap.name.clone()));
            // SAFETY: the name is of the type beside it.
            let name = unsafe { text(region.name_type, region.name) };
            if !name.is_empty() {
                let heap = heap.unwrap_or_default();
                cx.define(&Op::MemoryName { ptr: region.region, name: Text(&name), heap: Text(&heap) });
            }
        }
    });
}

/// NVTX's functions for regions of memory, by their numbers.
pub(super) fn functions() -> [*const c_void; 7] {
    [
        heap_register as *const c_void,
        heap_unregister as *const c_void,
        heap_reset as *const c_void,
        regions_register as *const c_void,
        regions_resize as *const c_void,
        regions_unregister as *const c_void,
        regions_name as *const c_void,
    ]
}
