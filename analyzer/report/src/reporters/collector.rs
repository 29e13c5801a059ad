//! Collects the findings of a run for a file about all of them: suppressions, a baseline.
//!
//! Owns which findings go into it. The text is the gate's.

use crate::format::{Event, Reporter, Verdict};
use crate::model::{Breach, Finding, GateStatus};

/// Collects findings for a text about all of them.
pub(super) struct Collector {
    list: Vec<Finding>,
    breaches: Vec<Breach>,
    wanted: &'static [Verdict],
    make: fn(&[Finding], &[Breach]) -> String,
}

impl Collector {
    /// Of findings with these verdicts, `make` writes the text.
    pub(super) fn new(make: fn(&[Finding], &[Breach]) -> String, wanted: &'static [Verdict]) -> Self {
        Self { list: Vec::new(), breaches: Vec::new(), wanted, make }
    }
}

impl Reporter for Collector {
    fn take(&mut self, event: Event<'_>) {
        // A suppressed finding needs no entry in the baseline.
        let is_wanted =
            |verdict, standing| self.wanted.contains(&verdict) && !matches!(standing, GateStatus::Suppressed(_));
        match event {
            Event::Finding(finding, verdict) if is_wanted(verdict, finding.standing) => self.list.push(finding.clone()),
            Event::Breach(breach, verdict) if is_wanted(verdict, breach.standing) => self.breaches.push(breach.clone()),
            _ => {}
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        (self.make)(&self.list, &self.breaches).into_bytes()
    }
}
