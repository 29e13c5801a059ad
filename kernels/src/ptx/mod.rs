//! Owns the PTX front end's first half: text to syntax tree. What instructions mean is not decided
//! here: the simulator executes the tree, `lower_ptx` turns it into the form that summaries are
//! made from.
//!
//! The grammar covered is that of NVIDIA's compilers and of what builds on LLVM's NVPTX back end
//! (nvcc, NVRTC, libNVVM, Triton, Numba): the directives of modules, functions and variables, brace
//! scopes with their own labels, all operand forms but computed constant expressions. Debug
//! sections are skipped. Opcodes are taken as they are written, so that an unknown instruction is
//! its user's error, not the parser's.

mod ast;
mod error;
pub(crate) mod function_body;
mod lexer;
mod parser;

pub use ast::*;
pub use error::{ParseError, ParseErrorKind};

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
