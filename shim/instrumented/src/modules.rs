//! Which objects of the process are instrumented.
//!
//! Owns what is known of each: whether it needs functions of this library. An object is looked at
//! once, when one of its calls is in question. A compiler may reach `__tsan_init` by a jump, so its
//! return address says nothing.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Most stretches of code that are told apart.
const MOST: usize = 512;

/// First address, one past the last; the lowest bit of the second says whether it is instrumented.
static RANGES: [[AtomicU64; 2]; MOST] = [const { [const { AtomicU64::new(0) }; 2] }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);

const INSTRUMENTED: u64 = 1;

/// Whether an address lies in instrumented code.
pub(crate) fn is_instrumented(address: u64) -> bool {
    for [start, end] in &RANGES[..COUNT.load(Ordering::Acquire).min(MOST)] {
        let end = end.load(Ordering::Relaxed);
        if (start.load(Ordering::Relaxed)..end & !INSTRUMENTED).contains(&address) {
            return end & INSTRUMENTED != 0;
        }
    }
    look(address)
}

struct Search {
    address: u64,
    found: Option<(u64, u64, bool)>,
}

#[cold]
fn look(address: u64) -> bool {
    let mut search = Search { address, found: None };
    // SAFETY: `visit` keeps to the contract of the callback; `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    let Some((start, end, instrumented)) = search.found else { return false };
    let slot = COUNT.fetch_add(1, Ordering::AcqRel);
    if slot < MOST {
        RANGES[slot][0].store(start, Ordering::Relaxed);
        // Until this is stored the range is empty.
        RANGES[slot][1].store(end & !INSTRUMENTED | u64::from(instrumented), Ordering::Release);
    }
    instrumented
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: both are valid during the callback, see `look`.
    let (info, search) = unsafe { (&*info, &mut *data.cast::<Search>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader says so many headers are there.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let of = |kind: u32| headers.iter().filter(move |header| header.p_type == kind);
    for header in of(libc::PT_LOAD).filter(|header| header.p_flags & libc::PF_X != 0) {
        let start = info.dlpi_addr + header.p_vaddr;
        let end = start + header.p_memsz;
        if (start..end).contains(&search.address) {
            let dynamic = of(libc::PT_DYNAMIC).next().map(|header| info.dlpi_addr + header.p_vaddr);
            // SAFETY: the loader has mapped the dynamic section, and what it names.
            let needs = dynamic.is_some_and(|at| unsafe { needs_this(info.dlpi_addr, at) });
            search.found = Some((start, end, needs));
            return 1;
        }
    }
    0
}

#[repr(C)]
struct Entry {
    tag: i64,
    value: u64,
}

#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// Whether an object's relocations name functions that instrumented code calls.
///
/// # Safety
/// `dynamic` is the address of the dynamic section of a loaded object at `base`.
unsafe fn needs_this(base: u64, dynamic: u64) -> bool {
    const STRTAB: i64 = 5;
    const SYMTAB: i64 = 6;
    const RELA: i64 = 7;
    const RELASZ: i64 = 8;
    const PLTRELSZ: i64 = 2;
    const JMPREL: i64 = 23;
    let mut values = [0_u64; 24];
    let mut at = dynamic as *const Entry;
    // SAFETY: the section ends with an entry of tag 0.
    while let Entry { tag: tag @ 1.., value } = unsafe { &*at } {
        if let Some(slot) = values.get_mut(*tag as usize) {
            *slot = *value;
        }
        // SAFETY: as above.
        at = unsafe { at.add(1) };
    }
    let value = |tag: i64| values[tag as usize];
    // The loader has made addresses of these, in most objects.
    let address = |tag: i64| value(tag) + if value(tag) < base { base } else { 0 };
    let (strings, symbols) = (address(STRTAB), address(SYMTAB) as *const Symbol);
    if value(STRTAB) == 0 || value(SYMTAB) == 0 {
        return false;
    }
    [(RELA, RELASZ), (JMPREL, PLTRELSZ)].into_iter().filter(|(table, _)| value(*table) != 0).any(|(table, bytes)| {
        let table = address(table) as *const Relocation;
        (0..value(bytes) as usize / size_of::<Relocation>()).any(|index| {
            // SAFETY: so many relocations are there, and each names a symbol of the object's table,
            // whose name is a string of its strings.
            let name = unsafe {
                let symbol = &*symbols.add(((*table.add(index)).info >> 32) as usize);
                CStr::from_ptr((strings + u64::from(symbol.name)) as *const c_char)
            };
            name.to_bytes().starts_with(b"__tsan_")
        })
    })
}
