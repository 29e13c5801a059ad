//! Loops: how often they run, and what they carry from one turn to the next.

mod carried_ranges;
pub(crate) mod recurrences;
mod trip_counts;
