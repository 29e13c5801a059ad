//! Samples a texture for all lanes of a warp at once: ordinary textures of one to three axes,
//! filtered or not, and fetches at whole coordinates. Answers nothing else (layers, cubes, mip
//! levels, surfaces, lanes that name different objects): those go lane by lane.
//!
//! The same arithmetic in the same order as `sampling`, so both give the same bits.

use cuda_sys::*;

use super::access::{Geometry, names_of};
use super::{Image, TextureObject};
use crate::interp::{WARP_LANES, WarpTexture};
use crate::memory;
use crate::memory::array::channel_bytes;

type PerLane<T> = [T; WARP_LANES];

/// Coordinates from which on lanes are sampled one by one.
const FAR: f32 = (1 << 30) as f32;

/// Where the lanes stand on one axis: the texels below and above, and how far between.
struct Axis {
    index: [PerLane<u32>; 2],
    /// The lanes whose texel is not the border.
    inside: [u32; 2],
    part: PerLane<f32>,
}

/// Answers an instruction for all its lanes. False: not one of those that are sampled together.
pub(super) fn serve(object: &TextureObject, warp: &mut WarpTexture<'_>) -> bool {
    let [image] = &object.images[..] else { return false };
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(image: &Image, warp: &mut WarpTexture<'_>) -> bool {
            sampled(image, warp).is_some()
        }
        // SAFETY: the processor has them.
        return unsafe { wide(image, warp) };
    }
    sampled(image, warp).is_some()
}

#[inline(always)]
fn sampled(image: &Image, warp: &mut WarpTexture<'_>) -> Option<()> {
    let (names, count) = names_of(warp.opcode);
    let parts = &names[..count];
    let geometry = Geometry::of(parts)?;
    if parts[0] != "tex" || image.surface || geometry.cube || geometry.layered {
        return None;
    }
    let behind = warp.coordinates.len().checked_sub(geometry.given())?;
    let plain = match parts.get(1) {
        Some(&"level") => behind == 1,
        Some(&"grad") => image.texture.maxAnisotropy <= 1,
        _ => behind == 0,
    };
    if !plain {
        return None;
    }
    let texels = Texels::of(image)?;
    match parts.last() {
        Some(&"s32") if behind == 0 => {
            let mut axes = [const { None }; 3];
            for (axis, to) in axes.iter_mut().enumerate().take(geometry.axes) {
                *to = Some(image.fetched_axis(axis, warp.coordinates[axis]));
            }
            // Outside is zero, whatever the border.
            let place = texels.places(&axes, 0, warp.lanes);
            texels.read(&place, [0; 4], warp.results);
        }
        Some(&"f32") => {
            let count = if image.view.line { 1 } else { geometry.axes };
            let mut axes = [const { None }; 3];
            for (axis, to) in axes.iter_mut().enumerate().take(count) {
                *to = Some(image.sampled_axis(axis, warp.coordinates[axis], warp.lanes)?);
            }
            let border = image.texture.borderColor.map(f32::to_bits);
            if !image.is_linear() {
                let place = texels.places(&axes, 0, warp.lanes);
                texels.read(&place, border, warp.results);
                return Some(());
            }
            let mut sums = [[0f32; WARP_LANES]; 4];
            let mut found = [[0u64; WARP_LANES]; 4];
            // Where all lanes stand on a texel of an axis, what lies above it has no weight.
            let mut between = 0;
            for (axis, own) in axes.iter().flatten().enumerate() {
                between |= usize::from(own.part.iter().any(|&part| part != 0.0)) << axis;
            }
            for corner in (0..1usize << count).filter(|corner| corner & !between == 0) {
                let mut weight = [1f32; WARP_LANES];
                for (axis, own) in axes.iter().flatten().enumerate() {
                    let high = corner >> axis & 1 == 1;
                    for (weight, part) in weight.iter_mut().zip(&own.part) {
                        *weight *= if high { *part } else { 1.0 - *part };
                    }
                }
                let place = texels.places(&axes, corner, warp.lanes);
                texels.read(&place, border, &mut found);
                for (sums, found) in sums.iter_mut().zip(&found).take(texels.channels.max(1)) {
                    for lane in 0..WARP_LANES {
                        let value = weight[lane] * f32::from_bits(found[lane] as u32);
                        // What has no weight does not count, not even infinity.
                        sums[lane] += if weight[lane] != 0.0 { value } else { 0.0 };
                    }
                }
                if place.inside != u32::MAX {
                    // The border has four channels.
                    for channel in texels.channels..4 {
                        for lane in 0..WARP_LANES {
                            let value = weight[lane] * f32::from_bits(found[channel][lane] as u32);
                            sums[channel][lane] += if weight[lane] != 0.0 { value } else { 0.0 };
                        }
                    }
                }
            }
            for (results, sums) in warp.results.iter_mut().zip(&sums) {
                for (result, sum) in results.iter_mut().zip(sums) {
                    *result = u64::from(sum.to_bits());
                }
            }
        }
        _ => return None,
    }
    Some(())
}

/// Offsets of the lanes' texels, and the lanes whose texel is not the border.
struct Places {
    offset: PerLane<u64>,
    inside: u32,
}

/// Where an object's texels are, in the simulator's own view.
struct Texels<'o> {
    image: &'o Image,
    at: *const u8,
    bytes: u64,
    channels: usize,
}

impl Texels<'_> {
    fn of(image: &Image) -> Option<Texels<'_>> {
        let view = &image.view;
        let bytes = image.texel_bytes();
        let [width, height, depth] = view.size;
        let whole = depth.checked_sub(1)? * view.layer + height.checked_sub(1)? * view.pitch + width * bytes;
        let at = memory::get().space.view(view.at, whole, false).ok()?;
        Some(Texels { image, at, bytes, channels: (view.channels as usize).min(4) })
    }

    /// Lanes that are not asked count as outside.
    #[inline(always)]
    fn places(&self, axes: &[Option<Axis>; 3], corner: usize, lanes: u32) -> Places {
        let view = &self.image.view;
        let mut places = Places { offset: [0; WARP_LANES], inside: lanes };
        for (axis, own) in axes.iter().enumerate() {
            let Some(own) = own else { continue };
            let step = [self.bytes, view.pitch, view.layer][axis];
            let high = corner >> axis & 1;
            places.inside &= own.inside[high];
            for (offset, &index) in places.offset.iter_mut().zip(&own.index[high]) {
                *offset += u64::from(index) * step;
            }
        }
        places
    }

    #[inline(always)]
    fn read(&self, places: &Places, border: [u32; 4], into: &mut [PerLane<u64>; 4]) {
        let channel = channel_bytes(self.image.view.format).unwrap_or(1);
        for (number, into) in into.iter_mut().enumerate() {
            if number >= self.channels {
                for (lane, into) in into.iter_mut().enumerate() {
                    *into = if places.inside >> lane & 1 != 0 { 0 } else { u64::from(border[number]) };
                }
                continue;
            }
            let first = number as u64 * channel;
            macro_rules! each {
                ($ty:ty, $decode:expr) => {
                    for (lane, into) in into.iter_mut().enumerate() {
                        let is = places.inside >> lane & 1 != 0;
                        let offset = if is { places.offset[lane] + first } else { first };
                        // SAFETY: `of` has looked at all of the object's bytes, the index is below
                        // its extent, and other threads may write, as on a GPU.
                        let raw = unsafe { self.at.add(offset as usize).cast::<$ty>().read_unaligned() };
                        *into = if is { $decode(raw) } else { u64::from(border[number]) };
                    }
                };
            }
            match self.image.view.format {
                CU_AD_FORMAT_FLOAT | CU_AD_FORMAT_UNSIGNED_INT32 | CU_AD_FORMAT_SIGNED_INT32 => each!(u32, u64::from),
                _ if channel == 1 => each!(u8, |raw| self.image.decode(u64::from(raw))),
                _ => each!(u16, |raw| self.image.decode(u64::from(raw))),
            }
        }
    }
}

impl Image {
    /// Whole coordinates; what lies outside is none.
    #[inline(always)]
    fn fetched_axis(&self, axis: usize, coordinates: &PerLane<u64>) -> Axis {
        let size = self.view.size[axis];
        let (mut index, mut inside) = ([0; WARP_LANES], 0);
        for (lane, (index, &at)) in index.iter_mut().zip(coordinates).enumerate() {
            let at = i64::from(at as u32 as i32);
            let is = at >= 0 && (at as u64) < size;
            inside |= u32::from(is) << lane;
            *index = if is { at as u32 } else { 0 };
        }
        Axis { index: [index; 2], inside: [inside; 2], part: [0.0; WARP_LANES] }
    }

    /// Real coordinates, as the filter and the address mode have it. None where one is far away or
    /// no number.
    #[inline(always)]
    fn sampled_axis(&self, axis: usize, coordinates: &PerLane<u64>, lanes: u32) -> Option<Axis> {
        let size = self.view.size[axis];
        let size = i32::try_from(size).ok().filter(|&size| size > 0 && size < 1 << 29)?;
        let scale = if self.is_normalised() { size as f32 } else { 1.0 };
        let mut at = [0f32; WARP_LANES];
        for (lane, (at, &bits)) in at.iter_mut().zip(coordinates).enumerate() {
            let value = f32::from_bits(bits as u32) * scale;
            *at = if lanes >> lane & 1 != 0 { value } else { 0.0 };
        }
        if !at.iter().all(|at| at.abs() < FAR) {
            return None;
        }
        let mut low = [0i32; WARP_LANES];
        let mut part = [0f32; WARP_LANES];
        if self.is_linear() {
            for lane in 0..WARP_LANES {
                let centre = at[lane] - 0.5;
                let floor = centre.floor();
                low[lane] = floor as i32;
                // Devices keep eight bits of the fraction. As `round`, which has no vectors.
                let scaled = (centre - floor) * 256.0;
                let whole = scaled.floor();
                let nearest = if scaled - whole >= 0.5 { whole + 1.0 } else { whole };
                part[lane] = nearest / 256.0;
            }
        } else {
            for lane in 0..WARP_LANES {
                low[lane] = at[lane].floor() as i32;
            }
        }
        let mut found = Axis { index: [[0; WARP_LANES]; 2], inside: [u32::MAX; 2], part };
        for (high, index) in found.index.iter_mut().enumerate() {
            let whole: PerLane<i32> = std::array::from_fn(|lane| low[lane] + high as i32);
            match self.texture.addressMode[axis] {
                CU_TR_ADDRESS_MODE_BORDER => {
                    let mut inside = 0;
                    for (lane, (index, &at)) in index.iter_mut().zip(&whole).enumerate() {
                        let is = (0..size).contains(&at);
                        inside |= u32::from(is) << lane;
                        *index = if is { at as u32 } else { 0 };
                    }
                    found.inside[high] = inside;
                }
                CU_TR_ADDRESS_MODE_WRAP if self.is_normalised() => {
                    index.iter_mut().zip(&whole).for_each(|(index, at)| *index = at.rem_euclid(size) as u32);
                }
                CU_TR_ADDRESS_MODE_MIRROR if self.is_normalised() => {
                    for (index, at) in index.iter_mut().zip(&whole) {
                        let at = at.rem_euclid(2 * size);
                        *index = if at < size { at } else { 2 * size - 1 - at } as u32;
                    }
                }
                _ => index.iter_mut().zip(&whole).for_each(|(index, &at)| *index = at.clamp(0, size - 1) as u32),
            }
        }
        Some(found)
    }
}
