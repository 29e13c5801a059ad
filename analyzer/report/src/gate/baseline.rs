//! The baseline: known findings, which do not fail a run.
//!
//! Owns the file. It is JSON with the fingerprints of the findings, and enough beside them for a
//! person to recognise each. A report written by `--json` serves as well.

use crate::call_site::site;
use crate::model::{Breach, Finding, Side};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The version of reports as JSON. Here, because formats know the gate, which must not know them.
pub(crate) const VERSION: u32 = 1;
/// The format of a baseline.
const FORMAT: u32 = 1;

/// Refuses a baseline or a report of another version, whose fields may mean something else. One
/// that was written by hand need not have a version. The error is a line for the user, without the
/// file's name.
pub fn check_version(value: &Value) -> Result<(), String> {
    for (what, field, ours) in [("baseline", "baseline", FORMAT), ("report", "version", VERSION)] {
        let theirs = &value[field];
        if !theirs.is_null() && *theirs != ours {
            return Err(format!("the {what} has version {theirs}, this streamsan reads version {ours}"));
        }
    }
    Ok(())
}

/// The known fingerprints, and whether each has occurred in this run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Baseline {
    known: BTreeMap<String, bool>,
    causes: BTreeSet<String>,
}

impl Baseline {
    /// Reads the text of a baseline. The error is a line for the user, without the file's name.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| format!("this is no baseline: {e}"))?;
        let findings = value["findings"].as_array().ok_or("this is no baseline: it has no list of findings")?;
        check_version(&value)?;
        let text_of = |f: &Value, field: &str| f[field].as_str().filter(|text| !text.is_empty()).map(str::to_string);
        // A report that was itself compared with a baseline lists its known findings separately.
        let aside = || value["set_aside"].as_array().into_iter().flatten().filter(|f| f["standing"] == "known");
        let mut read = Self::default();
        for finding in findings.iter().chain(aside()) {
            // Only an entry that someone has left with its cause alone is about the whole cause.
            // Otherwise a new finding would hide behind a known one.
            match (text_of(finding, "fingerprint"), text_of(finding, "cause")) {
                (Some(fingerprint), _) => drop(read.known.insert(fingerprint, false)),
                (None, Some(cause)) => drop(read.causes.insert(cause)),
                (None, None) => return Err("this is no baseline: a finding has no fingerprint".into()),
            }
        }
        Ok(read)
    }

    /// Whether a finding is known. Remembers that it has occurred.
    pub(crate) fn knows(&mut self, fingerprint: &str) -> bool {
        self.known.get_mut(fingerprint).map(|seen| *seen = true).is_some()
    }

    /// Whether a finding has a cause of which all findings are known.
    pub(crate) fn knows_cause(&self, cause: &str) -> bool {
        self.causes.contains(cause)
    }

    /// Number of known findings that have not occurred.
    pub(crate) fn absent(&self) -> u64 {
        self.known.values().filter(|seen| !**seen).count() as u64
    }
}

/// The text of a baseline of these findings, in the order of their fingerprints, so that it can be
/// kept under version control.
pub fn write(findings: &[Finding], breaches: &[Breach]) -> String {
    let side = |s: &Side| {
        let what = s.kernel.clone().unwrap_or_else(|| s.call.clone());
        site(&s.stack).map_or(what.clone(), |at| format!("{what} at {at}"))
    };
    let mut list: BTreeMap<&str, Value> = BTreeMap::new();
    for f in findings {
        let entry = json!({
            "fingerprint": f.fingerprint,
            "cause": f.cause,
            "hazard": f.hazard.name(),
            "confidence": f.confidence.name(),
            "access": side(&f.access),
            "previous": side(&f.previous),
        });
        list.insert(&f.fingerprint, entry);
    }
    for breach in breaches {
        let entry = json!({
            "fingerprint": breach.fingerprint,
            "hazard": breach.kind,
            "confidence": breach.confidence.name(),
            "access": side(&breach.side),
        });
        list.insert(&breach.fingerprint, entry);
    }
    let list: Vec<Value> = list.into_values().collect();
    format!("{:#}\n", json!({ "tool": "streamsan", "baseline": FORMAT, "findings": list }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_has_fingerprints_and_names_what_has_not() {
        let mut b = Baseline::read(r#"{"findings":[{"fingerprint":"a"},{"fingerprint":"b"}]}"#).unwrap();
        assert!(b.knows("a") && b.knows("a") && !b.knows("c"));
        assert_eq!(b.absent(), 1);
        assert!(Baseline::read("hello").unwrap_err().starts_with("this is no baseline: "));
        assert!(Baseline::read("{}").unwrap_err().contains("no list"));
        assert!(Baseline::read(r#"{"findings":[{}]}"#).unwrap_err().contains("no fingerprint"));
    }

    #[test]
    fn other_versions_are_refused() {
        let of = |field: &str, version: &str| Baseline::read(&format!(r#"{{"{field}":{version},"findings":[]}}"#));
        for field in ["baseline", "version"] {
            assert!(of(field, "1").is_ok() && of(field, "null").is_ok(), "{field}");
            for version in ["0", "2", "99", "-1", "1.5", "\"1\"", "[1]", "true", "18446744073709551617"] {
                let error = of(field, version).unwrap_err();
                assert!(error.contains("has version") && error.contains("reads version 1"), "{field} {error}");
            }
        }
    }
}
