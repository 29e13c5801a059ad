//! Gives the library a SONAME, which the launcher replaces by the driver's in a copy when
//! `--soname` is asked for.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libstreamsan.so");
}
