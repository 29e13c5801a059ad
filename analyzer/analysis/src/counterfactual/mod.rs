//! Counterfactuals: the same records under another order than the program made.
//!
//! Owns the edits of a record before a pass takes it ([`edits`]), trials of edited records
//! ([`trial`]), and the two searches that make trials: [`causes`] finds the few waits whose absence
//! explains the findings, [`excess`] the synchronisations that nothing needs. An edit adds waits
//! that the program did not make, leaves synchronisations out, or assumes another default stream.
//!
//! An edit acts in front of a pass ([`crate::pass`]). So measured launches, graphs and everything
//! else that an op goes through stay as they are, and added waits follow the rules of order of the
//! crate `order`, those of the default streams included. Call sites are compared by stack and
//! kernel ([`detect::state::op_site::OpSite`]), which are the same in every pass over a trace.

pub mod causes;
pub mod edits;
pub mod excess;
pub mod trial;
