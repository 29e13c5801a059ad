//! The reporters of a run: which formats the options ask for, and where each is written.
//!
//! Owns that list. A new format needs a line in [`Reporters::asked_for`], a row in the table of
//! options and one in the table of report files (`settings::report_files`).

mod collector;

use crate::format::{Reporter, Verdict, csan, feed, html, json, short, text};
use crate::format::{code_quality, github, junit, markdown, sarif};
use crate::gate::{baseline, suppressions};
use crate::model::Report;
use collector::Collector;
use settings::{Format, Options};
use std::io::{IsTerminal, Write};
use system::file_name::FileName;
use system::output;

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
                let (no_color, term) = (std::env::var("NO_COLOR").ok(), std::env::var("TERM").ok());
                let to_terminal = log == Place::Stderr && std::io::stderr().is_terminal();
                let color = text::wants_color(options.color, to_terminal, no_color.as_deref(), term.as_deref());
                let links = text::wants_links(color, to_terminal, term.as_deref());
                let style = text::Style { color, links, processes: false, no_machine_lines: to_terminal };
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
        if let Some(place) = file(&options.reports.json) {
            list.push((Box::<json::Json>::default(), place));
        }
        if let Some(place) = file(&options.reports.html) {
            list.push((Box::<html::Html>::default(), place));
        }
        if let Some(place) = file(&options.reports.sarif) {
            list.push((Box::new(sarif::Sarif::new(github::Workspace::from_environment())), place));
        }
        if let Some(place) = file(&options.reports.junit) {
            list.push((Box::new(junit::Junit::new(junit::Origin::here())), place));
        }
        if let Some(place) = file(&options.reports.code_quality) {
            list.push((Box::new(code_quality::CodeQuality::new(github::Workspace::from_environment())), place));
        }
        if let Some(place) = file(&options.reports.markdown) {
            let workspace = github::Workspace::from_environment();
            list.push((Box::new(markdown::Markdown::new(workspace, options.max_findings)), place));
        }
        #[cfg(feature = "parquet")]
        if let Some(place) = file(&options.reports.parquet) {
            list.push((Box::<crate::format::parquet::Parquet>::default(), place));
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
                        system::say!("{} can not be written: {error}", output::called(&path));
                        fine = false;
                    }
                }
            }
        }
        fine
    }
}
