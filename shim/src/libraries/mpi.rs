//! The calls of MPI, as the library beside this one reports them (`libstreamsan_mpi.so`, crate
//! `shim-mpi`).
//!
//! Owns the export by which the two are linked and the functions of the table that the library gets
//! (crate `shim-mpi-interface`): which memory CUDA knows, and what a call or a request accesses
//! ([`super::requests`] logs it). Which bytes these are, and how long, is decided there.

use std::ffi::c_void;

use mpi_interface::{Name, Table, Transfer, VERSION};
use trace::{ArrayId, Region};

use super::requests::{self, Access};
use crate::log::{call_names, start};
use crate::real::mpi;
use crate::runtime::guard::EntryGuard;
use crate::runtime::lifecycle;
use crate::runtime::thread_state::{inside_transport, set_inside_transport};
use crate::stack::native::{Companion, note_companion};

static TABLE: Table =
    Table { is_cuda_memory, is_inside: is_inside_mpi, set_inside: set_inside_mpi, access, give_back, begin, end };

/// The library announces itself, with the names of its functions. Answers the table, or null if it
/// has another version.
///
/// # Safety
/// There are so many names, and they live as long as the process.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn streamsan_mpi_link(
    version: u32,
    names: *const Name,
    count: usize,
    inside: *const c_void,
) -> *const Table {
    if version != VERSION || names.is_null() {
        return std::ptr::null();
    }
    // SAFETY: forwarded from the caller.
    call_names::set_mpi_names(unsafe { std::slice::from_raw_parts(names, count) });
    note_companion(Companion::Mpi, inside as u64);
    mpi::note_observed();
    &raw const TABLE
}

extern "C" fn is_cuda_memory(address: u64) -> bool {
    if !lifecycle::is_running() {
        return false;
    }
    let Some(_inside) = EntryGuard::enter() else { return false };
    let shared = start::core().and_then(crate::log::core::Core::lock);
    shared.is_some_and(|shared| shared.engine.memory_kind(address).is_some())
}

extern "C" fn is_inside_mpi() -> bool {
    inside_transport()
}

extern "C" fn set_inside_mpi(inside: bool) {
    set_inside_transport(inside);
}

/// # Safety
/// There are so many transfers.
unsafe fn all(transfers: *const Transfer, count: usize) -> Vec<Access> {
    // SAFETY: forwarded from the caller.
    let transfers = if count == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(transfers, count) } };
    let access = |transfer: &Transfer| {
        let Transfer { region, reads, writes, exact } = *transfer;
        let mpi_interface::Region { start, width, pitch, slice_pitch, height, depth } = region;
        let region = Region { start, width, height, depth, pitch, slice_pitch, array: ArrayId::NONE };
        Access { region, reads, writes, exact }
    };
    transfers.iter().map(access).collect()
}

unsafe extern "C" fn access(call: u16, transfers: *const Transfer, count: usize) -> u32 {
    // SAFETY: forwarded from the caller.
    requests::during_call(call_names::mpi_call(call), &unsafe { all(transfers, count) })
}

extern "C" fn give_back(borrower: u32) {
    requests::give_back(borrower);
}

unsafe extern "C" fn begin(call: u16, transfers: *const Transfer, count: usize) -> u32 {
    // SAFETY: forwarded from the caller.
    requests::begin(call_names::mpi_call(call), &unsafe { all(transfers, count) })
}

extern "C" fn end(call: u16, request: u32) {
    requests::end(call_names::mpi_call(call), request);
}
