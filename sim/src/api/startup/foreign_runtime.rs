//! NVIDIA's own runtime has asked for its private table: which file holds it, and why it is not the
//! simulator's that runs in its place.

use std::ffi::CStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use cuda_sys::{c_int, c_void};

/// The library that puts the simulator's runtime in place of NVIDIA's (crate `sim-divert`).
const DIVERT: &str = "libstreamsan_divert.so";

/// More frames than lie between the runtime and here.
const FRAMES: usize = 32;

/// Takes note of it, and says what to do.
pub(crate) fn refuse() {
    let file = caller();
    let named = file.as_deref().map_or_else(|| "the program".to_owned(), |file| file.display().to_string());
    let is_shared = file.as_deref().is_some_and(|file| name(file).starts_with("libcudart"));
    let why = if !is_loaded(DIVERT) {
        format!(
            "{named}: its CUDA runtime is NVIDIA's own, which needs private tables of the driver: name {DIVERT} of the \
             folder `sim` in LD_PRELOAD, or run the program with `streamsan --sim`"
        )
    } else if is_shared {
        format!("{named}: NVIDIA's own CUDA runtime, of a version that is not simulated")
    } else if let Some(error) = file.as_deref().and_then(|file| File::open(file).err()) {
        format!(
            "{named}: its CUDA runtime is NVIDIA's own, linked statically, and the file cannot be read ({error}), by whose \
             symbols the simulated one is put in its place: let this user read it (`chmod +r`)"
        )
    } else {
        format!(
            "{named}: its CUDA runtime is NVIDIA's own, linked statically, and its symbols are stripped, by which the \
             simulated one is put in its place: keep them (no `strip`, no `-s`), or link with `nvcc -cudart shared`"
        )
    };
    crate::status::complain(&why);
}

/// The file whose code called the driver.
fn caller() -> Option<PathBuf> {
    let mut frames = [std::ptr::null_mut::<c_void>(); FRAMES];
    // SAFETY: room for as many frames as it says.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), FRAMES as c_int) };
    let files = frames.iter().take(usize::try_from(count).unwrap_or(0)).filter_map(|frame| file_of(*frame));
    files.into_iter().find(|file| !name(file).starts_with("libcuda.so") && !name(file).starts_with("libstreamsan"))
}

fn file_of(address: *mut c_void) -> Option<PathBuf> {
    // SAFETY: all-zero is a valid Dl_info to be filled; dladdr takes any address, and its names are
    // C strings.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let is_known = libc::dladdr(address, &raw mut info) != 0 && !info.dli_fname.is_null();
        is_known.then(|| CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned().into())
    }
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_loaded(wanted: &'static str) -> bool {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, wanted: *mut c_void) -> c_int {
        // SAFETY: valid during the callback; the loader's names are C strings, and `wanted` is the
        // caller's.
        let (file, wanted) =
            unsafe { (CStr::from_ptr((*info).dlpi_name).to_string_lossy(), *wanted.cast::<&'static str>()) };
        c_int::from(name(Path::new(&*file)) == wanted)
    }
    let mut wanted = wanted;
    // SAFETY: the signature that it wants, and `wanted` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut wanted).cast()) != 0 }
}
