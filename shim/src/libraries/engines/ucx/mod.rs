//! UCX's interface for programs (`libucp.so.0`): messages and one-sided operations.
//!
//! Owns our exports of its functions. An operation is a request, from the call that starts it until
//! the program has seen it complete: the call answers so at once, the program's callback runs, a
//! request's status is asked for, or a flush, a close or the end of its worker covers it. A put is
//! complete for the local buffer when its request is. What a message fills is at most its buffer.
//! CUDA calls that UCX makes inside, `ucp_worker_progress` included, are its transport; the
//! program's callbacks and handlers of active messages are its own again.
//!
//! Calls of NCCL's plugins, of MPI and of UCX itself are left alone.
//!
//! Functions of before UCX 1.9 (`ucp_tag_send_nb` and its like) have callbacks that can not be told
//! apart. They are counted, and from the first one on all of UCX is left alone, as if there were no
//! adapter.

#[cfg(not(test))]
#[expect(non_upper_case_globals, reason = "UCX's names")]
mod exports;
#[cfg(not(test))]
mod parameters;
mod pending;

#[cfg(not(test))]
pub(super) use exports::wrapper;
