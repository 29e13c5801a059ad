//! Products of warp groups that have been issued: which group each belongs to, and who has waited
//! for it. Owns no instruction; a product is carried out where it is issued.
//!
//! A product is an operation of four warps, each of which issues its part, and a group is theirs
//! together (PTX ISA, "wgmma.commit_group": a new group for each warp group). So a group is done
//! once all four have issued it, and whoever of them waits for it knows that of all four parts:
//! CUTLASS lets one thread of a warp group hand a stage back behind its own wait.

use sim_races::{Memory, MemoryEvents, ThreadOf};

/// Warps of a warp group.
const WARPS: u32 = 4;

/// Groups in a row that waits are told apart for. More are open at once in no program: machine code
/// waits until at most seven are.
const SLOTS: u64 = 8;

/// In place of an address: beyond all shared memory.
const NO_ADDRESS: u64 = 1 << 40;

/// A part of a product that nobody has waited for.
#[derive(Debug)]
struct Part {
    number: u64,
    warp: u32,
    group: u64,
}

/// Those of a block.
#[derive(Debug, Default)]
pub(crate) struct Products {
    /// Groups that each warp has closed.
    closed: Vec<u64>,
    /// Groups that each thread has waited for.
    awaited: Vec<u64>,
    /// For the detector of races.
    parts: Vec<Part>,
}

fn at(counts: &mut Vec<u64>, index: u32) -> &mut u64 {
    let index = index as usize;
    if counts.len() <= index {
        counts.resize(index + 1, 0);
    }
    &mut counts[index]
}

impl Products {
    /// A warp has carried out its part of a product.
    pub(crate) fn begin(&mut self, warp: u32, number: u64) {
        let group = self.closed(warp);
        self.parts.push(Part { number, warp, group });
    }

    /// A warp closes its group.
    pub(crate) fn close(&mut self, warp: u32) {
        *at(&mut self.closed, warp) += 1;
    }

    /// Groups that a warp has closed.
    pub(crate) fn closed(&self, warp: u32) -> u64 {
        self.closed.get(warp as usize).copied().unwrap_or(0)
    }

    /// The other warps of a warp's group.
    pub(crate) fn others(warp: u32) -> impl Iterator<Item = u32> {
        let first = warp / WARPS * WARPS;
        (first..first + WARPS).filter(move |&other| other != warp)
    }

    /// Threads of a warp have waited for so many groups, which all warps have issued. For the
    /// detector a group is a phase of an object that nobody else sees.
    pub(crate) fn awaited(&mut self, warp: u32, threads: &[ThreadOf], done: u64, events: &dyn MemoryEvents) {
        for &thread in threads {
            let before = std::mem::replace(at(&mut self.awaited, thread.thread), done);
            for group in before.max(done.saturating_sub(SLOTS))..done {
                let slot = u64::from(warp / WARPS) * SLOTS + group % SLOTS;
                let object = (Memory::Shared(thread.block), NO_ADDRESS | slot);
                let count = self.parts.len();
                self.parts.retain(|part| {
                    let of_it = part.group == group && part.warp / WARPS == warp / WARPS;
                    if of_it {
                        events.bulk_completes(part.number, object);
                    }
                    !of_it
                });
                if self.parts.len() < count {
                    events.object_turns(object);
                }
                events.object_passes(thread, object, true, true);
            }
        }
    }

    /// The block has ended.
    pub(crate) fn end(&mut self) {
        self.closed.clear();
        self.awaited.clear();
        self.parts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_counted_for_each_warp() {
        let mut products = Products::default();
        products.close(5);
        products.close(5);
        products.close(4);
        assert_eq!([4, 5, 6].map(|warp| products.closed(warp)), [1, 2, 0]);
        assert_eq!(Products::others(5).collect::<Vec<_>>(), [4, 6, 7]);
        products.end();
        assert_eq!(products.closed(5), 0);
    }
}
