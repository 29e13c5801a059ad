//! How the shim gets between a program and the driver, and that the program never notices.

mod copied_bytes;
mod dropped;
mod failing_calls;
mod guests;
mod hardening;
mod host_pages;
mod inherited;
mod installed;
mod libraries;
mod limits;
mod overridden;
mod portable;
mod processes;
mod symbol_hooks;
mod tensor_maps;
mod unharmed;
