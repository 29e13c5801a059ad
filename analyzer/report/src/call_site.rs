//! The call site of a stack: the one frame that stands for it.
//!
//! Owns the choice, the innermost line of the program's own source, and how that place is written:
//! [`site`] as `file:line`, and [`place`] in prose, which names the caller too where the line alone
//! would hide it. Does not print whole stacks: that is [`symbols::stack_text`].

use symbols::frame::{Frame, FrameKind};
use symbols::library::{is_own, is_rust_s, library};
use symbols::stacks::Stacks;

/// The frame that a reader looks for first: the innermost one in the program's own source. Those of
/// libraries count only where there is no other.
pub(crate) fn site_frame(stack: &[Frame]) -> Option<&Frame> {
    let has_file = |f: &&Frame| f.kind != FrameKind::Folded && f.file.is_some();
    let of_library = |f: &&Frame| has_file(f) && !is_rust_s(f);
    innermost(stack.iter().filter(|f| is_own(f) && has_file(f))).or_else(|| innermost(stack.iter().filter(of_library)))
}

/// A line of the program says more than one of a package that it uses, and Python's line more than
/// a line of a package's machine code. A library that the program has built for itself and calls
/// from Python is its own source.
fn innermost<'a>(mut stack: impl Iterator<Item = &'a Frame> + Clone) -> Option<&'a Frame> {
    let python = stack.clone().find(|f| f.kind == FrameKind::Python);
    stack.clone().find(|f| !is_installed(f)).or(python).or_else(|| stack.next())
}

/// Whether a frame belongs to an installed package, or to a library of the system.
fn is_installed(f: &Frame) -> bool {
    const FOLDERS: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python"];
    const SYSTEM: [&str; 3] = ["/usr/lib", "/lib/", "/lib64/"];
    let of_system = |path: &str| f.kind == FrameKind::Native && SYSTEM.iter().any(|folder| path.starts_with(folder));
    let lies =
        |path: &str| path.starts_with('<') || of_system(path) || FOLDERS.iter().any(|folder| path.contains(folder));
    let path = if f.kind == FrameKind::Python { &f.file } else { &f.module };
    path.as_deref().is_some_and(lies)
}

/// [`site_frame`] as `file:line` without directories.
pub fn site(stack: &[Frame]) -> Option<String> {
    match site_frame(stack) {
        Some(frame) => written(frame),
        // Built without line tables: the function is the next best.
        None => {
            let has_name = |f: &&Frame| f.kind == FrameKind::Native && !f.function.is_empty();
            let named = stack.iter().filter(has_name).find(|f| is_own(f)).or_else(|| stack.iter().find(has_name))?;
            Some(symbols::stack_text::shortened(&named.function, 60))
        }
    }
}

/// A call site in prose: [`site`], and where the program called it if that line alone hides the
/// caller. That is so of a helper that several lines of the program go through, of a header, and of
/// a library that Python calls.
pub(crate) fn place(stack: &[Frame], stacks: &mut dyn Stacks) -> Option<String> {
    let at = site(stack)?;
    let called = site_frame(stack).and_then(|frame| caller(stack, frame, stacks)).and_then(written);
    Some(called.map_or(at.clone(), |called| format!("{at}, called at {called}")))
}

/// The frame that [`place`] names besides the call site.
fn caller<'a>(stack: &'a [Frame], site: &'a Frame, stacks: &mut dyn Stacks) -> Option<&'a Frame> {
    let index = stack.iter().position(|f| std::ptr::eq(f, site))?;
    let has_line = |f: &&Frame| is_own(f) && f.file.is_some() && f.line.is_some();
    let outer = || stack[index + 1..].iter().filter(has_line).filter(|f| !is_installed(f));
    if site.kind == FrameKind::Native
        && let Some(python) = outer().find(|f| f.kind == FrameKind::Python)
    {
        return Some(python);
    }
    if is_header(site)
        && library(site).is_none()
        && let Some(source) = outer().find(|f| !is_header(f))
    {
        return Some(source);
    }
    let next = outer().find(|f| f.function != site.function || f.file != site.file)?;
    stacks.is_helper(site).then_some(next)
}

fn is_header(f: &Frame) -> bool {
    let end = f.file.as_deref().and_then(|file| file.rsplit_once('.')).map_or("", |(_, end)| end);
    matches!(end, "h" | "hh" | "hpp" | "hxx" | "cuh" | "inl" | "inc" | "ipp" | "tcc")
}

fn written(frame: &Frame) -> Option<String> {
    let file = frame.file.as_deref()?;
    let base = file.rsplit('/').next().unwrap_or(file);
    Some(frame.line.map_or_else(|| base.to_string(), |line| format!("{base}:{line}")))
}

/// Whether PyTorch's caching allocator asked CUDA for more memory.
pub(crate) fn is_segment(stack: &[Frame]) -> bool {
    stack.iter().any(|f| f.module.as_deref().is_some_and(|module| module.ends_with("/libc10_cuda.so")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbols::stacks::RawStacks;
    use trace::{Op, StackId};

    fn native(file: &str, function: &str) -> Frame {
        Frame {
            kind: FrameKind::Native,
            function: function.into(),
            file: Some(file.into()),
            line: Some(7),
            module: Some("/home/me/libapp.so".into()),
            address: 1,
            inlined: false,
            source: None,
        }
    }

    fn python(file: &str) -> Frame {
        Frame { kind: FrameKind::Python, module: None, address: 0, ..native(file, "step") }
    }

    /// Of these functions several lines make use.
    struct Helpers(&'static [&'static str]);

    impl Stacks for Helpers {
        fn define(&mut self, _: &Op<'_>) {}
        fn resolve(&mut self, _: StackId) -> Vec<Frame> {
            Vec::new()
        }
        fn demangle(&self, name: &str) -> String {
            name.into()
        }
        fn is_helper(&mut self, site: &Frame) -> bool {
            self.0.contains(&site.function.as_str())
        }
    }

    fn said(stack: &[Frame], helpers: &'static [&'static str]) -> String {
        place(stack, &mut Helpers(helpers)).expect("a place")
    }

    #[test]
    fn the_program_s_line_stands_for_a_stack_and_not_the_library_s() {
        let frames = [
            native("/cccl/cub/detail/launcher.cuh", "f"),
            native("/home/me/sum.cu", "f"),
            native("/home/me/main.cu", "g"),
        ];
        assert_eq!(site(&frames).as_deref(), Some("sum.cu:7"));
        // With nothing else, the library's is said.
        assert_eq!(site(&frames[..1]).as_deref(), Some("launcher.cuh:7"));
        assert_eq!(said(&frames[..1], &["f"]), "launcher.cuh:7");
    }

    #[test]
    fn a_library_that_python_calls_is_the_program_s_and_a_package_s_is_not() {
        let train = python("/home/me/train.py");
        let own = [native("/home/me/part.cu", "launch"), train.clone()];
        assert_eq!(site(&own).as_deref(), Some("part.cu:7"));
        assert_eq!(said(&own, &[]), "part.cu:7, called at train.py:7");
        for module in [
            "/v/lib/python3.12/site-packages/onnx/lib.so",
            "/usr/lib/python3/dist-packages/x.so",
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
        ] {
            let packaged = [Frame { module: Some(module.into()), ..own[0].clone() }, train.clone()];
            assert_eq!(said(&packaged, &[]), "train.py:7");
            let inner = python("/v/lib/python3.12/site-packages/onnx/session.py");
            assert_eq!(said(&[packaged[0].clone(), inner, train.clone()], &[]), "train.py:7");
        }
    }

    #[test]
    fn a_helper_names_its_caller_and_another_function_does_not() {
        let (after, run) = (native("/home/me/app.cu", "after"), native("/home/me/app.cu", "run"));
        let main = Frame { line: Some(90), ..native("/home/me/app.cu", "main") };
        let stack = [after, main.clone()];
        assert_eq!(said(&stack, &["after"]), "app.cu:7, called at app.cu:90");
        assert_eq!(said(&stack, &["run"]), "app.cu:7");
        assert_eq!(said(&[run, main.clone()], &["after"]), "app.cu:7");
        // A helper that calls itself is not its own caller, and the outermost function has none.
        let twice = [stack[0].clone(), stack[0].clone(), main.clone()];
        assert_eq!(said(&twice, &["after"]), "app.cu:7, called at app.cu:90");
        assert_eq!(said(&[main], &["main"]), "app.cu:90");
        // Without symbols there is nothing to say.
        assert_eq!(place(&twice, &mut RawStacks::default()).as_deref(), Some("app.cu:7"));
    }

    #[test]
    fn a_header_names_the_line_that_includes_it() {
        for end in ["h", "cuh", "hpp", "inl"] {
            let header = native(&format!("/home/me/check.{end}"), "after");
            let main = native("/home/me/app.cu", "main");
            assert_eq!(said(&[header.clone(), main], &[]), format!("check.{end}:7, called at app.cu:7"));
            assert_eq!(said(&[header], &[]), format!("check.{end}:7"));
        }
    }
}
