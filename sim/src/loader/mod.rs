//! From the bytes that a program loads to the PTX text or the cubin in them.
//!
//! `fatbin` finds PTX in what was loaded, and links it where it was compiled separately.
//! `machine_code` finds what a device would run instead. Where that is to be skipped, `stand_in`
//! makes a text in its place. `program_images` says which device the program was built for, before
//! it loads anything. `ptx_limits` refuses numbers of a text. `readable` says how much of what a
//! program names is there.

pub(crate) mod fatbin;
pub(crate) mod machine_code;
pub(crate) mod program_images;
pub(crate) mod ptx_limits;
pub(crate) mod readable;
pub(crate) mod stand_in;
