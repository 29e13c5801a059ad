//! A graph that names memory which has ended, as text.
//!
//! Owns the wording of its paragraphs: the node, the free, the memory, and what is there now.

use super::access_text::{allocation, print_stack, side};
use super::text::{Ink, Style, short_kernel};
use crate::model::{Actor, Finding, StaleMemory};
use std::fmt::Write as _;

/// The paragraphs of the node, the free and the memory.
pub(super) fn paragraphs(out: &mut String, style: Style, f: &Finding, stale: &StaleMemory) {
    side(out, style, "Node of the graph", &f.access, f);
    if !stale.instantiated.is_empty() {
        // Behind the stack of the launch, before the empty line.
        out.truncate(out.trim_end_matches('\n').len() + 1);
        let _ = writeln!(out, "  the graph was instantiated at");
        print_stack(out, style, &stale.instantiated);
        out.push('\n');
    }
    side(out, style, "Free", &f.previous, f);
    if let Some(memory) = &f.allocation {
        allocation(out, style, "The memory", memory, f);
    }
    match &stale.now {
        Some(now) => allocation(out, style, "At its address now", now, f),
        None => {
            let _ = writeln!(out, "{}: nothing that was seen\n", style.paint(Ink::Title, "At its address now"));
        }
    }
}

/// One line that says what happened.
pub(super) fn headline(f: &Finding) -> String {
    let node = f.access.node.map_or_else(String::new, |node| format!(" {node}"));
    let what = match (&f.access.kernel, f.access.actor) {
        (Some(kernel), _) => format!("kernel {}", short_kernel(kernel)),
        (None, Actor::Copy) => "a copy".to_owned(),
        (None, Actor::Set) => "a fill".to_owned(),
        (None, _) => "a value in memory".to_owned(),
    };
    let does = match f.access.guessed {
        true => "may use",
        false if f.access.verb.name().starts_with("write") || f.access.verb.name().starts_with("update") => "writes",
        false => "reads",
    };
    format!("Node{node} of a launched graph, {what}, {does} memory that was freed before the launch")
}
