//! CUDA arrays: memory whose layout only the device knows. Here it is rows of texels, one after the
//! other. The levels of a mipmapped array are arrays that follow each other in its memory.

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

/// All live mipmapped arrays. Their levels are among [`ARRAYS`].
pub(crate) static MIPMAPPED: Handles<Mipmapped> = Handles::new();

/// The memory of an array, or of all levels of a mipmapped one.
struct Storage(u64);

/// One array, or one level of a mipmapped array.
pub(crate) struct Array {
    /// How it was described.
    pub(crate) descriptor: CUDA_ARRAY3D_DESCRIPTOR,
    /// Where it lies.
    pub(crate) at: u64,
    /// Bytes of a texel.
    pub(crate) texel: u64,
    /// Whether it is a level, which goes away with its mipmapped array only.
    pub(crate) is_level: bool,
    _storage: Arc<Storage>,
}

/// A mipmapped array.
pub(crate) struct Mipmapped {
    /// Its levels, the largest first.
    pub(crate) levels: Vec<Arc<Array>>,
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

/// Whether the depth counts layers or faces, which all levels have.
fn is_layered(d: &CUDA_ARRAY3D_DESCRIPTOR) -> bool {
    d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) != 0
}

/// A level: each has half the extents of the one before it, rounded down, and one texel at least.
fn level_of(d: &CUDA_ARRAY3D_DESCRIPTOR, level: u32) -> CUDA_ARRAY3D_DESCRIPTOR {
    let halved = |extent: usize| if extent == 0 { 0 } else { (extent >> level).max(1) };
    let depth = if is_layered(d) { d.Depth } else { halved(d.Depth) };
    CUDA_ARRAY3D_DESCRIPTOR { Width: halved(d.Width), Height: halved(d.Height), Depth: depth, ..*d }
}

/// As many levels as there can be: down to one texel (cuda.h, cuMipmappedArrayCreate).
fn most_levels(d: &CUDA_ARRAY3D_DESCRIPTOR) -> u32 {
    let depth = if is_layered(d) { 0 } else { d.Depth };
    1 + d.Width.max(d.Height).max(depth).max(1).ilog2()
}

impl Array {
    /// Makes an array in a context, on a device.
    pub(crate) fn create(
        ctx: ContextId,
        device: u32,
        descriptor: &CUDA_ARRAY3D_DESCRIPTOR,
    ) -> Result<Arc<Array>, CUresult> {
        Array::create_levels(ctx, device, std::slice::from_ref(descriptor), false)?.pop().ok_or(CUresult::ERROR_UNKNOWN)
    }

    /// Makes arrays that follow each other in one piece of memory.
    fn create_levels(
        ctx: ContextId,
        device: u32,
        levels: &[CUDA_ARRAY3D_DESCRIPTOR],
        is_level: bool,
    ) -> Result<Vec<Arc<Array>>, CUresult> {
        let [descriptor, ..] = levels else { return Err(CUresult::ERROR_INVALID_VALUE) };
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
        let size_of = |d: &CUDA_ARRAY3D_DESCRIPTOR| {
            let extents = [d.Width, d.Height.max(1), d.Depth.max(1)];
            extents.iter().try_fold(texel, |size, &n| size.checked_mul(n as u64))
        };
        let size = levels.iter().try_fold(0u64, |all, level| all.checked_add(size_of(level)?));
        let size = size.ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
        let mut at = memory::get().alloc_device(ctx, device, size, 512, AllocationKind::Array)?;
        let storage = Arc::new(Storage(at));
        let mut made = Vec::new();
        for level in levels {
            let array = Array { descriptor: *level, at, texel, is_level, _storage: storage.clone() };
            at += array.size();
            made.push(Arc::new(array));
        }
        for array in &made {
            ARRAYS.insert(array.clone());
        }
        Ok(made)
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

    /// Whether the depth counts layers or faces.
    pub(crate) fn is_layered(&self) -> bool {
        is_layered(&self.descriptor)
    }
}

impl Mipmapped {
    /// Makes a mipmapped array in a context, on a device. `levels` beyond what its extents have are
    /// left out, and there is one at least (cuda.h, cuMipmappedArrayCreate).
    pub(crate) fn create(
        ctx: ContextId,
        device: u32,
        descriptor: &CUDA_ARRAY3D_DESCRIPTOR,
        levels: u32,
    ) -> Result<Arc<Mipmapped>, CUresult> {
        let levels: Vec<_> =
            (0..levels.clamp(1, most_levels(descriptor))).map(|level| level_of(descriptor, level)).collect();
        let mipmapped = Arc::new(Mipmapped { levels: Array::create_levels(ctx, device, &levels, true)? });
        MIPMAPPED.insert(mipmapped.clone());
        Ok(mipmapped)
    }

    /// Where it lies.
    pub(crate) fn at(&self) -> u64 {
        self.levels.first().map_or(0, |level| level.at)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // Held by copies under way, so nothing uses it any more; a destroyed context has freed it
        // already.
        let _ = memory::get().free_device(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_halve_until_one_texel_is_left() {
        let of = |width, height, depth, flags| {
            let d = CUDA_ARRAY3D_DESCRIPTOR {
                Width: width,
                Height: height,
                Depth: depth,
                Format: CU_AD_FORMAT_FLOAT,
                NumChannels: 1,
                Flags: flags,
            };
            let levels = (0..most_levels(&d)).map(|level| level_of(&d, level));
            levels.map(|d| (d.Width, d.Height, d.Depth)).collect::<Vec<_>>()
        };
        assert_eq!(of(5, 0, 0, 0), [(5, 0, 0), (2, 0, 0), (1, 0, 0)]);
        assert_eq!(of(8, 3, 0, 0), [(8, 3, 0), (4, 1, 0), (2, 1, 0), (1, 1, 0)]);
        assert_eq!(of(4, 2, 8, 0), [(4, 2, 8), (2, 1, 4), (1, 1, 2), (1, 1, 1)]);
        assert_eq!(of(4, 2, 8, CUDA_ARRAY3D_LAYERED), [(4, 2, 8), (2, 1, 8), (1, 1, 8)]);
        assert_eq!(of(2, 2, 6, CUDA_ARRAY3D_CUBEMAP), [(2, 2, 6), (1, 1, 6)]);
    }
}
