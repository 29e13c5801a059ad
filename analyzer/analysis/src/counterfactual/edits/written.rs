//! Waits that the user wrote down: `streamsan check --with FILE`.
//!
//! Owns the file format and which call sites a place names. What a wait does to the order is
//! [`super::waits`].
//!
//! ```text
//! # what comes first -> what waits for it
//! race.cu:22 -> race.cu:23
//! fill -> scale                  a function of the stack, or a kernel
//! race.cu:30 -> host race.cu:41  the host waits
//! ```

use super::waits::AddedWait;
use detect::state::op_site::OpSite;
use report::cause::Join;
use symbols::frame::{Frame, FrameKind};

/// A place in the program.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    /// The end of a file's path, and a line.
    Line(String, u32),
    /// A function or a kernel.
    Name(String),
}

/// A wait of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenWait {
    after: Place,
    before: Place,
    host: bool,
    /// As written.
    pub text: String,
    /// `FILE:LINE`.
    pub place: String,
}

/// Reads the text of a file of waits. The error is a line for the user.
pub fn read(file: &str, text: &str) -> Result<Vec<WrittenWait>, String> {
    let mut list = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let place = format!("{file}:{}", index + 1);
        let parts = line.split_once("->").map(|(after, before)| (after.trim(), before.trim()));
        let Some((after, before)) = parts.filter(|(after, before)| !after.is_empty() && !before.is_empty()) else {
            return Err(format!("{place}: '{line}' is no wait; write 'FILE:LINE -> FILE:LINE'"));
        };
        let (host, before) = match before.strip_prefix("host ") {
            Some(rest) => (true, rest.trim()),
            None => (false, before),
        };
        let of = |text: &str| Place::of(text).ok_or_else(|| format!("{place}: '{text}' names no line and no function"));
        list.push(WrittenWait { after: of(after)?, before: of(before)?, host, text: line.to_string(), place });
    }
    Ok(list)
}

impl Place {
    fn of(text: &str) -> Option<Self> {
        match text.rsplit_once(':') {
            Some((file, line)) if line.bytes().all(|b| b.is_ascii_digit()) && !file.is_empty() => {
                Some(Self::Line(file.to_string(), line.parse().ok()?))
            }
            _ if text.contains(char::is_whitespace) => None,
            _ => Some(Self::Name(text.to_string())),
        }
    }

    /// Whether an op with this stack and kernel was made there.
    fn is_at(&self, stack: &[Frame], kernel: &str) -> bool {
        let mut frames = stack.iter().filter(|f| f.kind != FrameKind::Folded);
        match self {
            Self::Line(file, line) => frames.any(|f| {
                let rest = f.file.as_deref().and_then(|path| path.strip_suffix(file.as_str()));
                f.line == Some(*line) && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
            }),
            Self::Name(name) => {
                short(kernel) == name || frames.any(|f| f.function == *name || short(&f.function) == name)
            }
        }
    }
}

/// A function's name without its result, template arguments and parameters.
fn short(name: &str) -> &str {
    name.strip_prefix("void ").unwrap_or(name).split(['(', '<']).next().unwrap_or_default().trim()
}

impl WrittenWait {
    /// The wait before any of its places has been met.
    pub(crate) fn empty(&self) -> AddedWait {
        let join = if self.host { Join::Host } else { Join::Event };
        AddedWait { after: Vec::new(), before: Vec::new(), join }
    }

    /// Which of its two places, if any, an op is at.
    pub(crate) fn meets(&self, stack: &[Frame], kernel: &str) -> (bool, bool) {
        (self.after.is_at(stack, kernel), self.before.is_at(stack, kernel))
    }
}

/// Adds a site to the waits that name it. Returns which of them that changed: their index, and
/// whether the site is what is waited for.
pub(crate) fn place(
    waits: &[WrittenWait],
    added: &mut [AddedWait],
    at: OpSite,
    stack: &[Frame],
    kernel: &str,
) -> Vec<(usize, bool)> {
    let mut changed = Vec::new();
    for (index, (wait, added)) in waits.iter().zip(added).enumerate() {
        let (after, before) = wait.meets(stack, kernel);
        if after {
            added.after.push(at);
            changed.push((index, true));
        }
        if before {
            added.before.push(at);
            changed.push((index, false));
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str, line: u32) -> Frame {
        Frame {
            kind: FrameKind::Native,
            function: function.into(),
            file: Some(file.into()),
            line: Some(line),
            module: None,
            address: 0,
            inlined: false,
            source: None,
        }
    }

    #[test]
    fn lines_are_read_and_mistakes_named() {
        let list = read("w", "# all\n\n a.cu:1 -> b.cu:2 # why\nfill -> host main\n").expect("waits");
        assert_eq!(
            list.iter().map(|w| (&*w.text, &*w.place, w.host)).collect::<Vec<_>>(),
            [("a.cu:1 -> b.cu:2", "w:3", false), ("fill -> host main", "w:4", true),]
        );
        assert_eq!(read("w", "a.cu:1").unwrap_err(), "w:1: 'a.cu:1' is no wait; write 'FILE:LINE -> FILE:LINE'");
        assert_eq!(read("w", "\na b -> c").unwrap_err(), "w:2: 'a b' names no line and no function");
        assert!(read("w", "-> c").is_err() && read("w", "c ->").is_err());
    }

    #[test]
    fn a_place_is_the_end_of_a_path_or_a_whole_name() {
        let stack = [frame("run(float*)", "/home/me/app.cu", 22), frame("main", "/home/me/app.cu", 90)];
        let at = |text: &str| Place::of(text).expect("a place").is_at(&stack, "void fill<int>(float*, int)");
        assert!(["app.cu:22", "me/app.cu:90", "run", "main", "fill", "run(float*)"].map(at).iter().all(|is| *is));
        assert!(["pp.cu:22", "app.cu:2", "ru", "fil", "ain"].map(at).iter().all(|is| !is));
    }
}
