//! Writes to places that are not known: which memory may have changed without an access that says
//! so.
//!
//! Owns when the latest such write was made, in each allocation and anywhere. The moments are
//! counted in these writes. Who asks: what a fill left in memory is still there only if no such
//! write came after it ([`super::allocations::leftovers::holds_left`]).

use super::AllocationId;
use rustc_hash::FxHashMap;

/// Allocations that are told apart at most. Beyond, a write in one counts as one anywhere.
const MAX_ALLOCATIONS: usize = 4096;

/// The latest writes to places that are not known.
#[derive(Debug, Default)]
pub struct Strays {
    count: u64,
    anywhere: u64,
    inside: FxHashMap<AllocationId, u64>,
}

impl Strays {
    /// The moment of now, for [`Strays::any_since`].
    pub(crate) fn now(&self) -> u64 {
        self.count
    }

    /// A write to an address that is not known.
    pub fn anywhere(&mut self) {
        self.count += 1;
        self.anywhere = self.count;
        self.inside.clear();
    }

    /// A write to bytes of this allocation that are not known.
    pub(crate) fn inside(&mut self, allocation: AllocationId) {
        self.count += 1;
        self.inside.insert(allocation, self.count);
        if self.inside.len() > MAX_ALLOCATIONS {
            self.anywhere();
        }
    }

    /// Whether one of these allocations may have been written to since a moment.
    pub(crate) fn any_since(&self, moment: u64, allocations: [AllocationId; 2]) -> bool {
        let latest = allocations.iter().filter_map(|id| self.inside.get(id)).max();
        self.anywhere.max(latest.copied().unwrap_or(0)) > moment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_counts_where_it_may_have_been() {
        let (a, b, c) = (AllocationId(1), AllocationId(2), AllocationId(3));
        let mut strays = Strays::default();
        let start = strays.now();
        strays.inside(a);
        assert!(strays.any_since(start, [a, b]) && strays.any_since(start, [b, a]) && !strays.any_since(start, [b, c]));
        assert!(!strays.any_since(strays.now(), [a, a]));
        strays.anywhere();
        assert!(strays.any_since(start, [b, c]) && !strays.any_since(strays.now(), [b, c]));
        let later = strays.now();
        (0..=MAX_ALLOCATIONS as u32).for_each(|n| strays.inside(AllocationId(10 + n)));
        assert!(strays.any_since(later, [b, c]), "too many to tell apart");
    }
}
