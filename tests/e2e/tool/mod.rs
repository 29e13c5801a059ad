//! The program `streamsan`: its commands, recorded traces, explanations.

mod command_line;
mod commands;
mod explain;
mod offline;
mod traces;
