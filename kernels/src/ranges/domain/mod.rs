//! Stage of the range analysis; see the head of `ranges`.

pub(crate) mod affine;
pub(crate) mod atom;
pub(crate) mod byte_set;
pub(crate) mod constraints;
pub(crate) mod int;
pub(crate) mod tape;
pub(crate) mod tape_arithmetic;
