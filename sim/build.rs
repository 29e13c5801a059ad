//! Gives the cdylib the driver's name, and binds its own references to itself: a preloaded tool
//! that exports the same names must see what programs call, not what the driver calls inside.

#[path = "../signal-free/wrap_calls.rs"]
mod wrap_calls;

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    // Its threads, and what it asks of the main thread's end, need its code for ever.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
    wrap_calls::wrap_calls();
}
