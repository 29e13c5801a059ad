//! One frame of a stack, with its name and line.
//!
//! Owns the data only. [`super::Symbolizer`] makes frames and `report` prints them.

use serde::{Deserialize, Serialize};

/// The kind of a stack frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum FrameKind {
    /// Machine code.
    Native,
    /// Python code.
    Python,
    /// Stands for frames of no interest: the driver, cudart, StreamSan itself, the interpreter.
    Folded,
}

/// One frame of a stack, innermost first.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Frame {
    /// Its kind.
    pub kind: FrameKind,
    /// Demangled name of the function; empty when unknown.
    pub function: String,
    /// Source file.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
    /// Object file.
    pub module: Option<String>,
    /// Address in the process (0 for Python).
    pub address: u64,
    /// Whether the function was inlined into the next frame.
    pub inlined: bool,
    /// The source line's text.
    pub source: Option<String>,
}

impl Frame {
    /// `file:line`, as short as it stays useful; `None` without a file.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(self.line.map_or_else(|| file.clone(), |line| format!("{file}:{line}")))
    }
}
