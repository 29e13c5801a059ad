//! What a thread knows of other threads: a vector clock that is kept as spans of blocks. Owns joins
//! and look-ups.
//!
//! Blocks of a launch execute one code, so their clocks are mostly the same numbers. A span says
//! "of these blocks, this thread, up to this epoch", and a chain through ten thousand blocks is one
//! span.

use std::sync::Arc;

/// All threads of a block, in [`Span::thread`].
pub(crate) const ALL: u32 = u32::MAX;

/// More than any epoch: everything that a grid has done, which has ended with all its copies.
pub(crate) const ENDED: u64 = u64::MAX - 1;

/// Added to a thread's number in its block: what is carried out behind its back.
pub(crate) const AGENT: u32 = 1 << 10;

/// What fences have made known of accesses of the generic proxy, and to which proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fenced {
    /// To the asynchronous one, in shared memory.
    Shared,
    /// To the asynchronous one, in global memory.
    Global,
    /// Released to that of tensor maps: nobody there knows of it yet.
    ToMaps,
    /// To that of tensor maps.
    Maps,
    /// To nobody: the accesses were issued before a product of the thread's warp group that
    /// somebody has waited for. It is no order, see `grade`.
    Product,
}

impl Fenced {
    /// What is added to a thread's number.
    pub(crate) const fn mark(self) -> u32 {
        TO_PROXY[self as usize]
    }
}

/// Added to a number of a thread or its agent: what of it a fence has made known, by [`Fenced`].
const TO_PROXY: [u32; 5] = [1 << 11, 1 << 12, 1 << 30, 1 << 31, 1 << 30 | 1 << 31];

/// The same of [`ALL`].
const ALL_TO_PROXY: [u32; 5] = [u32::MAX - 1, u32::MAX - 2, u32::MAX - 3, u32::MAX - 4, u32::MAX - 5];

/// Marks a barrier object, whose number is in the bits above: an epoch is a phase of it, with the
/// operations that have reported to it then.
const OBJECT: u32 = 1 << 13;

/// The agent of a barrier object.
pub(crate) const fn object(number: u32) -> u32 {
    OBJECT | (number & 0xffff) << 14
}

/// Accesses of a thread of some blocks that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) thread: u32,
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// The last epoch that is known, with all before it.
    pub(crate) epoch: u64,
}

/// A vector clock: spans by thread and first block, which do not overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Known(Vec<Span>);

impl Known {
    fn find(&self, thread: u32, block: u32) -> Option<u64> {
        let after = self.0.partition_point(|span| (span.thread, span.first) <= (thread, block));
        let span = self.0.get(after.checked_sub(1)?)?;
        (span.thread == thread && block <= span.last).then_some(span.epoch)
    }

    /// Whether an epoch of a thread is known. Of [`ALL`]: of every thread of the block.
    pub(crate) fn knows(&self, block: u32, thread: u32, epoch: u64) -> bool {
        if self.0.is_empty() {
            return false;
        }
        self.find(ALL, block).is_some_and(|known| known >= epoch)
            || thread < AGENT && self.find(thread, block).is_some_and(|known| known >= epoch)
    }

    /// Whether a block is of a grid that is known to have ended.
    pub(crate) fn knows_end(&self, block: u32) -> bool {
        !self.0.is_empty() && self.find(ALL, block) == Some(ENDED)
    }

    /// Whether copies of a thread are known to be done. Their epochs are not the thread's.
    pub(crate) fn knows_copies(&self, block: u32, thread: u32, epoch: u64) -> bool {
        self.find(thread | AGENT, block).is_some_and(|known| known >= epoch)
    }

    /// Whether fences have made an epoch of a thread, or with [`AGENT`] of its copies, known. Of
    /// [`ALL`]: of every thread.
    pub(crate) fn to_proxy(&self, block: u32, thread: u32, epoch: u64, fenced: Fenced) -> bool {
        let which = fenced as usize;
        let of_all = thread < AGENT || thread == ALL;
        of_all && self.find(ALL_TO_PROXY[which], block).is_some_and(|known| known >= epoch)
            || thread != ALL && self.find(thread | TO_PROXY[which], block).is_some_and(|known| known >= epoch)
    }

    /// What a fence between the proxies makes known.
    pub(crate) fn fenced(&self, fenced: Fenced) -> Vec<Span> {
        let which = fenced as usize;
        let of = |span: &Span| match span.thread {
            ALL => Some(Span { thread: ALL_TO_PROXY[which], ..*span }),
            thread if thread < TO_PROXY[0] => Some(Span { thread: thread | TO_PROXY[which], ..*span }),
            _ => None,
        };
        self.0.iter().filter_map(of).collect()
    }

    /// What a fence that acquires for the proxy of tensor maps makes known to it: what others have
    /// released to it.
    pub(crate) fn acquired_for_maps(&self) -> Vec<Span> {
        let [.., released, acquired, _] = TO_PROXY;
        let [.., all_released, all_acquired, _] = ALL_TO_PROXY;
        let of = |span: &Span| match span.thread {
            thread if thread == all_released => Some(Span { thread: all_acquired, ..*span }),
            thread if thread & (released | acquired) == released => {
                Some(Span { thread: thread ^ (released | acquired), ..*span })
            }
            _ => None,
        };
        self.0.iter().filter_map(of).collect()
    }

    /// Whether a phase of a barrier object is known to be over.
    pub(crate) fn knows_phase(&self, block: u32, number: u32, phase: u64) -> bool {
        self.find(object(number), block).is_some_and(|known| known >= phase)
    }

    /// The epoch from which on not everything of a block is known.
    pub(crate) fn floor(&self, block: u32) -> u64 {
        self.find(ALL, block).map_or(0, |known| known + 1)
    }

    /// Whether single threads of some blocks are known up to an epoch.
    pub(crate) fn names_threads(&self, first: u32, last: u32, epoch: u64) -> bool {
        let of = |span: &Span| span.thread < AGENT && span.first <= last && first <= span.last && span.epoch >= epoch;
        self.0.iter().any(of)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it says all that another one says.
    fn includes(&self, other: &Known) -> bool {
        let mut spans = self.0.iter().peekable();
        other.0.iter().all(|span| {
            let mut next = span.first;
            while spans.next_if(|of| (of.thread, of.last) < (span.thread, next)).is_some() {}
            while let Some(of) = spans.peek() {
                if of.thread != span.thread || of.first > next || of.epoch < span.epoch {
                    return false;
                }
                if of.last >= span.last {
                    return true;
                }
                next = of.last + 1;
                spans.next();
            }
            false
        })
    }

    /// Everything that either of two knows.
    pub(crate) fn joined(&self, other: &Known) -> Known {
        let (a, b) = (&self.0, &other.0);
        let mut out: Vec<Span> = Vec::with_capacity(a.len().max(b.len()));
        let mut push = |span: Span| match out.last_mut() {
            Some(last)
                if last.thread == span.thread
                    && last.epoch == span.epoch
                    && last.last.checked_add(1) == Some(span.first) =>
            {
                last.last = span.last;
            }
            _ => out.push(span),
        };
        let (mut i, mut j) = (0, 0);
        let (mut x, mut y) = (a.first().copied(), b.first().copied());
        loop {
            match (x, y) {
                (None, None) => break,
                (Some(span), None) => {
                    push(span);
                    i += 1;
                    x = a.get(i).copied();
                }
                (None, Some(span)) => {
                    push(span);
                    j += 1;
                    y = b.get(j).copied();
                }
                (Some(left), Some(right)) => {
                    if (left.thread, left.last) < (right.thread, right.first) {
                        push(left);
                        i += 1;
                        x = a.get(i).copied();
                    } else if (right.thread, right.last) < (left.thread, left.first) {
                        push(right);
                        j += 1;
                        y = b.get(j).copied();
                    } else if left.first < right.first {
                        push(Span { last: right.first - 1, ..left });
                        x = Some(Span { first: right.first, ..left });
                    } else if right.first < left.first {
                        push(Span { last: left.first - 1, ..right });
                        y = Some(Span { first: left.first, ..right });
                    } else {
                        let last = left.last.min(right.last);
                        push(Span { last, epoch: left.epoch.max(right.epoch), ..left });
                        if left.last == last {
                            i += 1;
                            x = a.get(i).copied();
                        } else {
                            x = Some(Span { first: last + 1, ..left });
                        }
                        if right.last == last {
                            j += 1;
                            y = b.get(j).copied();
                        } else {
                            y = Some(Span { first: last + 1, ..right });
                        }
                    }
                }
            }
        }
        Known(out)
    }

    /// Learns what spans say, in any order.
    pub(crate) fn learn(&mut self, mut spans: Vec<Span>) {
        spans.sort_unstable_by_key(|span| (span.thread, span.first));
        // Spans of one block each: the same ones become one.
        spans.dedup_by(|next, kept| {
            let same = (next.thread, next.first, next.last) == (kept.thread, kept.first, kept.last);
            if same {
                kept.epoch = kept.epoch.max(next.epoch);
            }
            same
        });
        *self = self.joined(&Known(spans));
    }

    /// Forgets single threads of a block: all of the block is known instead.
    pub(crate) fn forget_threads(&mut self, block: u32) {
        self.0.retain(|span| span.thread >= AGENT || (span.first, span.last) != (block, block));
    }

    /// The spans that are of one block.
    pub(crate) fn of_block(&self, block: u32) -> Known {
        let of = |span: &&Span| span.first <= block && block <= span.last;
        Known(self.0.iter().filter(of).map(|span| Span { first: block, last: block, ..*span }).collect())
    }
}

/// The join of two shared clocks, without making one where either is enough.
pub(crate) fn join(a: &Arc<Known>, b: &Arc<Known>) -> Arc<Known> {
    if Arc::ptr_eq(a, b) || a.includes(b) {
        return a.clone();
    }
    if b.includes(a) {
        return b.clone();
    }
    Arc::new(a.joined(b))
}

/// A thread's clock at one moment, not put together yet.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) known: Arc<Known>,
    pub(crate) block: u32,
    pub(crate) thread: u32,
    pub(crate) floor: u64,
    pub(crate) epoch: u64,
    /// See `threads::Thread::sc`.
    pub(crate) sc: Arc<Known>,
    /// See `threads::Thread`.
    pub(crate) met: Arc<Known>,
}

impl Snapshot {
    fn spans(&self) -> impl Iterator<Item = Span> {
        let of = |thread, epoch| Span { thread, first: self.block, last: self.block, epoch };
        let floor = self.floor.checked_sub(1).map(|floor| of(ALL, floor));
        floor.into_iter().chain([of(self.thread, self.epoch)])
    }

    /// The clock.
    pub(crate) fn clock(&self) -> Known {
        let mut known = (*self.known).clone();
        known.learn(self.spans().collect());
        known
    }
}

/// The join of shared clocks, of which many are the same.
pub(crate) fn join_all<'a>(clocks: impl Iterator<Item = &'a Arc<Known>>) -> Arc<Known> {
    let mut different: Vec<&Arc<Known>> = Vec::new();
    for clock in clocks {
        if !clock.is_empty() && different.last().is_none_or(|last| !Arc::ptr_eq(last, clock)) {
            different.push(clock);
        }
    }
    different.sort_unstable_by_key(|known| Arc::as_ptr(known));
    different.dedup_by(|a, b| Arc::ptr_eq(a, b));
    different.into_iter().fold(Arc::default(), |all, clock| join(&all, clock))
}

/// The clock of several moments together.
pub(crate) fn union(snapshots: &[Snapshot]) -> Arc<Known> {
    let mut all = join_all(snapshots.iter().map(|snapshot| &snapshot.known));
    Arc::make_mut(&mut all).learn(snapshots.iter().flat_map(Snapshot::spans).collect());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a table of every block and thread.
    #[test]
    fn joins_know_what_either_side_knows() {
        let mut state = 7u64;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for _ in 0..500 {
            let mut sides = [Known::default(), Known::default()];
            let mut tables = [[[None::<u64>; 8]; 3]; 2];
            for side in 0..2 {
                for _ in 0..random(6) {
                    let thread = [0, 1, ALL][random(3) as usize];
                    let first = random(8) as u32;
                    let last = (first + random(4) as u32).min(7);
                    let epoch = random(4);
                    sides[side].learn(vec![Span { thread, first, last, epoch }]);
                    let row = &mut tables[side][if thread == ALL { 2 } else { thread as usize }];
                    for cell in &mut row[first as usize..=last as usize] {
                        *cell = (*cell).max(Some(epoch));
                    }
                }
            }
            let both = sides[0].joined(&sides[1]);
            assert_eq!(both, sides[1].joined(&sides[0]));
            for (side, other) in [(0, 1), (1, 0)] {
                assert_eq!(sides[side].includes(&sides[other]), both == sides[side]);
                assert!(both.includes(&sides[side]));
            }
            for block in 0..8 {
                for thread in 0..2 {
                    for epoch in 0..5 {
                        let cells = tables.iter().flat_map(|table| [table[thread][block], table[2][block]]);
                        let want = cells.flatten().any(|known| known >= epoch);
                        assert_eq!(both.knows(block as u32, thread as u32, epoch), want);
                    }
                }
            }
        }
    }

    #[test]
    fn a_chain_of_blocks_is_one_span() {
        let mut known = Known::default();
        for block in 0..10_000 {
            known.learn(vec![Span { thread: ALL, first: block, last: block, epoch: 5 }]);
        }
        assert_eq!(known.0.len(), 1);
        assert_eq!((known.floor(9_999), known.floor(10_000)), (6, 0));
    }
}
