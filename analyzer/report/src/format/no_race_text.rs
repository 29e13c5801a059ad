//! What the text report prints that is no race: hints, errors that CUDA answered, and broken rules.

use super::text::{Ink, Style};
use crate::breach::RuleKind;
use crate::format::access_text::print_stack;
use crate::format::programs;
use crate::model::{Breach, Fault, FaultSite, Hint, Side};
use crate::words::{LaneKind, counted};
use std::fmt::Write as _;
use symbols::stack_text;

/// One hint: a sentence, and where.
pub(super) fn hint(out: &mut String, style: Style, h: &Hint) {
    let times = if h.count > 1 { format!(" ({} times)", h.count) } else { String::new() };
    let process = if style.processes { format!(" [process {}]", h.pid) } else { String::new() };
    let head = format!("streamsan: HINT: {}{times}{process}", h.text);
    let _ = writeln!(out, "{}", style.paint(Ink::Title, &head));
    print_stack(out, style, &h.stack);
    if !h.other.is_empty() {
        let _ = writeln!(out, "  before that at");
        print_stack(out, style, &h.other);
    }
}

/// An error that ended a context.
pub(super) fn fault(out: &mut String, style: Style, f: &Fault) {
    let name = crate::fault::error_name(f.result);
    let head = format!("streamsan: CUDA ERROR: {name} ({}), answered by {}", f.result, f.call);
    let _ = writeln!(out, "{}\n{}", style.paint(Ink::Faint, &"=".repeat(80)), style.paint(Ink::Alarm, &head));
    let site = |out: &mut String, s: &FaultSite| {
        let times = if s.count > 1 { format!("{} launches of ", s.count) } else { String::new() };
        let kernel = if s.kernel.is_empty() { "a kernel".to_string() } else { stack_text::shortened(&s.kernel, 200) };
        let _ = writeln!(out, "  {times}{kernel}");
        print_stack(out, style, &s.stack);
    };
    match &f.culprit {
        _ if let Some((said, lines)) = f.explained() => {
            print_stack(out, style, &f.stack);
            let _ = writeln!(out, "{said}\nThis would join it:");
            for line in lines {
                let _ = writeln!(out, "      {}", style.paint(Ink::Code, &line));
            }
        }
        Some(culprit) => {
            let _ = writeln!(out, "{} launched on {}:", style.paint(Ink::Title, "The kernel that made it,"), f.stream);
            site(out, culprit);
        }
        None => {
            print_stack(out, style, &f.stack);
            if f.running.is_empty() {
                out.push_str("No launch was under way.\n");
            }
            for r in &f.running {
                let what = counted(r.total, "launch was", "launches were");
                let title = format!("On {} {what} under way, oldest first", r.stream);
                let _ = writeln!(out, "{}:", style.paint(Ink::Title, &title));
                r.oldest.iter().for_each(|s| site(out, s));
                let more = r.places.saturating_sub(r.oldest.len() as u64);
                if more > 0 {
                    let _ = writeln!(out, "  ... and {}", counted(more, "more place", "more places"));
                }
            }
            out.push_str("Run with --launch-blocking to learn which one made it.\n");
        }
    }
    let _ = writeln!(out, "{}", style.paint(Ink::Faint, &"=".repeat(80)));
}

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
