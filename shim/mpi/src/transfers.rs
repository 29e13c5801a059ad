//! The bytes of CUDA's memory that a call touches.
//!
//! Owns the look-up of a buffer (what lies in no memory of CUDA costs nothing more) and the way
//! from a datatype's shape to regions.

use mpi_interface::{Region, Transfer};

use super::arguments::Arguments;
use super::datatypes::{self, Pattern, Shape};
use super::link::is_cuda_memory;
use crate::abi::HandleKind;

/// Regions that one pattern of many dimensions is split into.
const MOST_REGIONS: u64 = 256;

/// What a call touches, put together by its effect.
#[derive(Default)]
pub struct Transfers {
    /// All of it.
    pub all: Vec<Transfer>,
}

impl Transfers {
    /// `count` elements at argument `buffer` are read, or written. `datatype`: its argument.
    pub fn touch(&mut self, arguments: &Arguments<'_>, buffer: usize, count: u64, datatype: usize, writes: bool) {
        let address = arguments.buffer(buffer);
        if count == 0 || arguments.is_in_place(buffer) || !may_be_cuda(address) {
            return;
        }
        self.add(arguments, address, count, arguments.handle(datatype, HandleKind::Type), writes);
    }

    /// The same of an address and a datatype.
    pub fn add(&mut self, arguments: &Arguments<'_>, address: usize, count: u64, datatype: usize, writes: bool) {
        if count == 0 || !may_be_cuda(address) {
            return;
        }
        let Some(shape) = datatypes::shape(arguments.abi, datatype, count) else { return };
        let Shape { patterns, exact } = shape;
        let at = |pattern: &Pattern| (address as u64).wrapping_add_signed(pattern.start);
        for pattern in patterns {
            // Absolute addresses: each on its own.
            if address == 0 && !is_cuda_memory(at(&pattern)) {
                continue;
            }
            let start = at(&pattern);
            split(start, pattern, exact, &mut |region, exact| {
                let new = Transfer { region, reads: !writes, writes, exact };
                // What is read and written is one access: in place, replaced.
                match self.all.iter_mut().rev().take(8).find(|t| t.region == region && t.exact == exact) {
                    Some(known) => (known.reads, known.writes) = (known.reads | new.reads, known.writes | writes),
                    None => self.all.push(new),
                }
            });
        }
    }

    /// So many bytes are read, or written.
    pub fn add_bytes(&mut self, address: usize, len: u64, writes: bool) {
        if len > 0 && address != 0 && may_be_cuda(address) {
            let region = Region::linear(address as u64, len);
            self.all.push(Transfer { region, reads: !writes, writes, exact: true });
        }
    }

    /// From here on what was added is known by its bounds only.
    pub fn weaken(&mut self, from: usize) {
        self.all.iter_mut().skip(from).for_each(|transfer| transfer.exact = false);
    }
}

/// Whether a buffer may lie in memory of CUDA. `MPI_BOTTOM` is no address: the datatype says.
fn may_be_cuda(address: usize) -> bool {
    address == 0 || is_cuda_memory(address as u64)
}

/// A pattern as regions, which have two dimensions.
fn split(start: u64, pattern: Pattern, exact: bool, each: &mut impl FnMut(Region, bool)) {
    let Pattern { width, mut dims, .. } = pattern;
    let mut start = start;
    for (stride, count) in &mut dims {
        if *stride < 0 {
            start = start.wrapping_add_signed(stride.saturating_mul(*count as i64 - 1));
            *stride = stride.saturating_neg();
        }
    }
    if dims.len() <= 2 && dims.iter().all(|(_, count)| u32::try_from(*count).is_ok()) {
        let dim = |at: usize| dims.get(at).map_or((0, 1), |(stride, count)| (*stride as u64, *count as u32));
        let ((pitch, height), (slice_pitch, depth)) = (dim(0), dim(1));
        return each(Region { start, width, height, depth, pitch, slice_pitch }, exact);
    }
    match dims.pop() {
        Some((stride, count)) if count <= MOST_REGIONS && dims.len() <= 3 => {
            for step in 0..count {
                let inner = Pattern { start: 0, width, dims: dims.clone() };
                split(start.wrapping_add(step.wrapping_mul(stride as u64)), inner, exact, each);
            }
        }
        last => {
            dims.extend(last);
            let span = dims.iter().map(|(stride, count)| (*stride as u64).saturating_mul(count - 1));
            each(Region::linear(start, span.fold(width, u64::saturating_add)), false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One past the last byte.
    fn end(r: &Region) -> u64 {
        r.start + u64::from(r.depth - 1) * r.slice_pitch + u64::from(r.height - 1) * r.pitch + r.width
    }

    fn regions(start: u64, pattern: Pattern) -> Vec<(Region, bool)> {
        let mut all = Vec::new();
        split(start, pattern, true, &mut |region, exact| all.push((region, exact)));
        all
    }

    #[test]
    fn dimensions_become_pitches() {
        let pattern = |dims: &[(i64, u64)]| Pattern { start: 0, width: 8, dims: dims.to_vec() };
        let one = regions(100, pattern(&[]));
        assert_eq!((one[0].0.start, end(&one[0].0), one[0].1), (100, 108, true));
        let backwards = regions(1000, pattern(&[(-64, 3)]));
        assert_eq!((backwards[0].0.start, backwards[0].0.height, backwards[0].0.pitch), (872, 3, 64));
        let four = regions(0, pattern(&[(16, 2), (64, 2), (512, 3)]));
        assert_eq!(four.iter().map(|(r, _)| r.start).collect::<Vec<_>>(), [0, 512, 1024]);
        assert!(four.iter().all(|(r, exact)| *exact && (r.height, r.depth) == (2, 2)));
        let many = regions(0, pattern(&[(16, 2), (64, 2), (512, 300)]));
        assert_eq!((many.len(), many[0].1, end(&many[0].0)), (1, false, 8 + 16 + 64 + 512 * 299));
    }
}
