//! The names of NVSHMEM's functions that are observed, and the types that they exist for.
//!
//! Owns the lists of types (`NVSHMEMI_REPT_FOR_..._TYPES` of `nvshmem_common.cuh`, NVSHMEM 3.8) as
//! macros that hand them to others, and the numbers of the functions. What these do is in
//! `crate::libraries::nvshmem`, which takes its exports from the same lists.

use cuda_sys::FnId;

use super::call_names::{FIRST_OF_NVSHMEM, is_same};

/// Hands on the types of puts, gets, broadcasts, gathers and exchanges: NVSHMEM's name, and one of
/// the same size and the same way of being passed.
macro_rules! with_types {
    ($then:ident! $($rest:tt)*) => {
        $then! {
            $($rest)*
            bfloat16 u16; half u16; float f32; double f64; char i8; short i16; schar i8; int i32; long i64;
            longlong i64; uchar u8; ushort u16; uint u32; ulong u64; ulonglong u64; int8 i8; int16 i16; int32 i32;
            int64 i64; uint8 u8; uint16 u16; uint32 u32; uint64 u64; size u64; ptrdiff i64;
        }
    };
}

/// The same for sums, products, the least and the greatest.
macro_rules! with_numbers {
    ($then:ident! $($rest:tt)*) => {
        $then! {
            $($rest)*
            bfloat16 u16; half u16; float f32; double f64; char i8; short i16; schar i8; int i32; long i64;
            longlong i64; uchar u8; ushort u16; uint u32; ulong u64; ulonglong u64; int8 i8; int16 i16; int32 i32;
            int64 i64; uint8 u8; uint16 u16; uint32 u32; uint64 u64; size u64;
        }
    };
}

/// The same for reductions by bits.
macro_rules! with_bits {
    ($then:ident! $($rest:tt)*) => {
        $then! {
            $($rest)*
            uchar u8; ushort u16; uint u32; ulong u64; ulonglong u64; int8 i8; int16 i16; int32 i32; int64 i64;
            uint8 u8; uint16 u16; uint32 u32; uint64 u64; size u64;
        }
    };
}

/// The same for waits.
macro_rules! with_waits {
    ($then:ident! $($rest:tt)*) => {
        $then! {
            $($rest)*
            short i16; int i32; long i64; longlong i64; ushort u16; uint u32; ulong u64; ulonglong u64; int32 i32;
            int64 i64; uint32 u32; uint64 u64; size u64; ptrdiff i64;
        }
    };
}

/// The same for puts and gets of elements of so many bits.
macro_rules! with_sizes {
    ($then:ident! $($rest:tt)*) => {
        $then! { $($rest)* 8 u8; 16 u16; 32 u32; 64 u64; 128 u128; }
    };
}

/// The same for atomics that count and compare.
macro_rules! with_counters {
    ($then:ident! $($rest:tt)*) => {
        $then! {
            $($rest)*
            int i32; long i64; longlong i64; uint u32; ulong u64; ulonglong u64; int32 i32; int64 i64; uint32 u32;
            uint64 u64; size u64; ptrdiff i64;
        }
    };
}

/// The same for atomics that fetch, set and swap.
macro_rules! with_words {
    ($then:ident! $($rest:tt)*) => { with_counters!{ $then! $($rest)* float f32; double f64; } };
}

/// The same for atomics by bits.
macro_rules! with_masks {
    ($then:ident! $($rest:tt)*) => {
        $then! {
            $($rest)*
            uint u32; ulong u64; ulonglong u64; int32 i32; int64 i64; uint32 u32; uint64 u64;
        }
    };
}

/// The same for sums of numbers that are no integers.
macro_rules! with_reals {
    ($then:ident! $($rest:tt)*) => { $then! { $($rest)* half u16; float f32; double f64; } };
}

#[cfg(not(test))]
pub(crate) use with_sizes;
#[cfg(not(test))]
pub(crate) use {with_bits, with_counters, with_masks, with_numbers, with_reals, with_types, with_waits, with_words};

/// Names that begin and end alike.
struct Family {
    before: &'static str,
    after: &'static str,
    names: &'static [&'static str],
}

macro_rules! names {
    ($before:literal $after:literal; $($name:tt $ty:ty;)*) => {
        Family { before: $before, after: $after, names: &[$(concat!($before, stringify!($name), $after)),*] }
    };
}

/// All names, by families.
const NAMES: &[Family] = &[
    Family {
        before: "nvshmem",
        after: "",
        names: &[
            "nvshmemx_putmem_on_stream",
            "nvshmemx_putmem_nbi_on_stream",
            "nvshmemx_getmem_on_stream",
            "nvshmemx_getmem_nbi_on_stream",
            "nvshmemx_putmem_signal_on_stream",
            "nvshmemx_putmem_signal_nbi_on_stream",
            "nvshmemx_signal_op_on_stream",
            "nvshmemx_signal_wait_until_on_stream",
            "nvshmemx_broadcastmem_on_stream",
            "nvshmemx_fcollectmem_on_stream",
            "nvshmemx_alltoallmem_on_stream",
            "nvshmemx_quiet_on_stream",
            "nvshmemx_flush_on_stream",
            "nvshmemx_barrier_on_stream",
            "nvshmemx_barrier_all_on_stream",
            "nvshmemx_team_sync_on_stream",
            "nvshmemx_sync_all_on_stream",
            "nvshmem_putmem",
            "nvshmem_putmem_nbi",
            "nvshmem_getmem",
            "nvshmem_getmem_nbi",
            "nvshmem_broadcastmem",
            "nvshmem_fcollectmem",
            "nvshmem_alltoallmem",
            "nvshmem_quiet",
            "nvshmem_barrier",
            "nvshmem_barrier_all",
            "nvshmem_team_sync",
            "nvshmem_sync_all",
            "nvshmem_team_split_strided",
            "nvshmem_team_split_2d",
            "nvshmem_team_destroy",
            "nvshmem_malloc",
            "nvshmem_calloc",
            "nvshmem_align",
            "nvshmem_free",
            "nvshmemi_finalize",
            "nvshmemx_hostlib_finalize",
        ],
    },
    with_types!(names! "nvshmemx_" "_put_on_stream";),
    with_types!(names! "nvshmemx_" "_put_nbi_on_stream";),
    with_types!(names! "nvshmemx_" "_get_on_stream";),
    with_types!(names! "nvshmemx_" "_get_nbi_on_stream";),
    with_types!(names! "nvshmemx_" "_put_signal_on_stream";),
    with_types!(names! "nvshmemx_" "_put_signal_nbi_on_stream";),
    with_types!(names! "nvshmemx_" "_iput_on_stream";),
    with_types!(names! "nvshmemx_" "_iget_on_stream";),
    with_types!(names! "nvshmemx_" "_p_on_stream";),
    with_types!(names! "nvshmemx_" "_g_on_stream";),
    with_sizes!(names! "nvshmemx_put" "_on_stream";),
    with_sizes!(names! "nvshmemx_put" "_nbi_on_stream";),
    with_sizes!(names! "nvshmemx_get" "_on_stream";),
    with_sizes!(names! "nvshmemx_get" "_nbi_on_stream";),
    with_sizes!(names! "nvshmemx_put" "_signal_on_stream";),
    with_sizes!(names! "nvshmemx_put" "_signal_nbi_on_stream";),
    with_sizes!(names! "nvshmemx_iput" "_on_stream";),
    with_sizes!(names! "nvshmemx_iget" "_on_stream";),
    with_waits!(names! "nvshmemx_" "_wait_until_on_stream";),
    with_waits!(names! "nvshmemx_" "_wait_until_all_on_stream";),
    with_waits!(names! "nvshmemx_" "_wait_until_all_vector_on_stream";),
    with_types!(names! "nvshmemx_" "_broadcast_on_stream";),
    with_types!(names! "nvshmemx_" "_fcollect_on_stream";),
    with_types!(names! "nvshmemx_" "_alltoall_on_stream";),
    with_numbers!(names! "nvshmemx_" "_sum_reduce_on_stream";),
    with_numbers!(names! "nvshmemx_" "_prod_reduce_on_stream";),
    with_numbers!(names! "nvshmemx_" "_min_reduce_on_stream";),
    with_numbers!(names! "nvshmemx_" "_max_reduce_on_stream";),
    with_bits!(names! "nvshmemx_" "_and_reduce_on_stream";),
    with_bits!(names! "nvshmemx_" "_or_reduce_on_stream";),
    with_bits!(names! "nvshmemx_" "_xor_reduce_on_stream";),
    with_numbers!(names! "nvshmemx_" "_sum_reducescatter_on_stream";),
    with_numbers!(names! "nvshmemx_" "_prod_reducescatter_on_stream";),
    with_numbers!(names! "nvshmemx_" "_min_reducescatter_on_stream";),
    with_numbers!(names! "nvshmemx_" "_max_reducescatter_on_stream";),
    with_bits!(names! "nvshmemx_" "_and_reducescatter_on_stream";),
    with_bits!(names! "nvshmemx_" "_or_reducescatter_on_stream";),
    with_bits!(names! "nvshmemx_" "_xor_reducescatter_on_stream";),
    with_types!(names! "nvshmem_" "_put";),
    with_types!(names! "nvshmem_" "_put_nbi";),
    with_types!(names! "nvshmem_" "_get";),
    with_types!(names! "nvshmem_" "_get_nbi";),
    with_types!(names! "nvshmem_" "_iput";),
    with_types!(names! "nvshmem_" "_iget";),
    with_types!(names! "nvshmem_" "_p";),
    with_types!(names! "nvshmem_" "_g";),
    with_sizes!(names! "nvshmem_put" "";),
    with_sizes!(names! "nvshmem_put" "_nbi";),
    with_sizes!(names! "nvshmem_get" "";),
    with_sizes!(names! "nvshmem_get" "_nbi";),
    with_sizes!(names! "nvshmem_iput" "";),
    with_sizes!(names! "nvshmem_iget" "";),
    with_types!(names! "nvshmem_" "_broadcast";),
    with_types!(names! "nvshmem_" "_fcollect";),
    with_types!(names! "nvshmem_" "_alltoall";),
    with_numbers!(names! "nvshmem_" "_sum_reduce";),
    with_numbers!(names! "nvshmem_" "_prod_reduce";),
    with_numbers!(names! "nvshmem_" "_min_reduce";),
    with_numbers!(names! "nvshmem_" "_max_reduce";),
    with_bits!(names! "nvshmem_" "_and_reduce";),
    with_bits!(names! "nvshmem_" "_or_reduce";),
    with_bits!(names! "nvshmem_" "_xor_reduce";),
    with_numbers!(names! "nvshmem_" "_sum_reducescatter";),
    with_numbers!(names! "nvshmem_" "_prod_reducescatter";),
    with_numbers!(names! "nvshmem_" "_min_reducescatter";),
    with_numbers!(names! "nvshmem_" "_max_reducescatter";),
    with_bits!(names! "nvshmem_" "_and_reducescatter";),
    with_bits!(names! "nvshmem_" "_or_reducescatter";),
    with_bits!(names! "nvshmem_" "_xor_reducescatter";),
    with_counters!(names! "nvshmem_" "_atomic_add";),
    with_counters!(names! "nvshmem_" "_atomic_fetch_add";),
    with_counters!(names! "nvshmem_" "_atomic_inc";),
    with_counters!(names! "nvshmem_" "_atomic_fetch_inc";),
    with_counters!(names! "nvshmem_" "_atomic_compare_swap";),
    with_words!(names! "nvshmem_" "_atomic_set";),
    with_words!(names! "nvshmem_" "_atomic_swap";),
    with_words!(names! "nvshmem_" "_atomic_fetch";),
    with_masks!(names! "nvshmem_" "_atomic_and";),
    with_masks!(names! "nvshmem_" "_atomic_or";),
    with_masks!(names! "nvshmem_" "_atomic_xor";),
    with_masks!(names! "nvshmem_" "_atomic_fetch_and";),
    with_masks!(names! "nvshmem_" "_atomic_fetch_or";),
    with_masks!(names! "nvshmem_" "_atomic_fetch_xor";),
    with_reals!(names! "nvshmemx_" "_atomic_add";),
    with_reals!(names! "nvshmemx_" "_atomic_fetch_add";),
];

/// How many there are.
pub(super) const COUNT: usize = {
    let (mut family, mut count) = (0, 0);
    while family < NAMES.len() {
        count += NAMES[family].names.len();
        family += 1;
    }
    count
};

fn all() -> impl Iterator<Item = &'static str> {
    NAMES.iter().flat_map(|family| family.names.iter().copied())
}

/// The name of this number.
pub(super) fn name(number: usize) -> Option<&'static str> {
    all().nth(number)
}

/// Whether a family may hold a name: the compiler looks through the others name by name.
const fn may_hold(family: &Family, name: &[u8]) -> bool {
    let (before, after) = (family.before.as_bytes(), family.after.as_bytes());
    if name.len() <= before.len() + after.len() {
        return false;
    }
    let (_, end) = name.split_at(name.len() - after.len());
    let (start, _) = name.split_at(before.len());
    is_same(end, after) && is_same(start, before)
}

/// The number of a function of NVSHMEM. A name that is not in the lists does not compile.
pub const fn nvshmem_call(name: &str) -> FnId {
    let name = name.as_bytes();
    let (mut family, mut before) = (0, 0);
    while family < NAMES.len() {
        let names = NAMES[family].names;
        let (is_here, mut index) = (may_hold(&NAMES[family], name), 0);
        while index < names.len() && is_here {
            if is_same(names[index].as_bytes(), name) {
                return FnId(FIRST_OF_NVSHMEM + (before + index) as u16);
            }
            index += 1;
        }
        before += names.len();
        family += 1;
    }
    panic!("not among the names of NVSHMEM's functions")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The stand-in lists what NVSHMEM 3.8 exports for hosts. What is observed is there, and what
    /// is not is of a kind that the reference names.
    #[test]
    fn what_nvshmem_exports_is_observed_or_named() {
        let exported: BTreeSet<&str> = include_str!("../../../sim/libraries/refused/nvshmem.txt").lines().collect();
        let observed: BTreeSet<&str> = all().collect();
        assert_eq!(observed.len(), COUNT, "a name twice");
        // Answered by the stand-in itself, or not by hosts of that version.
        let own = ["nvshmem_malloc", "nvshmem_calloc", "nvshmem_align", "nvshmem_free", "nvshmemi_finalize"];
        let unknown = observed.difference(&exported).filter(|name| !own.contains(name));
        assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&&str>::new());
        // What neither touches memory of the program nor orders anything.
        let is_named = |name: &&&str| QUIET.contains(*name);
        let left: Vec<_> = exported.difference(&observed).filter(|name| !is_named(name)).collect();
        assert_eq!(left, Vec::<&&str>::new());
    }

    /// Set-up, questions, and calls that order nothing which is followed.
    const QUIET: &[&str] = &[
        "nvshmem_debug_log",
        "nvshmem_fence",
        "nvshmem_global_exit",
        "nvshmem_info_get_name",
        "nvshmem_info_get_version",
        "nvshmem_my_pe",
        "nvshmem_n_pes",
        "nvshmem_query_thread",
        "nvshmem_signal_fetch",
        "nvshmem_team_get_config",
        "nvshmem_team_my_pe",
        "nvshmem_team_n_pes",
        "nvshmem_team_translate_pe",
        "nvshmemid_hostlib_finalize",
        "nvshmemid_hostlib_init_attr",
        "nvshmemid_init_status",
        "nvshmemx_buffer_register",
        "nvshmemx_buffer_register_symmetric",
        "nvshmemx_buffer_register_symmetric_at_preferred_address",
        "nvshmemx_buffer_unregister",
        "nvshmemx_buffer_unregister_all",
        "nvshmemx_buffer_unregister_symmetric",
        "nvshmemx_collective_launch",
        "nvshmemx_collective_launch_attr",
        "nvshmemx_collective_launch_query_gridsize",
        "nvshmemx_culibrary_finalize",
        "nvshmemx_culibrary_init",
        "nvshmemx_cumodule_finalize",
        "nvshmemx_cumodule_init",
        "nvshmemx_flush",
        "nvshmemx_get_uniqueid",
        "nvshmemx_hostlib_init_attr",
        "nvshmemx_init_status",
        "nvshmemx_qp_create",
        "nvshmemx_region_is_active",
        "nvshmemx_region_start",
        "nvshmemx_region_stop",
        "nvshmemx_set_attr_mpi_comm_args",
        "nvshmemx_set_attr_uniqueid_args",
        "nvshmemx_signal_counted_reset",
        "nvshmemx_team_get_uniqueid",
        "nvshmemx_team_init",
        "nvshmemx_vendor_get_version_info",
    ];

    #[test]
    fn numbers_lead_back_to_their_names() {
        for (number, of) in all().enumerate() {
            let call = nvshmem_call(of);
            assert_eq!((name(number), crate::log::call_names::name_of(call)), (Some(of), of));
        }
        assert_eq!(name(COUNT), None);
    }
}
