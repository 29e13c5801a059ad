//! A trace, checked again under a changed order: with waits that the program did not make.
//!
//! Owns the changes ([`waits::Replan`]), what is noted while they are tried ([`trial::Trial`]), and
//! the records that are fed again ([`records`]). Does not decide which changes are worth a trial:
//! `ingest::causes` looks for waits that are missing, and feeds the records to a second analysis.
//!
//! A change acts where [`crate::Analysis`] applies a record: before the op, after it, or in its
//! place. So measured launches, graphs and everything else that an op goes through stay as they
//! are, and the added waits follow the rules of order of the crate `order`, those of the default
//! streams included. Call sites are compared by stack and kernel
//! ([`detect::state::op_site::OpSite`]), which are the same in every pass over a trace.
//!
//! The files in the order of use: `waits` and `trial` are data that the analysis knows
//! ([`crate`], file `replanned`). `written` reads waits of a file. `records` are kept or
//! read again.

pub mod records;
pub mod trial;
pub mod waits;
pub mod written;
