//! Which bytes of a kernel's parameters decide about its accesses.
//!
//! Owns the masks by which launches count as equal. Parameters hold more than what decides about
//! addresses: scale factors, the step of an optimiser, and stack garbage in the padding of a
//! structure. In a training step of PyTorch more than a third of the launches differ in such bytes
//! alone from those of the step before.
//!
//! # Why equal under the mask is equal
//!
//! An evaluation holds for all launches of its shape that agree in the bytes it depends on. A
//! kernel's mask holds every byte that any evaluation of a launch of it depended on, so it only
//! grows. Launches that agree in the mask therefore agree in the bytes of each of those
//! evaluations.

use std::ops::Range;
use std::sync::Arc;
use trace::KernelId;

/// The parameter bytes that one evaluation depends on.
#[derive(Debug, Default)]
pub struct ParamUse {
    everything: bool,
    bytes: Vec<Range<usize>>,
}

impl ParamUse {
    /// The evaluation may depend on any byte.
    pub(crate) fn use_everything(&mut self) {
        self.everything = true;
    }

    /// The evaluation depends on these bytes. Bytes beyond the parameters do not count.
    pub(crate) fn on(&mut self, bytes: Range<usize>) {
        self.bytes.push(bytes);
    }

    /// Takes over what another evaluation depends on; `placed`: where its bytes lie here.
    pub(crate) fn also<I: Iterator<Item = Range<usize>>>(
        &mut self,
        other: &ParamUse,
        placed: impl Fn(Range<usize>) -> I,
    ) {
        self.everything |= other.everything;
        self.bytes.extend(other.bytes.iter().cloned().flat_map(placed));
    }

    /// The list, for appending.
    pub(crate) fn bytes(&mut self) -> &mut Vec<Range<usize>> {
        &mut self.bytes
    }
}

/// The parameter bytes of a kernel that matter, as set bits. `None`: all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mask(Option<Arc<[u128]>>);

impl Mask {
    /// The mask of a kernel after one more evaluation, of a launch with `length` bytes of
    /// parameters. `before`: its mask so far, if it had one.
    pub(crate) fn with(before: Option<&Mask>, usage: &ParamUse, length: usize) -> Mask {
        let words = length.div_ceil(16);
        let old = match before {
            None => None,
            Some(Mask(Some(old))) if old.len() == words => Some(old),
            Some(_) => return Mask(None),
        };
        if usage.everything {
            return Mask(None);
        }
        let mut new = old.map_or_else(|| vec![0; words], |old| old.to_vec());
        for at in usage.bytes.iter().flat_map(|bytes| bytes.start..bytes.end.min(length)) {
            new[at / 16] |= 0xff << (at % 16 * 8);
        }
        match old {
            Some(old) if **old == *new => Mask(Some(Arc::clone(old))),
            _ => Mask(Some(new.into())),
        }
    }

    /// The parameters in words of sixteen bytes, with zeros for bytes that do not matter. The last
    /// word is padded with zeros.
    #[inline]
    pub(crate) fn words(&self, params: &[u8]) -> impl Iterator<Item = u128> {
        let (all, rest) = params.as_chunks::<16>();
        let last = (!rest.is_empty()).then(|| last_word(params, rest));
        let masks = self.0.as_deref().unwrap_or_default();
        let words = all.iter().map(|word| u128::from_le_bytes(*word)).chain(last);
        words.enumerate().map(|(i, word)| word & masks.get(i).unwrap_or(&u128::MAX))
    }

    /// Calls `each` with the same words.
    #[inline(always)]
    pub(crate) fn each_word(&self, params: &[u8], mut each: impl FnMut(u128)) {
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
    pub(crate) fn agree(&self, one: &[u8], other: &[u8]) -> bool {
        same(one, other) || self.0.is_some() && self.words(one).eq(self.words(other))
    }
}

/// Whether the bytes are equal. Inlined instead of a call, because they are few.
#[inline(always)]
fn same(one: &[u8], other: &[u8]) -> bool {
    let (Some(last), Some(other_last)) = (one.last_chunk::<8>(), other.last_chunk::<8>()) else { return one == other };
    if one.len() != other.len() || last != other_last {
        return false;
    }
    let (mut one, mut other) = (one, other);
    while let (Some((a, rest)), Some((b, other_rest))) = (one.split_first_chunk::<8>(), other.split_first_chunk::<8>())
    {
        if a != b {
            return false;
        }
        (one, other) = (rest, other_rest);
    }
    true
}

/// The bytes behind the last whole sixteen, padded with zeros. Mostly read as one load: a word that
/// was just assembled byte by byte would stall the load.
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
pub(crate) struct Masks(Vec<Option<Mask>>);

impl Masks {
    /// Kernels with a mask at most. Kernels are numbered as they come: higher numbers come from
    /// damage, and all their bytes matter.
    const MOST: usize = 1 << 20;

    /// The mask of a kernel, once a launch of it was evaluated.
    #[inline]
    pub(crate) fn get(&self, kernel: KernelId) -> Option<&Mask> {
        self.0.get(kernel.0 as usize)?.as_ref()
    }

    /// The mask of a kernel after one more evaluation; see [`Mask::with`].
    pub(crate) fn grow(&mut self, kernel: KernelId, usage: &ParamUse, length: usize) -> Mask {
        let number = kernel.0 as usize;
        if number >= Self::MOST {
            return Mask(None);
        }
        if number >= self.0.len() {
            self.0.resize(number + 1, None);
        }
        let mask = Mask::with(self.get(kernel), usage, length);
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
        // Another length of the parameters: the old mask does not hold for it.
        assert_eq!(Mask::with(Some(&second), &on(&[(0, 1)]), 48), all);
    }
}
