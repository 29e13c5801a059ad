//! What if: the same records under another assumption about how the program synchronises.
//!
//! Owns two questions. *Assumptions* ([`assumed`]) change one analysis: another kind of default
//! stream, or synchronisations that are left out. *Excess* asks of every synchronisation of a
//! trace whether anything would race without it ([`judge`]). Does not add waits: that is
//! [`crate::replan`].
//!
//! # How excess is found
//!
//! A second analysis leaves out every synchronisation ([`steps`]). What races then is all that any
//! of them is needed for: leaving out fewer only adds order, and an access that is forgotten
//! stands behind one that races in its place. So each trial needs no bytes. It is the order alone,
//! worked out again for some set of left-out sites, and asked for those pairs ([`trial`]).
//!
//! Two nodes of one launch are ordered by their graph alone. So their pairs are kept with the graph
//! and asked of its own order, which is worked out again without the captured waits ([`graphs`]).
//!
//! The files in the order of use: `sync` says which ops synchronise, `pattern` which of them a user
//! names, `assumed` what is assumed. `steps` is the trace as the order sees it, `graphs` the
//! launched graphs, `needs` what must stay ordered, `trial` one order, `search` the sets that can
//! go together, `judge` all of it, `listing` its result, and `text` and `page` print that.

pub mod assumed;
pub(crate) mod graphs;
pub mod judge;
pub mod listing;
pub(crate) mod needs;
pub mod page;
pub(crate) mod pattern;
pub(crate) mod search;
pub(crate) mod steps;
pub mod sync;
pub mod text;
pub(crate) mod trial;
