//! The calls of MPI, as the library beside this one reports them (`libstreamsan_mpi.so`, crate
//! `shim-mpi`).
//!
//! Owns the export by which the two are linked and the functions of the table that the library gets
//! (crate `shim-mpi-interface`): which memory CUDA knows, and the ops of a call, with the memory
//! that it lends to other processes meanwhile. Which bytes a call accesses, and how long, is
//! decided there.

use std::ffi::c_void;

use mpi_interface::{Name, Table, Transfer, VERSION};
use trace::{ArrayId, Op, Region, StreamId};

use crate::host::system_calls;
use crate::log::{call_names, start};
use crate::observe::host_watch::device_will_write;
use crate::observe::{Cx, Phase, observe};
use crate::real::mpi;
use crate::runtime::guard::EntryGuard;
use crate::runtime::thread_state::{inside_transport, set_inside_transport};
use crate::runtime::{lent_memory, lifecycle};
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
/// There are so many transfers, which live as long as the result is used.
unsafe fn all<'a>(transfers: *const Transfer, count: usize) -> &'a [Transfer] {
    // SAFETY: forwarded from the caller.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(transfers, count) } }
}

/// The pages of these bytes stay accessible until the borrower gives them back: other processes may
/// read them by system calls.
fn lend(borrower: u32, transfers: &[Transfer]) {
    transfers.iter().for_each(|t| lent_memory::lend(borrower, t.region.start, region(t).end()));
    set_inside_transport(true);
    transfers.iter().for_each(|t| system_calls::open_for_transport(t.region.start, region(t).end()));
    set_inside_transport(false);
}

fn region(transfer: &Transfer) -> Region {
    let mpi_interface::Region { start, width, pitch, slice_pitch, height, depth } = transfer.region;
    Region { start, width, height, depth, pitch, slice_pitch, array: ArrayId::NONE }
}

fn log(cx: &mut Cx<'_>, request: StreamId, transfers: &[Transfer]) {
    for transfer in transfers {
        let (region, &Transfer { reads, writes, exact, .. }) = (region(transfer), transfer);
        if writes {
            device_will_write(cx, &region);
        }
        cx.log(&Op::HostTransfer { request, region, reads, writes, exact });
    }
}

unsafe extern "C" fn access(call: u16, transfers: *const Transfer, count: usize) -> u32 {
    // SAFETY: forwarded from the caller.
    let transfers = unsafe { all(transfers, count) };
    let mut borrower = 0;
    observe(call_names::mpi_call(call), 0, Phase::Before, |cx| {
        log(cx, StreamId::NONE, transfers);
        borrower = cx.core().map_or(0, |core| core.handles.next.stream.take());
    });
    lend(borrower, transfers);
    borrower
}

extern "C" fn give_back(borrower: u32) {
    lent_memory::take_back(borrower);
}

unsafe extern "C" fn begin(call: u16, transfers: *const Transfer, count: usize) -> u32 {
    // SAFETY: forwarded from the caller.
    let transfers = unsafe { all(transfers, count) };
    let mut request = 0;
    observe(call_names::mpi_call(call), 0, Phase::Before, |cx| {
        let Some(core) = cx.core() else { return };
        request = core.handles.next.stream.take();
        cx.log(&Op::RequestStart { request: StreamId(request) });
        log(cx, StreamId(request), transfers);
    });
    if request != 0 {
        lend(request, transfers);
    }
    request
}

extern "C" fn end(call: u16, request: u32) {
    lent_memory::take_back(request);
    observe(call_names::mpi_call(call), 0, Phase::Before, |cx| {
        cx.log(&Op::RequestDone { request: StreamId(request) });
    });
}
