//! Texture and surface objects: what kernels read and write through them.

use std::sync::Arc;
use std::sync::Mutex;

use cuda_sys::*;

use crate::handles::Handles;
use crate::interp::TextureRequest;
use crate::memory;
use crate::memory::array::{ARRAYS, Array, channel_bytes};

/// All live texture and surface objects.
pub static TEXTURE_OBJECTS: Handles<TextureObject> = Handles::new();

/// What an object is bound to.
pub struct TextureObject {
    /// As the program described it.
    pub resource: CUDA_RESOURCE_DESC,
    /// As the program described it; all zeros for surfaces.
    pub texture: CUDA_TEXTURE_DESC,
    /// Whether it is a surface.
    pub surface: bool,
    view: View,
    keep: Mutex<Option<Arc<Array>>>,
}

/// The texels that an object reaches.
#[derive(Clone, Copy, Debug)]
struct View {
    at: u64,
    pitch: u64,
    layer: u64,
    size: [u64; 3],
    channels: u64,
    format: CUarray_format,
}

// SAFETY: descriptors are plain data; the pointers in them are never followed.
unsafe impl Send for TextureObject {}
// SAFETY: as above.
unsafe impl Sync for TextureObject {}

/// How the reason ends when an instruction is the simulator's lack, and no error of the kernel.
pub const NOT_SIMULATED: &str = "is not simulated";

const UNSUPPORTED: CUresult = CUresult::ERROR_NOT_SUPPORTED;

impl TextureObject {
    /// Makes an object known and answers its handle.
    pub fn create(resource: CUDA_RESOURCE_DESC, texture: CUDA_TEXTURE_DESC, surface: bool) -> Result<u64, CUresult> {
        let mut keep = None;
        // SAFETY: the type says which member of the union is in use; all are plain data.
        let view = unsafe {
            match resource.resType {
                CU_RESOURCE_TYPE_LINEAR => {
                    let linear = resource.res.linear;
                    let channel = channel_bytes(linear.format).ok_or(UNSUPPORTED)?;
                    let texel = channel * u64::from(linear.numChannels.max(1));
                    let size = [linear.sizeInBytes as u64 / texel, 1, 1];
                    View {
                        at: linear.devPtr,
                        pitch: linear.sizeInBytes as u64,
                        layer: 0,
                        size,
                        channels: u64::from(linear.numChannels),
                        format: linear.format,
                    }
                }
                CU_RESOURCE_TYPE_PITCH2D => {
                    let p = resource.res.pitch2D;
                    channel_bytes(p.format).ok_or(UNSUPPORTED)?;
                    View {
                        at: p.devPtr,
                        pitch: p.pitchInBytes as u64,
                        layer: 0,
                        size: [p.width as u64, p.height as u64, 1],
                        channels: u64::from(p.numChannels),
                        format: p.format,
                    }
                }
                CU_RESOURCE_TYPE_ARRAY => {
                    let array = ARRAYS.get(resource.res.array.hArray.bits())?;
                    let d = array.descriptor;
                    let size = [d.Width as u64, d.Height.max(1) as u64, d.Depth.max(1) as u64];
                    let view = View {
                        at: array.at,
                        pitch: array.pitch(),
                        layer: array.layer(),
                        size,
                        channels: u64::from(d.NumChannels),
                        format: d.Format,
                    };
                    keep = Some(array);
                    view
                }
                _ => return Err(UNSUPPORTED),
            }
        };
        if !matches!(view.channels, 1 | 2 | 4) || (keep.is_none() && memory::get().find(view.at).is_none()) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let object = TextureObject { resource, texture, surface, view, keep: Mutex::new(keep) };
        Ok(TEXTURE_OBJECTS.insert(Arc::new(object)) as u64)
    }

    fn address_of(&self, at: [u64; 3]) -> u64 {
        let view = &self.view;
        let texel = channel_bytes(view.format).unwrap_or(1) * view.channels;
        view.at + at[2] * view.layer + at[1] * view.pitch + at[0] * texel
    }

    /// A coordinate brought into range as the address mode says; `None` for the border.
    fn wrap(&self, axis: usize, at: i64) -> Option<u64> {
        let size = self.view.size[axis] as i64;
        match self.texture.addressMode[axis] {
            CU_TR_ADDRESS_MODE_WRAP => Some(at.rem_euclid(size) as u64),
            CU_TR_ADDRESS_MODE_MIRROR => {
                let at = at.rem_euclid(2 * size);
                Some(if at < size { at } else { 2 * size - 1 - at } as u64)
            }
            CU_TR_ADDRESS_MODE_BORDER => (0..size).contains(&at).then_some(at as u64),
            _ => Some(at.clamp(0, size - 1) as u64),
        }
    }

    /// One texel: the raw bits of four channels, missing ones zero (and one for the last, as
    /// devices answer).
    fn texel(&self, at: Option<[u64; 3]>) -> Result<[u64; 4], String> {
        let Some(at) = at else { return Ok(self.texture.borderColor.map(|c| u64::from(c.to_bits()))) };
        let mut out = [0u64; 4];
        let channel = channel_bytes(self.view.format).unwrap_or(1);
        for n in 0..self.view.channels {
            let mut bytes = [0u8; 8];
            let from = self.address_of(at) + n * channel;
            let into = &mut bytes[..channel as usize];
            memory::get().space.read(from, into).map_err(|fault| format!("no memory at 0x{:x}", fault.addr))?;
            out[n as usize] = self.decode(u64::from_le_bytes(bytes));
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
    pub fn fetch(&self, coordinates: &[i64]) -> Result<[u64; 4], String> {
        let mut at = [0u64; 3];
        for (axis, &c) in coordinates.iter().enumerate().take(3) {
            if c < 0 || c as u64 >= self.view.size[axis] {
                return Ok([0; 4]);
            }
            at[axis] = c as u64;
        }
        self.texel(Some(at))
    }

    /// A sample at real coordinates, filtered as described.
    pub fn sample(&self, coordinates: &[f32]) -> Result<[u64; 4], String> {
        let normal = self.texture.flags & CU_TRSF_NORMALIZED_COORDINATES != 0;
        let axes = coordinates.len().min(3);
        let scale =
            |axis: usize| if normal { coordinates[axis] * self.view.size[axis] as f32 } else { coordinates[axis] };
        if self.texture.filterMode != CU_TR_FILTER_MODE_LINEAR || !(self.is_float() || self.normalises()) {
            let mut at = [0u64; 3];
            for (axis, at) in at.iter_mut().enumerate().take(axes) {
                match self.wrap(axis, scale(axis).floor() as i64) {
                    Some(inside) => *at = inside,
                    None => return self.texel(None),
                }
            }
            return self.texel(Some(at));
        }
        let mut sum = [0f32; 4];
        for corner in 0..1usize << axes {
            let (mut weight, mut at) = (1f32, Some([0u64; 3]));
            for axis in 0..axes {
                let centre = scale(axis) - 0.5;
                let (low, high) = (centre.floor(), corner >> axis & 1 == 1);
                // Devices keep eight bits of the fraction.
                let part = ((centre - low) * 256.0).round() / 256.0;
                weight *= if high { part } else { 1.0 - part };
                let inside = self.wrap(axis, low as i64 + i64::from(high));
                at = at.zip(inside).map(|(mut at, inside)| {
                    at[axis] = inside;
                    at
                });
            }
            if weight != 0.0 {
                let texel = self.texel(at)?;
                for (sum, bits) in sum.iter_mut().zip(texel) {
                    *sum += weight * f32::from_bits(bits as u32);
                }
            }
        }
        Ok(sum.map(|value| u64::from(value.to_bits())))
    }

    /// Address of a surface access; the first coordinate counts bytes. `None` is outside.
    pub fn surface_address(&self, coordinates: &[i64], bytes: u64) -> Option<u64> {
        let row = self.view.size[0] * self.view.channels * channel_bytes(self.view.format)?;
        let x = u64::try_from(*coordinates.first()?).ok().filter(|x| x + bytes <= row)?;
        let mut at = [0u64; 3];
        for (axis, &c) in coordinates.iter().enumerate().take(3).skip(1) {
            at[axis] = u64::try_from(c).ok().filter(|c| *c < self.view.size[axis])?;
        }
        Some(self.address_of(at) + x)
    }

    /// Ends the object's hold on its array.
    pub fn release(&self) {
        self.keep.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
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

/// Answers a texture or surface instruction: the opcode names the geometry, the type of the
/// coordinates and the width of surface accesses.
pub fn serve(request: &TextureRequest<'_>) -> Result<[u64; 4], String> {
    let unsupported = || format!("{} {NOT_SIMULATED}", request.opcode);
    let object = TEXTURE_OBJECTS.find(request.object as usize).ok_or("not a texture or surface object")?;
    let parts: Vec<&str> = request.opcode.split('.').collect();
    let dimensions = parts.iter().find_map(|part| match *part {
        "1d" => Some(1),
        "2d" => Some(2),
        "3d" => Some(3),
        _ => None,
    });
    let axes: usize = dimensions.ok_or_else(unsupported)?;
    let given = request.coordinates.get(..axes).ok_or_else(unsupported)?;
    let whole: Vec<i64> = given.iter().map(|&bits| i64::from(bits as i32)).collect();
    match parts[0] {
        "tex" if parts.iter().any(|part| matches!(*part, "grad")) => Err(unsupported()),
        "tex" => match parts.last() {
            Some(&"s32") => object.fetch(&whole),
            Some(&"f32") => object.sample(&given.iter().map(|&bits| f32::from_bits(bits)).collect::<Vec<_>>()),
            _ => Err(unsupported()),
        },
        "suld" | "sust" => {
            let width = parts.iter().find_map(|part| match *part {
                "b8" => Some(1u64),
                "b16" => Some(2),
                "b32" => Some(4),
                "b64" => Some(8),
                _ => None,
            });
            let width = width.ok_or_else(unsupported)?;
            let count = if parts.contains(&"v4") {
                4
            } else if parts.contains(&"v2") {
                2
            } else {
                1
            };
            let space = memory::get().space;
            let mut out = [0u64; 4];
            let Some(at) = object.surface_address(&whole, width * count) else {
                return if parts.contains(&"trap") { Err("outside of the surface".into()) } else { Ok(out) };
            };
            for (n, out) in out.iter_mut().enumerate().take(count as usize) {
                let at = at + n as u64 * width;
                let mut bytes = [0u8; 8];
                let done = if parts[0] == "suld" {
                    let done = space.read(at, &mut bytes[..width as usize]);
                    *out = u64::from_le_bytes(bytes);
                    done
                } else {
                    let value = request.values.get(n).copied().unwrap_or(0).to_le_bytes();
                    space.write(at, &value[..width as usize])
                };
                done.map_err(|fault| format!("no memory at 0x{:x}", fault.addr))?;
            }
            Ok(out)
        }
        _ => Err(unsupported()),
    }
}
