//! Reads do not race with reads. So plain reads of global memory that nobody has written in the
//! launch are put off: they go to a list, which does not look at bytes. Owns the list; `deferring`
//! has what goes there, and when it comes to the histories.

mod log;
mod pattern;

pub(crate) use log::{Deferred, Log};
