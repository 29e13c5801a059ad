//! A broken rule as text: what happens, how often, by which rule it is forbidden, and where.
//!
//! Owns the wording and the layout. Findings and the whole report are [`super::text`].

use super::access_text::print_stack;
use super::text::{Ink, Style};
use crate::format::programs;
use crate::gate::forbidden::RuleKind;
use crate::model::{Breach, Side};
use crate::words::{LaneKind, counted};
use std::fmt::Write as _;
use symbols::stack_text;

/// One broken rule.
pub(crate) fn breach(b: &Breach, style: Style) -> String {
    let mut out = String::new();
    let rule = style.paint(Ink::Faint, &"=".repeat(80));
    let head =
        format!("streamsan: FORBIDDEN: {} ({})", b.kind.name().trim_start_matches("forbidden-"), b.confidence.name());
    let _ = writeln!(out, "{rule}\n{}\n{}.", style.paint(Ink::Alarm, &head), b.text);
    if !b.programs.is_empty() {
        let _ = writeln!(out, "In {}.", programs::listed(&b.programs));
    } else if style.processes {
        let others = b.processes.len().saturating_sub(1) as u64;
        let others = if others > 0 { format!(" and {}", counted(others, "other", "others")) } else { String::new() };
        let _ = writeln!(out, "In {}{others}.", b.origin);
    }
    let times = counted(b.count, "time", "times");
    let by = submitter(&b.side);
    let on = if b.side.stream.kind == LaneKind::Host { String::new() } else { format!("on {}", b.side.stream.long) };
    let _ = writeln!(out, "\n{}: {times}, forbidden by --forbid {}", style.paint(Ink::Title, "Call"), b.rule);
    let _ = writeln!(out, "  {}", [on, by].iter().filter(|t| !t.is_empty()).cloned().collect::<Vec<_>>().join(", "));
    if let Some(operator) = &b.side.operator {
        let _ = writeln!(out, "  in the operator {}", stack_text::shortened(operator, 240));
    }
    print_stack(&mut out, style, &b.side.stack);
    if b.kind == RuleKind::UnnamedStream && !b.side.stream.stack.is_empty() {
        let _ = writeln!(out, "  the stream was made at");
        print_stack(&mut out, style, &b.side.stream.stack);
    }
    let call = if b.side.call.is_empty() { "-" } else { &b.side.call };
    let machine = format!(
        "[streamsan forbidden={} confidence={} call={call} stream={} count={} pid={} fingerprint={}]",
        b.kind.name().trim_start_matches("forbidden-"),
        b.confidence.name(),
        b.side.stream.id,
        b.count,
        b.pid,
        b.fingerprint
    );
    let _ = writeln!(out, "\n{}", style.paint(Ink::Faint, &machine));
    out
}

/// The thread that has made a call, and the ranges that it was in.
fn submitter(s: &Side) -> String {
    let thread = s.thread.as_ref().map(|(tid, name)| match name.as_str() {
        "" => format!("by host thread {tid}"),
        name => format!("by host thread {tid} ({name})"),
    });
    let regions = (!s.regions.is_empty()).then(|| format!("in {}", s.regions.join(" > ")));
    thread.into_iter().chain(regions).collect::<Vec<_>>().join(", ")
}
