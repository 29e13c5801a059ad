//! Gives the preloaded file the names of all libraries that it stands for.
//!
//! A file that is loaded answers to its own name only. Some packages load NVIDIA's library by its
//! full path and then ask for it by name: without this they would get NVIDIA's. For glibc, a name
//! that leads to a file that is loaded is another name of that file (`ld.so(8)`; the names stand
//! beside this file, and `scripts/build` gives it their folder as its search path).

use std::ffi::CStr;

/// As `scripts/build` names them for CUDA 12 and 13.
const NAMES: [&CStr; 18] = [
    c"libcublas.so.12",
    c"libcublas.so.13",
    c"libcublasLt.so.12",
    c"libcublasLt.so.13",
    c"libcudnn.so.9",
    c"libcufft.so.11",
    c"libcufft.so.12",
    c"libcupti.so.12",
    c"libcupti.so.13",
    c"libcurand.so.10",
    c"libcusolver.so.11",
    c"libcusolver.so.12",
    c"libcusparse.so.12",
    c"libcusparseLt.so.0",
    c"libcufile.so.0",
    c"libnccl.so.2",
    c"libnvidia-ml.so.1",
    c"libnvshmem_host.so.3",
];

#[ctor::ctor(unsafe)]
fn take() {
    let first = c"libcublas.so.13";
    // SAFETY: C strings; nothing is loaded that is not there already.
    unsafe {
        let mut own: libc::Dl_info = std::mem::zeroed();
        // One of the two files does it for both.
        if libc::dladdr(take as *const () as *const _, &mut own) == 0
            || !CStr::from_ptr(own.dli_fname).to_bytes().ends_with(first.to_bytes())
        {
            return;
        }
        for name in NAMES {
            libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
        }
    }
}
