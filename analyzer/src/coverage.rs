//! What the run could see and what it could not: the numbers behind the coverage line.
//!
//! Owns counters only. Blind spots are stated, never hidden.

use std::collections::BTreeMap;

/// Counters of one process or of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Ops of the trace.
    pub ops: u64,
    /// Copies, fills and other memory operations (their ranges are always exact).
    pub memory_ops: u64,
    /// Kernel launches, nodes of graph launches included.
    pub launches: u64,
    /// Launches of which every access has exact bytes, or at least an upper bound.
    pub launches_exact: u64,
    /// Launches of which reads and writes are told apart, but some extent is unknown.
    pub launches_kinds_only: u64,
    /// Launches of which nothing is known: each pointer among the parameters is taken to be read and written.
    pub launches_unknown: u64,
    /// Launches with accesses through addresses that come out of memory; those accesses are not checked.
    pub launches_indirect: u64,
    /// Accesses of kernels at addresses in no known allocation.
    pub unknown_memory: u64,
    /// Accesses forgotten for lack of room.
    pub forgotten: u64,
    /// Graph launches.
    pub graph_launches: u64,
    /// Findings at more places than are kept.
    pub findings_dropped: u64,
    /// Calls whose effect is not modelled, with counts.
    pub not_modelled: BTreeMap<String, u64>,
    /// What the shim could not observe, with counts.
    pub unobserved: BTreeMap<String, u64>,
    /// Why kernels are not known, with the number of launches.
    pub reasons: BTreeMap<String, u64>,
    /// The shim switched itself off.
    pub disabled: Vec<String>,
    /// Records that could not be read.
    pub damaged: u64,
}

impl Coverage {
    /// Adds the numbers of another process.
    pub fn merge(&mut self, other: &Self) {
        self.ops += other.ops;
        self.memory_ops += other.memory_ops;
        self.launches += other.launches;
        self.launches_exact += other.launches_exact;
        self.launches_kinds_only += other.launches_kinds_only;
        self.launches_unknown += other.launches_unknown;
        self.launches_indirect += other.launches_indirect;
        self.unknown_memory += other.unknown_memory;
        self.forgotten += other.forgotten;
        self.graph_launches += other.graph_launches;
        self.findings_dropped += other.findings_dropped;
        self.damaged += other.damaged;
        for (into, from) in [
            (&mut self.not_modelled, &other.not_modelled),
            (&mut self.unobserved, &other.unobserved),
            (&mut self.reasons, &other.reasons),
        ] {
            for (name, count) in from {
                *into.entry(name.clone()).or_default() += count;
            }
        }
        self.disabled.extend(other.disabled.iter().cloned());
    }

    /// Counts a launch of which nothing is known.
    pub fn launch_unknown(&mut self, reason: &str) {
        self.launches_unknown += 1;
        match self.reasons.get_mut(reason) {
            Some(count) => *count += 1,
            None => drop(self.reasons.insert(reason.to_string(), 1)),
        }
    }

    /// Whether the program did anything on a GPU that could be checked.
    pub fn any_work(&self) -> bool {
        self.memory_ops + self.launches > 0
    }
}
