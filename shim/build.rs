//! Gives the library a SONAME, which the launcher replaces by the driver's in a copy when
//! `--soname` is asked for.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libstreamsan.so");
    // What the program defines under these names must not be called: see `signal_free::calls`.
    for name in include_str!("../signal-free/wrapped_calls.txt").lines() {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={name}");
    }
    println!("cargo:rerun-if-changed=../signal-free/wrapped_calls.txt");
}
