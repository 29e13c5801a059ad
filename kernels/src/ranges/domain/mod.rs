//! Stage of the range analysis; see the head of `ranges`.

pub(crate) mod affine;
pub(crate) mod int;
pub(crate) mod tape;
pub(crate) mod tape_arithmetic;
