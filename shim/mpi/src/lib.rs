//! `libstreamsan_mpi.so`: what the calls of MPI read and write, and how long. The launcher preloads
//! it behind `libstreamsan.so` into programs that may use MPI; other programs get none of these
//! names.
//!
//! Owns the exports of MPI's functions. A blocking call touches its buffers as the host does, when
//! it is called. A non-blocking one touches them beside the host until its request completes: it is
//! a timeline of its own, which starts after all that the host has seen finish, and which the host
//! has seen finish once a wait or a successful test returns. The same holds for one-sided calls
//! until the call that completes them.
//!
//! CUDA calls that the MPI library makes inside are its transport: they do not count as the
//! program's, and neither race nor order. The program's own calls of `PMPI_` functions are not
//! seen, nor are calls inside another one (Fortran's functions call C's).
//!
//! Messages give no order: what a message can tell its receiver is what the sender's host has seen
//! finish, and between processes that share memory the analyzer takes any of that for told anyway.
//!
//! From the bottom up; a file knows those before it only:
//!
//! - `abi`: which library this is, its numbers and its functions.
//! - `arguments`: the arguments of a call in C, C with large counts, and Fortran.
//! - `names`: the names of MPI's functions and their numbers.
//! - `link`: the shim's functions (crate `shim-mpi-interface`).
//! - `datatypes`: the bytes of a datatype.
//! - `transfers`: which bytes of CUDA's memory a call touches.
//! - `requests`: what has not completed.
//! - `effects`: what each function does, `collectives` among them.
//! - `calls`: the way of a call; `exports`: the functions.

#![warn(unreachable_pub)]

pub mod abi;
pub mod arguments;
pub mod calls;
pub mod collectives;
pub mod datatypes;
pub mod effects;
pub mod exports;
pub mod link;
pub mod names;
pub mod requests;
pub mod transfers;

#[cfg(not(test))]
#[ctor::ctor(unsafe)]
fn start() {
    link::start();
}
