//! The crate's tests as one program, a module for each file. It owns the list of files and nothing
//! else.
//!
//! Tests share a process under `cargo test` and have one each under cargo-nextest: both must do.
//! `cargo xtask lint` finds files that this list forgets.

mod support {
    pub mod nvdisasm;
}

mod image_containers;
mod image_damage;
mod ptx_corpus;
mod ptx_damage;
mod sass_nvdisasm;
mod sass_registers;
