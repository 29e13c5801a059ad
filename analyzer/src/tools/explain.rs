//! `streamsan explain`: what kernels read and write, in words, and how precisely that is known.
//!
//! Owns the wording. The crate `kernels` does the analysis.

use std::fmt::Write as _;

use kernels::{Explained, explain, explain_json};

use crate::report::escape::harmless;
use crate::symbols::demangle;

/// Maximum number of source lines listed for one pointer.
const MAX_LINES: usize = 12;

/// The text (or JSON) about the kernels of a file; `only`: those whose mangled name contains it.
/// The error is a line for the user.
pub fn describe(path: &str, only: Option<&str>, json: bool) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let kernels =
        explain(&bytes, only, crate::launches::image_reader::cache()).map_err(|error| format!("{path}: {error}"))?;
    if kernels.is_empty() {
        return Err(match only {
            Some(name) => format!("{path}: no kernel whose name contains '{name}'"),
            None => format!("{path}: no kernel found"),
        });
    }
    if json {
        return Ok(format!("{:#}\n", explain_json(&kernels)));
    }
    Ok(kernels.iter().map(words).collect())
}

fn because(kernel: &Explained, gap: kernels::Gap) -> String {
    let place = if kernel.ptx { format!("line {}", gap.at) } else { format!("instruction {:#x}", gap.at) };
    format!(" ({}, {place})", gap.reason.words())
}

/// The source lines of the accesses through some words, each once; empty when the code has no line
/// table.
fn lines(kernel: &Explained, through: impl Fn(&[u16]) -> bool) -> String {
    let mut places: Vec<(String, &str)> = Vec::new();
    for access in kernel.accesses.iter().filter(|a| through(&a.words)) {
        let verb = match access.kind {
            kernels::AccessKind::Read => "reads",
            kernels::AccessKind::Write => "writes",
            kernels::AccessKind::Atomic => "updates",
        };
        let file = harmless(access.line.file.rsplit('/').next().unwrap_or_default());
        let place = (format!("{file}:{}", access.line.line), verb);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let more = places.len().saturating_sub(MAX_LINES);
    let list: Vec<String> = places.iter().take(MAX_LINES).map(|(at, verb)| format!("{at} ({verb})")).collect();
    match (list.len(), more) {
        (0, _) => String::new(),
        (_, 0) => format!("    at {}\n", list.join(", ")),
        (_, more) => format!("    at {} and {more} more\n", list.join(", ")),
    }
}

fn words(kernel: &Explained) -> String {
    let mut text = format!("{} ({})\n", harmless(&demangle(&kernel.name)), kernel.arch);
    let summary = match &kernel.summary {
        Ok(summary) => summary,
        Err(why) => {
            let _ =
                writeln!(text, "  not known: {why}; every pointer among its parameters counts as read and written\n");
            return text;
        }
    };
    if summary.words().is_empty() {
        text.push_str("  touches no memory through its parameters\n");
    }
    for word in summary.words() {
        let mut verbs = Vec::new();
        for (does, verb) in [(word.reads, "reads"), (word.writes, "writes"), (word.atomic, "updates atomically")] {
            if does {
                verbs.push(verb);
            }
        }
        let extent = match word.extent {
            kernels::WordExtent::Affine => "the bytes follow from the launch",
            kernels::WordExtent::Unknown => "how many bytes is not known",
        };
        let why = word.why.map_or_else(String::new, |gap| because(kernel, gap));
        let _ =
            writeln!(text, "  through the pointer at byte {:<4} {}; {extent}{why}", word.offset, verbs.join(" and "));
        text.push_str(&lines(kernel, |words| words.contains(&word.offset)));
    }
    let indirect = summary.indirect();
    if indirect.any() {
        let mut verbs = Vec::new();
        for (does, verb) in [(indirect.reads, "reads"), (indirect.writes, "writes"), (indirect.atomic, "updates")] {
            if does {
                verbs.push(verb);
            }
        }
        let verbs = verbs.join(" and ");
        let why = indirect.why.map_or_else(String::new, |gap| because(kernel, gap));
        let _ = writeln!(
            text,
            "  {verbs} through addresses that come out of memory, textures or tensor maps: not followed{why}"
        );
        text.push_str(&lines(kernel, <[u16]>::is_empty));
    }
    if summary.waits_for_dependency().waits {
        text.push_str("  waits for the grids it depends on (programmatic dependent launch)\n");
    }
    text.push('\n');
    text
}
