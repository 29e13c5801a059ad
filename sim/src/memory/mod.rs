//! Memory of the simulated GPU: the address space (`space`), giving out addresses (`arena`), and who owns what.

pub mod arena;
pub mod space;
