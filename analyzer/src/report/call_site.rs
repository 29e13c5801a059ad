//! The call site of a stack: the one frame that stands for it.
//!
//! Owns the choice, the innermost line of the program's own source, and how that place is written.
//! Does not print whole stacks: that is [`crate::symbols::stack_text`].

use crate::symbols::frame::{Frame, FrameKind};
use crate::symbols::library::is_own;

/// The frame that a reader looks for first: the innermost one in the program's own source. Those of
/// libraries count only where there is no other.
pub fn site_frame(stack: &[Frame]) -> Option<&Frame> {
    let has_file = |f: &&Frame| f.kind != FrameKind::Folded && f.file.is_some();
    innermost(stack.iter().filter(|f| is_own(f) && has_file(f))).or_else(|| innermost(stack.iter().filter(has_file)))
}

fn innermost<'a>(stack: impl Iterator<Item = &'a Frame> + Clone) -> Option<&'a Frame> {
    let has_line = |f: &&Frame| f.kind == FrameKind::Python && f.file.is_some();
    // A line of the program says more than one of a library that it uses.
    let installed = |f: &Frame| {
        const FOLDERS: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python"];
        f.file
            .as_deref()
            .is_some_and(|file| file.starts_with('<') || FOLDERS.iter().any(|folder| file.contains(folder)))
    };
    let python = stack.clone().filter(has_line).find(|f| !installed(f)).or_else(|| stack.clone().find(has_line));
    python.or_else(|| stack.clone().find(|f| f.kind == FrameKind::Native))
}

/// [`site_frame`] as `file:line` without directories.
pub fn site(stack: &[Frame]) -> Option<String> {
    let Some(frame) = site_frame(stack) else {
        // Built without line tables: the function is the next best.
        let has_name = |f: &&Frame| f.kind == FrameKind::Native && !f.function.is_empty();
        let named = stack.iter().filter(has_name).find(|f| is_own(f)).or_else(|| stack.iter().find(has_name))?;
        return Some(crate::symbols::stack_text::shortened(&named.function, 60));
    };
    let file = frame.file.as_deref()?;
    let base = file.rsplit('/').next().unwrap_or(file);
    Some(frame.line.map_or_else(|| base.to_string(), |line| format!("{base}:{line}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_s_line_stands_for_a_stack_and_not_the_library_s() {
        let frame = |file: &str| Frame {
            kind: FrameKind::Native,
            function: "f".into(),
            file: Some(file.into()),
            line: Some(7),
            module: None,
            address: 1,
            inlined: false,
            source: None,
        };
        let frames = [frame("/cccl/cub/detail/launcher.cuh"), frame("/home/me/sum.cu"), frame("/home/me/main.cu")];
        assert_eq!(site(&frames).as_deref(), Some("sum.cu:7"));
        // With nothing else, the library's is said.
        assert_eq!(site(&frames[..1]).as_deref(), Some("launcher.cuh:7"));
    }
}
