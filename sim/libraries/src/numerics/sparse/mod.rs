//! Sparse matrices and vectors.
//!
//! - `arrays`: how they lie in memory
//! - `product`: with dense matrices; `sum`: products and sums that are sparse again
//! - `solve`: triangular systems
//! - `convert`: indices, and other forms of the same matrix; `vector`: sparse vectors

pub(crate) mod arrays;
pub(crate) mod convert;
pub(crate) mod product;
pub(crate) mod solve;
pub(crate) mod sum;
pub(crate) mod vector;
