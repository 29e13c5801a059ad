//! The sides of a finding as text: an access with its stack, and the memory that it touches.
//!
//! Owns the wording of these paragraphs. What stands around them is [`super::text`]'s.

use super::text::{Ink, Style};
use crate::call_site::site_frame;
use crate::model::{Actor, AllocationInfo, Finding, Side};
use crate::words::LaneKind;
use detect::memory::Precision;
use std::fmt::Write as _;
use symbols::frame::{Frame, FrameKind};
use symbols::stack_text;
use symbols::stack_text::Line;

/// Frames of a stack that are printed.
const MAX_FRAMES: usize = 24;

/// How the program launched a kernel: as it is written there, if the line shows it.
fn launched_by(s: &Side) -> &str {
    let written = |f: &Frame| f.source.as_deref().is_some_and(|line| line.contains("<<<"));
    let through_runtime = |f: &Frame| f.kind == FrameKind::Folded && f.function.contains("cudart");
    let names = s.call.strip_suffix("Ex").unwrap_or(&s.call);
    match names {
        "cudaLaunchKernel" | "cuLaunchKernel" if site_frame(&s.stack).is_some_and(written) => "<<<>>>",
        "cuLaunchKernel" if s.stack.first().is_some_and(through_runtime) => "cudaLaunchKernel",
        _ => &s.call,
    }
}

/// Whether a library made the access for the host, during a call.
pub(super) fn is_in_call(s: &Side) -> bool {
    s.actor == Actor::Message && s.stream.kind == LaneKind::Host
}

/// One side of a finding: what it is, where it runs, and its stack.
pub(super) fn side(out: &mut String, style: Style, title: &str, s: &Side, f: &Finding) {
    let kernel = s.kernel.as_deref().map(|kernel| stack_text::shortened(kernel, 240));
    let what = match (&kernel, s.call.as_str()) {
        (Some(kernel), "") => format!("kernel {kernel}"),
        (Some(kernel), _) => format!("kernel {kernel}, launched by {},", launched_by(s)),
        (None, "") => match s.actor {
            Actor::Copy => "a copy".to_string(),
            Actor::Set => "a fill".to_string(),
            Actor::Host => "the host".to_string(),
            _ => "an operation".to_string(),
        },
        (None, call) => call.to_string(),
    };
    let verb = match s.verb {
        _ if s.guessed => "may read or write",
        _ if s.does_both => "reads and writes",
        verb => verb.name(),
    };
    let _ = writeln!(out, "{}: {what} {verb} {}", style.paint(Ink::Title, title), bytes(s, f));
    let mut by = if s.actor == Actor::Host || is_in_call(s) { String::new() } else { format!("on {}", s.stream.long) };
    if !s.seen_by.is_empty() {
        let _ = write!(by, "at some time before {}, which found other bytes there than the previous access", s.seen_by);
    }
    if let Some(node) = s.node {
        let _ = write!(by, ", as node {node} of a graph launched there");
    }
    if let Some((tid, name)) = &s.thread {
        let does = match (s.actor, s.seen_by.is_empty()) {
            (Actor::Host, true) => "in",
            _ if is_in_call(s) => "in",
            (Actor::Host, false) => ", called by",
            _ => ", submitted by",
        };
        let _ = write!(by, "{does} host thread {tid}");
        if !name.is_empty() {
            let _ = write!(by, " ({name})");
        }
        if let Some(pid) = s.process {
            let _ = write!(by, " of process {pid}");
        }
    }
    if !s.through.is_empty() {
        let _ = write!(by, ", through the pointer in {}", s.through);
    }
    if !s.regions.is_empty() {
        let _ = write!(by, ", in {}", s.regions.join(" > "));
    }
    let _ = writeln!(out, "  {by}");
    if !s.encoded.is_empty() {
        let _ = writeln!(out, "  by a tensor map encoded at {}", s.encoded.join(" or "));
    }
    if let Some(inside) = &s.inside {
        let file = inside.file.rsplit('/').next().unwrap_or_default();
        let source = inside.source.as_ref().map_or_else(String::new, |text| format!(": {text}"));
        let _ = writeln!(out, "  in the kernel, first at {file}:{}{source}", inside.line);
    }
    if let Some(operator) = &s.operator {
        let _ = writeln!(out, "  in the operator {}", stack_text::shortened(operator, 240));
    }
    print_stack(out, style, &s.stack);
    if !s.started.is_empty() {
        let _ = writeln!(out, "  in the backward pass that was started at");
        print_stack(out, style, &s.started);
    }
    if !s.launched.is_empty() {
        let _ = writeln!(out, "  the graph was launched at");
        print_stack(out, style, &s.launched);
    }
    out.push('\n');
}

fn bytes(s: &Side, f: &Finding) -> String {
    let of = f.allocation.as_ref().map_or_else(String::new, |m| format!(" of {}{}", m.size, levels(s, m)));
    let at = |n: u64| if f.allocation.is_some() { n.to_string() } else { format!("{n:#x}") };
    let gaps = if s.gaps.is_empty() { String::new() } else { format!(" ({})", s.gaps) };
    match s.precision {
        Precision::Exact if f.allocation.as_ref().is_some_and(|m| s.from == 0 && s.to == m.size) => {
            format!("all {} bytes", s.to)
        }
        Precision::Exact => format!("bytes {} to {}{of}{gaps}", at(s.from), at(s.to.saturating_sub(1))),
        Precision::Bound => format!("some of the bytes {} to {}{of}{gaps}", at(s.from), at(s.to.saturating_sub(1))),
        Precision::Unknown => format!("from byte {}{of} on (how many is unknown)", at(s.from)),
    }
}

/// The levels of a mipmapped array that one side touches.
fn levels(s: &Side, m: &AllocationInfo) -> String {
    match m.levels_of(s.from, s.to) {
        Some((first, last)) if first == last => format!(", level {first}"),
        Some((first, last)) => format!(", levels {first} to {last}"),
        None => String::new(),
    }
}

/// The memory of a finding, or what the previous access took it for.
pub(super) fn allocation(out: &mut String, style: Style, title: &str, m: &AllocationInfo, f: &Finding) {
    let by = if m.call.is_empty() { String::new() } else { format!(", from {}", m.call) };
    let title = style.paint(Ink::Title, title);
    let _ = writeln!(out, "{title}: {} bytes of {} at {:#x}{by}", m.size, m.what(), m.address);
    match &f.allocation {
        Some(first) if !std::ptr::eq(first, m) && first.stack == m.stack && !m.stack.is_empty() => {
            let _ = writeln!(out, "  handed out at the same place, and given back before that");
        }
        _ => print_stack(out, style, &m.stack),
    }
    if !m.freed.is_empty() && m.freed != f.access.stack && f.stale.is_none() {
        let _ = writeln!(out, "  freed at");
        print_stack(out, style, &m.freed);
    }
    out.push('\n');
}

/// A stack, a frame a line.
pub(super) fn print_stack(out: &mut String, style: Style, frames: &[Frame]) {
    if frames.is_empty() {
        let _ = writeln!(out, "    {}", style.paint(Ink::Faint, "(no stack recorded)"));
    }
    let lines = stack_text::lines(frames);
    for (i, line) in lines.iter().take(MAX_FRAMES).enumerate() {
        match line {
            Line::Folded(text) => {
                let _ = writeln!(out, "    {}", style.paint(Ink::Faint, &format!("    ... {text}")));
            }
            Line::Frame { name, place, inlined, source } => {
                let inlined = if *inlined { "  [inlined]" } else { "" };
                let _ = writeln!(out, "    #{i:<2} {name}{}{inlined}", style.linked(place));
                if let Some(source) = source {
                    let _ = writeln!(out, "          {}", style.paint(Ink::Faint, source));
                }
            }
        }
    }
    if lines.len() > MAX_FRAMES {
        let _ = writeln!(out, "        ... {} more", lines.len() - MAX_FRAMES);
    }
}
