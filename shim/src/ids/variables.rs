//! Where `__device__` and `__constant__` variables lie, when nobody asked through a door that the
//! shim sees.
//!
//! NVIDIA's cudart takes the addresses of variables (`cudaMemcpyToSymbol`, `cudaGetSymbolAddress`)
//! from a private table of the driver. So when a copy or fill touches device memory that no call
//! made, the variables of the images that are loaded are asked for by name, newest image first,
//! until the address is known. That happens about once in a program; before, it costs a look-up in
//! the map of memory for each copy of a program that carries nvcc's code, after, nothing.
//!
//! Not owned: what the variables mean (the analyzer), images that are in no file (made at run time:
//! their makers ask the driver openly).

use std::ffi::{CString, c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_sys::*;
use kernels::image::{CodeRef, Cubin, EntryKind, Image};
use trace::codec::Text;
use trace::{ImageId, Op};

use crate::ids::image_bytes;
use crate::observe::context::Cx;
use crate::real;

/// What kind of handle an image belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A `CUmodule`.
    Module,
    /// A `CUlibrary`.
    Library,
}

#[derive(Clone, Copy)]
struct Entry {
    owner: u64,
    kind: Owner,
    image: ImageId,
    start: u64,
    len: usize,
}

/// Images whose variables were not asked for yet.
#[derive(Default)]
pub struct Unlisted {
    count: AtomicU32,
    entries: Mutex<Vec<Entry>>,
}

/// Images larger than this are not unpacked inside the program.
const LARGEST: usize = 16 << 20;
/// Images up to this size are listed when a kernel of theirs is first launched, so that an address
/// that reaches a kernel as a parameter is known too. (Unpacking takes under a millisecond then;
/// libraries' images are mostly larger.)
const SMALL: usize = 128 << 10;
/// Images unpacked for one unknown address.
const MOST: usize = 64;
/// Unknown addresses that are looked into before the shim gives up: memory of a kind that it does
/// not know, and no variable.
const TRIES: u32 = 32;
static TRIED: AtomicU32 = AtomicU32::new(0);

impl Unlisted {
    /// An image was loaded from bytes that lie in a read-only mapping of a file.
    pub fn add(&self, owner: *mut c_void, kind: Owner, image: ImageId, bytes: &[u8]) {
        if bytes.len() <= LARGEST {
            let entry = Entry { owner: owner as u64, kind, image, start: bytes.as_ptr() as u64, len: bytes.len() };
            self.change(|entries| entries.push(entry));
        }
    }

    /// A module or library goes away.
    pub fn remove(&self, owner: *mut c_void) {
        if self.count.load(Ordering::Acquire) > 0 {
            self.change(|entries| entries.retain(|entry| entry.owner != owner as u64));
        }
    }

    /// A small image, to be listed now that a kernel of it was launched.
    fn take_small(&self, image: ImageId) -> Option<Entry> {
        self.change(|entries| {
            let index = entries.iter().position(|entry| entry.image == image && entry.len <= SMALL)?;
            Some(entries.swap_remove(index))
        })?
    }

    fn take(&self) -> Option<Entry> {
        self.change(Vec::pop)?
    }

    /// Changes the list and keeps the count, which is read without the lock. `None` after a panic
    /// under the lock.
    fn change<T>(&self, how: impl FnOnce(&mut Vec<Entry>) -> T) -> Option<T> {
        let mut entries = self.entries.lock().ok()?;
        let answer = how(&mut entries);
        self.count.store(entries.len() as u32, Ordering::Release);
        Some(answer)
    }
}

/// Names of the variables of an image that is still mapped. Reads the headers and the symbols of
/// one cubin.
fn names(entry: Entry) -> Vec<CString> {
    // Whoever unloads a library without unloading its image leaves an entry behind: it must not be
    // read.
    if image_bytes::file_of(entry.start as *const u8, entry.len).is_none() {
        return Vec::new();
    }
    // SAFETY: the bytes lie in a read-only mapping that is there: checked just now.
    let bytes = unsafe { std::slice::from_raw_parts(entry.start as *const u8, entry.len) };
    let Ok(image) = Image::parse(bytes) else { return Vec::new() };
    // All entries of an image define the same variables.
    let Some(code) = image.entries().iter().filter(|e| e.kind == EntryKind::Cubin).find_map(|e| e.unpack().ok()) else {
        return Vec::new();
    };
    let CodeRef::Cubin(cubin) = &code else { return Vec::new() };
    let Ok(cubin) = Cubin::parse(cubin) else { return Vec::new() };
    cubin.variables().filter_map(|symbol| CString::new(symbol.name.as_str()).ok()).collect()
}

impl Cx<'_> {
    fn is_known(&self, address: u64) -> bool {
        self.core().and_then(|core| core.lock()).is_none_or(|shared| shared.engine.memory_kind(address).is_some())
    }

    /// A copy or fill touches this address: if it lies in a variable of an image, from now on the
    /// analyzer knows which.
    pub fn find_variable(&mut self, address: u64) {
        let Some(core) = self.core() else { return };
        // The lock is only taken while something may come of it.
        let hopeful = core.handles.unlisted.count.load(Ordering::Acquire) > 0 && TRIED.load(Ordering::Relaxed) < TRIES;
        if hopeful && !self.is_known(address) {
            self.ask_for_variables(address);
        }
    }

    #[cold]
    fn ask_for_variables(&mut self, address: u64) {
        const DEVICE: u32 = 2;
        const MEMORY_TYPE: c_int = 2;
        let Some(core) = self.core() else { return };
        let mut kind = 0_u32;
        let answer = real!(cuPointerGetAttribute(
            (&raw mut kind).cast() => *mut c_void, MEMORY_TYPE => c_int, address => CUdeviceptr
        ));
        // Pageable memory is not known to anybody.
        if answer != CUresult::SUCCESS || kind != DEVICE || TRIED.fetch_add(1, Ordering::Relaxed) >= TRIES {
            return;
        }
        let mode = relax();
        for _ in 0..MOST {
            let Some(entry) = core.handles.unlisted.take() else { break };
            self.list(entry);
            if self.is_known(address) {
                break;
            }
        }
        restore(mode);
    }

    /// A kernel of this image was launched for the first time.
    pub fn first_launch_from(&mut self, image: ImageId) {
        let Some(core) = self.core() else { return };
        if core.handles.unlisted.count.load(Ordering::Acquire) > 0
            && let Some(entry) = core.handles.unlisted.take_small(image)
        {
            let mode = relax();
            self.list(entry);
            restore(mode);
        }
    }

    /// Tells the analyzer the addresses of an image's variables.
    fn list(&mut self, entry: Entry) {
        for name in names(entry) {
            let (mut ptr, mut size): (CUdeviceptr, usize) = (0, 0);
            let (at, bytes, name) = (&raw mut ptr, &raw mut size, name.as_c_str());
            let owner = entry.owner as *mut c_void;
            let answer = match entry.kind {
                Owner::Module => real!(cuModuleGetGlobal_v2(
                    at => *mut CUdeviceptr, bytes => *mut usize, owner => *mut c_void, name.as_ptr() => *const c_char
                )),
                Owner::Library => real!(cuLibraryGetGlobal(
                    at => *mut CUdeviceptr, bytes => *mut usize, owner => *mut c_void, name.as_ptr() => *const c_char
                )),
            };
            if answer == CUresult::SUCCESS {
                let name = Text(name.to_bytes());
                self.log(&Op::Global { ptr, size: size as u64, image: entry.image, name });
            }
        }
    }
}

/// While another stream is captured, loading is refused and breaks the capture, unless the thread
/// says that it is relaxed.
fn relax() -> Option<c_int> {
    const RELAXED: c_int = 2;
    let mut mode = RELAXED;
    let answer = real!(cuThreadExchangeStreamCaptureMode(&raw mut mode => *mut c_int));
    (answer == CUresult::SUCCESS).then_some(mode)
}

fn restore(mode: Option<c_int>) {
    if let Some(mut mode) = mode {
        let _ = real!(cuThreadExchangeStreamCaptureMode(&raw mut mode => *mut c_int));
    }
}
