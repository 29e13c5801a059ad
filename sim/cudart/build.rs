//! Gives the cdylib the runtime's name and versioned symbols (`cudaMalloc@@libcudart.so.13`), as
//! programs linked with NVIDIA's library expect them. `--default-symver` takes the version from the
//! soname; GNU ld knows it, lld does not.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-fuse-ld=bfd");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--default-symver");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcudart.so.13");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rerun-if-changed=build.rs");
    // What the program defines under these names must not be called: see `signal_free::calls`.
    for name in include_str!("../../signal-free/wrapped_calls.txt").lines() {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={name}");
    }
    println!("cargo:rerun-if-changed=../../signal-free/wrapped_calls.txt");
}
