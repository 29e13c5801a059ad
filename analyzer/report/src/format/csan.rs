//! The format of PyTorch's CUDA Sanitizer, for scripts that parse its output (`--format csan`).
//!
//! Owns the lines that are the same: the rule, data pointer and streams in decimal, the operator,
//! what is read or written, Python frames outermost first, the count. What that tool does not know
//! (copies, kernels of other libraries) takes the place of an operator. Coverage and summary follow
//! in StreamSan's own words.

use crate::format::{Event, Reporter, Verdict};
use crate::format::{closing, short};
use crate::model::{Finding, Report, Side};
use crate::words::Verb;
use std::fmt::Write as _;
use symbols::frame::{Frame, FrameKind};

/// Writes findings in that format.
#[derive(Default)]
pub struct Csan {
    quiet: bool,
    out: String,
    count: u64,
    rules: String,
}

impl Reporter for Csan {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(_) | Event::Finding(_, Verdict::SetAside) | Event::Breach(_, Verdict::SetAside) => {}
            Event::Finding(f, _) => {
                self.count += 1;
                self.out.push_str(&finding(f));
            }
            // That tool has no rules.
            Event::Breach(b, _) => self.rules.push_str(&short::breach(b)),
            Event::End(report) => self.end(report),
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out).into_bytes()
    }
}

impl Csan {
    /// With `quiet`, findings and errors only.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, ..Self::default() }
    }

    fn end(&mut self, report: &Report) {
        if self.count > 0 {
            let _ = writeln!(self.out, "detected {} errors", self.count);
        }
        self.out.push_str(&self.rules);
        if self.quiet {
            self.out.push_str(&closing::doubts(report));
            self.out.push_str(&closing::errors(report));
        } else {
            self.out.push_str(&closing::coverage(report));
        }
        if !self.quiet || self.count > 0 || !self.rules.is_empty() {
            let _ = writeln!(self.out, "{}", closing::summary(report));
        }
    }
}

/// One finding.
fn finding(f: &Finding) -> String {
    let pointer = f.allocation.as_ref().map_or(f.from, |memory| memory.address);
    let mut out = format!("{}\n", "=".repeat(28));
    let what = if f.stale.is_some() { "use of freed memory by a graph" } else { "data race" };
    let _ = writeln!(out, "CSAN detected a possible {what} on tensor with data pointer {pointer}");
    side(&mut out, "Access", &f.access);
    side(&mut out, "Previous access", &f.previous);
    match &f.allocation {
        Some(memory) if !memory.stack.is_empty() => {
            let _ = writeln!(out, "Tensor was allocated with stack trace:");
            stack(&mut out, &memory.stack);
        }
        _ => out.push_str("Trace for tensor allocation not found.\n"),
    }
    out
}

fn side(out: &mut String, title: &str, s: &Side) {
    let what = s.operator.as_deref().or(s.kernel.as_deref()).unwrap_or(&s.call);
    let _ = writeln!(out, "{title} by stream {} during kernel:\n{what}", s.stream.handle);
    let writes = s.does_both || !matches!(s.verb, Verb::Reads | Verb::ReadsAtomically);
    let arguments = &s.arguments;
    out.push_str(if writes { "writing to" } else { "reading from" });
    if !arguments.is_empty() {
        let _ = write!(out, " argument(s) {}", arguments.join(", "));
    }
    match (s.to_output, arguments.is_empty()) {
        (true, true) => out.push_str(" the output"),
        (true, false) => out.push_str(", and to the output"),
        (false, true) => out.push_str(" memory"),
        (false, false) => {}
    }
    out.push_str("\nWith stack trace:\n");
    stack(out, &s.stack);
    out.push('\n');
}

/// Python frames where there are any, otherwise native ones with lines; outermost first.
fn stack(out: &mut String, frames: &[Frame]) {
    let python = frames.iter().any(|f| f.kind == FrameKind::Python);
    let kind = if python { FrameKind::Python } else { FrameKind::Native };
    for frame in frames.iter().rev().filter(|f| f.kind == kind) {
        let file = frame.file.as_deref().or(frame.module.as_deref()).unwrap_or("?");
        let line = frame.line.unwrap_or(0);
        let _ = writeln!(out, "  File \"{file}\", line {line}, in {}", frame.function);
        if let Some(source) = frame.source.as_deref().map(str::trim).filter(|source| !source.is_empty()) {
            let _ = writeln!(out, "    {source}");
        }
    }
}
