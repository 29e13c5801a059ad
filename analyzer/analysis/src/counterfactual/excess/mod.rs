//! Excess: whether anything would race without a synchronisation of the trace.
//!
//! Owns the question and its answer ([`judge`]). Leaving out is an edit
//! ([`super::edits`]).
//!
//! # How excess is found
//!
//! One trial leaves out every synchronisation ([`super::trial::Trial::unsynchronised`]). What races
//! then is all that any of them is needed for: leaving out fewer only adds order, and an access
//! that is forgotten stands behind one that races in its place. So each further trial needs no
//! bytes. It is the order alone, worked out again for some set of left-out sites, and asked for
//! those pairs ([`trial`]).
//!
//! Two nodes of one launch are ordered by their graph alone. So their pairs are kept with the graph
//! and asked of its own order, which is worked out again without the captured waits
//! ([`super::edits::graphs`]).
//!
//! The files in the order of use: `needs` says what must stay ordered, `trial` is one order,
//! `search` the sets that can go together, `dependents` the waits and triggers of kernels without
//! gain, `judge` all of it, `listing` its result, and `text` and `page` print that.

pub mod dependents;
pub mod judge;
pub mod listing;
mod needs;
pub mod page;
mod search;
pub mod text;
mod trial;
