//! What each call means: one function for each row of the table, under the row's name.
//!
//! A function runs before the real call, after it succeeded, or both ([`crate::observe::context::Phase`]),
//! as its row says. Its arguments are the program's own: what they point to is valid as the
//! driver's contract says, which is the safety condition of every function here.

#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]

mod contexts;
pub mod copies;
pub mod external_semaphores;
pub mod graphs;
mod host_functions;
mod launches;
pub mod memory;
pub mod modules;
pub mod stream_memops;
mod streams;
pub mod unmodelled;

pub(crate) use self::contexts::*;
pub(crate) use self::host_functions::*;
pub(crate) use self::launches::*;
pub(crate) use self::streams::*;
pub(crate) use crate::ops::copies::linear::*;
pub(crate) use crate::ops::copies::strided::*;
pub(crate) use crate::ops::external_semaphores::*;
pub(crate) use crate::ops::graphs::added_nodes::*;
pub(crate) use crate::ops::graphs::capture::*;
pub(crate) use crate::ops::graphs::execs::*;
pub(crate) use crate::ops::graphs::origins::*;
pub(crate) use crate::ops::memory::allocations::*;
pub(crate) use crate::ops::memory::arrays::*;
pub(crate) use crate::ops::memory::memset::*;
pub(crate) use crate::ops::memory::virtual_memory::*;
pub(crate) use crate::ops::modules::*;
pub(crate) use crate::ops::stream_memops::*;
pub(crate) use crate::ops::unmodelled::*;
