//! Arrays, texture objects and surface objects.

use cuda_sys::*;

use crate::thread_state::{INVALID, Res, get, get_start, put};

/// The driver's format and number of channels.
fn format(d: &cudaChannelFormatDesc) -> Result<(CUarray_format, c_uint), cudaError> {
    let channels = [d.x, d.y, d.z, d.w].iter().take_while(|&&bits| bits != 0).count() as c_uint;
    if [d.y, d.z, d.w].iter().any(|&bits| bits != 0 && bits != d.x) {
        return Err(cudaErrorInvalidChannelDescriptor);
    }
    let format = match (d.f, d.x) {
        (cudaChannelFormatKindUnsigned, 8) => CU_AD_FORMAT_UNSIGNED_INT8,
        (cudaChannelFormatKindUnsigned, 16) => CU_AD_FORMAT_UNSIGNED_INT16,
        (cudaChannelFormatKindUnsigned, 32) => CU_AD_FORMAT_UNSIGNED_INT32,
        (cudaChannelFormatKindSigned, 8) => CU_AD_FORMAT_SIGNED_INT8,
        (cudaChannelFormatKindSigned, 16) => CU_AD_FORMAT_SIGNED_INT16,
        (cudaChannelFormatKindSigned, 32) => CU_AD_FORMAT_SIGNED_INT32,
        (cudaChannelFormatKindFloat, 16) => CU_AD_FORMAT_HALF,
        (cudaChannelFormatKindFloat, 32) => CU_AD_FORMAT_FLOAT,
        // The kinds up to "none" are the simple ones.
        (kind, _) if kind.0 > cudaChannelFormatKindNone.0 => {
            return Err(refused("compressed and normalised channel formats are not simulated"));
        }
        _ => return Err(cudaErrorInvalidChannelDescriptor),
    };
    Ok((format, channels))
}

fn channel(d: &CUDA_ARRAY3D_DESCRIPTOR) -> cudaChannelFormatDesc {
    let (f, bits) = match d.Format {
        CU_AD_FORMAT_UNSIGNED_INT8 => (cudaChannelFormatKindUnsigned, 8),
        CU_AD_FORMAT_UNSIGNED_INT16 => (cudaChannelFormatKindUnsigned, 16),
        CU_AD_FORMAT_UNSIGNED_INT32 => (cudaChannelFormatKindUnsigned, 32),
        CU_AD_FORMAT_SIGNED_INT8 => (cudaChannelFormatKindSigned, 8),
        CU_AD_FORMAT_SIGNED_INT16 => (cudaChannelFormatKindSigned, 16),
        CU_AD_FORMAT_SIGNED_INT32 => (cudaChannelFormatKindSigned, 32),
        CU_AD_FORMAT_HALF => (cudaChannelFormatKindFloat, 16),
        _ => (cudaChannelFormatKindFloat, 32),
    };
    let at = |n: c_uint| if d.NumChannels > n { bits } else { 0 };
    cudaChannelFormatDesc { x: at(0), y: at(1), z: at(2), w: at(3), f }
}

fn descriptor(array: CUarray) -> Result<CUDA_ARRAY3D_DESCRIPTOR, cudaError> {
    let mut d = CUDA_ARRAY3D_DESCRIPTOR::zeroed();
    cu!(cuArray3DGetDescriptor_v2(&mut d, array))?;
    Ok(d)
}

/// Bytes of a texel of an array.
pub(crate) fn texel(array: CUarray) -> Result<usize, cudaError> {
    let c = channel(&descriptor(array)?);
    Ok((c.x + c.y + c.z + c.w) as usize / 8)
}

fn described(
    desc: *const cudaChannelFormatDesc,
    extent: cudaExtent,
    flags: c_uint,
) -> Result<CUDA_ARRAY3D_DESCRIPTOR, cudaError> {
    let (format, channels) = format(&get(desc)?)?;
    Ok(CUDA_ARRAY3D_DESCRIPTOR {
        Width: extent.width,
        Height: extent.height,
        Depth: extent.depth,
        Format: format,
        NumChannels: channels,
        Flags: flags,
    })
}

fn create(out: *mut CUarray, desc: *const cudaChannelFormatDesc, extent: cudaExtent, flags: c_uint) -> Res {
    let d = described(desc, extent, flags)?;
    cu!(cuArray3DCreate_v2(out, &d))
}

fn resource(from: &cudaResourceDesc) -> Result<CUDA_RESOURCE_DESC, cudaError> {
    let mut to = CUDA_RESOURCE_DESC::zeroed();
    // SAFETY: the type says which member of the unions is in use; all are plain data.
    unsafe {
        match from.resType {
            cudaResourceTypeArray => {
                to.resType = CU_RESOURCE_TYPE_ARRAY;
                to.res.array.hArray = from.res.array.array;
            }
            cudaResourceTypeLinear => {
                let linear = from.res.linear;
                let (format, numChannels) = format(&linear.desc)?;
                to.resType = CU_RESOURCE_TYPE_LINEAR;
                to.res.linear = CUDA_RESOURCE_DESC_v1_res_linear {
                    devPtr: linear.devPtr as u64,
                    format,
                    numChannels,
                    sizeInBytes: linear.sizeInBytes,
                };
            }
            cudaResourceTypePitch2D => {
                let p = from.res.pitch2D;
                let (format, numChannels) = format(&p.desc)?;
                to.resType = CU_RESOURCE_TYPE_PITCH2D;
                to.res.pitch2D = CUDA_RESOURCE_DESC_v1_res_pitch2D {
                    devPtr: p.devPtr as u64,
                    format,
                    numChannels,
                    width: p.width,
                    height: p.height,
                    pitchInBytes: p.pitchInBytes,
                };
            }
            cudaResourceTypeMipmappedArray => {
                to.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
                to.res.mipmap.hMipmappedArray = from.res.mipmap.mipmap;
            }
            _ => return Err(INVALID),
        }
    }
    Ok(to)
}

fn refused(why: &str) -> cudaError {
    sim_driver_link::refused(why);
    cudaErrorNotSupported
}

fn texture(from: &cudaTextureDesc) -> CUDA_TEXTURE_DESC {
    let mut flags = 0;
    if from.readMode == cudaReadModeElementType {
        flags |= CU_TRSF_READ_AS_INTEGER;
    }
    if from.normalizedCoords != 0 {
        flags |= CU_TRSF_NORMALIZED_COORDINATES;
    }
    if from.sRGB != 0 {
        flags |= CU_TRSF_SRGB;
    }
    if from.seamlessCubemap != 0 {
        flags |= CU_TRSF_SEAMLESS_CUBEMAP;
    }
    CUDA_TEXTURE_DESC {
        addressMode: from.addressMode.map(|mode| CUaddress_mode(mode.0)),
        filterMode: CUfilter_mode(from.filterMode.0),
        flags,
        maxAnisotropy: from.maxAnisotropy,
        mipmapFilterMode: CUfilter_mode(from.mipmapFilterMode.0),
        mipmapLevelBias: from.mipmapLevelBias,
        minMipmapLevelClamp: from.minMipmapLevelClamp,
        maxMipmapLevelClamp: from.maxMipmapLevelClamp,
        borderColor: from.borderColor,
        ..CUDA_TEXTURE_DESC::zeroed()
    }
}

// SAFETY: the name and signature of the runtime's function, which answers a struct and no status.
#[unsafe(no_mangle)]
extern "C" fn cudaCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    f: cudaChannelFormatKind,
) -> cudaChannelFormatDesc {
    cudaChannelFormatDesc { x, y, z, w, f }
}

rt! {
    ctx fn [cudaMallocArray plain](
        _pt, out: *mut CUarray, desc: *const cudaChannelFormatDesc, width: usize, height: usize, flags: c_uint
    ) {
        create(out, desc, cudaExtent { width, height, depth: 0 }, flags)
    }
    ctx fn [cudaMalloc3DArray plain](
        _pt, out: *mut CUarray, desc: *const cudaChannelFormatDesc, extent: cudaExtent, flags: c_uint
    ) {
        create(out, desc, extent, flags)
    }
    ctx fn [cudaFreeArray plain](_pt, array: CUarray) {
        if array.is_null() { Ok(()) } else { cu!(cuArrayDestroy(array)) }
    }
    ctx fn [cudaMallocMipmappedArray plain](
        _pt, out: *mut CUmipmappedArray, desc: *const cudaChannelFormatDesc, extent: cudaExtent, levels: c_uint,
        flags: c_uint
    ) {
        let d = described(desc, extent, flags)?;
        cu!(cuMipmappedArrayCreate(out, &d, levels))
    }
    ctx fn [cudaGetMipmappedArrayLevel plain](
        _pt, out: *mut CUarray, mipmapped: CUmipmappedArray, level: c_uint
    ) {
        cu!(cuMipmappedArrayGetLevel(out, mipmapped, level))
    }
    ctx fn [cudaFreeMipmappedArray plain](_pt, mipmapped: CUmipmappedArray) {
        if mipmapped.is_null() { Ok(()) } else { cu!(cuMipmappedArrayDestroy(mipmapped)) }
    }
    ctx fn [cudaArrayGetInfo plain](
        _pt, desc: *mut cudaChannelFormatDesc, extent: *mut cudaExtent, flags: *mut c_uint, array: CUarray
    ) {
        let d = descriptor(array)?;
        if !desc.is_null() {
            put(desc, channel(&d))?;
        }
        if !extent.is_null() {
            put(extent, cudaExtent { width: d.Width, height: d.Height, depth: d.Depth })?;
        }
        if flags.is_null() { Ok(()) } else { put(flags, d.Flags) }
    }
    ctx fn [cudaGetChannelDesc plain](_pt, desc: *mut cudaChannelFormatDesc, array: CUarray) {
        put(desc, channel(&descriptor(array)?))
    }
    ctx fn [cudaCreateTextureObject plain](
        _pt, out: *mut u64, res: *const cudaResourceDesc, tex: *const cudaTextureDesc,
        view: *const cudaResourceViewDesc
    ) {
        // Version 11 has no last field.
        let old = crate::version::major() == 11;
        let tex = if old { get_start(tex, std::mem::offset_of!(cudaTextureDesc, seamlessCubemap)) } else { get(tex) };
        let (resource, texture) = (resource(&get(res)?)?, texture(&tex?));
        cu!(cuTexObjectCreate(out, &resource, &texture, view.cast()))
    }
    ctx fn [cudaDestroyTextureObject plain](_pt, object: u64) {
        if object == 0 { Ok(()) } else { cu!(cuTexObjectDestroy(object)) }
    }
    ctx fn [cudaCreateSurfaceObject plain](_pt, out: *mut u64, res: *const cudaResourceDesc) {
        let res = get(res)?;
        if res.resType != cudaResourceTypeArray {
            return Err(INVALID);
        }
        cu!(cuSurfObjectCreate(out, &resource(&res)?))
    }
    ctx fn [cudaDestroySurfaceObject plain](_pt, object: u64) {
        if object == 0 { Ok(()) } else { cu!(cuSurfObjectDestroy(object)) }
    }
}
