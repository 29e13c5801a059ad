//! Sources in `tests/cuda`, compiled and loaded, and helpers to compare what the analysis says of
//! them.

use device_code::arch::Arch;
use kernels::CodeImage;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The code of a source file; `form`: `-cubin` or `-ptx`.
pub fn image(source: &str, arch: &str, form: &str) -> CodeImage {
    image_with(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda").join(source), arch, &[form])
}

/// The same with other options.
pub fn image_with(source: &Path, arch: &str, options: &[&str]) -> CodeImage {
    let arch_option = format!("-arch={arch}");
    let options = [options, &[&arch_option]].concat();
    let code = std::fs::read(tests::build::nvcc(source, &options)).expect("compiled");
    CodeImage::load(&code, arch.parse::<Arch>().expect("arch")).expect("image")
}

/// The machine code of a source file that is compiled separately, and linked.
pub fn linked(source: &str, arch: &str) -> CodeImage {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda").join(source);
    let compiled = tests::build::nvcc(&source, &["-rdc=true", "-lineinfo", "-cubin", &format!("-arch={arch}")]);
    // Several tests of a process may link at a time.
    static LINKED: AtomicU32 = AtomicU32::new(0);
    let name = format!("linked-{}-{}", std::process::id(), LINKED.fetch_add(1, Ordering::Relaxed));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    // The linker goes by names.
    let (input, output) = (folder.join("in.cubin"), folder.join("out.cubin"));
    std::fs::copy(compiled, &input).expect("a copy");
    let linker = tests::build::installed_toolkit().join("bin/nvlink");
    let mut link = std::process::Command::new(linker);
    let ran = link.arg(format!("-arch={arch}")).arg(&input).arg("-o").arg(&output).output().expect("nvlink runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let code = std::fs::read(&output).expect("linked");
    std::fs::remove_dir_all(&folder).expect("a folder");
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
