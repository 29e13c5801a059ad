//! Puts a jump at the entry of each public function of NVIDIA's runtime.
//!
//! All of them begin at multiples of 16 bytes, so a jump of 14 bytes never reaches into the next
//! one, even where a function is shorter. Before anything is written the bytes in memory are
//! compared with the file's: if they differ it is not the file that was loaded, or the jumps are
//! there already, and it is left alone.

use crate::loading::{self, Beside};
use crate::objects::elf::{Elf, Segment};
use crate::objects::loaded::LinkMap;
use crate::runtime::Runtime;
use crate::stubs::Stubs;
use crate::system::{self, EXECUTABLE, Mapped, Memory, PAGE, READ, WRITABLE};
use crate::version::Version;

/// `jmp *0(%rip)`, and the address behind it.
const JUMP: usize = 14;
const ALIGNED: u64 = 16;

/// Diverts the runtime in a file that was just loaded, if it has one. Returns what the jumps need.
pub fn divert(map: &LinkMap) -> Option<Memory> {
    let shared = Version::of_library(map.soname());
    // A static runtime opens the driver: without these names nothing of it is inside. So most files
    // need not be opened.
    if shared.is_none() && !(has(map.strings(), b"\0dlsym\0") && has(map.strings(), b"\0dlopen\0")) {
        return None;
    }
    if shared.is_some() && map.function(loading::REFUSAL).is_some() {
        return None;
    }
    let file = Mapped::open(if map.name().is_empty() { c"/proc/self/exe" } else { map.name() })?;
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
    let mut stubs = Stubs::new(runtime.version, count, names)?;
    let pages = Pages::writable(map, &segment)?;
    for function in functions() {
        if let Some(stub) = stubs.add(function.name) {
            pages.write(map.address().wrapping_add(function.address as usize), stub);
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
    let inside = address.checked_add(ALIGNED).is_some_and(|end| segment.start <= address && end <= segment.end);
    let Some(expected) = elf.code_bytes(segment, address, ALIGNED).filter(|_| inside) else { return false };
    // SAFETY: inside of a segment of code of this file, which the dynamic linker has mapped.
    let there = unsafe {
        core::slice::from_raw_parts(map.address().wrapping_add(address as usize) as *const u8, ALIGNED as usize)
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
        let end = map.address().wrapping_add(segment.end as usize).next_multiple_of(PAGE);
        let at = start - start % PAGE;
        let pages = Pages { at, len: end - at };
        // SAFETY: code that was just mapped: nobody runs it yet.
        unsafe { system::protect(pages.at, pages.len, READ | WRITABLE) }.then_some(pages)
    }

    /// Writes the jump at the entry of a function.
    fn write(&self, function: usize, to: usize) {
        let mut jump = [0xff, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        jump[6..].copy_from_slice(&to.to_le_bytes());
        // SAFETY: sixteen bytes inside of these pages, as `is_loaded` has seen.
        unsafe { (function as *mut [u8; JUMP]).write(jump) };
    }

    fn close(self) {
        // SAFETY: what it was before.
        unsafe { system::protect(self.at, self.len, READ | EXECUTABLE) };
    }
}
