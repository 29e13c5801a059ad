//! How the addresses of a warp's lanes lie within a region: a stride, a stride in a stride, or one
//! by one. Knows no history.

use crate::events::LANES;

/// Bytes of a region, as a power of two. An offset in one has 16 bits.
pub(super) const REGION: u32 = 16;

/// Where a byte is in its region.
pub(super) fn offset(address: u64) -> u16 {
    (address & ((1 << REGION) - 1)) as u16
}

/// The offset of each lane; of lanes that take no part whatever is convenient.
pub(super) type Offsets = [u16; LANES];

/// Offsets of lanes from that of the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Pattern {
    /// Lanes that are neighbours lie so many bytes apart, and after so many lanes (a power of two)
    /// it begins anew, so many bytes further.
    Strides { near: i32, period: u8, far: i32 },
    /// In no order.
    Each,
}

impl Pattern {
    /// Of lanes that are in one region. There is one at least.
    pub(super) fn of(mask: u32, offsets: &Offsets) -> Pattern {
        let first = mask.trailing_zeros();
        let others = mask & (mask - 1);
        if others == 0 {
            return Pattern::Strides { near: 0, period: LANES as u8, far: 0 };
        }
        let second = others.trailing_zeros();
        let apart = |lane: u32| i32::from(offsets[lane as usize]) - i32::from(offsets[first as usize]);
        let lanes_between = (second - first) as i32;
        if apart(second) % lanes_between != 0 {
            return Pattern::Each;
        }
        let near = apart(second) / lanes_between;
        let turns = |period: &u32| apart(*period) != near * *period as i32;
        let period = if mask == u32::MAX { [2, 4, 8, 16].into_iter().find(turns) } else { None };
        let period = period.unwrap_or(LANES as u32);
        let far = if period < LANES as u32 { apart(period) } else { 0 };
        let pattern = Pattern::Strides { near, period: period as u8, far };
        let mut made = [0; LANES];
        pattern.offsets(mask, offsets[first as usize], &mut made);
        let same = (0..LANES).all(|lane| mask >> lane & 1 == 0 || made[lane] == offsets[lane]);
        if same { pattern } else { Pattern::Each }
    }

    /// The patterns of the first lanes and of the others, if both have strides.
    pub(super) fn halves(mask: u32, offsets: &Offsets) -> Option<[(Pattern, u32); 2]> {
        let first = mask.trailing_zeros();
        let near = i32::from(offsets[(first as usize + 1) & 31]) - i32::from(offsets[first as usize]);
        let breaks = |&lane: &u32| {
            let apart = i32::from(offsets[lane as usize]) - i32::from(offsets[first as usize]);
            mask >> lane & 1 != 0 && apart != near * (lane - first) as i32
        };
        let end = (first..LANES as u32).find(breaks).filter(|&end| end > first)?;
        let low = mask & ((1 << end) - 1);
        let parts = [low, mask & !low].map(|part| (Pattern::of(part, offsets), part));
        parts.iter().all(|(pattern, _)| *pattern != Pattern::Each).then_some(parts)
    }

    /// The offsets of lanes, from that of the first one. Nothing of those in no order.
    pub(super) fn offsets(&self, mask: u32, place: u16, offsets: &mut Offsets) {
        let Pattern::Strides { near, period, far } = *self else { return };
        let first = mask.trailing_zeros();
        let within = u32::from(period) - 1;
        let turn = u32::from(period).trailing_zeros();
        for (lane, offset) in (0..).zip(offsets) {
            // With a period all lanes take part, so the first one is lane 0.
            let (low, high) = if within == LANES as u32 - 1 {
                (lane as i32 - first as i32, 0)
            } else {
                ((lane & within) as i32, (lane >> turn) as i32)
            };
            *offset =
                (i32::from(place).wrapping_add(near.wrapping_mul(low)).wrapping_add(far.wrapping_mul(high))) as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mask: u32, offset: impl Fn(u32) -> u32) -> Pattern {
        let offsets = std::array::from_fn(|lane| offset(lane as u32) as u16);
        let pattern = Pattern::of(mask, &offsets);
        let mut made = offsets;
        pattern.offsets(mask, offsets[mask.trailing_zeros() as usize], &mut made);
        for lane in crate::events::lanes(mask) {
            assert_eq!(made[lane as usize], offsets[lane as usize], "{pattern:?}, {mask:#x}");
        }
        pattern
    }

    #[test]
    fn patterns_give_back_what_they_were_made_of() {
        assert_eq!(of(!0, |lane| 512 + lane * 4), Pattern::Strides { near: 4, period: 32, far: 0 });
        assert_eq!(of(!0, |lane| 60_000 - lane * 132), Pattern::Strides { near: -132, period: 32, far: 0 });
        assert_eq!(of(!0, |_| 65_532), Pattern::Strides { near: 0, period: 32, far: 0 });
        assert_eq!(of(!0, |lane| lane % 16 * 4 + lane / 16 * 512), Pattern::Strides { near: 4, period: 16, far: 512 });
        assert_eq!(of(!0, |lane| lane % 8 * 4), Pattern::Strides { near: 4, period: 8, far: 0 });
        assert_eq!(of(0xff00, |lane| lane * 8), Pattern::Strides { near: 8, period: 32, far: 0 });
        assert_eq!(of(1 << 7, |lane| lane), Pattern::Strides { near: 0, period: 32, far: 0 });
        assert_eq!(of(0b1001, |lane| lane * lane), Pattern::Strides { near: 3, period: 32, far: 0 });
        assert_eq!(of(!0, |lane| lane * lane), Pattern::Each);
        assert_eq!(of(0b1011, |lane| lane * lane), Pattern::Each);
        let wraps = |lane: u32| (lane * 132 + 60_000) % 62_640;
        assert_eq!(of(!0, wraps), Pattern::Each);
        let offsets = std::array::from_fn(|lane| wraps(lane as u32) as u16);
        let strides = Pattern::Strides { near: 132, period: 32, far: 0 };
        assert_eq!(Pattern::halves(!0, &offsets), Some([(strides, 0xf_ffff), (strides, 0xfff0_0000)]));
        assert_eq!(Pattern::halves(!0, &std::array::from_fn(|lane| (lane * lane) as u16)), None);
        assert_eq!(of(!0, |lane| if lane == 31 { 0 } else { lane * 4 }), Pattern::Each);
    }
}
