//! Where `__device__` and `__constant__` variables lie when the program never asked for them
//! openly.
//!
//! NVIDIA's cudart takes the addresses of variables (`cudaMemcpyToSymbol`, `cudaGetSymbolAddress`)
//! from a private table of the driver. So when a copy or fill touches device memory that no call
//! made, the variables of the images that are loaded are asked for by name, newest image first,
//! until the address is known. That happens about once in a program. Before, it costs a look-up in
//! the map of memory for each copy of a program that carries nvcc's code; after, nothing.
//!
//! Owns these questions to the driver. Does not decide what the variables mean (the analyzer does),
//! and does not cover images that are in no file: the code that makes them at run time asks the
//! driver openly.

use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_sys::*;
use device_code::image::{CodeRef, Cubin, EntryKind, Image, ptx_variables};
use trace::codec::Text;
use trace::{ImageId, Op};

use super::image_bytes;
use crate::handles::unlisted_images::{ImageOwner, UnlistedImage};
use crate::observe::Cx;
use crate::observe::host_watch::variable_found;
use crate::real::driver::real;

/// Images unpacked for one unknown address.
const MOST: usize = 64;
/// Unknown addresses that are looked into before the shim gives up: memory of a kind that it does
/// not know, and no variable.
const TRIES: u32 = 32;
static TRIED: AtomicU32 = AtomicU32::new(0);

/// Names of the variables of an image that is still mapped. Reads the headers and the symbols of
/// one cubin, or the directives of a text where there is no cubin.
fn names(entry: UnlistedImage) -> Vec<CString> {
    // A library that was unloaded without its image leaves an entry behind, which must not be read.
    if image_bytes::file_of(entry.start as *const u8, entry.len).is_none() {
        return Vec::new();
    }
    // SAFETY: the bytes lie in a read-only mapping that is there: checked just now.
    let bytes = unsafe { std::slice::from_raw_parts(entry.start as *const u8, entry.len) };
    let Ok(image) = Image::parse(bytes) else { return Vec::new() };
    // All entries of an image define the same variables.
    let of = |kind| image.entries().iter().filter(move |e| e.kind == kind).find_map(|e| e.unpack().ok());
    match of(EntryKind::Cubin).or_else(|| of(EntryKind::Ptx)) {
        Some(CodeRef::Cubin(cubin)) => match Cubin::parse(&cubin) {
            Ok(cubin) => cubin.variables().filter_map(|symbol| CString::new(symbol.name.as_str()).ok()).collect(),
            Err(_) => Vec::new(),
        },
        Some(CodeRef::Ptx(text)) => ptx_variables(&text).filter_map(|name| CString::new(name).ok()).collect(),
        None => Vec::new(),
    }
}

fn is_known_address(cx: &Cx<'_>, address: u64) -> bool {
    cx.core().and_then(|core| core.lock()).is_none_or(|shared| shared.engine.memory_kind(address).is_some())
}

/// A copy or fill touches this address: if it lies in a variable of an image, from now on the
/// analyzer knows which.
pub fn find_variable(cx: &mut Cx<'_>, address: u64) {
    let Some(core) = cx.core() else { return };
    // The lock is only taken while something may come of it.
    let hopeful = !core.handles.unlisted.is_empty() && TRIED.load(Ordering::Relaxed) < TRIES;
    if hopeful && !is_known_address(cx, address) {
        ask_for_variables(cx, address);
    }
}

#[cold]
fn ask_for_variables(cx: &mut Cx<'_>, address: u64) {
    let Some(core) = cx.core() else { return };
    let mut kind = CUmemorytype(0);
    let answer = real!(cuPointerGetAttribute(
        (&raw mut kind).cast() => *mut c_void, CU_POINTER_ATTRIBUTE_MEMORY_TYPE => CUpointer_attribute, address => CUdeviceptr
    ));
    // Pageable memory is not known to anybody.
    if answer != CUresult::SUCCESS || kind != CU_MEMORYTYPE_DEVICE || TRIED.fetch_add(1, Ordering::Relaxed) >= TRIES {
        return;
    }
    let mode = relax();
    for _ in 0..MOST {
        let Some(entry) = core.handles.unlisted.take() else { break };
        list_variables(cx, entry);
        if is_known_address(cx, address) {
            break;
        }
    }
    restore(mode);
}

/// A kernel of this image was launched for the first time.
pub fn first_launch_from(cx: &mut Cx<'_>, image: ImageId) {
    let Some(core) = cx.core() else { return };
    if !core.handles.unlisted.is_empty()
        && let Some(entry) = core.handles.unlisted.take_small(image)
    {
        let mode = relax();
        list_variables(cx, entry);
        restore(mode);
    }
}

/// Logs the addresses of an image's variables.
fn list_variables(cx: &mut Cx<'_>, entry: UnlistedImage) {
    for name in names(entry) {
        let (mut ptr, mut size): (CUdeviceptr, usize) = (0, 0);
        let (at, bytes, name) = (&raw mut ptr, &raw mut size, name.as_c_str());
        let owner = entry.owner as *mut c_void;
        let answer = match entry.kind {
            ImageOwner::Module => real!(cuModuleGetGlobal_v2(
                at => *mut CUdeviceptr, bytes => *mut usize, owner => *mut c_void, name.as_ptr() => *const c_char
            )),
            ImageOwner::Library => real!(cuLibraryGetGlobal(
                at => *mut CUdeviceptr, bytes => *mut usize, owner => *mut c_void, name.as_ptr() => *const c_char
            )),
        };
        if answer == CUresult::SUCCESS {
            let name = Text(name.to_bytes());
            cx.log(&Op::Global { ptr, size: size as u64, image: entry.image, name });
            variable_found(cx, ptr, size as u64);
        }
    }
}

/// While another stream is captured, loading is refused and breaks the capture, unless the thread
/// says that it is relaxed.
fn relax() -> Option<CUstreamCaptureMode> {
    let mut mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    let answer = real!(cuThreadExchangeStreamCaptureMode(&raw mut mode => *mut CUstreamCaptureMode));
    (answer == CUresult::SUCCESS).then_some(mode)
}

fn restore(mode: Option<CUstreamCaptureMode>) {
    if let Some(mut mode) = mode {
        let _ = real!(cuThreadExchangeStreamCaptureMode(&raw mut mode => *mut CUstreamCaptureMode));
    }
}
