//! Engines that move bytes past CUDA, seen through the libraries by which programs drive them.
//!
//! Owns which of their functions a program gets from `dlsym`. [`verbs`] (ibverbs: RDMA cards),
//! [`ucx`] and [`nixl`] each own the exports of one library; [`work_queue`] owns which requests a
//! completion ends, and `calls` what the adapters share. A request in the trace is
//! `super::requests`'.
//!
//! The libraries lie upon each other (NIXL calls UCX, UCX calls ibverbs). The outermost one that
//! the program calls is observed; what it calls inside is its transport.

#[cfg(not(test))]
mod calls;
#[cfg_attr(test, allow(dead_code, reason = "the exports are not in test programs"))]
pub mod nixl;
#[cfg_attr(test, allow(dead_code, reason = "the exports are not in test programs"))]
pub mod ucx;
#[cfg(not(test))]
#[expect(non_upper_case_globals, reason = "ibverbs' names")]
pub mod verbs;
pub mod work_queue;

/// Our function of a name, for a program that looked it up by `dlsym` and is to get `found`.
/// ibverbs' are not among them: the libraries that look these up (NCCL, NVSHMEM) move bytes of
/// their own.
#[cfg(not(test))]
pub fn wrapper(name: &[u8], found: *mut std::ffi::c_void) -> Option<*mut std::ffi::c_void> {
    ucx::wrapper(name, found).or_else(|| nixl::wrapper(name, found))
}
