//! NVSHMEM's puts, gets and signals on streams, each an op of the stream that it is given.
//!
//! Owns their exports. A signal is a value that a stream writes to another element, and a
//! `wait_until` a wait for one. Signals that are added, waits whose comparison streams do not have,
//! waits for words of two bytes and for many words at a time are counted as not modelled. Calls
//! that do not block (`nbi`) count as over in stream order, though NVSHMEM promises that only
//! behind `quiet`: that may hide a race and invents none. So `quiet` and `flush` on streams do
//! nothing here.

use std::ffi::{c_int, c_void};

use cuda_sys::CUstream;
use trace::WaitCompare;

use super::{Dest, Effects, Elements, Source, around, export, get, get_one, mapped, put, put_one};
use crate::log::nvshmem_names::{with_sizes, with_types, with_waits};

/// `NVSHMEM_SIGNAL_SET`.
const SET: c_int = 9;
/// `NVSHMEM_CMP_EQ`.
const EQUAL: c_int = 0;
/// `NVSHMEM_CMP_GT`.
const GREATER: c_int = 2;
/// `NVSHMEM_CMP_GE`.
const AT_LEAST: c_int = 5;

/// Words of one wait that are told one by one.
const MOST_WORDS: usize = 16;

/// The same, and a signal behind it.
fn signalled(mut effects: Effects, signal: *mut u64, value: u64, op: c_int, pe: c_int) -> Effects {
    let at = mapped(signal.cast(), pe);
    if op == SET && at != 0 {
        effects.signal = Some((at, value));
    } else {
        effects.in_part = true;
    }
    effects
}

/// Waits for the same value in each of so many words of `width` bytes.
fn waited(first: u64, width: usize, count: usize, compare: c_int, value: u64) -> Effects {
    let compare = match compare {
        EQUAL => Some((value, WaitCompare::Equal)),
        AT_LEAST => Some((value, WaitCompare::GreaterEqual)),
        GREATER => value.checked_add(1).map(|next| (next, WaitCompare::GreaterEqual)),
        _ => None,
    };
    let compare = compare.filter(|_| matches!(width, 4 | 8) && count <= MOST_WORDS);
    let Some((value, compare)) = compare else { return Effects { in_part: true, ..Effects::default() } };
    let words = (0..count).map(|word| (first + (word * width) as u64, value, width as u8));
    Effects { waits: words.collect(), compare: Some(compare), ..Effects::default() }
}

/// Of several words, some of which the program's `status` leaves out.
fn waited_for_all(first: u64, width: usize, count: usize, status: *const c_int, op: c_int, value: u64) -> Effects {
    if !status.is_null() {
        return Effects { in_part: true, ..Effects::default() };
    }
    waited(first, width, count, op, value)
}

macro_rules! of_type {
    ($($name:ident $ty:ty;)*) => {$(
        export!(["nvshmemx_", stringify!($name), "_put_on_stream"]
            (dest: Dest<$ty>, source: Source<$ty>, count: usize, pe: c_int, stream: CUstream),
            around(stream, || put(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmemx_", stringify!($name), "_put_nbi_on_stream"]
            (dest: Dest<$ty>, source: Source<$ty>, count: usize, pe: c_int, stream: CUstream),
            around(stream, || put(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmemx_", stringify!($name), "_get_on_stream"]
            (dest: Dest<$ty>, source: Source<$ty>, count: usize, pe: c_int, stream: CUstream),
            around(stream, || get(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmemx_", stringify!($name), "_get_nbi_on_stream"]
            (dest: Dest<$ty>, source: Source<$ty>, count: usize, pe: c_int, stream: CUstream),
            around(stream, || get(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmemx_", stringify!($name), "_put_signal_on_stream"]
            (dest: Dest<$ty>, source: Source<$ty>, count: usize, signal: *mut u64, value: u64, op: c_int, pe: c_int,
             stream: CUstream),
            around(stream, || signalled(put(dest, source, Elements::of::<$ty>(count), pe), signal, value, op, pe)));
        export!(["nvshmemx_", stringify!($name), "_put_signal_nbi_on_stream"]
            (dest: Dest<$ty>, source: Source<$ty>, count: usize, signal: *mut u64, value: u64, op: c_int, pe: c_int,
             stream: CUstream),
            around(stream, || signalled(put(dest, source, Elements::of::<$ty>(count), pe), signal, value, op, pe)));
        export!(["nvshmemx_", stringify!($name), "_iput_on_stream"]
            (dest: Dest<$ty>, source: Source<$ty>, to: isize, from: isize, count: usize, pe: c_int, stream: CUstream),
            around(stream, || put(dest, source, Elements::apart::<$ty>(count, to, from), pe)));
        export!(["nvshmemx_", stringify!($name), "_iget_on_stream"]
            (dest: Dest<$ty>, source: Source<$ty>, to: isize, from: isize, count: usize, pe: c_int, stream: CUstream),
            around(stream, || get(dest, source, Elements::apart::<$ty>(count, to, from), pe)));
        export!(["nvshmemx_", stringify!($name), "_p_on_stream"]
            (dest: Dest<$ty>, value: $ty, pe: c_int, stream: CUstream), around(stream, || put_one(dest, pe)));
        export!(["nvshmemx_", stringify!($name), "_g_on_stream"]
            (source: Source<$ty>, pe: c_int, stream: CUstream) -> $ty, Default::default(),
            around(stream, || get_one(source, pe)));
    )*};
}

with_types!(of_type!);

macro_rules! of_size {
    ($($bits:literal $ty:ty;)*) => {$(
        export!(["nvshmemx_put", stringify!($bits), "_on_stream"]
            (dest: Dest<c_void>, source: Source<c_void>, count: usize, pe: c_int, stream: CUstream),
            around(stream, || put(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmemx_put", stringify!($bits), "_nbi_on_stream"]
            (dest: Dest<c_void>, source: Source<c_void>, count: usize, pe: c_int, stream: CUstream),
            around(stream, || put(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmemx_get", stringify!($bits), "_on_stream"]
            (dest: Dest<c_void>, source: Source<c_void>, count: usize, pe: c_int, stream: CUstream),
            around(stream, || get(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmemx_get", stringify!($bits), "_nbi_on_stream"]
            (dest: Dest<c_void>, source: Source<c_void>, count: usize, pe: c_int, stream: CUstream),
            around(stream, || get(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmemx_put", stringify!($bits), "_signal_on_stream"]
            (dest: Dest<c_void>, source: Source<c_void>, count: usize, signal: *mut u64, value: u64, op: c_int,
             pe: c_int, stream: CUstream),
            around(stream, || signalled(put(dest, source, Elements::of::<$ty>(count), pe), signal, value, op, pe)));
        export!(["nvshmemx_put", stringify!($bits), "_signal_nbi_on_stream"]
            (dest: Dest<c_void>, source: Source<c_void>, count: usize, signal: *mut u64, value: u64, op: c_int,
             pe: c_int, stream: CUstream),
            around(stream, || signalled(put(dest, source, Elements::of::<$ty>(count), pe), signal, value, op, pe)));
        export!(["nvshmemx_iput", stringify!($bits), "_on_stream"]
            (dest: Dest<c_void>, source: Source<c_void>, to: isize, from: isize, count: usize, pe: c_int,
             stream: CUstream),
            around(stream, || put(dest, source, Elements::apart::<$ty>(count, to, from), pe)));
        export!(["nvshmemx_iget", stringify!($bits), "_on_stream"]
            (dest: Dest<c_void>, source: Source<c_void>, to: isize, from: isize, count: usize, pe: c_int,
             stream: CUstream),
            around(stream, || get(dest, source, Elements::apart::<$ty>(count, to, from), pe)));
    )*};
}

with_sizes!(of_size!);

macro_rules! wait {
    ($($name:ident $ty:ty;)*) => {$(
        export!(["nvshmemx_", stringify!($name), "_wait_until_on_stream"]
            (word: Dest<$ty>, op: c_int, value: $ty, stream: CUstream),
            around(stream, || waited(word as u64, size_of::<$ty>(), 1, op, value as u64)));
        export!(["nvshmemx_", stringify!($name), "_wait_until_all_on_stream"]
            (words: Dest<$ty>, count: usize, status: *const c_int, op: c_int, value: $ty, stream: CUstream),
            around(stream, || waited_for_all(words as u64, size_of::<$ty>(), count, status, op, value as u64)));
        // The values are in memory that the host may not be able to read.
        export!(["nvshmemx_", stringify!($name), "_wait_until_all_vector_on_stream"]
            (words: Dest<$ty>, count: usize, status: *const c_int, op: c_int, values: Dest<$ty>, stream: CUstream),
            around(stream, || Effects { in_part: true, ..Effects::default() }));
    )*};
}

with_waits!(wait!);

macro_rules! of_bytes {
    ($($name:literal $what:ident;)*) => {$(
        export!([$name]
            (dest: Dest<c_void>, source: Source<c_void>, bytes: usize, pe: c_int, stream: CUstream),
            around(stream, || $what(dest, source, Elements::of::<u8>(bytes), pe)));
    )*};
}

of_bytes! {
    "nvshmemx_putmem_on_stream" put;
    "nvshmemx_putmem_nbi_on_stream" put;
    "nvshmemx_getmem_on_stream" get;
    "nvshmemx_getmem_nbi_on_stream" get;
}

macro_rules! of_bytes_signalled {
    ($($name:literal)*) => {$(
        export!([$name]
            (dest: Dest<c_void>, source: Source<c_void>, bytes: usize, signal: *mut u64, value: u64, op: c_int,
             pe: c_int, stream: CUstream),
            around(stream, || signalled(put(dest, source, Elements::of::<u8>(bytes), pe), signal, value, op, pe)));
    )*};
}

of_bytes_signalled! { "nvshmemx_putmem_signal_on_stream" "nvshmemx_putmem_signal_nbi_on_stream" }

export!(["nvshmemx_signal_op_on_stream"] (signal: *mut u64, value: u64, op: c_int, pe: c_int, stream: CUstream),
    around(stream, || signalled(Effects::default(), signal, value, op, pe)));
export!(["nvshmemx_signal_wait_until_on_stream"] (signal: *mut u64, op: c_int, value: u64, stream: CUstream),
    around(stream, || waited(signal as u64, 8, 1, op, value)));
export!(["nvshmemx_quiet_on_stream"] (stream: CUstream), around(stream, Effects::default));
export!(["nvshmemx_flush_on_stream"] (stream: CUstream), around(stream, Effects::default));
