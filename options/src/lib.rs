//! The options of StreamSan: one table, one parser.
//!
//! Owns every option's name, type, default, commands, reader and help text ([`ROWS`]), and the
//! meaning of a value ([`Row::value`]). The command line, the configuration file, the help, the
//! man page and the completions are made from the table by the analyzer's `cli`; the value of
//! `STREAMSAN_OPTIONS` is read by [`parse`], by the analyzer and by the shim alike. What each of
//! them does with a value is its own affair.
//!
//! Nothing here allocates, locks or panics: the shim reads options in constructors and inside of
//! wrapped functions of the C library.
//!
//! To add an option: one row in `table.rs`. The analyzer matches on every [`Id`], so the compiler
//! names the place that must store it. What the shim reads stands in its `process::options`.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), no_std)]

mod amount;
mod parse;
mod row;
mod table;

pub use amount::Amount;
pub use parse::{Error, Value, Word, find, last, named, parse, same};
pub use row::{Command, Group, Kind, Reader, Row};
pub use table::{Id, ROWS};
