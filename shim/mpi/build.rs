//! Binds the library's own system calls to no function of the program.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // What the program defines under these names must not be called: see `signal_free::calls`.
    for name in include_str!("../../signal-free/wrapped_calls.txt").lines() {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={name}");
    }
    println!("cargo:rerun-if-changed=../../signal-free/wrapped_calls.txt");
}
