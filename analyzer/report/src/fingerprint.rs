//! When two findings are the same: within one run, and across runs and edits.
//!
//! Owns two notions. The *identity* distinguishes call sites exactly, with lines and addresses:
//! findings with equal identity are one. The *fingerprint* survives moved lines: it is made of
//! functions, files and the text of source lines, but no numbers. Findings of one run that would
//! share a fingerprint (one text twice in one function) are numbered in the order of their places.
//!
//! Both are made of the innermost frames of the program, for those of a library are the same
//! wherever the program calls it from.

use crate::model::{Finding, Side};
use serde::{Deserialize, Serialize};
use symbols::frame::{Frame, FrameKind};
use symbols::library::is_own;

/// Number of frames of a stack that distinguish call sites.
const SIGNIFICANT_FRAMES: usize = 6;

/// The identity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Identity {
    /// Hash of everything that distinguishes call sites within one program.
    pub(crate) exact: u64,
    /// Hash of what stays when lines move.
    pub lasting: u64,
    /// Hash of the places alone: calls, kernels, stacks, memory. Which side reads and which writes
    /// may look otherwise once the bytes are measured; the places stay.
    pub places: u64,
}

/// FNV-1a, 64 bits: stable, which the hashers of the standard library do not promise.
struct Fnv {
    hash: u64,
    exact: bool,
    /// Whether the hazard and what the sides do are left out.
    places: bool,
    /// See [`formerly`].
    former: bool,
}

impl Fnv {
    fn text(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Directories and load addresses differ between machines and runs; file names, lines and page
    /// offsets do not.
    fn stack(&mut self, stack: &[Frame]) {
        let frames: Vec<&Frame> = if self.former { formerly(stack).collect() } else { significant(stack).collect() };
        for f in frames {
            self.text(&f.function);
            self.text(base(&f.file));
            match (self.exact, f.line) {
                (true, Some(line)) => self.text(&line.to_string()),
                (true, None) => {
                    self.text(base(&f.module));
                    self.text(&format!("{:x}", f.address & 0xfff));
                }
                (false, Some(_)) => {
                    let words = f.source.as_deref().unwrap_or("").split_whitespace();
                    words.for_each(|word| self.text(word));
                }
                (false, None) => self.text(base(&f.module)),
            }
        }
    }

    fn side(&mut self, side: &Side) {
        self.text(&side.call);
        self.text(side.kernel.as_deref().unwrap_or(""));
        if !self.places {
            self.text(side.verb.name());
        }
        self.stack(&side.stack);
    }

    /// With nothing in it.
    fn new(exact: bool, former: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, exact, places: false, former }
    }

    fn of(f: &Finding, mut hash: Self) -> u64 {
        if !hash.places {
            hash.text(f.hazard.name());
        }
        hash.side(&f.previous);
        hash.side(&f.access);
        if let Some(memory) = &f.allocation {
            hash.text(&memory.call);
            hash.stack(&memory.stack);
        }
        hash.hash
    }
}

/// The innermost frames of the program; of a stack that has none, the innermost ones at all.
fn significant(stack: &[Frame]) -> impl Iterator<Item = &Frame> {
    let own = stack.iter().any(is_own);
    stack.iter().filter(move |f| if own { is_own(f) } else { f.kind != FrameKind::Folded }).take(SIGNIFICANT_FRAMES)
}

/// As fingerprints counted frames before 2026-11-24: those of libraries too.
fn formerly(stack: &[Frame]) -> impl Iterator<Item = &Frame> {
    stack.iter().filter(|f| f.kind != FrameKind::Folded).take(SIGNIFICANT_FRAMES)
}

fn base(path: &Option<String>) -> &str {
    path.as_deref().and_then(|p| p.rsplit('/').next()).unwrap_or("")
}

/// The identity of a finding.
pub fn identity(f: &Finding) -> Identity {
    Identity {
        exact: Fnv::of(f, Fnv::new(true, false)),
        lasting: Fnv::of(f, Fnv::new(false, false)),
        places: Fnv::of(f, Fnv { places: true, ..Fnv::new(true, false) }),
    }
}

/// The fingerprint that versions before 2026-11-24 gave a finding, the first of its kind: baselines
/// and suppressions of theirs still name it. `None`: it is the same today.
pub(crate) fn former(f: &Finding) -> Option<String> {
    let memory = f.allocation.as_ref().map_or(&[][..], |m| &m.stack);
    let changed = |stack: &[Frame]| !formerly(stack).eq(significant(stack));
    let any = [&f.previous.stack[..], &f.access.stack, memory].into_iter().any(changed);
    any.then(|| format!("{:016x}", Fnv::of(f, Fnv::new(false, true))))
}

/// The fingerprint of a cause: its kind and its two places, without numbers.
pub fn of_cause(kind: &str, after: &[Frame], before: &[Frame]) -> String {
    let mut hash = Fnv::new(false, false);
    hash.text(kind);
    hash.stack(after);
    hash.stack(before);
    format!("{:016x}", hash.hash)
}

/// The identity of a race of two threads of one kernel: its lines, whichever instance of a template
/// and whichever launch showed it. A trace has no source text of lines inside kernels, so what
/// stays when lines move is made of functions and files only.
pub(crate) fn in_kernel(f: &Finding) -> Identity {
    let of = |exact| {
        let mut hash = Fnv::new(exact, false);
        hash.text(f.rule());
        let has_lines = [&f.previous, &f.access].iter().all(|side| side.stack.iter().any(|f| f.line.is_some()));
        let mut sides = [&f.previous, &f.access].map(|side| {
            let mut hash = Fnv::new(exact, false);
            if !has_lines {
                hash.text(side.kernel.as_deref().unwrap_or(""));
            }
            for frame in &side.stack {
                // Without the arguments of a template.
                hash.text(frame.function.split(['<', '(']).next().unwrap_or_default());
                hash.text(base(&frame.file));
                if exact {
                    hash.text(&frame.line.map_or_else(|| frame.function.clone(), |line| line.to_string()));
                }
            }
            hash.hash
        });
        // Copies of inlined code may stand in another order.
        sides.sort_unstable();
        sides.iter().for_each(|side| hash.text(&format!("{side:x}")));
        match f.in_kernel.as_ref().and_then(|k| k.shared.as_ref()) {
            Some(shared) if exact || shared.name.is_empty() => hash.text("shared"),
            Some(shared) => hash.text(shared.name.rsplit("::").next().unwrap_or_default()),
            None => hash.text("global"),
        }
        hash.hash
    };
    let exact = of(true);
    Identity { exact, lasting: of(false), places: exact }
}

/// The identity of a graph that names memory which has ended: the places of a race with the free,
/// and which address of the node it is.
pub(crate) fn stale_graph(f: &Finding) -> Identity {
    let of = |hash: Fnv| {
        let mut hash = hash;
        hash.text(f.rule());
        hash.text(f.stale.as_ref().map_or("", |stale| &stale.place));
        Fnv::of(f, hash)
    };
    Identity {
        exact: of(Fnv::new(true, false)),
        lasting: of(Fnv::new(false, false)),
        places: of(Fnv { places: true, ..Fnv::new(true, false) }),
    }
}

/// The identity of a call that breaks a rule.
pub fn of_call(rule: &str, side: &Side, made: &[Frame]) -> Identity {
    let of = |exact| {
        let mut hash = Fnv::new(exact, false);
        hash.text(rule);
        if made.is_empty() {
            hash.side(side);
        } else {
            hash.stack(made);
        }
        hash.hash
    };
    let exact = of(true);
    Identity { exact, lasting: of(false), places: exact }
}

/// The text of a fingerprint; `nth` of those that would share one.
pub fn text_of(lasting: u64, nth: u32) -> String {
    let mut hash = Fnv { hash: lasting, ..Fnv::new(false, false) };
    if nth > 0 {
        hash.text(&nth.to_string());
    }
    format!("{:016x}", hash.hash)
}

/// Gives all findings of a run their fingerprints.
pub fn number(findings: &mut [Finding]) {
    /// Lines, or page offsets where there are none, of the stacks that the identity is made of.
    fn places(f: &Finding) -> (bool, Vec<u64>) {
        let memory = f.allocation.as_ref().map_or(&[][..], |m| &m.stack);
        let stacks = [&f.previous.stack[..], &f.access.stack, memory];
        let place = |f: &Frame| f.line.map_or(f.address & 0xfff, u64::from);
        (f.latent, stacks.into_iter().flat_map(|stack| significant(stack).map(place)).collect())
    }
    let mut order: Vec<usize> = (0..findings.len()).collect();
    order.sort_by_cached_key(|&i| (findings[i].identity.lasting, places(&findings[i]), findings[i].identity.exact));
    let (mut last, mut nth) = (None, 0_u32);
    for i in order {
        let lasting = findings[i].identity.lasting;
        nth = if last == Some(lasting) { nth + 1 } else { 0 };
        last = Some(lasting);
        findings[i].fingerprint = text_of(lasting, nth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call through eight frames of a library, from a function of the program.
    fn through_library(caller: &str) -> Vec<Frame> {
        let frame = |function: &str, file: &str| Frame {
            kind: FrameKind::Native,
            function: function.into(),
            file: Some(file.into()),
            line: Some(7),
            module: None,
            address: 1,
            inlined: false,
            source: None,
        };
        let mut stack = vec![frame("cub::dispatch", "/cccl/cub/device/dispatch.cuh"); 8];
        stack.push(frame(caller, "/home/me/tests.cu"));
        stack
    }

    #[test]
    fn calls_of_one_library_function_are_told_apart_by_the_program_s_frames() {
        let hash = |caller, exact, former| {
            let mut hash = Fnv { hash: 0, ..Fnv::new(exact, former) };
            hash.stack(&through_library(caller));
            hash.hash
        };
        for exact in [false, true] {
            assert_ne!(hash("test_one", exact, false), hash("test_two", exact, false));
            assert_eq!(hash("test_one", exact, true), hash("test_two", exact, true), "as it was: only the library's");
        }
    }
}
