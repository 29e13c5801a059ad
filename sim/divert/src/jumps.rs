//! Puts a jump at the entry of each public function of NVIDIA's runtime.
//!
//! Before anything is written the bytes in memory are compared with the file's: if they differ it
//! is not the file that was loaded, or the jumps are there already, and it is left alone.

use core::ffi::CStr;

use crate::arch::{self, ALIGNED, COMPARED};
use crate::loading::{self, Beside};
use crate::objects::elf::{Elf, Segment};
use crate::objects::loaded::LinkMap;
use crate::runtime::Runtime;
use crate::stubs::Stubs;
use crate::system::{self, EXECUTABLE, Mapped, Memory, READ, WRITABLE};
use crate::version::Version;

/// Diverts the runtime in a file that was just loaded, if it has one. Returns what the jumps need.
pub(crate) fn divert(map: &LinkMap) -> Option<Memory> {
    let shared = Version::of_library(map.soname());
    // A static runtime opens the driver: without these names nothing of it is inside. So most files
    // need not be opened.
    if shared.is_none() && !(has(map.strings(), b"\0dlsym\0") && has(map.strings(), b"\0dlopen\0")) {
        return None;
    }
    if shared.is_some() && map.function(loading::REFUSAL).is_some() {
        return None;
    }
    if !map.name().is_empty() {
        return divert_as_in(map, map.name(), shared);
    }
    // The program itself. It is another file where the dynamic linker was started by hand.
    divert_as_in(map, c"/proc/self/exe", shared).or_else(|| {
        let mut path = [0; 4096];
        divert_as_in(map, system::mapped_file(map.dynamic(), &mut path)?, shared)
    })
}

/// The same, with the file that it was loaded from.
fn divert_as_in(map: &LinkMap, path: &CStr, shared: Option<Version>) -> Option<Memory> {
    let file = Mapped::open(path)?;
    let elf = Elf::parse(file.bytes())?;
    let symbols = if shared.is_some() { elf.dynamic_symbols()? } else { elf.symbols()? };
    let runtime = match shared {
        Some(version) => Runtime::shared(version),
        None => Runtime::find(symbols)?,
    };
    // If it is not there, NVIDIA's is left as it is, and the driver says that it cannot run.
    if !system::exists(Beside::file(runtime.version.file())?.path()) {
        return None;
    }
    let functions = || symbols.functions().filter(|function| runtime.contains(function));
    let segment = elf.code(functions().next()?.address)?;
    let (mut count, mut names) = (0, 0);
    for function in functions() {
        if function.address % ALIGNED != 0 || !is_loaded(&elf, map, &segment, function.address) {
            return None;
        }
        count += 1;
        names += function.name.len() + 1;
    }
    let in_memory = |address: u64| map.address().wrapping_add(address as usize);
    let mut stubs = Stubs::new(runtime.version, count, names, in_memory(segment.start)..in_memory(segment.end))?;
    let pages = Pages::writable(map, &segment)?;
    for function in functions() {
        if let Some(stub) = stubs.add(function.name) {
            pages.write(in_memory(function.address), stub);
        }
    }
    pages.close();
    Some(stubs.seal())
}

/// Whether some bytes stand in others. They begin with a zero and a letter.
fn has(bytes: &[u8], wanted: &[u8]) -> bool {
    let (Some(first), Some(second)) = (wanted.first(), wanted.get(1)) else { return true };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = rest.get(at..).unwrap_or_default();
        if rest.get(1) == Some(second) && rest.starts_with(wanted) {
            return true;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    false
}

/// Whether the code at an address of the file is in memory, unchanged.
fn is_loaded(elf: &Elf<'_>, map: &LinkMap, segment: &Segment, address: u64) -> bool {
    let inside = address.checked_add(COMPARED).is_some_and(|end| segment.start <= address && end <= segment.end);
    let Some(expected) = elf.code_bytes(segment, address, COMPARED).filter(|_| inside) else { return false };
    // SAFETY: inside of a segment of code of this file, which the dynamic linker has mapped.
    let there = unsafe {
        core::slice::from_raw_parts(map.address().wrapping_add(address as usize) as *const u8, COMPARED as usize)
    };
    expected == there
}

/// The pages of a segment of code, writable for the moment.
struct Pages {
    at: usize,
    len: usize,
}

impl Pages {
    fn writable(map: &LinkMap, segment: &Segment) -> Option<Pages> {
        let start = map.address().wrapping_add(segment.start as usize);
        let end = map.address().wrapping_add(segment.end as usize).next_multiple_of(arch::page());
        let at = start - start % arch::page();
        let pages = Pages { at, len: end - at };
        // SAFETY: code that was just mapped: nobody runs it yet.
        unsafe { system::protect(pages.at, pages.len, READ | WRITABLE) }.then_some(pages)
    }

    /// Writes the jump at the entry of a function.
    fn write(&self, function: usize, to: usize) {
        let Some(jump) = arch::jump(function, to) else { return };
        // SAFETY: inside of these pages, as `is_loaded` has seen.
        unsafe { core::ptr::copy_nonoverlapping(jump.as_ptr(), function as *mut u8, jump.len()) };
    }

    fn close(self) {
        // SAFETY: as above; and the protection is what it was before.
        unsafe {
            arch::written(self.at, self.len);
            system::protect(self.at, self.len, READ | EXECUTABLE);
        }
    }
}
