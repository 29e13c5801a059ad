//! The findings of a trace, as marks on the drawing.
//!
//! Owns which ops a finding is about: those of one of its two streams, calls and call sites. A
//! finding counts every occurrence of a pair of sites, so every such op is marked. The host's own
//! touches of memory are no ops and are not drawn. Does not look for races: `analysis` does.

use std::collections::BTreeMap;

use super::Mark;
use report::call_site::site;
use report::model::{Finding, Outcome, Side};
use rustc_hash::FxHashMap;
use trace::StreamId;

/// Which side of a finding an op is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Previous,
    Access,
}

/// A stream, a call and a call site.
type Place = (u32, String, String);

/// The findings of one process.
#[derive(Default)]
pub(super) struct Races {
    /// The findings: a name for each, and the last slice of its previous access.
    findings: Vec<(String, Option<Mark>)>,
    places: FxHashMap<Place, Vec<(usize, Role)>>,
}

/// A finding that an op takes part in.
pub(super) struct Part {
    /// `write-after-write 85943be02c0869e1`.
    pub(super) name: String,
    /// The previous access, if this is the access and the other was drawn.
    pub(super) previous: Option<Mark>,
}

impl Races {
    /// The findings of the processes of a trace, by process ID.
    pub(super) fn of(outcomes: &[Outcome]) -> BTreeMap<u32, Self> {
        let mut all: BTreeMap<u32, Self> = BTreeMap::new();
        for outcome in outcomes {
            let races = all.entry(outcome.process.pid).or_default();
            outcome.findings.iter().for_each(|finding| races.add(finding));
        }
        all
    }

    fn add(&mut self, finding: &Finding) {
        let index = self.findings.len();
        self.findings.push((format!("{} {}", finding.hazard.name(), finding.fingerprint), None));
        for (side, role) in [(&finding.previous, Role::Previous), (&finding.access, Role::Access)] {
            self.places.entry(place(side)).or_default().push((index, role));
        }
    }

    /// The findings that a slice takes part in.
    pub(super) fn parts(&mut self, stream: StreamId, call: &str, at: &str, mark: Mark) -> Vec<Part> {
        if self.places.is_empty() {
            return Vec::new();
        }
        let Some(roles) = self.places.get(&(stream.0, call.to_owned(), at.to_owned())) else { return Vec::new() };
        let mut parts: Vec<Part> = Vec::new();
        for &(index, role) in roles {
            let (name, last) = &mut self.findings[index];
            let previous = match role {
                Role::Access => last.take(),
                Role::Previous => {
                    *last = Some(mark);
                    None
                }
            };
            match parts.iter_mut().find(|part| part.name == *name) {
                Some(part) => part.previous = part.previous.or(previous),
                None => parts.push(Part { name: name.clone(), previous }),
            }
        }
        parts
    }
}

fn place(side: &Side) -> Place {
    (side.stream.id, side.call.clone(), site(&side.stack).unwrap_or_default())
}
