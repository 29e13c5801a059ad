//! The synchronisations of a process with their verdicts, as plain data.
//!
//! Owns the data and its JSON. [`super::text`] and [`super::page`] print it.

use crate::counterfactual::excess::dependents::Dependent;
use serde_json::{Value, json};

/// What a synchronisation is needed for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SyncVerdict {
    /// Without it something races.
    Needed,
    /// Without it there is no such graph: it brings a stream into a capture, or joins it.
    Capture,
    /// Without it the host may use memory too early, if it uses it.
    Host,
    /// Without it work is unordered whose bytes are not known.
    Unknown,
    /// It can go, and so can others, but not all of them.
    Together,
    /// It orders nothing that is not ordered otherwise in this run.
    Nothing,
    /// The same, but a library makes it inside a call of its own.
    Library,
}

impl SyncVerdict {
    /// All, in the order in which they are printed.
    pub(crate) const ALL: [Self; 7] =
        [Self::Nothing, Self::Together, Self::Unknown, Self::Host, Self::Capture, Self::Library, Self::Needed];

    /// The word in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Needed => "needed",
            Self::Capture => "capture",
            Self::Host => "host",
            Self::Unknown => "unknown",
            Self::Together => "together",
            Self::Nothing => "nothing",
            Self::Library => "library",
        }
    }
}

/// One side of a pair.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct End {
    /// The op: `kernel scale(float*, int)`, `a copy`.
    pub(crate) what: String,
    /// `file:line`; empty when it is not known.
    pub at: String,
    /// The stream.
    pub stream: String,
}

/// Two ops that a synchronisation orders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderedPair {
    /// The earlier op.
    pub first: End,
    /// The later one; of a need of the host nothing is known of it.
    pub then: Option<End>,
    /// `read-after-write` and so on; `host-reads`, `host-writes`, `unknown`, `not-captured`,
    /// `unjoined`.
    pub why: &'static str,
}

/// One synchronisation site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The function that was called.
    pub call: String,
    /// The kind, as `--without` takes it.
    pub kind: &'static str,
    /// `file:line`; empty when it is not known.
    pub at: String,
    /// The call stack, innermost first.
    pub(crate) stack: Vec<String>,
    /// How often it was made.
    pub count: u64,
    /// The verdict.
    pub verdict: SyncVerdict,
    /// One pair that would not be ordered without it, the clearest.
    pub pair: Option<OrderedPair>,
    /// How many such pairs were found; of several with one timeline the last counts.
    pub(crate) pairs: u64,
    /// Kernels whose bytes are not all known and that make the verdict unknown.
    pub kernels: Vec<String>,
    /// The other sites of a set that can not go as a whole, by number.
    pub partners: Vec<usize>,
    /// Whether it is in the largest set that can go.
    pub can_go: bool,
}

/// The synchronisations of one process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// The process.
    pub(crate) process: String,
    /// Its number.
    pub(crate) pid: u32,
    /// The sites, as they came.
    pub sites: Vec<Listed>,
    /// Ops that were looked at.
    pub(crate) ops: u64,
    /// Findings of the run as it is. Their pairs say nothing of a synchronisation.
    pub findings: u64,
    /// Whether all sets of sites were searched.
    pub is_complete: bool,
    /// Waits and triggers of kernels that gain nothing.
    pub dependents: Vec<Dependent>,
    /// What makes verdicts less than certain, as sentences.
    pub notes: Vec<String>,
}

impl Listing {
    /// The sites of a verdict, with their numbers.
    pub(crate) fn of(&self, verdict: SyncVerdict) -> impl Iterator<Item = (usize, &Listed)> {
        self.sites.iter().enumerate().filter(move |(_, site)| site.verdict == verdict)
    }

    /// The data of all processes.
    pub fn json(all: &[Self], program: &str) -> Value {
        let end = |end: &End| json!({ "what": end.what, "at": end.at, "stream": end.stream });
        let site = |(number, site): (usize, &Listed)| {
            json!({
                "number": number + 1,
                "call": site.call,
                "kind": site.kind,
                "at": site.at,
                "stack": site.stack,
                "count": site.count,
                "verdict": site.verdict.word(),
                "can_go": site.can_go,
                "pairs": site.pairs,
                "pair": site.pair.as_ref().map(|pair| json!({
                    "first": end(&pair.first),
                    "then": pair.then.as_ref().map(end),
                    "why": pair.why,
                })),
                "kernels": site.kernels,
                "together_with": site.partners.iter().map(|at| at + 1).collect::<Vec<_>>(),
            })
        };
        let dependent = |dependent: &Dependent| {
            json!({
                "kernel": dependent.kernel,
                "what": dependent.superfluous.word(),
                "at": dependent.at,
                "launches": dependent.launches,
            })
        };
        let process = |process: &Self| {
            json!({
                "process": process.process,
                "pid": process.pid,
                "ops": process.ops,
                "findings": process.findings,
                "complete": process.is_complete,
                "notes": process.notes,
                "dependents": process.dependents.iter().map(dependent).collect::<Vec<_>>(),
                "sites": process.sites.iter().enumerate().map(site).collect::<Vec<_>>(),
            })
        };
        json!({ "trace": program, "processes": all.iter().map(process).collect::<Vec<_>>() })
    }
}
