//! Gives the library a SONAME, which the launcher replaces by the driver's in a copy when
//! `--soname` is asked for.

#[path = "../signal-free/wrap_calls.rs"]
mod wrap_calls;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libstreamsan.so");
    wrap_calls::wrap_calls();
}
