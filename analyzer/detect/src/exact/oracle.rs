//! The comparisons of a whole run: how well the launches of each kernel were predicted, with
//! examples.
//!
//! Owns the file that `--exact-compare` writes. Its fields are for people who work on the analysis.
//! They are not a contract.

use super::compare::{Comparison, PredictionVerdict};
use super::measured::kind;
use crate::exact::byte_set::ByteSet;
use crate::launches::effects::{Effect, EffectBase, EffectExtent, Evaluated, Launch};
use crate::memory::AccessKind;
use kernels::{Loss, LossRole, Reason};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use trace::ExactRun;

/// Maximum number of examples of one verdict for a kernel.
const EXAMPLES: usize = 3;

/// Maximum number of ranges printed of an example.
const RANGES: usize = 16;

/// The comparisons of one kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Kernel {
    counts: BTreeMap<PredictionVerdict, u64>,
    reasons: BTreeMap<WhyNotTight, u64>,
    examples: Vec<(PredictionVerdict, Value)>,
}

/// Why a launch is not predicted to the byte.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct WhyNotTight {
    verdict: PredictionVerdict,
    /// Data decides about some access, so no launch tells its bytes.
    data: bool,
    /// What the accesses that are not exact lost, in words.
    words: String,
}

impl WhyNotTight {
    fn of(verdict: PredictionVerdict, known: &Evaluated, loss: impl Fn(&Effect) -> Option<Loss>) -> WhyNotTight {
        let (mut data, mut words) = (false, BTreeSet::new());
        for effect in &known.effects {
            if matches!(effect.bytes, EffectExtent::Bounded { exact: true, .. }) {
                continue;
            }
            let (role, reason) = match (effect.why, loss(effect)) {
                (Some(why), _) => ("open", Some(why)),
                (None, Some(Loss { role: LossRole::Address, reason, .. })) => ("address", Some(reason)),
                (None, Some(Loss { role: LossRole::Condition, reason, .. })) => ("condition", Some(reason)),
                (None, Some(Loss { role: LossRole::Iterations, reason, .. })) => ("loop count", Some(reason)),
                (None, None) => ("pattern", None),
            };
            data |= reason.is_some_and(Reason::is_data);
            words.insert(format!("{role}: {}", reason.map_or("no progression", Reason::words)));
        }
        WhyNotTight { verdict, data, words: words.into_iter().collect::<Vec<_>>().join("; ") }
    }
}

/// All comparisons of one process or of a whole run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Oracle {
    kernels: BTreeMap<String, Kernel>,
}

impl Oracle {
    /// Counts a comparison. `loss`: what keeps an effect from being exact.
    pub fn add(
        &mut self,
        name: &str,
        launch: &Launch<'_>,
        known: &Evaluated,
        runs: &[ExactRun],
        c: &Comparison,
        loss: impl Fn(&Effect) -> Option<Loss>,
    ) {
        let kernel = self.kernels.entry(name.to_string()).or_default();
        *kernel.counts.entry(c.verdict).or_default() += 1;
        if matches!(c.verdict, PredictionVerdict::Open | PredictionVerdict::ByData | PredictionVerdict::Loose) {
            *kernel.reasons.entry(WhyNotTight::of(c.verdict, known, loss)).or_default() += 1;
        }
        let have = kernel.examples.iter().filter(|e| e.0 == c.verdict).count();
        let wanted = match c.verdict {
            PredictionVerdict::Unsound | PredictionVerdict::Overclaimed => EXAMPLES,
            PredictionVerdict::Open | PredictionVerdict::ByData | PredictionVerdict::Loose => 1,
            PredictionVerdict::NoCode | PredictionVerdict::Tight => 0,
        };
        if have < wanted {
            kernel.examples.push((c.verdict, example(launch, known, runs, c)));
        }
    }

    /// Adds the comparisons of another process.
    pub fn merge(&mut self, other: Self) {
        for (name, from) in other.kernels {
            let kernel = self.kernels.entry(name).or_default();
            for (verdict, count) in from.counts {
                *kernel.counts.entry(verdict).or_default() += count;
            }
            for (why, count) in from.reasons {
                *kernel.reasons.entry(why).or_default() += count;
            }
            kernel.examples.extend(from.examples);
        }
    }

    /// Launches of each verdict.
    pub fn counts(&self) -> BTreeMap<PredictionVerdict, u64> {
        let mut counts = BTreeMap::new();
        for (verdict, count) in self.kernels.values().flat_map(|k| &k.counts) {
            *counts.entry(*verdict).or_default() += count;
        }
        counts
    }

    /// Writes the file and prints the summary line. False when it could not be written; the error
    /// was printed.
    pub fn write(&self, path: &system::file_name::FileName) -> bool {
        let mut bytes = serde_json::to_vec_pretty(&self.json()).unwrap_or_default();
        bytes.push(b'\n');
        let written = system::output::write(path, &bytes);
        match &written {
            Ok(()) => eprintln!("{}", self.line()),
            Err(error) => system::say!("{path} can not be written: {error}"),
        }
        written.is_ok()
    }

    /// The summary line for people.
    pub fn line(&self) -> String {
        let counts = self.counts();
        let total: u64 = counts.values().sum();
        let each: Vec<String> = counts.iter().rev().map(|(verdict, n)| format!("{n} {}", verdict.name())).collect();
        format!("streamsan: EXACT: {total} launches compared with what was predicted: {}", each.join(", "))
    }

    /// The whole file.
    pub fn json(&self) -> Value {
        let named = |counts: &BTreeMap<PredictionVerdict, u64>| -> BTreeMap<&str, u64> {
            counts.iter().map(|(verdict, n)| (verdict.name(), *n)).collect()
        };
        let mut kernels: Vec<_> = self.kernels.iter().collect();
        kernels.sort_by_key(|(_, k)| k.counts.keys().next().copied());
        let kernels: Vec<Value> = kernels
            .into_iter()
            .map(|(name, k)| {
                let examples: Vec<&Value> = k.examples.iter().map(|e| &e.1).collect();
                let reasons: Vec<Value> = k.reasons.iter().map(reason).collect();
                json!({ "kernel": name, "counts": named(&k.counts), "reasons": reasons, "examples": examples })
            })
            .collect();
        json!({ "version": 1, "counts": named(&self.counts()), "kernels": kernels })
    }
}

fn reason((why, count): (&WhyNotTight, &u64)) -> Value {
    json!({ "verdict": why.verdict.name(), "data": why.data, "words": why.words, "launches": count })
}

fn example(launch: &Launch<'_>, known: &Evaluated, runs: &[ExactRun], c: &Comparison) -> Value {
    let mut params = String::with_capacity(launch.params.len() * 2);
    launch.params.iter().for_each(|byte| params.push_str(&format!("{byte:02x}")));
    let missing: Vec<Value> = c
        .missing
        .iter()
        .map(|(k, set)| json!({ "kind": name(*k), "bytes": set.len(), "ranges": ranges(set) }))
        .collect();
    let claimed: Vec<Value> = c
        .claimed
        .iter()
        .map(|(at, k, set)| json!({ "at": at, "kind": name(*k), "bytes": set.len(), "ranges": ranges(set) }))
        .collect();
    json!({
        "verdict": c.verdict.name(),
        "grid": launch.shape.grid,
        "block": launch.shape.block,
        "cluster": launch.shape.cluster,
        "shared": launch.shape.shared,
        "params": params,
        "touched_bytes": c.touched,
        "predicted_bytes": c.predicted,
        "missing": missing,
        "claimed_but_not_touched": claimed,
        "predicted": known.effects.iter().take(4 * RANGES).map(predicted).collect::<Vec<_>>(),
        "touched": runs.iter().take(RANGES).map(touched).collect::<Vec<_>>(),
        "touched_runs": runs.len(),
    })
}

fn name(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::Atomic => "atomic",
        AccessKind::AtomicRead => "atomic read",
        AccessKind::AtomicWrite => "atomic write",
    }
}

fn ranges(set: &ByteSet) -> Vec<String> {
    set.spans().iter().take(RANGES).map(|(from, to)| format!("{from:#x}+{}", to - from)).collect()
}

fn touched(run: &ExactRun) -> String {
    let gaps = if run.count > 1 { format!(" {} times every {}", run.count, run.stride) } else { String::new() };
    let bound = if run.kind & trace::exact_kind::BOUND != 0 { " (some)" } else { "" };
    format!("{} {:#x}+{}{gaps}{bound}", name(kind(run)), run.start, run.width)
}

fn predicted(effect: &Effect) -> String {
    let base = match &effect.base {
        EffectBase::Param(offset, value) => format!("param {offset} = {value:#x}"),
        EffectBase::Maybe(offset, value) => format!("param {offset} = {value:#x} (perhaps)"),
        EffectBase::Tensor(offset, value) => format!("tensor map at {offset}: {value:#x}"),
        EffectBase::MapInMemory(map) => match &map.base {
            EffectBase::Global(name) => format!("tensor map at {} in variable {name}", map.at),
            _ => "tensor map in memory".to_string(),
        },
        EffectBase::Global(name) => format!("variable {name}"),
        EffectBase::Handle(offset, value) => format!("texture or surface {offset} = {value:#x}"),
        EffectBase::SomeHandle(_) | EffectBase::Object => "some texture, surface or tensor".to_string(),
        EffectBase::Absolute(value) => format!("{value:#x}"),
        EffectBase::PointerTable(t) => format!("{} addresses in the table at {:#x}", t.count, t.first),
        EffectBase::VariableTable(t) => format!("{} addresses in variable {} at {:#x}", t.count, t.name, t.first),
        EffectBase::Unknown => "an address from memory".to_string(),
    };
    let bytes = match &effect.bytes {
        EffectExtent::Bounded { lo, hi, width, dims, exact } => {
            let gaps: String = dims.iter().map(|d| format!(" {} times every {}", d.count, d.stride)).collect();
            format!("{} {lo:#x}..{hi:#x} by {width}{gaps}", if *exact { "exactly" } else { "within" })
        }
        EffectExtent::Pieces { origin, pieces, .. } => format!("{} pieces from {origin:#x} on", pieces.spans().len()),
        EffectExtent::Among { lo, hi } => format!("among {lo:#x}..{hi:#x}"),
        EffectExtent::Unknown => format!("unknown: {}", effect.why.map_or("", kernels::Reason::words)),
        EffectExtent::Scattered => "scattered by data".to_string(),
    };
    format!("at {:#x}: {} {base}: {bytes}", effect.at, name(effect.kind))
}
