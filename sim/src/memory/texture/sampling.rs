//! How a texture is sampled: address modes, filters, layers, and the faces of cubes. Where its
//! texels lie is the object's.
//!
//! CUDA C++ Programming Guide, "Texture Fetching" and "Cubemap Textures": the formulas, and how
//! a direction becomes a face and a place on it.

use cuda_sys::*;

use super::Image;

/// What an instruction wants to know of a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sample {
    /// Its colour, filtered as the texture says.
    Filtered,
    /// One component of the four texels around it.
    Component(usize),
}

/// A texel, as its place in width, height and depth. None is the border.
type Place = Option<[u64; 3]>;

impl Image {
    pub(super) fn is_normalised(&self) -> bool {
        self.texture.flags & CU_TRSF_NORMALIZED_COORDINATES != 0
    }

    /// A coordinate brought into range as the address mode says; `None` for the border.
    fn wrap(&self, axis: usize, at: i64) -> Option<u64> {
        let size = self.view.size[axis] as i64;
        match self.texture.addressMode[axis] {
            CU_TR_ADDRESS_MODE_BORDER => (0..size).contains(&at).then_some(at as u64),
            // Without normalised coordinates nothing repeats: these clamp too.
            CU_TR_ADDRESS_MODE_WRAP if self.is_normalised() => Some(at.rem_euclid(size) as u64),
            CU_TR_ADDRESS_MODE_MIRROR if self.is_normalised() => {
                let at = at.rem_euclid(2 * size);
                Some(if at < size { at } else { 2 * size - 1 - at } as u64)
            }
            _ => Some(at.clamp(0, size - 1) as u64),
        }
    }

    /// The first of a layer's `each` layers of the array. There is no border between layers:
    /// what lies outside is the last one.
    pub(super) fn layer(&self, layer: u32, each: u64) -> u64 {
        let layers = (self.view.size[2] / each).max(1);
        u64::from(layer).min(layers - 1) * each
    }

    pub(super) fn is_linear(&self) -> bool {
        self.texture.filterMode == CU_TR_FILTER_MODE_LINEAR && self.gives_fractions()
    }

    /// Whether texels come out as numbers that a filter can weigh.
    pub(super) fn gives_fractions(&self) -> bool {
        self.is_float() || self.normalises()
    }

    /// What a sample sees at real coordinates, in a layer if there are layers.
    pub(super) fn sample(&self, coordinates: &[f32], layer: Option<u32>, what: Sample) -> Result<[u64; 4], String> {
        let axes = if self.view.line { 1 } else { coordinates.len().min(3) };
        let mut at = [0f32; 3];
        for axis in 0..axes {
            let scale = if self.is_normalised() { self.view.size[axis] as f32 } else { 1.0 };
            at[axis] = coordinates[axis] * scale;
        }
        let layer = layer.map(|layer| self.layer(layer, 1));
        self.look(&at[..axes], what, |whole| {
            let mut place = [0, 0, layer.unwrap_or(0)];
            for axis in 0..axes {
                place[axis] = self.wrap(axis, whole[axis])?;
            }
            Some(place)
        })
    }

    /// A sample in a direction from the middle of a cube, of a layer of cubes.
    pub(super) fn sample_cube(&self, direction: [f32; 3], layer: u32, what: Sample) -> Result<[u64; 4], String> {
        let (face, [s, t]) = face_of(direction);
        let first = self.layer(layer, 6);
        let size = self.view.size[0] as i64;
        let place = |face: u64, x: i64, y: i64| Some([x as u64, y as u64, first + face]);
        let inside = |c: i64| (0..size).contains(&c);
        let at = [(s + 1.0) / 2.0 * size as f32, (t + 1.0) / 2.0 * size as f32];
        self.look(&at, what, |whole| {
            let (x, y) = (whole[0], whole[1]);
            if inside(x) && inside(y) {
                return place(face, x, y);
            }
            // Faces end at their edge, unless the edges are without seam: then the texel of the
            // face beyond the edge counts. At a corner there is none: the nearest one stands in.
            let seamless = self.texture.flags & CU_TRSF_SEAMLESS_CUBEMAP != 0;
            if !seamless || !(inside(x) || inside(y)) {
                return place(face, x.clamp(0, size - 1), y.clamp(0, size - 1));
            }
            let real = |c: i64| (2.0 * c as f32 + 1.0) / size as f32 - 1.0;
            let (beyond, [s, t]) = face_of(direction_of(face, [real(x), real(y)]));
            let whole = |c: f32| (((c + 1.0) / 2.0 * size as f32).floor() as i64).clamp(0, size - 1);
            place(beyond, whole(s), whole(t))
        })
    }

    fn look(&self, at: &[f32], what: Sample, texel_at: impl Fn([i64; 3]) -> Place) -> Result<[u64; 4], String> {
        let Sample::Component(component) = what else { return self.filter(at, texel_at) };
        let [x, y] = [0, 1].map(|axis| (at.get(axis).copied().unwrap_or(0.5) - 0.5).floor() as i64);
        // From the lower left one against the clock, where y counts upwards (as OpenGL says it).
        let mut out = [0; 4];
        for (out, (x, y)) in out.iter_mut().zip([(x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y)]) {
            *out = self.texel(texel_at([x, y, 0]))?[component];
        }
        Ok(out)
    }

    /// The texel at a place, or those around it as the filter weighs them. `texel_at` finds what
    /// stands at whole coordinates.
    fn filter(&self, at: &[f32], texel_at: impl Fn([i64; 3]) -> Place) -> Result<[u64; 4], String> {
        let mut whole = [0i64; 3];
        if !self.is_linear() {
            for (whole, at) in whole.iter_mut().zip(at) {
                *whole = at.floor() as i64;
            }
            return self.texel(texel_at(whole));
        }
        let mut sum = [0f32; 4];
        let (mut lows, mut parts) = ([0i64; 3], [0f32; 3]);
        for ((low, part), at) in lows.iter_mut().zip(&mut parts).zip(at) {
            let centre = at - 0.5;
            let floor = centre.floor();
            // Devices keep eight bits of the fraction.
            (*low, *part) = (floor as i64, ((centre - floor) * 256.0).round() / 256.0);
        }
        for corner in 0..1usize << at.len() {
            let mut weight = 1f32;
            for axis in 0..at.len() {
                let high = corner >> axis & 1 == 1;
                weight *= if high { parts[axis] } else { 1.0 - parts[axis] };
                whole[axis] = lows[axis] + i64::from(high);
            }
            if weight != 0.0 {
                let texel = self.texel(texel_at(whole))?;
                for (sum, bits) in sum.iter_mut().zip(texel) {
                    *sum += weight * f32::from_bits(bits as u32);
                }
            }
        }
        Ok(sum.map(|value| u64::from(value.to_bits())))
    }
}

/// The face that a direction meets (+x, -x, +y, -y, +z, -z), and where: both from -1 to 1.
fn face_of([x, y, z]: [f32; 3]) -> (u64, [f32; 2]) {
    let [ax, ay, az] = [x.abs(), y.abs(), z.abs()];
    let (face, s, t, major) = if az >= ax && az >= ay {
        if z >= 0.0 { (4, x, -y, az) } else { (5, -x, -y, az) }
    } else if ay >= ax {
        if y >= 0.0 { (2, x, z, ay) } else { (3, x, -z, ay) }
    } else if x >= 0.0 {
        (0, -z, -y, ax)
    } else {
        (1, z, -y, ax)
    };
    (face, [s / major, t / major])
}

/// A direction that meets a face there: the reverse of [`face_of`].
fn direction_of(face: u64, [s, t]: [f32; 2]) -> [f32; 3] {
    match face {
        0 => [1.0, -t, -s],
        1 => [-1.0, -t, s],
        2 => [s, 1.0, t],
        3 => [s, -1.0, -t],
        4 => [s, -t, 1.0],
        _ => [-s, -t, -1.0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_meets_the_place_that_it_was_made_for() {
        for face in 0..6 {
            for place in [[0.0, 0.0], [0.5, -0.25], [-0.75, 0.875]] {
                assert_eq!(face_of(direction_of(face, place)), (face, place));
            }
        }
    }
}
