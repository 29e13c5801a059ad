//! Opaque arrays, and the texture and surface objects over them or over plain memory.
//!
//! Owns the region that an object stands for. Mipmapped arrays are not
//! modelled.

use cuda_sys::*;
use trace::{Op, Region};

use crate::handles::arrays::{ArrayShape, channel_bytes};
use crate::ids::arrays_pools::{array_of, define_array, forget_array};
use crate::observe::Cx;

pub(crate) unsafe fn cuArrayCreate(
    cx: &mut Cx<'_>,
    handle: *mut CUarray,
    allocate_array: *const CUDA_ARRAY_DESCRIPTOR_v1,
) {
    // SAFETY: the call succeeded: it has read the descriptor and written the handle.
    let (handle, d) = unsafe { (*handle, &*allocate_array) };
    define_array(cx, handle, ArrayShape::new((d.Width as u64, d.Height as u64, 0), d.Format, d.NumChannels));
}

pub(crate) unsafe fn cuArrayCreate_v2(
    cx: &mut Cx<'_>,
    handle: *mut CUarray,
    allocate_array: *const CUDA_ARRAY_DESCRIPTOR,
) {
    // SAFETY: the call succeeded: it has read the descriptor and written the handle.
    let (handle, d) = unsafe { (*handle, &*allocate_array) };
    define_array(cx, handle, ArrayShape::new((d.Width as u64, d.Height as u64, 0), d.Format, d.NumChannels));
}

pub(crate) unsafe fn cuArray3DCreate(
    cx: &mut Cx<'_>,
    handle: *mut CUarray,
    allocate_array: *const CUDA_ARRAY3D_DESCRIPTOR_v1,
) {
    // SAFETY: the call succeeded: it has read the descriptor and written the handle.
    let (handle, d) = unsafe { (*handle, &*allocate_array) };
    define_array(
        cx,
        handle,
        ArrayShape::new((d.Width as u64, d.Height as u64, d.Depth as u64), d.Format, d.NumChannels),
    );
}

pub(crate) unsafe fn cuArray3DCreate_v2(
    cx: &mut Cx<'_>,
    handle: *mut CUarray,
    allocate_array: *const CUDA_ARRAY3D_DESCRIPTOR,
) {
    // SAFETY: the call succeeded: it has read the descriptor and written the handle.
    let (handle, d) = unsafe { (*handle, &*allocate_array) };
    define_array(
        cx,
        handle,
        ArrayShape::new((d.Width as u64, d.Height as u64, d.Depth as u64), d.Format, d.NumChannels),
    );
}

pub(crate) unsafe fn cuArrayDestroy(cx: &mut Cx<'_>, array: CUarray) {
    if let Some(array) = forget_array(cx, array) {
        cx.log(&Op::ArrayDestroy { array });
    }
}

pub(crate) unsafe fn cuMipmappedArrayDestroy(cx: &mut Cx<'_>, mipmapped_array: CUmipmappedArray) {
    let _ = mipmapped_array;
    // The array is not known, but the host waits as it does for others.
    if cx.is_after() {
        cx.log(&Op::ArrayDestroy { array: trace::ArrayId::NONE });
    }
}

fn log_object(cx: &mut Cx<'_>, object: u64, description: &CUDA_RESOURCE_DESC, writable: bool) {
    // SAFETY: the resource type says which member is valid.
    let region = unsafe {
        match description.resType {
            CU_RESOURCE_TYPE_ARRAY => {
                let array = array_of(cx, description.res.array.hArray).id;
                Region { array, ..Region::linear(0, u64::MAX >> 1) }
            }
            CU_RESOURCE_TYPE_LINEAR => {
                Region::linear(description.res.linear.devPtr, description.res.linear.sizeInBytes as u64)
            }
            CU_RESOURCE_TYPE_PITCH2D => {
                let d = description.res.pitch2D;
                let width = d.width as u64 * u64::from(d.numChannels) * channel_bytes(d.format).unwrap_or(4);
                Region::pitched(d.devPtr, width, d.height as u32, d.pitchInBytes as u64)
            }
            _ => return cx.not_modelled(),
        }
    };
    cx.log(&Op::ObjectCreate { object, region, writable });
}

pub(crate) unsafe fn cuTexObjectCreate(
    cx: &mut Cx<'_>,
    tex_object: *mut CUtexObject,
    res_desc: *const CUDA_RESOURCE_DESC,
    _tex_desc: *const CUDA_TEXTURE_DESC,
    _res_view_desc: *const CUDA_RESOURCE_VIEW_DESC,
) {
    // SAFETY: the call succeeded: it has read the descriptor and written the handle.
    let (object, description) = unsafe { (*tex_object, &*res_desc) };
    log_object(cx, object, description, false);
}

pub(crate) unsafe fn cuTexObjectDestroy(cx: &mut Cx<'_>, tex_object: CUtexObject) {
    cx.ends(Op::ObjectDestroy { object: tex_object });
    cx.ended();
}

pub(crate) unsafe fn cuSurfObjectCreate(
    cx: &mut Cx<'_>,
    surf_object: *mut CUsurfObject,
    res_desc: *const CUDA_RESOURCE_DESC,
) {
    // SAFETY: the call succeeded: it has read the descriptor and written the handle.
    let (object, description) = unsafe { (*surf_object, &*res_desc) };
    log_object(cx, object, description, true);
}

pub(crate) unsafe fn cuSurfObjectDestroy(cx: &mut Cx<'_>, surf_object: CUsurfObject) {
    cx.ends(Op::ObjectDestroy { object: surf_object });
    cx.ended();
}
