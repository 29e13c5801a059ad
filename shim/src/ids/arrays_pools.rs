//! The ids of opaque arrays and of memory pools.
//!
//! Owns defining arrays that were made before the shim was there, or by another API, when they are
//! first used: the driver is asked for their shape. Pools need no definition.

use cuda_sys::*;
use trace::{ArrayId, Op, PoolId};

use crate::handles::arrays::{Array, ArrayShape};
use crate::ids::destroyed::handle_destroyed;
use crate::observe::Cx;
use crate::real::driver::real;

/// An opaque array. The driver is asked about an unknown one.
pub fn array_of(cx: &mut Cx<'_>, handle: CUarray) -> Array {
    let nothing = Array { id: ArrayId::NONE, shape: None };
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
    let array = Array { id, shape };
    let Some(core) = cx.core() else { return array };
    let key = handle.0 as u64;
    cx.log(&Op::ArrayCreate { array: id, handle: key, size: shape.map_or(0, |s| s.size()) });
    if let Some(address) = crate::exact::simulated_array(handle) {
        cx.log(&Op::ArrayAt { array: id, address });
    }
    core.handles.arrays.insert(key, array);
    array
}

/// An array goes away.
pub fn forget_array(cx: &mut Cx<'_>, handle: CUarray) -> Option<ArrayId> {
    handle_destroyed(cx, |handles| &handles.arrays, handle.0 as u64, |array| array.id.0).map(ArrayId)
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
    }
}
