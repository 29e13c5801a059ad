//! The op of a copy: which bytes go where, and what follows in the shim.
//!
//! Owns logging a copy, watching its host memory, and recording the words of a small copy that may
//! hold addresses. What the host waits for follows from the kinds of memory and is decided by
//! `order`.

use cuda_sys::CUstream;
use trace::{GraphExecId, Op, Region, SourceOrder, Space};

use crate::arch;
use crate::ids::streams::working_stream;
use crate::ids::variables::find_variable;
use crate::observe::Cx;
use crate::observe::host_watch::{device_will_write, uses_region, watch_pageable_source, watch_source, watch_target};
use crate::stack::native::is_readable_range;

/// Larger copies hold no tables of pointers that are worth the time.
pub(crate) const MAX_CONTENTS: u64 = 4096;

/// The bytes of copies up to this length are recorded whatever they are: they may be values that
/// streams wait for.
const MAX_VALUES: u64 = 64;

/// One side of a copy.
pub(crate) struct CopySide {
    /// Which bytes.
    pub region: Region,
    /// What the function says of them.
    pub space: Space,
}

impl CopySide {
    pub(crate) fn linear(start: u64, len: u64, space: Space) -> Self {
        Self { region: Region::linear(start, len), space }
    }
}

/// A copy that entered a stream.
pub(crate) fn log_copy(cx: &mut Cx<'_>, dst: CopySide, src: CopySide, stream: CUstream, asynchronous: bool) {
    ordered_copy(cx, dst, src, stream, asynchronous, 0, false);
}

/// A copy that reads its source in stream order. The copies of one `batch` are unordered among
/// themselves. `attributes`: the program has asked for that order.
fn ordered_copy(
    cx: &mut Cx<'_>,
    dst: CopySide,
    src: CopySide,
    stream: CUstream,
    asynchronous: bool,
    batch: u32,
    attributes: bool,
) {
    if cx.is_before() {
        return device_will_write(cx, &dst.region);
    }
    find_variables(cx, [&dst, &src]);
    if let Some(stream) = working_stream(cx, stream) {
        let epoch = cx.log(&Op::Copy {
            stream,
            dst: dst.region,
            src: src.region,
            dst_space: dst.space,
            src_space: src.space,
            asynchronous,
            batch,
        });
        // Only of a copy with attributes do the documents say that the source is read in the
        // order of the stream, wherever it lies.
        if attributes {
            watch_pageable_source(cx, epoch, stream, &src.region, src.space);
        }
        uses_region(cx, epoch, &src.region, false);
        uses_region(cx, epoch, &dst.region, true);
        if asynchronous {
            watch_source(cx, epoch, stream, (GraphExecId::NONE, 0), &src.region);
            watch_target(cx, epoch, stream, (GraphExecId::NONE, 0), &dst.region);
        }
        if src.space == Space::Host && dst.space == Space::Device {
            log_contents(cx, &dst.region, &src.region);
        }
    }
}

/// Variables of modules may be copied from and to without a call that says where they are.
fn find_variables(cx: &mut Cx<'_>, sides: [&CopySide; 2]) {
    for side in sides {
        if matches!(side.space, Space::Device | Space::Unified) {
            find_variable(cx, side.region.start);
        }
    }
}

/// Logs the bytes of a small copy that may hold addresses or values that streams wait for. The
/// copy has been accepted by then: from pageable memory it has read its source, and a program
/// that overwrites pinned memory this early has a race.
fn log_contents(cx: &mut Cx<'_>, dst: &Region, src: &Region) {
    let len = dst.width;
    if dst.height != 1 || len == 0 {
        return;
    }
    if len <= MAX_VALUES && (len | dst.start | src.start) & 3 == 0 {
        log_values(cx, dst.start, src.start, len);
    } else if (8..=MAX_CONTENTS).contains(&len) && (len | dst.start | src.start) & 7 == 0 {
        log_words(cx, dst.start, src.start, len);
    }
}

/// Logs at most [`MAX_VALUES`] bytes of the host, a multiple of 4, as what lies at `ptr`.
fn log_values(cx: &mut Cx<'_>, ptr: u64, from: u64, len: u64) {
    if !is_readable_range(from, from + len) {
        return;
    }
    let mut bytes = [0_u8; MAX_VALUES as usize];
    let bytes = &mut bytes[..len as usize];
    for (i, word) in bytes.chunks_exact_mut(4).enumerate() {
        // SAFETY: aligned, and on a page that was found readable just now and that the program
        // has given to the driver for reading.
        let value = unsafe { ((from + 4 * i as u64) as *const u32).read_volatile() };
        word.copy_from_slice(&value.to_ne_bytes());
    }
    cx.log(&Op::Contents { ptr, bytes });
}

/// Logs words of the host that may be addresses, as what lies at `ptr`: at most
/// [`MAX_CONTENTS`], a multiple of 8 bytes.
pub(crate) fn log_words(cx: &mut Cx<'_>, ptr: u64, from: u64, len: u64) {
    // What cannot be read (a device's memory under a host's name) is left alone.
    if len > MAX_CONTENTS || !is_readable_range(from, from + len) {
        return;
    }
    let mut words = [0_u64; MAX_CONTENTS as usize / 8];
    let words = &mut words[..(len / 8) as usize];
    let mut addresses = false;
    for (i, word) in words.iter_mut().enumerate() {
        // SAFETY: aligned, and on a page that was found readable just now and that the program
        // has given to the driver for reading.
        *word = unsafe { ((from + 8 * i as u64) as *const u64).read_volatile() };
        addresses |= (1 << 32..1 << arch::ADDRESSES).contains(word);
    }
    if addresses {
        // SAFETY: the words are `len` bytes of plain numbers.
        let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), len as usize) };
        cx.log(&Op::Contents { ptr, bytes });
    }
}

/// A copy whose attributes say when it reads its source.
pub(crate) fn attributed_copy(
    cx: &mut Cx<'_>,
    dst: CopySide,
    src: CopySide,
    stream: CUstream,
    batch: u32,
    source: SourceOrder,
) {
    if source == SourceOrder::Stream {
        return ordered_copy(cx, dst, src, stream, true, batch, true);
    }
    if cx.is_before() {
        return device_will_write(cx, &dst.region);
    }
    find_variables(cx, [&dst, &src]);
    if let Some(stream) = working_stream(cx, stream) {
        let (dst_space, src_space) = (dst.space, src.space);
        let (dst, src) = (dst.region, src.region);
        let epoch = cx.log(&Op::AttributedCopy { stream, dst, src, dst_space, src_space, batch, source });
        if source != SourceOrder::DuringCall {
            uses_region(cx, epoch, &src, false);
            watch_pageable_source(cx, epoch, stream, &src, src_space);
            watch_source(cx, epoch, stream, (GraphExecId::NONE, 0), &src);
        }
        uses_region(cx, epoch, &dst, true);
        watch_target(cx, epoch, stream, (GraphExecId::NONE, 0), &dst);
    }
}

/// Memory of which the call does not say what kind it is.
pub(crate) fn unified(ptr: u64, len: u64) -> CopySide {
    CopySide::linear(ptr, len, Space::Unified)
}
