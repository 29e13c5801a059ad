//! What the system gives: files mapped for reading, memory and its protection, a last word.

use core::arch::asm;
use core::ffi::CStr;

const WRITE: usize = 1;
const CLOSE: usize = 3;
const LSEEK: usize = 8;
const MMAP: usize = 9;
const MPROTECT: usize = 10;
const MUNMAP: usize = 11;
const ACCESS: usize = 21;
const EXIT_GROUP: usize = 231;
const OPENAT: usize = 257;

/// Bits of a protection.
pub const READ: usize = 1;
/// As above.
pub const WRITABLE: usize = 2;
/// As above.
pub const EXECUTABLE: usize = 4;

/// The size of a page.
pub const PAGE: usize = 4096;

const PRIVATE: usize = 2;
const ANONYMOUS: usize = 0x20;

/// A system call. Errors are small negative numbers.
///
/// # Safety
/// As the call's.
unsafe fn call(number: usize, args: [usize; 6]) -> isize {
    let result;
    // SAFETY: the caller's promise; the kernel clobbers the two registers named.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

fn positive(result: isize) -> Option<usize> {
    usize::try_from(result).ok()
}

/// A file mapped for reading.
pub struct Mapped {
    at: usize,
    len: usize,
}

impl Mapped {
    /// Maps a whole file.
    pub fn open(path: &CStr) -> Option<Mapped> {
        const HERE: usize = -100_isize as usize;
        const CLOSE_ON_EXEC: usize = 0o2_000_000;
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
    pub fn bytes(&self) -> &[u8] {
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
pub struct Memory {
    /// Where it starts.
    pub at: usize,
    len: usize,
}

impl Memory {
    /// None at all.
    pub const NONE: Memory = Memory { at: 0, len: 0 };

    /// Some bytes of it.
    pub fn new(len: usize) -> Option<Memory> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = positive(unsafe { call(MMAP, [0, len, READ | WRITABLE, PRIVATE | ANONYMOUS, usize::MAX, 0]) })?;
        Some(Memory { at, len })
    }

    /// Gives it back.
    ///
    /// # Safety
    /// Nobody uses it any more.
    pub unsafe fn free(self) {
        if self.len > 0 {
            // SAFETY: the caller's promise.
            unsafe { call(MUNMAP, [self.at, self.len, 0, 0, 0, 0]) };
        }
    }
}

/// Changes the protection of whole pages.
///
/// # Safety
/// Whoever uses these pages must get by with it.
pub unsafe fn protect(at: usize, len: usize, protection: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { call(MPROTECT, [at, len, protection, 0, 0, 0]) == 0 }
}

/// Whether a file can be read.
pub fn exists(path: &CStr) -> bool {
    const FOR_READING: usize = 4;
    // SAFETY: a C string.
    unsafe { call(ACCESS, [path.as_ptr() as usize, FOR_READING, 0, 0, 0, 0]) == 0 }
}

/// Ends the process with exit code 70 and these words: what comes next would be wrong.
pub fn fail(words: &[&[u8]]) -> ! {
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
