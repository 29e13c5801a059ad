//! An interval map: disjoint spans of addresses in order, each with a value.
//!
//! Owns the container, a sorted list in chunks of at most [`CHUNK`] spans. A position, once found,
//! can be walked on from, inserted at and removed at for the cost of moving part of one chunk. An
//! ordinary tree would search from its root for each of these. Knows nothing about the values.

use std::cell::Cell;

/// Maximum number of spans in a chunk.
const CHUNK: usize = 32;

/// One span: from `start` up to `end`, which is larger.
#[derive(Clone, Debug)]
pub(crate) struct Span<T> {
    /// First address.
    pub(crate) start: u64,
    /// One past the last address.
    pub(crate) end: u64,
    /// What lies there.
    pub(crate) value: T,
}

/// A position: a span, or one past the last. Valid until the spans change through a method that
/// does not return a new position.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct At {
    chunk: usize,
    index: usize,
}

impl At {
    /// Packed, for positions that are stored. One that does not fit becomes another position.
    pub(crate) fn pack(self) -> (u32, u32) {
        (self.chunk as u32, self.index as u32)
    }

    /// The inverse of [`At::pack`].
    pub(crate) fn unpack((chunk, index): (u32, u32)) -> Self {
        Self { chunk: chunk as usize, index: index as usize }
    }
}

/// Spans in order.
#[derive(Clone, Debug)]
pub(crate) struct Spans<T> {
    /// Start of the first span of each chunk, for the search.
    starts: Vec<u64>,
    /// Never empty ones.
    chunks: Vec<Vec<Span<T>>>,
    len: usize,
    /// The last position found, because callers often ask for the same address again.
    last: Cell<At>,
}

impl<T> Default for Spans<T> {
    fn default() -> Self {
        Self { starts: Vec::new(), chunks: Vec::new(), len: 0, last: Cell::default() }
    }
}

impl<T> Spans<T> {
    /// Number of spans.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first span that ends after this address: the one around it, otherwise the next one.
    #[inline]
    pub(crate) fn seek(&self, address: u64) -> At {
        let last = self.last.get();
        if self.get(last).is_some_and(|span| span.start <= address && address < span.end) {
            return last;
        }
        let after = self.starts.partition_point(|start| *start <= address);
        let Some(chunk) = after.checked_sub(1) else { return At { chunk: 0, index: 0 } };
        let index = self.chunks[chunk].partition_point(|span| span.end <= address);
        let found = self.normal(At { chunk, index });
        self.last.set(found);
        found
    }

    /// The same as [`Spans::seek`], tried first at a position where a span around this address was
    /// found before.
    #[inline]
    pub(crate) fn seek_near(&self, address: u64, near: At) -> At {
        match self.get(near) {
            Some(span) if span.start <= address && address < span.end => near,
            _ => self.seek(address),
        }
    }

    /// The span at a position; `None` past the last.
    #[inline]
    pub(crate) fn get(&self, at: At) -> Option<&Span<T>> {
        self.chunks.get(at.chunk)?.get(at.index)
    }

    /// The span at a position, of which only the value may be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, at: At) -> Option<&mut Span<T>> {
        self.chunks.get_mut(at.chunk)?.get_mut(at.index)
    }

    /// Widens the span at a position over these addresses. There must be a span, and no other span
    /// may hold the addresses.
    pub(crate) fn widen(&mut self, at: At, start: u64, end: u64) -> &mut Span<T> {
        let span = &mut self.chunks[at.chunk][at.index];
        if start < span.start {
            span.start = start;
            if at.index == 0 {
                self.starts[at.chunk] = start;
            }
        }
        span.end = span.end.max(end);
        span
    }

    /// The position after this one.
    #[inline]
    pub(crate) fn next(&self, at: At) -> At {
        self.normal(At { index: at.index + 1, ..at })
    }

    /// Inserts a span before a position, where it must fit. Returns its new position.
    pub(crate) fn insert(&mut self, at: At, span: Span<T>) -> At {
        self.len += 1;
        let mut at = at;
        if at.index == 0 && at.chunk > 0 {
            // Appending moves nothing.
            at = At { chunk: at.chunk - 1, index: self.chunks[at.chunk - 1].len() };
        }
        if self.chunks.is_empty() {
            self.starts.push(span.start);
            self.chunks.push(vec![span]);
            return at;
        }
        if self.chunks[at.chunk].len() == CHUNK {
            let tail = self.chunks[at.chunk].split_off(CHUNK / 2);
            self.starts.insert(at.chunk + 1, tail[0].start);
            self.chunks.insert(at.chunk + 1, tail);
            if at.index > CHUNK / 2 {
                at = At { chunk: at.chunk + 1, index: at.index - CHUNK / 2 };
            }
        }
        if at.index == 0 {
            self.starts[at.chunk] = span.start;
        }
        self.chunks[at.chunk].insert(at.index, span);
        at
    }

    /// Removes a span. Returns its value and the position of the span after it.
    pub(crate) fn remove(&mut self, at: At) -> (T, At) {
        self.len -= 1;
        let removed = self.chunks[at.chunk].remove(at.index).value;
        if self.chunks[at.chunk].is_empty() {
            self.chunks.remove(at.chunk);
            self.starts.remove(at.chunk);
            return (removed, at);
        }
        if at.index == 0 {
            self.starts[at.chunk] = self.chunks[at.chunk][0].start;
        }
        self.join_next(at.chunk, CHUNK / 2);
        (removed, self.normal(at))
    }

    /// Removes `count` spans from a position on, and passes them to `each`.
    pub(crate) fn remove_run(&mut self, at: At, count: usize, each: impl FnMut(Span<T>)) {
        let mut each = each;
        let (mut at, mut left) = (at, count);
        while left > 0 && at.chunk < self.chunks.len() {
            let chunk = &mut self.chunks[at.chunk];
            let take = left.min(chunk.len() - at.index);
            chunk.drain(at.index..at.index + take).for_each(&mut each);
            left -= take;
            self.len -= take;
            match chunk.first() {
                None => {
                    self.chunks.remove(at.chunk);
                    self.starts.remove(at.chunk);
                }
                Some(span) => {
                    self.starts[at.chunk] = span.start;
                    at = self.normal(at);
                }
            }
        }
        // The last chunk that has lost spans, or the one before the removed chunks.
        let last = at.chunk.min(self.chunks.len().saturating_sub(1));
        if self.chunks.get(last).is_some_and(|chunk| chunk.len() < CHUNK / 4) {
            self.join_next(last, CHUNK / 2);
        }
    }

    /// Keeps the spans for which `keep` returns true.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        for chunk in &mut self.chunks {
            chunk.retain_mut(|span| keep(&mut span.value));
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        self.starts = self.chunks.iter().map(|chunk| chunk[0].start).collect();
        let mut chunk = 0;
        while chunk < self.chunks.len() {
            if !self.join_next(chunk, CHUNK) {
                chunk += 1;
            }
        }
        self.len = self.chunks.iter().map(Vec::len).sum();
    }

    /// All spans in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Span<T>> {
        self.chunks.iter().flatten()
    }

    /// Joins two chunks into one when they have no more than `most` spans together.
    fn join_next(&mut self, chunk: usize, most: usize) -> bool {
        let few = self.chunks.get(chunk + 1).is_some_and(|next| self.chunks[chunk].len() + next.len() <= most);
        if few {
            let next = self.chunks.remove(chunk + 1);
            self.starts.remove(chunk + 1);
            self.chunks[chunk].extend(next);
        }
        few
    }

    #[inline]
    fn normal(&self, at: At) -> At {
        match self.chunks.get(at.chunk) {
            Some(chunk) if at.index >= chunk.len() => At { chunk: at.chunk + 1, index: 0 },
            _ => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// All spans, after checking the invariants of the chunks.
    fn all(spans: &Spans<u32>) -> Vec<(u64, u64, u32)> {
        assert_eq!(spans.len(), spans.iter().count());
        assert!(spans.chunks.iter().all(|c| !c.is_empty() && c.len() <= CHUNK));
        assert!(spans.chunks.iter().map(|c| c[0].start).eq(spans.starts.iter().copied()));
        spans.iter().map(|s| (s.start, s.end, s.value)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// The list against a tree: places of eight addresses each. A span takes a part of one.
        #[test]
        fn it_does_what_a_tree_does(steps in prop::collection::vec((0..4_u8, 0..200_u64, 1..8_u64), 1..600)) {
            let (mut spans, mut tree, mut near) = (Spans::default(), BTreeMap::new(), At::default());
            for (n, (what, place, size)) in steps.into_iter().enumerate() {
                let start = place * 8;
                let at = spans.seek(start);
                let expected = tree.iter().find(|(_, (end, _))| *end > start).map(|(s, (e, v))| (*s, *e, *v));
                prop_assert_eq!(spans.get(at).map(|s: &Span<u32>| (s.start, s.end, s.value)), expected);
                prop_assert_eq!(spans.seek_near(start, near), at);
                near = at;
                match expected {
                    Some((from, ..)) if from == start => match what {
                        0 => {
                            let after = spans.remove(at).1;
                            tree.remove(&start);
                            let next = tree.range(start..).next().map(|(s, _)| *s);
                            prop_assert_eq!(spans.get(after).map(|s| s.start), next);
                        }
                        1 => {
                            spans.widen(at, start, start + 8);
                            tree.get_mut(&start).expect("there").0 = start + 8;
                        }
                        2 if n % 20 == 0 => {
                            spans.retain(|v| *v % 3 != 0);
                            tree.retain(|_, (_, v)| *v % 3 != 0);
                        }
                        3 if n % 5 == 0 => {
                            let run: Vec<_> = tree.range(start..).take(size as usize * 9).map(|(s, (e, v))| (*s, *e, *v)).collect();
                            let mut gone = Vec::new();
                            spans.remove_run(at, run.len(), |span| gone.push((span.start, span.end, span.value)));
                            prop_assert_eq!(&gone, &run);
                            tree.retain(|start, _| run.iter().all(|r| r.0 != *start));
                        }
                        _ => {
                            let next = tree.range(start + 1..).next().map(|(s, _)| *s);
                            prop_assert_eq!(spans.get(spans.next(at)).map(|s| s.start), next);
                        }
                    },
                    _ => {
                        let put = spans.insert(at, Span { start, end: start + size, value: n as u32 });
                        prop_assert_eq!(spans.get(put).map(|s| s.start), Some(start));
                        tree.insert(start, (start + size, n as u32));
                    }
                }
            }
            let expected: Vec<_> = tree.iter().map(|(s, (e, v))| (*s, *e, *v)).collect();
            prop_assert_eq!(all(&spans), expected);
        }
    }

    #[test]
    fn a_start_moves_and_is_found() {
        let mut spans = Spans::default();
        for i in 0..100_u64 {
            let at = spans.seek(i * 10 + 5);
            spans.insert(at, Span { start: i * 10 + 5, end: i * 10 + 9, value: i as u32 });
        }
        for i in 0..100_u64 {
            let at = spans.seek(i * 10 + 5);
            spans.widen(at, i * 10, i * 10 + 10);
            for address in [i * 10, i * 10 + 9] {
                assert_eq!(spans.get(spans.seek_near(address, at)).map(|s| s.value), Some(i as u32));
            }
        }
        assert_eq!(all(&spans).len(), 100);
    }
}
