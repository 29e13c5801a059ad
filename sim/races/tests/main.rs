//! The crate's tests as one program, a module for each file.

mod async_proxy;
mod copies;
mod deferred;
mod flags;
mod histories;
mod launched_grids;
mod lines;
mod lives;
mod products;
mod random;
mod reductions;
mod schedules;
mod script;
mod sources;
mod superfluous;
mod twins;
mod unwritten;
