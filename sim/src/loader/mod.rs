//! From the bytes that a program loads to the PTX text in them.
//!
//! `fatbin` finds PTX in what was loaded. Where there is machine code only, `stand_in` makes a text
//! in its place. `ptx_link` joins several texts for the driver's linker. `program_images` says
//! which device the program was built for, before it loads anything. The files do not know each
//! other.

pub mod fatbin;
pub mod program_images;
pub mod ptx_link;
pub mod stand_in;
