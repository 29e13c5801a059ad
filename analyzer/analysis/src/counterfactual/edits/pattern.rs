//! Which synchronisations a user means by `--without SITE`.
//!
//! Owns the forms of a site: `FILE:LINE`, the name of a function, or a kind of synchronisation.

use super::sync::SyncKind;
use report::gate::pattern::Pattern;
use symbols::frame::Frame;

/// Whether a word names a synchronisation of this kind, called by this name, with this stack.
pub(crate) fn names(word: &str, kind: SyncKind, calls: [&str; 2], stack: &[Frame]) -> bool {
    if word == kind.word() {
        return true;
    }
    if let Some((file, line)) = word.rsplit_once(':')
        && let Ok(line) = line.parse::<u32>()
    {
        return stack.iter().any(|frame| frame.line == Some(line) && is_file(frame.file.as_deref(), file));
    }
    let pattern = Pattern::new(&format!("^{word}$"));
    let functions = stack.iter().map(|frame| bare(&frame.function));
    calls.into_iter().chain(functions).any(|name| pattern.matches(name))
}

/// Whether a path ends with the parts of `wanted`.
fn is_file(path: Option<&str>, wanted: &str) -> bool {
    let rest = path.and_then(|path| path.strip_suffix(wanted));
    rest.is_some_and(|before| before.is_empty() || before.ends_with('/') || wanted.starts_with('/'))
}

/// A function's name without its parameters.
fn bare(function: &str) -> &str {
    function.split_once('(').map_or(function, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbols::frame::FrameKind;

    #[test]
    fn a_site_is_a_line_a_function_or_a_kind() {
        let frame = Frame {
            kind: FrameKind::Native,
            function: "step(float*, int)".into(),
            file: Some("/src/app/train.cu".into()),
            line: Some(42),
            module: None,
            address: 0,
            inlined: false,
            source: None,
        };
        let is = |word| {
            names(
                word,
                SyncKind::StreamSync,
                ["cudaStreamSynchronize", "cuStreamSynchronize"],
                std::slice::from_ref(&frame),
            )
        };
        for word in ["train.cu:42", "app/train.cu:42", "step", "st*", "cudaStreamSynchronize", "stream-sync"] {
            assert!(is(word), "{word}");
        }
        for word in ["train.cu:4", "rain.cu:42", "app.cu:42", "ste", "device-sync", "cudaStream"] {
            assert!(!is(word), "{word}");
        }
    }
}
