//! The parser of `STREAMSAN_OPTIONS` and of single values.
//!
//! Owns the language: `key=value` pairs with colons between them, a key alone switches on, `no-key`
//! switches off, the last one wins. Keys may be written with `_` for `-` and with the dashes of the
//! command line. A value between quotes (`'` or `"`) may hold colons. Texts are bytes, because
//! paths are.

use crate::{Amount, Id, Kind, ROWS, Row};
use core::fmt;

/// A value, checked against the type of its option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Number`].
    Number(u64),
    /// Of [`Kind::Choice`]: the word's place in the list.
    Choice(usize),
    /// Of the kinds that are text; never empty.
    Text(&'a [u8]),
    /// Of [`Kind::Word`].
    Word(Word<'a>),
    /// Of [`Kind::Amount`].
    Amount(Amount),
}

/// The value of an option that is on, off, or on for something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word<'a> {
    /// Off.
    Off,
    /// On.
    On,
    /// On for what is named.
    Named(&'a [u8]),
}

/// Why an option was refused. Its `Display` is one line without an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error<'a> {
    /// No option has this name.
    Unknown(&'a [u8]),
    /// The option needs a value.
    Missing(&'static Row),
    /// The value is none that the option takes.
    Value(&'static Row, &'a [u8]),
    /// The value begins with a quote that nothing ends.
    Unclosed(&'static Row, &'a [u8]),
}

impl fmt::Display for Error<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(to, "unknown option '{}'", name.escape_ascii()),
            Self::Missing(row) => write!(to, "option '{}' needs a value", row.name),
            Self::Unclosed(row, value) => {
                write!(to, "option '{}' has a quote without its end: {}", row.name, value.escape_ascii())
            }
            Self::Value(row, value) => {
                write!(to, "option '{}' takes ", row.name)?;
                match row.kind {
                    Kind::Flag => write!(to, "yes or no")?,
                    Kind::Number { min, max } => write!(to, "a number from {min} to {max}")?,
                    Kind::Choice(words) | Kind::Rules(words) => {
                        for (i, word) in words.iter().enumerate() {
                            write!(to, "{}{word}", if i == 0 { "" } else { " or " })?;
                        }
                        if matches!(row.kind, Kind::Rules(_)) {
                            to.write_str(", alone or with =NAME")?;
                        }
                    }
                    Kind::Amount(_) => write!(to, "an amount such as 10GiB or 30min")?,
                    _ => write!(to, "a text")?,
                }
                match core::str::from_utf8(value) {
                    Ok(value) => write!(to, ", not '{value}'"),
                    Err(_) => write!(to, ", not '{}'", value.escape_ascii()),
                }
            }
        }
    }
}

impl Row {
    /// What this text means for the option.
    pub fn value<'a>(&'static self, text: &'a [u8]) -> Result<Value<'a>, Error<'a>> {
        let wrong = Error::Value(self, text);
        match self.kind {
            Kind::Flag => switch(text).map(Value::Flag).ok_or(wrong),
            Kind::Number { min, max } => {
                let digits = core::str::from_utf8(text).ok().filter(|t| t.bytes().all(|b| b.is_ascii_digit()));
                let number = digits.and_then(|t| t.parse().ok()).filter(|n| (min..=max).contains(n));
                number.map(Value::Number).ok_or(wrong)
            }
            Kind::Choice(words) => {
                words.iter().position(|word| word.as_bytes() == text).map(Value::Choice).ok_or(wrong)
            }
            Kind::Amount(_) => Amount::parse(text).map(Value::Amount).ok_or(wrong),
            Kind::Rules(_) if text.is_empty() => Err(Error::Missing(self)),
            Kind::Rules(words) => {
                let (word, of) = rule(text);
                let is_rule = words.iter().any(|known| known.as_bytes() == word);
                if is_rule && of != Some(b"") { Ok(Value::Text(text)) } else { Err(wrong) }
            }
            Kind::Word(_) => Ok(Value::Word(match switch(text) {
                Some(false) => Word::Off,
                Some(true) => Word::On,
                None if text.is_empty() => Word::On,
                None => Word::Named(text),
            })),
            Kind::File | Kind::PathOrOff(_) | Kind::Patterns | Kind::Files | Kind::Folders => {
                if text.is_empty() {
                    Err(Error::Missing(self))
                } else {
                    Ok(Value::Text(text))
                }
            }
        }
    }

    /// What the name alone means, or `no-` and the name.
    pub fn bare(&'static self, on: bool) -> Result<Value<'static>, Error<'static>> {
        match self.kind {
            Kind::Flag => Ok(Value::Flag(on)),
            Kind::Word(_) => Ok(Value::Word(if on { Word::On } else { Word::Off })),
            _ => Err(Error::Missing(self)),
        }
    }

    /// Whether values are names of files or folders, which may be any bytes.
    pub const fn is_path(&self) -> bool {
        matches!(self.kind, Kind::File | Kind::Files | Kind::Folders | Kind::PathOrOff(_))
    }

    /// Whether `no-` may stand before the name.
    pub const fn is_switch(&self) -> bool {
        matches!(self.kind, Kind::Flag | Kind::Word(_))
    }
}

/// The word of a rule, and what follows its `=`.
pub(crate) fn rule(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|b| *b == b'=') {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// On or off.
fn switch(text: &[u8]) -> Option<bool> {
    match text {
        b"1" | b"yes" | b"true" | b"on" => Some(true),
        b"0" | b"no" | b"false" | b"off" => Some(false),
        _ => None,
    }
}

/// Whether a name is meant, which may be written with `_` for `-`.
pub fn same(written: &[u8], name: &str) -> bool {
    written.len() == name.len() && written.iter().zip(name.bytes()).all(|(a, b)| *a == b || (*a == b'_' && b == b'-'))
}

/// The row of this name.
pub fn named(name: &[u8]) -> Option<&'static Row> {
    ROWS.iter().find(|row| same(name, row.name))
}

/// The row of this number.
pub fn find(id: Id) -> &'static Row {
    &ROWS[id as usize]
}

/// The options in a value of `STREAMSAN_OPTIONS`, in their order. A wrong one does not hide those
/// behind it.
pub fn parse(text: &[u8]) -> impl Iterator<Item = Result<(Id, Value<'_>), Error<'_>>> {
    pairs(text).map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty()).map(pair)
}

/// The texts between the colons that are not within quotes.
fn pairs(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    core::iter::from_fn(move || {
        let text = rest?;
        let end = end_of_pair(text);
        rest = text.get(end + 1..);
        Some(&text[..end])
    })
}

/// Where the first pair ends. A quote counts only right behind the `=`, and only if another one
/// ends the value: a file's name may hold one. One that nothing ends is an error.
fn end_of_pair(text: &[u8]) -> usize {
    let colon = |from: usize| text[from..].iter().position(|b| *b == b':').map_or(text.len(), |at| from + at);
    let first = colon(0);
    let Some(value) = text[..first].iter().position(|b| *b == b'=').map(|at| at + 1) else { return first };
    let Some(quote) = text.get(value).filter(|b| is_quote(**b)) else { return first };
    let ends = |at: &usize| text[*at] == *quote && colon(at + 1) == skip_spaces(text, at + 1);
    (value + 1..text.len()).find(ends).map_or(first, |at| colon(at + 1))
}

fn skip_spaces(text: &[u8], from: usize) -> usize {
    from + text[from..].iter().take_while(|b| b.is_ascii_whitespace()).count()
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'\'' | b'"')
}

/// A value without the quotes around it. `None`: nothing ends the quote that it begins with.
fn unquoted(value: &[u8]) -> Option<&[u8]> {
    match value {
        [first, inner @ .., last] if first == last && is_quote(*first) => Some(inner),
        [first, ..] if is_quote(*first) => None,
        _ => Some(value),
    }
}

fn pair(pair: &[u8]) -> Result<(Id, Value<'_>), Error<'_>> {
    let at = pair.iter().position(|b| *b == b'=');
    let written = pair[..at.unwrap_or(pair.len())].trim_ascii();
    let name = written.strip_prefix(b"--").unwrap_or(written);
    if let Some(at) = at {
        let row = named(name).ok_or(Error::Unknown(written))?;
        let value = unquoted(&pair[at + 1..]).ok_or(Error::Unclosed(row, &pair[at + 1..]))?;
        return row.value(value).map(|value| (row.id, value));
    }
    if let Some(row) = named(name) {
        return row.bare(true).map(|value| (row.id, value));
    }
    let negated = name.strip_prefix(b"no-").or_else(|| name.strip_prefix(b"no_"));
    let row = negated.and_then(named).filter(|row| row.is_switch()).ok_or(Error::Unknown(written))?;
    row.bare(false).map(|value| (row.id, value))
}

/// What a value of `STREAMSAN_OPTIONS` says of one option; wrong ones are passed over.
pub fn last(text: &[u8], id: Id) -> Option<Value<'_>> {
    parse(text).filter_map(|found| found.ok().filter(|(found, _)| *found == id)).map(|(_, value)| value).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Reader};

    fn said(text: &str) -> Vec<String> {
        parse(text.as_bytes()).filter_map(Result::err).map(|e| e.to_string()).collect()
    }

    #[test]
    fn a_value_of_zero_switches_off() {
        assert_eq!(last(b"count-calls=0", Id::CountCalls), Some(Value::Flag(false)));
        assert_eq!(last(b"count-calls", Id::CountCalls), Some(Value::Flag(true)));
        assert_eq!(last(b"count-calls=1:no-count-calls", Id::CountCalls), Some(Value::Flag(false)));
        assert_eq!(last(b"count_calls=on", Id::CountCalls), Some(Value::Flag(true)));
        assert_eq!(last(b"count-callsigns=1", Id::CountCalls), None);
    }

    #[test]
    fn exact_off_names_no_kernels() {
        for (text, word) in [
            ("exact=off", Word::Off),
            ("exact=false", Word::Off),
            ("no-exact", Word::Off),
            ("exact", Word::On),
            ("exact=", Word::On),
            ("exact=true", Word::On),
            ("exact=all", Word::Named(b"all")),
            ("exact=off:exact=sort", Word::Named(b"sort")),
        ] {
            assert_eq!(last(text.as_bytes(), Id::Exact), Some(Value::Word(word)), "{text}");
        }
    }

    #[test]
    fn negations_hold_everywhere() {
        assert_eq!(last(b"no-stacks", Id::Stacks), Some(Value::Flag(false)));
        assert_eq!(last(b"--no_stacks", Id::Stacks), Some(Value::Flag(false)));
        assert_eq!(said("no-json:no-ring-mib"), ["unknown option 'no-json'", "unknown option 'no-ring-mib'"]);
    }

    #[test]
    fn a_key_is_not_the_beginning_of_another() {
        let text = b"exact=sort:confirm:exact-patch=/x:exact-compare=";
        assert_eq!(last(text, Id::Exact), Some(Value::Word(Word::Named(b"sort"))));
        assert_eq!(last(text, Id::ExactPatch), Some(Value::Text(b"/x")));
        assert_eq!((last(text, Id::Confirm), last(text, Id::ExactCompare)), (Some(Value::Flag(true)), None));
        assert_eq!(last(b"exact-patch=/x", Id::Exact), None);
    }

    #[test]
    fn mistakes_are_named_and_hide_nothing_behind_them() {
        let text = "jsn=x:json:stacks=maybe:ring-mib=0:ring-mib=+5:ring-mib=8:policy=strict: :json=";
        assert_eq!(
            said(text),
            [
                "unknown option 'jsn'",
                "option 'json' needs a value",
                "option 'stacks' takes yes or no, not 'maybe'",
                "option 'ring-mib' takes a number from 1 to 4096, not '0'",
                "option 'ring-mib' takes a number from 1 to 4096, not '+5'",
                "option 'policy' takes observed or documented, not 'strict'",
                "option 'json' needs a value",
            ]
        );
        assert_eq!(last(text.as_bytes(), Id::RingMib), Some(Value::Number(8)));
        assert_eq!(last(b"json=\xff", Id::Json), Some(Value::Text(b"\xff")));
    }

    #[test]
    fn quotes_hold_colons_together() {
        let texts = |text: &str| -> Vec<String> {
            parse(text.as_bytes())
                .map(|found| match found {
                    Ok((id, Value::Text(text))) => format!("{id:?} {}", text.escape_ascii()),
                    other => format!("{other:?}"),
                })
                .collect()
        };
        let both = ["Without race.cu:22", "Json out"];
        assert_eq!(texts("without='race.cu:22':json=out"), both);
        assert_eq!(texts("without=\"race.cu:22\" : json='out'"), both);
        assert_eq!(texts("json=it's:without=a's"), ["Json it\\'s", "Without a\\'s"], "no value begins with one");
        assert_eq!(said("json=''"), ["option 'json' needs a value"]);
        for quote in ["'", "\""] {
            for value in ["", "a", "a b", "a'b\"c", " a"] {
                let open = format!("{quote}{value}");
                let error = format!("option 'json' has a quote without its end: {}", open.as_bytes().escape_ascii());
                assert_eq!(said(&format!("json={open}")), std::slice::from_ref(&error), "{open}");
                assert_eq!(said(&format!("stacks=1:json={open}:without=b")), [error], "{open}");
                assert_eq!(said(&format!("json=x{open}")), [""; 0], "{open}: inside a name a quote is a letter");
            }
        }
    }

    #[test]
    fn rules_are_words_with_or_without_a_name() {
        let of = |text: &'static str| last(text.as_bytes(), Id::Forbid);
        for text in ["sync", "sync=a=b", "default-stream=libx.so", "unnamed-stream"] {
            assert_eq!(find(Id::Forbid).value(text.as_bytes()), Ok(Value::Text(text.as_bytes())), "{text}");
        }
        assert_eq!(of("forbid=sync=step"), Some(Value::Text(b"sync=step")));
        assert_eq!(
            said("forbid:forbid=:forbid=syncs:forbid=sync="),
            [
                "option 'forbid' needs a value",
                "option 'forbid' needs a value",
                "option 'forbid' takes default-stream or sync or unnamed-stream, alone or with =NAME, not 'syncs'",
                "option 'forbid' takes default-stream or sync or unnamed-stream, alone or with =NAME, not 'sync='",
            ]
        );
    }

    #[test]
    fn rows_are_sound() {
        for (place, row) in ROWS.iter().enumerate() {
            assert_eq!(row.id as usize, place, "{}", row.name);
            assert!(row.default.is_empty() || row.value(row.default.as_bytes()).is_ok(), "{}", row.name);
            assert!(!row.help.is_empty() && !row.help.ends_with('.'), "{}", row.name);
            assert!(ROWS.iter().filter(|other| other.name == row.name).count() == 1, "{}", row.name);
            assert!(!row.name.starts_with("no-") && !row.name.contains('_'), "{}", row.name);
            assert_eq!(named(row.name.as_bytes()), Some(row));
            // The launcher passes it on, so it must be able to read it.
            let runs = row.commands.has(Command::Run) || row.commands.has(Command::Record);
            assert!(runs || row.reader != Reader::Shim || row.commands.iter().next().is_none(), "{}", row.name);
        }
    }
}
