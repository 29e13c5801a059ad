//! Memory that holds compiled code: written once, then executable and no longer writable.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::{Mutex, OnceLock};

/// Where names of code go: the file in which `perf` looks for them, when the environment variable
/// `STREAMSAN_SIM_PERF` is set.
fn names() -> Option<&'static Mutex<File>> {
    static NAMES: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    let open = || {
        std::env::var_os("STREAMSAN_SIM_PERF").filter(|value| !value.is_empty())?;
        // It looks nowhere else.
        let path = format!("/tmp/perf-{}.map", std::process::id());
        // Anybody may have put a link, a pipe or a file of that name there.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = File::options().create(true).append(true).mode(0o600).custom_flags(flags).open(path).ok()?;
        let meta = file.metadata().ok()?;
        // SAFETY: geteuid has no preconditions.
        let is_ours = meta.is_file() && meta.uid() == unsafe { libc::geteuid() } && meta.nlink() == 1;
        is_ours.then(|| Mutex::new(file))
    };
    NAMES.get_or_init(open).as_ref()
}

/// One piece of code.
pub(super) struct CodeMemory {
    start: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: nothing writes the memory after it was made, and it belongs to this object alone.
unsafe impl Send for CodeMemory {}
// SAFETY: as above.
unsafe impl Sync for CodeMemory {}

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

    /// Tells profilers what the code is, if anybody asked for that.
    pub(super) fn name(&self, name: impl FnOnce() -> String) {
        if let Some(mut names) = names().and_then(|names| names.lock().ok()) {
            // A profile without names is no trouble of the program's.
            let _ = writeln!(names, "{:x} {:x} {}", self.start as u64, self.bytes, name());
        }
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this object's, and its code runs no more.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
