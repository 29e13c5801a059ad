//! The report as Markdown, for the summary of a job or a comment on a merge request.
//!
//! Owns the table of findings, the links to their lines, and the escaping. The text under the table
//! is the coverage as every report has it. At most as many findings are listed as `--max-findings`
//! allows: the summary of a step on GitHub has at most 1 MiB (GitHub's manual, "Workflow commands",
//! "Step isolation and limits").

use super::workspace::Workspace;
use crate::call_site::{site, site_frame};
use crate::format::finding_pages;
use crate::format::json::fidelity;
use crate::format::short;
use crate::format::{Event, Reporter, Verdict, closing};
use crate::model::{Breach, Finding, Report};
use crate::words::counted;
use std::fmt::Write as _;
use symbols::frame::Frame;

/// Causes whose mending lines are written.
const MOST_CAUSES: usize = 20;

/// Writes Markdown.
pub struct Markdown {
    workspace: Workspace,
    most: u64,
    listed: u64,
    left_out: u64,
    rows: String,
    out: String,
}

impl Markdown {
    /// A table of at most `most` findings, with links to the lines of this workspace.
    pub fn new(workspace: Workspace, most: u64) -> Self {
        Self { workspace, most, listed: 0, left_out: 0, rows: String::new(), out: String::new() }
    }

    /// The place of a stack, with a link if the file is in the repository.
    fn place(&self, stack: &[Frame]) -> String {
        let Some(name) = site(stack) else { return String::new() };
        let name = escaped(&name);
        let frame = site_frame(stack);
        let link = frame.and_then(|frame| self.workspace.link(frame.file.as_deref()?, frame.line));
        link.map_or(name.clone(), |link| format!("[{name}]({link})"))
    }

    /// Whether a row may be added.
    fn has_room(&mut self) -> bool {
        let has_room = self.listed < self.most;
        *(if has_room { &mut self.listed } else { &mut self.left_out }) += 1;
        has_room
    }

    fn finding(&mut self, f: &Finding, verdict: Verdict) {
        if !self.has_room() {
            return;
        }
        let latent = if f.latent { ", latent" } else { "" };
        let name = format!("**{}** ({}{latent})", f.rule(), f.confidence.name());
        let sides = [&f.access, &f.previous].map(|side| {
            let at = self.place(&side.stack);
            let what = escaped(&short::what(side));
            if at.is_empty() { what } else { format!("{what}<br>{at}") }
        });
        let [access, previous] = sides;
        let _ = writeln!(
            self.rows,
            "| {name} | {access} | {previous} | {} | {} | `{}` |",
            f.count,
            decision(verdict),
            f.fingerprint
        );
    }

    fn breach(&mut self, b: &Breach, verdict: Verdict) {
        if !self.has_room() {
            return;
        }
        let name = format!("**{}** ({})", b.kind.name(), b.confidence.name());
        let (text, at) = (escaped(&b.text), self.place(&b.side.stack));
        let _ = writeln!(
            self.rows,
            "| {name} | {text}<br>{at} | | {} | {} | `{}` |",
            b.count,
            decision(verdict),
            b.fingerprint
        );
    }

    fn whole(&mut self, report: &Report) {
        let closing_line = closing::summary(report);
        let summary = closing_line.split_once("SUMMARY: ").map_or(closing_line.as_str(), |(_, rest)| rest);
        let _ = writeln!(self.out, "### StreamSan: {}\n", escaped(summary));
        let coverage = closing::coverage(report);
        // What takes the meaning from a green run comes first.
        for line in coverage.lines().filter_map(|line| line.strip_prefix("streamsan: ERROR: ")) {
            let _ = writeln!(self.out, "**Error:** {}\n", escaped(line));
        }
        if !report.coverage.any_work() {
            self.out.push_str("No CUDA work was seen, so nothing was checked.\n\n");
        }
        if !self.rows.is_empty() {
            self.out.push_str("| finding | access | previous access | times | decision | fingerprint |\n");
            self.out.push_str("|---|---|---|--:|---|---|\n");
            self.out.push_str(&self.rows);
            self.out.push('\n');
        }
        if self.left_out > 0 {
            let what = counted(self.left_out, "other finding is", "other findings are");
            let _ = writeln!(self.out, "{what} not listed (see `--max-findings`).\n");
        }
        let causes = report.causes_of(report.failures());
        for cause in causes.iter().take(MOST_CAUSES) {
            let Some(mend) = cause.mend.iter().find(|mend| !mend.lines.is_empty()) else { continue };
            let _ = writeln!(self.out, "{}\n\n{}", escaped(&cause.missing), fenced(&mend.lines.join("\n")));
        }
        if causes.len() > MOST_CAUSES {
            let what = counted((causes.len() - MOST_CAUSES) as u64, "other cause is", "other causes are");
            let _ = writeln!(self.out, "{what} not listed.\n");
        }
        for (command, address) in finding_pages::further(report) {
            let address = address.map_or_else(String::new, |address| format!(" ([page]({address}))"));
            let _ = writeln!(self.out, "More: `{command}`{address}\n");
        }
        let _ = writeln!(self.out, "Fidelity: {}\n", escaped(&fidelity::line(&report.coverage)));
        let trial = closing::trial(report);
        let text = format!("{trial}{coverage}");
        let _ = write!(self.out, "<details><summary>Coverage</summary>\n\n{}\n</details>\n", fenced(text.trim_end()));
    }
}

impl Reporter for Markdown {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(_) => {}
            Event::Finding(f, verdict) => self.finding(f, verdict),
            Event::Breach(b, verdict) => self.breach(b, verdict),
            Event::End(report) => self.whole(report),
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out).into_bytes()
    }
}

fn decision(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fails => "fails",
        Verdict::Passes => "passes",
        Verdict::SetAside => "set aside",
    }
}

/// Punctuation that means nothing within a line: a parenthesis only behind a bracket, which is
/// escaped.
const HARMLESS: &str = ",.-/:;()='\"?%+";

/// Text that Markdown shows as it is. Any punctuation of ASCII may be escaped (CommonMark,
/// "Backslash escapes").
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && !HARMLESS.contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A block of code. Its fence is longer than any run of backticks in the text.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}text\n{text}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_a_cell_or_a_block() {
        assert_eq!(escaped("a|b<c>[d](e)`f`_$x, y.cu:3"), r"a\|b\<c\>\[d\](e)\`f\`\_\$x, y.cu:3");
        assert_eq!(fenced("a"), "```text\na\n```\n");
        assert_eq!(fenced("```\n````"), "`````text\n```\n````\n`````\n");
    }
}
