//! What each call means: one function for each row of the table, under the row's name.
//!
//! A function runs before the real call, after it succeeded, or both ([`crate::observe::Phase`]),
//! as its row says. Its arguments are the program's own: what they point to is valid as the
//! driver's contract says, which is the safety condition of every function here.

#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]

mod arrays;
mod boxed;
mod capture;
mod code;
mod contexts;
mod copies;
mod graph;
pub mod graph_execs;
mod graph_origins;
mod host_functions;
mod launches;
mod mapped;
mod memops;
mod memory;
mod neutral;
mod nodes;
mod semaphores;
mod sets;
mod streams;

pub(crate) use self::{
    arrays::*, boxed::*, capture::*, code::*, contexts::*, copies::*, graph_execs::*, graph_origins::*,
    host_functions::*, launches::*, mapped::*, memops::*, memory::*, neutral::*, nodes::*, semaphores::*, sets::*,
    streams::*,
};
