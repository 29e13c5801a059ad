//! Accesses to memory that no call of CUDA makes: of a library during one of its calls, or of an
//! engine that works beside the host until a call says that it is done.
//!
//! Owns the ops of both, and the memory that is lent meanwhile: its pages stay accessible, for an
//! engine or another process may reach them by system calls. A request is a timeline of its own. It
//! starts after all that the host has seen finish, and the host has seen it finish when it ends.
//! Which bytes are accessed is known to the callers: MPI ([`super::mpi`]), the program's own words
//! (`super::external`), cuFile (`super::cufile`).

use cuda_sys::FnId;
use trace::{Op, Region, StreamId};

use crate::host::system_calls;
use crate::observe::host_watch::device_will_write;
use crate::observe::{Cx, Phase, observe};
use crate::runtime::lent_memory;
use crate::runtime::thread_state::{inside_transport, set_inside_transport};

/// Bytes that are read or written.
#[derive(Clone, Copy)]
pub(super) struct Access {
    /// Which.
    pub region: Region,
    /// Whether they are read.
    pub reads: bool,
    /// Whether they are written.
    pub writes: bool,
    /// Whether all of them are; otherwise these are the bytes among which some are.
    pub exact: bool,
}

fn lend(borrower: u32, accesses: &[Access]) {
    accesses.iter().for_each(|access| lent_memory::lend(borrower, access.region.start, access.region.end()));
    let was_inside = inside_transport();
    set_inside_transport(true);
    accesses.iter().for_each(|access| system_calls::open_for_transport(access.region.start, access.region.end()));
    set_inside_transport(was_inside);
}

fn log(cx: &mut Cx<'_>, request: StreamId, accesses: &[Access]) {
    for Access { region, reads, writes, exact } in accesses.iter().copied() {
        if writes {
            device_will_write(cx, &region);
        }
        cx.log(&Op::HostTransfer { request, region, reads, writes, exact });
    }
}

/// A call makes these accesses before it returns. Answers under which number the memory is lent,
/// for [`give_back`].
pub(super) fn during_call(call: FnId, accesses: &[Access]) -> u32 {
    let mut borrower = 0;
    observe(call, 0, Phase::Before, |cx| {
        log(cx, StreamId::NONE, accesses);
        borrower = cx.core().map_or(0, |core| core.handles.next.stream.take());
    });
    lend(borrower, accesses);
    borrower
}

/// A call is going to access these bytes; which of them it says when it returns, by [`made`].
/// Answers under which number they are lent.
#[cfg(not(test))]
pub(super) fn lend_for_call(call: FnId, region: Region, writes: bool) -> u32 {
    let mut borrower = 0;
    observe(call, 0, Phase::Before, |cx| {
        if writes {
            device_will_write(cx, &region);
        }
        borrower = cx.core().map_or(0, |core| core.handles.next.stream.take());
    });
    lend(borrower, &[Access { region, reads: !writes, writes, exact: true }]);
    borrower
}

/// A call has made these accesses, for the host.
#[cfg(not(test))]
pub(super) fn made(call: FnId, accesses: &[Access]) {
    observe(call, 0, Phase::Before, |cx| log(cx, StreamId::NONE, accesses));
}

/// The memory that was lent under this number is no longer in use.
pub(super) fn give_back(borrower: u32) {
    lent_memory::take_back(borrower);
}

/// Something begins that makes these accesses beside the host. Answers its number; 0: the process
/// is not observed.
pub(super) fn begin(call: FnId, accesses: &[Access]) -> u32 {
    begin_named(call, accesses, "")
}

/// As [`begin`], with the words by which reports speak of it; empty: "the request".
pub(super) fn begin_named(call: FnId, accesses: &[Access], name: &str) -> u32 {
    let mut request = 0;
    observe(call, 0, Phase::Before, |cx| {
        let Some(core) = cx.core() else { return };
        request = core.handles.next.stream.take();
        cx.log(&Op::RequestStart { request: StreamId(request) });
        if !name.is_empty() {
            cx.log(&Op::StreamName { stream: StreamId(request), name: name.into() });
        }
        log(cx, StreamId(request), accesses);
    });
    if request != 0 {
        lend(request, accesses);
    }
    request
}

/// The host has seen it end, in this call.
pub(super) fn end(call: FnId, request: u32) {
    lent_memory::take_back(request);
    observe(call, 0, Phase::Before, |cx| {
        cx.log(&Op::RequestDone { request: StreamId(request) });
    });
}
