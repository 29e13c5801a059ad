//! The interface between the analysis and a symbolizer, and the simplest implementation: raw
//! addresses.
//!
//! Owns the interface only. [`super::Symbolizer`] reads debug information.

use crate::frame::{Frame, FrameKind};
use rustc_hash::FxHashMap;
use trace::{Op, StackId};

/// Turns stacks into frames. Definitions come in as they appear in the trace; resolving happens for
/// findings only.
pub trait Stacks: Send {
    /// Takes a definition: `Module`, `Stack` or `PyCode`. Others are ignored.
    fn define(&mut self, op: &Op<'_>);
    /// The frames of a stack, innermost first; empty when it is unknown.
    fn resolve(&mut self, stack: StackId) -> Vec<Frame>;
    /// A name as the programmer wrote it.
    fn demangle(&self, name: &str) -> String;
    /// Whether several lines of the program go through the line of this frame: a helper.
    fn is_helper(&mut self, site: &Frame) -> bool {
        let _ = site;
        false
    }
    /// Object files that could not be read when names in them were asked for, and for how many
    /// places of calls.
    fn lost(&self) -> Vec<(&str, u64)> {
        Vec::new()
    }
    /// The text of a source line, when it can be read.
    fn source(&mut self, file: &str, line: u32) -> Option<String> {
        let _ = (file, line);
        None
    }
}

/// Stacks as addresses, for `--no-stacks` and where nothing better is available.
#[derive(Default)]
pub struct RawStacks {
    stacks: FxHashMap<StackId, Vec<u64>>,
}

impl Stacks for RawStacks {
    fn define(&mut self, op: &Op<'_>) {
        if let Op::Stack { id, native, .. } = op {
            self.stacks.insert(*id, native.iter().collect());
        }
    }

    fn resolve(&mut self, stack: StackId) -> Vec<Frame> {
        let addresses = self.stacks.get(&stack).map_or(&[][..], Vec::as_slice);
        let frame = |&address: &u64| Frame {
            kind: FrameKind::Native,
            function: String::new(),
            file: None,
            line: None,
            module: None,
            address,
            inlined: false,
            source: None,
        };
        addresses.iter().map(frame).collect()
    }

    fn demangle(&self, name: &str) -> String {
        name.to_string()
    }
}
