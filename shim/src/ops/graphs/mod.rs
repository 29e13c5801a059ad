//! Graphs: captured or built, read when they are instantiated, changed, launched.
//!
//! A node's way through the files: [`capture`] or [`added_nodes`] sees it made, and [`origins`]
//! keeps where. When the graph is instantiated [`execs`] has it read by [`flatten`], which takes
//! the op of each node from [`node_ops`] and its origin from [`origins`]. [`execs`] also owns the
//! changes to single nodes, and the launch. [`origins`] uses the listing of nodes in [`flatten`],
//! which uses the origins: hence the two know each other.

mod added_nodes;
mod capture;
mod conditions;
mod execs;
mod flatten;
pub(crate) mod node_ops;
mod origins;

pub(crate) use added_nodes::*;
pub(crate) use capture::*;
pub(crate) use conditions::cuGraphConditionalHandleCreate;
pub(crate) use execs::*;
pub(crate) use origins::*;
