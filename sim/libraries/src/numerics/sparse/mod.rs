//! Sparse matrices and vectors.
//!
//! - `arrays`: how they lie in memory
//! - `product`: with dense matrices; `sum`: products and sums that are sparse again
//! - `solve`: triangular systems
//! - `convert`: indices, and other forms of the same matrix; `vector`: sparse vectors

pub mod arrays;
pub mod convert;
pub mod product;
pub mod solve;
pub mod sum;
pub mod vector;
