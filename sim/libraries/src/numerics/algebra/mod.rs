//! Linear algebra with dense matrices.
//!
//! - `solve`: triangular systems; `factor`: LU and QR factors, and what is solved with them
//! - `cholesky`: Cholesky's factors; `reflectors`: Q of a QR factorisation
//! - `eigen`, `singular`: eigenvalues and singular values, with their vectors

pub(crate) mod cholesky;
pub(crate) mod eigen;
pub(crate) mod factor;
pub(crate) mod reflectors;
pub(crate) mod singular;
pub(crate) mod solve;
