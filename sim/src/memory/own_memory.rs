//! Reads and writes of any address of the process's own memory, which fail where nothing is mapped.
//!
//! `/proc/self/mem` ignores what `mprotect` says, as a device does. The program may close its
//! descriptor: then `process_vm_readv` and `process_vm_writev` do the same within the protection.

use signal_free::descriptors::{HeldFile, own_proc};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The process's own memory.
pub(super) struct OwnMemory {
    /// None: the system gives no such file, or one that can not be used.
    file: Option<HeldFile>,
}

/// Whether the call moved all bytes: `Some(false)` where memory is missing, none where the system
/// forbids the call. `call` gets the local and the remote buffer and answers how much it has moved.
fn move_all(local: u64, remote: u64, len: usize, call: impl Fn(&libc::iovec, &libc::iovec) -> isize) -> Option<bool> {
    let mut done = 0;
    while done < len {
        let part = |at: u64| libc::iovec { iov_base: (at + done as u64) as *mut _, iov_len: len - done };
        match call(&part(local), &part(remote)) {
            moved if moved > 0 => done += moved as usize,
            _ => {
                let error = std::io::Error::last_os_error().raw_os_error();
                return if matches!(error, Some(libc::EPERM | libc::ENOSYS)) { None } else { Some(false) };
            }
        }
    }
    Some(true)
}

/// This thread, by which the system finds the process's memory: the main thread may have ended.
fn thread() -> libc::pid_t {
    // SAFETY: asks for a number.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

impl OwnMemory {
    pub(super) fn new() -> OwnMemory {
        OwnMemory { file: open() }
    }

    /// Whether the file moved all bytes; none if there is no file.
    fn by_file(&self, call: impl FnOnce(&File) -> std::io::Result<()>) -> Option<bool> {
        match self.file.as_ref()?.with(call) {
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => None,
            answer => Some(answer.is_ok()),
        }
    }

    /// Reads; false where nothing is mapped.
    pub(super) fn read(&self, addr: u64, into: &mut [u8]) -> bool {
        if let Some(done) = self.by_file(|file| file.read_exact_at(into, addr)) {
            return done;
        }
        let me = thread();
        // SAFETY: the local buffer is the slice; the system checks the other one.
        let read = |local: &_, remote: &_| unsafe { libc::process_vm_readv(me, local, 1, remote, 1, 0) };
        move_all(into.as_mut_ptr() as u64, addr, into.len(), read).unwrap_or_else(|| {
            // SAFETY: the only way left is the direct one; the program vouches for its own pointer.
            unsafe { std::ptr::copy_nonoverlapping(addr as *const u8, into.as_mut_ptr(), into.len()) };
            true
        })
    }

    /// Writes; false where nothing is mapped.
    pub(super) fn write(&self, addr: u64, from: &[u8]) -> bool {
        if let Some(done) = self.by_file(|file| file.write_all_at(from, addr)) {
            return done;
        }
        let me = thread();
        // SAFETY: as in `read`; the slice is only read.
        let write = |local: &_, remote: &_| unsafe { libc::process_vm_writev(me, local, 1, remote, 1, 0) };
        move_all(from.as_ptr() as u64, addr, from.len(), write).unwrap_or_else(|| {
            // SAFETY: as in `read`.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), addr as *mut u8, from.len()) };
            true
        })
    }
}

/// The process's own memory as a file. Read access to it must be proved, for some sandboxes give an
/// unusable file.
fn open() -> Option<HeldFile> {
    // Close-on-exec, as all files of Rust's, or a child program would hold our memory.
    let file = File::options().read(true).write(true).open(own_proc("mem")).ok()?;
    let probe = 0x5au8;
    let mut got = [0u8];
    file.read_exact_at(&mut got, &raw const probe as u64).ok()?;
    (got[0] == probe).then(|| HeldFile::new(file)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_and_without_the_file_bytes_arrive_and_holes_are_errors() {
        // SAFETY: two fresh pages of 64 KiB, of which the second is given back.
        let at = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let at = libc::mmap(std::ptr::null_mut(), 2 << 16, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            libc::munmap(at.byte_add(1 << 16), 1 << 16);
            at as u64
        };
        for closed in [false, true] {
            let memory = OwnMemory::new();
            if closed {
                let number = memory.file.as_ref().and_then(HeldFile::number).expect("there is /proc");
                // SAFETY: as a program that knows nothing of us.
                unsafe { libc::close(number) };
            }
            for len in [1, 5000, 1 << 16] {
                let (data, mut got) = (vec![len as u8; len], vec![0; len]);
                assert!(memory.write(at, &data) && memory.read(at, &mut got), "closed {closed}, {len}");
                assert_eq!(got, data);
            }
            let mut over = vec![0; (1 << 16) + 1];
            assert!(!memory.read(at, &mut over) && !memory.write(at, &over), "closed {closed}");
            assert!(!memory.read(8, &mut over[..4]) && !memory.write(8, &[1; 4]), "closed {closed}");
        }
        // SAFETY: the page of this test.
        unsafe { libc::munmap(at as *mut _, 1 << 16) };
    }
}
