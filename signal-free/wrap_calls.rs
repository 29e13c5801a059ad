//! A part of the build scripts of the libraries that lie in a program: has the linker lead their
//! own system calls past what the program defines under these names (`signal_free::calls`).

/// Asks the linker for it, for each name in the list.
pub(crate) fn wrap_calls() {
    for name in include_str!("wrapped_calls.txt").lines() {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={name}");
        // A linker that reads archives once asks for these only after this crate's has gone by.
        println!("cargo:rustc-cdylib-link-arg=-Wl,--undefined=__wrap_{name}");
    }
}
