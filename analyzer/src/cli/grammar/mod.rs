//! What packages take from the grammar: completions of shells, and manual pages.

pub(super) mod completions;
pub(super) mod man;
