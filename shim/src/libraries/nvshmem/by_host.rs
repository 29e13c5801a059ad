//! NVSHMEM's puts, gets and atomics that the host makes, and what they are over by.
//!
//! Owns their exports. The engine that moves the bytes knows no stream of the program: such a call
//! comes after what the host has seen finish, and after nothing else. One that blocks is over when
//! it returns. Of a put NVSHMEM promises that for what it reads only; that the rest counts, too,
//! may hide a race and invents none. One that does not (`nbi`) is a request until `quiet`, a
//! barrier of this element, or a call that contains one (`nvshmem_malloc`, `nvshmem_free`, the
//! end). `fence` orders puts to one element among themselves, and is nothing to anybody here.
//!
//! An atomic is a touch of the host: it races with no other atomic access, and a fetch may receive
//! a message.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use cuda_sys::FnId;
use trace::{HostFuncId, Op, Region};

use super::{Dest, Effects, Elements, Source, asking, export, get, get_one, is_observed, mapped, put, put_one};
use crate::libraries::requests::{self, Access};
use crate::log::nvshmem_names::{with_counters, with_masks, with_reals, with_sizes, with_types, with_words};
use crate::observe::{Phase, observe};

/// What has begun and not ended, of all threads.
static BEGUN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Requests at most; others count as over when their call returns.
const MOST: usize = 1 << 12;

fn accesses(effects: &Effects) -> Vec<Access> {
    let access = |region, writes: bool| Access { region, reads: !writes, writes, exact: true };
    let both = [access(effects.reads, false), access(effects.writes, true)];
    both.into_iter().filter(|access| !access.region.is_empty()).collect()
}

fn known(id: FnId, effects: &dyn Fn() -> Effects) -> Vec<Access> {
    let effects = asking(effects);
    if effects.in_part {
        observe(id, 0, Phase::Before, |cx| cx.not_modelled());
    }
    accesses(&effects)
}

/// A call that is over when it returns.
pub(super) fn during<R>(id: FnId, real: impl FnOnce() -> R, effects: impl Fn() -> Effects) -> R {
    if !is_observed() {
        return real();
    }
    let borrower = borrowing(id, &effects);
    let answer = asking(real);
    requests::give_back(borrower);
    answer
}

fn borrowing(id: FnId, effects: &dyn Fn() -> Effects) -> u32 {
    requests::during_call(id, &known(id, effects))
}

/// A call that begins something.
fn beginning(id: FnId, real: impl Fn(), effects: impl Fn() -> Effects) {
    beginning_of(id, &real, &effects);
}

fn beginning_of(id: FnId, real: &dyn Fn(), effects: &dyn Fn() -> Effects) {
    if !is_observed() {
        return real();
    }
    let accesses = known(id, effects);
    let has_room = BEGUN.lock().unwrap_or_else(PoisonError::into_inner).len() < MOST;
    if !has_room {
        let borrower = requests::during_call(id, &accesses);
        asking(real);
        return requests::give_back(borrower);
    }
    let request = match accesses.is_empty() {
        true => 0,
        false => requests::begin_named(id, &accesses, "the transfer"),
    };
    asking(real);
    if request != 0 {
        BEGUN.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }
}

/// An atomic access to one word of an element.
fn touching<R, T>(id: FnId, real: impl FnOnce() -> R, word: Source<T>, pe: c_int, writes: bool) -> R {
    if !is_observed() {
        return real();
    }
    let at = asking(|| mapped(word.cast(), pe));
    observe(id, 0, Phase::Before, |cx| {
        if at == 0 {
            return cx.not_modelled();
        }
        let region = Region::linear(at, size_of::<T>() as u64);
        cx.log(&Op::HostTouch { region, writes, atomic: true, polled: false, func: HostFuncId::NONE });
    });
    asking(real)
}

/// A call behind which all is over that this element has begun before.
pub(super) fn ending<R>(id: FnId, real: impl FnOnce() -> R) -> R {
    if !is_observed() {
        return real();
    }
    let over = std::mem::take(&mut *BEGUN.lock().unwrap_or_else(PoisonError::into_inner));
    let answer = asking(real);
    over.into_iter().for_each(|request| requests::end(id, request));
    answer
}

/// The same of a call that makes or ends memory, which is not its transport.
fn ending_beside<R>(id: FnId, real: impl FnOnce() -> R) -> R {
    let answer = real();
    if is_observed() {
        ending(id, || ());
    }
    answer
}

macro_rules! of_type {
    ($($name:ident $ty:ty;)*) => {$(
        export!(["nvshmem_", stringify!($name), "_put"]
            (dest: Dest<$ty>, source: Source<$ty>, count: usize, pe: c_int),
            during(|| put(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmem_", stringify!($name), "_put_nbi"]
            (dest: Dest<$ty>, source: Source<$ty>, count: usize, pe: c_int),
            beginning(|| put(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmem_", stringify!($name), "_get"]
            (dest: Dest<$ty>, source: Source<$ty>, count: usize, pe: c_int),
            during(|| get(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmem_", stringify!($name), "_get_nbi"]
            (dest: Dest<$ty>, source: Source<$ty>, count: usize, pe: c_int),
            beginning(|| get(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmem_", stringify!($name), "_iput"]
            (dest: Dest<$ty>, source: Source<$ty>, to: isize, from: isize, count: usize, pe: c_int),
            during(|| put(dest, source, Elements::apart::<$ty>(count, to, from), pe)));
        export!(["nvshmem_", stringify!($name), "_iget"]
            (dest: Dest<$ty>, source: Source<$ty>, to: isize, from: isize, count: usize, pe: c_int),
            during(|| get(dest, source, Elements::apart::<$ty>(count, to, from), pe)));
        export!(["nvshmem_", stringify!($name), "_p"]
            (dest: Dest<$ty>, value: $ty, pe: c_int), during(|| put_one(dest, pe)));
        export!(["nvshmem_", stringify!($name), "_g"]
            (source: Source<$ty>, pe: c_int) -> $ty, Default::default(), during(|| get_one(source, pe)));
    )*};
}

with_types!(of_type!);

macro_rules! of_size {
    ($($bits:literal $ty:ty;)*) => {$(
        export!(["nvshmem_put", stringify!($bits)]
            (dest: Dest<c_void>, source: Source<c_void>, count: usize, pe: c_int),
            during(|| put(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmem_put", stringify!($bits), "_nbi"]
            (dest: Dest<c_void>, source: Source<c_void>, count: usize, pe: c_int),
            beginning(|| put(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmem_get", stringify!($bits)]
            (dest: Dest<c_void>, source: Source<c_void>, count: usize, pe: c_int),
            during(|| get(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmem_get", stringify!($bits), "_nbi"]
            (dest: Dest<c_void>, source: Source<c_void>, count: usize, pe: c_int),
            beginning(|| get(dest, source, Elements::of::<$ty>(count), pe)));
        export!(["nvshmem_iput", stringify!($bits)]
            (dest: Dest<c_void>, source: Source<c_void>, to: isize, from: isize, count: usize, pe: c_int),
            during(|| put(dest, source, Elements::apart::<$ty>(count, to, from), pe)));
        export!(["nvshmem_iget", stringify!($bits)]
            (dest: Dest<c_void>, source: Source<c_void>, to: isize, from: isize, count: usize, pe: c_int),
            during(|| get(dest, source, Elements::apart::<$ty>(count, to, from), pe)));
    )*};
}

with_sizes!(of_size!);

export!(["nvshmem_putmem"] (dest: Dest<c_void>, source: Source<c_void>, bytes: usize, pe: c_int),
    during(|| put(dest, source, Elements::of::<u8>(bytes), pe)));
export!(["nvshmem_putmem_nbi"] (dest: Dest<c_void>, source: Source<c_void>, bytes: usize, pe: c_int),
    beginning(|| put(dest, source, Elements::of::<u8>(bytes), pe)));
export!(["nvshmem_getmem"] (dest: Dest<c_void>, source: Source<c_void>, bytes: usize, pe: c_int),
    during(|| get(dest, source, Elements::of::<u8>(bytes), pe)));
export!(["nvshmem_getmem_nbi"] (dest: Dest<c_void>, source: Source<c_void>, bytes: usize, pe: c_int),
    beginning(|| get(dest, source, Elements::of::<u8>(bytes), pe)));
export!(["nvshmem_quiet"](), ending());
export!(["nvshmem_malloc"] (size: usize) -> *mut c_void, std::ptr::null_mut(), ending_beside());
export!(["nvshmem_calloc"] (count: usize, size: usize) -> *mut c_void, std::ptr::null_mut(), ending_beside());
export!(["nvshmem_align"] (alignment: usize, size: usize) -> *mut c_void, std::ptr::null_mut(), ending_beside());
export!(["nvshmem_free"] (memory: *mut c_void), ending_beside());
export!(["nvshmemi_finalize"](), ending_beside());
export!(["nvshmemx_hostlib_finalize"](), ending_beside());

/// Atomics that store, update and answer.
macro_rules! atomics {
    ($prefix:literal $name:ident $ty:ty; sets $($set:literal)*; swaps $($swap:literal)*) => {
        $(export!([$prefix, stringify!($name), "_atomic_", $set] (word: Dest<$ty>, value: $ty, pe: c_int),
            touching(word, pe, true));)*
        $(export!([$prefix, stringify!($name), "_atomic_", $swap]
            (word: Dest<$ty>, value: $ty, pe: c_int) -> $ty, Default::default(), touching(word, pe, true));)*
    };
}

macro_rules! counters {
    ($($name:ident $ty:ty;)*) => {$(
        atomics!("nvshmem_" $name $ty; sets "add"; swaps "fetch_add");
        export!(["nvshmem_", stringify!($name), "_atomic_inc"] (word: Dest<$ty>, pe: c_int), touching(word, pe, true));
        export!(["nvshmem_", stringify!($name), "_atomic_fetch_inc"]
            (word: Dest<$ty>, pe: c_int) -> $ty, Default::default(), touching(word, pe, true));
        export!(["nvshmem_", stringify!($name), "_atomic_compare_swap"]
            (word: Dest<$ty>, wanted: $ty, value: $ty, pe: c_int) -> $ty, Default::default(),
            touching(word, pe, true));
    )*};
}

with_counters!(counters!);

macro_rules! words {
    ($($name:ident $ty:ty;)*) => {$(
        atomics!("nvshmem_" $name $ty; sets "set"; swaps "swap");
        export!(["nvshmem_", stringify!($name), "_atomic_fetch"]
            (word: Source<$ty>, pe: c_int) -> $ty, Default::default(), touching(word, pe, false));
    )*};
}

with_words!(words!);

macro_rules! masks {
    ($($name:ident $ty:ty;)*) => {$(
        atomics!("nvshmem_" $name $ty; sets "and" "or" "xor"; swaps "fetch_and" "fetch_or" "fetch_xor");
    )*};
}

with_masks!(masks!);

macro_rules! reals {
    ($($name:ident $ty:ty;)*) => {$(
        atomics!("nvshmemx_" $name $ty; sets "add"; swaps "fetch_add");
    )*};
}

with_reals!(reals!);
