//! Turns C's descriptions of copies (`CUDA_MEMCPY2D`, `CUDA_MEMCPY3D`, operands of batches) into
//! [`Memcpy`].
//!
//! Owns the checks of pitches and of the bounds of arrays. When a copy runs, and whether the host
//! waits for it, is in `copies`.

use std::sync::Arc;

use cuda_sys::*;

use crate::api::*;
use crate::memory::array::{ARRAYS, Array};
use crate::memory::memcpy::{CopyEnd, Memcpy};
use crate::objects::context::Context;
use crate::objects::task::Task;

/// The fields by which every C description of a copy's end says where it is.
struct EndDescriptor {
    kind: CUmemorytype,
    host: u64,
    device: u64,
    array: CUarray,
    x: usize,
    y: usize,
    z: usize,
    pitch: usize,
    height: usize,
}

impl EndDescriptor {
    fn side(&self, width: usize, rows: usize) -> Result<CopyEnd, CUresult> {
        let (x, y, z) = (self.x as u64, self.y as u64, self.z as u64);
        if self.kind == CU_MEMORYTYPE_ARRAY {
            let array = ARRAYS.get(self.array.bits())?;
            return array_side(array, x, y, z);
        }
        let base = if self.kind == CU_MEMORYTYPE_HOST { self.host } else { self.device };
        if base == 0 {
            return Err(INVALID);
        }
        let row = width.checked_add(self.x).ok_or(INVALID)?;
        let pitch = if self.pitch == 0 { row as u64 } else { self.pitch as u64 };
        let all_rows = if self.height == 0 { rows.checked_add(self.y).ok_or(INVALID)? } else { self.height };
        if self.pitch != 0 && row > self.pitch && rows > 1 {
            return Err(INVALID);
        }
        let layer = pitch.checked_mul(all_rows as u64).ok_or(INVALID)?;
        Ok(CopyEnd { at: place(base, [(z, layer), (y, pitch), (x, 1)])?, pitch, layer, keep: None })
    }
}

/// Where so many steps of these sizes lead to. Numbers that lead out of any memory are an error.
fn place(base: u64, steps: [(u64, u64); 3]) -> Result<u64, CUresult> {
    let step = |at: u64, (count, size): (u64, u64)| at.checked_add(count.checked_mul(size)?);
    steps.into_iter().try_fold(base, step).ok_or(INVALID)
}

pub(crate) fn array_side(array: Arc<Array>, x: u64, y: u64, z: u64) -> Result<CopyEnd, CUresult> {
    let (pitch, layer) = (array.pitch(), array.layer());
    let at = place(array.at, [(z, layer), (y, pitch), (x, 1)])?;
    Ok(CopyEnd { at, pitch, layer, keep: Some(array) })
}

pub(crate) fn inside(side: &CopyEnd, width: u64, height: u64, depth: u64) -> Res {
    let Some(array) = &side.keep else { return Ok(()) };
    let (at, len) = side.span(width, height, depth);
    if (at - array.at).saturating_add(len) > array.size() { Err(INVALID) } else { Ok(()) }
}

pub(crate) fn checked(copy: Memcpy) -> Result<Memcpy, CUresult> {
    inside(&copy.src, copy.width, copy.height, copy.depth)?;
    inside(&copy.dst, copy.width, copy.height, copy.depth)?;
    Ok(copy)
}

pub(crate) fn copy_2d(p: &CUDA_MEMCPY2D) -> Result<Memcpy, CUresult> {
    let src = EndDescriptor {
        kind: p.srcMemoryType,
        host: p.srcHost as u64,
        device: p.srcDevice,
        array: p.srcArray,
        x: p.srcXInBytes,
        y: p.srcY,
        z: 0,
        pitch: p.srcPitch,
        height: 0,
    };
    let dst = EndDescriptor {
        kind: p.dstMemoryType,
        host: p.dstHost as u64,
        device: p.dstDevice,
        array: p.dstArray,
        x: p.dstXInBytes,
        y: p.dstY,
        z: 0,
        pitch: p.dstPitch,
        height: 0,
    };
    checked(Memcpy {
        src: src.side(p.WidthInBytes, p.Height)?,
        dst: dst.side(p.WidthInBytes, p.Height)?,
        width: p.WidthInBytes as u64,
        height: p.Height as u64,
        depth: 1,
    })
}

/// A three-dimensional copy as described in C.
pub(crate) fn copy_3d(p: &CUDA_MEMCPY3D) -> Result<Memcpy, CUresult> {
    let src = EndDescriptor {
        kind: p.srcMemoryType,
        host: p.srcHost as u64,
        device: p.srcDevice,
        array: p.srcArray,
        x: p.srcXInBytes,
        y: p.srcY,
        z: p.srcZ,
        pitch: p.srcPitch,
        height: p.srcHeight,
    };
    let dst = EndDescriptor {
        kind: p.dstMemoryType,
        host: p.dstHost as u64,
        device: p.dstDevice,
        array: p.dstArray,
        x: p.dstXInBytes,
        y: p.dstY,
        z: p.dstZ,
        pitch: p.dstPitch,
        height: p.dstHeight,
    };
    checked(Memcpy {
        src: src.side(p.WidthInBytes, p.Height)?,
        dst: dst.side(p.WidthInBytes, p.Height)?,
        width: p.WidthInBytes as u64,
        height: p.Height as u64,
        depth: p.Depth as u64,
    })
}

pub(crate) fn copy_3d_peer(p: &CUDA_MEMCPY3D_PEER) -> Result<Memcpy, CUresult> {
    copy_3d(&CUDA_MEMCPY3D {
        srcXInBytes: p.srcXInBytes,
        srcY: p.srcY,
        srcZ: p.srcZ,
        srcLOD: p.srcLOD,
        srcMemoryType: p.srcMemoryType,
        srcHost: p.srcHost,
        srcDevice: p.srcDevice,
        srcArray: p.srcArray,
        srcPitch: p.srcPitch,
        srcHeight: p.srcHeight,
        dstXInBytes: p.dstXInBytes,
        dstY: p.dstY,
        dstZ: p.dstZ,
        dstLOD: p.dstLOD,
        dstMemoryType: p.dstMemoryType,
        dstHost: p.dstHost,
        dstDevice: p.dstDevice,
        dstArray: p.dstArray,
        dstPitch: p.dstPitch,
        dstHeight: p.dstHeight,
        WidthInBytes: p.WidthInBytes,
        Height: p.Height,
        Depth: p.Depth,
        ..CUDA_MEMCPY3D::zeroed()
    })
}

pub(crate) fn linear(dst: u64, src: u64, bytes: usize) -> Memcpy {
    Memcpy::linear(dst, src, bytes as u64)
}

pub(crate) fn array_at(array: CUarray, offset: usize) -> Result<CopyEnd, CUresult> {
    array_side(ARRAYS.get(array.bits())?, offset as u64, 0, 0)
}

pub(crate) fn sides(dst: CopyEnd, src: CopyEnd, bytes: usize) -> Result<Memcpy, CUresult> {
    checked(Memcpy { dst, src, width: bytes as u64, height: 1, depth: 1 })
}

pub(crate) fn operand(op: &CUmemcpy3DOperand, texels: CUextent3D) -> Result<(CopyEnd, u64), CUresult> {
    // SAFETY: the type says which member is in use; both are plain data.
    unsafe {
        match op.type_ {
            CU_MEMCPY_OPERAND_TYPE_ARRAY => {
                let array = ARRAYS.get(op.op.array.array.bits())?;
                let (o, texel) = (op.op.array.offset, array.texel);
                let x = (o.x as u64).checked_mul(texel).ok_or(INVALID)?;
                Ok((array_side(array, x, o.y as u64, o.z as u64)?, texel))
            }
            CU_MEMCPY_OPERAND_TYPE_POINTER => {
                let ptr = op.op.ptr;
                let pitch = if ptr.rowLength == 0 { texels.width } else { ptr.rowLength } as u64;
                let rows = if ptr.layerHeight == 0 { texels.height } else { ptr.layerHeight } as u64;
                let layer = pitch.checked_mul(rows).ok_or(INVALID)?;
                Ok((CopyEnd { at: ptr.ptr, pitch, layer, keep: None }, 0))
            }
            _ => Err(INVALID),
        }
    }
}

/// Used by graph nodes: the context is only checked.
pub(crate) fn copy_node(p: &CUDA_MEMCPY3D, _ctx: &Arc<Context>) -> Result<Task, CUresult> {
    Ok(Task::Copy(Box::new(copy_3d(p)?)))
}
