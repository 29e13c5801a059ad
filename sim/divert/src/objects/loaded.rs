//! What the dynamic linker says of a file that it has loaded.

use core::ffi::{CStr, c_char, c_int};

const STRINGS: usize = 5;
const SYMBOLS: usize = 6;
const STRINGS_SIZE: usize = 10;
const SONAME: usize = 14;
const GNU_HASH: usize = 0x6fff_fef5;

/// One entry of the dynamic linker's list: the part that link.h makes public.
#[repr(C)]
pub(crate) struct LinkMap {
    address: usize,
    name: *const c_char,
    dynamic: *const [usize; 2],
    next: *const LinkMap,
    previous: *const LinkMap,
}

/// A symbol as it is in memory.
#[repr(C)]
struct Symbol {
    name: u32,
    kind: u8,
    visibility: u8,
    section: u16,
    value: usize,
    size: usize,
}

/// What the dynamic linker shows to debuggers: the part that link.h makes public.
#[repr(C)]
pub(crate) struct Debug {
    version: c_int,
    first: *const LinkMap,
    /// The function that it calls whenever the list has changed.
    pub breakpoint: usize,
    state: c_int,
    base: usize,
}

impl Debug {
    /// The list is complete: nothing is being added or removed.
    pub(crate) fn is_consistent(&self) -> bool {
        self.state == 0
    }
}

/// The dynamic linker's own, which it keeps up to date.
#[cfg(freestanding)]
pub fn debug() -> &'static Debug {
    unsafe extern "C" {
        #[link_name = "_r_debug"]
        static DEBUG: Debug;
    }
    // SAFETY: a static of the dynamic linker's, of this type.
    unsafe { &*(&raw const DEBUG) }
}

/// Outside of that library there is nothing to look at.
#[cfg(not(freestanding))]
pub(crate) fn debug() -> &'static Debug {
    struct Nothing(Debug);
    // SAFETY: never written to.
    unsafe impl Sync for Nothing {}
    static NOTHING_LOADED: Nothing =
        Nothing(Debug { version: 0, first: core::ptr::null(), breakpoint: 0, state: 0, base: 0 });
    &NOTHING_LOADED.0
}

/// All files of the program, in the order in which they were loaded.
pub(crate) fn all() -> impl Iterator<Item = &'static LinkMap> {
    // SAFETY: the dynamic linker's list. It changes only while this thread holds its lock, or
    // before there are threads; what is not being closed stays.
    let mut next = unsafe { debug().first.as_ref() };
    core::iter::from_fn(move || {
        let map = next?;
        // SAFETY: as above.
        next = unsafe { map.next.as_ref() };
        Some(map)
    })
}

impl LinkMap {
    /// What has to be added to addresses of the file.
    pub(crate) fn address(&self) -> usize {
        self.address
    }

    /// Where its dynamic section lies, a place inside of the file.
    pub(crate) fn dynamic(&self) -> usize {
        self.dynamic as usize
    }

    /// The file that was loaded; empty for the program itself.
    pub(crate) fn name(&self) -> &CStr {
        if self.name.is_null() {
            return c"";
        }
        // SAFETY: the dynamic linker's names are C strings.
        unsafe { CStr::from_ptr(self.name) }
    }

    /// A value of the dynamic section.
    fn entry(&self, wanted: usize) -> Option<usize> {
        let mut at = self.dynamic;
        if at.is_null() {
            return None;
        }
        // SAFETY: the dynamic section ends with an entry of tag zero.
        unsafe {
            while (*at)[0] != 0 {
                if (*at)[0] == wanted {
                    return Some((*at)[1]);
                }
                at = at.add(1);
            }
        }
        None
    }

    /// A pointer of the dynamic section. The dynamic linker adds the address in place, but need not
    /// have done so.
    fn pointer(&self, wanted: usize) -> Option<usize> {
        let value = self.entry(wanted)?;
        Some(if value < self.address { value + self.address } else { value })
    }

    /// The names that its dynamic symbols have, each with a zero behind it.
    pub(crate) fn strings(&self) -> &[u8] {
        match (self.pointer(STRINGS), self.entry(STRINGS_SIZE)) {
            // SAFETY: the dynamic section says where its strings lie, which are loaded.
            (Some(at), Some(len)) => unsafe { core::slice::from_raw_parts(at as *const u8, len) },
            _ => &[],
        }
    }

    fn string(&self, at: usize) -> &[u8] {
        let rest = self.strings().get(at..).unwrap_or_default();
        let len = rest.iter().position(|byte| *byte == 0).unwrap_or(0);
        rest.get(..len).unwrap_or_default()
    }

    /// The name that it gives itself.
    pub(crate) fn soname(&self) -> &[u8] {
        self.entry(SONAME).map_or(&[], |at| self.string(at))
    }

    /// The address of a function that it exports, whatever the version.
    pub(crate) fn function(&self, name: &[u8]) -> Option<usize> {
        let (table, symbols) = (self.pointer(GNU_HASH)?, self.pointer(SYMBOLS)? as *const Symbol);
        let hash = name.iter().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
        // SAFETY: the hash table of a loaded library: number of buckets, first symbol in it, words
        // and shift of the filter, then filter, buckets and chains.
        unsafe {
            let words = table as *const u32;
            let (buckets, first, filter) = (*words, *words.add(1), *words.add(2));
            if buckets == 0 {
                return None;
            }
            let bucket = words.add(4).add(filter as usize * 2);
            let chain = bucket.add(buckets as usize);
            let mut index = *bucket.add((hash % buckets) as usize);
            if index < first {
                return None;
            }
            loop {
                let entry = *chain.add((index - first) as usize);
                let symbol = &*symbols.add(index as usize);
                if entry | 1 == hash | 1 && symbol.section != 0 && self.string(symbol.name as usize) == name {
                    return Some(self.address + symbol.value);
                }
                if entry & 1 != 0 {
                    return None;
                }
                index += 1;
            }
        }
    }
}
