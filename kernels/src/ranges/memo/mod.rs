//! Stage of the range analysis; see the head of `ranges`.

pub(crate) mod evaluation_cache;
pub(crate) mod replay;
