//! cuBLASLt: `libcublasLt.so.13`.
//!
//! - `descriptors`: layouts, descriptions of products, preferences
//! - `matmul`: the product
//! - `management`: handles, versions, the log

mod descriptors;
mod management;
mod matmul;
