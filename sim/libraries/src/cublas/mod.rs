//! cuBLAS: `libcublas.so.13`.
//!
//! - `handle`: handles and their settings, statuses
//! - `level1`: vectors; `level2`: matrices and vectors; `level3`: matrices
//! - `gemm`: the products of general matrices, in all their forms
//! - `factors`: LU and QR of batches
//! - `transfer`: copies between host and device
//!
//! As in NVIDIA's library each function has a twin with 64-bit integers, and names with and without
//! `_v2` mean the same functions of handles.

#[macro_use]
mod api;
mod factors;
pub(crate) mod gemm;
pub(crate) mod handle;
mod level1;
mod level2;
pub(crate) mod level3;
mod transfer;
