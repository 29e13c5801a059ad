//! Bytes as runs, and runs as few progressions.
//!
//! Owns both steps. The bytes are relative to a base.

use crate::ranges::domain::byte_set::{ByteSet, Dims};
use crate::ranges::domain::int::Int;

/// Bytes that threads touch: from, to (wrapping, as offsets before the base are negative), and how
/// many runs were left when they were last joined.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs(Vec<(i64, i64)>, usize);

/// Runs from which on it pays to join them before all are there.
const MANY: usize = 4096;

/// A shape at a place.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    at: i64,
    width: i64,
    /// Steps and counts, the innermost first.
    dims: Vec<(i64, i64)>,
}

impl Runs {
    /// Adds the bytes from one offset on. (Threads in a row touch what lies in a row.)
    pub(crate) fn put(&mut self, at: i64, width: i64) {
        match self.0.last_mut() {
            Some(last) if last.0 <= at && at <= last.1 => last.1 = last.1.max(at.saturating_add(width)),
            _ => self.0.push((at, at.saturating_add(width))),
        }
    }

    /// All bytes from the first to the last one, as a bound. They are joined.
    pub(crate) fn hull(&self) -> Option<ByteSet> {
        let (from, to) = (self.0.first()?.0, self.0.last()?.1);
        Item { at: from, width: to.checked_sub(from)?, dims: Vec::new() }.byte_set(false)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All of them further on; `None`: the numbers do not suffice.
    pub(crate) fn moved(&self, by: i64) -> Option<Runs> {
        let moved = self.0.iter().map(|(from, to)| Some((from.checked_add(by)?, to.checked_add(by)?)));
        Some(Runs(moved.collect::<Option<_>>()?, self.1))
    }

    /// Adds those of others.
    pub(crate) fn append(&mut self, other: &Runs) {
        self.0.extend(&other.0);
        // Threads touch the same bytes again and again.
        if self.0.len() > MANY + 2 * self.1 {
            *self = std::mem::take(self).joined();
        }
    }

    /// Sorted, and joined where they touch.
    pub(crate) fn joined(mut self) -> Runs {
        self.0.sort_unstable();
        let mut out: Vec<(i64, i64)> = Vec::with_capacity(self.0.len());
        for (from, to) in self.0 {
            match out.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => out.push((from, to)),
            }
        }
        let joined = out.len();
        Runs(out, joined)
    }

    /// The bytes that others lack. Both are joined.
    pub(crate) fn without(&self, others: &Runs) -> Runs {
        let mut out = Vec::new();
        let mut k = 0;
        for &(mut from, to) in &self.0 {
            while others.0.get(k).is_some_and(|o| o.1 <= from) {
                k += 1;
            }
            let mut j = k;
            while let Some(o) = others.0.get(j).filter(|o| o.0 < to) {
                if from < o.0 {
                    out.push((from, o.0));
                }
                from = from.max(o.1);
                j += 1;
            }
            if from < to {
                out.push((from, to));
            }
        }
        let joined = out.len();
        Runs(out, joined)
    }

    /// The same bytes as progressions; `None`: more than `most`.
    pub(crate) fn byte_sets(&self, exact: bool, most: usize) -> Option<Vec<ByteSet>> {
        let item = |r: &(i64, i64)| Item { at: r.0, width: r.1 - r.0, dims: Vec::new() };
        let mut items: Vec<Item> = self.0.iter().map(item).collect();
        // Rows first; then rows of a kind, wherever they are.
        items = repeated(&items);
        for _ in 0..2 {
            items.sort_by(|a, b| (a.width, &a.dims, a.at).cmp(&(b.width, &b.dims, b.at)));
            items = repeated(&items);
        }
        if items.len() > most {
            return None;
        }
        items.iter().map(|i| i.byte_set(exact)).collect()
    }
}

/// Shapes that repeat at equal distances, as one shape each. Those that are alike stand together.
fn repeated(items: &[Item]) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    let mut k = 0;
    while k < items.len() {
        let alike = |n: usize| items.get(n).is_some_and(|i| i.is_like(&items[k]));
        let mut n = 1;
        if alike(k + 1) {
            let step = items[k + 1].at - items[k].at;
            while alike(k + n) && items[k + n].at - items[k + n - 1].at == step {
                n += 1;
            }
        }
        let mut item = items[k].clone();
        if n > 1 {
            item.dims.push((items[k + 1].at - items[k].at, n as i64));
        }
        out.push(item);
        k += n;
    }
    out
}

impl Item {
    fn is_like(&self, other: &Item) -> bool {
        (self.width, &self.dims) == (other.width, &other.dims)
    }

    fn byte_set(&self, exact: bool) -> Option<ByteSet> {
        let width = u32::try_from(self.width).ok()?;
        let last = self.dims.iter().try_fold(self.at, |at, d| at.checked_add(d.0.checked_mul(d.1 - 1)?))?;
        let hi = last.checked_add(self.width)?;
        let mut dims: Dims = self.dims.iter().map(|d| (Int::from(d.0), Int::from(d.1))).collect();
        dims.sort_unstable();
        Some(ByteSet::Bounded { lo: self.at.into(), hi: hi.into(), dims, width: width.into(), exact })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(v: &[(i64, i64)]) -> Runs {
        let mut r = Runs::default();
        v.iter().for_each(|(at, width)| r.put(*at, *width));
        r.joined()
    }

    /// The bytes of byte sets.
    fn bytes(sets: &[ByteSet]) -> Vec<i128> {
        let mut all = Vec::new();
        for s in sets {
            let ByteSet::Bounded { lo, dims, width, .. } = s else { panic!("{s:?}") };
            let mut at = vec![lo.pin()];
            for (step, count) in dims {
                at = (0..count.pin()).flat_map(|k| at.iter().map(move |a| a + k * step.pin())).collect();
            }
            all.extend(at.iter().flat_map(|a| *a..*a + width.pin()));
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn runs_that_touch_are_one() {
        assert_eq!(runs(&[(0, 4), (4, 4), (16, 4), (8, 8), (40, 1)]).0, [(0, 20), (40, 41)]);
        assert_eq!(runs(&[(8, 4), (-8, 4), (9, 1)]).0, [(-8, -4), (8, 12)]);
    }

    #[test]
    fn what_others_have_is_taken_out() {
        let all = runs(&[(0, 100), (200, 10)]);
        assert_eq!(all.without(&runs(&[(10, 10), (50, 60), (190, 15)])).0, [(0, 10), (20, 50), (205, 210)]);
        assert!(all.without(&all).0.is_empty());
        assert_eq!(all.without(&Runs::default()).0, all.0);
    }

    #[test]
    fn progressions_hold_the_same_bytes() {
        // Tiles of rows, with one row that is shorter and one byte that is alone.
        let tiles = (0..3).flat_map(|z| (0..4).flat_map(move |y| (0..5).map(move |x| (z * 1000 + y * 100 + x * 8, 4))));
        let mut all: Vec<(i64, i64)> = tiles.collect();
        let whole = runs(&all);
        let sets = whole.byte_sets(true, 48).expect("sets");
        assert_eq!(sets.len(), 1, "{sets:?}");
        all.pop();
        all.push((5000, 1));
        let part = runs(&all);
        let sets = part.byte_sets(true, 48).expect("sets");
        let expected: Vec<i128> = part.0.iter().flat_map(|r| i128::from(r.0)..i128::from(r.1)).collect();
        assert_eq!(bytes(&sets), expected);
        assert!(sets.len() <= 5, "{sets:?}");
        // What has no order is not told.
        let squares = runs(&(0..400).map(|k| (k * k * 4, 1 + k % 3)).collect::<Vec<_>>());
        assert!(squares.byte_sets(true, 48).is_none());
    }
}
