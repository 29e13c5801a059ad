//! Annotations on the lines of a pull request: GitHub's workflow commands (`::error
//! file=...,line=...::text`).
//!
//! Owns their escaping.

pub use super::workspace::Workspace;
use crate::call_site::site_frame;
use crate::format::{Event, Reporter, Verdict, closing, programs, text};
use crate::model::{Breach, Finding};
use crate::program::Program;
use std::fmt::Write as _;
use symbols::frame::Frame;

/// Prints annotations: errors for findings that fail the run, warnings for others.
pub struct Annotations {
    workspace: Workspace,
    out: String,
}

impl Annotations {
    /// Annotations of files in this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace, out: String::new() }
    }

    fn finding(&mut self, f: &Finding, level: &str) {
        // The line to annotate: of this access, otherwise of the previous one, otherwise of the
        // allocation.
        let memory = f.allocation.as_ref().map_or(&[][..], |m| &m.stack);
        let stacks = [&f.access.stack[..], &f.previous.stack, memory];
        let title = format!("StreamSan: {} ({})", f.rule(), f.confidence.name());
        let plain = text::finding(f, text::Style::default());
        self.annotate(level, stacks.into_iter().find_map(site_frame), &title, &plain);
    }

    fn breach(&mut self, b: &Breach, level: &str) {
        let title = format!("StreamSan: {} ({})", b.kind.name(), b.confidence.name());
        self.annotate(level, site_frame(&b.side.stack), &title, &text::breach(b, text::Style::default()));
    }

    fn annotate(&mut self, level: &str, frame: Option<&Frame>, title: &str, plain: &str) {
        let mut properties = String::new();
        if let Some(Frame { file: Some(file), line, .. }) = frame {
            let file = self.workspace.relative(file).unwrap_or_else(|| file.clone());
            let _ = write!(properties, "file={},", property(&file));
            if let Some(line) = line {
                let _ = write!(properties, "line={line},");
            }
        }
        let body = plain.lines().skip(2).collect::<Vec<_>>().join("\n");
        let _ = writeln!(self.out, "::{level} {properties}title={}::{}", property(title), data(&body));
    }
}

impl Reporter for Annotations {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Finding(f, Verdict::Fails) => self.finding(f, "error"),
            Event::Finding(f, Verdict::Passes) => self.finding(f, "warning"),
            Event::Breach(b, Verdict::Fails) => self.breach(b, "error"),
            Event::Breach(b, Verdict::Passes) => self.breach(b, "warning"),
            Event::End(report) => {
                for why in closing::incomplete(&report.coverage) {
                    let _ = writeln!(self.out, "::error title=StreamSan::{}", data(&why));
                }
                for what in &report.coverage.mispredicted {
                    let what = format!("a prediction is wrong: {what}");
                    let _ = writeln!(self.out, "::error title=StreamSan::{}", data(&what));
                }
                for line in programs::unsettled(&report.programs) {
                    let _ = writeln!(self.out, "::notice title=StreamSan::{}", data(&line));
                }
                for line in report.programs.iter().filter_map(Program::error) {
                    let _ = writeln!(self.out, "::error title=StreamSan::{}", data(&line));
                }
            }
            Event::Begin(_) | Event::Finding(_, Verdict::SetAside) | Event::Breach(_, Verdict::SetAside) => {}
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out).into_bytes()
    }
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_escaped() {
        assert_eq!(data("100%\nx::y"), "100%25%0Ax::y");
        assert_eq!(property("a,b:c\n"), "a%2Cb%3Ac%0A");
    }
}
