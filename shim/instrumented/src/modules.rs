//! Which objects of the process are instrumented.
//!
//! Owns their address ranges. Each calls `__tsan_init` when it is started, so the return address of
//! that call lies in it.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Most objects that are told apart.
const MOST: usize = 256;

static RANGES: [[AtomicU64; 2]; MOST] = [const { [const { AtomicU64::new(0) }; 2] }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether an address lies in instrumented code.
pub fn is_instrumented(address: u64) -> bool {
    let known = &RANGES[..COUNT.load(Ordering::Acquire).min(MOST)];
    known.iter().any(|[start, end]| (start.load(Ordering::Relaxed)..end.load(Ordering::Relaxed)).contains(&address))
}

struct Search {
    address: u64,
    found: (u64, u64),
}

/// The object that holds this address is instrumented.
pub fn add(address: u64) {
    if is_instrumented(address) {
        return;
    }
    let mut search = Search { address, found: (0, 0) };
    // SAFETY: `visit` keeps to the contract of the callback; `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    let (start, end) = search.found;
    let slot = COUNT.load(Ordering::Relaxed);
    // Objects are started one at a time, under the loader's lock.
    if end > start && slot < MOST {
        RANGES[slot][0].store(start, Ordering::Relaxed);
        RANGES[slot][1].store(end, Ordering::Relaxed);
        COUNT.store(slot + 1, Ordering::Release);
    }
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: both are valid during the callback, see `add`.
    let (info, search) = unsafe { (&*info, &mut *data.cast::<Search>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader says so many headers are there.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let code = headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0);
    for header in code {
        let start = info.dlpi_addr + header.p_vaddr;
        if (start..start + header.p_memsz).contains(&search.address) {
            search.found = (start, start + header.p_memsz);
            return 1;
        }
    }
    0
}
