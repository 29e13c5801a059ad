//! What computes: on the CPU, when the stream has come to the call.
//!
//! - `number`: the types of elements, and arithmetic over four of them
//! - `memory`: how device memory is reached
//! - `matrix`: elements in memory, as strided matrices
//! - `product`: all that is a product of two matrices
//! - `vector`, `elementwise`: what goes over vectors and matrices
//! - `algebra`: factors, systems, eigenvalues; `sparse`: sparse matrices
//! - `fourier`: discrete Fourier transforms; `random`: random numbers
//! - `tensor`: elements in memory, with any number of dimensions
//! - `convolution`: convolutions and their gradients

#[macro_use]
pub(crate) mod number;
pub(crate) mod algebra;
pub(crate) mod convolution;
pub(crate) mod elementwise;
pub(crate) mod fourier;
pub(crate) mod matrix;
pub(crate) mod memory;
pub(crate) mod product;
pub(crate) mod random;
pub(crate) mod sparse;
pub(crate) mod tensor;
pub(crate) mod vector;
