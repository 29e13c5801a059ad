//! The objects that are loaded: a function in those after ours, and the object that holds an
//! address.
//!
//! Owns reading their dynamic symbol tables. This is needed for names that we export ourselves
//! (`dlsym`, `sigaction`, `read` and their like): nothing that goes through symbol resolution could
//! lead to the C library's own. Neither allocates nor calls `dlsym`.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;

const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
/// Marks a version that programs are not linked with any more.
const HIDDEN: u16 = 0x8000;

#[repr(C)]
struct Dyn {
    tag: i64,
    value: u64,
}

struct Search<'a> {
    name: &'a CStr,
    /// An address inside our own object: objects up to and including ours are passed over, as
    /// `RTLD_NEXT` does.
    here: u64,
    past_us: bool,
    found: usize,
}

/// The address of the first function called `name` in an object loaded after ours; 0 when there is
/// none. Of several versions it is the default one.
pub fn next_function(name: &CStr) -> usize {
    let mut search = Search { name, here: next_function as *const () as u64, past_us: false, found: 0 };
    // SAFETY: visit() has the signature that dl_iterate_phdr wants, and search outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// Where the object that holds this address is mapped; empty when none does.
pub fn object_of(address: usize) -> Range<usize> {
    struct Holder {
        address: usize,
        mapping: Range<usize>,
    }
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: data is the Holder below; dl_iterate_phdr passes a valid description whose
        // headers are mapped.
        let (holder, base, headers) = unsafe {
            let headers = (*info).dlpi_phdr;
            let count = usize::from((*info).dlpi_phnum);
            (
                &mut *data.cast::<Holder>(),
                (*info).dlpi_addr as usize,
                if headers.is_null() { &[] } else { std::slice::from_raw_parts(headers, count) },
            )
        };
        let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let start = loaded().map(|header| base + header.p_vaddr as usize).min().unwrap_or(0);
        let end = loaded().map(|header| base + (header.p_vaddr + header.p_memsz) as usize).max().unwrap_or(0);
        if !(start..end).contains(&holder.address) {
            return 0;
        }
        holder.mapping = start..end;
        1
    }
    let mut holder = Holder { address, mapping: 0..0 };
    // SAFETY: the callback has the right type and keeps nothing; holder outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut holder).cast()) };
    holder.mapping
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: data is the Search that next_function passed; info is valid during the callback.
    let (search, info) = unsafe { (&mut *data.cast::<Search<'_>>(), &*info) };
    // SAFETY: the loader describes dlpi_phnum headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let holds_us = headers.iter().any(|h| {
        let start = info.dlpi_addr + h.p_vaddr;
        h.p_type == libc::PT_LOAD && (start..start + h.p_memsz).contains(&search.here)
    });
    if holds_us {
        search.past_us = true;
        return 0;
    }
    if !search.past_us {
        return 0;
    }
    let Some(dynamic) = headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC) else { return 0 };
    // SAFETY: a loaded object's dynamic section is mapped at its address and ends with a null tag.
    search.found = unsafe { find(info.dlpi_addr, (info.dlpi_addr + dynamic.p_vaddr) as *const Dyn, search.name) };
    c_int::from(search.found != 0)
}

/// # Safety
/// `dynamic` is the dynamic section of an object loaded at `base`.
unsafe fn find(base: u64, dynamic: *const Dyn, name: &CStr) -> usize {
    let (mut strings, mut symbols, mut hash, mut gnu, mut versions) = (0, 0, 0, 0, 0);
    let mut entry = dynamic;
    // SAFETY: the section ends with a null tag.
    while unsafe { (*entry).tag } != 0 {
        // SAFETY: as above.
        let (tag, value) = unsafe { ((*entry).tag, (*entry).value) };
        // The loader relocates these words in place on most systems, not on all (the vDSO, musl).
        let address = if value < base { value + base } else { value };
        match tag {
            DT_STRTAB => strings = address,
            DT_SYMTAB => symbols = address,
            DT_HASH => hash = address,
            DT_GNU_HASH => gnu = address,
            DT_VERSYM => versions = address,
            _ => {}
        }
        // SAFETY: not past the null tag yet.
        entry = unsafe { entry.add(1) };
    }
    if strings == 0 || symbols == 0 {
        return 0;
    }
    let count = if gnu != 0 {
        // SAFETY: the table is mapped as its header says.
        unsafe { gnu_symbols(gnu as *const u32) }
    } else if hash != 0 {
        // SAFETY: the second word of a hash section is the number of symbols.
        unsafe { *(hash as *const u32).add(1) as usize }
    } else {
        0
    };
    let mut old = 0;
    for index in 0..count {
        // SAFETY: index is below the number of symbols.
        let symbol = unsafe { &*(symbols as *const libc::Elf64_Sym).add(index) };
        let is_function = symbol.st_info & 0xf == 2;
        if !is_function || symbol.st_shndx == 0 {
            continue;
        }
        // SAFETY: names are C strings in the string table.
        if unsafe { CStr::from_ptr((strings + u64::from(symbol.st_name)) as *const _) } == name {
            let found = (base + symbol.st_value) as usize;
            // SAFETY: the table has one entry for each symbol.
            if versions == 0 || unsafe { *(versions as *const u16).add(index) } & HIDDEN == 0 {
                return found;
            }
            old = found;
        }
    }
    old
}

/// Number of symbols that a GNU hash table covers: one past the last of the longest chain.
///
/// # Safety
/// `table` is a GNU hash table.
unsafe fn gnu_symbols(table: *const u32) -> usize {
    // SAFETY: the header has four words.
    let (buckets, first, bloom) = unsafe { (*table as usize, *table.add(1) as usize, *table.add(2) as usize) };
    // SAFETY: the header is followed by 64-bit bloom words and then the buckets.
    let bucket = unsafe { table.add(4 + 2 * bloom) };
    // SAFETY: index is below the number of buckets.
    let mut last = (0..buckets).map(|index| unsafe { *bucket.add(index) } as usize).max().unwrap_or(0);
    if last < first {
        return first;
    }
    // SAFETY: chains follow the buckets; a chain ends at a word whose lowest bit is set.
    let chain = unsafe { bucket.add(buckets) };
    // SAFETY: as above.
    while unsafe { *chain.add(last - first) } & 1 == 0 {
        last += 1;
    }
    last + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_lies_in_one_object() {
        let own = object_of(object_of as *const () as usize);
        assert!(own.contains(&(object_of as *const () as usize)));
        let libc = object_of(libc::getenv as *const () as usize);
        assert!(!libc.is_empty() && (libc.end <= own.start || own.end <= libc.start));
        assert!(object_of(8).is_empty());
    }

    #[test]
    fn finds_a_function_of_the_c_library() {
        assert_eq!(next_function(c"getenv"), libc::getenv as *const () as usize);
        assert_eq!(next_function(c"no_such_function_anywhere"), 0);
    }
}
