//! NVTX's extensions: the header-only library asks what `NVTX_INJECTION64_PATH` names for
//! `InitializeInjectionNvtxExtension`, once for each extension and each library that uses it, and
//! hands it the slots of its functions.
//!
//! Owns this injection, and the extension for payloads. NCCL begins its ranges with NVTX's own
//! functions and ends them with a payload, so a tool without that extension never sees them end.
//! What a payload holds is not read, so a range that only a payload names has no name. Functions
//! for memory are in [`super::nvtx_memory`].

use std::borrow::Cow;
use std::ffi::{c_int, c_void};

use super::nvtx::{name_of_domain, pop, push, range_end, start};
use super::nvtx_memory;

/// The extension for payloads: its number, and the upper byte of the versions of its structures.
/// Its functions have had the same numbers and parameters in all of them.
const PAYLOAD: (u16, u16) = (2, 0x01);

/// `nvtxExtModuleSegment_t`.
#[repr(C)]
struct Segment {
    id: usize,
    slots: usize,
    functions: *mut *const c_void,
}

/// `nvtxExtModuleInfo_t`.
#[repr(C)]
pub struct NvtxModule {
    version: u16,
    size: u16,
    id: u16,
    compat: u16,
    segment_count: usize,
    segments: *mut Segment,
}

extern "C" fn push_payload(domain: *mut c_void, _payloads: *const c_void, _count: usize) -> c_int {
    push(|| Cow::Borrowed(&[]), name_of_domain(domain))
}

extern "C" fn pop_payload(domain: *mut c_void, _payloads: *const c_void, _count: usize) -> c_int {
    pop(name_of_domain(domain))
}

extern "C" fn start_payload(domain: *mut c_void, _payloads: *const c_void, _count: usize) -> u64 {
    start(|| Cow::Borrowed(&[]), name_of_domain(domain))
}

extern "C" fn end_payload(_domain: *mut c_void, range: u64, _payloads: *const c_void, _count: usize) {
    range_end(range);
}

/// Called by NVTX when a library uses one of its extensions for the first time. Answers 1 when it
/// is taken.
///
/// # Safety
/// Called by NVTX only, with the description of the extension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtxExtension(module: *const NvtxModule) -> c_int {
    // SAFETY: as the caller promises.
    let Some(module) = (unsafe { module.as_ref() }) else { return 0 };
    if usize::from(module.size) < size_of::<NvtxModule>() || module.segment_count == 0 || module.segments.is_null() {
        return 0;
    }
    // SAFETY: there is at least one segment.
    let segment = unsafe { &*module.segments };
    let set = |first: usize, functions: &[*const c_void]| {
        for (index, function) in (first..segment.slots).zip(functions) {
            // SAFETY: there are `slots` places that may be written now.
            unsafe { *segment.functions.add(index) = *function };
        }
        1
    };
    if (module.id, module.compat) == nvtx_memory::MEMORY {
        return set(0, &nvtx_memory::functions());
    }
    if (module.id, module.compat >> 8) == PAYLOAD {
        // Behind the two that register how payloads are read, and that for marks.
        let functions: [*const c_void; 4] = [
            push_payload as *const c_void,
            pop_payload as *const c_void,
            start_payload as *const c_void,
            end_payload as *const c_void,
        ];
        return set(3, &functions);
    }
    0
}
