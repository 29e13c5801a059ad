//! Report formats: one stream of events feeds all reporters, so that everything written about a run
//! comes from here.
//!
//! Owns the events and the trait [`Reporter`]. Each format is one file with a `Reporter`; formats
//! that only CI systems read are in `ci/`. [`crate::reporters`] knows which formats a run writes;
//! CONTRIBUTING.md has the recipe for a new one.

mod access_text;
mod by_cause;
mod ci;
pub mod closing;
pub mod csan;
pub mod finding_pages;
pub mod html;
mod in_kernel_text;
pub mod json;
mod no_race_text;
#[cfg(feature = "parquet")]
pub mod parquet;
pub(crate) mod programs;
pub mod short;
mod stale_text;
pub mod text;
mod unproven;

pub use ci::{code_quality, github, junit, markdown, sarif};

use crate::model::{Breach, Finding, GateStatus, Report};

/// An event for reporters: the beginning, every finding worth showing (most certain first, then
/// those set aside), the end.
#[derive(Clone, Copy)]
pub enum Event<'a> {
    /// Before the findings.
    Begin(&'a Report),
    /// A finding.
    Finding(&'a Finding, Verdict),
    /// A broken rule. They come after the findings.
    Breach(&'a Breach, Verdict),
    /// After the findings.
    End(&'a Report),
}

/// What a finding means for the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It fails the run.
    Fails,
    /// It is shown, but `--fail-on` lets it pass (latent ones always pass unless asked for).
    Passes,
    /// A suppression or the baseline has set it aside.
    SetAside,
}

impl Verdict {
    /// The name that JSON uses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fails => "fails",
            Self::Passes => "passes",
            Self::SetAside => "set-aside",
        }
    }
}

/// Turns events into the bytes of one file.
pub trait Reporter {
    /// Takes the next event.
    fn take(&mut self, event: Event<'_>);
    /// The whole text.
    fn finish(&mut self) -> Vec<u8>;
}

/// Feeds a report to a reporter.
pub fn feed(report: &Report, reporter: &mut dyn Reporter) -> Vec<u8> {
    reporter.take(Event::Begin(report));
    for finding in report.shown() {
        let verdict = if report.fails(finding) { Verdict::Fails } else { Verdict::Passes };
        reporter.take(Event::Finding(finding, verdict));
    }
    for finding in report.set_aside() {
        reporter.take(Event::Finding(finding, Verdict::SetAside));
    }
    for breach in &report.breaches {
        let verdict = match breach.standing {
            GateStatus::New if breach.fails(report.fail_on) => Verdict::Fails,
            GateStatus::New => Verdict::Passes,
            _ => Verdict::SetAside,
        };
        reporter.take(Event::Breach(breach, verdict));
    }
    reporter.take(Event::End(report));
    reporter.finish()
}
