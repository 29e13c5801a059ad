//! CUDA arrays: memory whose layout only the device knows. Here it is rows of texels, one after the
//! other.

use std::sync::Arc;

use cuda_sys::*;

use crate::handles::Handles;
use crate::memory::{self, AllocationKind};
use crate::sched::ContextId;

/// How the reason ends when an instruction is the simulator's lack, and no error of the kernel.
pub(crate) const NOT_SIMULATED: &str = "is not simulated";

/// Says what is not simulated.
pub(crate) fn refuse(what: &str) -> CUresult {
    crate::status::complain(&format!("{what} {NOT_SIMULATED}"));
    CUresult::ERROR_NOT_SUPPORTED
}

/// All live arrays.
pub(crate) static ARRAYS: Handles<Array> = Handles::new();

/// One array.
pub(crate) struct Array {
    /// How it was described.
    pub(crate) descriptor: CUDA_ARRAY3D_DESCRIPTOR,
    /// Where it lies.
    pub(crate) at: u64,
    /// Bytes of a texel.
    pub(crate) texel: u64,
}

// SAFETY: the descriptor is plain numbers.
unsafe impl Send for Array {}
// SAFETY: as above; nothing changes after creation.
unsafe impl Sync for Array {}

/// Bytes of one channel of a format, or `None` for formats that are not simulated.
pub(crate) fn channel_bytes(format: CUarray_format) -> Option<u64> {
    Some(match format {
        CU_AD_FORMAT_UNSIGNED_INT8 | CU_AD_FORMAT_SIGNED_INT8 => 1,
        CU_AD_FORMAT_UNSIGNED_INT16 | CU_AD_FORMAT_SIGNED_INT16 | CU_AD_FORMAT_HALF => 2,
        CU_AD_FORMAT_UNSIGNED_INT32 | CU_AD_FORMAT_SIGNED_INT32 | CU_AD_FORMAT_FLOAT => 4,
        _ => return None,
    })
}

/// Whether the extents are those of its kind: layers are counted by the depth, the six faces of a
/// cube too.
fn shape_fits(d: &CUDA_ARRAY3D_DESCRIPTOR) -> bool {
    let (layered, cube) = (d.Flags & CUDA_ARRAY3D_LAYERED != 0, d.Flags & CUDA_ARRAY3D_CUBEMAP != 0);
    match (layered, cube) {
        (false, false) => d.Depth == 0 || d.Height != 0,
        (true, false) => d.Depth != 0,
        (false, true) => d.Width == d.Height && d.Depth == 6,
        (true, true) => d.Width == d.Height && d.Depth != 0 && d.Depth.is_multiple_of(6),
    }
}

impl Array {
    /// Makes an array in a context, on a device.
    pub(crate) fn create(
        ctx: ContextId,
        device: u32,
        descriptor: &CUDA_ARRAY3D_DESCRIPTOR,
    ) -> Result<Arc<Array>, CUresult> {
        let channel = channel_bytes(descriptor.Format).ok_or_else(|| refuse("an array's format"))?;
        if !matches!(descriptor.NumChannels, 1 | 2 | 4) || descriptor.Width == 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        const WITHOUT_MEMORY: u32 = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
        if descriptor.Flags & WITHOUT_MEMORY != 0 {
            return Err(refuse("an array without memory of its own"));
        }
        if !shape_fits(descriptor) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let texel = channel * u64::from(descriptor.NumChannels);
        let size = [descriptor.Width, descriptor.Height.max(1), descriptor.Depth.max(1)]
            .iter()
            .try_fold(texel, |size, &n| size.checked_mul(n as u64))
            .ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
        let at = memory::get().alloc_device(ctx, device, size, 512, AllocationKind::Array)?;
        let array = Arc::new(Array { descriptor: *descriptor, at, texel });
        ARRAYS.insert(array.clone());
        Ok(array)
    }

    /// Bytes of a row.
    pub(crate) fn pitch(&self) -> u64 {
        self.descriptor.Width as u64 * self.texel
    }

    /// Bytes of a layer.
    pub(crate) fn layer(&self) -> u64 {
        self.pitch() * self.descriptor.Height.max(1) as u64
    }

    /// Bytes of everything.
    pub(crate) fn size(&self) -> u64 {
        self.layer() * self.descriptor.Depth.max(1) as u64
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        // Held by copies under way, so nothing uses it any more; a destroyed context has freed it
        // already.
        let _ = memory::get().free_device(self.at);
    }
}
