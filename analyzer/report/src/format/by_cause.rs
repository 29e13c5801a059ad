//! The findings of one cause in the report as text: its head, those that occurred most in full, and
//! each of the others in one line.
//!
//! Owns the choice and the head. The text of a finding is [`super::text`]'s, the line
//! [`super::short`]'s.

use super::short::Line;
use super::text::{Ink, Style, finding};
use crate::cause::RootCause;
use crate::model::Finding;
use crate::words::{CauseKind, counted};
use std::fmt::Write as _;

/// Findings of one cause that are printed in full unless the user asks for another number.
pub(crate) const IN_FULL: u64 = 3;

/// A cause, and what has come of it so far.
#[derive(Default)]
pub(super) struct CauseGroup {
    /// The cause; nothing is known of one that is not in the report.
    pub(crate) cause: RootCause,
    /// Its findings, and how often they occurred.
    findings: u64,
    occurrences: u64,
    /// Those that are printed: how often each occurred, its text, and its line.
    printed: Vec<(u64, String, Option<Line>)>,
}

impl CauseGroup {
    /// Nothing yet.
    pub(crate) fn of(cause: &RootCause) -> Self {
        Self { cause: cause.clone(), ..Self::default() }
    }

    /// Counts a finding.
    pub(crate) fn count(&mut self, f: &Finding) {
        self.findings += 1;
        self.occurrences += f.count;
    }

    /// Takes a finding that is printed.
    pub(crate) fn take(&mut self, f: &Finding, style: Style) {
        self.printed.push((f.count, finding(f, style), Some(Line::of(f))));
    }

    /// Whether the cause is printed. `shows_later`: whether it may be without findings, as a wait
    /// that is needed once the others are there.
    pub(crate) fn is_told(&self, shows_later: bool) -> bool {
        self.findings > 0 || shows_later && self.cause.tried
    }

    /// The text. `full`: how many findings are printed in full.
    pub(crate) fn text(self, style: Style, full: u64) -> String {
        let mut out = head(&self.cause, (self.findings, self.occurrences), style);
        out.push_str(&self.findings(style, full));
        out
    }

    /// The text without the head.
    pub(crate) fn findings(mut self, style: Style, full: u64) -> String {
        let full = usize::try_from(full).unwrap_or(usize::MAX).min(self.printed.len());
        // The order of the report decides among findings that occurred equally often.
        let mut largest: Vec<usize> = (0..self.printed.len()).collect();
        largest.sort_by_key(|at| std::cmp::Reverse(self.printed[*at].0));
        largest.truncate(full);
        largest.sort_unstable();
        let mut out: String = largest.iter().map(|at| std::mem::take(&mut self.printed[*at].1)).collect();
        let mut lines: Vec<Line> = Vec::new();
        let others = (0..self.printed.len()).filter(|at| !largest.contains(at));
        others.filter_map(|at| self.printed[at].2.take()).for_each(|line| line.add(&mut lines));
        if !lines.is_empty() {
            let rule = style.paint(Ink::Faint, &"=".repeat(80));
            let more = if full == 0 { "finding" } else { "more finding" };
            let what = counted(lines.iter().map(Line::findings).sum(), more, &format!("{more}s"));
            let _ =
                writeln!(out, "{rule}\nstreamsan: {what} of this cause (--findings-per-cause 0 prints all in full):");
            lines.iter().for_each(|line| out.push_str(&format!("  {}\n", line.written(true))));
        }
        out
    }
}

/// The head of a cause, before its findings. A finding that is alone says all of it itself, unless
/// no wait mends it.
fn head(cause: &RootCause, (findings, occurrences): (u64, u64), style: Style) -> String {
    let mut out = String::new();
    if findings == 1 && cause.kind != CauseKind::KernelRange {
        return out;
    }
    let size = match findings {
        0 => "shows only when the others are mended".to_string(),
        _ => format!(
            "{}, {}",
            counted(findings, "finding", "findings"),
            counted(occurrences, "occurrence", "occurrences")
        ),
    };
    let head = format!("streamsan: CAUSE: {} ({size})", cause.kind);
    let _ = writeln!(out, "{}\n{}", style.paint(Ink::Faint, &"=".repeat(80)), style.paint(Ink::Alarm, &head));
    let _ = writeln!(out, "{}", cause.missing);
    for mend in &cause.mend {
        let mends = matches!(cause.kind, CauseKind::KernelRange | CauseKind::OutlivedMemory | CauseKind::MissingWrite);
        let verb = if mends { "mend it" } else { "order all of it" };
        let _ = writeln!(out, "  This would {verb} ({}):", mend.api);
        for line in &mend.lines {
            let _ = writeln!(out, "      {}", style.paint(Ink::Code, line));
        }
    }
    let tried = if cause.tried { "yes" } else { "no" };
    let machine =
        format!("[streamsan cause={} kind={} findings={findings} tried={tried}]", cause.fingerprint, cause.kind);
    if !style.no_machine_lines {
        let _ = writeln!(out, "\n{}", style.paint(Ink::Faint, &machine));
    }
    out
}
