//! How the shim gets between a program and the driver, and that the program never notices.

mod copied_bytes;
mod guests;
mod hardening;
mod libraries;
mod portable;
mod processes;
mod symbol_hooks;
