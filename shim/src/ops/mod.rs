//! What each call means: one function for each row of the table, under the row's name.
//!
//! A function runs before the real call, after it succeeded, or both ([`crate::observe::Phase`]),
//! as its row says. Its arguments are the program's own: what they point to is valid as the
//! driver's contract says, which is the safety condition of every function here.
//!
//! Owns the ops that calls make. The wrappers of `crate::intercept` find a function by the row's
//! name in this module, so each is re-exported here; a row without its function does not compile.
//! Exceptions are rows whose arguments or answers are replaced on the way: host functions
//! ([`host_functions`]) and the driver's own look-up (`crate::intercept::symbol_hooks`).
//!
//! Files do not know each other, with these exceptions: [`graphs`] makes the ops of its nodes with
//! [`launches`], [`copies`] and [`stream_memops`]; [`streams`] and [`external_semaphores`] use what
//! [`interop`] says of other processes and APIs, and [`interop`] asks [`memory`] for the size of
//! imported memory.

#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]

mod contexts;
mod copies;
mod external_semaphores;
mod graphs;
mod host_functions;
mod interop;
mod launches;
mod memory;
mod modules;
mod stream_memops;
mod streams;
mod unmodelled;

pub(crate) use contexts::*;
pub(crate) use copies::*;
pub(crate) use external_semaphores::*;
pub(crate) use graphs::*;
pub(crate) use host_functions::*;
pub(crate) use interop::*;
pub(crate) use launches::*;
pub(crate) use memory::*;
pub(crate) use modules::*;
pub(crate) use stream_memops::*;
pub(crate) use streams::*;
pub(crate) use unmodelled::*;
