//! Annotations on the lines of a pull request: GitHub's workflow commands (`::error
//! file=...,line=...::text`).
//!
//! Owns their escaping, and the mapping from the compiler's path of a file to its path in the
//! repository.

use super::text;
use crate::call_site::site_frame;
use crate::format::{Event, Reporter, Verdict, closing, programs};
use crate::model::{Breach, Finding};
use crate::program::Program;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use symbols::frame::Frame;

/// The folder that paths in annotations are relative to.
#[derive(Clone, Debug, Default)]
pub struct Workspace(Option<PathBuf>);

impl Workspace {
    /// `GITHUB_WORKSPACE`, otherwise the current folder.
    pub(crate) fn from_environment() -> Self {
        let given = std::env::var_os("GITHUB_WORKSPACE").filter(|v| !v.is_empty()).map(PathBuf::from);
        Self(given.or_else(|| std::env::current_dir().ok()))
    }

    /// This folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(Some(folder.into()))
    }

    /// The folder.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// The path relative to the workspace, if the file lies there. A program built elsewhere (in a
    /// container) names folders that do not exist here: then the longest suffix of the path that
    /// exists in the workspace is used.
    pub(crate) fn relative(&self, file: &str) -> Option<String> {
        let root = self.0.as_deref()?;
        let path = Path::new(file);
        if path.is_relative() {
            return Some(file.to_string());
        }
        if let Ok(inside) = path.strip_prefix(root) {
            return Some(inside.to_string_lossy().into_owned());
        }
        if path.exists() {
            return None;
        }
        let parts: Vec<_> = path.components().skip(1).collect();
        let mut ends = (1..parts.len()).map(|from| parts[from..].iter().collect::<PathBuf>());
        ends.find(|end| root.join(end).is_file()).map(|end| end.to_string_lossy().into_owned())
    }
}

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
        let title = format!("StreamSan: {} ({})", f.hazard.name(), f.confidence.name());
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

    #[test]
    fn paths_are_found_in_the_workspace() {
        let root = std::env::temp_dir().join(format!("streamsan-workspace-{}", std::process::id()));
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::write(root.join("src/a.cu"), "").unwrap();
        let w = Workspace::new(&root);
        assert_eq!(w.relative(&root.join("src/a.cu").to_string_lossy()).as_deref(), Some("src/a.cu"));
        assert_eq!(w.relative("/nowhere/build/src/a.cu").as_deref(), Some("src/a.cu"), "built elsewhere");
        assert_eq!(w.relative("/nowhere/b.cu"), None);
        assert_eq!(w.relative("/proc/self/exe"), None, "a file outside");
        assert_eq!(w.relative("src/a.cu").as_deref(), Some("src/a.cu"));
        std::fs::remove_dir_all(root).unwrap();
    }
}
