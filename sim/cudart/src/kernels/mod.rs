//! Kernels: what programs register before `main`, code that they load themselves, and launches.
//!
//! `launches` and `libraries` ask `registration` which kernel a host symbol stands for; `launches`
//! finds handles of kernels in `libraries`.

pub(crate) mod launches;
pub(crate) mod libraries;
pub(crate) mod registration;
