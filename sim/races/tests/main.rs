//! The crate's tests as one program, a module for each file.

mod async_proxy;
mod flags;
mod histories;
mod launched_grids;
mod random;
mod script;
mod sources;
mod twins;
mod unwritten;
