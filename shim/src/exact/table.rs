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

/// Room for the head; places, keys, cells and bits follow.
const HEAD: usize = 4096;
const KEYS_AT: usize = HEAD + PLACES * PLACE;
const CELLS_AT: usize = KEYS_AT + PAGES * 8;
const BITS_AT: usize = CELLS_AT + CELLS * SPAN;

/// Bytes of one table.
pub const SIZE: usize = BITS_AT + PAGES * PAGE;

/// The head of a table, as the device sees it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Head {
    places: u32,
    capacity: u32,
    place: u64,
    keys: u64,
    bits: u64,
    cells: u64,
    reserved: [u64; 3],
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

const _: () = assert!(size_of::<Head>() == 152 && size_of::<Span>() == SPAN);

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
        Head {
            places: PLACES as u32,
            capacity: PAGES as u32,
            place: self.base + HEAD as u64,
            keys: self.base + KEYS_AT as u64,
            cells: self.base + CELLS_AT as u64,
            bits: self.base + BITS_AT as u64,
            ..Head::default()
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

    /// Reads the ranges of the finished launch, by way of a stream of ours, and empties the table for the next one.
    pub fn fetch(&self, api: &Api, stream: StreamHandle) -> Result<Vec<ExactRun>, Answer> {
        let at = Reach { api, base: self.base, stream };
        let mut head = [Head::default()];
        at.read(0, &mut head)?;
        let [head] = head;
        let used = (head.used as usize).min(PAGES);
        let mut keys = vec![0_u64; used];
        let mut bits = vec![0_u32; used * PAGE_WORDS];
        let mut cells = vec![Span::default(); if head.coarse != 0 { CELLS } else { 0 }];
        at.read(KEYS_AT, &mut keys)?;
        at.read(BITS_AT, &mut bits)?;
        at.read(CELLS_AT, &mut cells)?;
        if used + cells.len() > 0 {
            at.clear(HEAD, PLACES * PLACE)?;
            at.clear(BITS_AT, used * PAGE)?;
            at.clear(CELLS_AT, cells.len() * SPAN)?;
            // The counters and spans of the head: everything behind its pointers.
            let counters = std::mem::offset_of!(Head, used);
            at.clear(counters, size_of::<Head>() - counters)?;
            at.finish()?;
        }

        let mut order: Vec<(u64, usize)> = keys
            .iter()
            .enumerate()
            .filter(|(_, key)| **key & 3 != 0)
            .map(|(index, key)| ((key & 3) << 62 | key >> 2, index))
            .collect();
        order.sort_unstable();
        let mut collector = Collector::default();
        for (key, index) in order {
            let (kind, page) = ((key >> 62) as u32 - 1, (key & !(3 << 62)) << 12);
            collector.page(page, kind, &bits[index * PAGE_WORDS..][..PAGE_WORDS]);
        }
        cells.retain(|cell| cell.key != 0);
        cells.sort_unstable_by_key(|cell| (cell.key & 3, !cell.inverted_low));
        for cell in &cells {
            collector.extent(!cell.inverted_low, cell.high, ((cell.key & 3) as u32).saturating_sub(1));
        }
        for (kind, span) in head.spans.iter().enumerate().filter(|(_, span)| span.high != 0) {
            collector.extent(!span.inverted_low, span.high, kind as u32);
        }
        Ok(collector.finish())
    }
}

/// How the host gets at a table: the driver's own functions do not know its memory.
struct Reach<'a> {
    api: &'a Api,
    base: u64,
    stream: StreamHandle,
}

impl Reach<'_> {
    fn read<T: Copy>(&self, at: usize, to: &mut [T]) -> Result<(), Answer> {
        if to.is_empty() {
            return Ok(());
        }
        let from = (self.base + at as u64) as *const c_void;
        // SAFETY: the table has these bytes, and the slice room for them; any bytes are valid in it.
        answered(unsafe { (self.api.download)(to.as_mut_ptr().cast(), from, size_of_val(to), self.stream) })
    }

    fn clear(&self, at: usize, bytes: usize) -> Result<(), Answer> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the table has these bytes, and no kernel is using it.
        answered(unsafe { (self.api.memset)((self.base + at as u64) as *mut c_void, 0, bytes, self.stream) })
    }

    fn finish(&self) -> Result<(), Answer> {
        // SAFETY: the stream is ours.
        answered(unsafe { (self.api.finish)(self.stream) })
    }
}

fn answered(answer: Answer) -> Result<(), Answer> {
    if answer == 0 { Ok(()) } else { Err(answer) }
}
