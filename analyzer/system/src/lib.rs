//! How the analyzer meets the machine that it runs on: names of files, files, signals.
//!
//! Owns no data of a run. `file_name` is a name as it was given, spelt out with `printable`;
//! `local_files` finds the files of the program under test, `private_file` opens those that only
//! the user may read, and `output` writes those that the user has named. `interrupt` notes the
//! signal that asks for an end, `forward` passes signals on to a program. `descriptors` is the
//! limit of open files, `same_file` compares names. `background` is for threads that work where a
//! core is idle.

#![warn(unreachable_pub)]

pub mod background;
pub mod descriptors;
pub mod file_name;
pub mod forward;
pub mod interrupt;
pub mod local_files;
pub mod output;
pub mod printable;
pub mod private_file;
pub mod same_file;
