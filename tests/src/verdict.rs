//! What the first lines of a program say about it (`tests/corpus/README.md`), and whether a report
//! in JSON agrees.

use std::collections::{BTreeMap, BTreeSet};
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
    listed(folder, "known_failures.txt")
}

/// The lines `NAME: text` of a file.
fn listed(folder: &Path, file: &str) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
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

/// What a program showed, as `python3 tests/gpu check --lines` writes it: its hazards with their
/// pairs, or what a clean one printed.
pub fn line(report: &Value, printed: &str) -> String {
    let name = |side: &Value| {
        let named =
            ["kernel", "call", "operation"].iter().find_map(|key| side[*key].as_str().filter(|text| !text.is_empty()));
        named.unwrap_or("?").split('(').next().unwrap_or_default().trim().to_owned()
    };
    let shown: BTreeSet<String> = report["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|finding| finding["latent"] != true)
        .map(|finding| {
            let kind = match finding["hazard"].as_str().unwrap_or_default() {
                "read-after-write" => "RAW",
                "write-after-write" => "WAW",
                _ => "WAR",
            };
            let host = if finding["host"] == true { "host " } else { "" };
            format!("{host}{kind} {} / {}", name(&finding["previous"]), name(&finding["access"]))
        })
        .collect();
    if !shown.is_empty() {
        return shown.into_iter().collect::<Vec<_>>().join("; ");
    }
    // FNV-1a.
    let digest =
        printed.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    format!("clean, prints {digest:016x}")
}

/// What a program showed on a GPU, and why it may show something else on the simulated one.
pub struct OnGpu {
    lines: BTreeMap<String, String>,
    differs: BTreeMap<String, String>,
}

impl OnGpu {
    /// `tests/corpus/on_gpu.txt` and `tests/corpus/differs_from_gpu.txt`.
    pub fn read(corpus: &Path) -> Self {
        let lines = listed(corpus, "on_gpu.txt");
        let differs = listed(corpus, "differs_from_gpu.txt");
        assert!(lines.len() > 130, "on_gpu.txt has only {} lines", lines.len());
        for name in differs.keys() {
            assert!(lines.contains_key(name), "differs_from_gpu.txt names '{name}', of which on_gpu.txt knows nothing");
        }
        Self { lines, differs }
    }

    /// Holds what a program showed here against what it showed there. One that is newer than the
    /// table passes.
    pub fn judge(&self, name: &str, report: &Value, printed: &str) -> Result<(), String> {
        let Some(there) = self.lines.get(name) else { return Ok(()) };
        let here = line(report, printed);
        match (here == *there, self.differs.contains_key(name)) {
            (true, false) | (false, true) => Ok(()),
            (true, true) => Err("shows the same as on the GPU: take it off differs_from_gpu.txt".to_owned()),
            (false, false) => Err(format!("shows '{here}', on a GPU '{there}'\n{printed}")),
        }
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
