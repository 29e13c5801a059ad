//! Lanes, sets of them, and classes of those that agree in some bits of their numbers.
//!
//! Owns nothing of what a lane's value is: that is in `lane_value`.

use std::sync::OnceLock;

/// Threads that are calculated together.
pub(super) const LANES: usize = 256;

/// Lanes as bits.
pub(super) type Mask = [u64; LANES / 64];
pub(super) const NO_LANES: Mask = [0; LANES / 64];

/// The lanes of a mask.
pub(super) fn lanes(mask: &Mask) -> impl Iterator<Item = usize> {
    let words = mask.iter().copied().enumerate();
    words.flat_map(|(at, mut word)| {
        std::iter::from_fn(move || {
            let bit = word.trailing_zeros() as usize;
            word &= word.wrapping_sub(1);
            (bit < 64).then_some(64 * at + bit)
        })
    })
}

/// Puts a lane into a mask.
pub(super) fn add(mask: &mut Mask, lane: usize) {
    mask[lane / 64] |= 1 << (lane % 64);
}

/// The bits of the number of a lane.
pub(super) const LANE_BITS: u32 = LANES.ilog2();

/// For each choice of bits of a lane's number: its class, made of these bits, and the first lane of
/// each class.
pub(super) struct Classes {
    pub(crate) of_lane: [[u8; LANES]; LANES],
    pub(crate) first: [[u8; LANES]; LANES],
}

pub(super) fn classes() -> &'static Classes {
    static CLASSES: OnceLock<Box<Classes>> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let mut all = Box::new(Classes { of_lane: [[0; LANES]; LANES], first: [[0; LANES]; LANES] });
        for by in 0..LANES {
            for lane in (0..LANES).rev() {
                let chosen = (0..LANE_BITS).filter(|bit| by >> bit & 1 == 1).enumerate();
                let class = chosen.fold(0, |class, (to, from)| class | (lane >> from & 1) << to);
                all.of_lane[by][lane] = class as u8;
                all.first[by][class] = lane as u8;
            }
        }
        all
    })
}

/// The bits of a lane's number by which a mask differs.
pub(super) fn bits_of(mask: &Mask) -> u8 {
    let differs = |bit: u32| match bit {
        7 => mask[..2] != mask[2..],
        6 => mask[0] != mask[1] || mask[2] != mask[3],
        _ => {
            let low = u64::MAX / ((1 << (1 << bit)) + 1);
            mask.iter().any(|word| (word ^ word >> (1 << bit)) & low != 0)
        }
    };
    (0..LANE_BITS).filter(|bit| differs(*bit)).fold(0, |by, bit| by | 1 << bit)
}
