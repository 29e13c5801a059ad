//! The gate: which findings fail a run.
//!
//! Owns what the user has decided about findings beside the analysis: filters, suppressions, the
//! baseline, `--fail-on`. It judges a [`Report`] as a whole, so that a live run and a recorded one
//! are judged alike.

pub mod baseline;
pub mod filter;
pub mod pattern;
pub mod suppressions;

use crate::options::{FailOn, Options};
use crate::report::model::{Report, Standing};
use baseline::Baseline;
use filter::Filter;
use std::io::ErrorKind;
use suppressions::Suppression;

/// What the gate has done to a report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judgement {
    /// The filters, with counts.
    pub filters: Vec<Filter>,
    /// The suppressions, with counts.
    pub suppressions: Vec<Suppression>,
    /// Findings of the baseline that did not come up; `None` without a baseline.
    pub absent: Option<u64>,
}

/// Everything the user has decided, read from its files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Gate {
    filters: Vec<Filter>,
    suppressions: Vec<Suppression>,
    baseline: Option<Baseline>,
    fail_on: Option<FailOn>,
}

impl Gate {
    /// Reads the files that the options name. The error is a line for the user.
    pub fn open(options: &Options) -> Result<Self, String> {
        let mut suppressions = Vec::new();
        for file in &options.suppressions {
            let text = std::fs::read_to_string(file).map_err(|e| format!("suppressions {file}: {e}"))?;
            suppressions.extend(suppressions::read(file, &text)?);
        }
        let read = |file: &String| {
            // The first run of one that keeps its own baseline: nothing is known yet.
            let is_own = options.write_baseline.as_ref() == Some(file);
            if is_own && std::fs::metadata(file).map_or_else(|e| e.kind() == ErrorKind::NotFound, |m| m.len() == 0) {
                return Ok(Baseline::default());
            }
            let text = std::fs::read_to_string(file).map_err(|e| format!("baseline {file}: {e}"))?;
            Baseline::read(&text).map_err(|e| format!("baseline {file}: {e}"))
        };
        let baseline = options.baseline.as_ref().map(read).transpose()?;
        Ok(Self { filters: options.filters.ready(), suppressions, baseline, fail_on: options.fail_on })
    }

    /// Judges a report: leaves out what is filtered, sets aside what is suppressed or known.
    pub fn judge(&self, report: &mut Report) {
        let Self { mut filters, mut suppressions, mut baseline, fail_on } = self.clone();
        if let Some(fail_on) = fail_on {
            report.fail_on = fail_on;
        }
        report.findings.retain(|finding| {
            let against = filters.iter_mut().find(|filter| !filter.keeps(finding));
            against.map(|filter| filter.left_out += 1).is_none()
        });
        for finding in &mut report.findings {
            let index = suppressions.iter().position(|s| s.covers(finding));
            // Asked in any case: a suppressed finding of the baseline has not gone away.
            let known = baseline.as_mut().is_some_and(|b| b.knows(&finding.fingerprint));
            finding.standing = match index {
                Some(index) => {
                    suppressions[index].findings += 1;
                    suppressions[index].hits += finding.count;
                    Standing::Suppressed(index)
                }
                None if known => Standing::Known,
                None => Standing::New,
            };
        }
        report.judgement = Judgement { filters, suppressions, absent: baseline.map(|b| b.absent()) };
    }
}
