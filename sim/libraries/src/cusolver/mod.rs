//! cuSOLVER's dense functions: `libcusolver.so.12`.
//!
//! - `handle`: handles, parameters of the 64-bit functions and of Jacobi's methods, statuses
//! - `factors`: Cholesky, LU and QR factors, and what is solved and made with them
//! - `eigen`: eigenvalues of symmetric matrices; `singular`: singular values
//! - `wide`, `wide_values`: the functions with 64-bit integers (`cusolverDnX...`)
//!
//! A workspace counts as perhaps written. Its size is the stand-in's own: NVIDIA's differ by
//! release and device. Sparse functions (`cusolverSp...`), those of several devices and the others
//! in `refused` are refused.

mod eigen;
mod factors;
pub(crate) mod handle;
mod singular;
mod wide;
mod wide_values;
