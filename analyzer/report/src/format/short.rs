//! The report with one line for each finding, as compilers write: `FILE:LINE: what is wrong`.
//!
//! Owns that line. Errors, faults of kernels and the summary are the text report's.

use super::{programs, text};
use crate::call_site::{site, site_frame};
use crate::format::closing;
use crate::format::{Event, Reporter, Verdict};
use crate::model::{Actor, Breach, Finding, Hint, Report, Side};
use crate::words::FindingKind;
use std::fmt::Write as _;
use symbols::frame::Frame;

/// Writes the lines.
#[derive(Default)]
pub struct Short {
    quiet: bool,
    found: bool,
    out: String,
}

impl Short {
    /// `quiet`: no summary when nothing is found.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, ..Self::default() }
    }

    fn end(&mut self, report: &Report) {
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

/// What a finding is, without the place of its later access.
fn summary(f: &Finding) -> String {
    if let Some(k) = f.in_kernel.as_ref().filter(|_| f.kind == FindingKind::UninitializedRead) {
        return format!("{} ({}): {} [{}]", f.rule(), k.grade, text::headline(f), f.fingerprint);
    }
    if let Some(k) = &f.in_kernel {
        let before = site(&f.previous.stack).unwrap_or_default();
        return format!("{} ({}): {}, after {before} [{}]", f.rule(), k.grade, text::headline(f), f.fingerprint);
    }
    if f.stale.is_some() {
        let freed = site(&f.previous.stack).map_or_else(String::new, |at| format!(", freed at {at}"));
        return format!("{} ({}): {}{freed} [{}]", f.rule(), f.confidence.name(), text::headline(f), f.fingerprint);
    }
    let latent = if f.latent { ", latent" } else { "" };
    let before = site(&f.previous.stack).map_or_else(String::new, |at| format!(" at {at}"));
    format!(
        "{} ({}{latent}): {}, after {}{before} [{}]",
        f.hazard.name(),
        f.confidence.name(),
        what(&f.access),
        what(&f.previous),
        f.fingerprint
    )
}

/// A finding in one line, below its cause.
pub(super) fn line(f: &Finding) -> String {
    let at = site(&f.access.stack).unwrap_or_else(|| "(unknown place)".to_owned());
    let times = if f.count > 1 { format!(", {} times", f.count) } else { String::new() };
    format!("{at}: {}{times}", summary(f))
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
                let what = if f.stale.is_some() { "error" } else { "data race" };
                let _ = writeln!(self.out, "{}: {what}: {}", place(&f.access.stack), summary(f));
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
