//! Tensor maps that the driver made: what of them the trace has.
//!
//! Owns their bytes and what they were made of, so that a map with another address
//! (`cuTensorMapReplaceAddress`) is known, and so that a program that makes the same map for each
//! launch writes it once.

use std::hash::Hasher;
use std::sync::Arc;

use trace::codec::List;
use trace::{MapCopies, Op};

use super::{HandleHasher, HandleTable};

/// Bytes of a map.
pub const SIZE: usize = 128;
/// How many are kept. Then all are forgotten, and told again when they are made again. (The
/// analyzer keeps more.)
const MAX: usize = 1 << 14;

/// What a map was made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMap {
    /// Its bytes.
    pub bytes: [u8; SIZE],
    /// First byte of the tensor.
    pub address: u64,
    /// Bits of an element in global memory.
    pub bits: u32,
    /// What copies by it take.
    pub copies: MapCopies,
    /// Elements along each axis.
    pub sizes: Vec<u64>,
    /// Bytes from one element to the next along each axis but the first.
    pub strides: Vec<u64>,
    /// The box of a tile; empty for images.
    pub extent: Vec<u32>,
    /// Every so many elements are copied.
    pub step: Vec<u32>,
}

impl TensorMap {
    /// As the trace has it.
    pub fn op(&self) -> Op<'_> {
        Op::TensorMap {
            map: &self.bytes,
            address: self.address,
            bits: self.bits,
            copies: self.copies,
            sizes: List::new(&self.sizes),
            strides: List::new(&self.strides),
            extent: List::new(&self.extent),
            step: List::new(&self.step),
        }
    }
}

/// The maps by a hash of their bytes.
#[derive(Default)]
pub struct TensorMaps(HandleTable<u64, Arc<TensorMap>>);

impl TensorMaps {
    /// The number of a map's bytes, never 0.
    pub fn number(bytes: &[u8; SIZE]) -> u64 {
        let mut hasher = HandleHasher::default();
        let (words, _) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| hasher.write_u64(u64::from_le_bytes(*word)));
        hasher.finish().max(1)
    }

    /// The map with this number.
    pub fn get(&self, number: u64) -> Option<Arc<TensorMap>> {
        self.0.get(&number).map(|map| Arc::clone(&map))
    }

    /// Keeps a map. False: the very map is known.
    pub fn put(&self, map: Arc<TensorMap>) -> bool {
        let number = Self::number(&map.bytes);
        if self.0.get(&number).is_some_and(|known| **known == *map) {
            return false;
        }
        if self.0.len() >= MAX {
            self.0.clear();
        }
        self.0.insert(number, map);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(address: u64) -> Arc<TensorMap> {
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(&address.to_le_bytes());
        let (sizes, strides, extent, step) = (vec![64, 2], vec![256], vec![64, 1], vec![1, 1]);
        Arc::new(TensorMap { bytes, address, bits: 32, copies: MapCopies::Tiles, sizes, strides, extent, step })
    }

    #[test]
    fn a_map_is_told_once() {
        let maps = TensorMaps::default();
        assert!(maps.put(map(256)));
        assert!(!maps.put(map(256)));
        assert!(maps.put(map(512)));
        let number = TensorMaps::number(&map(256).bytes);
        assert_eq!(maps.get(number), Some(map(256)));
        assert_eq!(maps.get(number ^ 1), None);
        // The same bytes of something else: what they were made of last.
        let other = Arc::new(TensorMap { bits: 16, ..(*map(256)).clone() });
        assert!(maps.put(Arc::clone(&other)));
        assert_eq!(maps.get(number), Some(other));
    }

    #[test]
    fn not_all_are_kept() {
        let maps = TensorMaps::default();
        (1..=MAX as u64 + 1).for_each(|n| assert!(maps.put(map(16 * n))));
        assert_eq!(maps.0.len(), 1);
        assert!(maps.put(map(16)));
    }
}
