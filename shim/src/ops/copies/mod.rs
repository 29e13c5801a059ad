//! Copies.

pub mod linear;
pub mod strided;
