//! Arrays, texture objects and surface objects.

use cuda_sys::*;

use crate::api::*;
use crate::handles::handle_of;
use crate::memory::array::{ARRAYS, Array, MIPMAPPED, Mipmapped, refuse};
use crate::memory::texture::{RETIRED, TEXTURE_OBJECTS, TextureObject};

/// The object is gone for calls that follow. Kernels that were launched before may still read
/// through it, as on a device, which keeps its descriptors apart from the host's: programs destroy
/// an object right behind the launch (NV12toBGRandResize of NVIDIA's samples).
fn destroy(object: u64) -> Res {
    let sched = crate::sched::get();
    // First kept, then removed: a kernel under way finds it at every moment.
    RETIRED.retire(TEXTURE_OBJECTS.get(object as usize)?, sched.all_tails(), |op| sched.is_done(op));
    TEXTURE_OBJECTS.remove(object as usize)?;
    Ok(())
}

fn create(out: *mut CUarray, descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> Res {
    let ctx = thread::context()?;
    put(out, CUarray::from_bits(handle_of(&Array::create(ctx.owner().id, ctx.device, descriptor)?)))
}

abi! {
    uncaptured fn [cuArrayCreate_v2 plain](_z, out: *mut CUarray, d: *const CUDA_ARRAY_DESCRIPTOR) {
        let d = get(d)?;
        let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
            Width: d.Width, Height: d.Height, Depth: 0, Format: d.Format, NumChannels: d.NumChannels, Flags: 0,
        };
        create(out, &descriptor)
    }
    uncaptured fn [cuArray3DCreate_v2 plain](_z, out: *mut CUarray, d: *const CUDA_ARRAY3D_DESCRIPTOR) {
        create(out, &get(d)?)
    }
    uncaptured fn [cuMipmappedArrayCreate plain](
        _z, out: *mut CUmipmappedArray, d: *const CUDA_ARRAY3D_DESCRIPTOR, levels: c_uint
    ) {
        let ctx = thread::context()?;
        let mipmapped = Mipmapped::create(ctx.owner().id, ctx.device, &get(d)?, levels)?;
        put(out, CUmipmappedArray::from_bits(handle_of(&mipmapped)))
    }
    call fn [cuMipmappedArrayGetLevel plain](_z, out: *mut CUarray, mipmapped: CUmipmappedArray, level: c_uint) {
        let mipmapped = MIPMAPPED.get(mipmapped.bits())?;
        put(out, CUarray::from_bits(handle_of(mipmapped.levels.get(level as usize).ok_or(INVALID)?)))
    }
    uncaptured fn [cuMipmappedArrayDestroy plain](_z, mipmapped: CUmipmappedArray) {
        let mipmapped = MIPMAPPED.remove(mipmapped.bits())?;
        mipmapped.levels.iter().for_each(|level| drop(ARRAYS.remove(handle_of(level))));
        // As for other arrays.
        crate::sched::get().wait(&crate::sched::get().all_tails());
        drop(mipmapped);
        Ok(())
    }
    uncaptured fn [cuArrayDestroy plain](_z, array: CUarray) {
        if ARRAYS.get(array.bits())?.is_level {
            return Err(CUresult::ERROR_INVALID_HANDLE);
        }
        let array = ARRAYS.remove(array.bits())?;
        // Copies under way hold the array; kernels may use it through objects: wait for them.
        crate::sched::get().wait(&crate::sched::get().all_tails());
        drop(array);
        Ok(())
    }
    call fn [cuArrayGetDescriptor_v2 plain](_z, d: *mut CUDA_ARRAY_DESCRIPTOR, array: CUarray) {
        let full = ARRAYS.get(array.bits())?.descriptor;
        put(d, CUDA_ARRAY_DESCRIPTOR {
            Width: full.Width, Height: full.Height, Format: full.Format, NumChannels: full.NumChannels,
        })
    }
    call fn [cuArray3DGetDescriptor_v2 plain](_z, d: *mut CUDA_ARRAY3D_DESCRIPTOR, array: CUarray) {
        put(d, ARRAYS.get(array.bits())?.descriptor)
    }
    call fn [cuTexObjectCreate plain](
        _z, out: *mut CUtexObject, resource: *const CUDA_RESOURCE_DESC, texture: *const CUDA_TEXTURE_DESC,
        view: *const CUDA_RESOURCE_VIEW_DESC
    ) {
        thread::context()?;
        if !view.is_null() {
            return Err(refuse("a view of a texture's resource"));
        }
        put(out, TextureObject::create(get(resource)?, get(texture)?, false)?)
    }
    call fn [cuTexObjectDestroy plain](_z, object: CUtexObject) { destroy(object) }
    call fn [cuSurfObjectCreate plain](_z, out: *mut CUsurfObject, resource: *const CUDA_RESOURCE_DESC) {
        thread::context()?;
        let resource = get(resource)?;
        if resource.resType != CU_RESOURCE_TYPE_ARRAY {
            return Err(INVALID);
        }
        put(out, TextureObject::create(resource, CUDA_TEXTURE_DESC::zeroed(), true)?)
    }
    call fn [cuSurfObjectDestroy plain](_z, object: CUsurfObject) { destroy(object) }
    call fn [cuTexObjectGetResourceDesc plain](_z, resource: *mut CUDA_RESOURCE_DESC, object: CUtexObject) {
        put(resource, TEXTURE_OBJECTS.get(object as usize)?.resource)
    }
    call fn [cuTexObjectGetTextureDesc plain](_z, texture: *mut CUDA_TEXTURE_DESC, object: CUtexObject) {
        put(texture, TEXTURE_OBJECTS.get(object as usize)?.texture)
    }
    call fn [cuSurfObjectGetResourceDesc plain](_z, resource: *mut CUDA_RESOURCE_DESC, object: CUsurfObject) {
        put(resource, TEXTURE_OBJECTS.get(object as usize)?.resource)
    }
}
