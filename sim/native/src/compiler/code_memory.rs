//! Memory that holds compiled code: written once, then executable and no longer writable.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use signal_free::descriptors::HeldFile;

/// Where names of code go: the file in which `perf` looks for them, when the environment variable
/// `STREAMSAN_SIM_PERF` is set.
fn names() -> Option<&'static Mutex<HeldFile>> {
    static NAMES: OnceLock<Option<Mutex<HeldFile>>> = OnceLock::new();
    let open = || {
        std::env::var_os("STREAMSAN_SIM_PERF").filter(|value| !value.is_empty())?;
        // It looks nowhere else.
        opened(format!("/tmp/perf-{}.map", std::process::id()).as_ref()).and_then(HeldFile::new).map(Mutex::new)
    };
    NAMES.get_or_init(open).as_ref()
}

/// Opens that file to append to it, in a folder where anybody may have put a link, a pipe or a file
/// of that name: then there are no names.
fn opened(path: &Path) -> Option<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().create(true).append(true).mode(0o600).custom_flags(flags).open(path).ok()?;
    let meta = file.metadata().ok()?;
    // SAFETY: geteuid has no preconditions.
    let is_ours = meta.is_file() && meta.uid() == unsafe { libc::geteuid() } && meta.nlink() == 1;
    is_ours.then_some(file)
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
        if let Some(names) = names().and_then(|names| names.lock().ok()) {
            // A profile without names is no trouble of the program's.
            let line = format!("{:x} {:x} {}\n", self.start as u64, self.bytes, name());
            let _ = names.with(|mut file| file.write_all(line.as_bytes()));
        }
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this object's, and its code runs no more.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_a_pipe_and_a_second_name_are_not_written_through() {
        let folder = std::env::temp_dir().join(format!("streamsan-perf-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder");
        let victim = folder.join("victim");
        std::fs::write(&victim, b"precious").expect("writable");
        let names = ["link", "dangling", "second", "pipe"].map(|name| folder.join(name));
        std::os::unix::fs::symlink(&victim, &names[0]).expect("a link");
        std::os::unix::fs::symlink(folder.join("made"), &names[1]).expect("a link");
        std::fs::hard_link(&victim, &names[2]).expect("a second name");
        let pipe = std::ffi::CString::new(names[3].as_os_str().as_encoded_bytes()).expect("a path");
        // SAFETY: a C string.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        for name in &names {
            assert!(opened(name).is_none(), "{}", name.display());
        }
        assert_eq!(std::fs::read(&victim).expect("there"), b"precious");
        assert!(!folder.join("made").exists());
        // A file of one's own is written on, a new one is for its user alone.
        let own = folder.join("own");
        for _ in 0..2 {
            opened(&own).expect("ours").write_all(b"x").expect("written");
        }
        let meta = std::fs::metadata(&own).expect("there");
        assert_eq!((meta.len(), meta.mode() & 0o777), (2, 0o600));
        std::fs::remove_dir_all(folder).expect("ours");
    }
}
