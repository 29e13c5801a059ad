//! Expected outputs: one table of normalisers, and a way to bless.
//!
//! `cargo xtask bless` writes what came out as what is expected.

use std::path::Path;

/// What differs between runs and machines, and what stands for it. In this order.
const NORMALISERS: &[(&str, Rule)] = &[
    ("CUDA's toolkit", Rule::Text(|context, text| replace_path(text, &context.toolkit, "TOOLKIT"))),
    ("the repository's path", Rule::Text(|context, text| replace_path(text, &context.root, "ROOT"))),
    ("the folder of compiled programs", Rule::Text(|context, text| replace_path(text, &context.scratch, "SCRATCH"))),
    ("frames of the C library", Rule::After("... [", |c| c.is_ascii_digit(), "... [N")),
    ("frames (one)", Rule::Text(|_, text| text.replace("... [N frame of", "... [N frames of"))),
    ("nvcc's temporary files", Rule::After("tmpxft_", |c| c.is_ascii_hexdigit(), "tmpxft_PID")),
    ("temporary folders", Rule::Text(|_, text| text.replace("/tmp/tmpxft", "TMP/tmpxft"))),
    ("addresses", Rule::After("0x", |c| c.is_ascii_hexdigit(), "0xADDRESS")),
    ("process ids", Rule::After("pid=", |c| c.is_ascii_digit(), "pid=PID")),
    ("processes", Rule::After("process ", |c| c.is_ascii_digit(), "process PID")),
    ("threads", Rule::After("host thread ", |c| c.is_ascii_digit(), "host thread TID")),
    ("thread ids", Rule::After("tid=", |c| c.is_ascii_digit(), "tid=TID")),
    ("causes", Rule::After("cause=", |c| c.is_ascii_alphanumeric(), "cause=CAUSE")),
    ("fingerprints", Rule::After("fingerprint=", |c| c.is_ascii_alphanumeric(), "fingerprint=FINGERPRINT")),
    ("build ids", Rule::After("build-id=", |c| c.is_ascii_hexdigit(), "build-id=ID")),
    ("versions", Rule::After("streamsan 0.", |c| c.is_ascii_digit() || c == '.', "streamsan VERSION")),
];

enum Rule {
    Text(fn(&Context, &str) -> String),
    /// A fixed beginning, then as many characters of a class as there are (at least one): the
    /// replacement.
    After(&'static str, fn(char) -> bool, &'static str),
}

/// Paths that differ between machines.
pub struct Context {
    /// The repository.
    pub root: String,
    /// Where programs were compiled.
    pub scratch: String,
    /// CUDA's compiler; empty where there is none.
    pub toolkit: String,
}

/// A text with everything replaced that differs between runs.
pub fn normalised(context: &Context, text: &str) -> String {
    let mut text = text.to_owned();
    for (_, rule) in NORMALISERS {
        text = match rule {
            Rule::Text(change) => change(context, &text),
            Rule::After(begin, class, with) => replace_after(&text, begin, *class, with),
        };
    }
    text
}

fn replace_path(text: &str, path: &str, with: &str) -> String {
    if path.is_empty() { text.to_owned() } else { text.replace(path, with) }
}

fn replace_after(text: &str, begin: &str, class: fn(char) -> bool, with: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(begin) {
        let behind = &rest[at + begin.len()..];
        let len = behind.find(|c| !class(c)).unwrap_or(behind.len());
        out.push_str(&rest[..at]);
        out.push_str(if len > 0 { with } else { begin });
        rest = &behind[len..];
    }
    out + rest
}

/// Compares with the expected text in a file, or writes it there when `BLESS=1`. The error shows
/// the first difference.
pub fn compare(expected: &Path, got: &str) -> Result<(), String> {
    if std::env::var_os("BLESS").is_some_and(|v| v == "1") {
        return std::fs::write(expected, got).map_err(|e| format!("{}: {e}", expected.display()));
    }
    let wanted = std::fs::read_to_string(expected)
        .map_err(|e| format!("{}: {e} (write it with BLESS=1)", expected.display()))?;
    if wanted == got {
        return Ok(());
    }
    let (mut a, mut b) = (wanted.lines(), got.lines());
    let mut line = 1;
    loop {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) if x == y => line += 1,
            (x, y) => {
                let show = |l: Option<&str>| l.unwrap_or("(end)").to_owned();
                return Err(format!(
                    "{}:{line}\n  expected: {}\n  got:      {}\n(accept it with BLESS=1)\n\n{got}",
                    expected.display(),
                    show(x),
                    show(y)
                ));
            }
        }
    }
}
