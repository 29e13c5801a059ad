//! How many lanes a pack has.

/// Vectors of four lanes in a pack.
pub(in crate::interp::native) const PARTS: usize = 2;
/// Lanes of a pack.
pub(in crate::interp::native) const WIDTH: usize = 4 * PARTS;
/// A bit for each.
pub(in crate::interp::native) const FULL: u32 = (1 << WIDTH) - 1;
