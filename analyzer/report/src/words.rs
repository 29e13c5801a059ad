//! Words of a report: those for causes, accesses and memory, those of a fixed vocabulary when it is
//! read back from a file, and nouns behind a number.
//!
//! Owns the way from a text to such a word. What other words there are is said by the fields that
//! hold them.

use std::sync::Mutex;

use serde::{Deserialize, Deserializer};
use trace::MemoryKind;

use detect::memory::{AccessKind, Cause};

/// A word that the code of this crate has written.
pub type Word = &'static str;

/// The words that were read.
static KNOWN: Mutex<Vec<Word>> = Mutex::new(Vec::new());

/// Reads a word. Each is kept once and for good: they are few.
pub fn known<'de, D: Deserializer<'de>>(from: D) -> Result<Word, D::Error> {
    let text = String::deserialize(from)?;
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(word) = known.iter().find(|word| **word == text) {
        return Ok(word);
    }
    let word: Word = Box::leak(text.into_boxed_str());
    known.push(word);
    Ok(word)
}

/// A number with its noun: `1 op`, `2 ops`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// The call that completes what this function of MPI has begun.
pub(super) fn completion(call: &str) -> &'static str {
    let epoch = ["MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op", "MPI_Compare_and_swap"];
    if epoch.iter().any(|begin| call.starts_with(begin)) {
        "MPI_Win_flush_local(rank, win);"
    } else {
        "MPI_Wait(&request, MPI_STATUS_IGNORE);"
    }
}

/// What an access does.
pub(super) fn verb(cause: Cause, kind: AccessKind) -> &'static str {
    match (cause, kind) {
        (Cause::Alloc, _) => "allocates",
        (Cause::Free, _) => "frees",
        (Cause::Discard, _) => "discards",
        (_, AccessKind::Read) => "reads",
        (Cause::Value, _) | (_, AccessKind::Write) => "writes",
        (_, AccessKind::Atomic) => "updates atomically",
        (_, AccessKind::AtomicRead) => "reads atomically",
        (_, AccessKind::AtomicWrite) => "writes atomically",
    }
}

/// What memory is.
pub(super) fn memory_kind(kind: Option<MemoryKind>) -> &'static str {
    match kind {
        None => "array",
        Some(MemoryKind::Device) => "device memory",
        Some(MemoryKind::Managed) => "managed memory",
        Some(MemoryKind::PinnedHost) => "pinned host memory",
        Some(MemoryKind::RegisteredHost) => "registered host memory",
        Some(MemoryKind::Pool) => "stream-ordered memory",
        Some(MemoryKind::Mapped) => "mapped memory",
        Some(MemoryKind::ModuleGlobal) => "variable of a module",
        Some(MemoryKind::Imported) => "imported memory",
        Some(MemoryKind::GraphNode) => "memory of a graph",
        Some(MemoryKind::Block) => "a pool of the program",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Side {
        #[serde(deserialize_with = "known")]
        verb: Word,
    }

    #[test]
    fn a_word_is_kept_once() {
        let read = |text| serde_json::from_str::<Side>(text).map(|side| side.verb);
        let (one, other) = (read(r#"{"verb":"reads"}"#).expect("a word"), read(r#"{"verb":"reads"}"#).expect("a word"));
        assert!(one == "reads" && std::ptr::eq(one, other));
        assert!(read(r#"{"verb":1}"#).is_err());
    }
}
