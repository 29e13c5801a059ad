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
pub mod number;
pub mod algebra;
pub mod convolution;
pub mod elementwise;
pub mod fourier;
pub mod matrix;
pub mod memory;
pub mod product;
pub mod random;
pub mod sparse;
pub mod tensor;
pub mod vector;
