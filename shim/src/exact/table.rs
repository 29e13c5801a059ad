//! The tables in device memory that patched kernels fill: their layout, and how one is emptied.
//!
//! Owns what `shim/patch/exact.cu` calls `Table`; both must change together. A table serves one launch at a time.

use std::ffi::c_void;

use cuda_sys::{CUcontext, CUevent, CUresult, CUstream};
use trace::{Epoch, ExactRun};

use super::runs::{Collector, PAGE_WORDS};
use super::sanitizer::{Answer, Api, StreamHandle};
use crate::real;

/// Places of the hash table. A power of two, four times the pages, so that look-ups are short.
const PLACES: usize = 1 << 19;
/// Pages of 4096 bytes with bits of their own: a launch may touch half a gigabyte exactly.
const PAGES: usize = 1 << 17;
/// Cells of 2 MiB for what is left over.
const CELLS: usize = 4096;

const PLACE: usize = 16;
const SPAN: usize = 24;
const PAGE: usize = PAGE_WORDS * 4;

/// Room for the head, and for the counters.
const HEAD: usize = 256;
const COUNTERS: usize = 128;

// What is emptied lies together, and what a small launch has fetched lies around the counters.
const PLACES_AT: usize = HEAD;
/// Behind the keys, which grow downwards from here.
const COUNTERS_AT: usize = PLACES_AT + PLACES * PLACE + PAGES * 8;
const BITS_AT: usize = COUNTERS_AT + COUNTERS;
const CELLS_AT: usize = BITS_AT + PAGES * PAGE;

/// Bytes of one table.
pub const SIZE: usize = CELLS_AT + CELLS * SPAN;

/// Pages of a launch that is fetched with one copy.
const SMALL: usize = 64;

/// Bytes that one copy fetches, at most.
pub const STAGE: usize = 2 << 20;

/// The head of a table, as the device sees it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    places: u32,
    capacity: u32,
    place: u64,
    keys: u64,
    bits: u64,
    cells: u64,
    counters: u64,
}

/// What a launch has used.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Counters {
    used: u32,
    coarse: u32,
    coarsest: u32,
    unused: u32,
    spans: [Span; 3],
}

/// An extent of the device's: the lowest byte is kept inverted, so that zero is empty.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Span {
    key: u64,
    inverted_low: u64,
    high: u64,
}

const _: () = assert!(size_of::<Head>() <= HEAD && size_of::<Counters>() == 88 && size_of::<Span>() == SPAN);
const _: () = assert!(SMALL * (8 + PAGE) + COUNTERS <= STAGE && PAGES * 8 <= STAGE && CELLS * SPAN <= STAGE);

/// One table.
pub struct Table {
    /// Its context.
    pub context: CUcontext,
    base: u64,
    /// Recorded behind the launch that fills the table.
    event: CUevent,
    /// The launch.
    pub epoch: Epoch,
}

// SAFETY: handles and addresses of the driver, valid on every thread.
unsafe impl Send for Table {}

impl Table {
    /// Allocates a table and empties it, by way of `stream`, which is waited for: what the API does in a stream is not ordered with its
    /// kernels. Allowed inside callbacks of the API.
    pub fn new(api: &Api, context: CUcontext, stream: StreamHandle) -> Option<Self> {
        let mut base: *mut c_void = std::ptr::null_mut();
        // SAFETY: out-pointer to a local; the context is that of the launch.
        if unsafe { (api.alloc)(context, &raw mut base, SIZE) } != 0 || base.is_null() {
            return None;
        }
        let table = Self { context, base: base as u64, event: CUevent::NULL, epoch: Epoch::default() };
        let head = table.head();
        // SAFETY: the memory was just allocated; the head is copied before the call returns.
        let failed = unsafe {
            (api.memset)(base, 0, SIZE, stream)
                | (api.upload)(base, (&raw const head).cast(), size_of::<Head>(), stream)
                | (api.finish)(stream)
        };
        (failed == 0).then_some(table)
    }

    fn head(&self) -> Head {
        let at = |offset: usize| self.base + offset as u64;
        Head {
            places: PLACES as u32,
            capacity: PAGES as u32,
            place: at(PLACES_AT),
            keys: at(COUNTERS_AT - 8),
            cells: at(CELLS_AT),
            bits: at(BITS_AT),
            counters: at(COUNTERS_AT),
        }
    }

    /// What patched kernels get as their user data.
    pub fn address(&self) -> *const c_void {
        self.base as *const c_void
    }

    /// Records the table's event behind its launch. False: it can not be told when the launch has finished.
    pub fn submitted(&mut self, stream: CUstream, per_thread: bool) -> bool {
        const DISABLE_TIMING: u32 = 2;
        let event = &mut self.event;
        if event.0.is_null()
            && real!(cuEventCreate(&raw mut *event => *mut CUevent, DISABLE_TIMING => u32)) != CUresult::SUCCESS
        {
            return false;
        }
        let result = if per_thread {
            real!(cuEventRecord_ptsz(*event => CUevent, stream => CUstream))
        } else {
            real!(cuEventRecord(*event => CUevent, stream => CUstream))
        };
        result == CUresult::SUCCESS
    }

    /// Whether the launch has finished; an error means that it never will.
    pub fn is_finished(&self) -> Result<bool, CUresult> {
        match real!(cuEventQuery(self.event => CUevent)) {
            CUresult::SUCCESS => Ok(true),
            CUresult(600) => Ok(false),
            error => Err(error),
        }
    }

    /// Reads the ranges of the finished launch, by way of a stream of ours and some host memory ([`STAGE`] bytes, 8-byte aligned), and begins
    /// to empty the table. It is empty when the stream has got there: behind the next fetch, or [`finish`].
    pub fn fetch(&self, api: &Api, stream: StreamHandle, stage: &mut [u64]) -> Result<Vec<ExactRun>, Answer> {
        let mut at = Reach { api, base: self.base, stream, stage };
        let mut collector = Collector::default();
        let small = at.read(COUNTERS_AT - SMALL * 8, SMALL * (8 + PAGE) + COUNTERS)?;
        let (keys, rest) = small.split_at(SMALL);
        let (counters, bits) = rest.split_at(COUNTERS / 8);
        // SAFETY: the structure has no padding, any bytes are valid in it, and it is no larger than these.
        let counters = unsafe { counters.as_ptr().cast::<Counters>().read() };
        let used = (counters.used as usize).min(PAGES);
        let first = used.min(SMALL);
        take(&mut collector, keys.iter().rev().take(first), bits);
        if used > SMALL {
            let keys: Vec<u64> = at.read(COUNTERS_AT - used * 8, (used - SMALL) * 8)?.iter().rev().copied().collect();
            for (index, keys) in keys.chunks(STAGE / PAGE).enumerate() {
                // Of a scatter over much memory nobody looks at every byte.
                if keys.iter().all(|key| kind_of(*key).is_none_or(|kind| collector.is_full(kind))) {
                    let pages = keys.iter().filter_map(|key| Some((page_of(*key), kind_of(*key)?)));
                    pages.for_each(|(page, kind)| collector.unread(page, kind));
                    continue;
                }
                let from = SMALL + index * (STAGE / PAGE);
                take(&mut collector, keys.iter(), at.read(BITS_AT + from * PAGE, keys.len() * PAGE)?);
            }
        }
        if counters.coarse != 0 {
            for cell in at.read(CELLS_AT, CELLS * SPAN)?.chunks_exact(SPAN / 8) {
                if let Some(kind) = kind_of(cell[0]) {
                    collector.extent(!cell[1], cell[2], kind);
                }
            }
        }
        for (kind, span) in counters.spans.iter().enumerate().filter(|(_, span)| span.high != 0) {
            collector.extent(!span.inverted_low, span.high, kind as u32);
        }
        if used > 0 || counters.coarse != 0 {
            at.clear(PLACES_AT, BITS_AT + used * PAGE - PLACES_AT)?;
        }
        if counters.coarse != 0 {
            at.clear(CELLS_AT, CELLS * SPAN)?;
        }
        Ok(collector.finish())
    }
}

/// Waits until all tables that were fetched by way of this stream are empty.
pub fn finish(api: &Api, stream: StreamHandle) -> Result<(), Answer> {
    // SAFETY: the stream is ours.
    answered(unsafe { (api.finish)(stream) })
}

/// The kind of a page's key.
fn kind_of(key: u64) -> Option<u32> {
    ((key & 3) as u32).checked_sub(1)
}

/// Address of the first byte of a page.
fn page_of(key: u64) -> u64 {
    key >> 2 << 12
}

/// Takes pages with these keys, and bits in the same order.
fn take<'a>(collector: &mut Collector, keys: impl Iterator<Item = &'a u64>, bits: &[u64]) {
    let mut words = [0_u32; PAGE_WORDS];
    for (key, page) in keys.zip(bits.chunks_exact(PAGE / 8)) {
        let Some(kind) = kind_of(*key) else { continue };
        // Most pages are touched as a whole.
        if page.iter().fold(u64::MAX, |all, word| all & word) == u64::MAX {
            collector.whole(page_of(*key), kind);
            continue;
        }
        for (two, word) in words.chunks_exact_mut(2).zip(page) {
            (two[0], two[1]) = (*word as u32, (*word >> 32) as u32);
        }
        collector.page(page_of(*key), kind, &words);
    }
}

/// How the host gets at a table: the driver's own functions do not know its memory.
struct Reach<'a> {
    api: &'a Api,
    base: u64,
    stream: StreamHandle,
    stage: &'a mut [u64],
}

impl Reach<'_> {
    /// Some bytes of the table, a multiple of 8, at most [`STAGE`].
    fn read(&mut self, at: usize, bytes: usize) -> Result<&[u64], Answer> {
        let to = self.stage.get_mut(..bytes / 8).ok_or(1_u32)?;
        let from = (self.base + at as u64) as *const c_void;
        // SAFETY: the table has these bytes, and the slice room for them; any bytes are valid in it.
        answered(unsafe { (self.api.download)(to.as_mut_ptr().cast(), from, size_of_val(to), self.stream) })?;
        Ok(to)
    }

    fn clear(&self, at: usize, bytes: usize) -> Result<(), Answer> {
        // SAFETY: the table has these bytes, and no kernel is using it.
        answered(unsafe { (self.api.memset)((self.base + at as u64) as *mut c_void, 0, bytes, self.stream) })
    }
}

fn answered(answer: Answer) -> Result<(), Answer> {
    if answer == 0 { Ok(()) } else { Err(answer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_table_lie_apart_and_aligned() {
        let table = Table { context: CUcontext::NULL, base: 0x1000, event: CUevent::NULL, epoch: Epoch::default() };
        let head = table.head();
        let ends = [
            (head.place, head.place + (PLACES * PLACE) as u64),
            (head.keys + 8 - PAGES as u64 * 8, head.keys + 8),
            (head.counters, head.counters + size_of::<Counters>() as u64),
            (head.bits, head.bits + (PAGES * PAGE) as u64),
            (head.cells, head.cells + (CELLS * SPAN) as u64),
        ];
        for (from, to) in ends {
            assert_eq!((from % 8, to % 8), (0, 0));
        }
        assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ends:x?}");
        assert!(ends[0].0 >= 0x1000 + HEAD as u64 && ends[4].1 == 0x1000 + SIZE as u64);
        assert_eq!(head.keys + 8, head.counters);
    }

    #[test]
    fn keys_tell_page_and_kind() {
        let key = |page: u64, kind: u64| page << 2 | (kind + 1);
        assert_eq!((page_of(key(0x7f_1234, 2)), kind_of(key(0x7f_1234, 2))), (0x7_f123_4000, Some(2)));
        assert_eq!(kind_of(0), None);
        // Keys as the device leaves them: the first page last.
        let mut collector = Collector::default();
        let mut bits = [0_u64; 2 * PAGE / 8];
        (bits[0], bits[PAGE / 8]) = (0xf, 0xff);
        let keys = [0, key(0x20, 1), key(0x10, 0)];
        take(&mut collector, keys.iter().rev().take(2), &bits);
        let runs = collector.finish();
        let shown: Vec<_> = runs.iter().map(|r| (r.start, r.width, r.kind)).collect();
        assert_eq!(shown, [(0x1_0000, 4, 0), (0x2_0000, 8, 1)]);
    }
}
