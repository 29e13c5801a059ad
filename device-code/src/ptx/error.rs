//! Errors of the PTX parser. Each one names what was wrong, and the line of the text.

use thiserror::Error;

/// What is wrong with a PTX text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseErrorKind {
    /// The text ended inside something.
    #[error("the text ends inside {0}")]
    UnexpectedEnd(&'static str),
    /// Something else stands where `expected` should be.
    #[error("expected {expected}, found `{found}`")]
    Unexpected {
        /// What the grammar asks for here.
        expected: &'static str,
        /// The text that stands there instead (shortened).
        found: String,
    },
    /// A byte that begins no token.
    #[error("byte 0x{0:02x} begins no token")]
    BadByte(u8),
    /// A number that is malformed or too large.
    #[error("bad number `{0}`")]
    BadNumber(String),
    /// A type that PTX does not know, or that this parser does not.
    #[error("unknown type `{0}`")]
    UnknownType(String),
    /// A directive that this parser does not know.
    #[error("unknown directive `{0}`")]
    UnknownDirective(String),
    /// A branch to a label that is not in scope.
    #[error("no label `{0}` in scope")]
    UnknownLabel(String),
    /// The same label, variable or register twice in one scope.
    #[error("`{0}` is declared twice")]
    Duplicate(String),
    /// A limit of this parser, which keeps damaged text from using up memory.
    #[error("too many or too large: {0}")]
    Limit(&'static str),
}

/// A PTX text that could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("PTX line {line}: {kind}")]
pub struct ParseError {
    /// Line of the text, counted from 1.
    pub line: u32,
    /// What is wrong there.
    pub kind: ParseErrorKind,
}
