//! Sources in `tests/cuda`, compiled and loaded, and helpers to compare what the analysis says of
//! them.

#![allow(dead_code)] // Shared by several test binaries, none of which uses all of it.

#[path = "nvdisasm.rs"]
mod nvdisasm;

use kernels::CodeImage;
use kernels::arch::Arch;
use std::path::Path;

/// The code of a source file; `form`: `-cubin` or `-ptx`.
pub fn image(source: &str, arch: &str, form: &str) -> CodeImage {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda").join(source);
    let code = std::fs::read(nvdisasm::compile(&source, &[form, &format!("-arch={arch}")])).expect("compiled");
    CodeImage::load(&code, arch.parse::<Arch>().expect("arch")).expect("image")
}

/// Runs a check with as large a stack as the analyzer's threads have: recursion follows chains of
/// values.
pub fn deep(check: fn()) {
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(check).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
