//! cuSPARSE: `libcusparse.so.12`.
//!
//! - `handle`: handles and their settings, statuses
//! - `descriptors`: matrices and vectors, sparse and dense, as the generic functions take them
//! - `products`: products with dense and sparse matrices; `solve`: triangular systems
//! - `vectors`: sparse vectors
//! - `convert`: indices, forms of sparse matrices, dense matrices
//! - `sums`: sums of sparse matrices, and the descriptors of the older functions
//!
//! A buffer that the program gave counts as perhaps written. Its size is the stand-in's own:
//! NVIDIA's differ by release and device. Matrices of blocks, and the other functions in `refused`,
//! are refused.

mod convert;
mod descriptors;
pub(crate) mod handle;
mod products;
mod solve;
mod sums;
mod vectors;
