//! NVSHMEM's collectives: what each processing element reads and writes of its own.
//!
//! Owns the exports of these functions. A collective fills the destination of each element, and
//! whoever else reads the source does so before the collective is over. On a stream, the call
//! counts as an op of this element's stream that reads the source and writes the destination, and
//! as a meeting ([`super::meetings`]): what an element gets needs what others have given, so what
//! is behind the call on one stream comes after what is before it on the others' streams. It does
//! not come after the calls of the others: NVSHMEM promises of each call what is its own element's.
//! Of a broadcast all others wait for the root only. One that blocks the host accesses the
//! same during the call, on a stream of NVSHMEM's own: it comes after what the host has seen
//! finish, and after nothing else ([`super::by_host`]).

use std::ffi::{c_int, c_void};

use cuda_sys::CUstream;
use trace::Region;

use super::by_host::during;
use super::meetings::{Awaited, meeting};
use super::{Dest, Effects, Source, elements_of, export, own_place_in};
use crate::log::nvshmem_names::{with_bits, with_numbers, with_types};

/// A collective that reads and writes so many bytes; `None`: how many is not known.
fn moved<T>(dest: Dest<T>, source: Source<T>, read: Option<usize>, written: Option<usize>) -> Effects {
    let region = |at: u64, bytes: Option<usize>| Region::linear(at, bytes.unwrap_or(0) as u64);
    let in_part = read.is_none() || written.is_none();
    Effects { reads: region(source as u64, read), writes: region(dest as u64, written), in_part, ..Effects::default() }
}

/// What each element gives, or gets, of all of them.
fn of_all(team: i32, bytes: Option<usize>) -> Option<usize> {
    elements_of(team)?.checked_mul(bytes?)
}

fn broadcast<T>(team: i32, dest: Dest<T>, source: Source<T>, bytes: Option<usize>, root: c_int) -> Effects {
    let is_root = own_place_in(team).map(|own| usize::try_from(root) == Ok(own));
    moved(dest, source, is_root.and_then(|is_root| if is_root { bytes } else { Some(0) }), bytes)
}

fn gathered<T>(team: i32, dest: Dest<T>, source: Source<T>, bytes: Option<usize>) -> Effects {
    moved(dest, source, bytes, of_all(team, bytes))
}

fn exchanged<T>(team: i32, dest: Dest<T>, source: Source<T>, bytes: Option<usize>) -> Effects {
    let all = of_all(team, bytes);
    moved(dest, source, all, all)
}

fn reduced<T>(_team: i32, dest: Dest<T>, source: Source<T>, bytes: Option<usize>) -> Effects {
    moved(dest, source, bytes, bytes)
}

fn scattered<T>(team: i32, dest: Dest<T>, source: Source<T>, bytes: Option<usize>) -> Effects {
    moved(dest, source, of_all(team, bytes), bytes)
}

macro_rules! collective {
    ([$($name:expr),+] $ty:ty, $size:expr, $what:ident) => {
        export!([$($name),+]
            (team: i32, dest: Dest<$ty>, source: Source<$ty>, count: usize, stream: CUstream) -> c_int, -1,
            meeting(stream, (team, Awaited::All), || $what(team, dest, source, count.checked_mul($size))));
    };
}

macro_rules! rooted {
    ([$($name:expr),+] $ty:ty, $size:expr) => {
        export!([$($name),+]
            (team: i32, dest: Dest<$ty>, source: Source<$ty>, count: usize, root: c_int, stream: CUstream) -> c_int, -1,
            meeting(stream, (team, Awaited::Only(root)), || broadcast(team, dest, source, count.checked_mul($size), root)));
    };
}

macro_rules! blocking {
    ([$($name:expr),+] $ty:ty, $size:expr, $what:ident) => {
        export!([$($name),+]
            (team: i32, dest: Dest<$ty>, source: Source<$ty>, count: usize) -> c_int, -1,
            during(|| $what(team, dest, source, count.checked_mul($size))));
    };
}

macro_rules! blocking_rooted {
    ([$($name:expr),+] $ty:ty, $size:expr) => {
        export!([$($name),+]
            (team: i32, dest: Dest<$ty>, source: Source<$ty>, count: usize, root: c_int) -> c_int, -1,
            during(|| broadcast(team, dest, source, count.checked_mul($size), root)));
    };
}

macro_rules! exchanges {
    ($($name:ident $ty:ty;)*) => {$(
        blocking_rooted!(["nvshmem_", stringify!($name), "_broadcast"] $ty, size_of::<$ty>());
        blocking!(["nvshmem_", stringify!($name), "_fcollect"] $ty, size_of::<$ty>(), gathered);
        blocking!(["nvshmem_", stringify!($name), "_alltoall"] $ty, size_of::<$ty>(), exchanged);
        rooted!(["nvshmemx_", stringify!($name), "_broadcast_on_stream"] $ty, size_of::<$ty>());
        collective!(["nvshmemx_", stringify!($name), "_fcollect_on_stream"] $ty, size_of::<$ty>(), gathered);
        collective!(["nvshmemx_", stringify!($name), "_alltoall_on_stream"] $ty, size_of::<$ty>(), exchanged);
    )*};
}

with_types!(exchanges!);

rooted!(["nvshmemx_broadcastmem_on_stream"] c_void, 1);
collective!(["nvshmemx_fcollectmem_on_stream"] c_void, 1, gathered);
collective!(["nvshmemx_alltoallmem_on_stream"] c_void, 1, exchanged);
blocking_rooted!(["nvshmem_broadcastmem"] c_void, 1);
blocking!(["nvshmem_fcollectmem"] c_void, 1, gathered);
blocking!(["nvshmem_alltoallmem"] c_void, 1, exchanged);

macro_rules! reductions {
    ($op:literal; $($name:ident $ty:ty;)*) => {$(
        collective!(["nvshmemx_", stringify!($name), "_", $op, "_reduce_on_stream"] $ty, size_of::<$ty>(), reduced);
        collective!(["nvshmemx_", stringify!($name), "_", $op, "_reducescatter_on_stream"] $ty, size_of::<$ty>(),
            scattered);
        blocking!(["nvshmem_", stringify!($name), "_", $op, "_reduce"] $ty, size_of::<$ty>(), reduced);
        blocking!(["nvshmem_", stringify!($name), "_", $op, "_reducescatter"] $ty, size_of::<$ty>(), scattered);
    )*};
}

with_numbers!(reductions! "sum";);
with_numbers!(reductions! "prod";);
with_numbers!(reductions! "min";);
with_numbers!(reductions! "max";);
with_bits!(reductions! "and";);
with_bits!(reductions! "or";);
with_bits!(reductions! "xor";);
