//! Texture and surface objects: what kernels read and write through them, and where. An object has
//! an image for each mip level. How one is sampled (filters, address modes, faces) is in
//! `sampling`, which levels are in `levels`, what instructions ask for in `access`, what is sampled
//! for all lanes of a warp at once in `warp`, and what a tool is told of the texels in `noted`.
//!
//! A handle is a number of 20 bits, as on a device: machine code looks at its low word only.

pub(crate) mod access;
mod levels;
pub(crate) mod noted;
mod sampling;
mod warp;

use std::sync::{Arc, Mutex, MutexGuard};

use cuda_sys::*;

use crate::handles::Handles;
use crate::interp::AccessKind;
use crate::memory;
use crate::memory::array::{ARRAYS, Array, MIPMAPPED, channel_bytes, refuse};
use crate::sched::OpId;

/// All live texture and surface objects.
pub(crate) static TEXTURE_OBJECTS: Handles<TextureObject> = Handles::new();

/// The destroyed objects that kernels under way may still read through.
pub(crate) static RETIRED: Retired = Retired(Mutex::new(Vec::new()));

/// Objects that are destroyed, each with the operations that were unfinished then.
pub(crate) struct Retired(Mutex<Vec<(Arc<TextureObject>, Vec<OpId>)>>);

impl Retired {
    /// Keeps an object until the operations are over. Lets go of those whose operations are.
    pub(crate) fn retire(&self, object: Arc<TextureObject>, unfinished: Vec<OpId>, is_done: impl Fn(OpId) -> bool) {
        self.list().push((object, unfinished));
        // Asked without the lock: whoever answers may hold one of its own.
        let mut pending: Vec<OpId> = self.list().iter().flat_map(|(_, unfinished)| unfinished.clone()).collect();
        pending.retain(|&op| !is_done(op));
        self.list().retain(|(object, unfinished)| {
            let in_use = unfinished.iter().any(|op| pending.contains(op));
            if !in_use {
                object.release();
            }
            in_use
        });
    }

    fn list(&self) -> MutexGuard<'_, Vec<(Arc<TextureObject>, Vec<OpId>)>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn find(&self, object: u64) -> Option<Arc<TextureObject>> {
        self.list().iter().map(|(object, _)| object).find(|known| known.handle == object).cloned()
    }
}

/// What an object is bound to.
pub(crate) struct TextureObject {
    /// As the program described it.
    pub(crate) resource: CUDA_RESOURCE_DESC,
    /// As the program described it; all zeros for surfaces.
    pub(crate) texture: CUDA_TEXTURE_DESC,
    handle: u64,
    /// The levels, the largest first: one, unless the array is mipmapped.
    images: Vec<Image>,
    /// The array, or its first level: they share their memory.
    keep: Mutex<Option<Arc<Array>>>,
}

/// One level of an object: its texels, and how they are sampled.
struct Image {
    texture: CUDA_TEXTURE_DESC,
    /// Whether it is a surface.
    surface: bool,
    /// Whether the depth counts layers or faces.
    layered: bool,
    view: View,
}

/// The next handle. They come back when all have been given out.
static NEXT: Mutex<u64> = Mutex::new(1);
/// No handle is this large.
const MOST_HANDLES: u64 = 1 << 20;

/// The texels that an object reaches.
#[derive(Clone, Copy, Debug)]
struct View {
    at: u64,
    pitch: u64,
    layer: u64,
    /// Width, height, and depth or layers (six for each cube).
    pub(crate) size: [u64; 3],
    pub(crate) channels: u64,
    pub(crate) format: CUarray_format,
    /// It has a width only: compilers sample a line as an area, at height zero.
    pub(crate) line: bool,
}

impl View {
    fn of_array(array: &Array) -> View {
        let d = array.descriptor;
        View {
            at: array.at,
            pitch: array.pitch(),
            layer: array.layer(),
            size: [d.Width as u64, d.Height.max(1) as u64, d.Depth.max(1) as u64],
            channels: u64::from(d.NumChannels),
            format: d.Format,
            line: d.Height == 0,
        }
    }
}

// SAFETY: descriptors are plain data; the pointers in them are never followed.
unsafe impl Send for TextureObject {}
// SAFETY: as above.
unsafe impl Sync for TextureObject {}

impl TextureObject {
    /// Makes an object known and answers its handle.
    pub(crate) fn create(
        resource: CUDA_RESOURCE_DESC,
        texture: CUDA_TEXTURE_DESC,
        surface: bool,
    ) -> Result<u64, CUresult> {
        if texture.flags & CU_TRSF_SRGB != 0 {
            return Err(refuse("an sRGB texture"));
        }
        let (mut keep, mut lower) = (None, Vec::new());
        // SAFETY: the type says which member of the union is in use; all are plain data.
        let view = unsafe {
            match resource.resType {
                CU_RESOURCE_TYPE_LINEAR => {
                    let linear = resource.res.linear;
                    let channel = channel_bytes(linear.format).ok_or_else(|| refuse("a texture's format"))?;
                    let texel = channel * u64::from(linear.numChannels.max(1));
                    let size = [linear.sizeInBytes as u64 / texel, 1, 1];
                    View {
                        at: linear.devPtr,
                        pitch: linear.sizeInBytes as u64,
                        layer: 0,
                        size,
                        channels: u64::from(linear.numChannels),
                        format: linear.format,
                        line: true,
                    }
                }
                CU_RESOURCE_TYPE_PITCH2D => {
                    let p = resource.res.pitch2D;
                    channel_bytes(p.format).ok_or_else(|| refuse("a texture's format"))?;
                    View {
                        at: p.devPtr,
                        pitch: p.pitchInBytes as u64,
                        layer: 0,
                        size: [p.width as u64, p.height as u64, 1],
                        channels: u64::from(p.numChannels),
                        format: p.format,
                        line: false,
                    }
                }
                CU_RESOURCE_TYPE_ARRAY => {
                    let array = ARRAYS.get(resource.res.array.hArray.bits())?;
                    let view = View::of_array(&array);
                    keep = Some(array);
                    view
                }
                CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                    let mipmapped = MIPMAPPED.get(resource.res.mipmap.hMipmappedArray.bits())?;
                    // cuda.h, cuTexObjectCreate: "for CUDA mipmapped arrays, this flag has to be
                    // set".
                    if texture.flags & CU_TRSF_NORMALIZED_COORDINATES == 0 {
                        return Err(CUresult::ERROR_INVALID_VALUE);
                    }
                    // Which instructions add it, the manuals do not say.
                    if texture.mipmapLevelBias != 0.0 {
                        return Err(refuse("a bias of mip levels"));
                    }
                    let [first, others @ ..] = &mipmapped.levels[..] else {
                        return Err(CUresult::ERROR_INVALID_VALUE);
                    };
                    lower = others.iter().map(|level| View::of_array(level)).collect();
                    keep = Some(first.clone());
                    View::of_array(first)
                }
                _ => return Err(CUresult::ERROR_INVALID_VALUE),
            }
        };
        if !matches!(view.channels, 1 | 2 | 4) || (keep.is_none() && memory::get().find(view.at).is_none()) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let mut next = NEXT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let used = |handle: u64| TEXTURE_OBJECTS.find(handle as usize).is_some() || RETIRED.find(handle).is_some();
        let after = |handle: u64| handle % (MOST_HANDLES - 1) + 1;
        let mut handle = *next;
        while used(handle) {
            handle = after(handle);
            if handle == *next {
                return Err(CUresult::ERROR_OUT_OF_MEMORY);
            }
        }
        *next = after(handle);
        let layered = keep.as_ref().is_some_and(|array| array.is_layered());
        let image = |view| Image { texture, surface, layered, view };
        let images = std::iter::once(view).chain(lower).map(image).collect();
        let object = TextureObject { resource, texture, handle, images, keep: Mutex::new(keep) };
        TEXTURE_OBJECTS.insert_as(handle as usize, Arc::new(object));
        Ok(handle)
    }

    /// Ends the object's hold on its array.
    pub(crate) fn release(&self) {
        self.keep.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    }
}

impl Image {
    /// Bytes of a texel.
    fn texel_bytes(&self) -> u64 {
        channel_bytes(self.view.format).unwrap_or(1) * self.view.channels
    }

    fn address_of(&self, at: [u64; 3]) -> u64 {
        let view = &self.view;
        view.at + at[2] * view.layer + at[1] * view.pitch + at[0] * self.texel_bytes()
    }

    /// One texel: the raw bits of four channels, missing ones zero (and one for the last, as
    /// devices answer).
    fn texel(&self, at: Option<[u64; 3]>) -> Result<[u64; 4], String> {
        let Some(at) = at else { return Ok(self.texture.borderColor.map(|c| u64::from(c.to_bits()))) };
        let mut out = [0u64; 4];
        let channel = channel_bytes(self.view.format).unwrap_or(1) as usize;
        let channels = (self.view.channels as usize).min(out.len());
        let mut whole = [0u8; 32];
        let from = self.address_of(at);
        let into = &mut whole[..channel * channels];
        noted::note(AccessKind::Read, from, into.len() as u64);
        memory::get().space.read(from, into).map_err(|fault| format!("no memory at 0x{:x}", fault.addr))?;
        for (out, own) in out.iter_mut().zip(into.chunks_exact(channel)) {
            let mut bytes = [0u8; 8];
            bytes[..channel].copy_from_slice(own);
            *out = self.decode(u64::from_le_bytes(bytes));
        }
        Ok(out)
    }

    /// Whether integers come out as fractions of one.
    fn normalises(&self) -> bool {
        let narrow = channel_bytes(self.view.format).is_some_and(|bytes| bytes < 4);
        narrow && !self.is_float() && self.texture.flags & CU_TRSF_READ_AS_INTEGER == 0 && !self.surface
    }

    fn is_float(&self) -> bool {
        matches!(self.view.format, CU_AD_FORMAT_FLOAT | CU_AD_FORMAT_HALF)
    }

    fn decode(&self, raw: u64) -> u64 {
        let float = |value: f32| u64::from(value.to_bits());
        match self.view.format {
            CU_AD_FORMAT_HALF if !self.surface => float(half(raw as u16)),
            CU_AD_FORMAT_UNSIGNED_INT8 if self.normalises() => float(raw as u8 as f32 / 255.0),
            CU_AD_FORMAT_UNSIGNED_INT16 if self.normalises() => float(raw as u16 as f32 / 65535.0),
            CU_AD_FORMAT_SIGNED_INT8 if self.normalises() => float((raw as i8 as f32 / 127.0).max(-1.0)),
            CU_AD_FORMAT_SIGNED_INT16 if self.normalises() => float((raw as i16 as f32 / 32767.0).max(-1.0)),
            CU_AD_FORMAT_SIGNED_INT8 => u64::from(raw as i8 as i32 as u32),
            CU_AD_FORMAT_SIGNED_INT16 => u64::from(raw as i16 as i32 as u32),
            _ => raw,
        }
    }

    /// A fetch at integer coordinates, which ignores filter and address mode: outside is zero.
    fn fetch(&self, coordinates: &[i64]) -> Result<[u64; 4], String> {
        let mut at = [0u64; 3];
        for (axis, &c) in coordinates.iter().enumerate().take(3) {
            if c < 0 || c as u64 >= self.view.size[axis] {
                return Ok([0; 4]);
            }
            at[axis] = c as u64;
        }
        self.texel(Some(at))
    }

    /// Address of a surface access; the first coordinate counts bytes, layers and faces come last.
    /// What is outside is brought inside if `clamp`, else there is no address.
    fn surface_address(&self, coordinates: &[i64], bytes: u64, clamp: bool) -> Option<u64> {
        let row = self.view.size[0] * self.texel_bytes();
        let last = [row.checked_sub(bytes)?, self.view.size[1] - 1, self.view.size[2] - 1];
        let mut at = [0u64; 3];
        for (axis, &c) in coordinates.iter().enumerate().take(3) {
            let inside = if clamp { c.clamp(0, last[axis] as i64) } else { c };
            at[axis] = u64::try_from(inside).ok().filter(|c| *c <= last[axis])?;
        }
        Some(self.address_of([0, at[1], at[2]]) + at[0])
    }
}

fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
    }
}
