//! Device code as compilers write it: containers, machine code, PTX, line tables and tensor maps.
//!
//! Owns the formats. It says what a file holds; what a kernel does is the business of the crates
//! `kernels` (which bytes it touches) and `sim` (executes it).
//!
//! - [`image`]: fatbins, cubins (ELF) and host programs that hold them; [`arch`]: the names of
//!   architectures, and which code runs on which.
//! - [`sass`] decodes machine code, [`ptx`] parses PTX.
//! - [`line_table`]: source lines of machine code. [`tensor_map`]: the bytes of a `CUtensorMap`.
//!
//! Input is hostile: whatever the bytes, a function answers with a value or an error, in time and
//! memory that the size of the input bounds.

#![warn(unreachable_pub)]

pub mod arch;
pub mod image;
pub mod line_table;
pub mod ptx;
pub mod sass;
pub mod tensor_map;
