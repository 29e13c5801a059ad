//! Words of a report: those of a fixed vocabulary when it is read back from a file, and nouns
//! behind a number.
//!
//! Owns the way from a text to such a word. What words there are is said by the fields that hold
//! them.

use std::sync::Mutex;

use serde::{Deserialize, Deserializer};

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
pub(crate) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
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
