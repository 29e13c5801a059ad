//! What packages take from the grammar, completions of shells and manual pages, and what the build
//! says of itself.

pub(super) mod completions;
pub(super) mod man;
pub(super) mod version;
