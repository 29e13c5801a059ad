//! Linear algebra with dense matrices.
//!
//! - `solve`: triangular systems; `factor`: LU and QR factors, and what is solved with them
//! - `cholesky`: Cholesky's factors; `reflectors`: Q of a QR factorisation
//! - `eigen`, `singular`: eigenvalues and singular values, with their vectors

pub mod cholesky;
pub mod eigen;
pub mod factor;
pub mod reflectors;
pub mod singular;
pub mod solve;
