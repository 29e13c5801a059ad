//! The programs of a hunt: how each came out, and one report made of theirs.
//!
//! Owns the outcomes and the merging. Findings of several programs are one when their fingerprints
//! are equal: a header that many programs include is reported once, with all of them. So a finding
//! has the fingerprint here that it has in the program's own report. Does not run or print
//! anything.

use std::time::Duration;

use crate::escape::Harmless;
use crate::model::{Breach, Report, merge_into};
use detect::coverage::Coverage;

/// How a program came out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checked {
    /// It was checked to its end, and nothing fails the run.
    Clean,
    /// It has findings that fail the run.
    Findings,
    /// It could not be checked.
    NotChecked,
    /// It ended with an error of its own.
    Failed,
    /// It did not end in time, and was checked up to there.
    TimedOut,
    /// It made no use of CUDA.
    NoCuda,
    /// It asked to be left out.
    Skipped,
    /// The hunt was over before its turn.
    NotRun,
}

impl Checked {
    /// All of them, in the order of the last line of the table.
    pub(crate) const ALL: [Self; 8] = [
        Self::Clean,
        Self::Findings,
        Self::NotChecked,
        Self::Failed,
        Self::TimedOut,
        Self::NoCuda,
        Self::Skipped,
        Self::NotRun,
    ];

    /// The name that the table and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Findings => "findings",
            Self::NotChecked => "not checked",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::NoCuda => "no CUDA",
            Self::Skipped => "skipped",
            Self::NotRun => "not run",
        }
    }
}

/// What the second run of a program has settled: its findings in doubt, measured.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SecondRun {
    /// Findings that share bytes, as measured.
    pub confirmed: u64,
    /// Findings whose measured bytes do not meet.
    pub withdrawn: u64,
    /// Findings that are as uncertain as before.
    pub stay: u64,
    /// Findings that the first run did not have.
    pub fresh: u64,
    /// Why some stay, in half a sentence; empty when none does.
    pub why: String,
    /// Whether it was made at all.
    pub made: bool,
    /// Launches that it saw.
    pub launches: u64,
    /// Those of them that were measured.
    pub measured: u64,
    /// How long it took.
    pub took: Duration,
    /// The folder with what it printed.
    pub output: String,
}

impl SecondRun {
    /// What it has settled, in half a sentence: `3 confirmed, 24 not touched together`.
    pub fn settled(&self) -> String {
        let parts = [
            (self.confirmed, "confirmed"),
            (self.withdrawn, "not touched together"),
            (self.fresh, "new"),
            (self.stay, "not settled"),
        ];
        let parts = parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// A program of a hunt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its name, which no other program of the hunt has.
    pub name: String,
    /// Where it was found: `ctest`, `executable`, `pytest`.
    pub kind: &'static str,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its working folder.
    pub folder: String,
    /// How it came out, its findings apart.
    pub ended: Checked,
    /// Why it came out so, in half a sentence; empty when that needs no words.
    pub why: String,
    /// Kernel launches that were seen.
    pub launches: u64,
    /// Findings that fail the run.
    pub findings: u64,
    /// How long it ran.
    pub took: Duration,
    /// The folder with what it printed.
    pub output: String,
    /// Its second run, if findings were in doubt.
    pub second: Option<SecondRun>,
}

impl Program {
    /// How it came out: findings come first.
    pub fn outcome(&self) -> Checked {
        if self.findings > 0 { Checked::Findings } else { self.ended }
    }

    /// What is wrong with it besides findings, without its name.
    pub(crate) fn trouble(&self) -> Option<String> {
        let what = match self.ended {
            Checked::NotChecked | Checked::Failed | Checked::NotRun => self.ended.name(),
            Checked::TimedOut => "timed out, and checked up to there",
            Checked::Clean | Checked::Findings | Checked::NoCuda | Checked::Skipped => return None,
        };
        Some(format!("{what}: {}", self.why))
    }

    /// The same, as a line for the user.
    pub(crate) fn error(&self) -> Option<String> {
        self.trouble().map(|trouble| format!("{}: {trouble}", self.name))
    }

    /// What was not settled, without its name.
    pub(crate) fn unsettled(&self) -> Option<String> {
        let second = self.second.as_ref().filter(|second| second.stay > 0)?;
        let what = if second.made { "not settled by the second run" } else { "not measured in a second run" };
        Some(format!("findings in doubt {what}: {}", second.why))
    }
}

impl Harmless for Program {
    fn disarm(&mut self) {
        self.name.disarm();
        self.command.disarm();
        self.folder.disarm();
        self.why.disarm();
        self.output.disarm();
        if let Some(second) = &mut self.second {
            second.why.disarm();
            second.output.disarm();
        }
    }
}

impl Report {
    /// One report of those of several programs, which have been merged each by itself.
    pub fn of_programs(reports: Vec<(String, Self)>, pedantic: bool) -> Self {
        let mut all = Self::merge(Vec::new(), pedantic);
        for (mut name, mut report) in reports {
            name.disarm();
            all.join_causes(&mut report);
            // Why something could not be checked is said of its program.
            let Coverage { unchecked, disabled, mispredicted, unread, partial, not_simulated, lost, .. } =
                &mut report.coverage;
            [unchecked, disabled, mispredicted, unread, partial, not_simulated].into_iter().for_each(Vec::clear);
            lost.clear();
            let first = all.processes.len() as u32;
            all.coverage.merge(&report.coverage);
            all.processes.extend(report.processes);
            all.processes[first as usize..].iter_mut().for_each(|process| process.program = Some(name.clone()));
            for mut breach in report.breaches {
                breach.programs = vec![name.clone()];
                breach.processes.iter_mut().for_each(|index| *index += first);
                Breach::merge(&mut all.breaches, breach);
            }
            all.hints.extend(report.hints);
            all.faults.extend(report.faults);
            all.take_trial(report.mended);
            for (into, from) in [(&mut all.findings, report.findings), (&mut all.withdrawn, report.withdrawn)] {
                for mut finding in from {
                    finding.programs = vec![name.clone()];
                    finding.processes.iter_mut().for_each(|index| *index += first);
                    let same =
                        into.iter().position(|f| f.fingerprint == finding.fingerprint && f.latent == finding.latent);
                    merge_into(into, same, finding);
                }
            }
        }
        all.sort();
        all.settle_causes();
        all
    }

    /// Takes the causes of another program's report. One that differs from a known one only in the
    /// callers of the functions that race becomes that one, and its findings follow. Causes of one
    /// program stay apart: whether they are one has been tried there.
    fn join_causes(&mut self, report: &mut Self) {
        let known = self.causes.len();
        let mut joined: Vec<usize> = Vec::new();
        for cause in std::mem::take(&mut report.causes) {
            if let Some(at) = self.causes.iter().position(|other| other.fingerprint == cause.fingerprint) {
                joined.push(at);
                continue;
            }
            let same = (0..known).find(|at| !joined.contains(at) && self.causes[*at].is_at_places_of(&cause));
            let Some(at) = same else {
                self.causes.push(cause);
                continue;
            };
            joined.push(at);
            for finding in report.findings.iter_mut().chain(&mut report.withdrawn) {
                if finding.cause == cause.fingerprint {
                    let one = self.causes[at].fingerprint.clone();
                    finding.own_cause = std::mem::replace(&mut finding.cause, one);
                }
            }
            self.causes[at].join(cause);
        }
    }
}
