//! The lanes of an access by their addresses. Knows no history.

use crate::events::LANES;
use crate::pair::lanes;

/// Whether the addresses of lanes go upwards or downwards, so that no two are the same.
pub(crate) fn are_apart(mask: u32, addresses: &[u64; LANES]) -> bool {
    let mut all = lanes(mask).map(|lane| addresses[lane as usize]);
    let Some(mut last) = all.next() else { return true };
    let (mut up, mut down) = (true, true);
    for address in all {
        up &= address > last;
        down &= address < last;
        last = address;
    }
    up || down
}

/// Lanes that are at one address each.
pub(crate) struct Groups {
    all: [(u64, u32); LANES],
    count: usize,
}

/// Places of the table below: twice as many as there are lanes, so that it has free ones.
const PLACES: usize = 2 * LANES;

impl Groups {
    /// The groups of lanes, in the order of their first lanes. Addresses are multiples of a cell.
    pub(crate) fn of(mask: u32, addresses: &[u64; LANES], cell: u32) -> Groups {
        let mut groups = Groups { all: [(0, 0); LANES], count: 0 };
        // Mostly neighbours share an address, or the next one is higher.
        let (mut left, mut last) = (mask, None);
        while left != 0 {
            let lane = left.trailing_zeros();
            let address = addresses[lane as usize];
            if last == Some(address) {
                groups.all[groups.count - 1].1 |= 1 << lane;
            } else if last < Some(address) {
                groups.all[groups.count] = (address, 1 << lane);
                groups.count += 1;
                last = Some(address);
            } else {
                return Groups::in_no_order(mask, addresses, cell);
            }
            left &= left - 1;
        }
        groups
    }

    fn in_no_order(mask: u32, addresses: &[u64; LANES], cell: u32) -> Groups {
        const FREE: u8 = u8::MAX;
        let (mut table, mut groups) = ([FREE; PLACES], Groups { all: [(0, 0); LANES], count: 0 });
        for lane in lanes(mask) {
            let address = addresses[lane as usize];
            let mut place = (address >> cell) as usize % PLACES;
            loop {
                match table[place] {
                    FREE => {
                        table[place] = groups.count as u8;
                        groups.all[groups.count] = (address, 1 << lane);
                        groups.count += 1;
                        break;
                    }
                    at if groups.all[usize::from(at)].0 == address => {
                        groups.all[usize::from(at)].1 |= 1 << lane;
                        break;
                    }
                    _ => place = (place + 1) % PLACES,
                }
            }
        }
        groups
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, (u64, u32)> {
        self.all[..self.count].iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mask: u32, address: impl Fn(u64) -> u64) -> (Vec<(u64, u32)>, bool) {
        let addresses = std::array::from_fn(|lane| address(lane as u64));
        (Groups::of(mask, &addresses, 2).iter().copied().collect(), are_apart(mask, &addresses))
    }

    #[test]
    fn lanes_at_one_address_are_one_group() {
        assert_eq!(of(!0, |_| 8), (vec![(8, !0)], false));
        assert_eq!(of(0b1010, |lane| lane / 2 * 4), (vec![(0, 0b10), (4, 0b1000)], true));
        assert_eq!(of(0, |_| 8), (vec![], true));
        // All at one place of the table.
        let (groups, apart) = of(!0, |lane| lane % 16 * 4096);
        assert_eq!((groups.len(), groups[3], apart), (16, (3 * 4096, 1 << 3 | 1 << 19), false));
        let (groups, apart) = of(!0, |lane| (31 - lane) * 4096);
        assert_eq!((groups.len(), groups[31], apart), (32, (0, 1 << 31), true));
        assert!(!of(0b111, |lane| [4, 8, 4][lane as usize % 3]).1);
    }
}
