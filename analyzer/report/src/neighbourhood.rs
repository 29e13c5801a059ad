//! The neighbourhood of a race as reports show it: lanes, steps, and the waits between them.
//!
//! Owns their names, and which waits are drawn. [`detect::history`] remembers the steps.

use crate::elaborate::{Elaborator, called};
use crate::model::StreamName;
use crate::words::{Operation, StepRole};
use detect::history::{After, Around, HistoryEntry, What};
use detect::state::streams::Stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use trace::{StreamId, StreamKind};

/// One step of a lane.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// Index of its lane.
    pub(crate) lane: usize,
    /// What it does.
    pub(crate) operation: Operation,
    /// Name of the kernel, or of the operation.
    pub(crate) label: String,
    /// `file:line`, or the function; empty when unknown.
    pub(crate) at: String,
    /// The source line's text.
    pub(crate) source: String,
    /// Which side of the race it is.
    pub(crate) role: StepRole,
    /// Indices of the steps on other lanes that it waits for.
    pub(crate) after: Vec<usize>,
    /// Steps of the lane between the one shown before and this one; `None` when that is not known.
    pub(crate) skipped: Option<u64>,
}

/// The ops shown around a race. Steps are in the order of submission.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Scene {
    /// The streams, and the host where it takes part.
    pub(crate) lanes: Vec<StreamName>,
    /// The steps.
    pub(crate) steps: Vec<Shown>,
}

impl Scene {
    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        let lane = |l: &StreamName| json!({ "id": l.id, "kind": l.kind, "name": l.long });
        let step = |s: &Shown| {
            json!({
                "lane": s.lane, "operation": s.operation, "label": s.label, "at": s.at, "source": s.source,
                "role": s.role, "after": s.after, "skipped": s.skipped,
            })
        };
        json!({
            "lanes": self.lanes.iter().map(lane).collect::<Vec<_>>(),
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
        })
    }
}

impl Elaborator<'_> {
    /// Names the ops around a race.
    pub(crate) fn scene(&mut self, around: &Around) -> Scene {
        let mut lanes: Vec<StreamId> = Vec::new();
        // The two ops of the race come first.
        let first = [around.previous, around.access].into_iter().filter_map(|i| around.steps.get(i));
        for step in first.chain(&around.steps) {
            if !lanes.contains(&step.lane) {
                lanes.push(step.lane);
            }
        }
        let mut shown: Vec<Shown> = Vec::new();
        for (index, step) in around.steps.iter().enumerate() {
            let before = &around.steps[..index];
            let (at, source) = self.site_of(step.stack);
            let (operation, label) = self.label(step);
            let last = before.iter().rfind(|s| s.lane == step.lane);
            shown.push(Shown {
                lane: lanes.iter().position(|l| *l == step.lane).unwrap_or_default(),
                operation,
                label,
                at: at.to_string(),
                source: source.to_string(),
                role: match index {
                    i if i == around.previous => StepRole::Previous,
                    i if i == around.access => StepRole::Access,
                    _ => StepRole::Neither,
                },
                after: self.waits(before, step),
                skipped: match (step.nth, last.map_or(0, |s| s.nth)) {
                    (0, _) => None,
                    (_, 0) if last.is_some() => None,
                    (nth, last) => Some((nth - last).saturating_sub(1)),
                },
            });
        }
        Scene { lanes: lanes.into_iter().map(|id| self.stream(id)).collect(), steps: shown }
    }

    /// A wait of the later op's stream that looks right and orders nothing here, because its event
    /// was recorded on a third stream after the earlier op. The sentence names both lines.
    pub(super) fn mistaken_wait(&mut self, around: &Around) -> Option<String> {
        let steps = &around.steps;
        let (previous, access) = (steps.get(around.previous)?, steps.get(around.access)?);
        if previous.lane.is_none() || access.lane.is_none() || around.previous >= around.access {
            return None;
        }
        let wait = (around.previous + 1..around.access).rev().find_map(|at| match steps[at].what {
            What::Wait(event) if steps[at].lane == access.lane => Some((at, event)),
            _ => None,
        });
        let (at, event) = wait?;
        let recorded = (around.previous + 1..at).rev().find(|i| steps[*i].what == What::Record(event))?;
        let (wait, record) = (steps[at], steps[recorded]);
        if [previous.lane, access.lane].contains(&record.lane) {
            return None;
        }
        let mut at = |stack| self.place(stack).map_or_else(String::new, |at| format!(" at {at}"));
        let (waits, records) = (at(wait.stack), at(record.stack));
        let (on, meant) = (self.stream(record.lane).name, self.stream(previous.lane).name);
        Some(format!(
            "Probably the mistake: the wait{waits} is for an event that was recorded{records} on {on}, and the \
             previous access is on {meant}."
        ))
    }

    /// The last wait of the host between the two ops, by the thread of the later one, for something
    /// else than the earlier op: for another stream, or for an event that was recorded too early.
    pub(super) fn host_waited_elsewhere(&mut self, around: &Around) -> Option<String> {
        let steps = &around.steps;
        let (previous, access) = (steps.get(around.previous)?, steps.get(around.access)?);
        let is_between = |s: &HistoryEntry| s.number > previous.number && s.number < access.number;
        let is_wait = |s: &&HistoryEntry| s.what == What::HostWait && s.thread == access.thread && is_between(s);
        let wait = steps.iter().rfind(is_wait).filter(|wait| !wait.of.is_none())?;
        let record = match wait.after {
            After::Entry(number) => {
                steps.iter().find(|s| s.number == number).filter(|s| matches!(s.what, What::Record(_)))
            }
            _ => None,
        };
        // A wait for the stream itself is written with its last step, which may be a record, too.
        let call = self.names.call(wait.call);
        let record = record.filter(|_| call.contains("Event"));
        let verb = if call.contains("Query") { ("asked about", "about") } else { ("waited for", "for") };
        let early = match wait.after {
            _ if wait.of != previous.lane => false,
            After::Entry(number) if number < previous.number => true,
            _ => return None,
        };
        let mut at = |stack| self.place(stack).map_or_else(String::new, |at| format!(" at {at}"));
        let recorded = record.map_or_else(String::new, |record| format!(", for an event recorded{}", at(record.stack)));
        let waited = at(wait.stack);
        let (of, meant) = (self.stream(wait.of).name, self.stream(previous.lane).name);
        let end = match (early, record) {
            (true, None) => return None,
            (true, Some(_)) => ", which was before the previous access".to_string(),
            (false, _) => format!(", not {} {meant}", verb.1),
        };
        Some(format!("The host {} {of}{waited}{recorded}{end}.", verb.0))
    }

    fn label(&mut self, step: &HistoryEntry) -> (Operation, String) {
        // As the text names it: by the function that the program called.
        let frames = self.frames(step.stack);
        let call = called(&frames, self.names.call(step.call));
        let or_call = |otherwise: &str| if call.is_empty() { otherwise.to_owned() } else { call.clone() };
        let named = |what: Operation| (what, or_call(&what.to_string()));
        match step.what {
            What::Kernel(id) => {
                let name = self.kernel_name(id);
                (Operation::Kernel, if name.is_empty() { "kernel".into() } else { name })
            }
            What::Copy => named(Operation::Copy),
            What::Fill => named(Operation::Fill),
            What::Graph => named(Operation::Graph),
            What::HostFunction => named(Operation::HostFunction),
            What::WriteValue => (Operation::Value, "write a value".into()),
            What::WaitValue => (Operation::Value, "wait for a value".into()),
            What::Alloc => named(Operation::Allocation),
            What::Free => named(Operation::Free),
            What::Record(event) => (Operation::Record, format!("record event {}", event.0)),
            What::Wait(event) => (Operation::Wait, format!("wait for event {}", event.0)),
            What::HostWait => (Operation::HostWait, or_call("host waits")),
            What::Host => (Operation::Host, "the host itself".into()),
        }
    }

    /// The steps before this one, each the last of its lane, that it waits for.
    fn waits(&self, before: &[HistoryEntry], step: &HistoryEntry) -> Vec<usize> {
        let mut after = Vec::new();
        // Of each lane the last such step, which implies the earlier ones.
        let mut each_last = |wanted: &dyn Fn(&HistoryEntry) -> bool| {
            let mut seen = vec![step.lane];
            for (index, earlier) in before.iter().enumerate().rev() {
                if !seen.contains(&earlier.lane) && wanted(earlier) {
                    seen.push(earlier.lane);
                    after.push(index);
                }
            }
        };
        let host = |s: &HistoryEntry| s.lane.is_none();
        match step.after {
            After::Nothing => {}
            After::Entry(number) => each_last(&|s| s.number == number),
            After::All(number) => each_last(&|s| s.number <= number && !host(s)),
        }
        if !host(step) {
            // Everything submitted after the host has waited starts after that.
            let first_since =
                |index: usize| before[index..].iter().all(|s| s.lane != step.lane || s.what == What::HostWait);
            if let Some(index) = before.iter().rposition(|s| s.what == What::HostWait)
                && first_since(index)
            {
                after.push(index);
            }
            // The legacy default stream and the blocking ones wait for each other.
            let of = |id: StreamId| self.streams.get(id);
            let joins = |s: &HistoryEntry| {
                matches!((of(s.lane), of(step.lane)), (Some(a), Some(b)) if legacy_order(a, b)) && is_work(s.what)
            };
            if is_work(step.what)
                && let Some(index) = before.iter().rposition(joins)
                && !after.contains(&index)
            {
                after.push(index);
            }
        }
        after.sort_unstable();
        after
    }
}

/// Whether the rules of the legacy default stream order the work of these two.
fn legacy_order(a: &Stream, b: &Stream) -> bool {
    let legacy = |s: &Stream| s.kind == StreamKind::Legacy;
    let blocking = |s: &Stream| matches!(s.kind, StreamKind::Blocking | StreamKind::PerThread);
    a.context == b.context && ((legacy(a) && blocking(b)) || (blocking(a) && legacy(b)))
}

fn is_work(what: What) -> bool {
    !matches!(what, What::HostWait | What::Host)
}
