//! Exact mode: which bytes a launch really touches, found by patched instructions.
//!
//! Owns the way of one launch. On a simulated GPU the simulator tells ([`simulated`]). On a device
//! NVIDIA's Sanitizer API calls back while the driver takes the launch
//! ([`callbacks`]), and the kernel gets a table in device memory. The hook behind the launch
//! records an event ([`submitted`]). When that has fired the table is read, becomes an `Op::Exact`
//! and is used again ([`drain`]). Nothing of this is loaded or run without `exact` in the options.
//!
//! The program is not synchronised: results are read on a stream of our own, when a hook of the
//! program finds them finished. It is held back only while all tables are in use, and for two
//! seconds at most: a kernel may wait for something that the program has yet to do. Such launches
//! have no exact ranges; the analyzer uses their summaries.
//!
//! What must never happen: a patched kernel that runs with anything but a table or null as its user
//! data. So every launch and every kernel node of a graph is given one of the two, whatever else
//! goes wrong here.
//!
//! # Files, in the order of use
//!
//! [`setup`] loads NVIDIA's library ([`sanitizer_api`]) and makes the [`state`]. [`callbacks`]
//! patches code and passes launches to [`launch`] and [`graph_launch`], which ask [`glob`],
//! [`demand`] and [`settled`] whether to measure and [`table_pool`] for a table. [`readback`]
//! fetches the [`device_table`] and has its bits made into ranges by [`runs`]. `impl Exact` stands
//! in several of these files; [`state`] names the fields, and the two `launch` files and
//! [`readback`] know each other: a launch may have to wait for a table to be read.

mod callbacks;
mod demand;
mod device_table;
mod glob;
pub mod graph_launch;
mod launch;
mod readback;
mod run_patterns;
mod runs;
mod sanitizer_api;
mod settled;
mod setup;
mod simulated;
mod state;
mod table_pool;

pub use launch::{LaunchMeasurement, abandoned, apply_requests, launched, submitted};
pub use readback::drain;
pub use setup::prepare;
pub(crate) use simulated::array as simulated_array;
pub use simulated::graph_launch as simulated_graph_launch;
