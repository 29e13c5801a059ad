//! Stand-ins for CUDA's closed libraries on the simulated GPU.
//!
//! NVIDIA's are machine code around a CUDA runtime that talks to a real driver only. A stand-in
//! answers the public interface. It is an ordinary user of the driver: what a call asks for becomes
//! a kernel launch on the handle's stream, which tools see as any other.
//!
//! - `macros`: calls of the driver, through the crate `sim-driver-link`
//! - `model`: the kernels that say which bytes a call touches
//! - `numerics`: what computes, on the CPU
//! - `cublas`, `cublaslt`: the functions of cuBLAS and cuBLASLt
//! - `cudnn`: handles of cuDNN, and convolutions by its graph interface
//! - `cufft`: plans and transforms of cuFFT
//! - `curand`: generators of cuRAND
//! - `cusolver`: factors, eigenvalues and singular values of cuSOLVER
//! - `cusparse`: sparse matrices of cuSPARSE
//! - `nccl`: the functions of NCCL
//! - `nvml`, `device_files`: that there is a device, for who does not ask CUDA
//! - `names`: the names of the libraries
//! - `refused`: every other function, and those of other libraries

#![warn(unreachable_pub)]
#![allow(non_snake_case, non_upper_case_globals, reason = "C names")]
#![allow(clippy::too_many_arguments, reason = "C signatures")]
#![allow(missing_docs, reason = "nothing here is Rust API: CUDA's documentation describes the functions")]

#[macro_use]
mod macros;
mod cublas;
mod cublaslt;
mod cudnn;
mod cufft;
mod curand;
mod cusolver;
mod cusparse;
mod device_files;
pub mod model;
mod names;
mod nccl;
mod numerics;
mod nvml;
mod refused;
