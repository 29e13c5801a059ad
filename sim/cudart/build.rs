//! Gives the cdylib the runtime's name and versioned symbols (`cudaMalloc@@libcudart.so.13`), as
//! programs linked with NVIDIA's library expect them. `--default-symver` takes the version from the
//! soname; GNU ld knows it, lld does not.

#[path = "../../signal-free/wrap_calls.rs"]
mod wrap_calls;

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-fuse-ld=bfd");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--default-symver");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcudart.so.13");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rerun-if-changed=build.rs");
    wrap_calls::wrap_calls();
}
