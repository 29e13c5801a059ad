//! From the bytes that a program loads to the PTX text in them.
//!
//! `fatbin` finds PTX in what was loaded, and links it where it was compiled separately. Where
//! there is machine code only, `stand_in` makes a text in its place. `program_images` says which
//! device the program was built for, before it loads anything.

pub mod fatbin;
pub mod program_images;
pub mod stand_in;
