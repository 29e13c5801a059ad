//! Tensor maps: what the driver makes them of.
//!
//! Owns the calls that encode a map, or replace its address. The bytes that the driver makes are
//! opaque (CUDA driver API, "Tensor Map Object Management"), so they are told together with the
//! arguments. What a kernel does with a map is the analyzer's.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use cuda_sys::*;
use trace::MapCopies;

use crate::handles::tensor_maps::{SIZE, TensorMap, TensorMaps};
use crate::observe::Cx;

/// Bits of an element in global memory (CUDA driver API, `CUtensorMapDataType`); 0: a type that is
/// not known.
fn bits_of(kind: CUtensorMapDataType) -> u32 {
    match kind {
        CU_TENSOR_MAP_DATA_TYPE_UINT8 => 8,
        CU_TENSOR_MAP_DATA_TYPE_UINT16 | CU_TENSOR_MAP_DATA_TYPE_FLOAT16 | CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 => 16,
        CU_TENSOR_MAP_DATA_TYPE_UINT32
        | CU_TENSOR_MAP_DATA_TYPE_INT32
        | CU_TENSOR_MAP_DATA_TYPE_FLOAT32
        | CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ
        | CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
        | CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ => 32,
        CU_TENSOR_MAP_DATA_TYPE_UINT64 | CU_TENSOR_MAP_DATA_TYPE_INT64 | CU_TENSOR_MAP_DATA_TYPE_FLOAT64 => 64,
        CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B | CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B => 4,
        CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B => 6,
        _ => 0,
    }
}

/// The arguments that all encoding calls have.
struct Arguments {
    map: *mut CUtensorMap,
    kind: CUtensorMapDataType,
    rank: u32,
    address: *mut c_void,
    sizes: *const u64,
    strides: *const u64,
    /// Null for images.
    extent: *const u32,
    step: *const u32,
    interleave: CUtensorMapInterleave,
}

/// The first numbers of a list.
///
/// # Safety
///
/// A list of so many numbers, or null.
unsafe fn list<T: Copy>(from: *const T, count: usize) -> Vec<T> {
    // SAFETY: the caller says so.
    if from.is_null() { Vec::new() } else { unsafe { std::slice::from_raw_parts(from, count) }.to_vec() }
}

/// # Safety
///
/// Arguments of an encoding call that succeeded.
unsafe fn encoded(cx: &mut Cx<'_>, call: &Arguments, copies: MapCopies) {
    let rank = call.rank as usize;
    let bits = bits_of(call.kind);
    if !(1..=5).contains(&rank) || bits == 0 || call.map.is_null() {
        return cx.not_modelled();
    }
    // Along the first axis every element is copied (cuda.h, `elementStrides`).
    // SAFETY: the call succeeded: it has read so many numbers of each list.
    let (sizes, strides, extent, mut step) = unsafe {
        let (sizes, strides) = (list(call.sizes, rank), list(call.strides, rank - 1));
        (sizes, strides, list(call.extent, rank), list(call.step, rank))
    };
    let copies = if call.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE { copies } else { MapCopies::Interleaved };
    if let Some(first) = step.first_mut() {
        *first = 1;
    }
    // SAFETY: the call has written the map.
    let bytes = unsafe { *call.map.cast::<[u8; SIZE]>() };
    let address = call.address as u64;
    tell(cx, Arc::new(TensorMap { bytes, address, bits, copies, sizes, strides, extent, step }));
}

fn tell(cx: &mut Cx<'_>, map: Arc<TensorMap>) {
    let Some(core) = cx.core() else { return };
    if core.handles.tensor_maps.put(Arc::clone(&map)) {
        cx.log(&map.op());
    }
}

pub(crate) unsafe fn cuTensorMapEncodeTiled(
    cx: &mut Cx<'_>,
    map: *mut CUtensorMap,
    kind: CUtensorMapDataType,
    rank: u32,
    address: *mut c_void,
    sizes: *const u64,
    strides: *const u64,
    extent: *const u32,
    step: *const u32,
    interleave: CUtensorMapInterleave,
    _swizzle: CUtensorMapSwizzle,
    _promotion: CUtensorMapL2promotion,
    _fill: CUtensorMapFloatOOBfill,
) {
    let call = Arguments { map, kind, rank, address, sizes, strides, extent, step, interleave };
    // SAFETY: the program's arguments of a call that succeeded.
    unsafe { encoded(cx, &call, MapCopies::Tiles) }
}

pub(crate) unsafe fn cuTensorMapEncodeIm2col(
    cx: &mut Cx<'_>,
    map: *mut CUtensorMap,
    kind: CUtensorMapDataType,
    rank: u32,
    address: *mut c_void,
    sizes: *const u64,
    strides: *const u64,
    _lower: *const c_int,
    _upper: *const c_int,
    _channels: u32,
    _pixels: u32,
    step: *const u32,
    interleave: CUtensorMapInterleave,
    _swizzle: CUtensorMapSwizzle,
    _promotion: CUtensorMapL2promotion,
    _fill: CUtensorMapFloatOOBfill,
) {
    let extent = std::ptr::null();
    let call = Arguments { map, kind, rank, address, sizes, strides, extent, step, interleave };
    // SAFETY: the program's arguments of a call that succeeded.
    unsafe { encoded(cx, &call, MapCopies::Columns) }
}

pub(crate) unsafe fn cuTensorMapEncodeIm2colWide(
    cx: &mut Cx<'_>,
    map: *mut CUtensorMap,
    kind: CUtensorMapDataType,
    rank: u32,
    address: *mut c_void,
    sizes: *const u64,
    strides: *const u64,
    _lower: c_int,
    _upper: c_int,
    _channels: u32,
    _pixels: u32,
    step: *const u32,
    interleave: CUtensorMapInterleave,
    _mode: CUtensorMapIm2ColWideMode,
    _swizzle: CUtensorMapSwizzle,
    _promotion: CUtensorMapL2promotion,
    _fill: CUtensorMapFloatOOBfill,
) {
    let extent = std::ptr::null();
    let call = Arguments { map, kind, rank, address, sizes, strides, extent, step, interleave };
    // SAFETY: the program's arguments of a call that succeeded.
    unsafe { encoded(cx, &call, MapCopies::WideColumns) }
}

/// Before the call the map is still the one that was told.
pub(crate) unsafe fn cuTensorMapReplaceAddress(cx: &mut Cx<'_>, map: *mut CUtensorMap, address: *mut c_void) {
    if !cx.is_after() {
        if !map.is_null() && map.is_aligned() {
            // SAFETY: the program's argument, which the driver reads too.
            cx.token = TensorMaps::number(unsafe { &*map.cast::<[u8; SIZE]>() });
        }
        return;
    }
    let Some(core) = cx.core() else { return };
    // A map whose making was not seen is read by its bytes, where they are understood.
    let Some(before) = core.handles.tensor_maps.get(cx.token) else { return };
    // SAFETY: the call has written the map.
    let bytes = unsafe { *map.cast::<[u8; SIZE]>() };
    tell(cx, Arc::new(TensorMap { bytes, address: address as u64, ..(*before).clone() }));
}
