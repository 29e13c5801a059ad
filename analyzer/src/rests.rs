//! Which bytes of a launch's parameters its accesses rest on.
//!
//! Owns the masks by which launches are taken as equal. Parameters hold more than what decides about addresses: factors, steps of an
//! optimiser, and what was on the stack before in the parts of a structure that nobody filled in. In a training step of PyTorch more
//! than a third of the launches differ in such bytes alone from those of the step before.
//!
//! A kernel's mask holds every byte that any evaluation of a launch of it rested on, so that it only grows. An evaluation holds for all
//! launches of its shape that agree in the bytes it rested on, so for all that agree in a mask that holds these.

use std::ops::Range;
use std::sync::Arc;

/// What one evaluation rests on.
#[derive(Debug, Default)]
pub struct Rests {
    everything: bool,
    bytes: Vec<Range<usize>>,
}

impl Rests {
    /// It may rest on any byte.
    pub fn on_everything(&mut self) {
        self.everything = true;
    }

    /// It rests on these bytes; bytes beyond the parameters do not count.
    pub fn on(&mut self, bytes: Range<usize>) {
        self.bytes.push(bytes);
    }

    /// Where more may be noted.
    pub fn bytes(&mut self) -> &mut Vec<Range<usize>> {
        &mut self.bytes
    }
}

/// The bytes that matter of a kernel's parameters: ones where they do. None: all do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mask(Option<Arc<[u128]>>);

impl Mask {
    /// The mask for a kernel after one more evaluation of a launch with so many bytes of parameters. `before`: its mask, if it had one.
    pub fn with(before: Option<&Mask>, rests: &Rests, length: usize) -> Mask {
        let words = length.div_ceil(16);
        let old = match before {
            None => None,
            Some(Mask(Some(old))) if old.len() == words => Some(old),
            Some(_) => return Mask(None),
        };
        if rests.everything {
            return Mask(None);
        }
        let mut new = old.map_or_else(|| vec![0; words], |old| old.to_vec());
        for at in rests.bytes.iter().flat_map(|bytes| bytes.start..bytes.end.min(length)) {
            new[at / 16] |= 0xff << (at % 16 * 8);
        }
        match old {
            Some(old) if **old == *new => Mask(Some(Arc::clone(old))),
            _ => Mask(Some(new.into())),
        }
    }

    /// Sixteen bytes of parameters at a time, those that do not matter as zeros; the last ones are filled up with zeros.
    #[inline]
    pub fn words(&self, params: &[u8]) -> impl Iterator<Item = u128> {
        let (all, rest) = params.as_chunks::<16>();
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        let all = all.iter().copied().chain((!rest.is_empty()).then_some(last)).map(u128::from_le_bytes);
        let masks = self.0.as_deref().unwrap_or_default();
        all.enumerate().map(|(i, word)| word & masks.get(i).unwrap_or(&u128::MAX))
    }

    /// Whether parameters of one length agree in what matters.
    #[inline]
    pub fn agree(&self, one: &[u8], other: &[u8]) -> bool {
        one == other || self.0.is_some() && self.words(one).eq(self.words(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(bytes: &[(usize, usize)]) -> Rests {
        Rests { everything: false, bytes: bytes.iter().map(|(from, to)| *from..*to).collect() }
    }

    #[test]
    fn launches_agree_in_what_matters_only() {
        let mask = Mask::with(None, &on(&[(0, 4), (30, 40)]), 33);
        let params: Vec<u8> = (0..33).collect();
        for at in 0..33 {
            let mut other = params.clone();
            other[at] ^= 0x80;
            assert_eq!(mask.agree(&params, &other), (4..30).contains(&at), "byte {at}");
            let hash = |p: &[u8]| mask.words(p).collect::<Vec<_>>();
            assert_eq!(hash(&params) == hash(&other), mask.agree(&params, &other), "byte {at}");
        }
    }

    #[test]
    fn masks_only_grow() {
        let first = Mask::with(None, &on(&[(0, 4)]), 32);
        let second = Mask::with(Some(&first), &on(&[(16, 20)]), 32);
        let differ = |at: usize, mask: &Mask| {
            let (one, mut other) = ([7; 32], [7; 32]);
            other[at] = 8;
            !mask.agree(&one, &other)
        };
        assert!(differ(0, &first) && !differ(16, &first));
        assert!(differ(0, &second) && differ(16, &second) && !differ(5, &second));
        assert_eq!(Mask::with(Some(&second), &on(&[(1, 3)]), 32), second);
        let all = Mask::with(Some(&second), &Rests { everything: true, bytes: Vec::new() }, 32);
        assert!((0..32).all(|at| differ(at, &all)));
        assert_eq!(Mask::with(Some(&all), &on(&[(0, 1)]), 32), all);
        // Another length of the parameters: whatever was known does not hold for it.
        assert_eq!(Mask::with(Some(&second), &on(&[(0, 1)]), 48), all);
    }
}
