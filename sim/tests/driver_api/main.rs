//! The simulated driver, called as a program calls it.
#![allow(clippy::macro_metavars_in_unsafe, reason = "in `cu!` and `ok!` the call is the argument")]

#[macro_use]
mod support;

mod images;
mod kernels;
mod memory;
mod streams;
