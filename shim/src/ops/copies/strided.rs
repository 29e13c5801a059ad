//! Copies described by a structure: 2D, 3D, between peers.
//!
//! Owns the regions that a descriptor names. Nodes of graphs use the same descriptors
//! ([`crate::ops::graphs::node_ops`]).

use cuda_sys::*;
use trace::{ArrayId, Region, Space};

use super::copy::CopySide;
use crate::ids::arrays_pools::array_of;
use crate::observe::Cx;
use crate::ops::copies::copy::log_copy;

/// One side of a 2D or 3D descriptor, whichever version it came in.
struct BoxedSide {
    kind: CUmemorytype,
    host: u64,
    device: u64,
    array: CUarray,
    x: u64,
    y: u64,
    z: u64,
    pitch: u64,
    height: u64,
}

impl BoxedSide {
    fn side(&self, cx: &mut Cx<'_>, width: u64, rows: u64, slices: u64) -> CopySide {
        let (base, space) = match self.kind {
            CU_MEMORYTYPE_HOST => (self.host, Space::Host),
            CU_MEMORYTYPE_DEVICE => (self.device, Space::Device),
            CU_MEMORYTYPE_ARRAY => {
                return box_of_array(cx, self.array, (self.x, self.y, self.z), (width, rows, slices));
            }
            _ => (self.device, Space::Unified),
        };
        // A pitch of 0 stands for rows without gaps, a height of 0 for slices without gaps (cuda.h,
        // CUDA_MEMCPY3D).
        let pitch = if self.pitch == 0 { width + self.x } else { self.pitch };
        let slice_pitch = pitch.saturating_mul(if self.height == 0 { rows + self.y } else { self.height });
        let offset =
            self.x.saturating_add(self.y.saturating_mul(pitch)).saturating_add(self.z.saturating_mul(slice_pitch));
        let start = base.saturating_add(offset);
        CopySide { region: box_of(start, (width, rows, slices), pitch, slice_pitch, ArrayId::NONE), space }
    }
}

/// `width` bytes of each of `rows` rows of each of `slices` slices. Rows that touch each other are
/// one range: cheaper to compare.
pub(super) fn box_of(
    start: u64,
    (width, rows, slices): (u64, u64, u64),
    pitch: u64,
    slice_pitch: u64,
    array: ArrayId,
) -> Region {
    if pitch == width && (slices == 1 || slice_pitch == pitch.saturating_mul(rows)) {
        return Region { array, ..Region::linear(start, width.saturating_mul(rows).saturating_mul(slices)) };
    }
    let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Region { start, width, height: count(rows), depth: count(slices), pitch, slice_pitch, array }
}

/// A box of an opaque array: `at` and `extent` in bytes, rows and slices. A descriptor's pitch
/// and height say nothing of arrays (cuda.h, CUDA_MEMCPY3D). Of an array whose rows are not
/// known no byte is claimed, and the call is named as not modelled.
pub(super) fn box_of_array(cx: &mut Cx<'_>, array: CUarray, at: (u64, u64, u64), extent: (u64, u64, u64)) -> CopySide {
    let array = array_of(cx, array);
    let Some(shape) = array.shape else {
        if cx.is_after() {
            cx.not_modelled();
        }
        return CopySide { region: Region { array: array.id, ..Region::default() }, space: Space::Array };
    };
    let slice = shape.row.saturating_mul(shape.rows);
    let within = at.0.saturating_add(at.1.saturating_mul(shape.row)).saturating_add(at.2.saturating_mul(slice));
    let start = array.level.unwrap_or(0).saturating_add(within);
    CopySide { region: box_of(start, extent, shape.row, slice, array.id), space: Space::Array }
}

macro_rules! boxed_pair {
    ($($name:ident($ty:ty, $depth:tt);)*) => {$(
        /// Destination and source of a copy descriptor.
        pub(crate) fn $name(cx: &mut Cx<'_>, c: &$ty) -> (CopySide, CopySide) {
            let (width, rows) = (c.WidthInBytes as u64, c.Height as u64);
            let slices = boxed_pair!(@get c Depth $depth, 1);
            let dst = BoxedSide {
                kind: c.dstMemoryType, host: c.dstHost as u64, device: u64::from(c.dstDevice), array: c.dstArray,
                x: c.dstXInBytes as u64, y: c.dstY as u64, z: boxed_pair!(@get c dstZ $depth, 0),
                pitch: c.dstPitch as u64, height: boxed_pair!(@get c dstHeight $depth, 0),
            };
            let src = BoxedSide {
                kind: c.srcMemoryType, host: c.srcHost as u64, device: u64::from(c.srcDevice), array: c.srcArray,
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
            log_copy(cx, dst, src, stream, asynchronous);
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
