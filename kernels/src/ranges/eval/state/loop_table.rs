//! What an evaluation knows of loops.
//!
//! Owns the iteration counters, and what was found out about values that loops carry round.
//! `eval/trip_counts.rs` and `eval/carried_ranges.rs` fill the tables.

use crate::ranges::domain::affine::AtomId;
use crate::ranges::domain::int::Int;
use crate::ranges::graph::node::NodeId;
use rustc_hash::FxHashMap;

/// How far a loop's trip count is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LoopState {
    New,
    Solving,
    Done,
}

/// All loops of a kernel, by number.
pub(crate) struct LoopTable {
    pub(crate) states: Vec<LoopState>,
    /// The iteration counter of each loop.
    pub(crate) counters: Vec<Option<AtomId>>,
    /// Loops whose conditions are captured in full by the bounds of their counter.
    pub(crate) exact_trip: Vec<bool>,
    /// What `carried_ranges` found out.
    pub(crate) carried: CarriedRanges,
}

impl LoopTable {
    pub(crate) fn new(loops: usize) -> LoopTable {
        LoopTable {
            states: vec![LoopState::New; loops],
            counters: vec![None; loops],
            exact_trip: vec![false; loops],
            carried: CarriedRanges::default(),
        }
    }
}

/// What is known of a value that a loop carries round.
#[derive(Clone, Copy)]
pub(crate) enum Carried {
    /// It is what it was before the loop.
    Same,
    /// It is a number within these bounds.
    Within(Int, Int),
    Nothing,
}

/// What was found out about values that loops carry round.
#[derive(Default)]
pub(crate) struct CarriedRanges {
    pub(crate) known: FxHashMap<NodeId, Carried>,
    pub(crate) failures: FxHashMap<NodeId, u8>,
    /// How often a 64-bit value was not known when its half was asked for.
    pub(crate) unknown_wholes: FxHashMap<NodeId, u8>,
    /// Phis that are being tried.
    pub(crate) busy: Vec<NodeId>,
    pub(crate) turns: u32,
}
