//! PTX text to syntax tree.
//!
//! Owns parsing: `lexer` (tokens), `parser` (modules), `function_body` (what is inside functions),
//! `ast` (the tree), `error`. Does not decide what instructions mean: the simulator executes the
//! tree, and `lower_ptx` turns it into the form of which summaries are made.
//!
//! The grammar covered is that of NVIDIA's compilers and of compilers built on LLVM's NVPTX back
//! end (nvcc, NVRTC, libNVVM, Triton, Numba): the directives of modules, functions and variables,
//! brace scopes with their own labels, and all operand forms except computed constant expressions.
//! Debug sections are skipped. Opcodes are taken as they are written, so an unknown instruction is
//! an error of its user, not of the parser.
//!
//! `link` joins several texts into one. It works on the text, and asks the parser what is defined.

mod ast;
mod error;
mod function_body;
mod lexer;
mod link;
mod parser;

pub use ast::*;
pub use error::{ParseError, ParseErrorKind};
pub use link::{LinkError, link};

/// Parses a PTX text. Zero bytes at its end (as in fatbins) are allowed.
///
/// # Errors
/// A [`ParseError`] names the line and what is wrong there. Damaged text never panics, recurses
/// without bound, or asks for memory out of proportion to its length.
pub fn parse(text: &str) -> Result<Module, ParseError> {
    parser::Parser::new(text).module()
}

/// Parses PTX text of unknown encoding: bytes that are not UTF-8 matter only inside strings and
/// comments.
///
/// # Errors
/// As [`parse`].
pub fn parse_bytes(text: &[u8]) -> Result<Module, ParseError> {
    parse(&String::from_utf8_lossy(text))
}
