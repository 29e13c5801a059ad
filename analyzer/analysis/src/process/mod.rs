//! One process: what its ids stand for, and the state that its ops build up.
//!
//! Owns the data that an analysis is made of. [`facts::ProcessFacts`] is what definitions state and
//! every pass shares; [`state::ProcessState`] is what one pass has built up so far. Does not say
//! what an op does ([`crate::ops`]), nor in which order records are taken ([`crate::pass`]).
//!
//! The files in the order of use: `options` says what is asked. `submissions`, `host_touches`,
//! `early_values`, `gaps` and `exact` are parts of `state`; `op_context` is plain data that goes
//! along with an op.

pub(crate) mod early_values;
pub(crate) mod exact;
pub(crate) mod facts;
pub(crate) mod gaps;
pub(crate) mod host_touches;
pub(crate) mod op_context;
pub(crate) mod options;
pub(crate) mod state;
pub(crate) mod submissions;
