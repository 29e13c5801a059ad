//! Waits and triggers of programmatic dependent launch from which a run gains nothing.
//!
//! Owns the question which kernels would do as well without their wait (`griddepcontrol.wait`), or
//! without their trigger (`griddepcontrol.launch_dependents`). When a kernel begins is known to the
//! order, and what it touches then to the analysis: a wait is judged by one more analysis in which
//! its kernel never waits. So chains of kernels are judged, too, in which one kernel's wait lets a
//! later one begin behind what came before.
//!
//! A wait is listed only if nothing at all races without it and without the other listed ones, not
//! even possibly, and if the bytes of all kernels on its streams are known. A trigger orders
//! nothing. It is listed if no launch of the run could begin at it, or if nothing is left to do
//! behind it.

use crate::Analysis;
use crate::counterfactual::trial::Trial;
use crate::counterfactual::trial::records::Records;
use detect::coverage::KernelCoverage;
use order::has_programmatic_launches;
use report::escape::harmless;
use report::words::counted;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use trace::launch_flags::{INSIDE_LIBRARY, PARAMS_UNKNOWN, PROGRAMMATIC_SERIALIZATION};
use trace::{EventMode, GraphExecId, KernelId, Op, Record, StreamId};

/// The port of an edge behind a trigger: see [`trace::Dependency`].
const TRIGGER: u32 = 1;

/// Analyses of the trace that are made for waits.
const TRIALS: usize = 16;

/// What a kernel does that gains nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Superfluous {
    /// It waits: nothing that it may then begin beside conflicts with anything.
    Wait,
    /// It triggers, and no launch or node of the run could begin at that.
    Trigger,
    /// It triggers when its blocks have nothing left to do.
    LastTrigger,
}

impl Superfluous {
    /// The word in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Wait => "wait-orders-nothing",
            Self::Trigger => "trigger-without-dependent",
            Self::LastTrigger => "trigger-at-the-end",
        }
    }

    /// What there is to say of it.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::Wait => "its wait orders nothing: nothing that could run beside it then conflicts",
            Self::Trigger => "its trigger lets nothing begin: no launch that may overlap it follows",
            Self::LastTrigger => "its trigger gains little: its blocks have nothing left to do but to end",
        }
    }
}

/// A kernel with such a wait or trigger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dependent {
    /// The kernel.
    pub kernel: String,
    /// What gains nothing.
    pub superfluous: Superfluous,
    /// Its places, `file:line`, as far as they are known.
    pub at: Vec<String>,
    /// How often the kernel was launched, nodes of graphs apart.
    pub launches: u64,
}

/// Kernels that are launched one after the other: on a stream, or in a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Chain {
    Stream(StreamId),
    Graph(GraphExecId),
}

/// What a trace says of launches that may overlap those before them.
#[derive(Default)]
struct Uses {
    launches: FxHashMap<KernelId, u64>,
    /// By kernel: one of its chains.
    places: BTreeMap<KernelId, Chain>,
    chains: FxHashMap<Chain, FxHashSet<KernelId>>,
    /// Those in which the bytes of some launch are told by nothing.
    opaque: FxHashSet<Chain>,
    /// The kernels that may begin before those in front of them have ended: where.
    overlapping: BTreeMap<KernelId, FxHashSet<Chain>>,
    /// The kernels at whose trigger something may begin.
    opening: FxHashSet<KernelId>,
    last: FxHashMap<StreamId, KernelId>,
    /// The kernels that each node was.
    nodes: FxHashMap<(GraphExecId, u32), Vec<KernelId>>,
    /// The nodes at whose trigger others may begin.
    ports: FxHashSet<(GraphExecId, u32)>,
}

impl Uses {
    fn take(&mut self, op: &Op<'_>, arch: impl Fn(StreamId) -> Option<u32>) {
        match *op {
            Op::Launch { stream, kernel, shape, .. } => {
                *self.launches.entry(kernel).or_default() += 1;
                self.launched(kernel, Chain::Stream(stream), shape.flags);
                let before = self.last.insert(stream, kernel);
                if shape.flags & PROGRAMMATIC_SERIALIZATION != 0 && has_programmatic_launches(arch(stream)) {
                    self.overlapping.entry(kernel).or_default().insert(Chain::Stream(stream));
                    self.opening.extend(before);
                }
            }
            // A kernel may fire an event when it triggers.
            Op::EventRecord { stream, mode: EventMode::Programmatic, .. } => {
                self.opening.extend(self.last.get(&stream));
            }
            Op::GraphNode { exec, index, ref dependencies, tag, body, .. } => {
                let early = || dependencies.iter().filter(|d| d.port != 0);
                // (Behind the start of its blocks no trigger of theirs counts.)
                let triggered = early().filter(|d| d.port == TRIGGER);
                self.ports.extend(triggered.map(|d| (exec, d.from)));
                let chain = Chain::Graph(exec);
                match Op::decode(tag, body) {
                    Ok(Op::Launch { kernel, shape, .. }) => {
                        self.launched(kernel, chain, shape.flags);
                        self.nodes.entry((exec, index)).or_default().push(kernel);
                        if early().next().is_some() && has_programmatic_launches(arch(StreamId::NONE)) {
                            self.overlapping.entry(kernel).or_default().insert(chain);
                        }
                    }
                    Ok(_) => {}
                    Err(_) => drop(self.opaque.insert(chain)),
                }
            }
            _ => {}
        }
    }

    fn launched(&mut self, kernel: KernelId, chain: Chain, flags: u32) {
        self.places.entry(kernel).or_insert(chain);
        self.chains.entry(chain).or_default().insert(kernel);
        if flags & (INSIDE_LIBRARY | PARAMS_UNKNOWN) != 0 {
            self.opaque.insert(chain);
        }
    }

    fn end(&mut self) {
        let opening = self.ports.iter().filter_map(|node| self.nodes.get(node)).flatten();
        self.opening.extend(opening);
    }

    /// Whether the bytes of all kernels are known that a kernel could run beside.
    fn is_known(&self, kernel: KernelId, unknown: &FxHashSet<KernelId>) -> bool {
        let mut chains = self.overlapping.get(&kernel).into_iter().flatten();
        chains.all(|chain| {
            let known = self.chains.get(chain).is_some_and(|kernels| kernels.is_disjoint(unknown));
            known && !self.opaque.contains(chain)
        })
    }
}

/// The waits and triggers that gain nothing. `is_silent`: the run has no findings, and all of it
/// was seen. Second: what was not judged, as sentences. `None`: not all records can be had.
pub(super) fn find(
    first: &mut Analysis,
    records: &mut dyn Records,
    is_silent: bool,
) -> Option<(Vec<Dependent>, Vec<String>)> {
    let mut uses = Uses::default();
    let read = records.each(&mut |bytes| {
        if let Ok(record) = Record::decode(bytes) {
            uses.take(&record.op, |stream| first.facts.arch(&first.pass.state.streams, stream));
        }
    });
    if !read {
        return None;
    }
    uses.end();
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    // Where no launch may overlap another one, neither waits nor triggers do anything.
    if uses.overlapping.is_empty() {
        return Some((found, notes));
    }
    let (waits, unjudged) = waits(first, records, &uses, is_silent)?;
    if unjudged > 0 {
        let kernels = counted(unjudged, "kernel", "kernels");
        let why = match is_silent {
            true => "the bytes of other work on their streams are not all known, or they are too many",
            false => "this run has findings, or not all of it was seen",
        };
        notes.push(format!("the waits of {kernels} for the kernels in front were not judged: {why}"));
    }
    for function in functions(first, uses.places.keys()) {
        let is_opening = function.iter().any(|kernel| uses.opening.contains(kernel));
        let code = &first.facts.code;
        let has_triggers = function.iter().any(|kernel| !code.triggers_at(*kernel).is_empty());
        let is_last = function.iter().all(|kernel| code.triggers_last(*kernel));
        if function.iter().any(|kernel| waits.contains(kernel)) {
            found.push(dependent(first, &uses, &function, Superfluous::Wait));
        }
        match (has_triggers, is_opening, is_last) {
            (true, false, _) => found.push(dependent(first, &uses, &function, Superfluous::Trigger)),
            (true, true, true) => found.push(dependent(first, &uses, &function, Superfluous::LastTrigger)),
            _ => {}
        }
    }
    found.sort_by(|a, b| (a.superfluous, &a.kernel).cmp(&(b.superfluous, &b.kernel)));
    Some((found, notes))
}

/// The kernels that could do without their waits, all at once. Second: how many were not judged.
fn waits(
    first: &mut Analysis,
    records: &mut dyn Records,
    uses: &Uses,
    is_silent: bool,
) -> Option<(FxHashSet<KernelId>, u64)> {
    let partly = |known: &KernelCoverage| known.ranges < known.launches || known.indirect > 0;
    let kernels = first.pass.state.kernels.iter();
    let unknown: FxHashSet<KernelId> = kernels.filter(|(_, known)| partly(known)).map(|(kernel, _)| *kernel).collect();
    let mut candidates = functions(first, uses.overlapping.keys());
    candidates.retain(|function| function.iter().any(|kernel| waits_in(first, uses, *kernel)));
    let all = candidates.len();
    candidates.retain(|function| is_silent && function.iter().all(|kernel| uses.is_known(*kernel, &unknown)));
    candidates.truncate(TRIALS);
    let unjudged = (all - candidates.len()) as u64;
    let mut superfluous = FxHashSet::default();
    if candidates.is_empty() {
        return Some((superfluous, unjudged));
    }
    // Mostly all waits are needed, or none.
    let everything: FxHashSet<KernelId> = candidates.iter().flatten().copied().collect();
    if candidates.len() > 1 && is_silent_without(first, records, &everything)? {
        return Some((everything, unjudged));
    }
    for function in candidates {
        superfluous.extend(&function);
        if !is_silent_without(first, records, &superfluous)? {
            superfluous.retain(|kernel| !function.contains(kernel));
        }
    }
    Some((superfluous, unjudged))
}

/// Kernels that are one function, loaded several times or on several devices.
fn functions<'k>(first: &Analysis, kernels: impl Iterator<Item = &'k KernelId>) -> Vec<Vec<KernelId>> {
    let mut by_name: BTreeMap<&str, Vec<KernelId>> = BTreeMap::new();
    for &kernel in kernels {
        let name = first.facts.names.kernel(kernel).map_or("", |def| &def.name);
        by_name.entry(name).or_default().push(kernel);
    }
    by_name.into_values().collect()
}

/// Whether a kernel waits, and its code says where.
fn waits_in(first: &mut Analysis, uses: &Uses, kernel: KernelId) -> bool {
    let arch = uses.places.get(&kernel).and_then(|chain| arch(first, *chain));
    let facts = &mut first.facts;
    facts.code.dependence(kernel, facts.names.kernel(kernel), arch).waits && !facts.code.waits(kernel).is_empty()
}

/// Whether nothing races if these kernels do not wait. `None`: not all records can be had.
fn is_silent_without(first: &mut Analysis, records: &mut dyn Records, kernels: &FxHashSet<KernelId>) -> Option<bool> {
    let mut trial = Trial::without_grid_waits(first, kernels.clone());
    let read = records.each(&mut |bytes| trial.feed_encoded(bytes));
    let is_silent = trial.ends_silent();
    read.then_some(is_silent)
}

/// The compute capability where a chain runs.
fn arch(first: &Analysis, chain: Chain) -> Option<u32> {
    let stream = match chain {
        Chain::Stream(stream) => stream,
        Chain::Graph(_) => StreamId::NONE,
    };
    first.facts.arch(&first.pass.state.streams, stream)
}

fn dependent(first: &mut Analysis, uses: &Uses, function: &[KernelId], superfluous: Superfluous) -> Dependent {
    let mut at = Vec::new();
    for kernel in function {
        let arch = uses.places.get(kernel).and_then(|chain| arch(first, *chain));
        let facts = &mut first.facts;
        let Some((def, arch)) = facts.names.kernel(*kernel).zip(arch) else { continue };
        let places = match superfluous {
            Superfluous::Wait => facts.code.waits(*kernel),
            _ => facts.code.triggers_at(*kernel),
        };
        let lines = places.into_iter().filter_map(|at| facts.code.outer_line(def, arch, at));
        at.extend(lines.map(|(file, line)| {
            harmless(&format!("{}:{line}", file.rsplit('/').next().unwrap_or_default())).into_owned()
        }));
    }
    at.sort();
    at.dedup();
    let name = function.first().map_or_else(String::new, |kernel| first.elaborator().kernel_name(*kernel));
    let launches = function.iter().filter_map(|kernel| uses.launches.get(kernel)).sum();
    Dependent { kernel: harmless(&name).into_owned(), superfluous, at, launches }
}
