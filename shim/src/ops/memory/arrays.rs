//! Opaque arrays, and the texture and surface objects over them or over plain memory.
//!
//! Owns the region that an object stands for. A mipmapped array is one array whose levels follow
//! each other; what a texture object shows of it ends with the smallest level that it can sample.

use cuda_sys::*;
use trace::{Op, Region};

use crate::handles::arrays::{ArrayShape, channel_bytes};
use crate::ids::arrays_pools::{
    array_of, define_array, define_level, define_mipmapped, forget_array, forget_mipmapped,
};
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

pub(crate) unsafe fn cuMipmappedArrayCreate(
    cx: &mut Cx<'_>,
    handle: *mut CUmipmappedArray,
    mipmapped_array_desc: *const CUDA_ARRAY3D_DESCRIPTOR,
    num_mipmap_levels: c_uint,
) {
    // SAFETY: the call succeeded: it has read the descriptor and written the handle.
    let (handle, d) = unsafe { (*handle, &*mipmapped_array_desc) };
    let extent = (d.Width as u64, d.Height as u64, d.Depth as u64);
    let layered = d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) != 0;
    match ArrayShape::new(extent, d.Format, d.NumChannels) {
        Some(shape) => define_mipmapped(cx, handle, &shape, layered, num_mipmap_levels),
        None => cx.not_modelled(),
    }
}

pub(crate) unsafe fn cuMipmappedArrayGetLevel(
    cx: &mut Cx<'_>,
    level_array: *mut CUarray,
    mipmapped_array: CUmipmappedArray,
    level: c_uint,
) {
    // SAFETY: the call succeeded: it has written the handle.
    if !define_level(cx, unsafe { *level_array }, mipmapped_array, level) {
        cx.not_modelled();
    }
}

pub(crate) unsafe fn cuMipmappedArrayDestroy(cx: &mut Cx<'_>, mipmapped_array: CUmipmappedArray) {
    let known = forget_mipmapped(cx, mipmapped_array);
    // The host waits also for one that is not known.
    if cx.is_after() {
        cx.log(&Op::ArrayDestroy { array: known.unwrap_or(trace::ArrayId::NONE) });
    }
}

/// What texture objects may say of the levels that they show: the largest level of detail, unless
/// a view counts it from another level.
type MostDetail = Option<f32>;

fn log_object(cx: &mut Cx<'_>, object: u64, description: &CUDA_RESOURCE_DESC, most: MostDetail, writable: bool) {
    // SAFETY: the resource type says which member is valid.
    let region = unsafe {
        match description.resType {
            CU_RESOURCE_TYPE_ARRAY => array_of(cx, description.res.array.hArray).region(),
            CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                let handle = description.res.mipmap.hMipmappedArray.0 as u64;
                let known = cx.core().and_then(|core| core.handles.mipmapped.get(&handle));
                match known.map(|mipmapped| mipmapped.shown(most.unwrap_or(f32::NAN))) {
                    Some(region) => region,
                    None => return cx.not_modelled(),
                }
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
    tex_desc: *const CUDA_TEXTURE_DESC,
    res_view_desc: *const CUDA_RESOURCE_VIEW_DESC,
) {
    // SAFETY: the call succeeded: it has read the descriptors and written the handle.
    let (object, description, texture) = unsafe { (*tex_object, &*res_desc, &*tex_desc) };
    let most = res_view_desc.is_null().then_some(texture.maxMipmapLevelClamp);
    log_object(cx, object, description, most, false);
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
    log_object(cx, object, description, None, true);
}

pub(crate) unsafe fn cuSurfObjectDestroy(cx: &mut Cx<'_>, surf_object: CUsurfObject) {
    cx.ends(Op::ObjectDestroy { object: surf_object });
    cx.ended();
}
