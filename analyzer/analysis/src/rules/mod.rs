//! Rules that a team holds itself to (`--forbid`): calls that are no race, and are not to be made.
//!
//! Owns three rules: nothing on the legacy default stream, no synchronisation of the host, no work
//! on a stream without a name. [`report::gate::forbidden`] is what a user writes, `waiting` says
//! which calls hold the host, `watch` looks at every op of a process, and `elaborate` makes report
//! data of what it has seen ([`report::breach`]). Rules look at the ops as the program made them:
//! what `--without` and `--default-stream` assume does not change them. Whether a broken rule fails
//! the run is up to [`report::gate`].

pub(crate) mod elaborate;
pub(crate) mod waiting;
pub(crate) mod watch;
