//! Gives the library a SONAME, so that programs that are linked with it ask for it by that name.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libstreamsan_host.so");
    // What the program defines under these names must not be called: see `signal_free::calls`.
    for name in include_str!("../../signal-free/wrapped_calls.txt").lines() {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={name}");
    }
    println!("cargo:rerun-if-changed=../../signal-free/wrapped_calls.txt");
}
