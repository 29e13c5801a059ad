//! Files of a program: as the dynamic linker has loaded them (`loaded`), and as they are on disk
//! (`elf`), where symbols stand that are not loaded.

pub(crate) mod elf;
pub(crate) mod loaded;
