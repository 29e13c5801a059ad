//! The report as GitLab's Code Quality JSON, which merge requests show beside the changed lines.
//!
//! Owns the mapping to issues (GitLab's manual, "Code Quality", "Code Quality report format"): a
//! list of objects with a description, a rule, a fingerprint, a severity, a path relative to the
//! repository and a line. The format has no place for what is set aside, and GitLab compares the
//! reports of two branches itself: suppressed findings and those of the baseline are left out. What
//! was not checked is an issue too, because an empty list means that nothing is wrong.

use super::workspace::Workspace;
use crate::call_site::site_frame;
use crate::format::{Event, Reporter, Verdict, closing, text};
use crate::model::{Breach, Finding, Report};
use crate::program::Program;
use detect::confidence::Confidence;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use symbols::frame::Frame;

/// Writes the list of issues.
pub struct CodeQuality {
    workspace: Workspace,
    issues: Vec<Value>,
    /// GitLab shows one issue for each fingerprint.
    seen: BTreeSet<String>,
}

impl CodeQuality {
    /// Issues with paths relative to this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace, issues: Vec::new(), seen: BTreeSet::new() }
    }

    fn issue(&mut self, description: &str, rule: &str, fingerprint: &str, severity: &str, place: (&str, u32)) {
        if self.seen.insert(fingerprint.to_owned()) {
            let (file, line) = place;
            let path = self.workspace.relative(file).unwrap_or_else(|| file.to_owned());
            self.issues.push(json!({
                "description": description,
                "check_name": rule,
                "fingerprint": fingerprint,
                "severity": severity,
                "location": { "path": path, "lines": { "begin": line } },
            }));
        }
    }

    fn finding(&mut self, f: &Finding, verdict: Verdict) {
        let memory = f.allocation.as_ref().map_or(&[][..], |m| &m.stack);
        let place = place([&f.access.stack[..], &f.previous.stack, memory]);
        let mut description = format!("{}. {}", text::headline(f), f.synchronisation.missing);
        if let Some(mend) = f.synchronisation.mend.iter().find(|mend| !mend.lines.is_empty()) {
            let lines = mend.lines.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>();
            description.push_str(&format!(" This would order them: {}", lines.join(" ")));
        }
        self.issue(&description, f.rule(), &f.fingerprint, severity(f.confidence, verdict), place);
    }

    fn breach(&mut self, b: &Breach, verdict: Verdict) {
        let description = format!("{}. Forbidden by --forbid {}.", b.text, b.rule);
        let place = place([&b.side.stack]);
        self.issue(&description, b.kind.name(), &b.fingerprint, severity(b.confidence, verdict), place);
    }

    /// What makes a run without findings mean less than it seems.
    fn end(&mut self, report: &Report) {
        let program = report.processes.first().map_or("", |process| process.exe.as_str());
        let program = if program.is_empty() { "streamsan" } else { program };
        let wrong = report.coverage.mispredicted.iter().map(|what| format!("a prediction is wrong: {what}"));
        let nothing = report.cuda_required && !report.coverage.any_work();
        let nothing = nothing.then(|| closing::NO_WORK.to_owned());
        let incomplete = closing::incomplete(&report.coverage).into_iter().chain(wrong).chain(nothing);
        for why in incomplete.chain(report.programs.iter().filter_map(Program::error)) {
            // Process numbers differ between runs; the sentence alone is the identity.
            let fingerprint = format!("not checked: {}", without_numbers(&why));
            self.issue(&format!("StreamSan: {why}"), "not-checked", &fingerprint, "blocker", (program, 1));
        }
    }
}

impl Reporter for CodeQuality {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(_) | Event::Finding(_, Verdict::SetAside) | Event::Breach(_, Verdict::SetAside) => {}
            Event::Finding(f, verdict) => self.finding(f, verdict),
            Event::Breach(b, verdict) => self.breach(b, verdict),
            Event::End(report) => self.end(report),
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(&self.issues).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// GitLab's word for the weight of a finding.
fn severity(confidence: Confidence, verdict: Verdict) -> &'static str {
    match (verdict, confidence) {
        (Verdict::Passes | Verdict::SetAside, _) => "info",
        (_, Confidence::Certain) => "critical",
        (_, Confidence::Likely) => "major",
        (_, Confidence::Possible) => "minor",
    }
}

/// The line to show; without lines, the file that holds the machine code.
fn place<'a, const N: usize>(stacks: [&'a [Frame]; N]) -> (&'a str, u32) {
    let written = |frame: &'a Frame| Some((frame.file.as_deref()?, frame.line.filter(|line| *line > 0).unwrap_or(1)));
    let module = |frame: &'a Frame| Some((frame.module.as_deref()?, 1));
    let line = stacks.iter().find_map(|stack| site_frame(stack).and_then(written));
    line.or_else(|| stacks.iter().find_map(|stack| stack.iter().find_map(module))).unwrap_or(("unknown place", 1))
}

fn without_numbers(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}
