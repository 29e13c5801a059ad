//! Suppression files, with ThreadSanitizer's syntax: `race:PATTERN` sets aside findings that are
//! known and accepted.
//!
//! Owns the file format and the matching. A suppressed finding is counted, never forgotten. A
//! suppression that matched nothing is named, because it may hide the next race.
//!
//! ```text
//! # a comment
//! race:libfoo.so         any function, file or module of either stack, any kernel, either stream
//! race_top:^launch_all   the innermost frame of either stack only
//! forbidden:libfoo.so    the same of a call that --forbid forbids
//! kernel:scale<*>        kernel:, stream:, function:, file:, module: look at one thing
//! fingerprint:85943be02c0869e1   this one: the whole of it
//! cause:36e2e934eb3df169 all findings of a cause
//! ```

use super::pattern::Pattern;
use crate::fingerprint::former;
use crate::model::{Breach, Finding, Side};
use symbols::frame::{Frame, FrameKind};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Any,
    Top,
    Forbidden,
    Kernel,
    Stream,
    Function,
    File,
    Module,
    Fingerprint,
    Cause,
}

const FIELDS: [(&str, Field); 10] = [
    ("race", Field::Any),
    ("race_top", Field::Top),
    ("forbidden", Field::Forbidden),
    ("kernel", Field::Kernel),
    ("stream", Field::Stream),
    ("function", Field::Function),
    ("file", Field::File),
    ("module", Field::Module),
    ("fingerprint", Field::Fingerprint),
    ("cause", Field::Cause),
];

/// Further kinds of ThreadSanitizer, which are ignored: one file may serve both tools.
const FOREIGN: [&str; 5] = ["thread", "mutex", "signal", "deadlock", "called_from_lib"];

/// One line of a suppression file, and what it has matched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Suppression {
    field: Field,
    pattern: Pattern,
    /// As written: `race:libfoo.so`.
    pub(crate) text: String,
    /// `FILE:LINE`.
    pub(crate) place: String,
    /// Findings set aside.
    pub(crate) findings: u64,
    /// Occurrences of those.
    pub(crate) hits: u64,
}

/// Reads the text of a suppression file. The error is a line for the user.
pub(crate) fn read(file: &str, text: &str) -> Result<Vec<Suppression>, String> {
    let mut list = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let comment = line.match_indices('#').find(|(at, _)| line[..*at].ends_with(char::is_whitespace));
        let line = line[..comment.map_or(line.len(), |(at, _)| at)].trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("{file}:{}", index + 1);
        let Some((kind, pattern)) = line.split_once(':') else {
            return Err(format!("{place}: '{line}' is no suppression; write 'race:PATTERN'"));
        };
        let (kind, pattern) = (kind.trim(), pattern.trim());
        if FOREIGN.contains(&kind) {
            continue;
        }
        let Some((_, field)) = FIELDS.iter().find(|(name, _)| *name == kind) else {
            let known: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
            return Err(format!("{place}: no suppressions of type '{kind}'; there are {}", known.join(", ")));
        };
        if Pattern::is_vacuous(pattern) {
            return Err(format!("{place}: '{line}' names nothing; '{kind}:*' would suppress all"));
        }
        let pattern = match field {
            // A part of a hash would cover findings that nobody has seen.
            Field::Fingerprint | Field::Cause => Pattern::whole(pattern),
            _ => Pattern::new(pattern),
        };
        let (field, text) = (*field, line.to_string());
        list.push(Suppression { field, pattern, text, place, findings: 0, hits: 0 });
    }
    Ok(list)
}

impl Suppression {
    /// Whether it covers this finding.
    pub(crate) fn covers(&self, finding: &Finding) -> bool {
        if self.field == Field::Fingerprint {
            return self.pattern.matches(&finding.fingerprint)
                || former(finding).is_some_and(|former| self.pattern.matches(&former));
        }
        if self.field == Field::Cause {
            let own = !finding.own_cause.is_empty() && self.pattern.matches(&finding.own_cause);
            return own || self.pattern.matches(&finding.cause);
        }
        self.field != Field::Forbidden
            && [&finding.access, &finding.previous].into_iter().any(|side| self.covers_side(side))
    }

    /// Whether it covers this broken rule.
    pub(crate) fn covers_breach(&self, breach: &Breach) -> bool {
        match self.field {
            Field::Fingerprint => self.pattern.matches(&breach.fingerprint),
            Field::Any | Field::Top => false,
            _ => self.covers_side(&breach.side),
        }
    }

    fn covers_side(&self, side: &Side) -> bool {
        let is = |text: &str| self.pattern.matches(text);
        let named = |text: &Option<String>| text.as_deref().is_some_and(is);
        let frame = |f: &Frame| is(&f.function) || named(&f.file) || named(&f.module);
        let mut frames = side.stack.iter().chain(&side.launched).filter(|f| f.kind != FrameKind::Folded);
        match self.field {
            Field::Any | Field::Forbidden => named(&side.kernel) || is(&side.stream.long) || frames.any(frame),
            Field::Top => frames.next().is_some_and(frame),
            Field::Kernel => named(&side.kernel),
            Field::Stream => is(&side.stream.long),
            Field::Function => frames.any(|f| is(&f.function)),
            Field::File => frames.any(|f| named(&f.file)),
            Field::Module => frames.any(|f| named(&f.module)),
            Field::Fingerprint | Field::Cause => false,
        }
    }
}

/// Functions that a whole program may consist of.
const ENTRIES: [&str; 4] = ["main", "<module>", "_start", "__libc_start_main"];

/// The text of a suppression file for these findings: one line each that covers it and nothing
/// else, and wider ones to choose from.
pub fn generate(findings: &[Finding], breaches: &[Breach]) -> String {
    let mut text = String::from(
        "# Suppressions for streamsan, made by --gen-suppressions. Each 'fingerprint:' line sets aside one finding; the\n# lines behind '#' under it are wider.\n",
    );
    for f in findings {
        let at = |side: &Side| {
            let what = side.kernel.clone().unwrap_or_else(|| side.call.clone());
            let place = crate::call_site::site(&side.stack).map_or_else(String::new, |at| format!(" at {at}"));
            format!("{}{place}", what.replace('\n', " "))
        };
        text.push_str(&format!(
            "\n# {} ({}): {}, after {}\nfingerprint:{}\n",
            f.hazard.name(),
            f.confidence.name(),
            at(&f.access),
            at(&f.previous),
            f.fingerprint
        ));
        let mut wider: Vec<String> = vec![format!("# cause:{}", f.cause)];
        for side in [&f.access, &f.previous] {
            if let Some(kernel) = &side.kernel {
                wider.push(format!("# kernel:^{kernel}$"));
            }
            let top = side.stack.iter().find(|f| f.kind != FrameKind::Folded && !f.function.is_empty());
            wider.extend(top.map(|f| match f.function.as_str() {
                // All that a program does may come from there: its stream says more.
                name if ENTRIES.contains(&name) => format!("# stream:^{}$", side.stream.long),
                name => format!("# race_top:^{name}$"),
            }));
        }
        wider.dedup();
        for line in wider {
            text.push_str(&line.replace('\n', " "));
            text.push('\n');
        }
    }
    for breach in breaches {
        text.push_str(&format!("\n# {}: {}\nfingerprint:{}\n", breach.kind.name(), breach.text, breach.fingerprint));
        let top = breach.side.stack.iter().find(|f| f.kind != FrameKind::Folded && !f.function.is_empty());
        if let Some(top) = top.filter(|f| !ENTRIES.contains(&f.function.as_str())) {
            text.push_str(&format!("# forbidden:^{}$\n", top.function.replace('\n', " ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_mistakes_named() {
        let list = read("s", "# all\n\n race:a*b \nrace_top:^f$\nkernel:k\ndeadlock:whatever\n").unwrap();
        let texts: Vec<_> = list.iter().map(|s| (s.text.as_str(), s.place.as_str())).collect();
        assert_eq!(texts, [("race:a*b", "s:3"), ("race_top:^f$", "s:4"), ("kernel:k", "s:5")]);
        let list = read("s", "race:main # known\nrace:main\t#\nrace:a#b\n \t# no line\n").unwrap();
        assert_eq!(list.iter().map(|s| s.text.as_str()).collect::<Vec<_>>(), ["race:main", "race:main", "race:a#b"]);
        let say = |text: &str| read("s", text).unwrap_err();
        assert_eq!(say("\nfoo"), "s:2: 'foo' is no suppression; write 'race:PATTERN'");
        assert!(say("races:foo").starts_with("s:1: no suppressions of type 'races'; there are race, "));
        for (kind, _) in FIELDS {
            for pattern in ["", "^", "$", "^$", "^*", "*$", "**"] {
                let error = say(&format!("#\n{kind}:{pattern}\n"));
                assert!(error.starts_with("s:2: ") && error.contains("names nothing"), "{error}");
            }
            assert!(read("s", &format!("{kind}:*\n{kind}:^x\n{kind}:x$\n")).is_ok(), "{kind}");
        }
    }
}
