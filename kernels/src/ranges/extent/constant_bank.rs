//! Which `__constant__` variables of machine code the bytes of the constant bank belong to.
//!
//! Owns the way from bytes that count from the start of the bank to bytes of variables. Bytes that
//! belong to no variable are nobody's: padding, and what the compiler's own tables hold.

use crate::effects::Extent;
use crate::ir::ConstantBank;
use crate::ranges::domain::int::Int;
use crate::ranges::graph::node::Graph;
use smallvec::SmallVec;

impl Graph {
    /// The variable that an access means whose bytes are not known: that of the constant part of
    /// its place. (A program's index counts from the variable that it names.) Any other symbol is
    /// itself.
    pub(crate) fn variable_at(&self, symbol: u32, place: Int) -> u32 {
        match &self.constants {
            Some(bank) if bank.start.0 == symbol => {
                let found = bank.variables.iter().rev().find(|v| place >= Int::from(v.0)).or(bank.variables.first());
                found.map_or(symbol, |v| v.2.0)
            }
            _ => symbol,
        }
    }

    /// The symbol of the bank for a variable in it. Any other symbol is itself.
    pub(crate) fn whole_bank(&self, symbol: u32) -> u32 {
        match &self.constants {
            Some(bank) if bank.variables.iter().any(|v| v.2.0 == symbol) => bank.start.0,
            _ => symbol,
        }
    }
}

impl ConstantBank {
    /// The variables that an extent reaches, each with its part.
    pub(crate) fn parts(&self, extent: &Extent) -> SmallVec<[(u32, Extent); 1]> {
        let Extent::Bounded { lo, hi, dims, width, exact } = extent else {
            return self.variables.iter().map(|v| (v.2.0, extent.clone())).collect();
        };
        let part = |(from, to, symbol): &(u32, u32, crate::ir::SymbolId)| {
            let (from, to) = (i64::from(*from), i64::from(*to));
            let (first, last) = ((*lo).max(from), (*hi).min(to));
            let (at, end) = (first - from, last - from);
            let extent = if (first, last) == (*lo, *hi) {
                Extent::Bounded { lo: at, hi: end, dims: dims.clone(), width: *width, exact: *exact }
            } else {
                // Of a progression, some steps are left: a bound.
                let exact = *exact && dims.is_empty();
                let width = u32::try_from(end - at).unwrap_or_default();
                Extent::Bounded { lo: at, hi: end, dims: Default::default(), width, exact }
            };
            (first < last).then_some((symbol.0, extent))
        };
        self.variables.iter().filter_map(part).collect()
    }

    /// The variable that words from `lo` up to `hi` lie in, and where they begin in it.
    pub(crate) fn holding(&self, lo: i64, hi: i64) -> Option<(u32, i64)> {
        let found = self.variables.iter().find(|v| i64::from(v.0) <= lo && hi <= i64::from(v.1))?;
        Some((found.2.0, lo - i64::from(found.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::Dim;
    use crate::ir::SymbolId;

    fn bank() -> ConstantBank {
        ConstantBank { start: SymbolId(0), variables: vec![(0, 64, SymbolId(1)), (64, 80, SymbolId(2))] }
    }

    fn dense(lo: i64, hi: i64, exact: bool) -> Extent {
        Extent::Bounded { lo, hi, dims: Default::default(), width: (hi - lo) as u32, exact }
    }

    #[test]
    fn bytes_go_to_the_variables_that_hold_them() {
        let bank = bank();
        assert_eq!(bank.parts(&dense(8, 12, true))[..], [(1, dense(8, 12, true))]);
        assert_eq!(bank.parts(&dense(72, 76, true))[..], [(2, dense(8, 12, true))]);
        assert_eq!(bank.parts(&dense(60, 68, true))[..], [(1, dense(60, 64, true)), (2, dense(0, 4, true))]);
        assert_eq!(bank.parts(&dense(-4, 200, false))[..], [(1, dense(0, 64, false)), (2, dense(0, 16, false))]);
        assert!(bank.parts(&dense(80, 84, true)).is_empty());
        let steps = |lo, hi, exact| Extent::Bounded {
            lo,
            hi,
            dims: SmallVec::from_slice(&[Dim { stride: 32, count: 3 }]),
            width: 4,
            exact,
        };
        assert_eq!(bank.parts(&steps(0, 68, true))[..], [(1, dense(0, 64, false)), (2, dense(0, 4, false))]);
        assert_eq!(bank.holding(64, 80), Some((2, 0)));
        assert_eq!(bank.holding(60, 68), None);
    }
}
