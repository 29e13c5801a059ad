//! Moves bytes: copies and sets of up to three dimensions. Does not decide when they happen and who
//! may ask for them.

use std::sync::Arc;

use crate::memory::address_space::{AddressSpace, UnmappedAddress};
use crate::memory::array::Array;

/// One end of a copy: rows of bytes in memory. Arrays are memory too; `keep` holds theirs alive.
#[derive(Clone, Default)]
pub(crate) struct CopyEnd {
    /// Address of the first byte.
    pub(crate) at: u64,
    /// Bytes from row to row.
    pub(crate) pitch: u64,
    /// Bytes from layer to layer.
    pub(crate) layer: u64,
    /// The array that the bytes belong to.
    pub(crate) keep: Option<Arc<Array>>,
}

/// A copy of `width` bytes in each of `height` rows of each of `depth` layers.
#[derive(Clone, Default)]
pub(crate) struct Memcpy {
    /// Where to.
    pub(crate) dst: CopyEnd,
    /// Where from.
    pub(crate) src: CopyEnd,
    /// Bytes in a row.
    pub(crate) width: u64,
    /// Rows in a layer.
    pub(crate) height: u64,
    /// Layers.
    pub(crate) depth: u64,
}

impl CopyEnd {
    /// Plain memory.
    pub(crate) fn linear(at: u64) -> CopyEnd {
        CopyEnd { at, ..CopyEnd::default() }
    }

    /// Where a row begins.
    pub(crate) fn row(&self, y: u64, z: u64) -> u64 {
        self.at.wrapping_add(z.wrapping_mul(self.layer)).wrapping_add(y.wrapping_mul(self.pitch))
    }

    /// First address and number of bytes that a copy of these dimensions spans.
    pub(crate) fn span(&self, width: u64, height: u64, depth: u64) -> (u64, u64) {
        if width == 0 || height == 0 || depth == 0 {
            return (self.at, 0);
        }
        let steps = |count: u64, size: u64| u128::from(count - 1) * u128::from(size);
        let len = u128::from(width) + steps(height, self.pitch) + steps(depth, self.layer);
        (self.at, u64::try_from(len).unwrap_or(u64::MAX))
    }
}

impl Memcpy {
    /// A copy of a range of bytes.
    pub(crate) fn linear(dst: u64, src: u64, bytes: u64) -> Memcpy {
        Memcpy { dst: CopyEnd::linear(dst), src: CopyEnd::linear(src), width: bytes, height: 1, depth: 1 }
    }

    /// How many bytes are moved.
    pub(crate) fn bytes(&self) -> u64 {
        self.width.saturating_mul(self.height).saturating_mul(self.depth)
    }

    /// Moves them.
    pub(crate) fn run(&self, space: &AddressSpace) -> Result<(), UnmappedAddress> {
        for z in 0..self.depth {
            for y in 0..self.height {
                space.copy(self.dst.row(y, z), self.src.row(y, z), self.width)?;
            }
        }
        Ok(())
    }

    /// Reads the source into memory of the simulator, as a driver stages pageable memory.
    pub(crate) fn stage(&self, space: &AddressSpace) -> Result<Vec<u8>, UnmappedAddress> {
        let mut staged = vec![0; self.bytes() as usize];
        if self.width == 0 {
            return Ok(staged);
        }
        for (n, row) in staged.chunks_mut(self.width as usize).enumerate() {
            let (y, z) = (n as u64 % self.height, n as u64 / self.height);
            space.read(self.src.row(y, z), row)?;
        }
        Ok(staged)
    }

    /// Writes what [`Memcpy::stage`] read to the destination.
    pub(crate) fn unstage(&self, space: &AddressSpace, staged: &[u8]) -> Result<(), UnmappedAddress> {
        if self.width == 0 {
            return Ok(());
        }
        for (n, row) in staged.chunks(self.width as usize).enumerate() {
            let (y, z) = (n as u64 % self.height, n as u64 / self.height);
            space.write(self.dst.row(y, z), row)?;
        }
        Ok(())
    }
}

/// Sets `width` elements in each of `height` rows to a value of `size` (1, 2 or 4) bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memset {
    /// Address of the first element.
    pub(crate) at: u64,
    /// Bytes from row to row.
    pub(crate) pitch: u64,
    /// The value, in its low bytes.
    pub(crate) value: u32,
    /// Bytes of an element.
    pub(crate) size: u32,
    /// Elements in a row.
    pub(crate) width: u64,
    /// Rows.
    pub(crate) height: u64,
}

impl Memset {
    /// Bytes from the first to the last one set.
    pub(crate) fn span(&self) -> u64 {
        let row = self.width.saturating_mul(u64::from(self.size));
        if self.height <= 1 { row } else { (self.height - 1).saturating_mul(self.pitch).saturating_add(row) }
    }

    /// Sets them.
    pub(crate) fn run(&self, space: &AddressSpace) -> Result<(), UnmappedAddress> {
        let bytes = self.width * u64::from(self.size);
        let pattern = self.value.to_le_bytes();
        let chunk: Vec<u8> =
            pattern[..self.size as usize].iter().copied().cycle().take(bytes.min(1 << 16) as usize).collect();
        for y in 0..self.height {
            let row = self.at + y * self.pitch;
            let mut done = 0;
            while done < bytes {
                let n = (bytes - done).min(chunk.len() as u64);
                space.write(row + done, &chunk[..n as usize])?;
                done += n;
            }
        }
        Ok(())
    }
}
