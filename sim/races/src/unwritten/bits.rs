//! Which bytes of a block's shared memory are written. Owns the bits, not what a write is.

/// A bit for each byte of a block's shared memory that is written.
#[derive(Debug, Default)]
pub(super) struct Bits(Vec<u64>);

/// The bits of some bytes, word by word.
fn words(address: u64, size: u64) -> impl Iterator<Item = (usize, u64)> {
    let end = address.saturating_add(size);
    (address / 64..end.div_ceil(64)).map(move |word| {
        let (low, high) = (address.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
        (word as usize, (u64::MAX >> (64 - (high - low))) << low)
    })
}

impl Bits {
    pub(super) fn write(&mut self, address: u64, size: u64) {
        for (word, bits) in words(address, size) {
            if self.0.len() <= word {
                self.0.resize(word + 1, 0);
            }
            self.0[word] |= bits;
        }
    }

    /// How many of some bytes are not written, and the first of them.
    pub(super) fn missing(&self, address: u64, size: u64) -> (u32, Option<u64>) {
        let (mut count, mut first) = (0, None);
        for (word, bits) in words(address, size) {
            let left = bits & !self.0.get(word).copied().unwrap_or(0);
            count += left.count_ones();
            if left != 0 {
                first = first.or(Some(word as u64 * 64 + u64::from(left.trailing_zeros())));
            }
        }
        (count, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_bytes_across_words() {
        let mut bits = Bits::default();
        assert_eq!(bits.missing(60, 8), (8, Some(60)));
        bits.write(60, 8);
        assert_eq!((bits.missing(60, 8), bits.missing(59, 10)), ((0, None), (2, Some(59))));
        bits.write(0, 256);
        assert_eq!((bits.missing(0, 256), bits.missing(250, 16)), ((0, None), (10, Some(256))));
        assert_eq!(bits.missing(1 << 20, 0), (0, None));
    }
}
