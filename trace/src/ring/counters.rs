//! The protocol of the ring: two counters, and which end may touch which bytes when.
//!
//! Owns head and tail, their memory orders, and the arithmetic of free space and of hostile
//! lengths. Knows of no mapping: it says at which byte something lies, and the two ends
//! ([`Producer`](super::Producer), [`Consumer`](super::Consumer)) touch it. That is why loom can
//! run this very source over its own atomics and its own memory: `cargo xtask loom`.

use super::ALIGN;
use crate::atomics::{AtomicU64, Ordering};

/// Bytes ever written and bytes ever consumed, a cache line each.
#[repr(C)]
pub(super) struct Counters {
    head: Line,
    tail: Line,
}

#[repr(C, align(64))]
struct Line(AtomicU64);

impl Counters {
    /// Bytes ever written. What lies before them may be read once this was returned.
    pub(super) fn written(&self) -> u64 {
        self.head.0.load(Ordering::Acquire)
    }

    /// Bytes ever consumed. Their room may be written once this was returned.
    pub(super) fn consumed(&self) -> u64 {
        self.tail.0.load(Ordering::Acquire)
    }

    /// Plays the program that scribbles over the ring.
    #[cfg(all(test, not(loom)))]
    pub(super) fn scribble(&self, head: bool, value: u64) {
        let line = if head { &self.head } else { &self.tail };
        line.0.store(value, Ordering::Relaxed);
    }
}

/// In place of a length: the rest of the lap holds nothing, the next record begins where the ring
/// does.
const LAP_ENDS: u32 = u32::MAX;

/// Bytes of the ring that are used again and again while the reader keeps up: they stay in the
/// processor's caches and its page tables, and no others of the ring are ever touched, which would
/// fault in a page for every forty launches.
const WINDOW: u64 = 1 << 20;

/// Bytes that a record of `len` bytes takes, with its length and the padding.
fn room(len: u64) -> u64 {
    (4 + len).next_multiple_of(ALIGN as u64)
}

/// What the writing end knows.
pub(super) struct WriteCursor {
    head: u64,
    /// A tail that was seen once: reading the real one costs a cache miss.
    tail_seen: u64,
    capacity: u64,
    window: u64,
    /// The head at which to see whether the lap can end early.
    look_at: u64,
}

impl WriteCursor {
    pub(super) fn new(counters: &Counters, capacity: usize) -> Self {
        let (head, capacity) = (counters.written(), capacity as u64);
        let window = WINDOW.min(capacity / 4);
        Self { head, tail_seen: 0, capacity, window, look_at: head + window }
    }

    /// Where the next record begins: the count of bytes before it.
    #[inline]
    pub(super) fn at(&self) -> u64 {
        self.head
    }

    /// Whether there is room for a record of `len` bytes at [`WriteCursor::at`]: until it is
    /// published the other end does not touch that room.
    #[inline]
    pub(super) fn has_room(&mut self, counters: &Counters, len: usize) -> bool {
        let need = room(len as u64);
        if need > self.capacity {
            return false;
        }
        if self.head + need - self.tail_seen > self.capacity {
            // A tail beyond head would be damage done by the other side: never trust it further
            // than head.
            self.tail_seen = counters.consumed().min(self.head);
        }
        self.head + need - self.tail_seen <= self.capacity
    }

    /// Publishes the record of `len` bytes that was written at [`WriteCursor::at`], length and all.
    /// `mark` writes a length at a byte: it is asked to when the lap ends here.
    #[inline]
    pub(super) fn publish(&mut self, counters: &Counters, len: usize, mark: impl FnOnce(u64, u32)) {
        self.head += room(len as u64);
        counters.head.0.store(self.head, Ordering::Release);
        if self.head >= self.look_at {
            self.end_lap(counters, mark);
        }
    }

    /// Goes back to the ring's beginning when the reader is close behind; otherwise all of the ring
    /// is there for what it has yet to read.
    #[cold]
    fn end_lap(&mut self, counters: &Counters, mark: impl FnOnce(u64, u32)) {
        let tail = counters.consumed().min(self.head);
        let lap = self.head - self.head % self.capacity;
        let next = lap + self.capacity;
        if self.head - lap < self.window || next - self.head < self.window {
            // This lap has hardly begun, or ends by itself soon.
            self.look_at = if self.head - lap < self.window { lap } else { next } + self.window;
        } else if self.head - tail > self.window / 2 {
            self.look_at = self.head + self.window / 4;
        } else {
            // The reader is at most half a window behind, and this lap has a whole one: there is
            // room at the beginning.
            mark(self.head, LAP_ENDS);
            (self.head, self.tail_seen, self.look_at) = (next, tail, next + self.window);
            counters.head.0.store(self.head, Ordering::Release);
        }
    }
}

/// A length, or counters, that cannot be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ImpossibleLength {
    /// Count of bytes consumed so far.
    pub at: u64,
    pub length: u32,
}

/// What the reading end knows.
pub(super) struct ReadCursor {
    tail: u64,
    capacity: u64,
}

impl ReadCursor {
    pub(super) fn new(counters: &Counters, capacity: usize) -> Self {
        Self { tail: counters.consumed(), capacity: capacity as u64 }
    }

    /// Goes through all that is published: asks for the length that stands at a byte, then hands
    /// out (byte, length) of the record, then gives its room back. Returns how many there were.
    pub(super) fn drain(
        &mut self,
        counters: &Counters,
        length_at: impl Fn(u64) -> u32,
        mut each: impl FnMut(u64, u32),
    ) -> Result<usize, ImpossibleLength> {
        let mut count = 0;
        let head = counters.written();
        if head < self.tail || head - self.tail > self.capacity {
            return Err(ImpossibleLength { at: self.tail, length: 0 });
        }
        // Space is given back in steps, so that a producer that waits goes on before a long batch
        // is done.
        let step = (self.capacity / 16).min(WINDOW / 8);
        let mut freed = self.tail;
        while self.tail < head {
            let length = length_at(self.tail);
            let in_lap = self.tail % self.capacity;
            if length == LAP_ENDS && in_lap > 0 && self.capacity - in_lap <= head - self.tail {
                self.tail += self.capacity - in_lap;
                continue;
            }
            let need = room(u64::from(length));
            if need > head - self.tail {
                return Err(ImpossibleLength { at: self.tail, length });
            }
            each(self.tail, length);
            self.tail += need;
            count += 1;
            if self.tail - freed >= step {
                freed = self.tail;
                counters.tail.0.store(self.tail, Ordering::Release);
            }
        }
        counters.tail.0.store(self.tail, Ordering::Release);
        Ok(count)
    }
}

/// Every interleaving of both ends, and every value that the memory model lets a load return. The
/// memory is loom's: a cell for each [`ALIGN`] bytes, and touching one that the other side may be
/// touching fails the test, as an order too weak does.
#[cfg(all(test, loom))]
mod loom_tests {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    struct Shared {
        counters: Counters,
        /// The length of a record lies in the upper half of its first cell.
        cells: Vec<UnsafeCell<u64>>,
    }

    // SAFETY: that the cells are used by turns is what these tests are about; loom checks every
    // access.
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    unsafe impl Send for Shared {}

    impl Shared {
        fn new(capacity: usize) -> Arc<Self> {
            let line = || Line(AtomicU64::new(0));
            let cells = (0..capacity / ALIGN).map(|_| UnsafeCell::new(u64::MAX)).collect();
            Arc::new(Self { counters: Counters { head: line(), tail: line() }, cells })
        }

        fn capacity(&self) -> usize {
            self.cells.len() * ALIGN
        }

        fn cell(&self, at: u64) -> &UnsafeCell<u64> {
            &self.cells[at as usize / ALIGN % self.cells.len()]
        }

        /// Writes the record `n` of `len` bytes, without publishing it.
        fn write(&self, at: u64, n: u64, len: usize) {
            for (i, byte) in (at..at + room(len as u64)).step_by(ALIGN).enumerate() {
                let length = if i == 0 { (len as u64) << 32 } else { 0 };
                // SAFETY: see above.
                self.cell(byte).with_mut(|cell| unsafe { *cell = length | n });
            }
        }

        fn length(&self, at: u64) -> u32 {
            // SAFETY: see above.
            self.cell(at).with(|cell| unsafe { (*cell >> 32) as u32 })
        }

        fn check(&self, at: u64, n: u64, len: usize) {
            assert_eq!(self.length(at) as usize, len);
            for byte in (at..at + room(len as u64)).step_by(ALIGN) {
                // SAFETY: see above.
                self.cell(byte).with(|cell| assert_eq!(unsafe { *cell } as u32, n as u32));
            }
        }
    }

    fn send(shared: &Shared, writing: &mut WriteCursor, n: u64, len: usize) {
        while !writing.has_room(&shared.counters, len) {
            thread::yield_now();
        }
        shared.write(writing.at(), n, len);
        // SAFETY: see above.
        let mark = |at, length: u32| shared.cell(at).with_mut(|cell| unsafe { *cell = u64::from(length) << 32 });
        writing.publish(&shared.counters, len, mark);
    }

    fn take(shared: &Shared, reading: &mut ReadCursor, lens: &[usize], next: &mut usize) -> usize {
        let each = |at, length: u32| {
            assert_eq!(length as usize, lens[*next]);
            shared.check(at, *next as u64, lens[*next]);
            *next += 1;
        };
        reading.drain(&shared.counters, |at| shared.length(at), each).expect("nobody scribbles")
    }

    fn model(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(test);
    }

    /// Records of these lengths go through a ring of so many cells; `sent` looks at the writer when
    /// it has written them all.
    fn pass(cells: usize, lens: &'static [usize], sent: fn(&WriteCursor)) {
        model(3, move || {
            let shared = Shared::new(cells * ALIGN);
            let theirs = Arc::clone(&shared);
            let writer = thread::spawn(move || {
                let mut writing = WriteCursor::new(&theirs.counters, theirs.capacity());
                for (n, len) in lens.iter().enumerate() {
                    send(&theirs, &mut writing, n as u64, *len);
                }
                sent(&writing);
            });
            let mut reading = ReadCursor::new(&shared.counters, shared.capacity());
            let mut next = 0;
            while next < lens.len() {
                if take(&shared, &mut reading, lens, &mut next) == 0 {
                    thread::yield_now();
                }
            }
            writer.join().expect("the writer ends");
        });
    }

    /// Records of one, two and three cells through a ring of four: they wrap, and the writer waits
    /// for room.
    #[test]
    fn records_arrive_whole_and_in_order() {
        pass(4, &[12, 20, 4], |_| {});
    }

    /// Two records of a cell each through a ring of eight: laps end early whenever the reader has
    /// kept up.
    #[test]
    fn laps_end_early() {
        static EARLY: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
        pass(8, &[4; 4], |writing| {
            EARLY.fetch_or(writing.at() > (4 * ALIGN) as u64, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(EARLY.load(std::sync::atomic::Ordering::Relaxed), "some interleaving ended a lap");
    }

    /// A writer that dies behind any of its steps: what it published arrives, what it did not never
    /// does, and who comes to the reader's place takes over where it stopped.
    #[test]
    fn a_dead_writer_leaves_whole_records() {
        const LENS: [usize; 3] = [12, 4, 12];
        for lived in 0..=LENS.len() {
            model(3, move || {
                let shared = Shared::new(4 * ALIGN);
                let theirs = Arc::clone(&shared);
                let writer = thread::spawn(move || {
                    let mut writing = WriteCursor::new(&theirs.counters, theirs.capacity());
                    for (n, len) in LENS.into_iter().enumerate().take(lived) {
                        send(&theirs, &mut writing, n as u64, len);
                    }
                    // Dies between the bytes and the counter.
                    if lived < LENS.len() && writing.has_room(&theirs.counters, LENS[lived]) {
                        theirs.write(writing.at(), 77, LENS[lived]);
                    }
                });
                let (mut next, mut rounds) = (0, 0);
                let mut reading = ReadCursor::new(&shared.counters, shared.capacity());
                while next < lived && rounds < 3 {
                    rounds += 1;
                    take(&shared, &mut reading, &LENS, &mut next);
                    thread::yield_now();
                }
                drop(reading);
                let mut second = ReadCursor::new(&shared.counters, shared.capacity());
                while next < lived {
                    if take(&shared, &mut second, &LENS, &mut next) == 0 {
                        thread::yield_now();
                    }
                }
                writer.join().expect("the writer ends");
                assert_eq!(take(&shared, &mut second, &LENS, &mut next), 0, "what was not published does not arrive");
            });
        }
    }
}
