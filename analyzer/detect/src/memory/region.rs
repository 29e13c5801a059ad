//! The region of the program that an access is in, as a number.
//!
//! Owns the number alone. Which regions there are, and how they are nested, is
//! [`crate::state::regions`].

/// A region with all regions around it; 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Region(pub(crate) u32);
