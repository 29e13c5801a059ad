//! Which races are found, and which orders are known.

mod batch_sources;
mod conditional_bodies;
mod descriptors;
mod early_values;
pub mod exact;
mod flag_polls;
mod graph_events;
mod graph_functions;
mod host_order;
mod host_syncs;
mod in_place;
mod instrumented;
mod ipc;
mod messages;
mod mip_levels;
mod mpi;
mod mpi_library;
mod open_waits;
mod picked_bytes;
mod polled_flags;
mod programmatic;
mod progress_words;
mod proxy_fences;
mod random;
mod recursion;
mod stale_graphs;
mod update_scopes;
