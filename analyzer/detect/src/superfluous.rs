//! Fences and barriers inside kernels: those of all launches, one for each source line and kind,
//! with how often they ran and whether any launch needed them.
//!
//! Owns that de-duplication. Whether a launch needs one is found out by the simulated GPU
//! (`sim/races/src/trials`). Knows no names.

use rustc_hash::FxHashMap;
use trace::op::inside::{InsideAnswer, InsideSync, ReadInside, ReadSide, inside_flags};

/// Lines kept for one process.
const MOST: usize = 1 << 12;

/// A line that synchronises.
#[derive(Clone, Debug)]
pub struct RawSync {
    /// One of its instructions.
    pub at: ReadSide,
    /// What they are.
    pub kind: InsideSync,
    /// The mangled name of a kernel that has it.
    pub kernel: String,
    /// That ran as machine code, not as PTX.
    pub machine: bool,
    /// How often warps executed it.
    pub count: u64,
    /// What is known of all launches together.
    pub answer: InsideAnswer,
}

/// Its frames; without any, its kernel and instruction; and what it is.
type SyncKey = (Vec<(String, u32)>, Option<(String, u32)>, InsideSync);

/// All of a process.
#[derive(Default)]
pub struct Synchronisations {
    index: FxHashMap<SyncKey, usize>,
    list: Vec<RawSync>,
}

impl Synchronisations {
    /// Takes in those of a grid.
    pub fn add(&mut self, inside: &ReadInside) {
        for sync in &inside.synchronisations {
            let nameless = sync.at.frames.is_empty().then(|| (inside.kernel.clone(), sync.at.at));
            let key = (sync.at.frames.clone(), nameless, sync.kind);
            if let Some(&at) = self.index.get(&key) {
                let known = &mut self.list[at];
                known.count += sync.count;
                known.answer = known.answer.max(sync.answer);
            } else if self.list.len() < MOST {
                self.index.insert(key, self.list.len());
                self.list.push(RawSync {
                    at: sync.at.clone(),
                    kind: sync.kind,
                    kernel: inside.kernel.clone(),
                    machine: inside.flags & inside_flags::MACHINE != 0,
                    count: sync.count,
                    answer: sync.answer,
                });
            }
        }
    }

    /// Those that no launch needed, in the order in which they were seen. Of machine code barriers
    /// only: the assembler puts fences of its own beside those of the program, and into waits.
    pub fn superfluous(&self) -> impl Iterator<Item = &RawSync> {
        let is_fence = |sync: &RawSync| matches!(sync.kind, InsideSync::Fence | InsideSync::ProxyFence);
        self.list
            .iter()
            .filter(move |sync| sync.answer == InsideAnswer::Superfluous && !(sync.machine && is_fence(sync)))
    }

    /// How many were not tried in every launch, of those that no launch needed.
    pub fn unknown(&self) -> u64 {
        self.list.iter().filter(|sync| sync.answer == InsideAnswer::Unknown).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inside::tests::{inside, side};
    use trace::op::inside::{InsideKind, ReadSync};

    fn launch(kernel: &str, lines: &[(u32, InsideAnswer)]) -> ReadInside {
        let sync = |&(line, answer): &(u32, InsideAnswer)| ReadSync {
            // (One instruction for all without a line.)
            at: side(line, InsideKind::Read, 0),
            kind: InsideSync::BlockBarrier,
            count: 4,
            answer,
        };
        ReadInside { synchronisations: lines.iter().map(sync).collect(), ..inside(kernel, 1, Vec::new()) }
    }

    #[test]
    fn fences_are_told_of_ptx_only() {
        let run = |flags: u32, kind: InsideSync| {
            let mut told = launch("k", &[(5, InsideAnswer::Superfluous)]);
            (told.flags, told.synchronisations[0].kind) = (flags, kind);
            let mut all = Synchronisations::default();
            all.add(&told);
            all.superfluous().count()
        };
        for kind in [InsideSync::Fence, InsideSync::ProxyFence] {
            assert_eq!((run(0, kind), run(inside_flags::MACHINE, kind)), (1, 0));
        }
        assert_eq!(run(inside_flags::MACHINE, InsideSync::WarpBarrier), 1);
    }

    #[test]
    fn one_launch_that_needs_a_line_is_enough() {
        use InsideAnswer::{Needed, Superfluous, Unknown};
        let mut all = Synchronisations::default();
        all.add(&launch("k", &[(5, Superfluous), (6, Superfluous), (7, Superfluous), (0, Superfluous)]));
        all.add(&launch("k", &[(5, Superfluous), (6, Needed), (7, Unknown), (0, Superfluous)]));
        // Another kernel's instruction at that place is another one; of a line it is not.
        all.add(&launch("other", &[(5, Superfluous), (0, Needed)]));
        let found: Vec<(u32, u64)> =
            all.superfluous().map(|sync| (sync.at.frames.first().map_or(0, |frame| frame.1), sync.count)).collect();
        assert_eq!(found, [(5, 12), (0, 8)]);
        assert_eq!(all.unknown(), 1);
    }
}
