//! ibverbs' structures, as far as they are read: `infiniband/verbs.h` of rdma-core.
//!
//! Owns the layouts and the numbers. They are libibverbs' binary interface and have not changed
//! since version 1.1 of its symbols. The numbers at the end are those of rdma-core 44's header.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::AtomicUsize;

/// `struct ibv_context`: its beginning. The operations are called by inline functions of the
/// header.
#[repr(C)]
pub(super) struct Context {
    device: *mut c_void,
    /// `struct ibv_context_ops`.
    pub ops: [AtomicUsize; 32],
}

/// Places in [`Context::ops`].
pub(super) mod op {
    pub(crate) const POLL_CQ: usize = 11;
    pub(crate) const POST_SRQ_RECV: usize = 20;
    pub(crate) const POST_SEND: usize = 25;
    pub(crate) const POST_RECV: usize = 26;
}

/// `struct ibv_pd`, `struct ibv_cq`, `struct ibv_srq`: their beginning.
#[repr(C)]
pub(super) struct OfContext {
    pub context: *mut Context,
}

/// `struct ibv_qp`: its beginning.
#[repr(C)]
pub(super) struct QueuePair {
    pub context: *mut Context,
    qp_context: *mut c_void,
    pd: *mut OfContext,
    pub send_cq: *mut OfContext,
    pub recv_cq: *mut OfContext,
    pub srq: *mut OfContext,
    handle: u32,
    pub number: u32,
}

/// `struct ibv_qp_init_attr`: its beginning.
#[repr(C)]
pub(super) struct QueuePairInit {
    qp_context: *mut c_void,
    send_cq: *mut OfContext,
    pub recv_cq: *mut OfContext,
    pub srq: *mut OfContext,
}

/// `struct ibv_mr`.
#[repr(C)]
pub(super) struct MemoryRegion {
    pub context: *mut Context,
    pd: *mut OfContext,
    pub start: u64,
    pub length: usize,
    handle: u32,
    pub local_key: u32,
    remote_key: u32,
}

/// `struct ibv_sge`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ListEntry {
    pub address: u64,
    pub length: u32,
    pub local_key: u32,
}

/// `struct ibv_send_wr`: its beginning.
#[repr(C)]
pub(super) struct SendRequest {
    pub number: u64,
    pub next: *mut SendRequest,
    pub pieces: *const ListEntry,
    pub piece_count: c_int,
    pub opcode: c_uint,
    pub flags: c_uint,
}

/// `struct ibv_recv_wr`.
#[repr(C)]
pub(super) struct ReceiveRequest {
    pub number: u64,
    pub next: *mut ReceiveRequest,
    pub pieces: *const ListEntry,
    pub piece_count: c_int,
}

/// `struct ibv_wc`.
#[repr(C)]
pub(super) struct Completion {
    pub number: u64,
    pub status: c_uint,
    /// Only with [`SUCCESS`].
    pub opcode: c_uint,
    vendor_error: u32,
    length: u32,
    immediate: u32,
    pub queue_pair: u32,
    source: u32,
    flags: c_uint,
    partition: u16,
    source_lid: u16,
    service_level: u8,
    path_bits: u8,
}

/// `IBV_WC_SUCCESS`.
pub(super) const SUCCESS: c_uint = 0;
/// `IBV_WC_RECV`: a bit of the opcode.
pub(super) const RECEIVED: c_uint = 1 << 7;
/// `IBV_WC_RECV_RDMA_WITH_IMM`.
pub(super) const RECEIVED_WITH_IMMEDIATE: c_uint = RECEIVED + 1;

/// `IBV_SEND_SIGNALED`.
pub(super) const SIGNALLED: c_uint = 1 << 1;
/// `IBV_SEND_INLINE`.
pub(super) const INLINE: c_uint = 1 << 3;

/// `IBV_ACCESS_ZERO_BASED`.
pub(super) const ZERO_BASED: c_uint = 1 << 5;
/// `IBV_REREG_MR_CHANGE_TRANSLATION`.
pub(super) const CHANGE_TRANSLATION: c_int = 1;
/// `IBV_REREG_MR_ERR_DO_FORK_OLD`: the memory is registered anew, and only the advice to the system
/// about the old one failed.
pub(super) const CHANGED_ALL_THE_SAME: c_int = -3;
/// `IBV_QP_STATE`.
pub(super) const STATE: c_int = 1;
/// `IBV_QPS_RESET`.
pub(super) const RESET: c_uint = 0;

// What a C compiler says of the header, on x86-64 and aarch64 alike.
const _: () = {
    use std::mem::offset_of;
    const fn operation(at: usize) -> usize {
        offset_of!(Context, ops) + at * size_of::<AtomicUsize>()
    }
    assert!(operation(op::POLL_CQ) == 96 && operation(op::POST_SRQ_RECV) == 168);
    assert!(operation(op::POST_SEND) == 208 && operation(op::POST_RECV) == 216 && operation(32) == 264);
    assert!(offset_of!(QueuePair, send_cq) == 24 && offset_of!(QueuePair, recv_cq) == 32);
    assert!(offset_of!(QueuePair, srq) == 40 && offset_of!(QueuePair, number) == 52);
    assert!(offset_of!(QueuePairInit, recv_cq) == 16 && offset_of!(QueuePairInit, srq) == 24);
    assert!(size_of::<MemoryRegion>() == 48 && offset_of!(MemoryRegion, local_key) == 36);
    assert!(size_of::<ListEntry>() == 16 && size_of::<ReceiveRequest>() == 32);
    assert!(offset_of!(SendRequest, piece_count) == 24 && offset_of!(SendRequest, opcode) == 28);
    assert!(offset_of!(SendRequest, flags) == 32);
    assert!(size_of::<Completion>() == 48 && offset_of!(Completion, queue_pair) == 28);
};
