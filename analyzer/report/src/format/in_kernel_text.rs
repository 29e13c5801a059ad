//! A race of two threads of one kernel, or a read of memory that nothing wrote, as text.
//!
//! Owns the wording of its paragraphs, which are those of other races: this access, the previous
//! access, the memory; then where the kernel was launched.

use super::access_text::{allocation, print_stack};
use super::text::{Ink, Style, short_kernel};
use crate::model::{Finding, InKernel, Side, ThreadPlace};
use crate::words::{FindingKind, KernelScope, counted};
use detect::race::Hazard;
use std::fmt::Write as _;
use symbols::stack_text;

/// The paragraphs of the two sides, the memory and the launch.
pub(super) fn paragraphs(out: &mut String, style: Style, f: &Finding, k: &InKernel) {
    side(out, style, "Access", &f.access, &k.threads[1], f, k);
    if f.kind != FindingKind::UninitializedRead {
        side(out, style, "Previous access", &f.previous, &k.threads[0], f, k);
    }
    let title = style.paint(Ink::Title, "Memory");
    match (&k.shared, &f.allocation) {
        _ if k.registers => {
            let _ = writeln!(out, "{title}: registers of a product of a warp group (wgmma)\n");
        }
        (Some(shared), _) => {
            let name = if shared.name.is_empty() { "shared memory" } else { &shared.name };
            let what = match shared.size {
                0 => name.to_owned(),
                size => format!("{name}, {size} bytes from byte {} on of the block's shared memory", shared.offset),
            };
            let _ = writeln!(out, "{title}: {what}\n");
        }
        (None, Some(memory)) => allocation(out, style, "Memory", memory, f),
        (None, None) if k.variable.is_some() => {
            let (name, size) = k.variable.as_ref().map_or(("", 0), |variable| (variable.name.as_str(), variable.size));
            let _ = writeln!(out, "{title}: variable {name}, {size} bytes of global memory\n");
        }
        (None, None) => {
            let _ = writeln!(out, "{title}: global memory at {:#x}, of no allocation that was seen\n", k.address);
        }
    }
    let s = &f.access;
    let shape = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    let kernel = stack_text::shortened(s.kernel.as_deref().unwrap_or_default(), 240);
    let title = style.paint(Ink::Title, "Launch");
    let times = if k.launches > 1 {
        format!(", the first of {}", counted(k.launches, "launch", "launches"))
    } else {
        String::new()
    };
    let _ = writeln!(out, "{title}: kernel {kernel}, grid {}, block {}{times}", shape(k.grid), shape(k.block));
    let _ = write!(out, "  on {}", s.stream.long);
    if let Some(node) = s.node {
        let _ = write!(out, ", as node {node} of a graph launched there");
    }
    if let Some((tid, name)) = &s.thread {
        let _ = write!(out, ", submitted by host thread {tid}");
        if !name.is_empty() {
            let _ = write!(out, " ({name})");
        }
    }
    if !s.regions.is_empty() {
        let _ = write!(out, ", in {}", s.regions.join(" > "));
    }
    out.push('\n');
    print_stack(out, style, &s.launched);
    if !k.graph.is_empty() {
        let _ = writeln!(out, "  the graph was launched at");
        print_stack(out, style, &k.graph);
    }
    out.push('\n');
}

fn side(out: &mut String, style: Style, title: &str, s: &Side, thread: &ThreadPlace, f: &Finding, k: &InKernel) {
    let byte = match (&k.shared, &f.allocation) {
        _ if k.registers => "a register of a product".to_owned(),
        (Some(shared), _) if shared.size > 0 => format!("byte {} of {}", shared.byte, shared.words()),
        (Some(shared), _) => format!("byte {} of the block's {}", k.address, shared.words()),
        (None, Some(memory)) => format!("byte {} of {}", f.from, memory.size),
        (None, None) => match &k.variable {
            Some(variable) => format!("byte {} of variable {}", variable.byte, variable.name),
            None => format!("the byte at {:#x}", k.address),
        },
    };
    let how = match (thread.asynchronous, thread.scope) {
        _ if k.registers => "",
        (true, _) => ", by an asynchronous copy",
        (_, Some(KernelScope::Block)) => ", for the threads of its block",
        (_, Some(KernelScope::Cluster)) => ", for the threads of its cluster",
        (_, Some(_)) => ", for all threads",
        (_, None) => "",
    };
    let title = style.paint(Ink::Title, title);
    let _ = match thread.ends {
        true => writeln!(out, "{title}: {} ends, and {byte} with its block", thread.words()),
        false => writeln!(out, "{title}: {} {} {byte}{how}", thread.words(), s.verb),
    };
    print_stack(out, style, &s.stack);
    out.push('\n');
}

/// One line that says what happened.
pub(super) fn headline(f: &Finding, k: &InKernel) -> String {
    let kernel = f.access.kernel.as_deref().map_or_else(String::new, short_kernel);
    let memory = match (&k.shared, &f.allocation) {
        (Some(shared), _) => shared.words(),
        _ if k.variable.is_some() => k.variable.as_ref().map_or_else(String::new, |v| format!("variable {}", v.name)),
        (None, Some(memory)) if !memory.name.is_empty() => memory.name.clone(),
        (None, _) => "global memory".to_owned(),
    };
    if f.kind == FindingKind::UninitializedRead {
        let verb = f.access.verb;
        return format!("A thread of kernel {kernel} {verb} bytes of {memory} that nothing has written");
    }
    let does = match f.hazard {
        Hazard::WriteAfterWrite => "both write it",
        Hazard::ReadAfterWrite | Hazard::WriteAfterRead => "one reads what the other writes",
    };
    let [one, other] = &k.threads;
    if k.registers {
        return format!("A thread of kernel {kernel} uses a register of a product of its warp group: {does}");
    }
    if one.ends || other.ends {
        return format!(
            "A block of a cluster may end while another one accesses its shared memory, in kernel {kernel}: {memory}"
        );
    }
    if (one.block, one.thread) == (other.block, other.thread) && (one.asynchronous || other.asynchronous) {
        return format!(
            "A thread of kernel {kernel} races with its own asynchronous copy for a byte of {memory}: {does}"
        );
    }
    if k.two_grids {
        return format!(
            "A thread of kernel {kernel} and one of another grid of that launch race for a byte of {memory}: {does}"
        );
    }
    let apart = if one.block == other.block { "one block" } else { "two blocks" };
    format!("Two threads of {apart} of kernel {kernel} race for a byte of {memory}: {does}")
}
