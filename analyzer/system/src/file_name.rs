//! Names of files as the user gives them: bytes, which need not be UTF-8.
//!
//! Owns how such a name is shown where only text can stand: in messages and reports, JSON among
//! them, a byte that belongs to no UTF-8 character is `\xff`, and what would mislead a terminal is
//! spelt out as everywhere ([`crate::printable`]). What is opened is the bytes.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Deref;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::printable::harmless;

/// The name of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileName(PathBuf);

impl FileName {
    /// The name that these bytes are.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(OsString::from_vec(bytes.to_vec()).into())
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }

    /// The name with more behind it.
    pub fn followed_by(&self, more: &str) -> Self {
        Self::of_bytes(&[self.bytes(), more.as_bytes()].concat())
    }

    /// Whether the name is this word. As paths, `./-` and `-` would be two names of one file.
    pub fn is(&self, word: &str) -> bool {
        self.bytes() == word.as_bytes()
    }
}

/// The text that stands for a name.
pub fn shown(name: impl AsRef<OsStr>) -> String {
    let mut text = String::new();
    for chunk in name.as_ref().as_bytes().utf8_chunks() {
        text.push_str(&harmless(chunk.valid()));
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl fmt::Debug for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Deref for FileName {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for FileName {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<OsStr> for FileName {
    fn as_ref(&self) -> &OsStr {
        self.0.as_os_str()
    }
}

impl<T: Into<OsString>> From<T> for FileName {
    fn from(name: T) -> Self {
        Self(name.into().into())
    }
}

#[cfg(feature = "clap")]
impl clap::builder::ValueParserFactory for FileName {
    type Parser = clap::builder::MapValueParser<clap::builder::OsStringValueParser, fn(OsString) -> Self>;

    fn value_parser() -> Self::Parser {
        use clap::builder::TypedValueParser;
        clap::builder::OsStringValueParser::new().map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_and_shown() {
        for (bytes, text) in [
            (&b"plain"[..], "plain"),
            ("gr\u{f6}\u{df}e".as_bytes(), "gr\u{f6}\u{df}e"),
            (b"re\xffport\xc3", "re\\xffport\\xc3"),
            (b"a\nb\xfe", "a\\nb\\xfe"),
            (b"", ""),
        ] {
            let name = FileName::of_bytes(bytes);
            assert_eq!((name.bytes(), name.to_string().as_str()), (bytes, text));
        }
        assert!(FileName::from("-").is("-") && !FileName::from("./-").is("-"));
    }
}
