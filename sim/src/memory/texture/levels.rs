//! Which mip levels a sample sees, and with which weights.
//!
//! The CUDA manuals name the modes and no formula. These are OpenGL's (4.6, section 8.14): the
//! level of detail is the binary logarithm of the longer of the two gradients, counted in texels of
//! the largest level; it is clamped to the range of the texture, then to the levels that there are;
//! the nearest level is the smaller number where two are equally near. Between levels a device
//! keeps eight bits of the fraction, as between texels.

use cuda_sys::*;

use super::access::Answer;
use super::{Image, TextureObject};

/// What a sample of an object sees.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Levels {
    /// One level.
    One(usize),
    /// A level and the one behind it, which has this weight.
    Two(usize, f32),
}

impl Levels {
    fn of(lod: f32, [least, most]: [f32; 2], count: usize, between: bool) -> Levels {
        let last = count.saturating_sub(1);
        // What is no number is level 0.
        let lod = lod.max(least).min(most).max(0.0).min(last as f32);
        if !between {
            return Levels::One((lod - 0.5).ceil().max(0.0) as usize);
        }
        let part = ((lod - lod.floor()) * 256.0).round() / 256.0;
        match lod.floor() as usize {
            low if part == 0.0 => Levels::One(low),
            low if part == 1.0 => Levels::One(low + 1),
            low => Levels::Two(low, part),
        }
    }
}

impl TextureObject {
    /// The largest level.
    pub(super) fn base(&self) -> &Image {
        &self.images[0]
    }

    /// Whether what names no level sees the largest one. Whether the smallest level of the range
    /// counts there, the manuals do not say.
    pub(super) fn shows_base(&self) -> bool {
        self.images.len() == 1 || self.texture.minMipmapLevelClamp <= 0.0
    }

    /// The level of detail that gradients ask for, by x and by y, one for each axis of the image.
    /// `None`: not those of an image that is sampled so.
    pub(super) fn lod_of(&self, axes: usize, gradients: &[u32]) -> Option<f32> {
        if self.images.len() == 1 {
            return Some(0.0);
        }
        // Of three axes, vectors have four elements.
        let each = if axes == 3 { 4 } else { axes };
        if gradients.len() != 2 * each {
            return None;
        }
        let length = |gradient: &[u32]| {
            let parts = gradient.iter().zip(self.base().view.size).take(axes);
            parts.map(|(&bits, size)| (f32::from_bits(bits) * size as f32).powi(2)).sum::<f32>().sqrt()
        };
        let (by_x, by_y) = gradients.split_at(each);
        Some(length(by_x).max(length(by_y)).log2())
    }

    /// A sample at a level of detail.
    pub(super) fn at_level(&self, lod: f32, sample: impl Fn(&Image) -> Answer) -> Answer {
        let t = &self.texture;
        let between = t.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR && self.base().gives_fractions();
        match Levels::of(lod, [t.minMipmapLevelClamp, t.maxMipmapLevelClamp], self.images.len(), between) {
            // An array by itself has one level, whatever the range.
            _ if self.images.len() == 1 => sample(self.base()),
            Levels::One(level) => sample(&self.images[level]),
            Levels::Two(level, part) => {
                let both = (sample(&self.images[level])?, sample(&self.images[level + 1])?);
                let (Some(low), Some(high)) = both else { return Ok(None) };
                let mix = |(low, high): (u64, u64)| {
                    let [low, high] = [low, high].map(|bits| f32::from_bits(bits as u32));
                    u64::from((low * (1.0 - part) + high * part).to_bits())
                };
                let mut mixed = [0; 4];
                mixed.iter_mut().zip(low.into_iter().zip(high)).for_each(|(to, both)| *to = mix(both));
                Ok(Some(mixed))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_of_detail_selects_levels() {
        let nearest = |lod| Levels::of(lod, [0.0, 9.0], 4, false);
        for (lod, level) in [(-3.0, 0), (0.5, 0), (0.51, 1), (1.5, 1), (2.0, 2), (2.6, 3), (7.0, 3), (f32::NAN, 0)] {
            assert_eq!(nearest(lod), Levels::One(level), "{lod}");
        }
        let between = |lod| Levels::of(lod, [0.5, 2.25], 4, true);
        assert_eq!((between(0.0), between(9.0)), (Levels::Two(0, 0.5), Levels::Two(2, 0.25)));
        assert_eq!((between(1.0), between(1.999)), (Levels::One(1), Levels::One(2)), "what has no weight is not seen");
        assert_eq!(Levels::of(1.0, [0.0, 0.0], 4, true), Levels::One(0), "the default range is level 0");
        assert_eq!(Levels::of(5.0, [0.0, 9.0], 1, true), Levels::One(0));
    }
}
