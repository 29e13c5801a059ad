//! Kernels that run past the memory they were meant for: a mistake of bounds, not of order.
//!
//! Owns the rule that tells the two apart. A kernel whose grid was rounded up to whole blocks, and
//! which has no guard (`if (i < n)`), touches the rest of its last block as well. On a buffer that
//! is cut into chunks, that rest is the beginning of the neighbour's chunk. A wait would order the
//! two, and the result would still be wrong.
//!
//! # The rule
//!
//! All of these hold, of exact ranges only:
//!
//! - one side is a kernel whose bytes are the threads of its grid times a whole number of bytes: no
//!   thread is held back by a guard;
//! - both touch one life of one allocation: where memory was given back and handed out again in
//!   between, what the earlier op reached into is not there any more, and only a wait helps;
//! - the other side begins behind the kernel's first byte, before its last, and ends no earlier;
//! - what both touch is less than one block of the kernel's threads covers: without its last block
//!   the kernel would not reach the other side's bytes.
//!
//! A halo that a kernel reads on purpose is no whole number of bytes for each thread, and two
//! kernels on one buffer begin at one address.

use crate::counterfactual::edits::notes::Threads;
use detect::memory::{Access, Cause, Precision};
use detect::race::Race;

/// A kernel that reaches into its neighbour's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Overrun {
    /// Whether it is the later op.
    pub(crate) later: bool,
    /// First byte of the kernel, of the neighbour, and one past the kernel's last byte.
    pub(crate) bytes: (u64, u64, u64),
    /// Bytes of each thread.
    pub(crate) each: u64,
    /// Threads in all, and of a block.
    pub(crate) threads: Threads,
}

/// Whether one side of a race is such a kernel. `threads`: the grid of an op.
pub(crate) fn of(race: &Race, threads: impl Fn(&Access) -> Option<Threads>) -> Option<Overrun> {
    if race.access.allocation != race.previous.allocation {
        return None;
    }
    let sides = [(&race.access, &race.previous, true), (&race.previous, &race.access, false)];
    sides.into_iter().find_map(|(kernel, other, later)| {
        if kernel.site.cause != Cause::Kernel || kernel.site.node > 0 {
            return None;
        }
        let (total, block) = threads(kernel)?;
        let (k, o) = (&kernel.extent, &other.extent);
        let exact = k.precision == Precision::Exact && o.precision == Precision::Exact && k.is_plain();
        let len = k.end - k.start;
        let whole = total > 0 && len.is_multiple_of(total) && len >= total;
        if !(exact && whole && k.start < o.start && o.start < k.end && k.end <= o.end) {
            return None;
        }
        let each = len / total;
        let rest = k.end - o.start;
        (rest < block * each && total > block).then_some(Overrun {
            later,
            bytes: (k.start, o.start, k.end),
            each,
            threads: (total, block),
        })
    })
}

#[cfg(test)]
mod tests {
    use trace::{Epoch, StreamId, TimelineId};

    use super::*;
    use detect::memory::{AccessKind, AllocationId, Exclusion, Extent, Site};

    fn access(stream: u32, kind: AccessKind, bytes: (u64, u64), allocation: u32, cause: Cause) -> Access {
        Access {
            epoch: Epoch { timeline: TimelineId(stream), time: 1 },
            kind,
            extent: Extent::exact(bytes.0, bytes.1),
            allocation: AllocationId(allocation),
            site: Site { stream: StreamId(stream), ..Site::unknown(cause) },
            exclusion: Exclusion::NONE,
        }
    }

    /// A read of 8,192 bytes from 4,000 on, in an allocation, then a kernel of 4 blocks of 256
    /// threads that writes the first 4,096 bytes in another one.
    fn overrun(read_in: u32, written_in: u32) -> Option<Overrun> {
        let previous = access(1, AccessKind::Read, (4000, 12192), read_in, Cause::Copy);
        let kernel = access(2, AccessKind::Write, (0, 4096), written_in, Cause::Kernel);
        of(&Race::judge(&previous, &kernel, false).expect("a race"), |_| Some((1024, 256)))
    }

    #[test]
    fn a_neighbour_lies_in_the_same_life_of_the_same_allocation() {
        assert_eq!(overrun(7, 7).map(|found| (found.bytes, found.each)), Some(((0, 4000, 4096), 4)));
        // The memory was given back and handed out again, in other pieces.
        assert_eq!(overrun(7, 8), None);
    }
}
