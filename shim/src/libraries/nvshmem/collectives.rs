//! NVSHMEM's collectives on streams: what each processing element reads and writes of its own.
//!
//! Owns the exports of these functions. A collective fills the destination of each element, and
//! whoever else reads the source does so before the collective is over on its stream: so the call
//! counts as an op of this element's stream that reads the source and writes the destination. The
//! kernels that NVSHMEM launches for it are seen beside that: they wait for the other elements, and
//! what is behind them is possible only between processes.
//!
//! Broadcasts, gathers and exchanges of bytes and reductions of the usual types are here; other
//! types and `reducescatter` are seen as the kernels that they make.

use std::ffi::{CStr, c_int, c_void};

use cuda_sys::{CUstream, FnId};
use trace::Region;

use super::{Effects, SONAME, log};
use crate::log::call_names::library_call;
use crate::real::library::LibraryFunction;
use crate::runtime::lifecycle;
use crate::runtime::thread_state::inside_transport;

type Pointer = *mut c_void;

/// What NVSHMEM says of a team; `None`: the team does not exist.
fn of_team(function: &LibraryFunction, team: i32) -> Option<usize> {
    type Ask = unsafe extern "C" fn(i32) -> c_int;
    let real = function.find(0)?;
    // SAFETY: NVSHMEM's signature; the team was given with the call that is observed.
    usize::try_from(unsafe { std::mem::transmute::<usize, Ask>(real)(team) }).ok()
}

fn elements_of(team: i32) -> Option<usize> {
    static SIZE: LibraryFunction = LibraryFunction::new(SONAME, c"nvshmem_team_n_pes");
    of_team(&SIZE, team)
}

fn own_place_in(team: i32) -> Option<usize> {
    static PLACE: LibraryFunction = LibraryFunction::new(SONAME, c"nvshmem_team_my_pe");
    of_team(&PLACE, team)
}

/// A collective that reads and writes so many bytes; `None`: how many is not known.
fn moved(dest: Pointer, source: Pointer, read: Option<usize>, written: Option<usize>) -> Effects {
    let region = |at: Pointer, bytes: Option<usize>| Region::linear(at as u64, bytes.unwrap_or(0) as u64);
    let in_part = read.is_none() || written.is_none();
    Effects { reads: region(source, read), writes: region(dest, written), in_part, ..Effects::default() }
}

fn broadcast(team: i32, dest: Pointer, source: Pointer, bytes: usize, root: c_int) -> Effects {
    let is_root = own_place_in(team).map(|own| usize::try_from(root) == Ok(own));
    moved(dest, source, is_root.map(|is_root| if is_root { bytes } else { 0 }), Some(bytes))
}

fn gathered(team: i32, dest: Pointer, source: Pointer, bytes: usize) -> Effects {
    let all = elements_of(team).and_then(|elements| elements.checked_mul(bytes));
    moved(dest, source, Some(bytes), all)
}

fn exchanged(team: i32, dest: Pointer, source: Pointer, bytes: usize) -> Effects {
    let all = elements_of(team).and_then(|elements| elements.checked_mul(bytes));
    moved(dest, source, all, all)
}

fn reduced(dest: Pointer, source: Pointer, count: usize, size: usize) -> Effects {
    let bytes = count.checked_mul(size);
    moved(dest, source, bytes, bytes)
}

macro_rules! collective {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) => $effects:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for NVSHMEM's function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($arg: $ty,)* stream: CUstream) -> c_int {
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            static REAL: LibraryFunction = LibraryFunction::new(SONAME, NAME);
            type Real = unsafe extern "C" fn($($ty,)* CUstream) -> c_int;
            const ID: FnId = library_call(stringify!($name));
            // Without NVSHMEM behind us, which cannot be, there is nothing to do.
            let Some(real) = REAL.find($name as *const () as usize) else { return -1 };
            // SAFETY: NVSHMEM's function of this name has this signature.
            let real: Real = unsafe { std::mem::transmute::<usize, Real>(real) };
            if lifecycle::is_running() && !inside_transport() {
                log(ID, stream, &$effects);
            }
            // SAFETY: arguments are passed on as they came.
            unsafe { real($($arg,)* stream) }
        }
    )*};
}

macro_rules! reduction {
    ($($(#[$doc:meta])* $name:ident: $size:literal;)*) => {
        collective! {$(
            $(#[$doc])*
            $name(team: i32, dest: Pointer, source: Pointer, count: usize) => reduced(dest, source, count, $size);
        )*}
    };
}

collective! {
    /// `nvshmemx_broadcastmem_on_stream`.
    nvshmemx_broadcastmem_on_stream(team: i32, dest: Pointer, source: Pointer, bytes: usize, root: c_int)
        => broadcast(team, dest, source, bytes, root);
    /// `nvshmemx_fcollectmem_on_stream`.
    nvshmemx_fcollectmem_on_stream(team: i32, dest: Pointer, source: Pointer, bytes: usize)
        => gathered(team, dest, source, bytes);
    /// `nvshmemx_alltoallmem_on_stream`.
    nvshmemx_alltoallmem_on_stream(team: i32, dest: Pointer, source: Pointer, bytes: usize)
        => exchanged(team, dest, source, bytes);
}

reduction! {
    /// `nvshmemx_half_sum_reduce_on_stream`.
    nvshmemx_half_sum_reduce_on_stream: 2;
    /// `nvshmemx_half_min_reduce_on_stream`.
    nvshmemx_half_min_reduce_on_stream: 2;
    /// `nvshmemx_half_max_reduce_on_stream`.
    nvshmemx_half_max_reduce_on_stream: 2;
    /// `nvshmemx_bfloat16_sum_reduce_on_stream`.
    nvshmemx_bfloat16_sum_reduce_on_stream: 2;
    /// `nvshmemx_bfloat16_min_reduce_on_stream`.
    nvshmemx_bfloat16_min_reduce_on_stream: 2;
    /// `nvshmemx_bfloat16_max_reduce_on_stream`.
    nvshmemx_bfloat16_max_reduce_on_stream: 2;
    /// `nvshmemx_float_sum_reduce_on_stream`.
    nvshmemx_float_sum_reduce_on_stream: 4;
    /// `nvshmemx_float_min_reduce_on_stream`.
    nvshmemx_float_min_reduce_on_stream: 4;
    /// `nvshmemx_float_max_reduce_on_stream`.
    nvshmemx_float_max_reduce_on_stream: 4;
    /// `nvshmemx_double_sum_reduce_on_stream`.
    nvshmemx_double_sum_reduce_on_stream: 8;
    /// `nvshmemx_double_min_reduce_on_stream`.
    nvshmemx_double_min_reduce_on_stream: 8;
    /// `nvshmemx_double_max_reduce_on_stream`.
    nvshmemx_double_max_reduce_on_stream: 8;
    /// `nvshmemx_int_sum_reduce_on_stream`.
    nvshmemx_int_sum_reduce_on_stream: 4;
    /// `nvshmemx_int_min_reduce_on_stream`.
    nvshmemx_int_min_reduce_on_stream: 4;
    /// `nvshmemx_int_max_reduce_on_stream`.
    nvshmemx_int_max_reduce_on_stream: 4;
    /// `nvshmemx_int32_sum_reduce_on_stream`.
    nvshmemx_int32_sum_reduce_on_stream: 4;
    /// `nvshmemx_int32_min_reduce_on_stream`.
    nvshmemx_int32_min_reduce_on_stream: 4;
    /// `nvshmemx_int32_max_reduce_on_stream`.
    nvshmemx_int32_max_reduce_on_stream: 4;
    /// `nvshmemx_int64_sum_reduce_on_stream`.
    nvshmemx_int64_sum_reduce_on_stream: 8;
    /// `nvshmemx_int64_min_reduce_on_stream`.
    nvshmemx_int64_min_reduce_on_stream: 8;
    /// `nvshmemx_int64_max_reduce_on_stream`.
    nvshmemx_int64_max_reduce_on_stream: 8;
    /// `nvshmemx_uint32_sum_reduce_on_stream`.
    nvshmemx_uint32_sum_reduce_on_stream: 4;
    /// `nvshmemx_uint32_min_reduce_on_stream`.
    nvshmemx_uint32_min_reduce_on_stream: 4;
    /// `nvshmemx_uint32_max_reduce_on_stream`.
    nvshmemx_uint32_max_reduce_on_stream: 4;
    /// `nvshmemx_uint64_sum_reduce_on_stream`.
    nvshmemx_uint64_sum_reduce_on_stream: 8;
    /// `nvshmemx_uint64_min_reduce_on_stream`.
    nvshmemx_uint64_min_reduce_on_stream: 8;
    /// `nvshmemx_uint64_max_reduce_on_stream`.
    nvshmemx_uint64_max_reduce_on_stream: 8;
}
