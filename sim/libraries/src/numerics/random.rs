//! Random numbers that follow from a seed and a place: Philox 4x32-10 (Salmon and others, "Parallel
//! random numbers: as easy as 1, 2, 3", 2011).

use super::memory::Memory;
use crate::model::launch::Call;

/// What the numbers are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Distribution {
    /// Whole numbers of as many bits as they have room for.
    Bits,
    /// Greater than 0, at most 1.
    Uniform,
    Normal {
        mean: f64,
        deviation: f64,
    },
    LogNormal {
        mean: f64,
        deviation: f64,
    },
}

/// One call: numbers in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub to: u64,
    pub count: u64,
    pub seed: u64,
    /// How many numbers were taken from the sequence before.
    pub place: u64,
    /// Of each number: 4 or 8.
    pub bytes: u8,
    pub what: Distribution,
}

/// Four words for a place of a sequence.
fn philox(seed: u64, place: u64) -> [u32; 4] {
    const MULTIPLIERS: [u64; 2] = [0xd251_1f53, 0xcd9e_8d57];
    const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
    let mut key = [seed as u32, (seed >> 32) as u32];
    let mut counter = [place as u32, (place >> 32) as u32, 0, 0];
    for _ in 0..10 {
        let [a, b] = [MULTIPLIERS[0] * u64::from(counter[0]), MULTIPLIERS[1] * u64::from(counter[2])];
        counter = [(b >> 32) as u32 ^ counter[1] ^ key[0], b as u32, (a >> 32) as u32 ^ counter[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// Of 53 bits: greater than 0, at most 1.
fn uniform(low: u32, high: u32) -> f64 {
    let bits = (u64::from(high) << 32 | u64::from(low)) >> 11;
    (bits + 1) as f64 / (1u64 << 53) as f64
}

/// Box and Muller's transformation, of one number.
fn normal(words: [u32; 4]) -> f64 {
    let (radius, turn) = (uniform(words[0], words[1]), uniform(words[2], words[3]));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
}

impl Call for Numbers {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        let bytes = u64::from(self.bytes);
        let at = memory.view(self.to, self.count * bytes, true)?;
        for n in 0..self.count {
            let words = philox(self.seed, self.place + n);
            let value = match self.what {
                Distribution::Bits => 0.0,
                Distribution::Uniform => uniform(words[0], words[1]),
                Distribution::Normal { mean, deviation } => mean + deviation * normal(words),
                Distribution::LogNormal { mean, deviation } => (mean + deviation * normal(words)).exp(),
            };
            let bits = match (self.what, self.bytes) {
                (Distribution::Bits, _) => u64::from(words[1]) << 32 | u64::from(words[0]),
                (_, 4) => u64::from((value as f32).to_bits()),
                _ => value.to_bits(),
            };
            // SAFETY: the view holds all numbers, and a number has these bytes.
            unsafe {
                let at = at.add((n * bytes) as usize);
                at.copy_from_nonoverlapping(bits.to_le_bytes().as_ptr(), self.bytes.into());
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::philox;

    /// The known answers of the authors' library (Random123, `kat_vectors`).
    #[test]
    fn philox_gives_its_known_answers() {
        assert_eq!(philox(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }
}
