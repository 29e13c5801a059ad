//! The gate: which findings fail a run.
//!
//! Owns the user's decisions about findings: filters, suppressions, the baseline, `--fail-on`. It
//! judges a [`Report`] as a whole, so that a live run and a recorded one are judged alike. Does not
//! find or print anything.
//!
//! The files in the order of use: `filter` leaves findings out, `suppressions` and `baseline` set
//! findings aside, `pattern` is the matching that the first two share, and `ending` makes the
//! ending of a run of the judged report. Otherwise the files do not know each other.

pub mod baseline;
pub mod ending;
pub(crate) mod filter;
pub mod forbidden;
pub mod pattern;
pub mod suppressions;

use crate::fingerprint::former;
use crate::model::{AppliedFilter, AppliedSuppression, GateStatus, Judgement, Report};
use baseline::Baseline;
use filter::Filter;
use settings::{FailOn, Options};
use std::io::ErrorKind;
use suppressions::Suppression;
use system::file_name::FileName;
use system::local_files;
use system::printable::harmless;
use system::same_file::same_file;

/// All decisions of the user, read from their files.
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
            let text = local_files::read_named_text(file).map_err(|e| format!("suppressions {file}: {e}"))?;
            suppressions.extend(suppressions::read(&file.to_string(), &text)?);
        }
        let read = |file: &FileName| {
            // The first run of one that keeps its own baseline: nothing is known yet.
            let is_own = options.write_baseline.as_ref().is_some_and(|written| same_file(written, file));
            if is_own && std::fs::metadata(file).map_or_else(|e| e.kind() == ErrorKind::NotFound, |m| m.len() == 0) {
                return Ok(Baseline::default());
            }
            let text = local_files::read_named_text(file).map_err(|e| format!("baseline {file}: {e}"))?;
            Baseline::read(&text).map_err(|e| format!("baseline {file}: {e}"))
        };
        let baseline = options.baseline.as_ref().map(read).transpose()?;
        Ok(Self { filters: filter::ready(&options.filters)?, suppressions, baseline, fail_on: options.fail_on })
    }

    /// Judges a report: leaves out filtered findings, and sets aside suppressed and known ones.
    pub fn judge(&self, report: &mut Report) {
        let Self { mut filters, mut suppressions, mut baseline, fail_on } = self.clone();
        if let Some(fail_on) = fail_on {
            report.fail_on = fail_on;
        }
        report.findings.retain(|finding| {
            let against = filters.iter_mut().find(|filter| !filter.keeps(finding));
            against.map(|filter| filter.left_out += 1).is_none()
        });
        report.breaches.retain(|breach| {
            let against = filters.iter_mut().find(|filter| !filter.keeps_sides(&[&breach.side]));
            against.map(|filter| filter.left_out += 1).is_none()
        });
        let mut standing = |index: Option<usize>, known: bool, count: u64| match index {
            Some(index) => {
                suppressions[index].findings += 1;
                suppressions[index].hits += count;
                GateStatus::Suppressed(index)
            }
            None if known => GateStatus::Known,
            None => GateStatus::New,
        };
        // The baseline is asked in any case: a suppressed finding of it has not gone away.
        for finding in &mut report.findings {
            let former = former(finding);
            let known = baseline.as_mut().is_some_and(|b| {
                b.knows(&finding.fingerprint)
                    || former.is_some_and(|former| b.knows(&former))
                    || b.knows_cause(&finding.cause)
                    || b.knows_cause(&finding.own_cause)
            });
            let index = self.suppressions.iter().position(|s| s.covers(finding));
            finding.standing = standing(index, known, finding.count);
        }
        for breach in &mut report.breaches {
            let known = baseline.as_mut().is_some_and(|b| b.knows(&breach.fingerprint));
            let index = self.suppressions.iter().position(|s| s.covers_breach(breach));
            breach.standing = standing(index, known, breach.count);
        }
        // Patterns may have been written by anybody, as names may.
        let shown = |text: String| harmless(&text).into_owned();
        let filter = |f: Filter| AppliedFilter { text: shown(f.text), left_out: f.left_out };
        let suppression = |s: Suppression| {
            let Suppression { text, place, findings, hits, .. } = s;
            AppliedSuppression { text: shown(text), place: shown(place), findings, hits }
        };
        report.judgement = Judgement {
            filters: filters.into_iter().map(filter).collect(),
            suppressions: suppressions.into_iter().map(suppression).collect(),
            absent: baseline.map(|b| b.absent()),
        };
    }
}
