//! What the first lines of a program say about it (`tests/corpus/README.md`), and whether a report in JSON agrees.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// What a program is to show.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The kind of hazard; `None`: clean.
    pub hazard: Option<&'static str>,
    /// Whether one side is the CPU itself.
    pub host: bool,
    /// Both sides of a race, as the header words them.
    pub pair: (String, String),
}

/// A line `// NAME: ...` of a program's text.
pub fn field(text: &str, name: &str) -> Option<String> {
    let start = format!("// {name}: ");
    text.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
}

/// As [`field`], of a line that must be there.
pub fn needed_field(file: &Path, text: &str, name: &str) -> String {
    field(text, name).unwrap_or_else(|| panic!("{}: no '{name}'", file.display()))
}

/// The lines `NAME: reason` of a folder's `known_failures.txt`.
pub fn known_failures(folder: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder.join("known_failures.txt")).expect("known_failures.txt");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, reason) = line.split_once(':').unwrap_or_else(|| panic!("'{line}' has no reason"));
            (name.trim().to_owned(), reason.trim().to_owned())
        })
        .collect()
}

impl Verdict {
    /// From the words behind `expect:` and `pair:`.
    pub fn read(file: &Path, expect: &str, pair: &str) -> Self {
        let words: Vec<&str> = expect.split_whitespace().collect();
        let hazard = match (words.first().copied(), words.last().copied()) {
            (Some("clean"), _) => None,
            (Some("race"), Some("RAW")) => Some("read-after-write"),
            (Some("race"), Some("WAW")) => Some("write-after-write"),
            (Some("race"), Some("WAR")) => Some("write-after-read"),
            _ => panic!("{}: cannot read 'expect: {expect}'", file.display()),
        };
        let (first, second) = pair.split_once(" / ").unwrap_or((pair, ""));
        Self { hazard, host: words.contains(&"host"), pair: (first.to_owned(), second.to_owned()) }
    }

    /// Whether the report says the same. The error says what is not as it should be.
    pub fn judge(&self, report: &Value) -> Result<(), String> {
        let found = report["summary"]["findings"].as_u64().ok_or("no summary.findings")?;
        if report["coverage"]["ops"].as_u64().unwrap_or(0) == 0 {
            return Err("no CUDA was seen".to_owned());
        }
        let Some(hazard) = self.hazard else {
            return if found == 0 { Ok(()) } else { Err(format!("false alarm: {found} findings in a clean program")) };
        };
        if found == 0 {
            return Err(format!("missed: {hazard}"));
        }
        let findings = report["findings"].as_array().ok_or("no findings")?;
        let right = findings.iter().any(|finding| {
            finding["hazard"] == hazard
                && finding["host"] == self.host
                && is_side(&finding["previous"], &self.pair.0)
                && is_side(&finding["access"], &self.pair.1)
        });
        if right { Ok(()) } else { Err(format!("another pair than {} / {} ({hazard})", self.pair.0, self.pair.1)) }
    }
}

/// Whether a side of a finding is what the header's words name.
fn is_side(side: &Value, words: &str) -> bool {
    let operation = side["operation"].as_str().unwrap_or_default();
    let word = words.split_whitespace().next().unwrap_or_default();
    match word {
        "kernel" => {
            let name = words.split_whitespace().skip(1).find(|word| *word != "node").unwrap_or_default();
            side["kernel"].as_str().is_some_and(|kernel| kernel.contains(name))
        }
        "host" => operation == "host",
        "memcpy" => operation == "copy",
        _ if word.starts_with("cudaMemcpy") || word.starts_with("cuMemcpy") => operation == "copy",
        _ if word.starts_with("cudaMemset") => operation == "set",
        _ if word.starts_with("cudaMalloc") => operation == "alloc",
        _ if word.starts_with("cudaFree") => operation == "free",
        _ => true,
    }
}
