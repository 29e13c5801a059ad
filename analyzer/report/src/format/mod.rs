//! Report formats: one stream of events feeds all reporters, so that everything written about a run
//! comes from here.
//!
//! Owns the events, the trait [`Reporter`], and the list of reporters that the options ask for.
//! Each format is one file with a `Reporter`. A new format also needs a line in
//! [`Reporters::asked_for`], a row in the table of options, a field of `Options` and an entry in
//! `output`: CONTRIBUTING.md has the recipe.

mod access_text;
mod by_cause;
pub mod closing;
pub mod csan;
pub mod github;
pub mod html;
pub mod json;
pub mod junit;
#[cfg(feature = "parquet")]
pub mod parquet;
pub(crate) mod programs;
pub mod sarif;
pub mod short;
pub mod text;
mod unproven;

use crate::gate::{baseline, suppressions};
use crate::model::{Breach, Finding, GateStatus, Report};
use settings::{Format, Options};
use std::io::{IsTerminal, Write};
use system::file_name::FileName;
use system::output;

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

/// Where a reporter's text goes.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    Stderr,
    File(FileName),
}

/// All reporters of a run.
pub struct Reporters(Vec<(Box<dyn Reporter>, Place)>);

impl Reporters {
    /// The reporters that the options ask for. File names must be expanded already.
    pub fn asked_for(options: &Options) -> Self {
        let log = options.log_file.clone().map_or(Place::Stderr, Place::File);
        let mut list: Vec<(Box<dyn Reporter>, Place)> = Vec::new();
        let github = || Box::new(github::Annotations::new(github::Workspace::from_environment()));
        match options.format {
            Format::Text => {
                let no_color = std::env::var("NO_COLOR").ok();
                let to_terminal = log == Place::Stderr && std::io::stderr().is_terminal();
                let color = text::wants_color(options.color, to_terminal, no_color.as_deref());
                let style = text::Style { color, processes: false, no_machine_lines: to_terminal };
                list.push((
                    Box::new(
                        text::Text::new(style, options.max_findings).per_cause(options.per_cause).quiet(options.quiet),
                    ),
                    log,
                ));
                if std::env::var("GITHUB_ACTIONS").is_ok_and(|v| v == "true") {
                    list.push((github(), Place::Stderr));
                }
            }
            Format::Short => list.push((Box::new(short::Short::new(options.quiet)), log)),
            Format::Csan => list.push((Box::new(csan::Csan::new(options.quiet)), log)),
            Format::Github => {
                // The runner reads annotations from the output of a step, not from files.
                list.push((github(), Place::Stderr));
                list.push((Box::new(text::Text::beside().quiet(options.quiet)), log));
            }
        }
        let file = |path: &Option<FileName>| path.clone().map(Place::File);
        if let Some(place) = file(&options.json) {
            list.push((Box::<json::Json>::default(), place));
        }
        if let Some(place) = file(&options.html) {
            list.push((Box::<html::Html>::default(), place));
        }
        if let Some(place) = file(&options.sarif) {
            list.push((Box::new(sarif::Sarif::new(github::Workspace::from_environment())), place));
        }
        if let Some(place) = file(&options.junit) {
            list.push((Box::new(junit::Junit::new(junit::Origin::here())), place));
        }
        #[cfg(feature = "parquet")]
        if let Some(place) = file(&options.parquet) {
            list.push((Box::<parquet::Parquet>::default(), place));
        }
        if let Some(place) = file(&options.gen_suppressions) {
            list.push((Box::new(Collector::new(suppressions::generate, &[Verdict::Fails])), place));
        }
        if let Some(place) = file(&options.write_baseline) {
            const ALL: &[Verdict] = &[Verdict::Fails, Verdict::Passes, Verdict::SetAside];
            list.push((Box::new(Collector::new(baseline::write, ALL)), place));
        }
        Self(list)
    }

    /// Those that write into regular files, which a later report replaces.
    pub fn in_files(mut self) -> Self {
        self.0.retain(|(_, place)| matches!(place, Place::File(path) if output::replaceable(path).is_some()));
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Feeds the report to all reporters and writes their output. False when a file could not be
    /// written.
    pub fn write(self, report: &Report) -> bool {
        let mut fine = true;
        for (mut reporter, place) in self.0 {
            let bytes = feed(report, &mut *reporter);
            match place {
                Place::Stderr => drop(std::io::stderr().lock().write_all(&bytes)),
                Place::File(path) => {
                    if let Err(error) = output::write(&path, &bytes) {
                        system::say!("{path} can not be written: {error}");
                        fine = false;
                    }
                }
            }
        }
        fine
    }
}

/// Collects findings for a text about all of them.
struct Collector {
    list: Vec<Finding>,
    breaches: Vec<Breach>,
    wanted: &'static [Verdict],
    make: fn(&[Finding], &[Breach]) -> String,
}

impl Collector {
    fn new(make: fn(&[Finding], &[Breach]) -> String, wanted: &'static [Verdict]) -> Self {
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
