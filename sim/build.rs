//! Gives the cdylib the driver's name, and binds its own references to itself: a preloaded tool
//! that exports the same names must see what programs call, not what the driver calls inside.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    // Its threads, and what it asks of the main thread's end, need its code for ever.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
    // What the program defines under these names must not be called: see `signal_free::calls`.
    for name in include_str!("../signal-free/wrapped_calls.txt").lines() {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={name}");
    }
    println!("cargo:rerun-if-changed=../signal-free/wrapped_calls.txt");
}
