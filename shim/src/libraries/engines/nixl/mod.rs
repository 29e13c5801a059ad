//! NIXL's C interface (`libnixl_capi.so.0`): transfers between agents, of KV caches for the most
//! part.
//!
//! Owns our exports of its functions. A transfer is a request, from `nixl_capi_post_xfer_req` until
//! that or `nixl_capi_get_xfer_status` answers anything but "in progress", or the transfer is
//! released. A write reads the local descriptors, a read writes them; the peer's are not looked at.
//! What NIXL calls inside (UCX, cuFile, CUDA) is its transport.
//!
//! NIXL's own interface is C++, and its Python package calls that: its classes hold descriptors in
//! containers of the C++ library, in a layout that no version promises. There the calls to UCX
//! below are observed ([`super::ucx`]), or the program announces its transfers (`streamsan.h`).

#[cfg(not(test))]
#[expect(non_upper_case_globals, reason = "NIXL's names")]
mod exports;
mod transfers;

#[cfg(not(test))]
pub(super) use exports::wrapper;
