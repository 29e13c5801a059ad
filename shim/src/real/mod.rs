//! The real functions behind our exports.
//!
//! Owns the addresses of the functions that the shim stands in front of, and calling them. Nothing
//! here knows what the shim does around a call, so every layer may call the driver.
//!
//! [`elf`] finds the C library's `dlsym` behind ours. With it [`driver`] finds the driver's
//! functions and [`library`] those of other libraries, [`scoped`] those of libraries that a process
//! may have twice; [`driver_mapping`] keeps where the driver is mapped. [`reach`] knows whether its
//! devices bear that pages are protected, and [`mpi`] whether an MPI library is used unobserved.

pub mod driver;
pub mod driver_mapping;
pub mod elf;
pub mod library;
pub mod mpi;
pub mod reach;
#[cfg(not(test))]
pub mod scoped;
