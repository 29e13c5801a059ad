//! The names of observed functions: the driver's, and those of libraries.
//!
//! Owns the numbers of functions that are not in the table of `cuda-sys`: those of libraries follow
//! the table's, then those of NVSHMEM (`nvshmem_names`), and those of MPI follow these. MPI's names
//! come from the library that observes them (`libstreamsan_mpi.so`). Does not intercept these
//! functions: see `crate::libraries`.

use std::sync::OnceLock;

use cuda_sys::FnId;
use mpi_interface::Name;

use super::nvshmem_names;

/// Functions of libraries that are observed besides the driver's, numbered after those of the
/// table.
const LIBRARY_CALLS: &[&str] = &[
    "c10::cuda::CUDACachingAllocator",
    "host function",
    "streamsan.h",
    "host",
    "c10::cuda::getStreamFromPool",
    "ncclAllReduce",
    "ncclReduce",
    "ncclBcast",
    "ncclBroadcast",
    "ncclReduceScatter",
    "ncclAllGather",
    "ncclAlltoAll",
    "ncclGather",
    "ncclScatter",
    "ncclSend",
    "ncclRecv",
    "host threads",
    "nvtxMemRegionsRegister",
    "streamsan_allocated",
    "STREAMSAN_EXTERNAL_BEGIN",
    "STREAMSAN_EXTERNAL_END",
    "cuFileRead",
    "cuFileWrite",
    "cuFileReadAsync",
    "cuFileWriteAsync",
    "cuFileBatchIOSubmit",
    "cuFileBatchIOGetStatus",
    "cuFileBatchIOCancel",
    "cuFileBatchIODestroy",
    "ncclGroupEnd",
    "ibverbs",
    "ibv_post_send",
    "ibv_post_recv",
    "ibv_post_srq_recv",
    "ibv_poll_cq",
    "ibv_destroy_qp",
    "UCX",
    "ucp_tag_send_nbx",
    "ucp_tag_send_sync_nbx",
    "ucp_tag_recv_nbx",
    "ucp_tag_msg_recv_nbx",
    "ucp_stream_send_nbx",
    "ucp_stream_recv_nbx",
    "ucp_am_send_nbx",
    "ucp_am_recv_data_nbx",
    "ucp_put_nbx",
    "ucp_get_nbx",
    "ucp_atomic_op_nbx",
    "ucp_ep_flush_nbx",
    "ucp_worker_progress",
    "ucp_request_check_status",
    "nixl_capi_post_xfer_req",
    "nixl_capi_get_xfer_status",
    "nixl_capi_release_xfer_req",
    "ncclCommDestroy",
    "ncclCommAbort",
    "ncclCommFinalize",
];

/// NVSHMEM's functions are numbered from here on.
pub(super) const FIRST_OF_NVSHMEM: u16 = (FnId::COUNT + LIBRARY_CALLS.len()) as u16;

/// MPI's are numbered from here on.
pub(super) const FIRST_OF_MPI: u16 = FIRST_OF_NVSHMEM + nvshmem_names::COUNT as u16;

/// So many of them at most.
pub(super) const MOST_OF_MPI: usize = 512;

/// The number of a library function. A name that is not in the list does not compile.
pub const fn library_call(name: &str) -> FnId {
    let mut index = 0;
    while index < LIBRARY_CALLS.len() {
        if is_same(LIBRARY_CALLS[index].as_bytes(), name.as_bytes()) {
            return FnId((FnId::COUNT + index) as u16);
        }
        index += 1;
    }
    panic!("not among the names of library functions")
}

pub(super) const fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// PyTorch's allocator.
pub const TORCH_ALLOCATOR: FnId = library_call("c10::cuda::CUDACachingAllocator");

/// A host function that the driver runs.
pub const HOST_FUNCTION: FnId = library_call("host function");

/// The program's own annotations.
pub const PROGRAM: FnId = library_call("streamsan.h");

/// Blocks of pools that the program announces.
pub const POOL: FnId = library_call("streamsan_allocated");

/// A load or store of the host itself.
pub const HOST_ACCESS: FnId = library_call("host");

/// Host threads that synchronise with each other.
pub const HOST_THREADS: FnId = library_call("host threads");

/// Regions of pools that NVTX annotations announce.
pub const NVTX_REGIONS: FnId = library_call("nvtxMemRegionsRegister");

/// PyTorch's pool of streams.
pub const TORCH_STREAM: FnId = library_call("c10::cuda::getStreamFromPool");

/// The name of an observed function.
pub fn name_of(call: FnId) -> &'static str {
    match call.index().checked_sub(FnId::COUNT) {
        None => call.name(),
        Some(index) => LIBRARY_CALLS.get(index).copied().unwrap_or_else(|| {
            let index = index - LIBRARY_CALLS.len();
            nvshmem_names::name(index).unwrap_or_else(|| name_of_mpi(index - nvshmem_names::COUNT))
        }),
    }
}

/// The names of MPI's functions, once the library that observes them has been linked.
static MPI: OnceLock<&[Name]> = OnceLock::new();

/// The names of MPI's functions are these.
pub fn set_mpi_names(names: &'static [Name]) {
    debug_assert!(names.len() <= MOST_OF_MPI);
    // The library is linked once: a second copy of it would bring the same names.
    let _ = MPI.set(names);
}

/// MPI's function of this number.
pub fn mpi_call(number: u16) -> FnId {
    FnId(FIRST_OF_MPI + number)
}

fn name_of_mpi(number: usize) -> &'static str {
    MPI.get().and_then(|names| names.get(number)).map_or("?", |name| name.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_mpi_follow_those_of_libraries() {
        static NAMES: [Name; 2] = [Name::new("MPI_Send"), Name::new("MPI_Recv")];
        assert_eq!(name_of(mpi_call(0)), "?", "not linked");
        set_mpi_names(&NAMES);
        assert_eq!([0, 1, 2].map(|number| name_of(mpi_call(number))), ["MPI_Send", "MPI_Recv", "?"]);
        let last = FnId(mpi_call(0).0 - 1);
        assert_eq!(nvshmem_names::nvshmem_call(name_of(last)), last);
        let last = library_call(LIBRARY_CALLS[LIBRARY_CALLS.len() - 1]);
        assert_eq!((name_of(last), FIRST_OF_NVSHMEM), (LIBRARY_CALLS[LIBRARY_CALLS.len() - 1], last.0 + 1));
    }
}
