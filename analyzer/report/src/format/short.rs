//! The report with one line for each finding, as compilers write: `FILE:LINE: what is wrong`.
//!
//! Owns that line, and which findings share one: those of one cause that differ only in who called
//! the functions that race, or in the memory. Errors, faults of kernels and the summary are the
//! text report's.

use super::{programs, text};
use crate::call_site::{site, site_frame};
use crate::format::closing;
use crate::format::{Event, Reporter, Verdict};
use crate::model::{Actor, Breach, Finding, Hint, Report, Side};
use crate::words::FindingKind;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use symbols::frame::Frame;
use symbols::library::is_own;

/// Writes the lines.
#[derive(Default)]
pub struct Short {
    quiet: bool,
    found: bool,
    lines: Vec<Line>,
    out: String,
}

impl Short {
    /// `quiet`: no summary when nothing is found.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, ..Self::default() }
    }

    fn end(&mut self, report: &Report) {
        let lines: String = self.lines.iter().map(|line| line.written(false) + "\n").collect();
        self.out.insert_str(0, &lines);
        for Hint { text, stack, .. } in &report.hints {
            let _ = writeln!(self.out, "{}: hint: {}", place(stack), text.lines().next().unwrap_or_default());
        }
        for fault in &report.faults {
            let error = crate::fault::error_name(fault.result);
            let _ = writeln!(self.out, "{}: error: {error}, answered by {}", place(&fault.stack), fault.call);
        }
        if !self.quiet {
            self.out.push_str(&programs::table(&report.programs));
        }
        self.out.push_str(&closing::doubts(report));
        self.out.push_str(&closing::errors(report));
        if !self.quiet {
            self.out.push_str(&closing::without_work(report));
        }
        if !self.quiet || self.found {
            let _ = writeln!(self.out, "{}", closing::summary(report));
        }
    }
}

/// Where a stack begins in the program's source, with its folder: editors find it.
fn place(stack: &[Frame]) -> String {
    site_frame(stack).and_then(Frame::place).unwrap_or_else(|| "(unknown place)".to_owned())
}

/// The operation of a side, and its stream.
pub(super) fn what(side: &Side) -> String {
    let what = match (&side.kernel, side.call.as_str()) {
        (Some(kernel), _) => format!("kernel {}", text::short_kernel(kernel)),
        (None, "") => side.actor.name().to_owned(),
        (None, call) => call.to_owned(),
    };
    if side.actor == Actor::Host { what } else { format!("{what} on {}", side.stream.title()) }
}

/// What a finding is, without the place of its later access and without its fingerprint.
fn summary(f: &Finding) -> String {
    if let Some(k) = f.in_kernel.as_ref().filter(|_| f.kind == FindingKind::UninitializedRead) {
        return format!("{} ({}): {}", f.rule(), k.grade, text::headline(f));
    }
    if let Some(k) = &f.in_kernel {
        let before = site(&f.previous.stack).unwrap_or_default();
        return format!("{} ({}): {}, after {before}", f.rule(), k.grade, text::headline(f));
    }
    if f.stale.is_some() {
        let freed = site(&f.previous.stack).map_or_else(String::new, |at| format!(", freed at {at}"));
        return format!("{} ({}): {}{freed}", f.rule(), f.confidence.name(), text::headline(f));
    }
    let latent = if f.latent { ", latent" } else { "" };
    let before = site(&f.previous.stack).map_or_else(String::new, |at| format!(" at {at}"));
    format!(
        "{} ({}{latent}): {}, after {}{before}",
        f.hazard.name(),
        f.confidence.name(),
        what(&f.access),
        what(&f.previous)
    )
}

/// A finding as a line, or several that read alike.
pub(super) struct Line {
    text: String,
    /// Of the finding, and of its cause.
    fingerprint: String,
    cause: String,
    findings: u64,
    times: u64,
    /// The program's stacks of both sides, one entry for each that differs.
    callers: BTreeSet<Vec<Caller>>,
}

/// What tells callers apart: function, file and line; an address where there is none.
type Caller = (String, Option<String>, Option<u32>, u64);

impl Line {
    fn new(f: &Finding, at: &str, what: &str) -> Self {
        let frame =
            |f: &Frame| (f.function.clone(), f.file.clone(), f.line, if f.line.is_some() { 0 } else { f.address });
        let stacks = f.access.stack.iter().chain(&f.previous.stack);
        Self {
            text: format!("{at}: {what}{}", summary(f)),
            fingerprint: f.fingerprint.clone(),
            cause: f.cause.clone(),
            findings: 1,
            times: f.count,
            callers: BTreeSet::from([stacks.filter(|f| is_own(f)).map(frame).collect()]),
        }
    }

    /// A finding below its cause.
    pub(super) fn of(f: &Finding) -> Self {
        Self::new(f, &site(&f.access.stack).unwrap_or_else(|| "(unknown place)".to_owned()), "")
    }

    /// Adds a line to others, or makes it part of the one that it repeats.
    pub(super) fn add(self, lines: &mut Vec<Self>) {
        match lines.iter_mut().find(|other| other.cause == self.cause && other.text == self.text) {
            Some(other) => {
                other.findings += self.findings;
                other.times += self.times;
                other.callers.extend(self.callers);
            }
            None => lines.push(self),
        }
    }

    /// Its findings.
    pub(super) fn findings(&self) -> u64 {
        self.findings
    }

    /// As it is printed. The name is one that suppressions take. `times`: with how often it
    /// occurred.
    pub(super) fn written(&self, times: bool) -> String {
        let times = if times && self.times > 1 { format!(", {} times", self.times) } else { String::new() };
        let Self { text, fingerprint, cause, findings, callers, .. } = self;
        match (findings, callers.len()) {
            (1, _) => format!("{text} [{fingerprint}]{times}"),
            (_, 1) => format!("{text}, {findings} findings [cause:{cause}]{times}"),
            (_, callers) => format!("{text}, from {callers} callers [cause:{cause}]{times}"),
        }
    }
}

/// A broken rule in one line.
pub(crate) fn breach(b: &Breach) -> String {
    format!("{}: {} ({}): {} [{}]\n", place(&b.side.stack), b.kind.name(), b.confidence.name(), b.text, b.fingerprint)
}

impl Reporter for Short {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(_) | Event::Finding(_, Verdict::SetAside) | Event::Breach(_, Verdict::SetAside) => {}
            Event::Finding(f, _) => {
                self.found = true;
                let what = if f.stale.is_some() { "error: " } else { "data race: " };
                Line::new(f, &place(&f.access.stack), what).add(&mut self.lines);
            }
            Event::Breach(b, _) => {
                self.found = true;
                self.out.push_str(&breach(b));
            }
            Event::End(report) => self.end(report),
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out).into_bytes()
    }
}
