//! Generations: whether an address still lies where it lay when it was looked up.
//!
//! Owns a number for each live allocation and a stamp for each number. A [`Generation`] is such a
//! number with its stamp. It takes one comparison to check, where a look-up searches two tables.
//! [`super::Allocations`] decides what makes a stamp stale, because it begins and ends lifetimes.
//!
//! Allocators return the same bytes again and again. A block at exactly the place of an earlier one
//! gets that block's number and stamp back: generations stay valid, and now name the new lifetime.

use super::AllocationId;
use rustc_hash::FxHashMap;

/// Freed blocks whose numbers are kept at most.
const MAX_PARKED: usize = 1 << 15;

/// Number of a live allocation. Reused after its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Number(u32);

/// The generation of a place that was looked up. As long as [`Stamps::holds`] is true, the same
/// addresses give the same answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Generation {
    number: Number,
    stamp: u64,
}

/// Where a block lies: the lifetime of its root, its first address, one past its last.
pub(crate) type Spot = (AllocationId, u64, u64);

#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// 0: none.
    stamp: u64,
    id: AllocationId,
}

/// The stamps of all live allocations.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    lives: Vec<Life>,
    free: Vec<Number>,
    parked: FxHashMap<Spot, Generation>,
    last: u64,
}

impl Stamps {
    /// Begins a lifetime.
    pub(crate) fn begin(&mut self, id: AllocationId) -> Number {
        let number = self.free.pop().unwrap_or_else(|| {
            self.lives.push(Life::default());
            Number(self.lives.len() as u32 - 1)
        });
        self.lives[number.0 as usize].id = id;
        self.renew(number);
        number
    }

    /// Ends a lifetime.
    pub(crate) fn end(&mut self, number: Number) {
        self.lives[number.0 as usize].stamp = 0;
        self.free.push(number);
    }

    /// Begins the lifetime of a block.
    pub(crate) fn begin_block(&mut self, id: AllocationId, spot: Spot) -> Number {
        match self.parked.remove(&spot) {
            Some(Generation { number, stamp }) => {
                self.lives[number.0 as usize] = Life { stamp, id };
                number
            }
            None => self.begin(id),
        }
    }

    /// Ends the lifetime of a block.
    pub(crate) fn end_block(&mut self, number: Number, spot: Spot) {
        if self.parked.len() >= MAX_PARKED {
            self.free.extend(self.parked.drain().map(|(_, generation)| generation.number));
        }
        let stamp = std::mem::take(&mut self.lives[number.0 as usize].stamp);
        if let Some(other) = self.parked.insert(spot, Generation { number, stamp }) {
            self.free.push(other.number);
        }
    }

    /// The layout of this allocation has changed: its generations become void.
    pub(crate) fn renew(&mut self, number: Number) {
        self.last += 1;
        self.lives[number.0 as usize].stamp = self.last;
    }

    /// The generation of a place in this allocation.
    pub(crate) fn generation(&self, number: Number) -> Generation {
        Generation { number, stamp: self.lives[number.0 as usize].stamp }
    }

    /// Whether the place of this generation is unchanged.
    #[inline]
    pub(crate) fn holds(&self, generation: Generation) -> bool {
        self.lives.get(generation.number.0 as usize).is_some_and(|life| life.stamp == generation.stamp)
    }

    /// The allocation of a generation that holds.
    #[inline]
    pub(crate) fn id(&self, generation: Generation) -> AllocationId {
        self.lives.get(generation.number.0 as usize).map_or(AllocationId::NONE, |life| life.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: AllocationId = AllocationId(1);

    #[test]
    fn a_generation_holds_until_its_allocation_changes_or_ends_and_not_for_the_next_one() {
        let mut stamps = Stamps::default();
        let (a, b) = (stamps.begin(ROOT), stamps.begin(AllocationId(2)));
        let (of_a, of_b) = (stamps.generation(a), stamps.generation(b));
        assert!(stamps.holds(of_a) && stamps.holds(of_b) && of_a != of_b);
        assert_eq!((stamps.id(of_a), stamps.id(of_b)), (ROOT, AllocationId(2)));
        stamps.renew(b);
        assert!(stamps.holds(of_a) && !stamps.holds(of_b) && stamps.holds(stamps.generation(b)));
        stamps.end(a);
        assert!(!stamps.holds(of_a));
        let c = stamps.begin(AllocationId(3));
        assert!(c == a && !stamps.holds(of_a), "a number that is used again makes no old generation valid");
    }

    #[test]
    fn a_block_in_the_place_of_another_takes_its_generations_over() {
        let mut stamps = Stamps::default();
        let spot = (ROOT, 64, 128);
        let first = stamps.begin_block(AllocationId(2), spot);
        let generation = stamps.generation(first);
        stamps.end_block(first, spot);
        assert!(!stamps.holds(generation));
        for other in [(ROOT, 64, 96), (AllocationId(9), 64, 128)] {
            let number = stamps.begin_block(AllocationId(3), other);
            assert!(!stamps.holds(generation), "another place");
            stamps.end_block(number, other);
        }
        stamps.begin_block(AllocationId(4), spot);
        assert!(stamps.holds(generation));
        assert_eq!(stamps.id(generation), AllocationId(4));
    }

    #[test]
    fn numbers_of_blocks_that_never_come_again_are_used_again() {
        let mut stamps = Stamps::default();
        for n in 0..4 * MAX_PARKED as u64 {
            let spot = (ROOT, n, n + 1);
            let number = stamps.begin_block(AllocationId(2), spot);
            stamps.end_block(number, spot);
        }
        assert!(stamps.lives.len() <= MAX_PARKED + 1 && stamps.parked.len() <= MAX_PARKED);
    }
}
