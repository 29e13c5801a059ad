//! The table in device memory that a patched kernel fills: its layout, how it is read, how it is
//! emptied.
//!
//! Owns what `shim/patch/exact.cu` calls `Table`; both must change together. A table serves one
//! launch at a time. When it is read is decided in [`super::readback`].

use std::collections::HashMap;
use std::ffi::c_void;

use cuda_sys::{CU_EVENT_DISABLE_TIMING, CUcontext, CUevent, CUresult, CUstream, c_uint};
use trace::{Epoch, ExactRun};

use super::runs::{Collector, PAGE_WORDS};
use super::sanitizer_api::{Answer, SanitizerApi, StreamHandle};
use crate::real::driver::real;

/// Places of the hash table. A power of two, twice the pages, so that look-ups are short.
const PLACES: usize = 1 << 18;
/// Pages of 4096 bytes with bits of their own: a launch may touch half a gigabyte exactly.
const PAGES: usize = 1 << 17;
/// Pages of a launch that is fetched with one copy.
const SMALL: usize = 64;
/// Cells of 2 MiB for what is left over.
const CELLS: usize = 4096;

const PLACE: usize = 16;
const KEY: usize = 8;
/// A bit for each sector of 32 bytes that was touched as a whole.
const SECTORS: usize = 16;
/// A bit for each byte of sectors that were touched in part.
const BYTES: usize = PAGE_WORDS * 4;
const SPAN: usize = 24;
const COUNTERS: usize = 128;

// What is emptied lies together, and what a small launch has fetched lies around the counters.
/// Behind the keys, which grow downwards from here.
const COUNTERS_AT: usize = PLACES * PLACE + PAGES * KEY;
const SECTORS_AT: usize = COUNTERS_AT + COUNTERS;
const BYTES_AT: usize = SECTORS_AT + SMALL * SECTORS;
const MORE_SECTORS_AT: usize = BYTES_AT + SMALL * BYTES;
const MORE_BYTES_AT: usize = MORE_SECTORS_AT + (PAGES - SMALL) * SECTORS;
const CELLS_AT: usize = MORE_BYTES_AT + (PAGES - SMALL) * BYTES;

/// Bytes of one table.
pub(super) const SIZE: usize = CELLS_AT + CELLS * SPAN;

/// Bytes that one copy fetches, at most.
pub(super) const STAGE: usize = 2 << 20;

/// In the key of a page: some sector was touched in part.
const IN_PART: u64 = 1 << 63;
/// Below the page in a key: what was done (counted from 1), and above that the lower bits of the
/// number of a grid that a graph launched.
const KIND_BITS: u32 = 2;
const GRID_BITS: u32 = 16;

/// Added to the address of the table of a graph's launch.
pub(super) const OF_GRAPH: usize = 1;

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

const _: () = assert!(size_of::<Counters>() == 88 && size_of::<Span>() == SPAN);
const _: () =
    assert!(SMALL * (KEY + SECTORS + BYTES) + COUNTERS <= STAGE && PAGES * KEY <= STAGE && CELLS * SPAN <= STAGE);
const _: () = assert!(PAGES * SECTORS <= STAGE);

/// One table.
pub struct DeviceTable {
    /// Its context.
    pub context: CUcontext,
    base: u64,
    /// Recorded behind the launch that fills the table.
    event: CUevent,
    /// The launch.
    pub epoch: Epoch,
    /// When some of a graph's nodes are measured: all its nodes by their numbers in the table, each
    /// with its number in the trace, counted from 1; 0 of one that is not measured.
    pub nodes: Vec<(u16, u32)>,
}

// SAFETY: handles and addresses of the driver, valid on every thread.
unsafe impl Send for DeviceTable {}

impl DeviceTable {
    /// Allocates a table and empties it, by way of `stream`, which is waited for: what the API does
    /// in a stream is not ordered with its kernels. Allowed inside callbacks of the API.
    pub fn new(api: &SanitizerApi, context: CUcontext, stream: StreamHandle) -> Option<Self> {
        let mut base: *mut c_void = std::ptr::null_mut();
        // SAFETY: out-pointer to a local; the context is that of the launch.
        if unsafe { (api.alloc)(context, &raw mut base, SIZE) } != 0 || base.is_null() {
            return None;
        }
        let (event, epoch) = (CUevent::NULL, Epoch::default());
        let table = Self { context, base: base as u64, event, epoch, nodes: Vec::new() };
        // SAFETY: the memory was just allocated.
        let failed = unsafe { (api.memset)(base, 0, SIZE, stream) | (api.finish)(stream) };
        (failed == 0).then_some(table)
    }

    /// What patched kernels get as their user data.
    pub fn address(&self) -> *const c_void {
        self.base as *const c_void
    }

    /// Records the table's event behind its launch. False: it will be unknown when the launch has
    /// finished.
    pub fn submitted(&mut self, stream: CUstream, per_thread: bool) -> bool {
        let event = &mut self.event;
        if event.0.is_null()
            && real!(cuEventCreate(&raw mut *event => *mut CUevent, CU_EVENT_DISABLE_TIMING => c_uint))
                != CUresult::SUCCESS
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
            CUresult::ERROR_NOT_READY => Ok(false),
            error => Err(error),
        }
    }

    /// Reads the ranges of the finished launch, by way of a stream of ours and some host memory
    /// ([`STAGE`] bytes, 8-byte aligned), and begins to empty the table. It is empty when the
    /// stream has got there: behind the next fetch, or [`finish`].
    pub fn fetch(&self, api: &SanitizerApi, stream: StreamHandle, stage: &mut [u64]) -> Result<TouchedBytes, Answer> {
        let mut at = Reach { api, base: self.base, stream, stage };
        let mut touched = TouchedBytes::default();
        let small = at.read(COUNTERS_AT - SMALL * KEY, SMALL * (KEY + SECTORS + BYTES) + COUNTERS)?;
        let (keys, rest) = small.split_at(SMALL);
        let (counters, rest) = rest.split_at(COUNTERS / 8);
        let (sectors, bytes) = rest.split_at(SMALL * SECTORS / 8);
        // SAFETY: the structure has no padding, any bytes are valid in it, and it is no larger than
        // these.
        let counters = unsafe { counters.as_ptr().cast::<Counters>().read() };
        let used = (counters.used as usize).min(PAGES);
        for (index, page) in pages(keys, sectors).take(used).enumerate() {
            touched.take(page, &bytes[index * (BYTES / 8)..][..BYTES / 8]);
        }
        let mut in_part = keys.iter().any(|key| key & IN_PART != 0);
        if used > SMALL {
            let more = used - SMALL;
            let keys = at.read(COUNTERS_AT - used * KEY, more * KEY)?.to_vec();
            let pages: Vec<Page> = pages(&keys, at.read(MORE_SECTORS_AT, more * SECTORS)?).collect();
            for (index, pages) in pages.chunks(STAGE / BYTES).enumerate() {
                let parts = pages.iter().filter(|page| page.in_part);
                // Of a scatter over much memory not every byte is read.
                let wanted =
                    parts.clone().any(|page| page.kind.is_some_and(|kind| !touched.collector(page.node).is_full(kind)));
                in_part |= parts.count() > 0;
                if wanted {
                    let from = MORE_BYTES_AT + index * STAGE;
                    let bytes = at.read(from, pages.len() * BYTES)?;
                    pages
                        .iter()
                        .zip(bytes.chunks_exact(BYTES / 8))
                        .for_each(|(page, bytes)| touched.take(*page, bytes));
                } else {
                    pages.iter().for_each(|page| touched.take(*page, &[]));
                }
            }
        }
        if counters.coarse != 0 {
            for cell in at.read(CELLS_AT, CELLS * SPAN)?.chunks_exact(SPAN / 8) {
                if let Some(kind) = kind_of(cell[0]) {
                    touched.collector(node_of(cell[0])).extent(!cell[1], cell[2], kind);
                }
            }
        }
        for (kind, span) in counters.spans.iter().enumerate().filter(|(_, span)| span.high != 0) {
            touched.anybody.push((!span.inverted_low, span.high, kind as u32));
        }
        if used > 0 || counters.coarse != 0 {
            let more = used.saturating_sub(SMALL);
            at.clear(0, MORE_SECTORS_AT + more * SECTORS)?;
            if more > 0 && in_part {
                at.clear(MORE_BYTES_AT, more * BYTES)?;
            }
        }
        if counters.coarse != 0 {
            at.clear(CELLS_AT, CELLS * SPAN)?;
        }
        Ok(touched)
    }
}

/// What a table held, apart for each node of a graph; a launch of a single kernel counts as node 0.
#[derive(Default)]
pub struct TouchedBytes {
    nodes: Vec<(u16, Collector)>,
    places: HashMap<u16, usize>,
    /// Place of the node asked for last: most pages are one node's.
    last: usize,
    /// Extents of which the node is not known: lowest byte, one past the highest, kind.
    anybody: Vec<(u64, u64, u32)>,
}

impl TouchedBytes {
    fn collector(&mut self, node: u16) -> &mut Collector {
        if self.nodes.get(self.last).is_none_or(|(last, _)| *last != node) {
            self.last = *self.places.entry(node).or_insert(self.nodes.len());
            if self.last == self.nodes.len() {
                self.nodes.push((node, Collector::default()));
            }
        }
        &mut self.nodes[self.last].1
    }

    /// Whether anything was touched by others than these nodes.
    pub fn strays(&self, nodes: &[(u16, u32)]) -> bool {
        self.nodes.iter().any(|(number, _)| nodes.iter().all(|(known, _)| known != number))
    }

    /// The ranges of a node.
    pub fn of(&mut self, node: u16) -> Vec<ExactRun> {
        let mut collector = std::mem::take(self.collector(node));
        self.anybody.iter().for_each(|(low, high, kind)| collector.extent(*low, *high, *kind));
        collector.finish()
    }

    /// Takes a page with the bits of its bytes; without them, where not every byte is read.
    fn take(&mut self, page: Page, bytes: &[u64]) {
        let Some(kind) = page.kind else { return };
        let collector = self.collector(page.node);
        // Most pages are touched as a whole.
        if page.sectors == [u64::MAX; 2] {
            return collector.whole(page.address, kind);
        }
        if page.in_part && bytes.is_empty() {
            return collector.unread(page.address, kind);
        }
        let mut words = [0_u32; PAGE_WORDS];
        if page.in_part {
            for (two, word) in words.chunks_exact_mut(2).zip(bytes) {
                (two[0], two[1]) = (*word as u32, (*word >> 32) as u32);
            }
        }
        for (index, word) in words.iter_mut().enumerate() {
            if page.sectors[index / 64] >> (index % 64) & 1 != 0 {
                *word = u32::MAX;
            }
        }
        collector.page(page.address, kind, &words);
    }
}

/// Waits until all tables that were fetched by way of this stream are empty.
pub(super) fn finish(api: &SanitizerApi, stream: StreamHandle) -> Result<(), Answer> {
    // SAFETY: the stream is ours.
    answered(unsafe { (api.finish)(stream) })
}

/// A page as its key and its sectors describe it.
#[derive(Clone, Copy)]
struct Page {
    address: u64,
    node: u16,
    kind: Option<u32>,
    in_part: bool,
    sectors: [u64; 2],
}

/// The kind in a key.
fn kind_of(key: u64) -> Option<u32> {
    ((key & 3) as u32).checked_sub(1)
}

/// The node in a key; 0: no graph.
fn node_of(key: u64) -> u16 {
    (key >> KIND_BITS) as u16
}

/// Pages by their number: the key of the first one comes last.
fn pages<'a>(keys: &'a [u64], sectors: &'a [u64]) -> impl Iterator<Item = Page> + 'a {
    keys.iter().rev().zip(sectors.chunks_exact(2)).map(|(key, sectors)| Page {
        address: (key & !IN_PART) >> (GRID_BITS + KIND_BITS) << 12,
        node: node_of(*key),
        kind: kind_of(*key),
        in_part: key & IN_PART != 0,
        sectors: [sectors[0], sectors[1]],
    })
}

/// How the host gets at a table: the driver's own functions do not know its memory.
struct Reach<'a> {
    api: &'a SanitizerApi,
    base: u64,
    stream: StreamHandle,
    stage: &'a mut [u64],
}

impl Reach<'_> {
    /// Some bytes of the table, a multiple of 8, at most [`STAGE`].
    fn read(&mut self, at: usize, bytes: usize) -> Result<&[u64], Answer> {
        let to = self.stage.get_mut(..bytes / 8).ok_or(1_u32)?;
        let from = (self.base + at as u64) as *const c_void;
        // SAFETY: the table has these bytes, and the slice room for them; any bytes are valid in
        // it.
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
        let parts = [
            (0, PLACES * PLACE),
            (COUNTERS_AT - PAGES * KEY, COUNTERS_AT),
            (COUNTERS_AT, COUNTERS_AT + size_of::<Counters>()),
            (SECTORS_AT, SECTORS_AT + SMALL * SECTORS),
            (BYTES_AT, BYTES_AT + SMALL * BYTES),
            (MORE_SECTORS_AT, MORE_SECTORS_AT + (PAGES - SMALL) * SECTORS),
            (MORE_BYTES_AT, MORE_BYTES_AT + (PAGES - SMALL) * BYTES),
            (CELLS_AT, SIZE),
        ];
        assert!(parts.iter().all(|(from, to)| from % 8 == 0 && to % 8 == 0));
        assert!(parts.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{parts:x?}");
    }

    #[test]
    fn sectors_and_bytes_make_a_page() {
        let key = |page: u64, kind: u64| page << (GRID_BITS + KIND_BITS) | (kind + 1);
        assert_eq!(kind_of(0), None);
        // Keys as the device leaves them: the first page last, and room before it.
        let keys = [0, key(0x30, 0) | IN_PART, key(0x20, 1) | IN_PART, key(0x10, 0), key(0x40, 2)];
        let sectors = [u64::MAX, u64::MAX, 3, 1 << 63, 0, 0, 2, 0, 0, 0];
        let mut touched = TouchedBytes::default();
        let mut bytes = [0_u64; BYTES / 8];
        bytes[0] = 0xff;
        for page in pages(&keys, &sectors) {
            let seen = page.address != 0x3_0000;
            touched.take(page, if seen { &bytes } else { &[] });
        }
        let runs = touched.of(0);
        let shown: Vec<_> = runs.iter().map(|r| (r.start, r.width, r.kind)).collect();
        // Bytes count only where the key says that there are any; those of 0x30000 were
        // not read.
        let bound = trace::exact_kind::BOUND;
        assert_eq!(
            shown,
            [(0x1_0000, 64, 0), (0x1_0fe0, 32, 0), (0x3_0000, 4096, bound), (0x2_0000, 8, 1), (0x4_0000, 4096, 2)]
        );
    }
    #[test]
    fn nodes_of_a_graph_are_told_apart() {
        let key = |page: u64, node: u64| page << (GRID_BITS + KIND_BITS) | node << KIND_BITS | 2;
        let keys = [key(0x10, 2), key(0x10, 0xffff), key(0x20, 1)];
        let sectors = [1, 0, 2, 0, 4, 0];
        let mut touched = TouchedBytes::default();
        pages(&keys, &sectors).for_each(|page| touched.take(page, &[]));
        let known = [(1, 5), (2, 6), (0xffff, 7)];
        assert!(!touched.strays(&known) && touched.strays(&known[..2]));
        touched.anybody.push((0x900, 0x910, 1));
        let starts = |runs: Vec<ExactRun>| runs.iter().map(|r| (r.start, r.kind)).collect::<Vec<_>>();
        let bound = (0x900, 1 | trace::exact_kind::BOUND);
        assert_eq!(starts(touched.of(1)), [(0x2_0000, 1), bound]);
        assert_eq!(starts(touched.of(2)), [(0x1_0040, 1), bound]);
        assert_eq!(starts(touched.of(0xffff)), [(0x1_0020, 1), bound]);
        assert_eq!(starts(touched.of(3)), [bound], "one that touched nothing that is known");
    }
}
