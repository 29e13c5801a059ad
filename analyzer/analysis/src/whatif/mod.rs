//! What if: the same records under another assumption about how the program synchronises.
//!
//! Owns what one pass knows of it: which synchronisations are left out, and what the default stream
//! is assumed to be. Does not add waits: that is [`crate::replan`]. Asks nothing of the result:
//! that is `ingest::excess`.
//!
//! The files in the order of use: `sync` says which ops synchronise, `pattern` which of them a user
//! names, `assumed` what is assumed. `steps` is the trace as the order sees it, `graphs` the
//! launched graphs, and `need` a pair that must stay ordered.

pub(crate) mod assumed;
pub mod graphs;
pub mod need;
pub(crate) mod pattern;
pub mod steps;
pub mod sync;
