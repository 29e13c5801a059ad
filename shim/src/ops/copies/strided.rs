//! Copies described by a structure: 2D, 3D, between peers, and batches.

use cuda_sys::*;
use trace::{Region, SourceOrder, Space};

use crate::observe::context::Cx;
use crate::ops::copies::linear::{Side, unified};

/// One side of a 2D or 3D descriptor, whichever version it came in.
struct Boxed {
    kind: u32,
    host: u64,
    device: u64,
    array: CUarray,
    x: u64,
    y: u64,
    z: u64,
    pitch: u64,
    height: u64,
}

impl Boxed {
    fn side(&self, cx: &mut Cx<'_>, width: u64, rows: u64, slices: u64) -> Side {
        const HOST: u32 = 1;
        const DEVICE: u32 = 2;
        const ARRAY: u32 = 3;
        let (base, space) = match self.kind {
            HOST => (self.host, Space::Host),
            DEVICE => (self.device, Space::Device),
            ARRAY => (0, Space::Array),
            _ => (self.device, Space::Unified),
        };
        // A pitch of 0 stands for rows without gaps, a height of 0 for slices without gaps (cuda.h,
        // CUDA_MEMCPY3D).
        let pitch = if self.pitch == 0 { width + self.x } else { self.pitch };
        let slice_pitch = pitch.saturating_mul(if self.height == 0 { rows + self.y } else { self.height });
        let offset =
            self.x.saturating_add(self.y.saturating_mul(pitch)).saturating_add(self.z.saturating_mul(slice_pitch));
        let array = if space == Space::Array { cx.array(self.array) } else { trace::ArrayId::NONE };
        let region = Region {
            start: base.saturating_add(offset),
            width,
            height: rows as u32,
            depth: slices as u32,
            pitch,
            slice_pitch,
            array,
        };
        // Rows that touch each other are one range: exact, and cheaper to compare.
        let joined = pitch == width && (slices == 1 || slice_pitch == pitch * rows) && space != Space::Array;
        let region = if joined { Region::linear(region.start, width * rows * slices) } else { region };
        Side { region, space }
    }
}

macro_rules! boxed_pair {
    ($($name:ident($ty:ty, $depth:tt);)*) => {$(
        /// Destination and source of a copy descriptor.
        pub(crate) fn $name(cx: &mut Cx<'_>, c: &$ty) -> (Side, Side) {
            let (width, rows) = (c.WidthInBytes as u64, c.Height as u64);
            let slices = boxed_pair!(@get c Depth $depth, 1);
            let dst = Boxed {
                kind: c.dstMemoryType.0, host: c.dstHost as u64, device: u64::from(c.dstDevice), array: c.dstArray,
                x: c.dstXInBytes as u64, y: c.dstY as u64, z: boxed_pair!(@get c dstZ $depth, 0),
                pitch: c.dstPitch as u64, height: boxed_pair!(@get c dstHeight $depth, 0),
            };
            let src = Boxed {
                kind: c.srcMemoryType.0, host: c.srcHost as u64, device: u64::from(c.srcDevice), array: c.srcArray,
                x: c.srcXInBytes as u64, y: c.srcY as u64, z: boxed_pair!(@get c srcZ $depth, 0),
                pitch: c.srcPitch as u64, height: boxed_pair!(@get c srcHeight $depth, 0),
            };
            (dst.side(cx, width, rows, slices), src.side(cx, width, rows, slices))
        }
    )*};
    (@get $c:ident $field:ident yes, $otherwise:literal) => { $c.$field as u64 };
    (@get $c:ident $field:ident no, $otherwise:literal) => { $otherwise };
}

boxed_pair! {
    pair_2d_v1(CUDA_MEMCPY2D_v1, no);
    pair_2d(CUDA_MEMCPY2D, no);
    pair_3d_v1(CUDA_MEMCPY3D_v1, yes);
    pair_3d(CUDA_MEMCPY3D, yes);
    pair_3d_peer(CUDA_MEMCPY3D_PEER, yes);
}

macro_rules! boxed {
    ($($name:ident($ty:ty $(, $stream:ident)?) $pair:ident;)*) => {$(
        pub(crate) unsafe fn $name(cx: &mut Cx<'_>, copy: *const $ty $(, $stream: CUstream)?) {
            if copy.is_null() {
                return;
            }
            // SAFETY: the call reads the descriptor too.
            let (dst, src) = $pair(cx, unsafe { &*copy });
            let (stream, asynchronous) = boxed!(@stream $($stream)?);
            cx.copy(dst, src, stream, asynchronous);
        }
    )*};
    (@stream) => { (CUstream::NULL, false) };
    (@stream $stream:ident) => { ($stream, true) };
}

boxed! {
    cuMemcpy2D(CUDA_MEMCPY2D_v1) pair_2d_v1;
    cuMemcpy2D_v2(CUDA_MEMCPY2D) pair_2d;
    cuMemcpy2DUnaligned(CUDA_MEMCPY2D_v1) pair_2d_v1;
    cuMemcpy2DUnaligned_v2(CUDA_MEMCPY2D) pair_2d;
    cuMemcpy2DAsync(CUDA_MEMCPY2D_v1, stream) pair_2d_v1;
    cuMemcpy2DAsync_v2(CUDA_MEMCPY2D, stream) pair_2d;
    cuMemcpy3D(CUDA_MEMCPY3D_v1) pair_3d_v1;
    cuMemcpy3D_v2(CUDA_MEMCPY3D) pair_3d;
    cuMemcpy3DAsync(CUDA_MEMCPY3D_v1, stream) pair_3d_v1;
    cuMemcpy3DAsync_v2(CUDA_MEMCPY3D, stream) pair_3d;
    cuMemcpy3DPeer(CUDA_MEMCPY3D_PEER) pair_3d_peer;
    cuMemcpy3DPeerAsync(CUDA_MEMCPY3D_PEER, stream) pair_3d_peer;
}

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
struct Attributes {
    list: *mut CUmemcpyAttributes,
    starts: *mut usize,
    count: usize,
}

impl Attributes {
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
    attributes: &Attributes,
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
        cx.attributed_copy(unified(dst, len), unified(src, len), stream, number, order);
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
    let attributes = Attributes { list: attrs, starts: attrs_idxs, count: num_attrs };
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
    let attributes = Attributes { list: attrs, starts: attrs_idxs, count: num_attrs };
    batch(cx, (dsts, srcs, sizes), count, &attributes, stream);
}

/// Operands of the batched 3D copies: rows and layers are counted in elements whose size is not
/// told, so that only linear ones and arrays can be placed; the extent's width is in bytes for
/// pointers.
fn operand(cx: &mut Cx<'_>, operand: &CUmemcpy3DOperand, extent: &CUextent3D) -> Side {
    let (width, rows, slices) = (extent.width as u64, extent.height.max(1) as u64, extent.depth.max(1) as u64);
    if operand.type_ == CU_MEMCPY_OPERAND_TYPE_ARRAY {
        // SAFETY: the type says which member is valid.
        let part = unsafe { operand.op.array };
        let array = cx.array(part.array);
        let region = Region { array, ..Region::linear(part.offset.x as u64, width * rows * slices) };
        return Side { region, space: Space::Array };
    }
    // SAFETY: as above.
    let part = unsafe { operand.op.ptr };
    let pitch = if part.rowLength == 0 { width } else { part.rowLength as u64 };
    let layer = if part.layerHeight == 0 { rows } else { part.layerHeight as u64 };
    let region = Region {
        start: part.ptr,
        width,
        height: rows as u32,
        depth: slices as u32,
        pitch,
        slice_pitch: pitch * layer,
        array: trace::ArrayId::NONE,
    };
    Side { region, space: Space::Unified }
}

fn batch_3d(cx: &mut Cx<'_>, count: usize, ops: *mut CUDA_MEMCPY3D_BATCH_OP, stream: CUstream) {
    if cx.is_before() || ops.is_null() {
        return;
    }
    let number = cx.core().map_or(0, |core| core.handles.fresh());
    for index in 0..count {
        // SAFETY: the call has just read count descriptors.
        let op = unsafe { &*ops.add(index) };
        let (dst, src) = (operand(cx, &op.dst, &op.extent), operand(cx, &op.src, &op.extent));
        cx.attributed_copy(dst, src, stream, number, source_order(op.srcAccessOrder));
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
