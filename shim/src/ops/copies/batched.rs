//! Batches of copies, and copies with attributes in 3D.
//!
//! Owns which attributes hold for which copy of a batch. The copies of a batch are unordered among
//! themselves; `order` decides what follows from their attributes.

use cuda_sys::*;
use trace::{ArrayId, SourceOrder, Space};

use super::copy::{CopySide, unified};
use super::strided::box_of;
use crate::ids::arrays_pools::array_of;
use crate::observe::Cx;
use crate::ops::copies::copy::attributed_copy;
use crate::ops::copies::strided::box_of_array;

/// When a copy with these attributes reads its source.
pub(crate) fn source_order(order: CUmemcpySrcAccessOrder) -> SourceOrder {
    match order {
        CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL => SourceOrder::DuringCall,
        CU_MEMCPY_SRC_ACCESS_ORDER_ANY => SourceOrder::Any,
        _ => SourceOrder::Stream,
    }
}

/// The attributes of a batch: those of each index hold from there to the next one (cuda.h,
/// cuMemcpyBatchAsync).
struct BatchAttributes {
    list: *mut CUmemcpyAttributes,
    starts: *mut usize,
    count: usize,
}

impl BatchAttributes {
    /// # Safety
    /// Both arrays have as many entries as the call that accepted them says.
    unsafe fn of(&self, copy: usize) -> SourceOrder {
        if self.list.is_null() || self.starts.is_null() {
            return SourceOrder::Stream;
        }
        // SAFETY: forwarded from the caller.
        let found = (0..self.count).rev().find(|i| unsafe { *self.starts.add(*i) } <= copy);
        // SAFETY: as above.
        found.map_or(SourceOrder::Stream, |i| source_order(unsafe { (*self.list.add(i)).srcAccessOrder }))
    }
}

fn batch(
    cx: &mut Cx<'_>,
    (dsts, srcs, sizes): (*mut u64, *mut u64, *mut usize),
    count: usize,
    attributes: &BatchAttributes,
    stream: CUstream,
) {
    let number = cx.core().map_or(0, |core| core.handles.fresh());
    if cx.is_before() || dsts.is_null() || srcs.is_null() || sizes.is_null() {
        return;
    }
    for index in 0..count {
        // SAFETY: the call has just read count entries of each array, and the attributes.
        let (dst, src, len, order) =
            unsafe { (*dsts.add(index), *srcs.add(index), *sizes.add(index) as u64, attributes.of(index)) };
        attributed_copy(cx, unified(dst, len), unified(src, len), stream, number, order);
    }
}

#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
pub(crate) unsafe fn cuMemcpyBatchAsync(
    cx: &mut Cx<'_>,
    dsts: *mut CUdeviceptr,
    srcs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    attrs: *mut CUmemcpyAttributes,
    attrs_idxs: *mut usize,
    num_attrs: usize,
    _fail_idx: *mut usize,
    stream: CUstream,
) {
    let attributes = BatchAttributes { list: attrs, starts: attrs_idxs, count: num_attrs };
    batch(cx, (dsts, srcs, sizes), count, &attributes, stream);
}

#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
pub(crate) unsafe fn cuMemcpyBatchAsync_v2(
    cx: &mut Cx<'_>,
    dsts: *mut CUdeviceptr,
    srcs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    attrs: *mut CUmemcpyAttributes,
    attrs_idxs: *mut usize,
    num_attrs: usize,
    stream: CUstream,
) {
    let attributes = BatchAttributes { list: attrs, starts: attrs_idxs, count: num_attrs };
    batch(cx, (dsts, srcs, sizes), count, &attributes, stream);
}

/// Bytes of an element of a copy between these operands: the array's, where one of them is an array
/// (cuda.h, cuMemcpy3DBatchAsync: "for pointer-to-pointer copies, the element size is considered to
/// be 1").
fn element(cx: &mut Cx<'_>, op: &CUDA_MEMCPY3D_BATCH_OP) -> u64 {
    let array = [&op.dst, &op.src].into_iter().find(|side| side.type_ == CU_MEMCPY_OPERAND_TYPE_ARRAY);
    // SAFETY: the type says which member is valid.
    let shape = array.and_then(|side| array_of(cx, unsafe { side.op.array }.array).shape);
    shape.map_or(1, |shape| shape.element)
}

/// One side of a copy of the batched 3D functions. Widths, row lengths and offsets are counted in
/// elements.
fn operand(cx: &mut Cx<'_>, operand: &CUmemcpy3DOperand, extent: &CUextent3D, element: u64) -> CopySide {
    let width = (extent.width as u64).saturating_mul(element);
    let extent = (width, extent.height.max(1) as u64, extent.depth.max(1) as u64);
    if operand.type_ == CU_MEMCPY_OPERAND_TYPE_ARRAY {
        // SAFETY: the type says which member is valid.
        let part = unsafe { operand.op.array };
        let at = (part.offset.x as u64 * element, part.offset.y as u64, part.offset.z as u64);
        return box_of_array(cx, part.array, at, extent);
    }
    // SAFETY: as above.
    let part = unsafe { operand.op.ptr };
    let pitch = if part.rowLength == 0 { width } else { (part.rowLength as u64).saturating_mul(element) };
    let layer = if part.layerHeight == 0 { extent.1 } else { part.layerHeight as u64 };
    let region = box_of(part.ptr, extent, pitch, pitch.saturating_mul(layer), ArrayId::NONE);
    CopySide { region, space: Space::Unified }
}

fn batch_3d(cx: &mut Cx<'_>, count: usize, ops: *mut CUDA_MEMCPY3D_BATCH_OP, stream: CUstream) {
    if cx.is_before() || ops.is_null() {
        return;
    }
    let number = cx.core().map_or(0, |core| core.handles.fresh());
    for index in 0..count {
        // SAFETY: the call has just read count descriptors.
        let op = unsafe { &*ops.add(index) };
        let element = element(cx, op);
        let dst = operand(cx, &op.dst, &op.extent, element);
        let src = operand(cx, &op.src, &op.extent, element);
        attributed_copy(cx, dst, src, stream, number, source_order(op.srcAccessOrder));
    }
}

pub(crate) unsafe fn cuMemcpy3DBatchAsync(
    cx: &mut Cx<'_>,
    num_ops: usize,
    op_list: *mut CUDA_MEMCPY3D_BATCH_OP,
    _fail_idx: *mut usize,
    _flags: u64,
    stream: CUstream,
) {
    batch_3d(cx, num_ops, op_list, stream);
}

pub(crate) unsafe fn cuMemcpy3DBatchAsync_v2(
    cx: &mut Cx<'_>,
    num_ops: usize,
    op_list: *mut CUDA_MEMCPY3D_BATCH_OP,
    _flags: u64,
    stream: CUstream,
) {
    batch_3d(cx, num_ops, op_list, stream);
}

pub(crate) unsafe fn cuMemcpy3DWithAttributesAsync(
    cx: &mut Cx<'_>,
    op: *mut CUDA_MEMCPY3D_BATCH_OP,
    _flags: u64,
    stream: CUstream,
) {
    batch_3d(cx, 1, op, stream);
}
