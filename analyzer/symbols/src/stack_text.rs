//! A stack as text.
//!
//! Owns what is left out of the text. In a Python program the C++ frames between the program's
//! lines and CUDA say little, so they become one line that names the operator. Frames of libraries
//! become one line that names these. Does not change the JSON report, which has every frame.

use crate::frame::{Frame, FrameKind};
use crate::library::{is_own, library};

/// One line of a printed stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// A frame.
    Frame {
        /// Its function.
        name: String,
        /// Where, with leading blanks; empty when unknown.
        place: String,
        /// Whether it was inlined.
        inlined: bool,
        /// The source line.
        source: Option<String>,
    },
    /// Frames left out, and what they were.
    Folded(String),
}

/// Longest name of a C++ function printed.
const NAME: usize = 160;

/// The lines of a stack, innermost first.
pub fn lines(frames: &[Frame]) -> Vec<Line> {
    // Without a line of the program, what libraries did is all there is.
    let fold = frames.iter().any(is_own);
    let last_python = frames.iter().rposition(|f| f.kind == FrameKind::Python);
    let mut lines = Vec::new();
    let mut rest = frames;
    while let Some(first) = rest.first() {
        let inner = last_python.is_some_and(|last| frames.len() - rest.len() < last);
        // A C++ frame with a source line belongs to the program's own extension, so it is shown.
        let run = rest.iter().take_while(|f| f.kind != FrameKind::Python && f.file.is_none()).count();
        if inner && run > 0 {
            lines.push(Line::Folded(native_run(&rest[..run])));
            rest = &rest[run..];
            continue;
        }
        let run = rest.iter().take_while(|f| fold && library(f).is_some()).count();
        if run > 0 {
            lines.push(Line::Folded(library_run(&rest[..run])));
            rest = &rest[run..];
            continue;
        }
        lines.push(line(first));
        rest = &rest[1..];
    }
    lines
}

fn line(f: &Frame) -> Line {
    if f.kind == FrameKind::Folded {
        return Line::Folded(f.function.clone());
    }
    let module = f.module.as_deref().map(|m| m.rsplit('/').next().unwrap_or(m));
    let name = match (f.function.as_str(), module) {
        ("", Some(module)) => format!("{:#x} in {module}", f.address),
        ("", None) => format!("{:#x}", f.address),
        (name, _) => shortened(name, NAME),
    };
    let place = match (f.place(), module) {
        (Some(place), _) => format!("  {place}"),
        (None, Some(module)) if !f.function.is_empty() => format!("  ({module})"),
        _ => String::new(),
    };
    let source = f.source.as_deref().map(str::trim).filter(|s| !s.is_empty()).map(String::from);
    Line::Frame { name, place, inlined: f.inlined, source }
}

/// The line that stands for a run of frames without source lines.
fn native_run(frames: &[Frame]) -> String {
    let count = frames.iter().map(weight).sum::<usize>();
    let plural = if count == 1 { "frame" } else { "frames" };
    let operator = frames.iter().rev().find_map(crate::torch::short);
    let runtime = frames.iter().find_map(crate::entered_by);
    match (operator, runtime) {
        (Some(operator), Some(runtime)) => format!("[{count} native {plural}: {operator}, which calls {runtime}]"),
        (Some(operator), None) => format!("[{count} native {plural}: {operator}]"),
        (None, Some(runtime)) => format!("[{count} native {plural}, down to {runtime}]"),
        (None, None) => format!("[{count} native {plural}]"),
    }
}

/// The line that stands for a run of frames of libraries.
fn library_run(frames: &[Frame]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in frames.iter().filter_map(library) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let names = match &names[..] {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    };
    let plural = if frames.len() == 1 { "frame" } else { "frames" };
    format!("[{} {plural} of {names}]", frames.len())
}

/// How many frames a frame stands for.
fn weight(f: &Frame) -> usize {
    let folded = f.function.strip_prefix('[').filter(|_| f.kind == FrameKind::Folded);
    folded.and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(1)
}

/// A name cut to `most` characters in its middle, where template arguments are.
pub fn shortened(name: &str, most: usize) -> String {
    let count = name.chars().count();
    if count <= most {
        return name.to_string();
    }
    let half = (most - 5) / 2;
    let head: String = name.chars().take(half).collect();
    let tail: String = name.chars().skip(count - half).collect();
    format!("{head} ... {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: FrameKind, function: &str, file: Option<&str>) -> Frame {
        Frame {
            kind,
            function: function.into(),
            file: file.map(String::from),
            line: file.map(|_| 7),
            module: Some("/lib/libx.so".into()),
            address: 1,
            inlined: false,
            source: None,
        }
    }

    #[test]
    fn native_frames_under_python_become_one_line_with_the_operator() {
        let frames = [
            frame(FrameKind::Folded, "[2 frames of libcudart.so.13, entered by cudaLaunchKernel]", None),
            frame(FrameKind::Native, "at::native::mul_kernel_cuda(at::TensorIteratorBase&)", None),
            frame(FrameKind::Native, "at::_ops::mul_out::call(at::Tensor const&)", None),
            frame(FrameKind::Python, "main", Some("a.py")),
            frame(FrameKind::Folded, "[1 frame of the C library's start-up]", None),
        ];
        let lines = lines(&frames);
        assert_eq!(lines[0], Line::Folded("[4 native frames: aten::mul.out, which calls cudaLaunchKernel]".into()));
        assert!(matches!(&lines[1], Line::Frame { name, .. } if name == "main"));
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn a_native_program_keeps_its_frames() {
        let frames = [frame(FrameKind::Native, "f()", None), frame(FrameKind::Native, "main", Some("a.cpp"))];
        assert_eq!(lines(&frames).len(), 2);
    }

    #[test]
    fn extensions_with_source_lines_are_shown_between_python_frames() {
        let frames = [
            frame(FrameKind::Native, "launch()", Some("ext.cu")),
            frame(FrameKind::Native, "glue", None),
            frame(FrameKind::Python, "main", Some("a.py")),
        ];
        let lines = lines(&frames);
        assert!(matches!(&lines[0], Line::Frame { name, .. } if name == "launch()"));
        assert_eq!(lines[1], Line::Folded("[1 native frame]".into()));
    }

    #[test]
    fn frames_of_libraries_become_one_line_that_names_them() {
        let mut frames = vec![frame(FrameKind::Folded, "[3 frames of cudart, entered by cudaLaunchKernel]", None)];
        frames.push(frame(FrameKind::Native, "launch", Some("/cccl/cub/detail/launcher.cuh")));
        frames.extend((0..20).map(|_| frame(FrameKind::Native, "f", Some("/cccl/thrust/detail/reduce.inl"))));
        frames.push(frame(FrameKind::Native, "main", Some("/home/me/sum.cu")));
        let lines = lines(&frames);
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1], Line::Folded("[21 frames of CUB and Thrust]".into()));
        // With nothing else, they are shown.
        assert_eq!(super::lines(&frames[..3]).len(), 3);
    }

    #[test]
    fn long_names_keep_both_ends() {
        let name = format!("begin<{}>::end", "x".repeat(500));
        let short = shortened(&name, 60);
        assert!(short.starts_with("begin<") && short.ends_with("::end") && short.len() <= 60);
    }
}
