//! The names of observed functions: the driver's, and those of libraries.
//!
//! Owns the numbers of functions that are not in the table of `cuda-sys`; they follow the table's.
//! Does not intercept these functions: see `crate::libraries`.

use cuda_sys::FnId;

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
    "ncclSend",
    "ncclRecv",
    "host threads",
    "nvtxMemRegionsRegister",
    "streamsan_allocated",
];

/// The number of a library function. A name that is not in `LIBRARY_CALLS` does not compile.
pub const fn library_call(name: &str) -> FnId {
    let mut index = 0;
    while index < LIBRARY_CALLS.len() {
        if is_same(LIBRARY_CALLS[index].as_bytes(), name.as_bytes()) {
            return FnId((FnId::COUNT + index) as u16);
        }
        index += 1;
    }
    panic!("not in LIBRARY_CALLS")
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
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
        Some(index) => LIBRARY_CALLS.get(index).copied().unwrap_or("?"),
    }
}
