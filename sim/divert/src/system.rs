//! What the system gives: files mapped for reading, memory and its protection, a last word.

use core::ffi::CStr;

use crate::arch::number::{CLOSE, EXIT_GROUP, FACCESSAT, LSEEK, MMAP, MPROTECT, MUNMAP, OPENAT, READ_FILE, WRITE};
use crate::arch::system_call as call;

/// Bits of a protection.
pub(crate) const READ: usize = 1;
/// As above.
pub(crate) const WRITABLE: usize = 2;
/// As above.
pub(crate) const EXECUTABLE: usize = 4;

const PRIVATE: usize = 2;
const ANONYMOUS: usize = 0x20;

fn positive(result: isize) -> Option<usize> {
    usize::try_from(result).ok()
}

/// The folder from which relative paths start.
const HERE: usize = -100_isize as usize;
const CLOSE_ON_EXEC: usize = 0o2_000_000;

/// A file mapped for reading.
pub(crate) struct Mapped {
    at: usize,
    len: usize,
}

impl Mapped {
    /// Maps a whole file.
    pub(crate) fn open(path: &CStr) -> Option<Mapped> {
        const END: usize = 2;
        // SAFETY: a C string, and numbers; the mapping is new.
        unsafe {
            let fd = positive(call(OPENAT, [HERE, path.as_ptr() as usize, CLOSE_ON_EXEC, 0, 0, 0]))?;
            let len = positive(call(LSEEK, [fd, 0, END, 0, 0, 0])).filter(|len| *len > 0);
            let at = len.and_then(|len| positive(call(MMAP, [0, len, READ, PRIVATE, fd, 0])));
            call(CLOSE, [fd, 0, 0, 0, 0, 0]);
            Some(Mapped { at: at?, len: len? })
        }
    }

    /// Its content.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: mapped as long as self lives. The dynamic linker has mapped the same file, so who
        // cuts it short ends the program anyway.
        unsafe { core::slice::from_raw_parts(self.at as *const u8, self.len) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: made by `open`; no slice outlives self.
        unsafe { call(MUNMAP, [self.at, self.len, 0, 0, 0, 0]) };
    }
}

/// Memory, filled with zeros at first.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// Where it starts.
    pub at: usize,
    len: usize,
}

impl Memory {
    /// None at all.
    pub(crate) const NONE: Memory = Memory { at: 0, len: 0 };

    /// Some bytes of it.
    pub(crate) fn new(len: usize) -> Option<Memory> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = positive(unsafe { call(MMAP, [0, len, READ | WRITABLE, PRIVATE | ANONYMOUS, usize::MAX, 0]) })?;
        Some(Memory { at, len })
    }

    /// As [`Memory::new`], so that everything in it and everything in `around` is less than `reach`
    /// apart.
    pub(crate) fn near(len: usize, around: core::ops::Range<usize>, reach: usize) -> Option<Memory> {
        const STEP: usize = 1 << 20;
        if reach == usize::MAX {
            return Memory::new(len);
        }
        let len = len.next_multiple_of(1 << 16);
        let fits = |at: usize| around.end.max(at + len) - around.start.min(at) < reach;
        // Below first: a program's heap grows behind it.
        let below = (0..reach / STEP).map_while(|n| around.start.checked_sub(len + n * STEP));
        let above = (1..reach / STEP).map_while(|n| around.end.checked_add(n * STEP));
        for wanted in below.chain(above).map(|at| at & !0xffff).filter(|at| fits(*at)) {
            // SAFETY: a new mapping; the kernel chooses another address where this one is taken.
            let at =
                positive(unsafe { call(MMAP, [wanted, len, READ | WRITABLE, PRIVATE | ANONYMOUS, usize::MAX, 0]) })?;
            let memory = Memory { at, len };
            if fits(at) {
                return Some(memory);
            }
            // SAFETY: just made.
            unsafe { memory.free() };
        }
        None
    }

    /// Gives it back.
    ///
    /// # Safety
    /// Nobody uses it any more.
    pub(crate) unsafe fn free(self) {
        if self.len > 0 {
            // SAFETY: the caller's promise.
            unsafe { call(MUNMAP, [self.at, self.len, 0, 0, 0, 0]) };
        }
    }
}

/// The path of the file that is mapped at an address, as `/proc/self/maps` has it.
pub(crate) fn mapped_file(address: usize, path: &mut [u8; 4096]) -> Option<&CStr> {
    const ROOM: usize = 1 << 20;
    let text = Memory::new(ROOM)?;
    let mut len = 0;
    // SAFETY: a C string, numbers, and memory with room for what is read.
    unsafe {
        let fd = positive(call(OPENAT, [HERE, c"/proc/self/maps".as_ptr() as usize, CLOSE_ON_EXEC, 0, 0, 0]));
        while let Some(fd) = fd
            && let Some(more @ 1..) = positive(call(READ_FILE, [fd, text.at + len, ROOM - len, 0, 0, 0]))
        {
            len += more;
        }
        fd.map(|fd| call(CLOSE, [fd, 0, 0, 0, 0, 0]));
    }
    // SAFETY: what was read; given back below, when nobody looks at it any more.
    let list = unsafe { core::slice::from_raw_parts(text.at as *const u8, len) };
    *path = [0; 4096];
    let place =
        path_at(list, address).and_then(|found| Some((path.get_mut(..=found.len())?.get_mut(..found.len())?, found)));
    let is_found = place.map(|(to, found)| to.copy_from_slice(found)).is_some();
    // SAFETY: as said.
    unsafe { text.free() };
    CStr::from_bytes_until_nul(path).ok().filter(|_| is_found)
}

/// The path in the line of a list of mappings that holds an address.
fn path_at(list: &[u8], address: usize) -> Option<&[u8]> {
    let number = |text: &[u8]| usize::from_str_radix(core::str::from_utf8(text).ok()?, 16).ok();
    list.split(|byte| *byte == b'\n').find_map(|line| {
        let mut range = line.split(|byte| *byte == b' ').next()?.split(|byte| *byte == b'-');
        let range = number(range.next()?)?..number(range.next()?)?;
        let path = line.get(line.iter().position(|byte| *byte == b'/')?..)?;
        range.contains(&address).then_some(path)
    })
}

/// Changes the protection of whole pages.
///
/// # Safety
/// Whoever uses these pages must get by with it.
pub(crate) unsafe fn protect(at: usize, len: usize, protection: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { call(MPROTECT, [at, len, protection, 0, 0, 0]) == 0 }
}

/// Whether a file can be read.
pub(crate) fn exists(path: &CStr) -> bool {
    const FOR_READING: usize = 4;
    // SAFETY: a C string.
    unsafe { call(FACCESSAT, [HERE, path.as_ptr() as usize, FOR_READING, 0, 0, 0]) == 0 }
}

/// Ends the process with exit code 70 and these words: what comes next would be wrong.
pub(crate) fn fail(words: &[&[u8]]) -> ! {
    let say = |bytes: &[u8]| {
        // SAFETY: a slice.
        unsafe { call(WRITE, [2, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) };
    };
    say(b"streamsan-sim: ");
    words.iter().for_each(|word| say(word));
    say(b"\n");
    loop {
        // SAFETY: takes a number.
        unsafe { call(EXIT_GROUP, [70, 0, 0, 0, 0, 0]) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_file_that_is_mapped() {
        let here = finds_the_file_that_is_mapped as *const () as usize;
        let mut path = [0; 4096];
        let found = mapped_file(here, &mut path).expect("this test").to_str().expect("a name");
        assert_eq!(std::fs::canonicalize(found).ok(), std::env::current_exe().ok());
        assert!(mapped_file(1, &mut [0; 4096]).is_none());
    }

    #[test]
    fn reads_lists_of_mappings() {
        let list = b"1000-3000 r-xp 0 08:01 5    /a b/c\n3000-4000 rw-p 0 00:00 0 \n5000-6000 r-xp 0 0 0 [vdso]\n";
        assert_eq!(path_at(list, 0x2fff), Some(&b"/a b/c"[..]));
        for address in [0xfff, 0x3000, 0x5000, 0x7000] {
            assert_eq!(path_at(list, address), None, "{address:x}");
        }
    }
}
