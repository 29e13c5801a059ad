//! Gives the library a SONAME, so that programs that are linked with it ask for it by that name.

#[path = "../../signal-free/wrap_calls.rs"]
mod wrap_calls;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libstreamsan_host.so");
    wrap_calls::wrap_calls();
}
