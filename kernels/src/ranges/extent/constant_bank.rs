//! Which `__constant__` variables of machine code the bytes of the constant bank belong to.
//!
//! Owns the way from bytes that count from the start of the bank to bytes of variables. Bytes that
//! belong to no variable are nobody's: padding, and what the compiler's own tables hold.

use crate::effects::{Dim, Extent};
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

type Dims = SmallVec<[Dim; 3]>;

/// Bytes of a bank that lie in one variable.
struct Run {
    at: i64,
    dims: Dims,
    width: i64,
    /// No part of a step is left out.
    whole: bool,
}

impl Run {
    fn extent(self, from: i64, exact: bool) -> Extent {
        let steps: i64 = self.dims.iter().map(|d| (d.stride * (d.count - 1)) as i64).sum();
        let (lo, width) = (self.at - from, u32::try_from(self.width).unwrap_or_default());
        Extent::Bounded { lo, hi: lo + steps + self.width, dims: self.dims, width, exact: exact && self.whole }
    }
}

/// Runs of one extent in one variable.
const MAX_RUNS: usize = 64;

/// The steps of a progression that lie in a variable, from the widest distance on; false: they are
/// too many to tell apart.
fn inside(at: i64, mut dims: Dims, width: i64, (from, to): (i64, i64), runs: &mut Vec<Run>) -> bool {
    let end = at + dims.iter().map(|d| (d.stride * (d.count - 1)) as i64).sum::<i64>() + width;
    if end <= from || to <= at {
        return true;
    }
    if from <= at && end <= to {
        runs.push(Run { at, dims, width, whole: true });
        return runs.len() <= MAX_RUNS;
    }
    let Some(widest) = (0..dims.len()).max_by_key(|k| dims[*k].stride) else {
        // One run over an end of the variable.
        let (first, last) = (at.max(from), end.min(to));
        runs.push(Run { at: first, dims, width: last - first, whole: true });
        return runs.len() <= MAX_RUNS;
    };
    let outer = dims.remove(widest);
    let (stride, count) = (outer.stride as i64, outer.count as i64);
    if stride <= 0 || count > 1 << 16 {
        return false;
    }
    // Steps that lie inside in one piece stay a progression.
    let inner = end - stride * (count - 1) - at;
    let first = (from - at + stride - 1).div_euclid(stride).clamp(0, count);
    let last = (to - inner - at).div_euclid(stride).clamp(-1, count - 1);
    if first <= last {
        let mut all = dims.clone();
        if last > first {
            all.push(Dim { stride: outer.stride, count: (last - first + 1) as u64 });
        }
        runs.push(Run { at: at + first * stride, dims: all, width, whole: true });
    }
    let cut =
        (0..count).filter(|k| (*k < first || *k > last) && at + k * stride < to && from < at + k * stride + inner);
    for k in cut {
        if runs.len() > MAX_RUNS || !inside(at + k * stride, dims.clone(), width, (from, to), runs) {
            return false;
        }
    }
    true
}

impl ConstantBank {
    /// The variables that an extent reaches, each with its part.
    pub(crate) fn parts(&self, extent: &Extent) -> SmallVec<[(u32, Extent); 1]> {
        let Extent::Bounded { lo, hi, dims, width, exact } = extent else {
            return self.variables.iter().map(|v| (v.2.0, extent.clone())).collect();
        };
        let mut parts = SmallVec::new();
        for (from, to, symbol) in &self.variables {
            let (from, to) = (i64::from(*from), i64::from(*to));
            if *hi <= from || to <= *lo {
                continue;
            }
            let mut runs = Vec::new();
            let outer = dims.iter().copied().collect();
            if !inside(*lo, outer, i64::from(*width), (from, to), &mut runs) {
                let (first, last) = ((*lo).max(from), (*hi).min(to));
                runs = vec![Run { at: first, dims: Dims::new(), width: last - first, whole: false }];
            }
            parts.extend(runs.into_iter().map(|run| (symbol.0, run.extent(from, *exact))));
        }
        parts
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
            dims: SmallVec::from_slice(&[Dim { stride: 32, count: (hi - lo) as u64 / 32 + 1 }]),
            width: 4,
            exact,
        };
        for exact in [true, false] {
            let parts = bank.parts(&steps(0, 68, exact));
            assert_eq!(parts[..], [(1, steps(0, 36, exact)), (2, dense(0, 4, exact))]);
        }
    }

    /// The bytes of an extent.
    fn bytes(extent: &Extent) -> Vec<i64> {
        let Extent::Bounded { lo, dims, width, .. } = extent else { panic!("{extent:?}") };
        let mut starts = vec![*lo];
        for d in dims {
            starts = starts.iter().flat_map(|s| (0..d.count).map(move |k| s + (d.stride * k) as i64)).collect();
        }
        starts.into_iter().flat_map(|s| s..s + i64::from(*width)).collect()
    }

    #[test]
    fn no_byte_is_lost_or_added_on_the_way() {
        let bank = ConstantBank {
            start: SymbolId(0),
            variables: vec![(0, 20, SymbolId(1)), (24, 40, SymbolId(2)), (40, 47, SymbolId(3))],
        };
        let mut looked_at = 0;
        for (lo, width) in [(-3, 1), (0, 4), (5, 6), (18, 8)] {
            for (a, m) in [(1, 1), (4, 3), (8, 5), (7, 8)] {
                for (b, n) in [(1, 1), (16, 2), (3, 4)] {
                    let dims = [(a, m), (b, n)].into_iter().filter(|d| d.1 > 1);
                    let dims: Dims = dims.map(|(stride, count)| Dim { stride, count }).collect();
                    let steps: u64 = dims.iter().map(|d| d.stride * (d.count - 1)).sum();
                    let hi = lo + steps as i64 + width;
                    let whole = Extent::Bounded { lo, hi, dims, width: width as u32, exact: true };
                    for (from, to, symbol) in &bank.variables {
                        let own = |b: &i64| i64::from(*from) <= *b && *b < i64::from(*to);
                        let mut wanted: Vec<i64> = bytes(&whole).into_iter().filter(own).collect();
                        let parts = bank.parts(&whole).into_iter().filter(|p| p.0 == symbol.0);
                        let mut found: Vec<i64> =
                            parts.flat_map(|p| bytes(&p.1)).map(|b| b + i64::from(*from)).collect();
                        for all in [&mut wanted, &mut found] {
                            all.sort_unstable();
                            all.dedup();
                        }
                        assert_eq!(found, wanted, "{whole:?} in {from}..{to}");
                        looked_at += 1;
                    }
                }
            }
        }
        assert_eq!(looked_at, 144);
    }

    #[test]
    fn words_of_a_table_lie_in_one_variable() {
        let bank = bank();
        assert_eq!(bank.holding(64, 80), Some((2, 0)));
        assert_eq!(bank.holding(60, 68), None);
    }
}
