//! Helpers: lines of the program through which several other lines of it call CUDA.
//!
//! Owns that judgement, from the stacks of the whole run. A report that names only the line inside
//! `after(s, t)` says nothing about which of the calls of `after` it means.

use std::collections::HashMap;

use crate::frame::{Frame, FrameKind};
use crate::library::is_own;

/// Stacks that are looked at, in the order of their numbers: a report must not wait for the lines
/// of all stacks of a long run.
pub(super) const MOST: usize = 1024;

/// A line of the program: function, file, line.
type Line = (String, String, u32);

/// The lines through which the program calls CUDA, each with its first caller and whether there is
/// another one.
#[derive(Default)]
pub(super) struct Callers(HashMap<Line, (Line, bool)>);

impl Callers {
    /// Takes a stack in.
    pub(crate) fn add(&mut self, stack: &[Frame]) {
        let mut lines = stack.iter().filter(|f| f.kind != FrameKind::Folded && is_own(f)).filter_map(line_of);
        let Some(site) = lines.next() else { return };
        // A function that calls itself has its caller outside.
        let Some(caller) = lines.find(|line| (&line.0, &line.1) != (&site.0, &site.1)) else { return };
        let (first, several) = self.0.entry(site).or_insert_with(|| (caller.clone(), false));
        *several |= *first != caller;
    }

    /// Whether several lines of the program go through the line of this frame.
    pub(crate) fn are_several(&self, site: &Frame) -> bool {
        line_of(site).and_then(|line| self.0.get(&line)).is_some_and(|(_, several)| *several)
    }
}

fn line_of(frame: &Frame) -> Option<Line> {
    Some((frame.function.clone(), frame.file.clone()?, frame.line?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: FrameKind, function: &str, file: &str, line: u32) -> Frame {
        Frame {
            kind,
            function: function.into(),
            file: Some(file.into()),
            line: Some(line),
            module: None,
            address: u64::from(line),
            inlined: false,
            source: None,
        }
    }

    #[test]
    fn two_lines_that_go_through_one_make_it_a_helper() {
        for kind in [FrameKind::Native, FrameKind::Python] {
            let helper = frame(kind, "after", "/home/me/app.cu", 3);
            let library = frame(FrameKind::Native, "f", "/cccl/cub/launcher.cuh", 9);
            let main = |line| frame(kind, "main", "/home/me/app.cu", line);
            let mut callers = Callers::default();
            for _ in 0..3 {
                callers.add(&[library.clone(), helper.clone(), main(20)]);
                assert!(!callers.are_several(&helper), "one line, many times");
            }
            // Another line of the same function is a place of its own.
            callers.add(&[frame(kind, "after", "/home/me/app.cu", 4), main(21)]);
            assert!(!callers.are_several(&helper));
            callers.add(&[helper.clone(), helper.clone(), main(21)]);
            assert!(callers.are_several(&helper) && !callers.are_several(&main(21)));
        }
    }
}
