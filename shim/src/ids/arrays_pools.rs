//! The ids of opaque arrays and of memory pools.
//!
//! Owns defining arrays that were made before the shim was there, or by another API, when they are
//! first used: the driver is asked for their shape. Pools need no definition.

use cuda_sys::*;
use trace::codec::List;
use trace::{ArrayId, Op, PoolId};

use crate::handles::arrays::{Array, ArrayShape, Mipmapped};
use crate::ids::destroyed::handle_destroyed;
use crate::observe::Cx;
use crate::real::driver::real;

/// An opaque array. The driver is asked about an unknown one.
pub fn array_of(cx: &mut Cx<'_>, handle: CUarray) -> Array {
    let nothing = Array { id: ArrayId::NONE, shape: None, level: None };
    let Some(core) = cx.core() else { return nothing };
    if let Some(array) = core.handles.arrays.get(&(handle.0 as u64)) {
        return *array;
    }
    let mut d = CUDA_ARRAY3D_DESCRIPTOR::zeroed();
    let asked = real!(cuArray3DGetDescriptor_v2(
        &raw mut d => *mut CUDA_ARRAY3D_DESCRIPTOR, handle => CUarray
    ));
    let extent = (d.Width as u64, d.Height as u64, d.Depth as u64);
    let shape = ArrayShape::new(extent, d.Format, d.NumChannels).filter(|_| asked == CUresult::SUCCESS);
    define_array(cx, handle, shape)
}

/// An array was made (or seen first).
pub fn define_array(cx: &mut Cx<'_>, handle: CUarray, shape: Option<ArrayShape>) -> Array {
    let id = cx.core().map_or(ArrayId::NONE, |core| ArrayId(core.handles.next.array.take()));
    let array = Array { id, shape, level: None };
    let Some(core) = cx.core() else { return array };
    let key = handle.0 as u64;
    cx.log(&Op::ArrayCreate { array: id, handle: key, size: shape.map_or(0, |s| s.size()) });
    if let Some(address) = crate::exact::simulated_array(handle) {
        cx.log(&Op::ArrayAt { array: id, address });
    }
    core.handles.arrays.insert(key, array);
    array
}

/// An array goes away. A level does not by itself.
pub fn forget_array(cx: &mut Cx<'_>, handle: CUarray) -> Option<ArrayId> {
    let id = |array: &Array| if array.level.is_none() { array.id.0 } else { 0 };
    handle_destroyed(cx, |handles| &handles.arrays, handle.0 as u64, id).map(ArrayId)
}

/// A mipmapped array was made: one array of the trace.
pub fn define_mipmapped(cx: &mut Cx<'_>, handle: CUmipmappedArray, largest: &ArrayShape, layered: bool, levels: u32) {
    let Some(core) = cx.core() else { return };
    let (id, key) = (ArrayId(core.handles.next.array.take()), handle.0 as u64);
    let mipmapped = Mipmapped::new(id, largest, layered, levels);
    let ends = mipmapped.ends();
    cx.log(&Op::ArrayCreate { array: id, handle: key, size: ends.last().copied().unwrap_or(0) });
    // The simulator finds arrays of both kinds by their handles.
    if let Some(address) = crate::exact::simulated_array(CUarray(handle.0.cast())) {
        cx.log(&Op::ArrayAt { array: id, address });
    }
    cx.log(&Op::ArrayLevels { array: id, ends: List::new(&ends) });
    core.handles.mipmapped.insert(key, mipmapped);
}

/// This is the handle of a level. False: the mipmapped array or the level is not known.
pub fn define_level(cx: &mut Cx<'_>, handle: CUarray, mipmapped: CUmipmappedArray, level: u32) -> bool {
    let Some(core) = cx.core() else { return true };
    let known = core.handles.mipmapped.get(&(mipmapped.0 as u64));
    let Some(level) = known.and_then(|known| known.levels.get(level as usize).copied()) else { return false };
    core.handles.arrays.insert(handle.0 as u64, level);
    true
}

/// A mipmapped array goes away, and the handles of its levels with it.
pub fn forget_mipmapped(cx: &mut Cx<'_>, handle: CUmipmappedArray) -> Option<ArrayId> {
    let gone = handle_destroyed(cx, |handles| &handles.mipmapped, handle.0 as u64, |array| array.id.0).map(ArrayId)?;
    if let Some(core) = cx.core() {
        core.handles.arrays.retain(|_, array| array.id != gone);
    }
    Some(gone)
}

/// The id of a memory pool.
pub fn pool_id(cx: &mut Cx<'_>, handle: CUmemoryPool) -> PoolId {
    let Some(core) = cx.core() else { return PoolId::NONE };
    *core.handles.pools.entry(handle.0 as u64).or_insert_with(|| PoolId(core.handles.next.pool.take()))
}

/// A pool goes away.
pub fn forget_pool(cx: &mut Cx<'_>, handle: CUmemoryPool) {
    if let Some(core) = cx.core() {
        core.handles.pools.remove(&(handle.0 as u64));
        core.handles.pool_marks.remove(&(handle.0 as u64));
    }
}
