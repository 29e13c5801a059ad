//! Libraries that are observed besides the driver, and the program's own annotations.
//!
//! Owns their exports, which the dynamic linker or the library itself finds before the real
//! functions. Each makes ops by way of [`crate::observe()`](crate::observe::observe) and knows no
//! other: [`torch`] (PyTorch's caching allocator and stream pool), [`nccl`] (collectives),
//! [`nvshmem`] (puts, gets, signals and collectives), [`mpi`] (messages), [`cufile`] (files),
//! [`annotations`] and [`external`] (`streamsan.h`), [`nvtx`] (NVTX's ranges), [`nvtx_extensions`]
//! (ranges that end with a payload), [`nvtx_memory`] (NVTX's memory regions), [`host_threads`]
//! (synchronisation of host threads), [`instrumented`] (host code that says itself what it
//! touches), [`engines`] (ibverbs, UCX, NIXL). What MPI, cuFile and engines access is logged by
//! `requests`. Driver functions are in `crate::intercept`.

// Exports of these would be found in test programs too.
#[cfg(not(test))]
pub mod annotations;
#[cfg(not(test))]
#[expect(non_camel_case_types, reason = "cuFile's names")]
pub mod cufile;
pub mod engines;
#[cfg(not(test))]
pub mod external;
pub mod host_threads;
pub mod instrumented;
pub mod mpi;
#[cfg(not(test))]
pub mod nccl;
#[cfg(not(test))]
pub mod nvshmem;
#[cfg(not(test))]
pub mod nvtx;
#[cfg(not(test))]
pub mod nvtx_extensions;
#[cfg(not(test))]
pub mod nvtx_memory;
mod requests;
#[cfg(not(test))]
pub mod torch;
