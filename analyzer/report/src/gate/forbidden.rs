//! What a user forbids: `--forbid default-stream[=MODULE]`, `sync[=NVTX RANGE]`, `unnamed-stream`.
//!
//! Owns the reading. Which words there are is checked by the table of options already.

use crate::breach::RuleKind;
use crate::gate::pattern::Pattern;

/// A rule as it was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forbidden {
    /// Its kind.
    pub kind: RuleKind,
    /// As written: `sync=step`.
    pub text: String,
    /// The module or the range that it is limited to.
    pub only: Option<Pattern>,
}

impl Forbidden {
    /// Reads a rule. `None`: there is no such rule.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (word, only) = text.split_once('=').map_or((text, None), |(word, only)| (word, Some(only)));
        let kind = RuleKind::ALL.into_iter().find(|kind| kind.word() == word)?;
        Some(Self { kind, text: text.to_string(), only: only.map(Pattern::new) })
    }

    /// These rules, for the rest of the process. `None`: nothing is forbidden.
    pub fn keep(texts: &[String]) -> Option<&'static [Self]> {
        let rules: Vec<Self> = texts.iter().filter_map(|text| Self::read(text)).collect();
        (!rules.is_empty()).then(|| &*Vec::leak(rules))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_table_is_a_rule() {
        let options::Kind::Rules(words) = options::find(options::Id::Forbid).kind else { panic!("rules") };
        for word in words {
            let rule = Forbidden::read(&format!("{word}=x=y")).expect("a rule");
            assert_eq!((rule.kind.word(), rule.only), (*word, Some(Pattern::new("x=y"))));
        }
        assert_eq!(words.len(), RuleKind::ALL.len());
        assert_eq!(Forbidden::read("sync").and_then(|rule| rule.only), None);
    }
}
