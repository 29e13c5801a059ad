//! The crate's tests as one program, a module for each file.

mod async_proxy;
mod flags;
mod random;
mod script;
mod sources;
mod twins;
