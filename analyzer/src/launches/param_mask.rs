//! Which bytes of a launch's parameters its accesses rest on.
//!
//! Owns the masks by which launches are taken as equal. Parameters hold more than what decides
//! about addresses: factors, steps of an optimiser, and what was on the stack before in the parts
//! of a structure that nobody filled in. In a training step of PyTorch more than a third of the
//! launches differ in such bytes alone from those of the step before.
//!
//! A kernel's mask holds every byte that any evaluation of a launch of it rested on, so that it
//! only grows. An evaluation holds for all launches of its shape that agree in the bytes it rested
//! on, so for all that agree in a mask that holds these.

use std::ops::Range;
use std::sync::Arc;
use trace::KernelId;

/// What one evaluation rests on.
#[derive(Debug, Default)]
pub struct ParamUse {
    everything: bool,
    bytes: Vec<Range<usize>>,
}

impl ParamUse {
    /// It may rest on any byte.
    pub fn use_everything(&mut self) {
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
    /// The mask for a kernel after one more evaluation of a launch with so many bytes of
    /// parameters. `before`: its mask, if it had one.
    pub fn with(before: Option<&Mask>, rests: &ParamUse, length: usize) -> Mask {
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

    /// Sixteen bytes of parameters at a time, those that do not matter as zeros; the last ones are
    /// filled up with zeros.
    #[inline]
    pub fn words(&self, params: &[u8]) -> impl Iterator<Item = u128> {
        let (all, rest) = params.as_chunks::<16>();
        let last = (!rest.is_empty()).then(|| last_word(params, rest));
        let masks = self.0.as_deref().unwrap_or_default();
        let words = all.iter().map(|word| u128::from_le_bytes(*word)).chain(last);
        words.enumerate().map(|(i, word)| word & masks.get(i).unwrap_or(&u128::MAX))
    }

    /// Hands out the same.
    #[inline(always)]
    pub fn each_word(&self, params: &[u8], mut each: impl FnMut(u128)) {
        let (all, rest) = params.as_chunks::<16>();
        let mut masks = self.0.as_deref().unwrap_or_default().iter();
        let mut each = |word| each(word & masks.next().unwrap_or(&u128::MAX));
        for word in all {
            each(u128::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            each(last_word(params, rest));
        }
    }

    /// Whether parameters of one length agree in what matters.
    #[inline(always)]
    pub fn agree(&self, one: &[u8], other: &[u8]) -> bool {
        same(one, other) || self.0.is_some() && self.words(one).eq(self.words(other))
    }
}

/// Whether the bytes are the same. Here, and not in a call: they are few.
#[inline(always)]
fn same(one: &[u8], other: &[u8]) -> bool {
    let ((many, _), (others, _)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let all = || many.iter().zip(others).all(|(a, b)| a == b);
    match (one.last_chunk::<8>(), other.last_chunk::<8>()) {
        (Some(a), Some(b)) => one.len() == other.len() && a == b && all(),
        _ => one == other,
    }
}

/// The rest of some parameters behind their last whole sixteen bytes, filled up with zeros. Mostly
/// read at once: what is put together byte by byte is not soon read as one.
#[inline(always)]
fn last_word(params: &[u8], rest: &[u8]) -> u128 {
    match params.last_chunk::<16>() {
        Some(end) => u128::from_le_bytes(*end) >> (8 * (16 - rest.len())),
        None => {
            let mut last = [0; 16];
            last[..rest.len()].copy_from_slice(rest);
            u128::from_le_bytes(last)
        }
    }
}

/// The masks of kernels.
#[derive(Default)]
pub struct Masks(Vec<Option<Mask>>);

impl Masks {
    /// Kernels that have one at most. They are numbered as they come: more are damage, and rest on
    /// everything.
    const MOST: usize = 1 << 20;

    /// The mask of a kernel of which some launch was evaluated.
    #[inline]
    pub fn get(&self, kernel: KernelId) -> Option<&Mask> {
        self.0.get(kernel.0 as usize)?.as_ref()
    }

    /// The mask of a kernel after one more evaluation; see [`Mask::with`].
    pub fn grow(&mut self, kernel: KernelId, rests: &ParamUse, length: usize) -> Mask {
        let number = kernel.0 as usize;
        if number >= Self::MOST {
            return Mask(None);
        }
        if number >= self.0.len() {
            self.0.resize(number + 1, None);
        }
        let mask = Mask::with(self.get(kernel), rests, length);
        self.0[number] = Some(mask.clone());
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(bytes: &[(usize, usize)]) -> ParamUse {
        ParamUse { everything: false, bytes: bytes.iter().map(|(from, to)| *from..*to).collect() }
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
        let all = Mask::with(Some(&second), &ParamUse { everything: true, bytes: Vec::new() }, 32);
        assert!((0..32).all(|at| differ(at, &all)));
        assert_eq!(Mask::with(Some(&all), &on(&[(0, 1)]), 32), all);
        // Another length of the parameters: whatever was known does not hold for it.
        assert_eq!(Mask::with(Some(&second), &on(&[(0, 1)]), 48), all);
    }
}
