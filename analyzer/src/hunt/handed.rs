//! What `streamsan run` hands to the hunt that has started it: a file.
//!
//! Owns its contents. It is no interface: tool and hunt are one program. The outcomes of the
//! processes travel whole, so that a merged report says all that the program's own report says.

use std::path::Path;

use serde::{Deserialize, Serialize};

use report::model::Outcome;

/// The end of a program, and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed {
    /// Its processes.
    pub outcomes: Vec<Outcome>,
    /// The program's exit code, or the signal it died of.
    pub ended: Result<i32, i32>,
    /// Whether it was stopped because its time was over.
    pub timed_out: bool,
    /// What the run ends with, but for findings and signals.
    pub code: i32,
    /// Why it was not checked, or only in part.
    pub unchecked: Vec<String>,
}

impl Handed {
    /// Writes the file. The error is a line for the user.
    pub fn write(&self, file: &Path) -> Result<(), String> {
        let wrong = |error: String| format!("{}: {error}", file.display());
        let bytes = serde_json::to_vec(self).map_err(|error| wrong(error.to_string()))?;
        std::fs::write(file, bytes).map_err(|error| wrong(error.to_string()))
    }

    /// Reads it; `None` when the run has not come so far.
    pub fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    }
}
