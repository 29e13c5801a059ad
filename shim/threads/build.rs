//! Binds the library's own system calls to no function of the program.

#[path = "../../signal-free/wrap_calls.rs"]
mod wrap_calls;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    wrap_calls::wrap_calls();
}
