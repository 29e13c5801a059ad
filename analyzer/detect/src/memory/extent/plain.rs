//! Whether an extent is no more than the bytes between its ends, as most are.
//!
//! Owns this question alone: each access that is added asks it.

use super::{Extent, Precision};

impl Extent {
    /// Whether this is no more than [`Extent::exact`] of its ends.
    pub fn is_plain(&self) -> bool {
        let Self { start, end, anchor, precision, scattered, looked_up, origin, width, .. } = *self;
        let is_exact = precision == Precision::Exact && !scattered && !looked_up && self.is_dense();
        is_exact && (anchor, origin, width) == (start, start, end.saturating_sub(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Dim;

    #[test]
    fn plain_extents_are_those_of_their_ends() {
        let exact = Precision::Exact;
        let dims = [Dim { stride: 16, count: 3 }, Dim { stride: 0, count: 9 }, Dim { stride: 8, count: 1 }];
        let plain = Extent::exact(16, 24);
        assert_eq!(Extent::pattern(16, 8, &dims[1..], 16, exact), plain);
        let others = [
            plain.clone().moved(8),
            plain.clone().by_data(),
            plain.clone().clip(18, 24),
            plain.clone().clip(16, 20),
            plain.clone().clip(30, 40),
            Extent::bound(16, 24, 16),
            Extent::unknown(16, 16, 24),
            Extent::pattern(16, 8, &dims, 16, exact),
            Extent::pattern(16, 8, &dims[1..], 20, exact),
            Extent::pattern(16, 0, &dims, 16, exact),
            Extent::pattern(u64::MAX - 4, 8, &dims[1..], u64::MAX - 4, exact),
        ];
        for extent in others.into_iter().chain([plain]) {
            let is_plain = extent == Extent::exact(extent.start, extent.end);
            assert_eq!(extent.is_plain(), is_plain, "{extent:?}");
        }
    }
}
