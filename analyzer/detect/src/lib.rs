//! Detection: accesses in, races and findings out.
//!
//! Owns what a process has and does as far as races are concerned: `state` holds what ids stand for
//! and the happens-before order, `memory` the allocations and the accesses that can still race,
//! `launches` the way from a kernel launch to its bytes, `launch_memory` what repeated launches
//! save, `exact` measured bytes. The files of this folder own the accesses of each op, the
//! judgement of pairs, and everything else that the analysis reports: hints, faults, coverage. Does
//! not own the order ([`crate::state::happens_before`]) or the accesses that are remembered
//! ([`crate::memory`]).
//!
//! The files in the order of use: `accesses` turns an op into accesses and compares them,
//! `recording` notes where they went, `race` judges a pair and `confidence` its certainty,
//! `findings` de-duplicates races. `host_watch` and `early_free` find races that no access of an op
//! shows: of the host itself, and of blocks that a pool may hand out too early. `history` remembers
//! what a finding shows around it. `hints` and `faults` report what is no race. `coverage` counts
//! what the run could not see.
//!
//! `race` knows `confidence`. `accesses`, `early_free` and `history` know `race`, because they make
//! races or describe them. `accesses` drives `recording`. `findings` knows `race`, `confidence` and
//! `history`, which it keeps for the report.

#![warn(unreachable_pub)]
#![allow(rustdoc::private_intra_doc_links, reason = "the docs are for maintainers, who build them with private items")]

pub mod accesses;
pub mod confidence;
pub mod coverage;
pub mod early_free;
pub mod exact;
pub mod faults;
pub mod findings;
pub mod hint_kind;
pub mod hints;
pub mod history;
pub mod host_watch;
pub mod inside;
pub mod launch_memory;
pub mod launches;
pub mod memory;
pub mod race;
pub(crate) mod recording;
pub mod stale_graphs;
pub mod state;
pub mod superfluous;
