//! Functions of CUDA's libraries without a stand-in: each answers its library's "not supported" and
//! is named, once. So libraries and programs that are linked with them load, and what they call is
//! known.
//!
//! Their names stand in `refused`, one list for each library; `build.rs` makes functions of them.
//! Here are also the few that have another answer: versions, texts, pointers.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicU64};

use sim_driver_link::refused;

/// Defines functions that refuse with a status.
macro_rules! refuse {
    ($status:literal: $($name:ident)*) => { $(
        const _: () = {
            // SAFETY: the library's name. It looks at no arguments, so any caller's are fine under
            // the C ABI; a status fits into the register, whatever integer it is.
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> i64 {
                no(stringify!($name), $status)
            }
        };
    )* };
}

fn no(name: &str, status: i64) -> i64 {
    refused(&format!("{name} is not simulated"));
    status
}

include!(concat!(env!("OUT_DIR"), "/refused.rs"));

// Pointers, or numbers of bytes.
refuse! { 0: nvshmem_malloc nvshmem_align nvshmem_calloc nvshmem_ptr nvshmemx_mc_ptr cuFileUseCount }
refuse! { -5001: cuFileRead cuFileWrite }

/// Variables of a library, which hold zeros.
macro_rules! zeros {
    ($($name:ident: $kind:ident)*) => { $(
        // SAFETY: the library's name of a variable of this size.
        #[unsafe(no_mangle)]
        static $name: $kind = $kind::new(0);
    )* };
}

// libtorch_nvshmem.so of PyTorch 2.15 is linked with the first; the others are those that NVSHMEM
// 3.8 has beside it.
zeros! {
    nvshmem_selected_device_transport: AtomicI32 nvshmem_debug_level: AtomicI32 nvshmem_debug_mask: AtomicU64
    nvshmem_debug_file: AtomicU64 nvshmem_error: AtomicU64 nvshmem_options: AtomicI32 nvshmem_nvtx_options: AtomicI32
}

/// A lock that is free.
// SAFETY: the library's name of a variable of this size (`pthread_mutex_t`).
#[unsafe(no_mangle)]
static nvshmem_debug_output_lock: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];

/// Versions that the libraries say they are: those that CUDA 13 came with, as major, minor, patch.
/// cuDNN's minor is high, because programs refuse one that is older than what they were built with.
const CUDNN: [c_int; 3] = [9, 99, 0];
const CUFFT: [c_int; 3] = [12, 0, 0];
const CURAND: [c_int; 3] = [10, 4, 0];
const CUSOLVER: [c_int; 3] = [12, 0, 4];
const CUSPARSE: [c_int; 3] = [12, 6, 3];
const CUSPARSELT: [c_int; 3] = [0, 8, 1];
const NCCL: [c_int; 3] = [2, 29, 0];

const NOT_SIMULATED: *const c_char = c"not simulated".as_ptr();

macro_rules! texts {
    ($($name:ident)*) => { $(
        // SAFETY: the library's name; arguments are not looked at.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> *const c_char {
            NOT_SIMULATED
        }
    )* };
}

texts! {
    cudnnGetErrorString ncclGetErrorString ncclGetLastError
    cusparseLtGetErrorName cusparseLtGetErrorString
}

// SAFETY: the library's name and signature.
#[unsafe(no_mangle)]
extern "C" fn cudnnGetVersion() -> usize {
    let [major, minor, patch] = CUDNN;
    (major * 10_000 + minor * 100 + patch) as usize
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cudnnGetCudartVersion() -> usize {
    13_000
}

/// The part of a version that a `libraryPropertyType` names.
fn part(property: c_int, version: [c_int; 3]) -> c_int {
    usize::try_from(property).ok().and_then(|at| version.get(at)).copied().unwrap_or_default()
}

macro_rules! properties {
    ($($name:ident $version:ident $wrong:literal)*) => { $(
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(property: c_int, to: *mut c_int) -> c_int {
            put(to, part(property, $version), $wrong)
        }
    )* };
}

properties! {
    cudnnGetProperty CUDNN 2000
    cufftGetProperty CUFFT 4
    curandGetProperty CURAND 103
    cusolverGetProperty CUSOLVER 3
    cusparseGetProperty CUSPARSE 3
    cusparseLtGetProperty CUSPARSELT 3
}

fn thousands([major, minor, patch]: [c_int; 3]) -> c_int {
    major * 1000 + minor * 100 + patch
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cufftGetVersion(to: *mut c_int) -> c_int {
    put(to, thousands(CUFFT), 4)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn curandGetVersion(to: *mut c_int) -> c_int {
    put(to, thousands(CURAND), 103)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cusolverGetVersion(to: *mut c_int) -> c_int {
    put(to, thousands(CUSOLVER), 3)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cusparseGetVersion(_handle: *const c_void, to: *mut c_int) -> c_int {
    put(to, thousands(CUSPARSE), 3)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cusparseLtGetVersion(_handle: *const c_void, to: *mut c_int) -> c_int {
    put(to, thousands(CUSPARSELT), 3)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cuptiGetVersion(to: *mut c_int) -> c_int {
    put(to, 130_000, 1)
}

/// # Safety
/// The text has room for as many bytes.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnGetLastErrorString(text: *mut c_char, room: usize) {
    if !text.is_null() && room > 0 {
        // SAFETY: the caller's promise.
        unsafe { libc::strncpy(text, NOT_SIMULATED, room - 1).add(room - 1).write(0) };
    }
}

fn put(to: *mut c_int, value: c_int, otherwise: c_int) -> c_int {
    if to.is_null() {
        return otherwise;
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { to.write(value) };
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn ncclGetVersion(to: *mut c_int) -> c_int {
    let [major, minor, patch] = NCCL;
    put(to, major * 10_000 + minor * 100 + patch, 4)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cuFileGetVersion(to: *mut c_int) -> i64 {
    i64::from(put(to, 1150, 5022))
}

// PyTorch asks itself whether its user wants cuDNN, before each convolution. There is no cuDNN
// here, and PyTorch has convolutions of its own. Preloaded, these stand in front of its answers.
// SAFETY: `bool at::Context::userEnabledCuDNN() const`; it does not look at the object.
#[unsafe(no_mangle)]
extern "C" fn _ZNK2at7Context16userEnabledCuDNNEv() -> bool {
    false
}

// SAFETY: `bool at::Context::userEnabledCuDNNSDP() const`; as above.
#[unsafe(no_mangle)]
extern "C" fn _ZNK2at7Context19userEnabledCuDNNSDPEv() -> bool {
    false
}
