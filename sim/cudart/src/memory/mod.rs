//! Memory: allocations, pools, copies, arrays and textures, variables of the program.
//!
//! `copies` takes the size of a texel from `arrays_textures`; `symbols` makes its copies with
//! `copies`. The other files stand alone.

pub(crate) mod allocations;
pub(crate) mod arrays_textures;
pub(crate) mod copies;
pub(crate) mod pools;
pub(crate) mod symbols;
