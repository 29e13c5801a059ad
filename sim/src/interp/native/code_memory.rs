//! Memory that holds compiled code: written once, then executable and no longer writable.

/// One piece of code.
pub(super) struct CodeMemory {
    start: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: nothing writes the memory after it was made, and it belongs to this object alone.
unsafe impl Send for CodeMemory {}

impl CodeMemory {
    /// A copy of code that may be executed. None when the system refuses that.
    pub(super) fn new(code: &[u8]) -> Option<CodeMemory> {
        let bytes = code.len().next_multiple_of(4096).max(4096);
        let (read_write, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, where the system likes.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, read_write, private, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let memory = CodeMemory { start, bytes };
        // SAFETY: the mapping has room for the code and is not shared with anybody yet.
        unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), start.cast::<u8>(), code.len());
            if libc::mprotect(start, bytes, libc::PROT_READ | libc::PROT_EXEC) != 0 {
                return None;
            }
        }
        Some(memory)
    }

    pub(super) fn address(&self) -> u64 {
        self.start as u64
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this object's, and its code runs no more.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
