//! Opens the simulator's runtime, from the folder in which this library lies, at the first call of
//! a diverted function.
//!
//! The program's own `dlopen` does it, found in the C library: this library is linked with none.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::objects::loaded::{self, LinkMap};
use crate::system;
use crate::version::Version;

/// How the file of this library is called.
pub(crate) const OWN_NAME: &[u8] = b"libstreamsan_divert.so";
/// The function of the simulator's runtime that refuses a call: `cudaError_t (const char *name)`.
/// No other library has it.
pub(crate) const REFUSAL: &[u8] = b"streamsan_cudart_refuse";
const LONGEST: usize = 4096;

/// The runtimes that are open: addresses of their [`LinkMap`].
static OPEN: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// A path to a file beside this library.
pub(crate) struct Beside {
    bytes: [u8; LONGEST],
}

impl Beside {
    /// The path of a file. `None` if this library does not find itself.
    pub(crate) fn file(name: &[u8]) -> Option<Beside> {
        let own = loaded::all().find(|map| map.soname() == OWN_NAME)?.name().to_bytes();
        let folder = own.strip_suffix(OWN_NAME)?;
        let mut path = Beside { bytes: [0; LONGEST] };
        let (start, rest) = path.bytes.split_at_mut_checked(folder.len())?;
        start.copy_from_slice(folder);
        // A zero stays behind it.
        rest.get_mut(..name.len() + 1)?.get_mut(..name.len())?.copy_from_slice(name);
        Some(path)
    }

    /// As a C string.
    pub(crate) fn path(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// The simulator's runtime. Ends the process if it cannot be opened: there is no other.
pub(crate) fn runtime(version: Version) -> &'static LinkMap {
    let open = &OPEN[version as usize % OPEN.len()];
    let known = open.load(Ordering::Acquire);
    // SAFETY: link maps of libraries that are never closed.
    let found = if known == 0 { open_runtime(version) } else { Some(unsafe { &*(known as *const LinkMap) }) };
    let Some(found) = found else {
        system::fail(&[
            b"the simulated GPU's ",
            version.file(),
            b" cannot be opened, which stands in for the program's own CUDA runtime",
        ])
    };
    open.store(core::ptr::from_ref(found) as usize, Ordering::Release);
    found
}

fn open_runtime(version: Version) -> Option<&'static LinkMap> {
    type Opener = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    const NOW: c_int = 2;
    let path = Beside::file(version.file())?;
    // Before glibc 2.34 it stood in a library of its own.
    let is_c_library = |map: &&LinkMap| matches!(map.soname(), b"libc.so.6" | b"libdl.so.2");
    let opener = loaded::all().filter(is_c_library).find_map(|map| map.function(b"dlopen"))?;
    // SAFETY: the C library's function of this name has this type; the path is a C string. What it
    // returns is a link map, as dlinfo(3) has it.
    unsafe {
        let open: Opener = core::mem::transmute::<usize, Opener>(opener);
        open(path.path().as_ptr(), NOW).cast::<LinkMap>().as_ref()
    }
}

/// The address of the function that refuses a call by its name.
pub(crate) fn refusal(runtime: &LinkMap) -> usize {
    match runtime.function(REFUSAL) {
        Some(refusal) => refusal,
        None => system::fail(&[b"the simulator's files are of different versions"]),
    }
}
